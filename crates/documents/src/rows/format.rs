//! The traits that a row format implements: it finds the columns in the first record, and reads the
//! records.

use std::fmt::Debug;

use archive::IdType;
use storage::Location;

use super::builder::BatchBuilder;
use super::input::Input;
use super::json_pieces::JsonPieces;
use crate::columns::{Columns, FoundColumns};
use crate::crawl_counts::CrawlRecordCounts;
use crate::error::Result;

/// The most fields of a record: one with more is refused.
pub(super) const MAX_FIELDS: usize = 1 << 16;

/// A format whose files are records of text.
pub(crate) trait RowFormat: Debug + Sync {
    /// Reads the first record, or the header; `None` if the file has none. Called on a blocking
    /// thread.
    fn first_record(&self, input: Input) -> Result<Option<FindColumns>>;

    /// The records of a file, or of a part of it, from its start. Called on a blocking thread.
    fn records(
        &self,
        input: Input,
        columns: &FoundColumns,
        id_type: IdType,
    ) -> Result<RecordReader>;

    /// Whether each record of a compressed file is compressed by itself, as a gzip member or a zstd frame. The format then decompresses
    /// a file, and so gets the encoded bytes; and a file can be cut into parts that are read one by one, where [`warc::Cuts`] says.
    fn has_members(&self) -> bool {
        false
    }

    fn is_one_document(&self) -> bool {
        false
    }

    /// The columns that all files of the format have, beside an id and a text.
    fn known_columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// The unparsed records of a file, or of a part of it, from its start. Called on a blocking thread.
    fn raw_records(&self, input: Input, columns: &FoundColumns) -> Result<RawRecords>;
}

/// Finds the columns among the fields of a file's first record or header, and the type of the ids.
pub(crate) type FindColumns =
    Box<dyn FnOnce(&Location, &Columns) -> Result<(FoundColumns, IdType)> + Send>;

/// Reads the next record into a buffer; `false` behind the last.
type NextRecord = dyn FnMut(&mut Vec<u8>) -> Result<bool>;

/// The unparsed records of a file, to be copied.
pub(crate) struct RawRecords {
    /// The bytes before the records: a header, or nothing.
    pub(crate) header: Vec<u8>,
    /// The bytes between two records.
    pub(crate) separator: &'static [u8],
    /// The bytes after the records.
    pub(crate) footer: &'static [u8],
    /// Reads the next record into an empty buffer, with its line end if it is a line; returns `false` at the end of the file. The
    /// buffer stays empty for a record that counts, but is no document.
    pub(crate) next: Box<NextRecord>,
}

impl RawRecords {
    /// Records with nothing before, between and after them.
    pub(super) fn new(next: impl FnMut(&mut Vec<u8>) -> Result<bool> + 'static) -> Self {
        Self {
            header: Vec::new(),
            separator: b"",
            footer: b"",
            next: Box::new(next),
        }
    }
}

/// Reads the records of a file.
pub(crate) enum RecordReader {
    /// One after the other.
    Records(Box<dyn Records>),
    /// In pieces, because the objects of JSON are found faster than they are parsed.
    Pieces(Box<JsonPieces>),
}

/// The records of a file, one after the other.
pub(crate) trait Records: Send {
    /// Adds the next record's values in the columns of [`FoundColumns::names`] to `batch`; returns `false` after the last
    /// record.
    fn read(&mut self, batch: &mut BatchBuilder) -> Result<bool>;

    /// Frees the memory of long records. The batch is compared with others before the next record is read.
    fn free(&mut self) {}

    /// The number of the record that was added last, if the format counts others than those that are added.
    fn number(&self) -> Option<u64> {
        None
    }

    /// How many of the records are documents, in a WARC file; complete after the last record.
    fn crawl_counts(&self) -> Option<&CrawlRecordCounts> {
        None
    }
}
