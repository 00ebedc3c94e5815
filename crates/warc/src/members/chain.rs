//! Follows chains of members: each directly behind the other, each with the right checksum.

use super::{Dictionary, GZIP_MAGIC, Members, Step};
use crate::fault::Fault;
use crate::headers::{START_LENGTH, is_record_start};

/// Bytes of a chain of members: more than a stored block of deflate has (65,535), more than a raw block of zstd has (131,072).
pub(crate) const CHAIN: usize = (128 << 10) + 1;
/// Bytes that are decompressed at a time.
const PIECE: usize = 64 << 10;

/// What [`Follower::follow`] looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The chain has whole members of this many compressed bytes, and another member behind them. The first member's content starts
    /// with a record, and no gzip header has optional fields.
    Cut(usize),
    /// The members of the chain have at least this many compressed bytes together. The last may be cut off.
    Bytes(usize),
    /// The first member's content starts with a record.
    Record,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// It is as wanted, or goes to the end of the file.
    Whole,
    /// The bytes end within it.
    CutOff,
    /// Its last member, which starts at this offset, is none.
    Broken { last: usize },
    /// There is no room for more decompressed bytes.
    TooLong,
}

/// Follows chains of members, for a bounded time.
pub(crate) struct Follower {
    window_log: u32,
    dictionary: Option<Dictionary>,
    output: Vec<u8>,
    /// The bytes that may still be decompressed. A chain costs [`PIECE`] more.
    pub(super) room: u64,
}

impl Follower {
    /// Decompresses at most `room` bytes. Windows of zstd have at most 2^`window_log` bytes; frames are decoded with `dictionary`.
    pub(crate) fn new(room: u64, window_log: u32, dictionary: Option<Dictionary>) -> Self {
        Self {
            window_log,
            dictionary,
            output: vec![0; PIECE],
            room,
        }
    }

    /// Follows the members that `bytes` start with; `is_end` says whether the file ends with them.
    pub(crate) fn follow(&mut self, bytes: &[u8], aim: Aim, is_end: bool) -> Chain {
        let mut members = Members::of_chain(bytes, self.window_log, self.dictionary.clone());
        // The first bytes of the first member.
        let mut start = Vec::new();
        let mut last = 0;
        // Bytes of the members before the last one.
        let mut whole = 0;
        let mut cost = PIECE;
        loop {
            match self.room.checked_sub(std::mem::take(&mut cost) as u64) {
                Some(room) => self.room = room,
                None => return Chain::TooLong,
            }
            match members.read(&mut self.output) {
                Ok(Step::Member {
                    offset,
                    is_compressed: true,
                }) => {
                    last = offset as usize;
                    if let Aim::Cut(length) = aim {
                        if has_extra_fields(&bytes[last..]) {
                            return Chain::Broken { last };
                        }
                        if whole >= length {
                            return Chain::Whole;
                        }
                    }
                }
                Ok(Step::Bytes(count)) => {
                    cost = count;
                    if start.len() < START_LENGTH && !matches!(aim, Aim::Bytes(_)) {
                        let missing = START_LENGTH - start.len();
                        start.extend_from_slice(&self.output[..count.min(missing)]);
                        match start.len() == START_LENGTH {
                            true if !is_record_start(&start) => return Chain::Broken { last },
                            true if aim == Aim::Record => return Chain::Whole,
                            _ => {}
                        }
                    }
                }
                Ok(Step::MemberEnd)
                    if start.len() < START_LENGTH && !matches!(aim, Aim::Bytes(_)) =>
                {
                    return Chain::Broken { last };
                }
                Ok(Step::MemberEnd) => whole += members.position() as usize - last,
                Ok(Step::End) if is_end => return Chain::Whole,
                Ok(Step::End) => return Chain::CutOff,
                Ok(Step::Broken(broken)) if broken.fault == Fault::Truncated && !is_end => {
                    return Chain::CutOff;
                }
                // A slice has no errors. A chain has no plain member, and no other dictionary.
                _ => return Chain::Broken { last },
            }
            if let Aim::Bytes(length) = aim
                && members.position() as usize >= length
            {
                return Chain::Whole;
            }
        }
    }
}

/// Whether the header of a gzip member has fields of any bytes. They could hide the breaks in a chain, and files with them need not
/// be cut.
fn has_extra_fields(member: &[u8]) -> bool {
    member.starts_with(GZIP_MAGIC) && member.get(3).is_some_and(|&flags| flags != 0)
}
