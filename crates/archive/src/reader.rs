//! One Parquet file of fingerprints: fingerprints by row group, ids by row.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray as _};
use arrow::datatypes::DataType;
use futures::{FutureExt as _, TryStreamExt as _};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::arrow::async_reader::ParquetRecordBatchStreamBuilder;
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::reader::SerializedPageReader;
use parquet::schema::types::SchemaDescriptor;
use serde::{Deserialize, Serialize};
use simhash::Spec;

use crate::encoded::{Encoded, Pages};
use crate::error::{ArchiveError, Result};
use crate::fingerprints::RowGroupSums;
use crate::local_file::LocalFile;
use crate::location::Location;
use crate::object_reader::ObjectReader;
use crate::schema::{FINGERPRINT, ID, IdType, SPEC_KEY, SUMS_KEY};

/// Rows decoded in one step: few enough to stay in the second-level cache until they are used.
pub const STEP: usize = 1 << 14;

/// Names of the columns to read; of several the first that a file has is taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BaseColumns {
    /// The column of fingerprints.
    pub fingerprint: Vec<String>,
    /// The column of ids.
    pub id: Vec<String>,
}

impl BaseColumns {
    /// The standard names, behind others that are asked for.
    #[must_use]
    pub fn standard_or(fingerprint: Option<&str>, id: Option<&str>) -> Self {
        let names = |asked: Option<&str>, standard: &str| {
            asked
                .into_iter()
                .chain([standard])
                .map(str::to_owned)
                .collect()
        };
        Self {
            fingerprint: names(fingerprint, FINGERPRINT),
            id: names(id, ID),
        }
    }
}

/// An open file of fingerprints. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FingerprintReader {
    name: Arc<str>,
    /// The sum of each row group's fingerprints, where the file has them.
    sums: Option<Arc<[u64]>>,
    /// The file, where it is one on this machine.
    local: Option<LocalFile>,
    object: ObjectReader,
    metadata: Arc<ParquetMetaData>,
    fingerprint_leaf: usize,
    id_leaf: usize,
    id_type: IdType,
}

/// Some consecutive fingerprints of a row group. Reused from one step to the next.
#[derive(Debug, Default)]
pub struct Step {
    signed: Vec<i64>,
    levels: Vec<i16>,
    /// The row of each value; empty when there are no nulls.
    rows: Vec<u32>,
    first_row: u32,
    /// Time spent so far on reading local files.
    pub reading: Duration,
}

impl Step {
    /// The fingerprints, in the order of their rows, without nulls.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        bytemuck::cast_slice(&self.signed)
    }

    /// The row in its row group of value `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> u32 {
        let row = self.rows.get(index).copied();
        row.unwrap_or(self.first_row + index as u32)
    }
}

/// Where a file's pages of ids are; see [`FingerprintReader::id_pages`].
#[derive(Debug, Clone)]
pub struct IdPages(ArrowReaderMetadata);

impl FingerprintReader {
    /// Opens the file at `location`, reads its footer and finds its columns. `name` is what errors call it.
    ///
    /// # Errors
    /// [`ArchiveError`] when it is missing, is no Parquet file, or lacks a usable column.
    pub async fn open(
        name: &str,
        location: &Location,
        size: u64,
        columns: &BaseColumns,
    ) -> Result<Self> {
        let local = location.local().map(LocalFile::at).transpose()?;
        let mut object = ObjectReader::new(location, size);
        let metadata = match object.metadata().await {
            Ok(metadata) => metadata,
            Err(error) => {
                // A log says how large its files are.
                let found = location.size_now().await.unwrap_or(size);
                return Err(match found == size {
                    true => ArchiveError::parquet(name)(error),
                    false => ArchiveError::BadData {
                        object: name.to_owned(),
                        reason: format!("it has {found} bytes, and should have {size}"),
                    },
                });
            }
        };
        let schema = metadata.file_metadata().schema_descr();
        let fingerprint_leaf = fingerprint_leaf(name, schema, &columns.fingerprint)?;
        let (id_leaf, id_type) = id_leaf(name, schema, &columns.id)?;
        let pairs = metadata.file_metadata().key_value_metadata();
        let sums = pairs
            .and_then(|pairs| {
                pairs
                    .iter()
                    .find(|pair| pair.key == SUMS_KEY)?
                    .value
                    .as_deref()
            })
            .and_then(|text| RowGroupSums::parse(text, row_counts(&metadata)));
        Ok(Self {
            name: name.into(),
            sums: sums.map(Into::into),
            local,
            object,
            fingerprint_leaf,
            id_leaf,
            id_type,
            metadata: Arc::new(metadata),
        })
    }

