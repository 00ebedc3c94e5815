//! Checksums of every byte of a data file, which readers check before they use the bytes.
//!
//! The row groups are cut into sectors of equal size, each with a checksum. These sector sums follow the
//! row groups, where other Parquet readers ignore them. Everything after the row groups is the file's tail. A tag in
//! the log, the [`Tail`], has the two offsets and the two checksums of this diagram:
//!
//! ```text
//! 0                                `sums_offset`                `footer_offset`         size
//! │ row groups                      │ sector sums │ offset index │ footer, length, PAR1 │
//! │ sector 0 │ sector 1 │ … │ last  │ `index_sum` covers both    │ `footer_sum`         │
//! ```
//!
//! Each checksum is a 64-bit XXH3; sector sums are stored little-endian. Readers check the pages of
//! ids, sketches and decisions by sectors. They decode fingerprints by whole row groups, and check
//! them by [`crate::row_group_sums`], which are in the footer.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// Bytes of a sector of a file; the last sector of a file may have fewer. Few, because a reader fetches whole
/// sectors to get a page of 7 to 16 KiB.
pub const SECTOR_BYTES: u64 = 4 << 10;
/// Start of a tag: the hash, and [`SECTOR_BYTES`].
const HASH: &str = "xxh3-4096";

/// Offsets and checksums of the two parts of a data file's tail; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Tail {
    /// Offset of the sector sums: the end of the row groups.
    pub sums_offset: u64,
    /// Offset of the footer's metadata.
    pub footer_offset: u64,
    index_sum: u64,
    footer_sum: u64,
}

impl Tail {
    /// The tail with these `bytes`, from `sums_offset` to the end of the file; `None` if they do not end in a footer.
    pub(crate) fn from_bytes(sums_offset: u64, bytes: &[u8]) -> Option<Self> {
        let end = bytes.len().checked_sub(8)?;
        let length = u32::from_le_bytes(bytes.get(end..end + 4)?.try_into().ok()?) as usize;
        let footer = end.checked_sub(length)?;
        Some(Self {
            sums_offset,
            footer_offset: sums_offset + footer as u64,
            index_sum: XxHash3_64::oneshot(&bytes[..footer]),
            footer_sum: XxHash3_64::oneshot(&bytes[footer..]),
        })
    }

    /// Checks the bytes from [`Self::footer_offset`] to the end of the file.
    pub(crate) fn check_footer(&self, bytes: &[u8]) -> Result<()> {
        check(self.footer_sum, bytes, "its footer")
    }

    /// Checks and parses `bytes`, from [`Self::sums_offset`] to [`Self::footer_offset`]: the sector sums.
    pub(crate) fn sector_sums(&self, bytes: &[u8]) -> Result<SectorSums> {
        check(
            self.index_sum,
            bytes,
            "the part between its row groups and its footer",
        )?;
        let count = self.sums_offset.div_ceil(SECTOR_BYTES) as usize;
        let (sums, _) = bytes.as_chunks::<8>();
        let sums = sums
            .get(..count)
            .ok_or_else(|| damaged("its sector sums"))?;
        let sums = sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
        Ok(SectorSums {
            sums,
            end: self.sums_offset,
        })
    }
}

impl From<Tail> for String {
    fn from(tail: Tail) -> Self {
        tail.to_string()
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sums_offset,
            footer_offset,
            index_sum,
            footer_sum,
        } = self;
        write!(
            f,
            "{HASH}:{sums_offset}:{footer_offset}:{index_sum:016x}:{footer_sum:016x}"
        )
    }
}

impl TryFrom<String> for Tail {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bad = || format!("{text:?} is no tag of a data file's tail");
        let mut parts = text.split(':');
        if parts.next() != Some(HASH) {
            return Err(bad());
        }
        let mut number = |radix| {
            let part = parts.next().ok_or_else(bad)?;
            u64::from_str_radix(part, radix).map_err(|_| bad())
        };
        let tail = Self {
            sums_offset: number(10)?,
            footer_offset: number(10)?,
            index_sum: number(16)?,
            footer_sum: number(16)?,
        };
        if tail.sums_offset <= tail.footer_offset && parts.next().is_none() {
            Ok(tail)
        } else {
            Err(bad())
        }
    }
}

fn check(expected: u64, bytes: &[u8], what: &str) -> Result<()> {
    if XxHash3_64::oneshot(bytes) == expected {
        Ok(())
    } else {
        Err(damaged(what))
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!(
        "damaged: the checksum of {what} differs from the recorded one"
    ))
}

#[derive(Debug, Clone)]
pub(crate) struct SectorSums {
    sums: Arc<[u64]>,
    /// Offset of the end of the last sector.
    end: u64,
}

