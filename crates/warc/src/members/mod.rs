//! [`Members`]: the decompressed bytes of a file, member by member.
//!
//! A member is a gzip member, a zstd frame, or all the rest of a plain file. Its first bytes say which. A file mostly has a
//! member for each record, so that records can be read one by one; but one member may hold many records, and a record may
//! span members.
//!
//! ```text
//!              a magic number               its end, checked
//!   Between ─────────────────▶ Within ──────────────────────▶ Between
//!      │                          │
//!      │ other bytes              │ damage: back behind its magic number
//!      ▼                          ▼
//!   Search ◀───────────────────────     Search ─── the next magic number ──▶ Between
//! ```
//!
//! The decoder of a member that lost its end reads on into the next member before it notices. So the search begins behind the start
//! of the damaged member. The record of that member may hold a WARC file, whose members the search finds, too. It refuses a chain of
//! members that ends before the byte at which the decoder noticed the damage: the file's next members go on behind that byte.
//!
//! Each other step consumes bytes of the input, and how many are read again is bounded ([`room_at`]), so every file comes to an
//! end.

mod chain;
mod decoded;
mod dictionary;
mod gzip;
mod inflate;
mod search;
mod zstandard;
mod zstd_frame;

use std::io::{self, BufRead};
use std::ops::Range;

use crate::fault::{Broken, Fault, Place, WrongCut};
use crate::headers::{START_LENGTH, is_record_start};
use crate::input::{Input, MAX_PEEK};
pub(crate) use chain::{Aim, CHAIN, Chain, Follower};
pub(crate) use decoded::Decoded;
pub use dictionary::Dictionary;
pub(crate) use gzip::Gzip;
pub(crate) use inflate::{Inflate, State as InflateState};
pub(crate) use search::find_member;
use search::{LONGEST_START, find_member_or_dictionary};
pub(crate) use zstandard::Zstandard;
use zstd_frame::SKIPPABLE;

/// How a gzip member starts.
pub(crate) const GZIP_MAGIC: &[u8] = &gzip::MAGIC;
/// How a zstd frame starts.
pub(crate) const ZSTD_MAGIC: &[u8] = &zstd_frame::MAGIC;

/// What editors put before a plain file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Plain,
    Gzip,
    Zstd,
}

/// What comes next in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A member, something to skip between members, or the end.
    Between,
    Within(Format),
    /// Bytes that cannot be read, up to the next member.
    Search,
}

/// What [`Members::read`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Member {
        /// Its offset in the file, in bytes.
        offset: u64,
        is_compressed: bool,
    },
    /// So many bytes of the member were written at the start of the output; more than none.
    Bytes(usize),
    /// The member ended, and its checksum is right.
    MemberEnd,
    /// The rest of the member, or bytes that are no member, are lost. The offset is where the member or those bytes start.
    Broken(Broken),
    End,
}

/// What the first bytes of something between members say of it.
enum Start {
    End,
    Padding,
    Member(Format),
    Skippable { is_dictionary: bool },
    Unknown,
}

impl Start {
    fn from_bytes(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::End,
            // Blank lines before the first record, zeros after the last member.
            [0 | b'\r' | b'\n' | b' ' | b'\t', ..] => Self::Padding,
            _ if bytes.starts_with(GZIP_MAGIC) => Self::Member(Format::Gzip),
            _ if bytes.starts_with(ZSTD_MAGIC) => Self::Member(Format::Zstd),
            [first @ 0x50..=0x5f, rest @ ..] if rest.starts_with(&SKIPPABLE) => Self::Skippable {
                is_dictionary: *first == dictionary::FIRST_BYTE,
            },
            _ if is_record_start(bytes) => Self::Member(Format::Plain),
            _ => Self::Unknown,
        }
    }
}

/// The format of the members that `bytes` start with; `None` if they start otherwise.
pub(crate) fn format_of(bytes: &[u8]) -> Option<Format> {
    match Start::from_bytes(bytes) {
        Start::Member(format) => Some(format),
        Start::Skippable { .. } => Some(Format::Zstd),
        Start::End | Start::Padding | Start::Unknown => None,
    }
}

