//! Real documents to measure with.

use std::fs::File;
use std::path::Path;

use arrow::array::AsArray as _;
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Reads the column `text` of a Parquet file; nulls are empty texts.
pub fn texts(path: &Path) -> Vec<String> {
    let fail = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", path.display()) };
    let file = File::open(path).unwrap_or_else(|error| fail(&error));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.build())
        .unwrap_or_else(|error| fail(&error));
    let mut texts = Vec::new();
    for batch in reader {
        let batch = batch.unwrap_or_else(|error| fail(&error));
        let column = batch
            .column_by_name("text")
            .unwrap_or_else(|| fail(&"no column text"));
        let column =
            arrow::compute::cast(column, &DataType::LargeUtf8).unwrap_or_else(|error| fail(&error));
        let column = column.as_string::<i64>().iter();
        texts.extend(column.map(|text| text.unwrap_or_default().to_owned()));
    }
    texts
}
