//! Documents in Parquet: a row group at a time, with text read as bytes.
//!
//! Parquet's readers refuse a whole page for one string that is not UTF-8. Here strings are read as the byte
//! arrays that they are, and what is not UTF-8 is replaced and counted later.

use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderBuilder, ArrowReaderMetadata, ArrowReaderOptions,
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter, RowSelection,
    RowSelector,
};
use ::parquet::arrow::async_reader::{ParquetRecordBatchStream, ParquetRecordBatchStreamBuilder};
use ::parquet::basic::{LogicalType, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use ::parquet::schema::types::{SchemaDescriptor, Type};
use archive::schema::SPEC_KEY;
use archive::{ArchiveError, ErrorKind, IdType, LocalFile, Location, ObjectReader};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use futures::{FutureExt as _, StreamExt as _};
use simhash::Spec;

use super::columns::{Columns, Content};
use super::slices::RowRange;
use super::{Batches, Format, InputFile};
use crate::error::{EngineError, Result};
use crate::session::BATCH_ROWS;

/// Bytes of text in a batch, about.
const BATCH_BYTES: u64 = 1 << 20;

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// On this machine: pages are read as they are decoded.
    Local(LocalFile),
    /// In a store: what is needed of a row group is fetched at once.
    Remote(ObjectReader),
    /// In a file that is no Parquet.
    Rows {
        /// Bytes of it, about, without compression.
        bytes: u64,
    },
}

impl Source {
    /// Bytes of a file of rows.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Rows { bytes } => *bytes,
            Self::Local(_) | Self::Remote(_) => 0,
        }
    }
}

/// Reads the footer and finds the columns.
pub(super) async fn open(location: Location, columns: &Columns) -> Result<InputFile> {
    let name = location.to_string();
    let failed = ArchiveError::parquet(name);
    let (footer, source) = match location.local() {
        Some(local) => {
            let file = LocalFile::at(local)?;
            let opened = file.open()?;
            let read = move || ParquetMetaDataReader::new().parse_and_finish(&opened);
            let footer = tokio::task::spawn_blocking(read)
                .await
                .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            (footer.map_err(failed)?, Source::Local(file))
        }
        None => {
            let mut object = ObjectReader::new(&location, location.size().await?);
            let footer = object.metadata().await.map_err(failed)?;
            (footer, Source::Remote(object))
        }
    };
    find(location, &footer, source, columns)
}

