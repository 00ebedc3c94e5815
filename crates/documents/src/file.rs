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
    /// The columns that are read.
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
    Rows {
        format: &'static dyn RowFormat,
        compression: Compression,
        /// Encoded bytes.
        size: u64,
        /// Estimated bytes after decompression.
        bytes: u64,
        /// Offsets at which the file is cut into parts that are read one by one, ascending; none if it is read as a whole.
        cuts: Vec<u64>,
        /// The file as it was when it was opened; `None` for an object in a store.
        local: Option<UnchangedFile>,
        /// All bytes of a small object.
        held: Option<Held>,
    },
}

/// Rows of one row group of Parquet.
#[derive(Debug, Clone)]
pub(super) struct RowRange {
    pub(super) row_group: usize,
    /// The rows, by their numbers in the row group; `None` for all.
    pub(super) cut: Option<Range<usize>>,
}

impl InputFile {
    /// All bytes of a small object.
    pub(super) fn held(&self) -> Option<&Held> {
        match &self.source {
            Source::Rows { held, .. } => held.as_ref(),
            Source::Local(_) | Source::Remote(_) => None,
        }
    }

    /// Estimated bytes of a row file after decompression; 0 for Parquet, whose footer has the
    /// sizes.
    pub(super) fn decompressed_bytes(&self) -> u64 {
        match &self.source {
            Source::Rows { bytes, .. } => *bytes,
            Source::Local(_) | Source::Remote(_) => 0,
        }
    }

    /// Encoded bytes of a row file; 0 for Parquet, whose footer has the sizes.
    pub(super) fn encoded_bytes(&self) -> u64 {
        match &self.source {
            Source::Rows { size, .. } => *size,
            Source::Local(_) | Source::Remote(_) => 0,
        }
    }

    /// The parts that are read one by one, in order; `None` stands for the whole file.
    pub(super) fn parts(&self) -> Vec<Option<Range<u64>>> {
        match &self.source {
            Source::Rows { cuts, size, .. } if !cuts.is_empty() => {
                let starts = [0].into_iter().chain(cuts.iter().copied());
                let ends = cuts.iter().copied().chain([*size]);
                starts
                    .zip(ends)
                    .map(|(start, end)| Some(start..end))
                    .collect()
            }
            _ => vec![None],
        }
    }

    /// Cuts a row file into parts.
    pub(super) fn cut_at(&mut self, places: Vec<u64>) {
        if let Source::Rows { cuts, .. } = &mut self.source {
            *cuts = places;
        }
    }

    pub(super) fn cuts(&self) -> &[u64] {
        match &self.source {
            Source::Rows { cuts, .. } => cuts,
            Source::Local(_) | Source::Remote(_) => &[],
        }
    }

    /// Whether each record of a row file is compressed by itself.
    pub(super) fn compresses_each_record(&self) -> bool {
        match &self.source {
            Source::Rows { format, .. } => format.compresses_each_record(),
            Source::Local(_) | Source::Remote(_) => false,
        }
    }

    /// The columns that all files of its format have, beside an id and a text.
    pub(super) fn known_columns(&self) -> &'static [&'static str] {
        match &self.source {
            Source::Rows { format, .. } => format.known_columns(),
            Source::Local(_) | Source::Remote(_) => &[],
        }
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

    /// An error of the file's data.
    pub(super) fn bad_data(&self, reason: String) -> DocumentsError {
        DocumentsError::bad_data(&self.location, reason)
    }
}
