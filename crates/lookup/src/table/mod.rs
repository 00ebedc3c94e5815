//! Compressed tables of distinct 64-bit values, sorted, with random access by bucket.
//!
//! The leading `d` bits of a value are the number of its bucket, the other bits are its remainder; 128 buckets whose
//! numbers have the same leading `d - 7` bits are a block. A block has how many values each bucket has, in unary, then
//! all remainders: the Elias–Fano code, cut into blocks. A table of `n` values has `d = ⌊log₂ n⌋` and takes `64 - d + 1
//! + 2ᵈ/n` bits a value. Bytes of a block of `m` values:
//!
//! ```text
//! 0   first row     u32: the first row of its first value (0 in the table `rotated`)
//! 4   values        u32: m
//! 8   counts        128 + m bits: for each bucket a 1 for each value, then a 0; lowest bit first; to a whole byte
//!     remainders    m × (64 - d) bits, in the order of the values; zeros to a multiple of 8 bytes
//!     repeats       for each value with several rows, ascending: number in the block u32, rows beyond the first u32
//! ```
//!
//! Section `<table>.blocks` has the blocks that are not empty, in order. Section `<table>.directory` has the start of
//! each block and the end of the last one, as u32 in units of 8 bytes.

mod block;
mod write;

pub(crate) use block::{Block, Encoder, HEADER, remainder};
pub(crate) use write::TableWriter;

use hamming::HugeArray;

use crate::error::{LookupError, Result};
use crate::paged::{PagedFile, Section};

/// Low bits of a bucket's number that are its number within its block.
pub(crate) const BLOCK_BITS: u32 = 7;
pub(crate) const BLOCK_BUCKETS: u32 = 1 << BLOCK_BITS;
/// The most bucket bits: a bucket's number must lie within the half in which at most r bits differ.
const MAX_BUCKET_BITS: u32 = 32;
/// Unit of the directory in bytes; a block is padded to a multiple of it.
pub(crate) const UNIT: usize = 8;

/// The bucket bits of a table of `values` values, at least [`BLOCK_BITS`].
pub(crate) fn bucket_bits(values: u64) -> u32 {
    values.max(1).ilog2().clamp(BLOCK_BITS, MAX_BUCKET_BITS)
}

#[derive(Debug)]
pub(crate) struct Table {
    /// Leading bits of a value that are its bucket's number.
    pub(crate) bucket_bits: u32,
    /// Bits by which a stored fingerprint is rotated left to become a value: 0 or 32.
    pub(crate) rotation: u32,
    /// Where each block begins, in units of 8 bytes from the start of the section.
    directory: HugeArray<u32>,
    blocks: Section,
}

impl Table {
    /// Reads the directory of the table `name`.
    pub(crate) fn open(
        file: &PagedFile,
        name: &str,
        bucket_bits: u32,
        rotation: u32,
    ) -> Result<Self> {
        let damaged = |reason: &str| LookupError::damaged(&file.name, reason);
        if !(BLOCK_BITS..=MAX_BUCKET_BITS).contains(&bucket_bits) {
            return Err(damaged("the number of bucket bits is damaged"));
        }
        let blocks = file.section(&format!("{name}.blocks"))?;
        let bytes = file.bytes(file.section(&format!("{name}.directory"))?)?;
        let mut directory = HugeArray::zeroed(bytes.len() / 4);
        for (entry, bytes) in directory.iter_mut().zip(bytes.chunks_exact(4)) {
            *entry = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let is_whole = directory.len() == (1 << (bucket_bits - BLOCK_BITS)) + 1
            && directory.is_sorted()
            && directory
                .last()
                .is_some_and(|&end| end as usize * UNIT == blocks.len());
        if is_whole {
            Ok(Self {
                bucket_bits,
                rotation,
                directory,
                blocks,
            })
        } else {
            Err(damaged("the directory of a table is damaged"))
        }
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.directory.len() as u32 - 1
    }

    /// Prefetches the directory entry of a block.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: u32) {
        hamming::prefetch::prefetch_l1(&self.directory, block as usize);
    }

    /// The bytes of a block in the file.
    #[inline(always)]
    pub(crate) fn block_range(&self, block: u32) -> Section {
        let at = |block: usize| self.directory[block] as usize * UNIT;
        let block = block as usize;
        self.blocks.start + at(block)..self.blocks.start + at(block + 1)
    }

    pub(crate) fn directory_bytes(&self) -> u64 {
        self.directory.bytes() as u64
    }

    /// Where a value is: the block, and the bucket in it.
    #[inline(always)]
    pub(crate) fn place(&self, value: u64) -> (u32, u32) {
        let bucket = (value >> (64 - self.bucket_bits)) as u32;
        (bucket >> BLOCK_BITS, bucket & (BLOCK_BUCKETS - 1))
    }

    /// The leading bits that all values of a bucket share, as a value with zeros below.
    #[inline(always)]
    pub(crate) fn bucket_value(&self, block: u32, bucket: u32) -> u64 {
        (u64::from(block) << BLOCK_BITS | u64::from(bucket)) << (64 - self.bucket_bits)
    }
}
