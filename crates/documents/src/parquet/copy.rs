//! Copies rows of a Parquet file with all their columns.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use ::parquet::arrow::async_reader::AsyncFileReader as _;
use ::parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::ChunkReader;
use ::parquet::file::writer::SerializedFileWriter;
use archive::ArchiveError;
use archive::row_groups::RowGroups;
use archive::validated_pages::{FileParts, ValidatedRowGroups, WholeFile};
use arrow::array::{ArrayRef, AsArray as _, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::checked::{Checked, DAMAGED, catch_panic};
use super::footer::strings_as_bytes;
use crate::error::{DocumentsError, Result};
use crate::file::{InputFile, Source};
use crate::kept::Output;
use crate::source::lossy_texts;

/// The copy starts a new row group when the rows of the current one take more memory than this.
const ROW_GROUP_BYTES: usize = 256 << 20;
const BATCH_ROWS: u64 = 1024;
/// Bytes of rows that are decoded at once, on average.
const BATCH_BYTES: u64 = 16 << 20;

/// The most bytes of these rows, if dictionaries have longer values.
const MOST_BATCH_BYTES: u64 = 64 << 20;

/// Copies the rows whose number in the file `is_kept` accepts. A text that is not UTF-8 gets
/// replacement characters.
pub(crate) async fn copy(
    file: &InputFile,
    out: Output,
    is_kept: &(dyn Fn(u64) -> bool + Sync),
) -> Result<()> {
    let name = file.location.to_string();
    let failed = |error| DocumentsError::from(ArchiveError::parquet(name.clone())(error));
    let original = match &file.source {
        Source::Local(local) => ParquetMetaDataReader::new()
            .parse_and_finish(&local.open()?)
            .map_err(failed)?,
        Source::Remote(remote) => remote.clone().metadata().await.map_err(failed)?,
        Source::Rows(_) => return Err(file.bad_data("it is no Parquet".into())),
    };
    let mut copy = Copy::new(name.clone(), &original, out)?;
    let mut first = 0;
    for number in 0..original.num_row_groups() {
        let rows = original.row_group(number).num_rows().max(0).cast_unsigned();
        if (first..first + rows).any(is_kept) {
            match &file.source {
                Source::Local(local) => {
                    let groups = copy.row_group(WholeFile(local.open()?), number);
                    copy.add(&groups, rows, |row| is_kept(first + row)).await?;
                }
                Source::Remote(remote) => {
                    let columns = original.row_group(number).columns().iter();
                    let ranges: Option<Vec<_>> = catch_panic(&name, || {
                        let range =
                            |(start, length): (u64, u64)| Some(start..start.checked_add(length)?);
                        Ok(columns.map(|column| range(column.byte_range())).collect())
                    })?;
                    let ranges = ranges.ok_or_else(|| file.bad_data(DAMAGED.into()))?;
                    let bytes = remote.clone().get_byte_ranges(ranges.clone()).await;
                    let parts = FileParts::new(&ranges, bytes.map_err(failed)?);
                    let groups = copy.row_group(parts, number);
                    copy.add(&groups, rows, |row| is_kept(first + row)).await?;
                }
                Source::Rows(_) => {}
            }
        }
        first += rows;
    }
    copy.finish().await
}

struct Copy {
    /// The input's name in errors.
    name: String,
    /// The output's name in errors.
    target: String,
    metadata: ArrowReaderMetadata,
    /// Schema of the copy. It has strings where `metadata` has bytes.
    schema: SchemaRef,
    /// Rows that wait for the end of their row group, on their way to the file.
    row_groups: RowGroups,
    /// Bytes of the rows of the row group that is open.
    bytes: usize,
    writer: SerializedFileWriter<BufWriter<File>>,
}

impl Copy {
    fn new(name: String, original: &ParquetMetaData, out: Output) -> Result<Self> {
        let failed = |error| DocumentsError::from(ArchiveError::parquet(name.clone())(error));
        let file = original.file_metadata();
        let fields = file.schema_descr().root_schema().get_fields();
        let is_text = |field: &::parquet::schema::types::TypePtr| {
            let info = field.get_basic_info();
            let logical = info.logical_type_ref();
            // The values of a repeated field are lists.
            field.is_primitive()
                && info.repetition() != Repetition::REPEATED
                && field.get_physical_type() == PhysicalType::BYTE_ARRAY
                && (matches!(logical, Some(LogicalType::String))
                    || info.converted_type() == ConvertedType::UTF8)
        };
        let texts: Vec<&str> = fields
            .iter()
            .filter(|field| is_text(field))
            .map(|field| field.name())
            .collect();
        let leaves = file.schema_descr().columns().iter().enumerate();
        let leaves = leaves.filter(|(_, leaf)| match leaf.path().parts() {
            [name] => texts.contains(&name.as_str()),
            _ => false,
        });
        let leaves: Vec<usize> = leaves.map(|(index, _)| index).collect();
        let footer = strings_as_bytes(original, &leaves).map_err(failed)?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::try_new(Arc::new(footer), options).map_err(failed)?;
        let fields = metadata.schema().fields().iter().map(|field| {
            if texts.contains(&field.name().as_str()) {
                Arc::new(Field::clone(field).with_data_type(DataType::Utf8))
            } else {
                Arc::clone(field)
            }
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let most_rows = original
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .max();
        let most_rows = usize::try_from(most_rows.unwrap_or(1)).unwrap_or(1).max(1);
        // The key-value metadata contain the original's Arrow schema, which has the columns of the
        // copy, too.
        let mut properties =
            WriterProperties::builder().set_key_value_metadata(file.key_value_metadata().cloned());
        let first = original.row_groups().first();
        for column in first.map(|group| group.columns()).unwrap_or_default() {
            let path = column.column_path().clone();
            properties = properties.set_column_compression(path, column.compression());
        }
        let properties = properties.build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let (file, target) = (out.file, out.name);
        let writer = BufWriter::new(file);
        let writer = ArrowWriter::try_new_with_options(writer, Arc::clone(&schema), options);
        let (writer, factory) = writer
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| DocumentsError::from(ArchiveError::parquet(target.clone())(error)))?;
        Ok(Self {
            name,
            target,
            metadata,
            row_groups: RowGroups::new(Arc::clone(&schema), factory, most_rows),
            schema,
            bytes: 0,
            writer,
        })
    }

    fn row_group<R: ChunkReader + 'static>(
        &self,
        source: R,
        number: usize,
    ) -> ValidatedRowGroups<R> {
        let metadata = Arc::clone(self.metadata.metadata());
        ValidatedRowGroups::new(source, metadata, number..number + 1)
    }

    /// Adds those rows of a row group of `rows` rows that `is_kept` accepts.
    async fn add<R: ChunkReader + 'static>(
        &mut self,
        groups: &ValidatedRowGroups<R>,
        rows: u64,
        is_kept: impl Fn(u64) -> bool,
    ) -> Result<()> {
        let fields = Some(self.metadata.schema().fields());
        let leaves = 0..self.metadata.parquet_schema().num_columns();
        let row_bytes = catch_panic(&self.name, || groups.row_bytes(leaves.clone()))?;
        let batch_rows = row_bytes.rows_within(BATCH_BYTES, MOST_BATCH_BYTES, BATCH_ROWS);
        let read = || groups.read_as(fields, ProjectionMask::all(), batch_rows, None);
        let reader = catch_panic(&self.name, read)?;
        let mut row = 0;
        for batch in Checked::new(reader, self.name.clone(), rows) {
            let batch = batch?;
            let end = row + batch.num_rows() as u64;
            let mask: BooleanArray = (row..end).map(|row| Some(is_kept(row))).collect();
            row = end;
            if mask.true_count() == 0 {
                continue;
            }
            let kept = arrow::compute::filter_record_batch(&batch, &mask);
            let kept = kept.and_then(|kept| with_texts(&kept, &self.schema));
            let kept = kept.map_err(ArchiveError::arrow(&self.name))?;
            let written = self.write(kept).await;
            written.map_err(ArchiveError::parquet(&*self.target))?;
        }
        Ok(())
    }

    /// Writes rows, while other threads encode those before.
    async fn write(&mut self, mut rows: RecordBatch) -> Result<(), ParquetError> {
        while rows.num_rows() > 0 {
            let room = self.row_groups.room();
            let some = rows.num_rows().min(room);
            let now = rows.slice(0, some);
            rows = rows.slice(some, rows.num_rows() - some);
            self.bytes += streams::bytes(&now)?;
            let mut encoded = self.row_groups.add(now).await?;
            if some == room {
                self.bytes = 0;
            } else if self.bytes > ROW_GROUP_BYTES {
                self.bytes = 0;
                encoded = self.row_groups.end_row_group().await?;
            }
            if let Some(encoded) = encoded {
                encoded.append_to(&mut self.writer)?;
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<()> {
        let target = self.target;
        let failed = |error| DocumentsError::from(ArchiveError::parquet(target.clone())(error));
        self.row_groups.close();
        while let Some(encoded) = self.row_groups.next().await.map_err(failed)? {
            encoded.append_to(&mut self.writer).map_err(failed)?;
        }
        let buffered = self.writer.into_inner().map_err(failed)?;
        let flushed = buffered.into_inner().map(drop);
        flushed.map_err(|error| Output::failed(&target, error.into_error()))
    }
}

/// Converts texts, which were read as bytes, to strings.
fn with_texts(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| -> ArrayRef {
        match (column.data_type(), field.data_type()) {
            (DataType::Binary, DataType::Utf8) => {
                let bytes = column.as_binary::<i32>();
                match StringArray::try_from_binary(bytes.clone()) {
                    Ok(texts) => Arc::new(texts),
                    Err(_) => lossy_texts(bytes.iter()),
                }
            }
            _ => Arc::clone(column),
        }
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect())
}
