//! Checksums of every byte of a data file, which readers check before they use the bytes.
//!
//! The row groups are summed in blocks of [`BLOCK`] bytes. The sums of the blocks follow the row groups, where other
//! Parquet readers ignore them. A tag in the log has the two offsets and the two sums of this diagram:
//!
//! ```text
//! 0                           sums                          footer                 size
//! │ row groups                 │ block sums │ offset index   │ footer, length, PAR1  │
//! │ block 0 │ block 1 │ … │ n  │ `index_sum` covers both     │ `footer_sum`          │
//! ```
//!
//! Block sums are 64-bit XXH3, little-endian. Pages of ids are checked by their blocks. Fingerprints are decoded by whole
//! row groups, and checked by [`crate::row_group_sums`], which are in the footer.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// Bytes of a block: about as many as a page of ids has.
pub const BLOCK: u64 = 16 << 10;
/// Start of a tag: the hash and the block size.
const VERSION: &str = "xxh3-16384";

/// The offsets and the checksums of the two parts of a data file's tail; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Tail {
    /// Offset of the block sums: the end of the row groups.
    pub sums: u64,
    /// Offset of the footer's metadata.
    pub footer: u64,
    index_sum: u64,
    footer_sum: u64,
}

impl Tail {
    /// The tail with these `bytes`, from offset `sums` to the end of the file; `None` if they do not end in a footer.
    pub(crate) fn from_bytes(sums: u64, bytes: &[u8]) -> Option<Self> {
        let end = bytes.len().checked_sub(8)?;
        let length = u32::from_le_bytes(bytes.get(end..end + 4)?.try_into().ok()?) as usize;
        let footer = end.checked_sub(length)?;
        Some(Self {
            sums,
            footer: sums + footer as u64,
            index_sum: XxHash3_64::oneshot(&bytes[..footer]),
            footer_sum: XxHash3_64::oneshot(&bytes[footer..]),
        })
    }

    /// Checks the bytes from [`Self::footer`] to the end of the file.
    ///
    /// # Errors
    /// When they differ from what was written.
    pub(crate) fn check_footer(&self, bytes: &[u8]) -> Result<()> {
        check(self.footer_sum, bytes, "its footer")
    }

    /// The block sums in `bytes`, which reach from [`Self::sums`] to [`Self::footer`].
    ///
    /// # Errors
    /// When they differ from what was written.
    pub(crate) fn block_sums(&self, bytes: &[u8]) -> Result<BlockSums> {
        check(
            self.index_sum,
            bytes,
            "the part between its row groups and its footer",
        )?;
        let count = self.sums.div_ceil(BLOCK) as usize;
        let (sums, _) = bytes.as_chunks::<8>();
        let sums = sums.get(..count).ok_or_else(|| damaged("its block sums"))?;
        let sums = sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
        Ok(BlockSums {
            sums,
            end: self.sums,
        })
    }
}

impl From<Tail> for String {
    fn from(tail: Tail) -> Self {
        tail.to_string()
    }
}

impl TryFrom<String> for Tail {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sums,
            footer,
            index_sum,
            footer_sum,
        } = self;
        write!(
            f,
            "{VERSION}:{sums}:{footer}:{index_sum:016x}:{footer_sum:016x}"
        )
    }
}

impl FromStr for Tail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no tag of a data file's tail");
        let mut parts = text.split(':');
        if parts.next() != Some(VERSION) {
            return Err(bad());
        }
        let mut number = |radix| {
            let part = parts.next().ok_or_else(bad)?;
            u64::from_str_radix(part, radix).map_err(|_| bad())
        };
        let tail = Self {
            sums: number(10)?,
            footer: number(10)?,
            index_sum: number(16)?,
            footer_sum: number(16)?,
        };
        match tail.sums <= tail.footer && parts.next().is_none() {
            true => Ok(tail),
            false => Err(bad()),
        }
    }
}

fn check(expected: u64, bytes: &[u8], what: &str) -> Result<()> {
    match XxHash3_64::oneshot(bytes) == expected {
        true => Ok(()),
        false => Err(damaged(what)),
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!(
        "damaged: {what} differs from what was written, by its checksum"
    ))
}

/// The checksums of a file's blocks.
#[derive(Debug, Clone)]
pub(crate) struct BlockSums {
    sums: Arc<[u64]>,
    /// The end of the last block.
    end: u64,
}

impl BlockSums {
    /// `range`, extended to whole blocks.
    ///
    /// # Errors
    /// When the range is not inside the row groups.
    pub(crate) fn whole_blocks(&self, range: &Range<u64>) -> Result<Range<u64>> {
        if range.start > range.end || range.end > self.end {
            return Err(ParquetError::EOF(format!(
                "bytes {}..{} lie outside the row groups",
                range.start, range.end
            )));
        }
        let start = range.start / BLOCK * BLOCK;
        Ok(start..range.end.next_multiple_of(BLOCK).min(self.end))
    }

