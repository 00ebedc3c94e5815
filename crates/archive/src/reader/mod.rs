//! Reads one Parquet file of fingerprints: fingerprints by row group; ids, sketches and decisions
//! by row.

mod columns;
mod decode;
mod rows;

use std::ops::Range;
use std::sync::Arc;

use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use simhash::Spec;
use storage::{Location, UnchangedFile};

use crate::direct_read::DirectBuffers;
use crate::error::{ArchiveError, Result};
use crate::file_checksums::Tail;
use crate::object_reader::ObjectReader;
use crate::row_group_sums::sums_in_footer;
use crate::schema::{IdType, SPEC_KEY};
use columns::{fingerprint_leaf, id_leaf, kept_leaf, sketch_leaf};

pub use columns::ColumnNames;
pub use decode::{DecodedStep, STEP};
pub use rows::{ReadRows, RowColumns, RowPages, is_integer, to_id_type};

/// An open Parquet file of fingerprints. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FingerprintReader {
    name: Arc<str>,
    /// The checksums of its row groups' fingerprints, if the footer has them.
    row_group_sums: Option<Arc<[u64]>>,
    /// Offsets and checksums of its tail, if the log has them.
    tail: Option<Tail>,
    local: Option<UnchangedFile>,
    /// The memory for reads of fingerprints past the system's cache; `None` for usual reads.
    direct: Option<DirectBuffers>,
    object: ObjectReader,
    metadata: Arc<ParquetMetaData>,
    fingerprint_leaf: usize,
    id_leaf: usize,
    id_type: IdType,
    sketch_leaf: Option<usize>,
    /// The leaf column of decisions, if the file has them.
    kept_leaf: Option<usize>,
}

impl FingerprintReader {
    /// Opens the file at `location`, reads its footer and finds its columns. Errors call the file
    /// `name`. The checksums of `tail` check the footer now, and ids, sketches and decisions when
    /// they are read.
    pub async fn open(
        name: &str,
        location: &Location,
        size: u64,
        columns: &ColumnNames,
        tail: Option<Tail>,
    ) -> Result<Self> {
        let local = location.local().map(UnchangedFile::at).transpose()?;
        let mut object = ObjectReader::new(location, size);
        let read = async {
            if local.is_none() {
                object.hold_if_small().await?;
            }
            match &tail {
                Some(tail) => object.checked_metadata(tail).await,
                None => object.metadata().await,
            }
        };
        let metadata = read.await;
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => {
                // `size` comes from the log, which may be wrong.
                let found = location.current_size().await.unwrap_or(size);
                return Err(if found == size {
                    ArchiveError::parquet(name)(error)
                } else {
                    ArchiveError::bad_data(
                        name,
                        format!("it has {found} bytes, and should have {size}"),
                    )
                });
            }
        };
        let schema = metadata.file_metadata().schema_descr();
        let fingerprint_leaf = fingerprint_leaf(name, schema, &columns.fingerprint)?;
        let (id_leaf, id_type) = id_leaf(name, schema, &columns.id)?;
        let sketch_leaf = sketch_leaf(name, schema)?;
        let entries = metadata.file_metadata().key_value_metadata();
        let row_group_sums = entries
            .and_then(|entries| sums_in_footer(entries, row_counts(&metadata)))
            .map(Arc::from);
        Ok(Self {
            name: name.into(),
            row_group_sums,
            tail,
            local,
            direct: None,
            object,
            fingerprint_leaf,
            id_leaf,
            id_type,
            sketch_leaf,
            kept_leaf: kept_leaf(schema),
            metadata: Arc::new(metadata),
        })
    }

    /// Reads the fingerprints past the system's cache from now on, into memory of `buffers`, if the file is local and not in the
    /// cache.
    pub fn read_directly(&mut self, buffers: &DirectBuffers) {
        self.direct = Some(buffers.clone());
    }

    pub fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// The file's name in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id_type(&self) -> IdType {
        self.id_type
    }

    pub fn row_groups(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        row_counts(&self.metadata)
    }

    /// Compressed bytes of the fingerprints of a row group.
    pub fn fingerprint_bytes(&self, row_group: usize) -> u64 {
        let column = self.fingerprint_column(row_group);
        column.compressed_size().max(0).cast_unsigned()
    }

    fn fingerprint_column(&self, row_group: usize) -> &ColumnChunkMetaData {
        let group = self.metadata.row_group(row_group);
        group.column(self.fingerprint_leaf)
    }

    /// The least and the greatest fingerprint, as signed numbers, if the footer has them.
    pub(crate) fn fingerprint_range(&self) -> Option<(i64, i64)> {
        let statistics = |row_group: &RowGroupMetaData| match row_group
            .column(self.fingerprint_leaf)
            .statistics()?
        {
            Statistics::Int64(values) => Some((*values.min_opt()?, *values.max_opt()?)),
            _ => None,
        };
        let row_groups = self.metadata.row_groups();
        let ranges = row_groups.iter().map(statistics);
        ranges.reduce(|all, range| {
            let ((least, greatest), (min, max)) = (all?, range?);
            Some((least.min(min), greatest.max(max)))
        })?
    }

    /// The spec in its footer, if it has one.
    ///
    /// # Errors
    /// [`ArchiveError::Spec`] when it cannot be read.
    pub fn spec(&self) -> Result<Option<Spec>> {
        let entries = self.metadata.file_metadata().key_value_metadata();
        let mut entries = entries.into_iter().flatten();
        let entry = entries.find(|entry| entry.key == SPEC_KEY);
        let text = entry.and_then(|entry| entry.value.as_deref());
        text.map(|text| {
            Spec::from_json(text).map_err(|source| ArchiveError::Spec {
                path: self.name.to_string(),
                source,
            })
        })
        .transpose()
    }

    /// Calls `decode`, and turns a panic into an error: the Parquet library panics on some forged pages.
    fn catch_panic<T>(
        &self,
        row_group: usize,
        kind: &str,
        decode: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).unwrap_or_else(|_| {
            Err(ArchiveError::bad_data(
                self.object_name(row_group, kind),
                "the pages are damaged",
            ))
        })
    }

    /// The byte range of a column chunk, which must lie inside the file.
    fn chunk_range(
        &self,
        row_group: usize,
        kind: &str,
        column: &ColumnChunkMetaData,
    ) -> Result<Range<u64>> {
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
            _ => Err(ArchiveError::bad_data(
                self.object_name(row_group, kind),
                "the footer places its pages outside the file",
            )),
        }
    }

    /// The name of a column chunk in errors; `kind` is `fingerprint`, `id`, `sketch` or `decision`.
    fn object_name(&self, row_group: usize, kind: &str) -> String {
        format!("{}, row group {row_group}, {kind} column", self.name)
    }
}

fn row_counts(metadata: &ParquetMetaData) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
    let groups = metadata.row_groups().iter();
    groups.map(|group| group.num_rows().max(0).cast_unsigned())
}
