//! The new day as it comes: files of documents, or of ready fingerprints, in any of the formats.
//!
//! Whatever the format, a day becomes one table with an id and either a text or a fingerprint, read in
//! parallel, in which every error names its file.

mod columns;
mod parquet;
mod rows;
mod slices;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use archive::{IdType, Location};
use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::Spec;

pub use columns::{Columns, Content};
use slices::Slice;

use crate::batch::Id;
use crate::error::{EngineError, Result};
use crate::resources::Resources;
use crate::stream;

/// Name of the column of texts in the table.
pub(crate) const TEXT: &str = "text";

/// File names that are read, by their endings.
pub const EXTENSIONS: [&str; 13] = [
    ".parquet",
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".jsonl.gz",
    ".ndjson.gz",
    ".json.gz",
    ".csv.gz",
    ".jsonl.zst",
    ".ndjson.zst",
    ".json.zst",
    ".csv.zst",
];

/// How a file is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Parquet,
    Json(FileCompressionType),
    Csv(FileCompressionType),
}

impl Format {
    fn of(name: &str) -> Option<Self> {
        let (stem, compression) = match name.rsplit_once('.') {
            Some((stem, "gz")) => (stem, FileCompressionType::GZIP),
            Some((stem, "zst")) => (stem, FileCompressionType::ZSTD),
            _ => (name, FileCompressionType::UNCOMPRESSED),
        };
        match stem.rsplit_once('.')?.1 {
            "parquet" if stem == name => Some(Self::Parquet),
            "jsonl" | "ndjson" | "json" => Some(Self::Json(compression)),
            "csv" => Some(Self::Csv(compression)),
            _ => None,
        }
    }
}

/// One file of the day, with its columns found.
#[derive(Debug, Clone)]
struct InputFile {
    location: Location,
    format: Format,
    columns: columns::Found,
    /// Its own idea of the type of its ids.
    id_type: IdType,
    /// The spec in its footer, where ready fingerprints have one.
    spec: Option<Spec>,
    footer: Option<ArrowReaderMetadata>,
    /// Where Parquet is read from.
    source: parquet::Source,
}

/// A part of the new day that is read in one go, by name.
#[derive(Debug, Clone)]
pub struct DocumentSlice {
    /// The file.
    pub location: Location,
    /// For Parquet, the row group; other files are one slice.
    pub row_group: Option<usize>,
    /// Encoded bytes, where they are known.
    pub bytes: Option<u64>,
    /// Documents, where they are known.
    pub rows: Option<u64>,
}

/// The new day, opened.
#[derive(Debug, Clone)]
pub struct Documents {
    files: Vec<Arc<InputFile>>,
    given: String,
}

impl Documents {
    /// Opens files, directories or patterns, and finds their columns.
    ///
    /// # Errors
    /// [`EngineError`] when a file cannot be read, has no usable columns, or files do not go together.
    pub async fn open(
        context: &SessionContext,
        given: &[String],
        columns: &Columns,
    ) -> Result<Self> {
        let stores = &Resources::of(context)?.stores;
        let mut locations = Vec::new();
        for path in given {
            locations.extend(stores.expand(path, &EXTENSIONS).await?);
        }
        // A file that several paths name is read once.
        let mut seen = HashSet::new();
        locations.retain(|location: &Location| {
            seen.insert((location.root().clone(), location.path().clone()))
        });
        let files: Vec<Option<InputFile>> = futures::stream::iter(locations)
            .map(|location| InputFile::open(context, location, columns))
            .buffered(16)
            .try_collect()
            .await?;
        let files: Vec<_> = files.into_iter().flatten().map(Arc::new).collect();
        for file in &files {
            let (first, other) = (&files[0].columns.content, &file.columns.content);
            if std::mem::discriminant(first) != std::mem::discriminant(other) {
                return Err(file.bad_data(format!(
                    "it has {other}, but {} has {first}",
                    files[0].location
                )));
            }
        }
        Ok(Self {
            files,
            given: given.join(", "),
        })
    }

    /// The paths as they were given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// How many files with rows there are.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Whether it holds ready fingerprints.
    #[must_use]
    pub fn has_fingerprints(&self) -> bool {
        matches!(
            self.files.first().map(|file| &file.columns.content),
            Some(Content::Fingerprint(_))
        )
    }

    /// The type of its ids: text when any file has text.
    #[must_use]
    pub fn id_type(&self) -> Option<IdType> {
        let mut types = self.files.iter().map(|file| file.id_type);
        let first = types.next()?;
        Some(if types.all(|other| other == first) {
            first
        } else {
            IdType::String
        })
    }

