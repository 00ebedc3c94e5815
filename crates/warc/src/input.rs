//! [`Input`]: the bytes of a file, with a look at the next few, however small the buffer of the source is, and a way back.

use std::io::{self, BufRead};

use memchr::memchr;

/// Bytes that a caller of [`Input::peek`] may ask for again and again. A call that asks for more may copy all of them.
pub(crate) const MAX_PEEK: usize = 4 << 10;

/// [`Input`] remembers the last 1 MiB that was consumed, and up to twice as much.
const REMEMBERED: usize = 1 << 20;

/// The bytes of a file from an offset on, and how many of them are consumed.
pub(crate) struct Input<R> {
    source: R,
    /// The offset in the file of the next byte.
    offset: u64,
    /// Bytes that were taken from the source; those from `held_start` on come next.
    held: Vec<u8>,
    held_start: usize,
    /// The last bytes that were consumed since [`Self::remember`].
    remembered: Vec<u8>,
    is_remembering: bool,
}

impl<R: BufRead> Input<R> {
    pub(crate) fn new(source: R) -> Self {
        Self::at(source, 0)
    }

    /// The bytes of a file; `source` starts with the byte at `offset`.
    pub(crate) fn at(source: R, offset: u64) -> Self {
        Self {
            source,
            offset,
            held: Vec::new(),
            held_start: 0,
            remembered: Vec::new(),
            is_remembering: false,
        }
    }

    /// Remembers what is consumed from here on.
    pub(crate) fn remember(&mut self) {
        self.remembered.clear();
        self.is_remembering = true;
    }

    pub(crate) fn forget(&mut self) {
        self.is_remembering = false;
    }

    /// Goes back to the byte where [`Self::remember`] was called, or as far as the bytes are remembered; `false` if none are.
    pub(crate) fn go_back(&mut self) -> bool {
        if !std::mem::take(&mut self.is_remembering) {
            return false;
        }
        let mut bytes = std::mem::take(&mut self.remembered);
        self.offset -= bytes.len() as u64;
        // If all of them are still here, nothing is copied.
        if self.held_start < self.held.len() && self.held_start >= bytes.len() {
            self.held_start -= bytes.len();
        } else {
            bytes.extend_from_slice(&self.held[self.held_start..]);
            (self.held, self.held_start) = (bytes, 0);
        }
        true
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes, as many as there are without a copy; empty at the end of the file.
    pub(crate) fn fill(&mut self) -> io::Result<&[u8]> {
        if self.held_start < self.held.len() {
            return Ok(&self.held[self.held_start..]);
        }
        fill_source(&mut self.source)
    }

    /// The next bytes, at least `count` of them unless the file ends before.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.held.len() - self.held_start >= count {
            return self.fill();
        }
        self.held.drain(..self.held_start);
        self.held_start = 0;
        if self.held.is_empty() && fill_source(&mut self.source)?.len() >= count {
            return fill_source(&mut self.source);
        }
        while self.held.len() < count {
            let bytes = fill_source(&mut self.source)?;
            let taken = bytes.len().min(count - self.held.len());
            if taken == 0 {
                break;
            }
            self.held.extend_from_slice(&bytes[..taken]);
            self.source.consume(taken);
        }
        Ok(&self.held)
    }

    /// Consumes bytes that the last `fill` or `peek` returned.
    pub(crate) fn consume(&mut self, count: usize) {
        self.offset += count as u64;
        if self.is_remembering {
            let mut remembered = std::mem::take(&mut self.remembered);
            if let Ok(bytes) = self.fill() {
                remembered.extend_from_slice(&bytes[..count]);
            }
            if remembered.len() > 2 * REMEMBERED {
                remembered.drain(..remembered.len() - REMEMBERED);
            }
            self.remembered = remembered;
        }
        if self.held_start < self.held.len() {
            self.held_start += count
        } else {
            self.source.consume(count)
        }
        debug_assert!(self.held_start <= self.held.len());
    }

    /// Consumes the next `N` bytes and returns them; `None`, and consumes nothing, if the file ends before.
    pub(crate) fn take<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let taken = self.peek(N)?.first_chunk::<N>().copied();
        if taken.is_some() {
            self.consume(N);
        }
        Ok(taken)
    }

    /// Consumes the next `count` bytes and appends them to `bytes`; `false` if the file ends before.
    pub(crate) fn take_into(&mut self, count: usize, bytes: &mut Vec<u8>) -> io::Result<bool> {
        self.take_parts(count, |part| bytes.extend_from_slice(part))
    }

    /// Consumes the next `count` bytes; `false` if the file ends before.
    pub(crate) fn skip(&mut self, count: usize) -> io::Result<bool> {
        self.take_parts(count, |_| {})
    }

    fn take_parts(&mut self, mut count: usize, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        while count > 0 {
            let next = self.fill()?;
            let taken = next.len().min(count);
            if taken == 0 {
                return Ok(false);
            }
            each(&next[..taken]);
            self.consume(taken);
            count -= taken;
        }
        Ok(true)
    }

    /// Consumes all bytes up to the next `byte`, and `byte`; `false` if the file ends before.
    pub(crate) fn skip_past(&mut self, byte: u8) -> io::Result<bool> {
        loop {
            let bytes = self.fill()?;
            let length = bytes.len();
            if length == 0 {
                return Ok(false);
            }
            if let Some(at) = memchr(byte, bytes) {
                self.consume(at + 1);
                return Ok(true);
            }
            self.consume(length);
        }
    }
}

