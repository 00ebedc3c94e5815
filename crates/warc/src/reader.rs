//! [`Reader`]: the records of a WARC file, one after the other.
//!
//! A record is decompressed into one buffer, and lent from there: nothing is allocated or copied for it. It is returned only
//! after the checksum of its compressed member was right. There are two exceptions: a member that goes on for long has many
//! records, which do not wait for its end; and the last whole records of a file that is cut off have no checksum.

mod next;

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::ops::Range;

use crate::buffer::Buffer;
use crate::fault::{Broken, Fault, Place};
use crate::headers::{
    FieldTable, Headers, LINE_START_LENGTH, PREFIX, START_LENGTH, Scan, is_blank, is_record_start,
};
use crate::members::{Dictionary, Members, Step};
use next::{Next, find_record, line_ends};

/// The most members whose places are known: more are in the buffer only if they have a few bytes each.
const MOST_MEMBERS: usize = 4096;
pub(crate) const MAX_HEADER: usize = 64 << 10;
/// How many bytes behind a record are read while it waits for the checksum of its member, if another record follows.
const LOOK_AHEAD: usize = 64 << 10;
/// How many, if something else follows: the record is likely damaged. And how many blanks between records are seen.
const HELD: usize = 1 << 20;

/// Limits of a reader's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a record, with its header. The buffer grows to this, a quarter of it and 2 MiB at most.
    pub record: usize,
    /// The largest window of a zstd frame, as a power of two, from 10 to 31.
    pub window_log: u32,
}

/// A record of a WARC file.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where the record starts.
    pub place: Place,
    pub headers: Headers<'a>,
    /// The content, as long as the header says.
    pub block: &'a [u8],
    /// Whether something else than a line end or another record follows the block: the length in the header is likely too short.
    pub is_cut_short: bool,
    /// The whole record, decompressed: header, block, and the line ends after the block, up to two. The records of a file that
    /// has no more than those between records are, put together, the decompressed file.
    pub raw: &'a [u8],
}

/// What a file holds next.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    Record(Record<'a>),
    /// A part that cannot be read. The next event is what comes after it.
    Broken(Broken),
}

/// Where a record is in the unread bytes of the buffer, which start with it.
struct Span {
    place: Place,
    block: usize,
    block_end: usize,
    end: usize,
    is_cut_short: bool,
}