    /// What errors call the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its ids.
    #[must_use]
    pub fn id_type(&self) -> IdType {
        self.id_type
    }

    /// Rows of each row group.
    pub fn row_groups(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        row_counts(&self.metadata)
    }

    /// Compressed bytes of the fingerprints of a row group.
    #[must_use]
    pub fn fingerprint_bytes(&self, row_group: usize) -> u64 {
        let column = self
            .metadata
            .row_group(row_group)
            .column(self.fingerprint_leaf);
        column.compressed_size().max(0).cast_unsigned()
    }

    /// The spec in its footer, if there is one.
    ///
    /// # Errors
    /// [`ArchiveError::Spec`] when it cannot be read.
    pub fn spec(&self) -> Result<Option<Spec>> {
        let pairs = self.metadata.file_metadata().key_value_metadata();
        let text = pairs.and_then(|pairs| {
            pairs
                .iter()
                .find(|pair| pair.key == SPEC_KEY)?
                .value
                .as_deref()
        });
        text.map(|text| {
            Spec::from_json(text).map_err(|source| ArchiveError::Spec {
                path: self.name.to_string(),
                source,
            })
        })
        .transpose()
    }

    /// Fetches the encoded fingerprints of a row group; those of a local file are read when they are decoded.
    ///
    /// # Errors
    /// [`ArchiveError::Parquet`] when they cannot be had in full.
    pub async fn fetch(&self, row_group: usize) -> Result<Encoded> {
        let column = self
            .metadata
            .row_group(row_group)
            .column(self.fingerprint_leaf);
        let range = self.chunk_range(row_group, column)?;
        let object = || self.object_name(row_group);
        if let Some(file) = self.local.clone() {
            let opened = tokio::task::spawn_blocking(move || Encoded::local(&file, &range)).await;
            return opened.unwrap_or_else(|panic| {
                Err(ArchiveError::Io {
                    path: object(),
                    source: std::io::Error::other(panic),
                })
            });
        }
        let bytes = self.object.range(range).await;
        bytes
            .map(Encoded::Fetched)
            .map_err(|error| ArchiveError::parquet(object())(error))
    }

