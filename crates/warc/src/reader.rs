//! [`Reader`]: the records of a WARC file, one after the other.
//!
//! A record is decompressed into one buffer, and lent from there: nothing is allocated or copied for it. A record counts
//! only once the compressed member that ends with it has passed its checksum.

use std::io::{self, BufRead};
use std::ops::Range;

use memchr::memmem;

use crate::buffer::Buffer;
use crate::fault::{Broken, Fault};
use crate::headers::{FieldTable, Headers, PREFIX, START_LENGTH, Scan, is_record_start};
use crate::members::{Dictionary, Members, Step};

/// The most bytes of a record's header.
pub(crate) const MAX_HEADER: usize = 64 << 10;

/// Limits of a reader's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a record, with its header. The buffer grows to this and 1 MiB at most.
    pub record: usize,
    /// The largest window of a zstd frame, as a power of two, from 10 to 31.
    pub window_log: u32,
}

/// A record of a WARC file.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Offset in the file, in bytes, of the record, or of the compressed member that it starts in.
    pub offset: u64,
    /// The header.
    pub headers: Headers<'a>,
    /// The content, as long as the header says.
    pub block: &'a [u8],
    /// The whole record, decompressed: header, block, and the line ends after the block, up to two. The records of a file that
    /// has no more than those between records are, put together, the decompressed file.
    pub raw: &'a [u8],
}

/// What a file holds next.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A record.
    Record(Record<'a>),
    /// A part that cannot be read. The next event is what comes after it.
    Broken(Broken),
}

/// Where a record is in the unread bytes of the buffer, which start with it.
struct Span {
    offset: u64,
    block: usize,
    block_end: usize,
    end: usize,
}

/// What [`Reader::advance`] found.
enum Found {
    Record(Span),
    Broken(Broken),
    End,
}

/// What [`Reader::pump`] did.
enum Pumped {
    /// More bytes are in the buffer.
    Bytes,
    /// The member ended, and its checksum is right.
    MemberEnd,
    /// The buffer is empty, and what was in it is lost.
    Broken(Broken),
    /// The file ends.
    End,
}

/// What [`Reader::pump_within`] did.
enum Continued {
    /// More bytes are in the buffer.
    Bytes,
    /// Another record starts, and the unread bytes now start with it.
    NextRecord,
    /// The record is lost.
    Broken(Broken),
    /// The file ends.
    End,
}

/// A member of the file.
#[derive(Clone, Copy)]
struct Member {
    /// Offset in the file, in bytes.
    offset: u64,
    /// Position of its first byte among the decompressed bytes.
    position: u64,
    is_compressed: bool,
}

/// The records of a WARC file, or of a part of it, plain or compressed with gzip or zstd; the first bytes say which.
pub struct Reader<R> {
    members: Members<R>,
    buffer: Buffer,
    fields: FieldTable,
    limits: Limits,
    /// The member that the last bytes of the buffer are from, and the one before.
    member: Member,
    previous: Member,
    /// Whether the last member is compressed and has not ended.
    is_within_member: bool,
    /// The offset of the record that is being read.
    record: Option<u64>,
    /// Bytes of the record that was returned last.
    returned: usize,
    /// Bytes that are left of a record that is too long.
    skipped: u64,
    /// Whether the next record has to be searched, because the bytes before it were broken.
    is_searching: bool,
    /// Whether the byte before the buffer's first is a line end. Only for a search.
    is_after_line: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads a file from its start. A larger buffer of `input` makes fewer calls of the decompressor: 128 KiB is enough.
    pub fn new(input: R, limits: Limits) -> Self {
        Self::of_part(input, limits, 0..u64::MAX)
    }

    /// Reads the records that start in a part of a file, which was cut where [`Cuts`](crate::Cuts) says. `input` starts with the
    /// part, and goes on behind it: more of it is read only if the last member is damaged, or the cut is wrong. The first part
    /// has the dictionary of the file; the others need [`Self::use_dictionary`].
    pub fn of_part(input: R, limits: Limits, part: Range<u64>) -> Self {
        let member = Member {
            offset: part.start,
            position: 0,
            is_compressed: false,
        };
        Self {
            members: Members::of_part(input, limits.window_log, part),
            buffer: Buffer::new(limits.record),
            fields: FieldTable::default(),
            limits,
            member,
            previous: member,
            is_within_member: false,
            record: None,
            returned: 0,
            skipped: 0,
            is_searching: false,
            is_after_line: false,
        }
    }

    /// Uses the dictionary that the file starts with, before the first record of a part is read.
    pub fn use_dictionary(&mut self, dictionary: Dictionary) {
        self.members.use_dictionary(dictionary);
    }

