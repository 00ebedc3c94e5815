//! [`Buffer`]: decompressed bytes that are not read yet, one after the other in memory.

/// Bytes of an empty buffer.
const FIRST_SIZE: usize = 512 << 10;
/// The least room to decompress into, and its least share of the unread bytes when they are moved, so that no byte is moved often.
const LEAST_ROOM: usize = 64 << 10;
const ROOM_SHARE: usize = 4;
/// A larger buffer is freed once it is empty.
const KEPT_SIZE: usize = 4 << 20;

/// Decompressed bytes that are not read yet. Positions count the decompressed bytes of the file.
pub(crate) struct Buffer {
    /// Initialized once, so that a decoder can write anywhere without `unsafe`.
    bytes: Vec<u8>,
    /// The unread bytes are `bytes[start..end]`.
    start: usize,
    end: usize,
    /// The position of `bytes[0]`.
    base: u64,
    /// The buffer grows to this size by doubling, and beyond for the unread bytes and room behind them.
    most: usize,
}

impl Buffer {
    /// A buffer for records of at most `record` bytes, and 1 MiB.
    pub(crate) fn new(record: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            base: 0,
            most: record
                .saturating_add(record / ROOM_SHARE)
                .saturating_add(4 * FIRST_SIZE),
        }
    }

    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The position of the first unread byte.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The position of the byte that is decompressed next.
    pub(crate) fn end_position(&self) -> u64 {
        self.base + self.end as u64
    }

    /// Counts the first `count` unread bytes as read.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    pub(crate) fn consume_all(&mut self) {
        self.start = self.end;
    }

    /// Room behind the unread bytes, at least [`LEAST_ROOM`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.free();
        if self.start == self.end {
            self.base += self.start as u64;
            (self.start, self.end) = (0, 0);
        }
        if self.bytes.len() - self.end < LEAST_ROOM {
            self.make_room();
        }
        &mut self.bytes[self.end..]
    }

    /// Moves the unread bytes to the front, and enlarges the buffer if that does not make enough room.
    #[cold]
    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        let wanted = LEAST_ROOM.max(self.end / ROOM_SHARE);
        if self.bytes.len() - self.end < wanted {
            let larger = (2 * self.bytes.len()).clamp(FIRST_SIZE, self.most);
            self.bytes.resize(larger.max(self.end + wanted), 0);
        }
    }

    /// Frees the memory of a large buffer without unread bytes.
    pub(crate) fn free(&mut self) {
        if self.start == self.end && self.bytes.len() > KEPT_SIZE {
            self.base += self.start as u64;
            (self.start, self.end) = (0, 0);
            self.bytes = Vec::new();
        }
    }

    /// Counts the first `count` bytes of the room as decompressed.
    pub(crate) fn fill(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `records` lengths in turns, each after pieces of `piece` bytes.
    fn check(lengths: &[usize], piece: usize, limit: usize) -> usize {
        let mut buffer = Buffer::new(limit);
        let (mut written, mut read, mut largest) = (0_u64, 0_u64, 0);
        for &length in lengths {
            while buffer.unread().len() < length {
                let room = buffer.room();
                assert!(room.len() >= LEAST_ROOM);
                let count = piece.min(room.len());
                for byte in &mut room[..count] {
                    *byte = (written % 251) as u8;
                    written += 1;
                }
                buffer.fill(count);
                assert_eq!(buffer.end_position(), written);
                largest = largest.max(buffer.bytes.len());
            }
            assert_eq!(buffer.position(), read);
            for byte in &buffer.unread()[..length] {
                assert_eq!(*byte, (read % 251) as u8);
                read += 1;
            }
            buffer.consume(length);
        }
        buffer.consume_all();
        assert_eq!(buffer.position(), written);
        largest
    }

    #[test]
    fn bytes_come_in_order_and_memory_is_bounded() {
        let limit = 6 << 20;
        let lengths = [1, 70_000, 0, 600_000, 5 << 20, 3, 6 << 20, 10, 500_000];
        for piece in [1_000, 65_536, 300_000, 1 << 20] {
            let largest = check(&lengths, piece, limit);
            assert!(
                largest <= limit + limit / ROOM_SHARE + 4 * FIRST_SIZE,
                "{largest}"
            );
        }
        assert_eq!(check(&[100; 10_000], 1_000, limit), FIRST_SIZE);
    }
}