fn find(
    location: Location,
    footer: &ParquetMetaData,
    source: Source,
    columns: &Columns,
) -> Result<InputFile> {
    let name = location.to_string();
    let failed = ArchiveError::parquet(name.clone());
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
    let footer = strings_as_bytes(footer, &[&found.id, found.content.column()]);
    let footer = footer.and_then(|footer| with_views(footer, &found.content));
    let footer = Some(footer.map_err(failed)?);
    Ok(InputFile {
        source,
        location,
        format: Format::Parquet,
        columns: found,
        id_type,
        spec,
        footer,
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

/// What a reader needs to know of the file; text is read as views of its pages.
fn with_views(
    footer: ParquetMetaData,
    content: &Content,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let footer = Arc::new(footer);
    // An embedded Arrow schema would make text of the bytes again, unchecked.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer), options.clone())?;
    let Content::Text(text) = content else {
        return Ok(metadata);
    };
    let fields = metadata.schema().fields().iter().map(|field| {
        match field.name() == text && field.data_type() == &DataType::Binary {
            true => Arc::new(Field::clone(field).with_data_type(DataType::BinaryView)),
            false => Arc::clone(field),
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    ArrowReaderMetadata::try_new(footer, options.with_schema(schema))
}

/// Tells of some ids which are wanted.
pub(super) type WantedRows =
    Box<dyn FnMut(&ArrayRef) -> Result<BooleanArray, arrow::error::ArrowError> + Send>;

/// Rows of a row group: id, then content; `object` is what they are called in messages. Where not all are `wanted`, ids are
/// read first.
pub(super) async fn read(
    file: &Arc<InputFile>,
    rows: &RowRange,
    object: String,
    wanted: Option<WantedRows>,
    memory: usize,
) -> Result<Batches> {
    let slice = RowGroup::of(file, rows)?;
    // A row is read whole, and held a few times while it is decoded and fingerprinted.
    if slice.row_bytes > memory as u64 / 4 {
        return Err(EngineError::OutOfMemory {
            what: format!("{object} has rows of {} bytes", slice.row_bytes),
        });
    }
    let failed = ArchiveError::parquet(object.clone());
    // Columns come in the file's order.
    let order = if slice.leaves[0] < slice.leaves[1] {
        [0, 1]
    } else {
        [1, 0]
    };
    let checked = Checked::new(object.clone(), &slice, wanted.is_some());
    let batches = match &file.source {
        Source::Local(local) => {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
                local.open()?,
                slice.metadata.clone(),
            );
            let builder = slice.configure(builder, wanted);
            // With a filter, this reads the ids already.
            let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.build()));
            let reader = built.unwrap_or_else(|_| Err(damaged())).map_err(failed)?;
            checked.local(reader)
        }
        Source::Remote(object) => {
            let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(
                object.clone(),
                slice.metadata.clone(),
            );
            let stream = slice.configure(builder, wanted).build().map_err(failed)?;
            checked.remote(stream)
        }
        Source::Rows { .. } => return Err(file.bad_data("it is no Parquet".into())),
    };
    let ordered = batches.map(move |batch| {
        batch?.project(&order).map_err(|source| {
            let object = object.clone();
            ArchiveError::Arrow { object, source }.into()
        })
    });
    Ok(ordered.boxed())
}

fn damaged() -> ParquetError {
    ParquetError::General("the pages are damaged".into())
}

/// The columns of ids and content.
fn leaves(file: &InputFile, footer: &ArrowReaderMetadata) -> [usize; 2] {
    let schema = footer.parquet_schema();
    [&file.columns.id, file.columns.content.column()]
        .map(|column| leaf(schema, column).unwrap_or_default())
}

/// Bytes of the ids and content of a row group before compression.
pub(super) fn bytes(file: &InputFile, footer: &ArrowReaderMetadata, row_group: usize) -> u64 {
    let group = footer.metadata().row_group(row_group);
    let bytes = leaves(file, footer).map(|leaf| {
        let size = group.column(leaf).uncompressed_size();
        size.max(0).cast_unsigned()
    });
    bytes[0].saturating_add(bytes[1])
}

/// Rows of a row group, where all that the footer says of them agrees.
pub(super) fn rows(
    file: &InputFile,
    footer: &ArrowReaderMetadata,
    row_group: usize,
) -> Option<usize> {
    let group = footer.metadata().row_group(row_group);
    let values = leaves(file, footer).map(|leaf| group.column(leaf).num_values());
    let agree = values.iter().all(|&values| values == group.num_rows());
    usize::try_from(group.num_rows()).ok().filter(|_| agree)
}

/// What is read of a row group.
struct RowGroup {
    metadata: ArrowReaderMetadata,
    number: usize,
    leaves: [usize; 2],
    /// Those of its rows that are read, where not all are.
    cut: Option<Range<usize>>,
    /// How many are read, if none is filtered out.
    rows: u64,
    /// Bytes of a row, on average.
    row_bytes: u64,
    batch_rows: usize,
}

impl RowGroup {
    fn of(file: &InputFile, range: &RowRange) -> Result<Self> {
        let Some(metadata) = file.footer.clone() else {
            return Err(file.bad_data("it has no footer".into()));
        };
        let number = range.row_group;
        let rows = metadata.metadata().row_group(number).num_rows();
        let rows = rows.max(0).cast_unsigned();
        let row_bytes = bytes(file, &metadata, number) / rows.max(1);
        let batch_rows = BATCH_BYTES / row_bytes.max(1);
        Ok(Self {
            number,
            leaves: leaves(file, &metadata),
            cut: range.cut.clone(),
            rows: range.cut.as_ref().map_or(rows, |cut| cut.len() as u64),
            row_bytes,
            batch_rows: batch_rows.clamp(1, BATCH_ROWS as u64) as usize,
            metadata,
        })
    }

    fn configure<T>(
        &self,
        builder: ArrowReaderBuilder<T>,
        wanted: Option<WantedRows>,
    ) -> ArrowReaderBuilder<T> {
        let schema = self.metadata.parquet_schema();
        let builder = builder
            .with_row_groups(vec![self.number])
            .with_projection(ProjectionMask::leaves(schema, self.leaves))
            .with_batch_size(self.batch_rows);
        let builder = match self.cut.clone() {
            None => builder,
            Some(Range { start, end }) => builder.with_row_selection(RowSelection::from(vec![
                RowSelector::skip(start),
                RowSelector::select(end - start),
            ])),
        };
        let Some(mut wanted) = wanted else {
            return builder;
        };
        let id = ProjectionMask::leaves(schema, [self.leaves[0]]);
        let predicate = ArrowPredicateFn::new(id, move |ids| wanted(ids.column(0)));
        builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]))
    }
}

