//! Encodes rows in the output formats: the same record batches give the same bytes.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use archive::ArchiveError;
use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder as CsvBuilder;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::json::WriterBuilder as JsonBuilder;
use arrow::json::writer::LineDelimited;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use storage::StorageError;

use super::target::OutputFormat;
use super::{PAGE_ROWS, ROW_GROUP_BYTES, ROW_GROUP_ROWS};
use crate::error::{EngineError, Result};

pub(super) struct Encoder {
    writer: FormatWriter,
    /// The file's name in errors.
    pub(super) object: String,
}

enum FormatWriter {
    Parquet(Box<ArrowWriter<BufWriter<File>>>),
    Csv(BufWriter<File>),
    JsonLines(BufWriter<File>),
}

impl Encoder {
    /// Creates an encoder of rows of `schema`; for CSV, it writes the header.
    pub(super) fn new(
        format: OutputFormat,
        file: File,
        schema: &SchemaRef,
        object: String,
    ) -> Result<Self> {
        let mut file = BufWriter::new(file);
        let writer = match format {
            OutputFormat::Parquet => {
                let writer = parquet_writer(file, schema);
                FormatWriter::Parquet(Box::new(writer.map_err(ArchiveError::parquet(&object))?))
            }
            OutputFormat::Csv => {
                let header = csv(&RecordBatch::new_empty(schema.clone()), true);
                let header = header.map_err(arrow_error(&object))?;
                file.write_all(&header).map_err(StorageError::io(&object))?;
                FormatWriter::Csv(file)
            }
            OutputFormat::JsonLines => FormatWriter::JsonLines(file),
        };
        Ok(Self { writer, object })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let object = &self.object;
        // Encode in memory first, so that a full disk is not taken for bad data.
        let (file, encoded) = match &mut self.writer {
            FormatWriter::Parquet(writer) => {
                return Ok(writer.write(batch).map_err(ArchiveError::parquet(object))?);
            }
            FormatWriter::Csv(file) => (file, csv(batch, false)),
            FormatWriter::JsonLines(file) => (file, json_lines(batch)),
        };
        let encoded = encoded.map_err(arrow_error(object))?;
        Ok(file.write_all(&encoded).map_err(StorageError::io(object))?)
    }

    /// Writes what is still in memory to the file.
    pub(super) fn finish(self) -> Result<()> {
        let Self { writer, object } = self;
        let buffered = match writer {
            FormatWriter::Parquet(writer) => writer
                .into_inner()
                .map_err(ArchiveError::parquet(&object))?,
            FormatWriter::Csv(file) | FormatWriter::JsonLines(file) => file,
        };
        let written = buffered.into_inner().map_err(|error| error.into_error());
        written.map_err(StorageError::io(&object))?;
        Ok(())
    }
}

fn parquet_writer(
    file: BufWriter<File>,
    schema: &SchemaRef,
) -> Result<ArrowWriter<BufWriter<File>>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD))
        .set_write_batch_size(PAGE_ROWS)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("dedup-job ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(file, schema.clone(), options)
}

fn csv(batch: &RecordBatch, header: bool) -> Result<Vec<u8>, ArrowError> {
    let mut bytes = Vec::new();
    CsvBuilder::new()
        .with_header(header)
        .build(&mut bytes)
        .write(batch)?;
    Ok(bytes)
}

fn json_lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut bytes = Vec::new();
    JsonBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, LineDelimited>(&mut bytes)
        .write(batch)?;
    Ok(bytes)
}

