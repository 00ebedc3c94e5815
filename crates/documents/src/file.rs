//! One file of documents, with its columns found.

use std::ops::Range;

use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use archive::{IdType, ObjectReader};
use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use simhash::Spec;
use storage::{Location, UnchangedFile};

use super::columns::{CarriedColumn, FoundColumns};
use super::preference::Prefer;
use super::rows::compression::Compression;
use super::rows::format::RowFormat;
use super::rows::held::Held;
use crate::error::{DocumentsError, Result};

/// Record batches of the columns that [`FoundColumns::names`] lists, under the file's column names.
pub(super) type Batches = BoxStream<'static, Result<RecordBatch>>;

/// Rows of a file, and their numbers in it, from 0 on. Positions name a document by them.
pub(super) struct NumberedRows {
    pub(super) rows: RecordBatch,
    pub(super) numbers: Vec<u64>,
}

/// A file of documents, or of ready fingerprints.
#[derive(Debug, Clone)]
pub(super) struct InputFile {
    pub(super) location: Location,
    /// Its path below the common directory of all files; documents without an id get theirs from
    /// it.
    pub(super) short_name: String,
    pub(super) columns: FoundColumns,
    /// The columns that go along to decisions; they are read later, by [`Self::with_carried`] or [`Self::only`].
    pub(super) carried: Vec<CarriedColumn>,
    /// The type of its ids, as the file has them.
    pub(super) id_type: IdType,
    /// The spec of ready fingerprints, if the file declares it.
    pub(super) spec: Option<Spec>,
    /// The footer of a Parquet file; `None` for other formats.
    pub(super) footer: Option<ArrowReaderMetadata>,
    pub(super) source: Source,
}

/// Where the bytes of a file are, and their format.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Parquet on this machine: pages are read as they are decoded.
    Local(UnchangedFile),
    /// Parquet in a store: the pages of a row group are fetched at once.
    Remote(ObjectReader),
    /// A row format: JSON Lines or CSV.
    Rows(RowSource),
}

/// A file of a row format.
#[derive(Debug, Clone)]
pub(super) struct RowSource {
    pub(super) format: &'static dyn RowFormat,
    pub(super) compression: Compression,
    /// Encoded bytes.
    pub(super) size: u64,
    /// Estimated bytes after decompression.
    pub(super) bytes: u64,
    /// Offsets at which the file is cut into parts that are read one by one, ascending; none if it is read as a whole.
    pub(super) cuts: Vec<u64>,
    /// The state of the file when it was opened, by which a change is noticed; `None` for an object in a store.
    pub(super) local: Option<UnchangedFile>,
    /// All bytes of a small object.
    pub(super) held: Option<Held>,
}

/// Rows of one row group of Parquet.
#[derive(Debug, Clone)]
pub(super) struct RowRange {
    pub(super) row_group: usize,
    /// The rows, by their numbers in the row group; `None` for all.
    pub(super) cut: Option<Range<usize>>,
}

impl InputFile {
    /// The source of a file of a row format; `None` for Parquet.
    pub(super) fn rows(&self) -> Option<&RowSource> {
        match &self.source {
            Source::Rows(rows) => Some(rows),
            Source::Local(_) | Source::Remote(_) => None,
        }
    }

    /// The parts that are read one by one, in order; `None` stands for the whole file.
    pub(super) fn parts(&self) -> Vec<Option<Range<u64>>> {
        let Some(rows) = self.rows().filter(|rows| !rows.cuts.is_empty()) else {
            return vec![None];
        };
        let starts = [0].into_iter().chain(rows.cuts.iter().copied());
        let ends = rows.cuts.iter().copied().chain([rows.size]);
        let parts = starts.zip(ends);
        parts.map(|(start, end)| Some(start..end)).collect()
    }

    pub(super) fn cut_at(&mut self, places: Vec<u64>) {
        if let Source::Rows(rows) = &mut self.source {
            rows.cuts = places;
        }
    }

    pub(super) fn cuts(&self) -> &[u64] {
        self.rows().map_or(&[], |rows| rows.cuts.as_slice())
    }

    /// The columns that all files of its format have, beside an id and a text.
    pub(super) fn known_columns(&self) -> &'static [&'static str] {
        self.rows().map_or(&[], |rows| rows.format.known_columns())
    }

    /// The same file; its readers also read the carried columns.
    pub(super) fn with_carried(&self) -> Self {
        let mut file = self.clone();
        file.columns.carried.clone_from(&self.carried);
        file
    }

    /// The same file; its readers read the columns `carried` and no others.
    pub(super) fn only(&self, carried: &[CarriedColumn]) -> Self {
        let mut file = self.clone();
        file.columns = FoundColumns {
            id: None,
            content: None,
            further_texts: Vec::new(),
            sketches: false,
            prefer: Prefer::default(),
            source: None,
            carried: carried.to_vec(),
            ..file.columns
        };
        file
    }

    pub(super) fn bad_data(&self, reason: String) -> DocumentsError {
        DocumentsError::bad_data(&self.location, reason)
    }
}