/// The members of a file, or of a part of it.
pub(crate) struct Members<R> {
    input: Input<R>,
    /// The offset at which the part ends: no member starts there or behind.
    end: u64,
    state: State,
    /// Where the last member starts.
    offset: u64,
    /// The format of the last compressed member: a search for the next member looks for no other.
    format: Option<Format>,
    gzip: Gzip,
    zstd: Zstandard,
    /// The digest of the dictionary that the file starts with.
    first_dictionary: Option<[u8; 32]>,
    /// Whether another dictionary than the first is an error.
    keeps_dictionary: bool,
    /// The bytes that the dictionaries so far may have had, decompressed.
    dictionary_bytes: u64,
    /// The bytes that were decompressed of the last member.
    decompressed: u64,
    /// The bytes that were read, and those that were decompressed, again or to try what was found.
    read_again: u64,
    /// The bytes before this offset were read as a part of a damaged member.
    again_end: u64,
}

/// The bytes of dictionaries that may have been decompressed up to an offset in a file, and those that may have been read and
/// decompressed again because of damage. A frame of a few bytes may have 8 MiB, and members can be made that are within each other;
/// without a limit, such files would take very long.
fn room_at(offset: u64) -> u64 {
    offset.saturating_mul(8).saturating_add(64 << 20)
}

/// A longer skippable frame has a wrong length. Those that tools write have a dictionary or the places of frames.
const MOST_SKIPPED: usize = 64 << 20;

impl<R: BufRead> Members<R> {
    /// The members of a file. Windows of zstd have at most 2^`window_log` bytes.
    pub(crate) fn new(input: R, window_log: u32) -> Self {
        Self::of_part(input, window_log, 0..u64::MAX)
    }

    /// The members that start in a part of a file. `input` starts with the part, and goes on behind it.
    pub(crate) fn of_part(input: R, window_log: u32, part: Range<u64>) -> Self {
        Self {
            input: Input::at(input, part.start),
            end: part.end,
            state: State::Between,
            offset: part.start,
            format: None,
            gzip: Gzip::new(),
            zstd: Zstandard::new(window_log),
            first_dictionary: None,
            keeps_dictionary: false,
            dictionary_bytes: 0,
            decompressed: 0,
            read_again: 0,
            again_end: 0,
        }
    }

    /// The members in some bytes of a file that starts with `dictionary`. A frame with another dictionary is broken.
    pub(crate) fn of_chain(input: R, window_log: u32, dictionary: Option<Dictionary>) -> Self {
        let mut members = Self::new(input, window_log);
        members.keeps_dictionary = true;
        if let Some(dictionary) = dictionary {
            members.use_dictionary(dictionary);
        }
        members
    }

    /// Uses the dictionary that the file starts with; for a part that does not start with it.
    pub(crate) fn use_dictionary(&mut self, dictionary: Dictionary) {
        self.first_dictionary = Some(dictionary.digest);
        self.zstd.use_dictionary(dictionary);
    }