    /// The next record, or the next part that cannot be read; `None` at the end of the file.
    ///
    /// # Errors
    /// Those of the input, as it gave them. The bytes of a whole file make no error, whatever they are; a part that ends within a
    /// member, or with another dictionary than the file starts with, is an error with the cause [`WrongCut`](crate::WrongCut).
    pub fn next_event(&mut self) -> io::Result<Option<Event<'_>>> {
        Ok(match self.advance()? {
            Found::Record(span) => {
                let raw = &self.buffer.unread()[..span.end];
                self.returned = span.end;
                Some(Event::Record(Record {
                    offset: span.offset,
                    headers: self.fields.headers(&raw[..span.block]),
                    block: &raw[span.block..span.block_end],
                    raw,
                }))
            }
            Found::Broken(broken) => Some(Event::Broken(broken)),
            Found::End => None,
        })
    }

    /// Reads up to the end of the next record.
    fn advance(&mut self) -> io::Result<Found> {
        self.buffer.consume(self.returned);
        self.returned = 0;
        self.record = None;
        if self.skipped > 0 {
            self.skip()?;
        }
        loop {
            self.drop_bytes_between();
            let unread = self.buffer.unread();
            if !self.is_searching {
                if is_record_start(unread) {
                    return self.read_record();
                }
                if unread.len() >= START_LENGTH {
                    return Ok(Found::Broken(self.give_up(Fault::Header, 1)));
                }
            }
            match self.pump()? {
                Pumped::Bytes | Pumped::MemberEnd => {}
                Pumped::Broken(broken) => return Ok(Found::Broken(broken)),
                Pumped::End if self.is_searching || self.buffer.unread().is_empty() => {
                    self.buffer.consume_all();
                    return Ok(Found::End);
                }
                Pumped::End => return Ok(Found::Broken(self.lose(Fault::Header))),
            }
        }
    }

    /// Reads the record that the unread bytes start with.
    fn read_record(&mut self) -> io::Result<Found> {
        let offset = self.offset_at(self.buffer.position());
        self.record = Some(offset);
        self.fields.clear();
        let block = loop {
            match self.fields.scan(self.buffer.unread()) {
                Scan::Whole(length) if length <= MAX_HEADER => break length,
                Scan::Partial if self.buffer.unread().len() <= MAX_HEADER => {}
                _ => {
                    return Ok(Found::Broken(self.give_up(Fault::Header, PREFIX.len())));
                }
            }
            if let Some(broken) = self.pump_record()? {
                return Ok(Found::Broken(broken));
            }
        };
        let headers = self.fields.headers(&self.buffer.unread()[..block]);
        let Some(length) = headers.content_length() else {
            return Ok(Found::Broken(self.give_up(Fault::Header, PREFIX.len())));
        };
        let length = length.saturating_add(block as u64);
        if length > self.limits.record as u64 {
            self.skipped = length;
            let fault = Fault::TooLong;
            return Ok(Found::Broken(Broken { offset, fault }));
        }
        let block_end = length as usize;
        while self.buffer.unread().len() < block_end {
            if let Some(broken) = self.pump_record()? {
                return Ok(Found::Broken(broken));
            }
        }
        Ok(match self.finish_record(block_end)? {
            Ok(end) => Found::Record(Span {
                offset,
                block,
                block_end,
                end,
            }),
            Err(broken) => Found::Broken(broken),
        })
    }

    /// Reads the line ends after a block, and the end of the member if it ends there; returns the length of the record.
    fn finish_record(&mut self, block_end: usize) -> io::Result<Result<usize, Broken>> {
        loop {
            let unread = self.buffer.unread();
            let (length, is_whole) = scan_line_ends(&unread[block_end..]);
            let end = block_end + length;
            // The member may end here, and its checksum may be wrong.
            if is_whole && (end < unread.len() || !self.is_within_member) {
                return Ok(Ok(end));
            }
            match self.pump()? {
                Pumped::Bytes if is_whole => return Ok(Ok(end)),
                Pumped::Bytes => {}
                Pumped::MemberEnd | Pumped::End => return Ok(Ok(end)),
                Pumped::Broken(broken) => return Ok(Err(broken)),
            }
        }
    }

    /// Reads more of the record that the unread bytes start with; `Some` if there is no more of it.
    fn pump_record(&mut self) -> io::Result<Option<Broken>> {
        let next = self.buffer.position() + 1;
        Ok(match self.pump_within(next)? {
            Continued::Bytes => None,
            // The length is wrong, or the end of the record is missing.
            Continued::NextRecord => self.record.map(|offset| Broken {
                offset,
                fault: Fault::Truncated,
            }),
            Continued::Broken(broken) => Some(broken),
            Continued::End => Some(self.lose(Fault::Truncated)),
        })
    }

    /// Skips the rest of a record that is too long. If that is broken, it is not reported a second time.
    fn skip(&mut self) -> io::Result<()> {
        while self.skipped > 0 {
            let unread = self.buffer.unread().len();
            let skipped = usize::try_from(self.skipped).map_or(unread, |left| left.min(unread));
            self.buffer.consume(skipped);
            self.skipped -= skipped as u64;
            if self.skipped > 0 {
                let next = self.buffer.position();
                if !matches!(self.pump_within(next)?, Continued::Bytes) {
                    self.skipped = 0;
                }
            }
        }
        Ok(())
    }

    /// Decompresses more bytes within a record. A member that starts at position `next` or behind may show that the record has
    /// ended: no record has a part that looks like the start of another just where a member starts.
    fn pump_within(&mut self, next: u64) -> io::Result<Continued> {
        let mut is_undecided = false;
        loop {
            match self.pump()? {
                Pumped::Bytes => match self.member_starts_record(next) {
                    Some(false) => return Ok(Continued::Bytes),
                    Some(true) => {
                        let lost = self.member.position - self.buffer.position();
                        self.buffer.consume(lost as usize);
                        return Ok(Continued::NextRecord);
                    }
                    None => is_undecided = true,
                },
                Pumped::MemberEnd | Pumped::End if is_undecided => return Ok(Continued::Bytes),
                Pumped::MemberEnd => {}
                Pumped::Broken(broken) => return Ok(Continued::Broken(broken)),
                Pumped::End => return Ok(Continued::End),
            }
        }
    }

    /// Decompresses more bytes into the buffer.
    fn pump(&mut self) -> io::Result<Pumped> {
        loop {
            match self.members.read(self.buffer.room())? {
                Step::Bytes(count) => {
                    self.buffer.fill(count);
                    return Ok(Pumped::Bytes);
                }
                Step::Member {
                    offset,
                    is_compressed,
                } => {
                    self.previous = self.member;
                    self.member = Member {
                        offset,
                        position: self.buffer.end_position(),
                        is_compressed,
                    };
                    self.is_within_member = is_compressed;
                }
                Step::MemberEnd => {
                    self.is_within_member = false;
                    return Ok(Pumped::MemberEnd);
                }
                Step::Broken(broken) => {
                    self.is_within_member = false;
                    self.lose(broken.fault);
                    let offset = self.record.unwrap_or(broken.offset);
                    return Ok(Pumped::Broken(Broken { offset, ..broken }));
                }
                Step::End => return Ok(Pumped::End),
            }
        }
    }

    /// Whether a record starts where the last member starts, if that is at `position` or behind; `None` if more bytes have to
    /// be seen.
    fn member_starts_record(&self, position: u64) -> Option<bool> {
        if self.member.position < position {
            return Some(false);
        }
        let at = (self.member.position - self.buffer.position()) as usize;
        let start = self.buffer.unread().get(at..)?;
        (start.len() >= START_LENGTH).then(|| is_record_start(start))
    }

    /// Drops bytes that belong to no record: blank lines, or in a search, all up to the next record.
    fn drop_bytes_between(&mut self) {
        let unread = self.buffer.unread();
        if !self.is_searching {
            let is_blank = |byte: &&u8| byte.is_ascii_whitespace() || **byte == 0;
            let blank = unread.iter().take_while(is_blank).count();
            self.buffer.consume(blank);
            return;
        }
        // The start of a member counts as the start of a line.
        let member = self.member.position.checked_sub(self.buffer.position());
        let is_line = |at: usize| {
            member == Some(at as u64)
                || match at {
                    0 => self.is_after_line,
                    _ => unread[at - 1] == b'\n',
                }
        };
        let found = memmem::find_iter(unread, PREFIX)
            .find(|at| is_line(*at) && is_record_start(&unread[*at..]));
        if let Some(at) = found {
            self.buffer.consume(at);
            self.is_searching = false;
            return;
        }
        // The start of a record may be cut here.
        let dropped = unread.len().saturating_sub(START_LENGTH - 1);
        if dropped > 0 {
            self.is_after_line = unread[dropped - 1] == b'\n';
            self.buffer.consume(dropped);
        }
    }

    /// Leaves the record that the unread bytes start with, and searches the next, `skipped` bytes behind that start or later.
    fn give_up(&mut self, fault: Fault, skipped: usize) -> Broken {
        let at = self.buffer.position();
        let offset = self.record.unwrap_or_else(|| self.offset_at(at));
        self.buffer.consume(skipped);
        self.is_searching = true;
        self.is_after_line = false;
        Broken { offset, fault }
    }

    /// Leaves the record that the unread bytes start with, and drops all of them.
    fn lose(&mut self, fault: Fault) -> Broken {
        let broken = self.give_up(fault, 0);
        self.buffer.consume_all();
        broken
    }

    /// Offset in the file of what is at this position, or of its compressed member.
    fn offset_at(&self, position: u64) -> u64 {
        let member = match position < self.member.position {
            true => self.previous,
            false => self.member,
        };
        match member.is_compressed {
            true => member.offset,
            false => member.offset + position.saturating_sub(member.position),
        }
    }
}

/// The length of the line ends that `bytes` start with, up to two, and whether more bytes cannot change it.
fn scan_line_ends(bytes: &[u8]) -> (usize, bool) {
    let mut length = 0;
    for _ in 0..2 {
        length += match &bytes[length..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            [] | [b'\r'] => return (length, false),
            _ => return (length, true),
        };
    }
    (length, true)
}

#[cfg(test)]
mod tests;
