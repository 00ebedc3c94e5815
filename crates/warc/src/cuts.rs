//! [`Cuts`]: where a file can be cut into parts whose records are, one part after the other, those of the file.
//!
//! A file of a member for each record is cut where a member starts. An index of the file is not needed: a place near a wanted
//! offset is found by its bytes. The header of a member there may be a coincidence. Text that starts with `WARC/` behind it is
//! none, but may come from a WARC file that was crawled: a record may hold such a file, and what cannot be compressed further
//! stands literally in compressed data.
//!
//! ```text
//!    member     member                                member
//!  ├─────────┼─────────────────────────────────────┼─────────┤
//!              ├──────┼────┼──    ──┼──────┼──       a crawled WARC file in the second member
//!                           ▲      ▲
//!                           the compressed data of the member goes on here: a chain of members breaks
//! ```
//!
//! So a cut is where a chain of members starts, each directly behind the other and each with the right checksum, that is
//! longer than any literal part of compressed data. Skippable frames of zstd between them do not count: they could hide a break.
//! Whoever tries can still make a file in which such a place is no start of a member; the reader of the part before it notices
//! that ([`WrongCut`](crate::WrongCut)).
//!
//! The frames of a `.warc.zst` file may need the dictionary that the file starts with. Chains are decoded with it, and so is each
//! part. The specification allows no other dictionary in a file, but files that were joined have one for each:
//!
//! ```text
//!    dictionary A   frames   dictionary B   frames   dictionary A   frames
//!  ├──────────────┼────────┼──────────────┼────────┼──────────────┼────────┤
//!                     ▲                       ▲                      ▲
//!                     right                   wrong: this part       right
//!                                             begins with A
//! ```
//!
//! A reader uses the dictionaries that it meets, and begins its part with that of the file's start. So the parts have the records
//! of the file if each but the last ends with this same dictionary; a part that does not is an error of its reader, as if the cut
//! were within a member. That holds whatever the frames are. Chains only make such errors rare: mostly, no frame behind another
//! dictionary can be decoded with the first. But frames with the same id of a dictionary, or with none, and without a checksum can
//! be, and so can frames that use nothing of the dictionary.
//!
//! The records of a plain file are found by their lengths, from its start on, because nothing else tells them from records of a
//! crawled file.

use std::io::{self, BufRead, Read as _, Seek};

use crate::headers::{FieldTable, Scan, is_blank, is_record_start};
use crate::members::{Aim, CHAIN, Chain, Dictionary, Follower, Format, find_member, format_of};
use crate::reader::MAX_HEADER;

/// The most bytes that are decompressed to find a cut: this many, and this many times those that it is sought in.
const LEAST_ROOM: u64 = 16 << 20;
const MOST_GROWTH: u64 = 8;

/// The bytes that are decompressed to find a cut in `length` bytes.
fn room(length: usize) -> u64 {
    LEAST_ROOM + length as u64 * MOST_GROWTH
}

/// How a file can be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cuts {
    /// Where compressed members start.
    Members(MemberCuts),
    /// Where records of a plain file start; [`RecordStarts`] finds them.
    Records,
}

impl Cuts {
    /// How the file can be cut that starts with `bytes`; `None` if it is one member, or its first member is longer than `bytes`.
    /// They must have the whole dictionary that the file may start with, see [`Dictionary::frame_length`]. Windows of zstd have
    /// at most 2^`window_log` bytes.
    pub fn of_file(bytes: &[u8], window_log: u32) -> Option<Self> {
        let (dictionary, members) = match Dictionary::frame_length(bytes) {
            Some(length) => (Some(Dictionary::from_start(bytes)?), bytes.get(length..)?),
            None => (None, bytes),
        };
        let format = format_of(members)?;
        match (format, &dictionary) {
            (Format::Plain, None) => return Some(Self::Records),
            (Format::Gzip, None) | (Format::Zstd, _) => {}
            (Format::Plain | Format::Gzip, Some(_)) => return None,
        }
        // Two members are enough: the start of the file is the start of a member.
        let mut follower = Follower::new(room(members.len()), window_log, dictionary.clone());
        let chain = follower.follow(members, Aim::Cut(1), false);
        let cuts = MemberCuts {
            format,
            window_log,
            dictionary,
            chain: CHAIN,
        };
        (chain == Chain::Whole).then_some(Self::Members(cuts))
    }
}

