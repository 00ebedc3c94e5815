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
//!      │ other bytes              │ damage
//!      ▼                          ▼
//!   Search ◀───────────────────────     Search ─── the next magic number ──▶ Between
//! ```
//!
//! Each step consumes bytes of the input, so every file comes to an end.

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
pub(crate) use decoded::Decoded;
pub use dictionary::Dictionary;
pub(crate) use gzip::Gzip;
pub(crate) use inflate::{Inflate, State as InflateState};
use search::LONGEST_START;
pub(crate) use search::find_member;
pub(crate) use zstandard::Zstandard;
use zstd_frame::SKIPPABLE;

/// How a gzip member starts.
pub(crate) const GZIP_MAGIC: &[u8] = &gzip::MAGIC;
/// How a zstd frame starts.
pub(crate) const ZSTD_MAGIC: &[u8] = &zstd_frame::MAGIC;

/// How a member is compressed.
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
    /// More of a member.
    Within(Format),
    /// Bytes that cannot be read, up to the next member.
    Search,
}

/// What [`Members::read`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A member starts.
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
    /// The file ends.
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
            [0 | b'\r' | b'\n', ..] => Self::Padding,
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
    /// The bytes that were read again.
    read_again: u64,
}

/// The bytes of dictionaries that are decompressed in any file, and the number of those for each byte of a longer one. A frame of
/// a few bytes may have 8 MiB; without a limit, a file of such frames would take very long.
const DICTIONARY_ROOM: u64 = 64 << 20;
const DICTIONARY_GROWTH: u64 = 8;
/// The bytes that are read again behind the start of damaged members, in any file, and for each byte of a longer one. Members can be
/// made that are within each other.
const AGAIN_ROOM: u64 = 64 << 20;
const AGAIN_GROWTH: u64 = 8;

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
            read_again: 0,
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
        self.first_dictionary = Some(*dictionary.digest());
        self.zstd.use_dictionary(dictionary);
    }

    /// Whether the file ends here, and not only the part.
    pub(crate) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.input.peek(1)?.is_empty())
    }

    /// The offset in the file of the byte that comes next.
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
                Decoded::Bytes(count) => Step::Bytes(count),
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
        if self.offset >= self.end {
            self.check_dictionary()?;
            return Ok(Some(Step::End));
        }
        let format = match Start::from_bytes(self.input.peek(START_LENGTH)?) {
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
            Format::Gzip => {
                self.gzip.start();
                self.input.remember();
            }
            Format::Zstd => self.zstd.start()?,
        }
        let is_compressed = format != Format::Plain;
        if is_compressed {
            self.format = Some(format);
        }
        self.state = State::Within(format);
        Ok(Some(Step::Member {
            offset: self.offset,
            is_compressed,
        }))
    }

    /// Skips a skippable zstd frame, but uses the dictionary if it holds one.
    fn skip_frame(&mut self, is_dictionary: bool) -> io::Result<Option<Step>> {
        self.format = Some(Format::Zstd);
        let Some([_, _, _, _, length @ ..]) = self.input.take::<8>()? else {
            return self.give_up(Fault::Truncated).map(Some);
        };
        let length = u32::from_le_bytes(length) as usize;
        let mut content = Vec::new();
        let is_whole = match is_dictionary && length <= dictionary::MAX_LENGTH {
            true => self.input.take_into(length, &mut content)?,
            false => self.input.skip(length)?,
        };
        if !is_whole {
            return self.give_up(Fault::Truncated).map(Some);
        }
        self.check_end()?;
        if is_dictionary && !self.read_dictionary(&content) {
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
            let room =
                DICTIONARY_ROOM.saturating_add(self.offset.saturating_mul(DICTIONARY_GROWTH));
            if self.keeps_dictionary || self.dictionary_bytes >= room {
                return false;
            }
            self.dictionary_bytes += match content.starts_with(ZSTD_MAGIC) {
                true => dictionary::MAX_LENGTH as u64,
                false => content.len() as u64,
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
        self.zstd.dictionary().map(|current| *current.digest())
    }

    /// Refuses a part that ends with another dictionary than the file starts with, unless the file ends there, too: the reader
    /// of the next part begins with the first one.
    fn check_dictionary(&mut self) -> io::Result<()> {
        let is_first = self.current_dictionary() == self.first_dictionary;
        match is_first || self.is_at_end()? {
            true => Ok(()),
            false => Err(self.wrong_cut()),
        }
    }

    /// Refuses a whole member that starts in the part and ends behind it: the part does not end where a member does.
    fn check_end(&self) -> io::Result<()> {
        match self.offset < self.end && self.end < self.input.offset() {
            true => Err(self.wrong_cut()),
            false => Ok(()),
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

    /// Leaves the member that cannot be read further, and searches the next from here on. A gzip member that lost its end was read
    /// into the next one, so that is searched from the start of the damaged one on.
    fn give_up(&mut self, fault: Fault) -> io::Result<Step> {
        let (read, room) = (
            self.input.offset(),
            self.input.offset().saturating_mul(AGAIN_GROWTH),
        );
        if self.state == State::Within(Format::Gzip)
            && self.read_again <= AGAIN_ROOM.saturating_add(room)
        {
            self.input.go_back();
            self.read_again += read - self.input.offset();
        }
        self.state = State::Search;
        if self.input.offset() == self.offset {
            // The search would find this member again.
            self.input.skip(1)?;
        }
        Ok(Step::Broken(Broken {
            place: Place::at(self.offset),
            fault,
        }))
    }

    /// Consumes bytes up to the next member, or to the end of the file.
    fn search(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.input.peek(MAX_PEEK)?;
            let length = bytes.len();
            if let Some(at) = find_member(bytes, self.format) {
                self.input.consume(at);
                break;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{
        DICTIONARY_BYTES, Layout, Trickle, gzip_member, noise, record, skippable_frame, zstd_frame,
    };

    /// The decompressed bytes, the offsets of the members, and what is broken.
    fn read(file: &[u8], step: usize) -> (Vec<u8>, Vec<u64>, Vec<Broken>) {
        let mut members = Members::new(Trickle::new(file, step), 23);
        let (mut bytes, mut offsets, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        let mut output = [0; 700];
        loop {
            match members.read(&mut output).unwrap() {
                Step::Member { offset, .. } => offsets.push(offset),
                Step::Bytes(count) => bytes.extend_from_slice(&output[..count]),
                Step::MemberEnd => {}
                Step::Broken(part) => broken.push(part),
                Step::End => return (bytes, offsets, broken),
            }
        }
    }

    fn records() -> Vec<Vec<u8>> {
        let record = |n: usize| record("response", &[], &vec![b'a' + n as u8; n * n * 100]);
        (0..20).map(record).collect()
    }

    #[test]
    fn every_layout_is_decompressed() {
        let records = records();
        for layout in Layout::ALL {
            let file = layout.file(&records);
            for step in [1, 10, 999, 1 << 20] {
                let (bytes, offsets, broken) = read(&file, step);
                assert!(bytes == records.concat(), "{layout:?}");
                assert!(broken.is_empty(), "{broken:?}");
                let expected = match layout {
                    Layout::Plain | Layout::GzipWhole => 1,
                    Layout::GzipBlocks => bytes.len().div_ceil(1_000),
                    _ => 20,
                };
                assert_eq!(offsets.len(), expected, "{layout:?}");
            }
        }
    }

    #[test]
    fn members_of_several_kinds_may_follow_each_other() {
        let (gzip, zstd) = (gzip_member(b"one"), zstd_frame(b"two", None));
        let file = [
            &b"\n"[..],
            &gzip,
            &gzip_member(b""),
            &zstd,
            &skippable_frame(0x51, &[7; 9_000]),
            &[0; 100],
        ]
        .concat();
        let (bytes, offsets, broken) = read(&file, 13);
        assert_eq!(bytes, b"onetwo");
        assert_eq!(
            (offsets.len(), offsets[0], offsets[1]),
            (3, 1, 1 + gzip.len() as u64)
        );
        assert!(broken.is_empty(), "{broken:?}");
        assert_eq!(read(b"", 1), (vec![], vec![], vec![]));
    }

    #[test]
    fn dictionaries_that_decompress_to_much_are_refused() {
        // Two frames in turns, so that neither is the current one.
        let frames = [b'1', b'2'].map(|byte| {
            let large = [
                &vec![byte; dictionary::MAX_LENGTH - 100][..],
                DICTIONARY_BYTES,
            ]
            .concat();
            skippable_frame(0x5d, &zstd_frame(&large[..dictionary::MAX_LENGTH], None))
        });
        let file = frames.concat().repeat(20);
        let mut members = Members::new(file.as_slice(), 23);
        let mut broken = 0;
        while let Step::Broken(_) = members.read(&mut [0; 10]).unwrap() {
            broken += 1;
        }
        assert_eq!(broken, 40);
        // Eight of them are decompressed, and some more because the file grows.
        let room = DICTIONARY_ROOM + DICTIONARY_GROWTH * file.len() as u64;
        assert!(members.dictionary_bytes <= room + dictionary::MAX_LENGTH as u64);
    }

    #[test]
    fn after_a_damaged_member_the_next_one_is_read() {
        type Compress = fn(&[u8]) -> Vec<u8>;
        let kinds: [Compress; 2] = [gzip_member, |content| zstd_frame(content, None)];
        for member in kinds {
            let content: Vec<u8> = (0..9_000_u32).map(|n| (n * n % 251) as u8).collect();
            let (first, second) = (member(b"first"), member(&content));
            // A damaged member may be decoded into the next one before that is noticed, and take it along.
            let last = member(b"last").repeat(50);
            for at in [0, 1, second.len() / 2, second.len() - 1] {
                let mut damaged = second.clone();
                damaged[at] ^= 0x55;
                let file = [&first[..], &damaged, &last].concat();
                for step in [1, 100, 1 << 20] {
                    let (bytes, _, broken) = read(&file, step);
                    assert!(bytes.starts_with(b"first") && bytes.ends_with(b"last"));
                    let [part] = broken[..] else {
                        panic!("{broken:?}");
                    };
                    assert_eq!(part.place, Place::at(first.len() as u64));
                }
            }
            let (bytes, _, broken) = read(&[&first[..], &second[..50]].concat(), 7);
            assert!(bytes.starts_with(b"first"));
            let (place, fault) = (Place::at(first.len() as u64), Fault::Truncated);
            assert_eq!(broken, [Broken { place, fault }]);
        }
    }

    #[test]
    fn a_gzip_member_without_its_end_costs_no_other_member() {
        let content = |n: u64| [b"WARC/1.0 ", &noise(n, 3_000)[..]].concat();
        let member = |n| gzip_member(&content(n));
        let second = member(2);
        for missing in [1, 4, 8, 9, 12, 20, 100, 2_000] {
            let cut = &second[..second.len() - missing];
            let file = [&member(1)[..], cut, &member(3), &member(4)].concat();
            for step in [1, 300, 1 << 20] {
                let (bytes, _, broken) = read(&file, step);
                assert!(bytes.starts_with(&content(1)), "{missing}");
                assert!(
                    bytes.ends_with(&[content(3), content(4)].concat()),
                    "{missing}"
                );
                let [part] = broken[..] else {
                    panic!("{missing}: {broken:?}");
                };
                assert_eq!(part.place, Place::at(member(1).len() as u64));
            }
        }
    }

    /// Each member is broken, and has the start of the next one in its data.
    #[test]
    fn members_within_each_other_are_not_read_again_and_again() {
        // A header, and a block of 65,535 bytes as they are.
        let start = [GZIP_MAGIC, &[0, 0, 0, 0, 0, 0, 3], &[0, 0xff, 0xff, 0, 0]].concat();
        let file = start.repeat(300_000);
        let mut members = Members::new(&file[..], 23);
        let (mut output, mut steps) = (vec![0; 1 << 16], 0);
        while members.read(&mut output).unwrap() != Step::End {
            steps += 1;
        }
        assert!(members.read_again <= AGAIN_ROOM + (file.len() as u64) * AGAIN_GROWTH + (1 << 21));
        assert!(steps > 100);
    }

    #[test]
    fn what_is_no_member_is_skipped_up_to_the_first_one() {
        let fault = Fault::Unknown;
        for file in [
            [&b"<html>"[..], &gzip_member(b"WARC/")[..]].concat(),
            [&b"<html>"[..], &zstd_frame(b"WARC/", None)[..]].concat(),
        ] {
            for step in [1, 5_000] {
                let place = Place::at(0);
                let broken = vec![Broken { place, fault }];
                assert_eq!(read(&file, step), (b"WARC/".to_vec(), vec![6], broken));
            }
        }
        let plain = [&[b'x'; 10_000][..], b"\nWARC/1.0\r\n"].concat();
        let (bytes, offsets, broken) = read(&plain, 3_000);
        assert_eq!((bytes, offsets), (b"WARC/1.0\r\n".to_vec(), vec![10_001]));
        assert_eq!(broken.len(), 1);
        let (bytes, offsets, broken) = read(&[b'x'; 10_000], 3_000);
        assert_eq!((bytes.len(), offsets.len(), broken.len()), (0, 0, 1));
    }

    #[test]
    fn a_broken_dictionary_is_reported() {
        let frame = zstd_frame(b"text", None);
        for dictionary in [&b"no dictionary"[..], &DICTIONARY_BYTES[..100]] {
            let file = [skippable_frame(0x5d, dictionary), frame.clone()].concat();
            let (bytes, _, broken) = read(&file, 10);
            assert_eq!(bytes, b"text");
            let (place, fault) = (Place::at(0), Fault::Damaged);
            assert_eq!(broken, [Broken { place, fault }]);
        }
        let (_, _, broken) = read(&skippable_frame(0x5d, DICTIONARY_BYTES)[..500], 10);
        let (place, fault) = (Place::at(0), Fault::Truncated);
        assert_eq!(broken, [Broken { place, fault }]);
    }
}