    /// The spec of its ready fingerprints, with the file that says so.
    ///
    /// # Errors
    /// When files say different things.
    pub fn spec(&self) -> Result<Option<(String, Spec)>> {
        let mut found: Option<(String, Spec)> = None;
        for file in &self.files {
            let Some(spec) = &file.spec else { continue };
            match &found {
                Some((name, other)) if other != spec => {
                    return Err(archive::ArchiveError::SpecMismatch {
                        left: name.clone(),
                        right: file.location.to_string(),
                        differences: other.differences(spec),
                    }
                    .into());
                }
                _ => found = Some((file.location.to_string(), spec.clone())),
            }
        }
        Ok(found)
    }

    /// Rows, where footers tell.
    #[must_use]
    pub fn known_rows(&self) -> Option<u64> {
        let rows = |file: &Arc<InputFile>| {
            Some(
                file.footer
                    .as_ref()?
                    .metadata()
                    .file_metadata()
                    .num_rows()
                    .max(0)
                    .cast_unsigned(),
            )
        };
        self.files.iter().map(rows).sum()
    }

    /// Its slices, in order.
    #[must_use]
    pub fn slices(&self) -> Vec<DocumentSlice> {
        let named = |slice: Slice| {
            let footer = slice.file.footer.as_ref();
            let group = slice.row_group().zip(footer);
            let group = group.map(|(row_group, footer)| footer.metadata().row_group(row_group));
            DocumentSlice {
                location: slice.file.location.clone(),
                row_group: slice.row_group(),
                bytes: group.map(|group| group.compressed_size().max(0).cast_unsigned()),
                rows: group.map(|group| group.num_rows().max(0).cast_unsigned()),
            }
        };
        self.all_slices().into_iter().map(named).collect()
    }

    /// The rows of one row group, or of all, in the table of [`Self::table`].
    ///
    /// # Errors
    /// None in practice.
    pub fn slice_table(
        &self,
        context: &SessionContext,
        id_type: IdType,
        row_group: Option<usize>,
    ) -> Result<DataFrame> {
        let mut slices = self.all_slices();
        slices.retain(|slice| row_group.is_none() || slice.row_group() == row_group);
        self.table_of_slices(context, id_type, 1, None, slices)
    }

    fn all_slices(&self) -> Vec<Slice> {
        self.files.iter().flat_map(Slice::all).collect()
    }

    /// The texts of some documents by their ids, of several with the same id the first that is found.
    ///
    /// # Errors
    /// [`EngineError`] when a file cannot be read.
    pub async fn texts_of<const N: usize>(
        &self,
        context: &SessionContext,
        ids: [&str; N],
    ) -> Result<[Option<String>; N]> {
        // As text: no id is then refused.
        let wanted = ids.iter().map(|id| Id::Text((*id).into())).collect();
        let failed = || EngineError::query(self.given());
        let mut rows = self
            .table_of(context, IdType::String, 1, Some(Arc::new(wanted)))?
            .execute_stream()
            .await
            .map_err(failed())?;
        let mut found = [const { None }; N];
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            let (names, texts) = (batch.column(0), batch.column(1).as_binary_view());
            for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
                let name = Id::of(names, row);
                for (id, found) in ids.iter().zip(&mut found) {
                    if found.is_none() && name == Id::Text((*id).into()) {
                        *found = Some(String::from_utf8_lossy(texts.value(row)).into_owned());
                    }
                }
            }
        }
        Ok(found)
    }

    /// The table: `id` of the given type, and `text` (bytes or text) or `fp` (as the files have it).
    ///
    /// # Errors
    /// None in practice.
    pub fn table(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
    ) -> Result<DataFrame> {
        self.table_of(context, id_type, partitions, None)
    }

    /// As [`Self::table`], of the documents with the `wanted` ids alone. In Parquet no other texts are decoded.
    ///
    /// # Errors
    /// None in practice.
    pub fn table_of(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
        wanted: Option<Arc<HashSet<Id>>>,
    ) -> Result<DataFrame> {
        self.table_of_slices(context, id_type, partitions, wanted, self.all_slices())
    }

    fn table_of_slices(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
        wanted: Option<Arc<HashSet<Id>>>,
        slices: Vec<Slice>,
    ) -> Result<DataFrame> {
        let content = match self.files.first().map(|file| &file.columns.content) {
            Some(Content::Fingerprint(_)) => {
                Field::new(archive::schema::FINGERPRINT, DataType::Int64, true)
            }
            // Views of the pages that texts were read from, which are not copied.
            _ => Field::new(TEXT, DataType::BinaryView, true),
        };
        let schema = Arc::new(Schema::new(vec![
            Field::new(archive::schema::ID, id_type.data_type(), false),
            content,
        ]));
        let dealt = slices::dealt(slices, partitions);
        let idle = dealt.len() < partitions;
        let streams = dealt
            .into_iter()
            .map(|slices| {
                Arc::new(Part {
                    slices,
                    idle,
                    schema: Arc::clone(&schema),
                    id_type,
                    wanted: wanted.clone(),
                    context: context.clone(),
                }) as Arc<dyn PartitionStream>
            })
            .collect();
        StreamingTable::try_new(schema, streams)
            .and_then(|table| context.read_table(Arc::new(table)))
            .map_err(EngineError::query("planning the day"))
    }
}

