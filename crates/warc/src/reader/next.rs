//! Where the next record starts.

use memchr::memmem;

use crate::headers::{PREFIX, START_LENGTH, STARTS, is_record_start, is_record_start_in_line};

/// What follows a record and blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Record,
    Other,
    /// Too few bytes are here to say.
    Unknown,
}

impl Next {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let start = &bytes[..bytes.len().min(START_LENGTH)];
        match start.len() {
            START_LENGTH if is_record_start(start) => Self::Record,
            length @ ..START_LENGTH if STARTS.iter().any(|whole| start == &whole[..length]) => {
                Self::Unknown
            }
            _ => Self::Other,
        }
    }
}

/// The offset of the first record. `is_line` says whether a line starts with the first byte; `member` is where a member starts, which
/// counts as the start of a line.
pub(super) fn find_record(bytes: &[u8], is_line: bool, member: Option<u64>) -> Option<usize> {
    let is_line = |at: usize| {
        member == Some(at as u64)
            || match at {
                0 => is_line,
                _ => bytes[at - 1] == b'\n',
            }
    };
    memmem::find_iter(bytes, PREFIX).find(|&at| {
        if is_line(at) {
            is_record_start(&bytes[at..])
        } else {
            is_record_start_in_line(&bytes[at..])
        }
    })
}

/// The length of the line ends that `bytes` start with, up to two, and whether there are two.
pub(super) fn line_ends(bytes: &[u8]) -> (usize, bool) {
    let mut length = 0;
    for _ in 0..2 {
        length += match &bytes[length..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => return (length, false),
        };
    }
    (length, true)
}
