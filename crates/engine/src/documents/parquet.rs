//! Documents in Parquet: a row group at a time, with text read as bytes.
//!
//! Parquet's readers refuse a whole page for one string that is not UTF-8. Here strings are read as the byte
//! arrays that they are, and what is not UTF-8 is replaced and counted later.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
    RowFilter,
};
use ::parquet::basic::{LogicalType, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use ::parquet::schema::types::{SchemaDescriptor, Type};
use archive::schema::SPEC_KEY;
use archive::{ArchiveError, IdType, Location};
use arrow::array::{ArrayRef, BooleanArray};
use futures::StreamExt as _;
use simhash::Spec;

use super::columns::{Columns, Content};
use super::{Batches, Format, InputFile};
use crate::error::{EngineError, Result};
use crate::session::BATCH_ROWS;

/// Bytes of text in a batch, about.
const BATCH_BYTES: u64 = 8 << 20;

/// Reads the footer and finds the columns.
pub(super) async fn open(location: Location, columns: &Columns) -> Result<InputFile> {
    tokio::task::spawn_blocking({
        let columns = columns.clone();
        move || open_blocking(location, &columns)
    })
    .await
    .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn open_blocking(location: Location, columns: &Columns) -> Result<InputFile> {
    let name = location.to_string();
    let failed = |source| ArchiveError::Parquet {
        object: name.clone(),
        source,
    };
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&open_file(&location)?)
        .map_err(failed)?;
    let schema = footer.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    let found = columns.find(&name, &names)?;
    for column in [&found.id, found.content.column()] {
        leaf(schema, column)
            .ok_or_else(|| bad_column(&name, column, "nested or repeated values"))?;
    }
    let id = schema.column(leaf(schema, &found.id).unwrap_or_default());
    let id_type = match (id.physical_type(), id.logical_type_ref()) {
        (PhysicalType::BYTE_ARRAY, _) => IdType::String,
        (PhysicalType::INT32 | PhysicalType::INT64, None | Some(LogicalType::Integer(_))) => {
            IdType::Bigint
        }
        (physical, logical) => {
            let found_type =
                logical.map_or_else(|| physical.to_string(), |logical| format!("{logical:?}"));
            return Err(bad_column(
                &name,
                &found.id,
                &format!("ids are text or integers, this is {found_type}"),
            ));
        }
    };
    let pairs = footer.file_metadata().key_value_metadata();
    let spec = pairs.and_then(|pairs| {
        pairs
            .iter()
            .find(|pair| pair.key == SPEC_KEY)?
            .value
            .as_deref()
    });
    let spec = match (&found.content, spec) {
        (Content::Fingerprint(_), Some(text)) => {
            let spec = Spec::from_json(text).map_err(|source| ArchiveError::Spec {
                path: name.clone(),
                source,
            })?;
            Some(spec)
        }
        _ => None,
    };
    let footer = strings_as_bytes(&footer, &[&found.id, found.content.column()]).map_err(failed)?;
    Ok(InputFile {
        location,
        format: Format::Parquet,
        columns: found,
        id_type,
        spec,
        footer: Some(Arc::new(footer)),
    })
}

fn open_file(location: &Location) -> Result<File> {
    File::open(location.local()).map_err(|source| EngineError::Io {
        path: location.to_string(),
        source,
    })
}

fn bad_column(object: &str, column: &str, reason: &str) -> EngineError {
    EngineError::BadData {
        object: format!("{object}, column {column:?}"),
        reason: reason.to_owned(),
    }
}

/// The leaf of a root column that is not nested.
fn leaf(schema: &SchemaDescriptor, column: &str) -> Option<usize> {
    let leaf = schema
        .columns()
        .iter()
        .position(|c| c.path().parts() == [column])?;
    (schema.column(leaf).max_rep_level() == 0).then_some(leaf)
}

/// The footer with some root columns, where they are byte arrays, no longer said to be text.
fn strings_as_bytes(
    footer: &ParquetMetaData,
    columns: &[&str],
) -> Result<ParquetMetaData, ParquetError> {
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    let fields = root.get_fields().iter().map(|field| {
        let text = field.is_primitive() && field.get_physical_type() == PhysicalType::BYTE_ARRAY;
        if !text || !columns.contains(&field.name()) {
            return Ok(Arc::clone(field));
        }
        let info = field.get_basic_info();
        Type::primitive_type_builder(field.name(), PhysicalType::BYTE_ARRAY)
            .with_repetition(info.repetition())
            .with_id(info.has_id().then(|| info.id()))
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let root = Type::group_type_builder(root.name())
        .with_fields(fields)
        .build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        schema,
        file.column_orders().cloned(),
    );
    Ok(ParquetMetaDataBuilder::new(file)
        .set_row_groups(footer.row_groups().to_vec())
        .build())
}

/// Tells of some ids which are wanted.
pub(super) type WantedRows =
    Box<dyn FnMut(&ArrayRef) -> Result<BooleanArray, arrow::error::ArrowError> + Send>;

/// The rows of a row group: id, then content. Where not all are `wanted`, ids are read first.
pub(super) fn read(
    file: &Arc<InputFile>,
    row_group: usize,
    wanted: Option<WantedRows>,
) -> Result<Batches> {
    let object = format!("{}, row group {row_group}", file.location);
    let failed = |source| ArchiveError::Parquet {
        object: object.clone(),
        source,
    };
    let Some(footer) = &file.footer else {
        return Err(file.bad_data("it has no footer".into()));
    };
    // An embedded Arrow schema would make text of the bytes again, unchecked.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(footer), options).map_err(failed)?;
    let schema = metadata.parquet_schema();
    let leaves = [&file.columns.id, file.columns.content.column()]
        .map(|column| leaf(schema, column).unwrap_or_default());
    let mask = ProjectionMask::leaves(schema, leaves);
    let group = footer.row_group(row_group);
    let rows = group.num_rows().max(1).cast_unsigned();
    let bytes: u64 = leaves
        .iter()
        .map(|&leaf| {
            group
                .column(leaf)
                .uncompressed_size()
                .max(0)
                .cast_unsigned()
        })
        .sum();
    let batch_rows = (BATCH_BYTES / (bytes / rows).max(1)).clamp(1, BATCH_ROWS as u64) as usize;
    let mut expected = rows.min(group.num_rows().max(0).cast_unsigned());
    let id = ProjectionMask::leaves(schema, [leaves[0]]);
    let mut builder =
        ParquetRecordBatchReaderBuilder::new_with_metadata(open_file(&file.location)?, metadata)
            .with_row_groups(vec![row_group])
            .with_projection(mask)
            .with_batch_size(batch_rows);
    if let Some(mut wanted) = wanted {
        expected = 0;
        let predicate = ArrowPredicateFn::new(id, move |ids| wanted(ids.column(0)));
        builder = builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]));
    }
    // With a filter, this reads the ids already.
    let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.build()));
    let reader = built
        .unwrap_or_else(|_| Err(ParquetError::General("the pages are damaged".into())))
        .map_err(failed)?;
    // Columns come in the file's order.
    let id_first = leaves[0] < leaves[1];
    let name = object.clone();
    let mut rows = Checked {
        reader,
        object,
        read: 0,
        expected,
        done: false,
    };
    let batches = std::iter::from_fn(move || rows.next());
    let ordered = batches.map(move |batch| {
        let batch = batch?;
        let order = if id_first { [0, 1] } else { [1, 0] };
        batch.project(&order).map_err(|source| {
            ArchiveError::Arrow {
                object: name.clone(),
                source,
            }
            .into()
        })
    });
    Ok(futures::stream::iter(ordered).boxed())
}

/// Batches of a reader, whose panics on forged pages are bad data, and whose rows are counted.
struct Checked<R> {
    reader: R,
    object: String,
    read: u64,
    expected: u64,
    done: bool,
}

impl<R: Iterator<Item = arrow::error::Result<arrow::array::RecordBatch>>> Iterator for Checked<R> {
    type Item = Result<arrow::array::RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let bad_data = |reason: String| EngineError::BadData {
            object: self.object.clone(),
            reason,
        };
        let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.reader.next()));
        let item = match next {
            Ok(Some(Ok(batch))) => {
                self.read += batch.num_rows() as u64;
                return Some(Ok(batch));
            }
            Ok(Some(Err(error))) => Some(Err(bad_data(error.to_string()))),
            Ok(None) if self.read < self.expected => Some(Err(bad_data(format!(
                "{} of {} rows could be read",
                self.read, self.expected
            )))),
            Ok(None) => None,
            Err(_) => Some(Err(bad_data("the pages are damaged".into()))),
        };
        self.done = true;
        item
    }
}
