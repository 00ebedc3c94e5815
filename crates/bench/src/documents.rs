//! Real documents to measure with.

use std::fs::File;
use std::path::Path;

use arrow::array::AsArray as _;
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Reads a column of a Parquet file as strings; nulls are empty strings.
pub fn strings(path: &Path, column: &str) -> Vec<String> {
    let fail = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", path.display()) };
    let file = File::open(path).unwrap_or_else(|error| fail(&error));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.build())
        .unwrap_or_else(|error| fail(&error));
    let mut strings = Vec::new();
    for batch in reader {
        let batch = batch.unwrap_or_else(|error| fail(&error));
        let values = batch
            .column_by_name(column)
            .unwrap_or_else(|| fail(&format!("no column {column}")));
        let values =
            arrow::compute::cast(values, &DataType::LargeUtf8).unwrap_or_else(|error| fail(&error));
        let values = values.as_string::<i64>().iter();
        strings.extend(values.map(|value| value.unwrap_or_default().to_owned()));
    }
    strings
}
