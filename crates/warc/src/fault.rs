//! Faults of a file: why some of its bytes are not read as records.

use std::fmt;

/// Why a part of a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The file or the compressed member ends within the record.
    Truncated,
    /// The record's header does not end, has no length, or is none.
    Header,
    /// The record, or its decoded body, is longer than the limit.
    TooLong,
    /// The compressed data is damaged.
    Damaged,
    /// A zstd frame needs a larger window than the limit.
    Window,
    /// Neither a record nor compressed data.
    Unknown,
}

impl Fault {
    /// A name for counters: a few words in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Header => "broken header",
            Self::TooLong => "too long",
            Self::Damaged => "damaged compression",
            Self::Window => "zstd window too large",
            Self::Unknown => "not WARC",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file was cut where it must not be: within a member, where other members seem to start, or behind another dictionary than the
/// file starts with. It is the cause of an error of the reader of the part before the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongCut {
    /// Offset of the cut in the file, in bytes.
    pub offset: u64,
}

impl fmt::Display for WrongCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the file was cut at byte {}, which is within a member or behind another dictionary",
            self.offset
        )
    }
}

impl std::error::Error for WrongCut {}

/// A part of a file that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Offset in the file, in bytes, of the broken record, or of the compressed member that it starts in.
    pub offset: u64,
    /// What is wrong.
    pub fault: Fault,
}