/// The buffer of `source`, filled if it was empty.
fn fill_source<R: BufRead>(source: &mut R) -> io::Result<&[u8]> {
    while let Err(error) = source.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // The borrow checker does not accept a return from within the loop.
    source.fill_buf()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::Trickle;

    #[test]
    fn bytes_come_in_order_however_they_are_asked_for() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        for step in [1, 2, 7, 300, 5_000, 20_000] {
            let mut input = Input::new(Trickle::new(&bytes, step));
            let mut read = Vec::new();
            for round in 0_usize.. {
                let count = 1 + round * 37 % MAX_PEEK;
                let next = input.peek(count).unwrap();
                assert!(next.len() >= count.min(bytes.len() - read.len()));
                assert!(bytes[read.len()..].starts_with(next));
                if next.is_empty() {
                    break;
                }
                let consumed = next.len().div_ceil(2);
                read.extend_from_slice(&next[..consumed]);
                input.consume(consumed);
                let next = input.fill().unwrap();
                let consumed = next.len().min(3);
                read.extend_from_slice(&next[..consumed]);
                input.consume(consumed);
                if let Some(taken) = input.take::<5>().unwrap() {
                    read.extend_from_slice(&taken);
                }
                assert_eq!(input.offset(), read.len() as u64);
            }
            assert_eq!(read, bytes);
        }
    }

    #[test]
    fn what_is_remembered_comes_again() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        for step in [1, 7, 300, 5_000] {
            let mut input = Input::new(Trickle::new(&bytes, step));
            // Nothing is remembered.
            assert!(input.skip(10).unwrap());
            input.go_back();
            assert_eq!(input.offset(), 10);
            for length in [0, 5, 4_000, 9_000] {
                let start = input.offset();
                input.remember();
                assert!(input.skip(length).unwrap());
                input.peek(100).unwrap();
                input.go_back();
                assert_eq!(input.offset(), start);
                let mut again = Vec::new();
                assert!(input.take_into(length, &mut again).unwrap());
                assert!(bytes[start as usize..].starts_with(&again));
            }
            let mut rest = Vec::new();
            let left = bytes.len() - input.offset() as usize;
            assert!(input.take_into(left, &mut rest).unwrap());
            assert!(bytes.ends_with(&rest) && input.peek(1).unwrap().is_empty());
        }
        let long = vec![1; 3 * REMEMBERED];
        for (skipped, expected) in [(2 * REMEMBERED, 0), (2 * REMEMBERED + 1, REMEMBERED + 1)] {
            let mut input = Input::new(&long[..]);
            input.remember();
            assert!(input.skip(skipped).unwrap());
            assert!(input.go_back());
            assert_eq!(input.offset(), expected as u64);
            assert!(!input.go_back());
        }
    }

    #[test]
    fn bytes_are_skipped_by_number_and_by_value() {
        let bytes = b"name\0 rest";
        for step in [1, 3, 100] {
            let mut input = Input::new(Trickle::new(bytes, step));
            assert!(input.skip_past(0).unwrap());
            assert_eq!(input.offset(), 5);
            assert!(input.skip(1).unwrap());
            let mut taken = Vec::new();
            assert!(input.take_into(2, &mut taken).unwrap());
            assert_eq!(taken, b"re");
            assert_eq!(input.take::<3>().unwrap(), None);
            assert!(!input.skip(3).unwrap());
            assert!(!input.skip_past(0).unwrap());
            assert_eq!(input.offset(), bytes.len() as u64);
        }
    }
}