/// Finds where a file of compressed members can be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberCuts {
    format: Format,
    window_log: u32,
    /// The dictionary that the file starts with.
    dictionary: Option<Dictionary>,
    /// Bytes of a chain.
    chain: usize,
}

impl MemberCuts {
    /// The place of the first cut in `bytes`, which are a part of the file; `is_end` says whether the file ends with them.
    /// `None` if there is none, if more bytes have to be seen, or if that takes too long.
    pub fn find(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let dictionary = self.dictionary.clone();
        let mut follower = Follower::new(room(bytes.len()), self.window_log, dictionary);
        let mut from = 0;
        loop {
            let at = from + find_member(&bytes[from..], Some(self.format))?;
            match follower.follow(&bytes[at..], Aim::Cut(self.chain), is_end) {
                Chain::Whole => return Some(at),
                Chain::CutOff | Chain::TooLong => return None,
                // The members before the last one are within another member, too.
                Chain::Broken { last } => from = at + last + 1,
            }
        }
    }
}

/// The offsets at which the records of a plain file start. They are read from the headers alone.
pub struct RecordStarts<R> {
    input: R,
    /// Bytes of the file.
    size: u64,
    /// Offset of the next byte.
    offset: u64,
    /// Whether no more records follow from the headers.
    ended: bool,
    header: Vec<u8>,
    fields: FieldTable,
}

impl<R: BufRead + Seek> RecordStarts<R> {
    /// Finds the records of the file of `size` bytes that `input` is at the start of.
    pub fn new(input: R, size: u64) -> Self {
        Self {
            input,
            size,
            offset: 0,
            ended: false,
            header: Vec::new(),
            fields: FieldTable::default(),
        }
    }

    /// The offset of the next record; `None` at the end of the file, or where it is broken: the place of a record behind that
    /// does not follow from the headers.
    ///
    /// # Errors
    /// Those of the input.
    pub fn next_start(&mut self) -> io::Result<Option<u64>> {
        if self.ended {
            return Ok(None);
        }
        self.skip_blanks()?;
        let start = self.offset;
        let Some(length) = self.read_header()? else {
            self.ended = true;
            return Ok(None);
        };
        let next = self.offset.checked_add(length);
        match next.filter(|next| *next <= self.size) {
            Some(next) => {
                self.input.seek_relative(length.cast_signed())?;
                self.offset = next;
            }
            None => self.ended = true,
        }
        Ok(Some(start))
    }

    /// Skips what may stand between records.
    fn skip_blanks(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.input.fill_buf()?;
            let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
            let is_last = blanks < bytes.len() || bytes.is_empty();
            self.input.consume(blanks);
            self.offset += blanks as u64;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reads the header that comes next, and returns the length of the block behind it; `None` if there is no whole header.
    fn read_header(&mut self) -> io::Result<Option<u64>> {
        self.header.clear();
        self.fields.clear();
        loop {
            let room = MAX_HEADER + 1 - self.header.len();
            let mut line = self.input.by_ref().take(room as u64);
            let read = line.read_until(b'\n', &mut self.header)?;
            self.offset += read as u64;
            if read == 0 || !is_record_start(&self.header) {
                return Ok(None);
            }
            match self.fields.scan(&self.header) {
                Scan::Whole(length) if length <= MAX_HEADER => break,
                Scan::Partial if self.header.len() <= MAX_HEADER => {}
                _ => return Ok(None),
            }
        }
        let headers = self.fields.headers(&self.header);
        let length = headers.content_length();
        Ok(length.filter(|_| headers.cut_off_at().is_none()))
    }
}

#[cfg(test)]
mod tests;
