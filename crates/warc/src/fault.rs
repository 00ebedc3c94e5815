//! Faults of a file: why some of its bytes are not read as records.

use std::fmt;

/// Why a part of a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The record is cut off: another record, or the end of the file or of the compressed member, comes before its end.
    Truncated,
    /// The record's header does not end, has no length, or is none.
    Header,
    /// The record, or its decoded body, is longer than the limit.
    TooLong,
    /// The record is longer than the limit, and the file ends within it. Its length may be wrong, and other records may have been
    /// behind it.
    Endless,
    /// The compressed data is damaged.
    Damaged,
    /// A zstd frame needs a larger window than the limit.
    Window,
    /// Neither a record nor compressed data.
    Unknown,
}

impl Fault {
    /// A name for counters: a few words in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Header => "broken header",
            Self::TooLong => "too long",
            Self::Endless => "longer than the file",
            Self::Damaged => "damaged compression",
            Self::Window => "zstd window too large",
            Self::Unknown => "not WARC",
        }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset in the file, in bytes; in a compressed file, that of the member.
    pub offset: u64,
    /// Bytes before the place, decompressed, from the start of its member on; 0 in a plain file.
    pub decompressed: u64,
}

impl Place {
    /// A place in a plain file, or the start of a member.
    pub(crate) fn at(offset: u64) -> Self {
        Self {
            offset,
            decompressed: 0,
        }
    }
}

/// `byte 7`; within a member, `byte 7, decompressed byte 1000`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.offset)?;
        match self.decompressed {
            0 => Ok(()),
            within => write!(f, ", decompressed byte {within}"),
        }
    }
}

/// A part of a file that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Where the broken record starts, or where the bytes start that cannot be read.
    pub place: Place,
    pub fault: Fault,
}