/// Turns Arrow errors into errors about the output `object`.
pub(super) fn arrow_error(object: &str) -> impl Fn(ArrowError) -> EngineError {
    move |error| ArchiveError::arrow(object)(error).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive::IdType;
    use arrow::array::{
        Array as _, ArrayRef, AsArray as _, Date32Array, Float64Array, Int32Array, StringArray,
    };
    use arrow::datatypes::{Field, Schema};

    use super::*;
    use crate::pairs::{self, Similarities};

    /// Ids that need quotes, or escapes.
    const IDS: [&str; 7] = [
        "plain",
        "a,b",
        "say \"so\"",
        "two\nlines\r\nand \r",
        "nul\0",
        " spaces ",
        "",
    ];

    fn rows() -> RecordBatch {
        let ids: ArrayRef = Arc::new(StringArray::from(IDS.to_vec()));
        let rows = IDS.len();
        let days: Date32Array = (0..rows)
            .map(|row| (row % 2 == 0).then_some(20_484))
            .collect();
        let similarities: Float64Array = (0..rows)
            .map(|row| (row > 0).then_some(0.1 + 0.2))
            .collect();
        RecordBatch::try_new(
            pairs::schema(IdType::String, Similarities::Known),
            vec![
                Arc::clone(&ids),
                ids,
                Arc::new((0..rows as i32).collect::<Int32Array>()),
                Arc::new(days),
                Arc::new(similarities),
            ],
        )
        .unwrap()
    }

    /// The file that the record batches become.
    fn encoded(format: OutputFormat, batches: &[RecordBatch]) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let schema = pairs::schema(IdType::String, Similarities::Known);
        let open = File::create(file.path()).unwrap();
        let mut encoder = Encoder::new(format, open, &schema, "x".into()).unwrap();
        for batch in batches {
            encoder.write(batch).unwrap();
        }
        encoder.finish().unwrap();
        std::fs::read(file.path()).unwrap()
    }

    #[test]
    fn csv_gives_back_any_id() {
        let bytes = encoded(OutputFormat::Csv, &[rows()]);
        let text = String::from_utf8(bytes).unwrap();
        let header = "new_id,base_id,distance,base_day,similarity\n";
        assert!(
            text.starts_with(&format!("{header}plain,plain,0,2026-01-31,\n\"a,b\",")),
            "{text}"
        );
        assert!(text.contains("\"say \"\"so\"\"\""), "{text}");
        // The reader takes an empty field for null.
        let fields: Vec<Field> = pairs::schema(IdType::String, Similarities::Known)
            .fields()
            .iter()
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        let mut reader = arrow::csv::ReaderBuilder::new(Arc::new(Schema::new(fields)))
            .with_header(true)
            .build(text.as_bytes())
            .unwrap();
        let read = reader.next().unwrap().unwrap();
        let (wrote, read_ids) = (rows(), read.column(0).as_string::<i32>());
        for (row, id) in IDS.iter().enumerate() {
            let found = read_ids.is_valid(row).then(|| read_ids.value(row));
            assert_eq!(found.unwrap_or_default(), *id);
        }
        assert_eq!(read.column(3), wrote.column(3));
        assert_eq!(read.column(4), wrote.column(4));
    }

    #[test]
    fn json_lines_give_back_any_id() {
        let text = String::from_utf8(encoded(OutputFormat::JsonLines, &[rows()])).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            r#"{"new_id":"plain","base_id":"plain","distance":0,"base_day":"2026-01-31","similarity":null}"#
        );
        assert_eq!(lines.len(), IDS.len());
        for (line, id) in lines.iter().zip(IDS) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["new_id"], id);
        }
        let end = r#""distance":1,"base_day":null,"similarity":0.30000000000000004}"#;
        assert!(lines[1].ends_with(end), "{}", lines[1]);
    }

    #[test]
    fn batches_of_other_sizes_are_the_same_text() {
        let rows = rows();
        let parts = [rows.slice(0, 2), rows.slice(2, 0), rows.slice(2, 5)];
        for format in [OutputFormat::Csv, OutputFormat::JsonLines] {
            let whole = encoded(format, std::slice::from_ref(&rows));
            assert_eq!(encoded(format, &parts), whole);
        }
        // No rows: the header alone, or nothing.
        assert_eq!(
            encoded(OutputFormat::Csv, &[]),
            b"new_id,base_id,distance,base_day,similarity\n"
        );
        assert!(encoded(OutputFormat::JsonLines, &[]).is_empty());
    }
}