/// Batches of a reader, whose panics on forged pages are bad data, and whose rows are counted.
struct Checked {
    object: String,
    read: u64,
    /// Rows that there must be; unknown where a filter chooses.
    expected: Option<u64>,
    done: bool,
}

/// What a reader gives, or how it ended.
type Read<E> = std::thread::Result<Option<Result<RecordBatch, E>>>;

impl Checked {
    fn new(object: String, slice: &RowGroup, filtered: bool) -> Self {
        Self {
            object,
            read: 0,
            expected: Some(slice.rows).filter(|_| !filtered),
            done: false,
        }
    }

    fn local(mut self, mut reader: ParquetRecordBatchReader) -> Batches {
        let batches = std::iter::from_fn(move || {
            if self.done {
                return None;
            }
            let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.next()));
            self.judge(next, |source| {
                EngineError::from(ArchiveError::Arrow {
                    object: String::new(),
                    source,
                })
            })
        });
        futures::stream::iter(batches).boxed()
    }

    fn remote(self, stream: ParquetRecordBatchStream<ObjectReader>) -> Batches {
        let batches = futures::stream::unfold((self, stream), |(mut checked, mut stream)| async {
            if checked.done {
                return None;
            }
            let next = std::panic::AssertUnwindSafe(stream.next())
                .catch_unwind()
                .await;
            let object = checked.object.clone();
            let item = checked.judge(next, |source| {
                EngineError::from(ArchiveError::Parquet { object, source })
            })?;
            Some((item, (checked, stream)))
        });
        batches.boxed()
    }

    fn judge<E: std::fmt::Display>(
        &mut self,
        next: Read<E>,
        failed: impl FnOnce(E) -> EngineError,
    ) -> Option<Result<RecordBatch>> {
        let bad_data = |reason: String| EngineError::BadData {
            object: self.object.clone(),
            reason,
        };
        let item = match next {
            Ok(Some(Ok(batch))) => {
                self.read += batch.num_rows() as u64;
                match self.expected {
                    Some(expected) if self.read > expected => Some(Err(bad_data(format!(
                        "it has more than its {expected} rows"
                    )))),
                    _ => return Some(Ok(batch)),
                }
            }
            Ok(Some(Err(error))) => {
                let text = error.to_string();
                // What is no fault of the data keeps its kind.
                let error = failed(error);
                Some(Err(match error.kind() {
                    ErrorKind::Data => bad_data(text),
                    _ => error,
                }))
            }
            Ok(None) => match self.expected {
                Some(expected) if self.read < expected => {
                    let read = self.read;
                    Some(Err(bad_data(format!(
                        "{read} of {expected} rows could be read"
                    ))))
                }
                _ => None,
            },
            Err(_) => Some(Err(bad_data(damaged().to_string()))),
        };
        self.done = true;
        item
    }
}