    /// Decodes what [`Self::fetch`] brought, and hands it to `each` step by step until that returns false. Takes
    /// CPU time, not input or output.
    ///
    /// # Errors
    /// [`ArchiveError::Parquet`] or [`ArchiveError::BadData`] when the bytes are damaged.
    pub fn decode(
        &self,
        row_group: usize,
        encoded: Encoded,
        step: &mut Step,
        mut each: impl FnMut(&Step) -> bool,
    ) -> Result<()> {
        let group = self.metadata.row_group(row_group);
        let column = group.column(self.fingerprint_leaf);
        let range = self.chunk_range(row_group, column)?;
        let reading = Arc::default();
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let failed = |error| ArchiveError::parquet(self.object_name(row_group))(error);
        let mut decoder = self.guarded(row_group, || {
            let pages = Pages::new(encoded, range, Arc::clone(&reading));
            Decoder::new(column, rows, pages).map_err(failed)
        })?;
        let mut sum = 0u64;
        while decoder.row < rows {
            self.guarded(row_group, || decoder.next(step).map_err(failed))?;
            sum = sum.wrapping_add(RowGroupSums::of(&step.signed));
            if !each(step) {
                step.reading += *reading.lock().unwrap_or_else(PoisonError::into_inner);
                return Ok(());
            }
        }
        if self
            .sums
            .as_ref()
            .is_some_and(|sums| sums.get(row_group) != Some(&sum))
        {
            return Err(ArchiveError::BadData {
                object: self.object_name(row_group),
                reason: "the values are not those that were written: it is damaged".into(),
            });
        }
        step.reading += *reading.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    /// Some forged pages make the Parquet reader panic; for its user that is bad data like any other.
    fn guarded<T>(&self, row_group: usize, decode: impl FnOnce() -> Result<T>) -> Result<T> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).unwrap_or_else(|_| {
            Err(ArchiveError::BadData {
                object: self.object_name(row_group),
                reason: "the pages are damaged".into(),
            })
        })
    }

    /// Reads where the pages of ids are. Worth keeping while the same file is read, not longer: it grows with the
    /// file.
    ///
    /// # Errors
    /// [`ArchiveError::Parquet`] when it cannot be read.
    pub async fn id_pages(&self) -> Result<IdPages> {
        let failed = |error| ArchiveError::parquet(format!("{}, offset index", self.name))(error);
        let mut metadata = ParquetMetaDataReader::new_with_metadata(self.metadata.as_ref().clone())
            .with_offset_index_policy(PageIndexPolicy::Optional);
        let mut reader = self.object.clone();
        metadata
            .load_page_index(&mut reader)
            .await
            .map_err(failed)?;
        let metadata = Arc::new(metadata.finish().map_err(failed)?);
        // Ids are data, whatever their bytes: read as the plain type, made text below.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        ArrowReaderMetadata::try_new(metadata, options)
            .map(IdPages)
            .map_err(failed)
    }

    /// The ids of some rows of a row group; `rows` must be strictly ascending.
    ///
    /// Only the pages that hold them are read, where the file has an offset index.
    ///
    /// # Errors
    /// [`ArchiveError`] when they cannot be read, or one is null.
    pub async fn ids(&self, pages: &IdPages, row_group: usize, rows: &[u32]) -> Result<ArrayRef> {
        let object = format!("{}, row group {row_group}, id column", self.name);
        let failed = |error| ArchiveError::parquet(object.clone())(error);
        let metadata = pages.0.clone();
        let total = usize::try_from(self.metadata.row_group(row_group).num_rows()).unwrap_or(0);
        let ranges = rows.iter().map(|&row| row as usize..row as usize + 1);
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), [self.id_leaf]);
        let reader = self.object.clone();
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata)
            .with_row_groups(vec![row_group])
            .with_projection(mask)
            .with_row_selection(RowSelection::from_consecutive_ranges(ranges, total))
            .with_batch_size(8192)
            .build()
            .map_err(failed)?;
        // As in `guarded`.
        let batches: Vec<_> = std::panic::AssertUnwindSafe(stream.try_collect())
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(ParquetError::General("the pages are damaged".into())))
            .map_err(failed)?;
        let columns: Vec<&dyn arrow::array::Array> = batches
            .iter()
            .map(|batch| batch.column(0).as_ref())
            .collect();
        let read: usize = columns.iter().map(|column| column.len()).sum();
        if read != rows.len() || columns.iter().any(|column| column.null_count() > 0) {
            return Err(ArchiveError::BadData {
                reason: if read == rows.len() {
                    "null ids".into()
                } else {
                    format!("{read} of {} ids could be read", rows.len())
                },
                object,
            });
        }
        let arrow_error = |source| ArchiveError::Arrow {
            object: object.clone(),
            source,
        };
        let ids = arrow::compute::concat(&columns).map_err(arrow_error)?;
        to_id_type(&ids, self.id_type).map_err(arrow_error)
    }

    fn chunk_range(
        &self,
        row_group: usize,
        column: &ColumnChunkMetaData,
    ) -> Result<std::ops::Range<u64>> {
        let start = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        match (
            u64::try_from(start),
            u64::try_from(column.compressed_size()),
        ) {
            (Ok(start), Ok(length))
                if start
                    .checked_add(length)
                    .is_some_and(|end| end <= self.object.size()) =>
            {
                Ok(start..start + length)
            }
            _ => Err(ArchiveError::BadData {
                object: self.object_name(row_group),
                reason: "the footer places its pages outside the file".into(),
            }),
        }
    }

    fn object_name(&self, row_group: usize) -> String {
        format!("{}, row group {row_group}, fingerprint column", self.name)
    }
}

fn row_counts(metadata: &ParquetMetaData) -> impl ExactSizeIterator<Item = u64> + '_ {
    let groups = metadata.row_groups().iter();
    groups.map(|group| group.num_rows().max(0).cast_unsigned())
}

/// Ids as one of the two types: text of any kind as UTF-8, integers of any width as 64 bits.
///
/// # Errors
/// When the values do not fit.
pub fn to_id_type(
    ids: &ArrayRef,
    id_type: IdType,
) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    // Bytes that are no UTF-8 become replacement characters, as in the documents themselves.
    if let DataType::Binary = ids.data_type() {
        let text = ids
            .as_binary::<i32>()
            .iter()
            .map(|id| id.map(String::from_utf8_lossy));
        let text: arrow::array::StringArray = text.collect();
        return arrow::compute::cast(&text, &id_type.data_type());
    }
    let options = arrow::compute::CastOptions {
        safe: false,
        ..Default::default()
    };
    arrow::compute::cast_with_options(ids, &id_type.data_type(), &options)
}