impl InputFile {
    /// Opens a file and finds its columns; `None` for one without a single row to tell them by.
    async fn open(
        context: &SessionContext,
        location: Location,
        columns: &Columns,
    ) -> Result<Option<Self>> {
        let name = location.name();
        let Some(format) = Format::of(&name) else {
            return Err(EngineError::BadData {
                object: location.to_string(),
                reason: format!(
                    "not a file of documents by its name; names end in {}",
                    EXTENSIONS.join(", ")
                ),
            });
        };
        match format {
            Format::Parquet => parquet::open(location, columns).await.map(Some),
            Format::Json(compression) => rows::open_json(location, compression, columns).await,
            Format::Csv(compression) => {
                rows::open_csv(context, location, compression, columns).await
            }
        }
    }

    fn bad_data(&self, reason: String) -> EngineError {
        EngineError::BadData {
            object: self.location.to_string(),
            reason,
        }
    }
}

/// One partition of the table: slices, one after the other.
#[derive(Clone)]
struct Part {
    slices: Vec<Slice>,
    /// Whether there are less parts than cores for them.
    idle: bool,
    schema: SchemaRef,
    id_type: IdType,
    /// The ids that are read, where not all are.
    wanted: Option<Arc<HashSet<Id>>>,
    context: SessionContext,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part")
            .field("slices", &self.slices.len())
            .finish_non_exhaustive()
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        // Documents that are looked up were counted before.
        let counted = self.wanted.is_none();
        let resources = context.session_config().get_extension::<Resources>();
        let resources = resources.filter(|_| counted);
        let part = self.clone();
        let slices = futures::stream::iter(self.slices.clone());
        let remote = self.slices.iter().any(Slice::is_remote);
        let batches = slices
            .map(move |slice| {
                let part = part.clone();
                async move {
                    let (remote, parquet) = (slice.is_remote(), slice.rows.is_some());
                    let idle = part.idle;
                    let batches = part.read(slice).await;
                    batches.map(|batches| match remote {
                        true => stream::begun(batches),
                        // Parsed while others work on what was parsed before.
                        false if idle && !parquet => stream::begun_apart(batches),
                        false => batches,
                    })
                }
            })
            // From a store, the next slice is on its way while one is worked on.
            .buffered(if remote { 2 } else { 1 })
            .try_flatten()
            .inspect_ok(move |batch| {
                if let Some(resources) = &resources {
                    let rows = batch.num_rows() as u64;
                    resources
                        .progress
                        .documents
                        .fetch_add(rows, Ordering::Relaxed);
                }
            })
            .map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

/// Which ids, as they are in a file, are wanted; an id that cannot be one of the type is not.
fn are_wanted(
    ids: &ArrayRef,
    id_type: IdType,
    wanted: &HashSet<Id>,
) -> Result<BooleanArray, ArrowError> {
    let lossy = || arrow::compute::cast(ids, &id_type.data_type());
    let ids = archive::reader::to_id_type(ids, id_type).or_else(|_| lossy())?;
    let is_wanted = |row| ids.is_valid(row) && wanted.contains(&Id::of(&ids, row));
    Ok((0..ids.len()).map(|row| Some(is_wanted(row))).collect())
}

/// Batches of one slice.
type Batches = futures::stream::BoxStream<'static, Result<arrow::array::RecordBatch>>;

impl Part {
    /// The rows of a slice, in the table's schema.
    async fn read(&self, slice: Slice) -> Result<Batches> {
        let file = Arc::clone(&slice.file);
        let object = slice.to_string();
        let raw = match &slice.rows {
            Some(rows) => {
                let pool = &self.context.runtime_env().memory_pool;
                let memory = crate::resources::limit(pool);
                let object = object.clone();
                parquet::read(&file, rows, object, self.wanted_rows(), memory).await?
            }
            None => rows::read(&self.context, &file).await?,
        };
        let (schema, id_type) = (Arc::clone(&self.schema), self.id_type);
        let wanted = self.wanted.clone();
        Ok(raw
            .map(move |batch| {
                let mut batch = batch?;
                if let Some(wanted) = &wanted {
                    let failed = |source| archive::ArchiveError::Arrow {
                        object: object.clone(),
                        source,
                    };
                    let kept = are_wanted(batch.column(0), id_type, wanted).map_err(failed)?;
                    batch = arrow::compute::filter_record_batch(&batch, &kept).map_err(failed)?;
                }
                columns::conform(&batch, &schema, id_type, &file.columns, &object)
            })
            .boxed())
    }

    /// Tells for ids as they are in a file which are wanted, where not all are.
    fn wanted_rows(&self) -> Option<parquet::WantedRows> {
        let (wanted, id_type) = (self.wanted.clone()?, self.id_type);
        Some(Box::new(move |ids: &ArrayRef| {
            are_wanted(ids, id_type, &wanted)
        }))
    }
}