    /// Whether the file ends here, and not only the part.
    pub(crate) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.input.peek(1)?.is_empty())
    }

    pub(crate) fn position(&self) -> u64 {
        self.input.offset()
    }

    /// Reads on, and decompresses into `output`, which must not be empty.
    pub(crate) fn read(&mut self, output: &mut [u8]) -> io::Result<Step> {
        loop {
            let decoded = match self.state {
                State::Between => match self.begin()? {
                    Some(step) => return Ok(step),
                    None => continue,
                },
                State::Search => {
                    self.search()?;
                    continue;
                }
                State::Within(Format::Plain) => self.copy(output)?,
                State::Within(Format::Gzip) => self.gzip.read(&mut self.input, output)?,
                State::Within(Format::Zstd) => self.zstd.read(&mut self.input, output)?,
            };
            return Ok(match decoded {
                Decoded::Bytes(count) => {
                    self.decompressed += count as u64;
                    Step::Bytes(count)
                }
                Decoded::End => {
                    self.state = State::Between;
                    self.check_end()?;
                    Step::MemberEnd
                }
                Decoded::Broken(fault) => self.give_up(fault)?,
            });
        }
    }

    /// Begins the next member; `None` if the state changed, or something was skipped.
    fn begin(&mut self) -> io::Result<Option<Step>> {
        self.offset = self.input.offset();
        self.input.forget();
        if self.offset >= self.end {
            self.check_dictionary()?;
            return Ok(Some(Step::End));
        }
        let bytes = self.input.peek(START_LENGTH)?;
        if self.offset == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
            self.input.skip(BYTE_ORDER_MARK.len())?;
            return Ok(None);
        }
        let format = match Start::from_bytes(bytes) {
            Start::End => return Ok(Some(Step::End)),
            Start::Padding => {
                self.input.skip(1)?;
                return Ok(None);
            }
            Start::Skippable { is_dictionary } => return self.skip_frame(is_dictionary),
            Start::Unknown => return self.give_up(Fault::Unknown).map(Some),
            Start::Member(format) => format,
        };
        match format {
            Format::Plain => {}
            Format::Gzip => self.gzip.start(),
            Format::Zstd => self.zstd.start()?,
        }
        let is_compressed = format != Format::Plain;
        if is_compressed {
            self.format = Some(format);
            self.input.remember();
        }
        self.decompressed = 0;
        self.state = State::Within(format);
        Ok(Some(Step::Member {
            offset: self.offset,
            is_compressed,
        }))
    }

    /// Skips a skippable zstd frame, but uses the dictionary if it holds one.
    fn skip_frame(&mut self, is_dictionary: bool) -> io::Result<Option<Step>> {
        self.format = Some(Format::Zstd);
        self.decompressed = 0;
        self.input.remember();
        let Some([_, _, _, _, length @ ..]) = self.input.take::<8>()? else {
            return self.give_up(Fault::Truncated).map(Some);
        };
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_SKIPPED {
            return self.give_up(Fault::Damaged).map(Some);
        }
        let mut content = Vec::new();
        let is_whole = if is_dictionary && length <= dictionary::MAX_LENGTH {
            self.input.take_into(length, &mut content)?
        } else {
            self.input.skip(length)?
        };
        if !is_whole {
            return self.give_up(Fault::Truncated).map(Some);
        }
        let is_used = is_dictionary && self.read_dictionary(&content);
        // The length may be wrong, but not that of a dictionary.
        if !is_used && let Start::Unknown = Start::from_bytes(self.input.peek(START_LENGTH)?) {
            return self.give_up(Fault::Damaged).map(Some);
        }
        self.check_end()?;
        if is_dictionary && !is_used {
            return Ok(Some(Step::Broken(Broken {
                place: Place::at(self.offset),
                fault: Fault::Damaged,
            })));
        }
        Ok(None)
    }

    /// Uses the dictionary in the content of a frame for the members behind it; `false` if it is none. The members then keep
    /// the one that they have.
    fn read_dictionary(&mut self, content: &[u8]) -> bool {
        let current = self.zstd.dictionary();
        if !current.is_some_and(|current| current.is_in(content)) {
            if self.keeps_dictionary || self.dictionary_bytes >= room_at(self.offset) {
                return false;
            }
            self.dictionary_bytes += if content.starts_with(ZSTD_MAGIC) {
                dictionary::MAX_LENGTH as u64
            } else {
                content.len() as u64
            };
            let Some(new) = Dictionary::from_content(content) else {
                return false;
            };
            self.zstd.use_dictionary(new);
        }
        if self.offset == 0 {
            self.first_dictionary = self.current_dictionary();
        }
        true
    }

    /// The digest of the dictionary that is used.
    fn current_dictionary(&self) -> Option<[u8; 32]> {
        let current = self.zstd.dictionary();
        current.map(|current| current.digest)
    }

    /// Refuses a part that ends with another dictionary than the file starts with, unless the file ends there, too: the reader
    /// of the next part begins with the first one.
    fn check_dictionary(&mut self) -> io::Result<()> {
        let is_first = self.current_dictionary() == self.first_dictionary;
        if is_first || self.is_at_end()? {
            Ok(())
        } else {
            Err(self.wrong_cut())
        }
    }

    /// Refuses a whole member that starts in the part and ends behind it: the part does not end where a member does.
    fn check_end(&self) -> io::Result<()> {
        if self.offset < self.end && self.end < self.input.offset() {
            Err(self.wrong_cut())
        } else {
            Ok(())
        }
    }

    /// The error when the part must not end where it does.
    fn wrong_cut(&self) -> io::Error {
        let offset = self.end;
        io::Error::new(io::ErrorKind::InvalidData, WrongCut { offset })
    }

    /// Copies the next bytes of a plain file, or of a part of it.
    fn copy(&mut self, output: &mut [u8]) -> io::Result<Decoded> {
        let left = self.end.saturating_sub(self.input.offset());
        if left == 0 {
            return Ok(Decoded::End);
        }
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let bytes = self.input.fill()?;
        let count = bytes.len().min(output.len()).min(left);
        output[..count].copy_from_slice(&bytes[..count]);
        self.input.consume(count);
        Ok(match count {
            0 => Decoded::End,
            _ => Decoded::Bytes(count),
        })
    }

    /// Leaves the member that cannot be read further. Searches the next one behind the start of this one, as far as its bytes are
    /// still here.
    fn give_up(&mut self, fault: Fault) -> io::Result<Step> {
        if self.has_only_wrong_checksum()? {
            self.state = State::Between;
        } else {
            let read = self.input.offset();
            if self.read_again <= room_at(read) && self.input.go_back() {
                self.read_again += read - self.input.offset() + self.decompressed;
                self.again_end = match self.state {
                    // Of a block that cannot be decoded, nothing was read.
                    State::Within(Format::Zstd) => read + self.zstd.wanted() as u64,
                    _ => read,
                };
            }
            self.state = State::Search;
            if self.input.offset() == self.offset {
                // The search would find this member again.
                self.input.skip(1)?;
            }
        }
        Ok(Step::Broken(Broken {
            place: Place::at(self.offset),
            fault,
        }))
    }

    /// Whether the last member is as long as it should be: another one, or the end of the file, is directly behind it.
    fn has_only_wrong_checksum(&mut self) -> io::Result<bool> {
        if self.state != State::Within(Format::Gzip) || !self.gzip.has_read_trailer() {
            return Ok(false);
        }
        let next = self.input.peek(gzip::HEADER_LENGTH)?;
        Ok(next.is_empty() || gzip::is_usual_header(next))
    }

    /// Consumes bytes up to the next member, or to the end of the file.
    fn search(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.input.peek(MAX_PEEK)?;
            // There may be far more, which would be searched again behind each start that is refused.
            let bytes = &bytes[..bytes.len().min(MAX_PEEK)];
            let length = bytes.len();
            if let Some(at) = find_member_or_dictionary(bytes, self.format) {
                self.input.consume(at);
                match self.refuse_found()? {
                    None => break,
                    Some(length) => self.input.consume(length),
                }
                continue;
            }
            if length < MAX_PEEK {
                self.input.consume(length);
                break;
            }
            // The start of a member may be cut here.
            self.input.consume(length - LONGEST_START + 1);
        }
        self.state = State::Between;
        Ok(())
    }

    /// Tries what the search found, where it may be a part of a member, or of the content of a record, that looks like a member.
    /// Returns `None` to accept it, or the number of bytes that are none of the file's members.
    fn refuse_found(&mut self) -> io::Result<Option<usize>> {
        let start = Start::from_bytes(self.input.peek(START_LENGTH)?);
        let mut room = room_at(self.input.offset()).saturating_sub(self.read_again);
        let before_end = self.again_end.saturating_sub(self.input.offset()) as usize;
        let mut dictionary = self.zstd.dictionary().cloned();
        let mut skipped = 0;
        let aim = match start {
            // All frames behind a wrong one would be lost.
            Start::Skippable { .. } => {
                let cost = 2 * dictionary::MAX_LENGTH as u64;
                if room < cost {
                    return Ok(Some(1));
                }
                room -= cost;
                self.read_again += cost;
                let header = self.input.peek(Dictionary::HEADER_LENGTH)?;
                skipped = Dictionary::frame_length(header).unwrap_or(0);
                dictionary = Dictionary::from_start(self.input.peek(skipped)?);
                if dictionary.is_none() {
                    return Ok(Some(1));
                }
                Aim::Bytes(CHAIN.max(before_end))
            }
            Start::Member(_) if before_end > 0 && room == 0 => return Ok(Some(1)),
            Start::Member(Format::Gzip | Format::Zstd) if before_end > 0 => Aim::Bytes(before_end),
            Start::Member(Format::Gzip | Format::Zstd) if self.format.is_none() => Aim::Record,
            _ => return Ok(None),
        };
        let length = match aim {
            Aim::Bytes(length) => length,
            Aim::Record | Aim::Cut(_) => CHAIN,
        };
        let bytes = self.input.peek(skipped + length)?;
        let is_end = bytes.len() < skipped + length;
        let mut follower = Follower::new(room, self.zstd.window_log(), dictionary);
        let chain = follower.follow(&bytes[skipped..], aim, is_end);
        self.read_again += room - follower.room;
        Ok(match chain {
            Chain::Whole | Chain::CutOff => None,
            Chain::TooLong if before_end > 0 => Some(1),
            Chain::TooLong => None,
            // Too long for a part of another member: the last one is damaged.
            Chain::Broken { last } if last > CHAIN => None,
            // A dictionary, with which a frame was decoded.
            Chain::Broken { last } if skipped > 0 && last > 0 && skipped + last >= before_end => {
                None
            }
            Chain::Broken { .. } if skipped > 0 => Some(1),
            // What comes before the last one is within the same other member.
            Chain::Broken { last } => Some(last + 1),
        })
    }
}

#[cfg(test)]
mod tests;