/// What [`Reader::pump_within`] did.
enum Continued {
    Bytes,
    /// Another record starts where the last member does.
    NextRecord,
    /// The last member, or what is behind it, is broken.
    Broken(Broken),
    End,
}

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
    /// The member that the last bytes of the buffer are from.
    member: Member,
    /// The members before it that other bytes of the buffer are from.
    earlier: VecDeque<Member>,
    /// Whether the last member is compressed and has not ended.
    is_within_member: bool,
    /// Whether a record of the last member was returned before its end, so that others do not wait for it either.
    is_long_member: bool,
    /// What is broken behind the unread bytes.
    broken: Option<Broken>,
    /// Positions of blank bytes, which were seen behind a block.
    blanks: Range<u64>,
    /// Where the record starts that is being read.
    record: Option<Place>,
    /// Bytes of the record that was returned last.
    returned: usize,
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
            earlier: VecDeque::new(),
            is_within_member: false,
            is_long_member: false,
            broken: None,
            blanks: 0..0,
            record: None,
            returned: 0,
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
            Some(Ok(span)) => {
                let raw = &self.buffer.unread()[..span.end];
                self.returned = span.end;
                Some(Event::Record(Record {
                    place: span.place,
                    headers: self.fields.headers(&raw[..span.block]),
                    block: &raw[span.block..span.block_end],
                    is_cut_short: span.is_cut_short,
                    raw,
                }))
            }
            Some(Err(broken)) => Some(Event::Broken(broken)),
            None => None,
        })
    }

    /// Frees the memory of a long record that was read. For a caller who does something else before reading on.
    pub fn free(&mut self) {
        self.buffer.consume(std::mem::take(&mut self.returned));
        self.buffer.free();
    }

    /// Reads up to the end of the next record; `None` at the end of the file.
    fn advance(&mut self) -> io::Result<Option<Result<Span, Broken>>> {
        self.buffer.consume(self.returned);
        self.returned = 0;
        self.record = None;
        while let Some(next) = self.earlier.get(1).or(Some(&self.member))
            && !self.earlier.is_empty()
            && next.position <= self.buffer.position()
        {
            self.earlier.pop_front();
        }
        loop {
            self.drop_bytes_between();
            let unread = self.buffer.unread();
            if !self.is_searching {
                if is_record_start(unread) {
                    return self.read_record().map(Some);
                }
                if unread.len() >= START_LENGTH {
                    return Ok(Some(Err(self.give_up(Fault::Header, 1))));
                }
            }
            match self.step()? {
                Step::Broken(broken) => return Ok(Some(Err(self.lose_member(broken)))),
                Step::End if self.is_searching || self.buffer.unread().is_empty() => {
                    self.buffer.consume_all();
                    return Ok(None);
                }
                Step::End => return Ok(Some(Err(self.lose(Fault::Header)))),
                Step::Member { .. } | Step::Bytes(_) | Step::MemberEnd => {}
            }
        }
    }

    /// Reads the record that the unread bytes start with.
    fn read_record(&mut self) -> io::Result<Result<Span, Broken>> {
        let place = self.place_at(self.buffer.position());
        self.record = Some(place);
        self.fields.clear();
        let block = loop {
            let own = &self.buffer.unread()[..self.own_len()];
            match self.fields.scan(own) {
                Scan::Whole(length) if length <= MAX_HEADER => break length,
                // The scan sees a record that starts within the first `MAX_HEADER` bytes only if its whole first line is here.
                Scan::Partial if own.len() < MAX_HEADER + LINE_START_LENGTH => {}
                Scan::Cut => return Ok(Err(self.give_up(Fault::Header, PREFIX.len()))),
                // No header ends in these bytes, nor does one start in a line.
                _ => return Ok(Err(self.give_up(Fault::Header, MAX_HEADER))),
            }
            if let Some(broken) = self.pump_record()? {
                return Ok(Err(broken));
            }
        };
        let header = &self.buffer.unread()[..block];
        let headers = self.fields.headers(header);
        if let Some(last) = headers.cut_off_at() {
            return Ok(Err(self.give_up(Fault::Header, last)));
        }
        let Some(length) = headers.content_length() else {
            // There is no length in the end of this header either, which may be the header of another record.
            return Ok(Err(self.give_up(Fault::Header, block)));
        };
        let length = length.saturating_add(block as u64);
        if length > self.limits.record as u64 {
            let fault = self.skip(length)?;
            return Ok(Err(Broken { place, fault }));
        }
        let block_end = length as usize;
        while self.own_len() < block_end {
            if let Some(broken) = self.pump_record()? {
                return Ok(Err(broken));
            }
        }
        let finished = self.finish_record(block..block_end)?;
        Ok(finished.map(|(end, is_cut_short)| Span {
            place,
            block,
            block_end,
            end,
            is_cut_short,
        }))
    }

    /// The number of the unread bytes up to a member among them that starts another record.
    fn own_len(&self) -> usize {
        match self.member_starts_record(self.buffer.position() + 1) {
            Some(true) => (self.member.position - self.buffer.position()) as usize,
            _ => self.buffer.unread().len(),
        }
    }

    /// Reads the line ends after a block, and the end of the member, whose checksum shows that the record is right. A member that
    /// goes on for long has many records, which do not wait for its end. Returns the length of the record, and whether it seems to
    /// be cut short.
    ///
    /// If neither two line ends nor another record follow, the length is likely wrong, and there may be a record within the block.
    fn finish_record(&mut self, block: Range<usize>) -> io::Result<Result<(usize, bool), Broken>> {
        let mut from = block.end;
        let (end, is_ended, next) = loop {
            let unread = self.buffer.unread();
            let (length, is_ended) = line_ends(&unread[block.end..]);
            let end = block.end + length;
            // These blanks may have been counted for another record, which holds this one and whose length was wrong.
            if self
                .blanks
                .contains(&(self.buffer.position() + block.end as u64))
            {
                from = from.max((self.blanks.end - self.buffer.position()) as usize);
            }
            // More bytes may be here than were needed, and they must not change the result.
            let seen = &unread[..unread.len().min(end + HELD)];
            from += seen[from..]
                .iter()
                .take_while(|byte| is_blank(**byte))
                .count();
            let position = self.buffer.position();
            self.blanks = position + block.end as u64..position + from as u64;
            let next = Next::of(&seen[from..]);
            let most = match next {
                Next::Unknown | Next::Other => HELD,
                Next::Record if self.is_long_member => 0,
                Next::Record => LOOK_AHEAD,
            };
            let is_enough = match (self.member.is_compressed, next) {
                (true, _) if self.has_ended(block.end) => true,
                (false, Next::Record) => true,
                // A record may start at the last byte of the block.
                (false, Next::Other) => unread.len() >= block.end + LINE_START_LENGTH,
                (true, _) | (false, Next::Unknown) => {
                    unread.len() >= (end + most).max(block.end + LINE_START_LENGTH)
                }
            };
            if is_enough {
                if self.member.is_compressed && !self.has_ended(block.end) {
                    self.is_long_member = true;
                }
                break (end, is_ended, next);
            }
            match self.step()? {
                Step::Member { .. } | Step::Bytes(_) => {}
                Step::MemberEnd | Step::End => break (end, is_ended, next),
                // What comes before the end of a file that is cut off is right.
                Step::Broken(broken) if broken.fault == Fault::Truncated && next != Next::Other => {
                    self.broken = Some(broken);
                    break (end, is_ended, next);
                }
                Step::Broken(broken) => return Ok(Err(self.lose_member(broken))),
            }
        };
        if next != Next::Other || is_ended {
            return Ok(Ok((end, false)));
        }
        let unread = self.buffer.unread();
        let behind = unread.len().min(block.end + LINE_START_LENGTH - 1);
        let found = find_record(&unread[block.start..behind], true, None);
        let Some(at) = found.filter(|at| block.start + at < block.end) else {
            return Ok(Ok((end, end == block.end)));
        };
        let broken = self.give_up(Fault::Truncated, block.start + at);
        self.is_after_line = true;
        Ok(Err(broken))
    }

    /// Whether the compressed member that has the last of the first `length` unread bytes has ended.
    fn has_ended(&self, length: usize) -> bool {
        !self.is_within_member || self.member.position >= self.buffer.position() + length as u64
    }

    /// Reads more of the record that the unread bytes start with; `Some` if there is no more of it. Then its length is wrong, or
    /// its end is missing, and the next record may be among the bytes that are here.
    fn pump_record(&mut self) -> io::Result<Option<Broken>> {
        let start = self.buffer.position();
        let continued = match self.member_starts_record(start + 1) {
            Some(true) => Continued::NextRecord,
            _ => self.pump_within(start + 1)?,
        };
        match continued {
            Continued::Bytes => return Ok(None),
            Continued::NextRecord | Continued::End => {}
            Continued::Broken(broken) if self.is_within_member => {
                return Ok(Some(self.lose_member(broken)));
            }
            Continued::Broken(broken) => self.broken = Some(broken),
        }
        Ok(Some(self.give_up(Fault::Truncated, PREFIX.len())))
    }

    /// Skips a record that is too long, and says so. If it is broken as well, that is not reported; but if the file ends within
    /// it, other records may have been skipped with it.
    fn skip(&mut self, length: u64) -> io::Result<Fault> {
        let second = self.buffer.position() + 1;
        let mut left = length;
        loop {
            let here = match self.member_starts_record(second.max(self.buffer.position())) {
                Some(true) => {
                    left = left.min(self.member.position - self.buffer.position());
                    left
                }
                _ => left.min(self.buffer.unread().len() as u64),
            };
            self.buffer.consume(here as usize);
            left -= here;
            if left == 0 {
                return Ok(Fault::TooLong);
            }
            match self.pump_within(second.max(self.buffer.position()))? {
                Continued::Bytes | Continued::NextRecord => {}
                Continued::Broken(broken) => {
                    self.lose_member(broken);
                    return Ok(Fault::TooLong);
                }
                Continued::End if self.members.is_at_end()? => return Ok(Fault::Endless),
                Continued::End => return Ok(Fault::TooLong),
            }
        }
    }

    /// Decompresses more bytes within a record. If a member that starts at position `next` or behind looks like the start of a
    /// record, it is taken for one, and the record has ended: where members have a fixed size, a record may by chance have such a
    /// part just there, but then it is a part of the next record as well.
    fn pump_within(&mut self, next: u64) -> io::Result<Continued> {
        let mut is_undecided = false;
        loop {
            match self.step()? {
                Step::Bytes(_) => match self.member_starts_record(next) {
                    Some(false) => return Ok(Continued::Bytes),
                    Some(true) => return Ok(Continued::NextRecord),
                    None => is_undecided = true,
                },
                Step::MemberEnd | Step::End if is_undecided => return Ok(Continued::Bytes),
                Step::Member { .. } | Step::MemberEnd => {}
                Step::Broken(broken) => return Ok(Continued::Broken(broken)),
                Step::End => return Ok(Continued::End),
            }
        }
    }

    /// Decompresses more bytes into the buffer. Goes on behind the start of a member, so that it never returns [`Step::Member`].
    fn step(&mut self) -> io::Result<Step> {
        if let Some(broken) = self.broken.take() {
            return Ok(Step::Broken(broken));
        }
        loop {
            let step = self.members.read(self.buffer.room())?;
            match step {
                Step::Bytes(count) => self.buffer.fill(count),
                Step::MemberEnd => self.is_within_member = false,
                Step::Broken(_) | Step::End => {}
                Step::Member {
                    offset,
                    is_compressed,
                } => {
                    self.earlier.push_back(self.member);
                    if self.earlier.len() > MOST_MEMBERS {
                        self.earlier.pop_front();
                    }
                    self.member = Member {
                        offset,
                        position: self.buffer.end_position(),
                        is_compressed,
                    };
                    self.is_within_member = is_compressed;
                    self.is_long_member = false;
                    continue;
                }
            }
            return Ok(step);
        }
    }

    /// Drops the unread bytes, which are from a member that is broken.
    fn lose_member(&mut self, broken: Broken) -> Broken {
        self.is_within_member = false;
        self.lose(broken.fault);
        let place = self.record.unwrap_or(broken.place);
        Broken { place, ..broken }
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
            let blank = unread.iter().take_while(|byte| is_blank(**byte)).count();
            self.buffer.consume(blank);
            return;
        }
        let member = self.member.position.checked_sub(self.buffer.position());
        let found = find_record(unread, self.is_after_line, member);
        if let Some(at) = found {
            self.buffer.consume(at);
            self.is_searching = false;
            return;
        }
        // The start of a record may be cut here.
        let dropped = unread.len().saturating_sub(LINE_START_LENGTH - 1);
        if dropped > 0 {
            self.is_after_line = unread[dropped - 1] == b'\n';
            self.buffer.consume(dropped);
        }
    }

    /// Leaves the record that the unread bytes start with, and searches the next, `skipped` bytes behind that start or later; the
    /// bytes that are here may be fewer.
    fn give_up(&mut self, fault: Fault, skipped: usize) -> Broken {
        let at = self.buffer.position();
        let place = self.record.unwrap_or_else(|| self.place_at(at));
        self.buffer.consume(skipped.min(self.buffer.unread().len()));
        self.is_searching = true;
        self.is_after_line = false;
        Broken { place, fault }
    }

    /// Leaves the record that the unread bytes start with, and drops all of them.
    fn lose(&mut self, fault: Fault) -> Broken {
        let broken = self.give_up(fault, 0);
        self.buffer.consume_all();
        broken
    }

    /// Where in the file this position is.
    fn place_at(&self, position: u64) -> Place {
        let mut members = std::iter::once(&self.member).chain(self.earlier.iter().rev());
        let known = members.find(|member| member.position <= position);
        let member = known.unwrap_or(&self.member);
        let within = position.saturating_sub(member.position);
        if member.is_compressed {
            Place {
                offset: member.offset,
                decompressed: within,
            }
        } else {
            Place::at(member.offset + within)
        }
    }
}

#[cfg(test)]
mod tests;