/// Decodes a column chunk step by step.
struct Decoder {
    reader: ColumnReaderImpl<Int64Type>,
    optional: bool,
    /// The next row.
    row: usize,
    rows: usize,
}

impl Decoder {
    fn new(
        column: &ColumnChunkMetaData,
        rows: usize,
        pages: Pages,
    ) -> parquet::errors::Result<Self> {
        let descriptor = column.column_descr_ptr();
        let optional = descriptor.max_def_level() > 0;
        let pages = SerializedPageReader::new(Arc::new(pages), column, rows, None)?;
        let reader = ColumnReaderImpl::<Int64Type>::new(descriptor, Box::new(pages));
        Ok(Self {
            reader,
            optional,
            row: 0,
            rows,
        })
    }

    fn next(&mut self, step: &mut Step) -> parquet::errors::Result<()> {
        step.signed.clear();
        step.levels.clear();
        step.rows.clear();
        step.first_row = self.row as u32;
        let wanted = (self.rows - self.row).min(STEP);
        let levels = self.optional.then_some(&mut step.levels);
        let (read, present, _) =
            self.reader
                .read_records(wanted, levels, None, &mut step.signed)?;
        if read == 0 {
            let (row, rows) = (self.row, self.rows);
            return Err(ParquetError::EOF(format!(
                "{row} of {rows} rows could be read"
            )));
        }
        if present < read {
            let levels = step.levels.iter().enumerate();
            let present = levels.filter(|(_, level)| **level > 0);
            step.rows
                .extend(present.map(|(at, _)| (self.row + at) as u32));
        }
        self.row += read;
        Ok(())
    }
}

/// The leaf column of the first of `names` that the file has; it must not be nested.
fn leaf(name: &str, schema: &SchemaDescriptor, names: &[String]) -> Result<usize> {
    let position = |column: &String| {
        schema
            .columns()
            .iter()
            .position(|c| c.path().parts() == [column.as_str()])
    };
    let found = names.iter().find_map(position);
    found
        .filter(|&leaf| schema.column(leaf).max_rep_level() == 0)
        .ok_or_else(|| {
            let columns: Vec<&str> = schema
                .root_schema()
                .get_fields()
                .iter()
                .map(|f| f.name())
                .collect();
            ArchiveError::BadData {
                object: name.to_owned(),
                reason: format!(
                    "no column {} of single values; its columns are {}",
                    names.join(" or "),
                    columns.join(", ")
                ),
            }
        })
}

fn fingerprint_leaf(name: &str, schema: &SchemaDescriptor, columns: &[String]) -> Result<usize> {
    let leaf = leaf(name, schema, columns)?;
    let descriptor = schema.column(leaf);
    let integer = matches!(
        (descriptor.logical_type_ref(), descriptor.converted_type()),
        (Some(LogicalType::Integer(_)), _)
            | (
                None,
                ConvertedType::NONE | ConvertedType::INT_64 | ConvertedType::UINT_64
            )
    );
    if descriptor.physical_type() == PhysicalType::INT64 && integer {
        return Ok(leaf);
    }
    Err(ArchiveError::BadData {
        object: format!("{name}, column {:?}", descriptor.name()),
        reason: format!(
            "fingerprints are 64-bit integers, this is {}",
            type_name(&descriptor)
        ),
    })
}

fn id_leaf(name: &str, schema: &SchemaDescriptor, columns: &[String]) -> Result<(usize, IdType)> {
    let leaf = leaf(name, schema, columns)?;
    let descriptor = schema.column(leaf);
    match descriptor.physical_type() {
        PhysicalType::BYTE_ARRAY => Ok((leaf, IdType::String)),
        PhysicalType::INT32 | PhysicalType::INT64
            if matches!(
                descriptor.logical_type_ref(),
                None | Some(LogicalType::Integer(_))
            ) =>
        {
            Ok((leaf, IdType::Bigint))
        }
        _ => Err(ArchiveError::BadData {
            object: format!("{name}, column {:?}", descriptor.name()),
            reason: format!(
                "ids are text or integers, this is {}",
                type_name(&descriptor)
            ),
        }),
    }
}

fn type_name(descriptor: &parquet::schema::types::ColumnDescriptor) -> String {
    match descriptor.logical_type_ref() {
        Some(logical) => format!("{logical:?}"),
        None => descriptor.physical_type().to_string(),
    }
}