impl SectorSums {
    /// `range`, extended to whole sectors.
    ///
    /// # Errors
    /// When the range is not inside the row groups.
    pub(crate) fn whole_sectors(&self, range: &Range<u64>) -> Result<Range<u64>> {
        if range.start > range.end || range.end > self.end {
            return Err(ParquetError::EOF(format!(
                "bytes {}..{} lie outside the row groups",
                range.start, range.end
            )));
        }
        let start = range.start / SECTOR_BYTES * SECTOR_BYTES;
        let end = range.end.next_multiple_of(SECTOR_BYTES);
        Ok(start..end.min(self.end))
    }

    /// Checks `bytes`, which are whole sectors from offset `start` on.
    pub(crate) fn check(&self, start: u64, bytes: &Bytes) -> Result<()> {
        let first = (start / SECTOR_BYTES) as usize;
        let sectors = bytes.chunks(SECTOR_BYTES as usize).enumerate();
        for (at, sector) in sectors {
            if self.sums.get(first + at) != Some(&XxHash3_64::oneshot(sector)) {
                return Err(damaged(&format!(
                    "the part at byte {}",
                    start + at as u64 * SECTOR_BYTES
                )));
            }
        }
        Ok(())
    }
}

/// Computes the checksums of sectors while they are written.
#[derive(Debug, Default)]
pub(crate) struct SectorSummer {
    sums: Vec<u8>,
    /// The bytes of the last sector, while it is not full.
    partial: Vec<u8>,
}

impl SectorSummer {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let room = SECTOR_BYTES as usize - self.partial.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.partial.extend_from_slice(now);
            rest = later;
            if self.partial.len() < SECTOR_BYTES as usize {
                return;
            }
            let sector = std::mem::take(&mut self.partial);
            self.push_sum_of(&sector);
        }
        let (sectors, rest) = rest.as_chunks::<{ SECTOR_BYTES as usize }>();
        sectors.iter().for_each(|sector| self.push_sum_of(sector));
        self.partial.extend_from_slice(rest);
    }

    fn push_sum_of(&mut self, sector: &[u8]) {
        let sum = XxHash3_64::oneshot(sector);
        self.sums.extend_from_slice(&sum.to_le_bytes());
    }

    /// The sums of all sectors, as they are stored in the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.push_sum_of(&rest);
        }
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with `row_groups` bytes of row groups, then sector sums, index and footer; and its tail.
    fn file(row_groups: usize) -> (Vec<u8>, Tail) {
        let mut bytes: Vec<u8> = (0..row_groups).map(|at| (at * at % 251) as u8).collect();
        let mut summer = SectorSummer::default();
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
        for row_groups in [0, 1, SECTOR_BYTES as usize, 3 * SECTOR_BYTES as usize + 5] {
            let (bytes, tail) = file(row_groups);
            assert_eq!(Tail::try_from(tail.to_string()), Ok(tail));
            let (sums, footer) = (tail.sums_offset as usize, tail.footer_offset as usize);
            let is_sound = |bytes: &[u8]| {
                tail.check_footer(&bytes[footer..])?;
                let sectors = tail.sector_sums(&bytes[sums..footer])?;
                let all = sectors.whole_sectors(&(0..tail.sums_offset))?;
                assert_eq!(all, 0..tail.sums_offset);
                sectors.check(0, &Bytes::copy_from_slice(&bytes[..sums]))
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
    fn ranges_are_read_in_whole_sectors() {
        let (bytes, tail) = file(2 * SECTOR_BYTES as usize + 9);
        let tail_bytes = &bytes[tail.sums_offset as usize..tail.footer_offset as usize];
        let sums = tail.sector_sums(tail_bytes).unwrap();
        assert_eq!(sums.whole_sectors(&(5..6)).unwrap(), 0..SECTOR_BYTES);
        let two = sums
            .whole_sectors(&(SECTOR_BYTES - 1..SECTOR_BYTES + 1))
            .unwrap();
        assert_eq!(two, 0..2 * SECTOR_BYTES);
        assert_eq!(
            sums.whole_sectors(&(2 * SECTOR_BYTES..2 * SECTOR_BYTES + 9))
                .unwrap(),
            2 * SECTOR_BYTES..2 * SECTOR_BYTES + 9
        );
        assert!(sums.whole_sectors(&(5..2 * SECTOR_BYTES + 10)).is_err());
    }

    #[test]
    fn other_tags_are_refused() {
        let tag = format!("{HASH}:10:20:00000000000000ff:0000000000000001");
        assert_eq!(Tail::try_from(tag.clone()).unwrap().to_string(), tag);
        for bad in [
            "",
            HASH,
            &format!("{HASH}:20:10:0:0"),
            &format!("{tag}:1"),
            "crc:1:2:3:4",
            "xxh3-0:1:2:3:4",
            "xxh3-16384:1:2:3:4",
            "xxh3-04096:1:2:3:4",
        ] {
            assert!(Tail::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