    /// Checks `bytes`, whole blocks from offset `start` on.
    ///
    /// # Errors
    /// When a block differs from what was written.
    pub(crate) fn check(&self, start: u64, bytes: &Bytes) -> Result<()> {
        let first = (start / BLOCK) as usize;
        let blocks = bytes.chunks(BLOCK as usize).enumerate();
        for (at, block) in blocks {
            if self.sums.get(first + at) != Some(&XxHash3_64::oneshot(block)) {
                return Err(damaged(&format!(
                    "the block at byte {}",
                    start + at as u64 * BLOCK
                )));
            }
        }
        Ok(())
    }
}

/// Computes the checksums of blocks while they are written.
#[derive(Debug, Default)]
pub(crate) struct BlockSummer {
    sums: Vec<u8>,
    /// The bytes of the last block, while it is not full.
    partial: Vec<u8>,
}

impl BlockSummer {
    /// Adds the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let room = BLOCK as usize - self.partial.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.partial.extend_from_slice(now);
            rest = later;
            if self.partial.len() < BLOCK as usize {
                return;
            }
            let block = std::mem::take(&mut self.partial);
            self.push(&block);
        }
        let (blocks, rest) = rest.as_chunks::<{ BLOCK as usize }>();
        blocks.iter().for_each(|block| self.push(block));
        self.partial.extend_from_slice(rest);
    }

    fn push(&mut self, block: &[u8]) {
        let sum = XxHash3_64::oneshot(block);
        self.sums.extend_from_slice(&sum.to_le_bytes());
    }

    /// The sums of all blocks, as they are stored in the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.push(&rest);
        }
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row groups, block sums, index and footer as a file has them.
    fn file(row_groups: usize) -> (Vec<u8>, Tail) {
        let mut bytes: Vec<u8> = (0..row_groups).map(|at| (at * at % 251) as u8).collect();
        let mut summer = BlockSummer::default();
        for part in bytes.chunks(7001) {
            summer.update(part);
        }
        let start = bytes.len() as u64;
        bytes.extend(summer.finish());
        bytes.extend(b"index footer\x06\0\0\0PAR1");
        let tail = Tail::from_bytes(start, &bytes[start as usize..]).unwrap();
        (bytes, tail)
    }

    #[test]
    fn every_flipped_byte_is_found() {
        for row_groups in [0, 1, BLOCK as usize, 3 * BLOCK as usize + 5] {
            let (bytes, tail) = file(row_groups);
            assert_eq!(tail.to_string().parse(), Ok(tail));
            let (sums, footer) = (tail.sums as usize, tail.footer as usize);
            let is_sound = |bytes: &[u8]| {
                tail.check_footer(&bytes[footer..])?;
                let blocks = tail.block_sums(&bytes[sums..footer])?;
                let all = blocks.whole_blocks(&(0..tail.sums))?;
                assert_eq!(all, 0..tail.sums);
                blocks.check(0, &Bytes::copy_from_slice(&bytes[..sums]))
            };
            is_sound(&bytes).unwrap();
            for at in (0..bytes.len()).step_by(37).chain(sums..bytes.len()) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << (at % 8);
                assert!(is_sound(&damaged).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn ranges_are_read_in_whole_blocks() {
        let (bytes, tail) = file(2 * BLOCK as usize + 9);
        let tail_bytes = &bytes[tail.sums as usize..tail.footer as usize];
        let sums = tail.block_sums(tail_bytes).unwrap();
        assert_eq!(sums.whole_blocks(&(5..6)).unwrap(), 0..BLOCK);
        let two = sums.whole_blocks(&(BLOCK - 1..BLOCK + 1)).unwrap();
        assert_eq!(two, 0..2 * BLOCK);
        assert_eq!(
            sums.whole_blocks(&(2 * BLOCK..2 * BLOCK + 9)).unwrap(),
            2 * BLOCK..2 * BLOCK + 9
        );
        assert!(sums.whole_blocks(&(5..2 * BLOCK + 10)).is_err());
    }

    #[test]
    fn other_tags_are_refused() {
        let tag = "xxh3-16384:10:20:00000000000000ff:0000000000000001";
        assert_eq!(tag.parse::<Tail>().unwrap().to_string(), tag);
        for bad in ["", "xxh3-16384", "crc:1:2:3:4", "xxh3-16384:20:10:0:0"] {
            assert!(bad.parse::<Tail>().is_err(), "{bad}");
        }
        assert!(format!("{tag}:1").parse::<Tail>().is_err());
    }
}
