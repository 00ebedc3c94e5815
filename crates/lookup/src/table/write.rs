//! Writes a table.

use super::{BLOCK_BITS, Encoder, UNIT};
use crate::error::{LookupError, Result};
use crate::paged::PagedWriter;

/// A table that is being written: from its values, or from blocks that were encoded elsewhere.
#[derive(Debug)]
pub(crate) struct TableWriter {
    bucket_bits: u32,
    directory: Vec<u32>,
    encoder: Encoder,
    /// The number of the block that is being encoded.
    block: u32,
    /// Rows before that block.
    first_row: u32,
    /// Rows so far.
    row: u32,
    bytes: Vec<u8>,
}

impl TableWriter {
    pub(crate) fn new(bucket_bits: u32) -> Self {
        Self {
            bucket_bits,
            directory: Vec::with_capacity((1 << (bucket_bits - BLOCK_BITS)) + 1),
            encoder: Encoder::new(bucket_bits),
            block: 0,
            first_row: 0,
            row: 0,
            bytes: Vec::new(),
        }
    }

    /// Appends a value, which must be larger than the one before, with its number of rows.
    #[inline]
    pub(crate) fn push(&mut self, file: &mut PagedWriter, value: u64, rows: u32) -> Result<()> {
        let block = (value >> (64 - self.bucket_bits)) as u32 >> BLOCK_BITS;
        if block != self.block {
            self.end_block(file)?;
            self.skip_to(file, block)?;
        }
        self.encoder.push(value, rows);
        self.row += rows;
        Ok(())
    }

    fn end_block(&mut self, file: &mut PagedWriter) -> Result<()> {
        self.directory.push(start(file)?);
        self.encoder.encode(self.first_row, &mut self.bytes);
        file.write(&self.bytes)?;
        self.bytes.clear();
        self.block += 1;
        self.first_row = self.row;
        Ok(())
    }

    /// Skips to `block`: the blocks between stay empty.
    fn skip_to(&mut self, file: &mut PagedWriter, block: u32) -> Result<()> {
        let empty = block.saturating_sub(self.block);
        let at = start(file)?;
        self.directory.extend((0..empty).map(|_| at));
        self.block += empty;
        Ok(())
    }

    /// Appends encoded blocks, with the length of each in bytes.
    pub(crate) fn push_blocks(
        &mut self,
        file: &mut PagedWriter,
        bytes: &[u8],
        lengths: &[u32],
    ) -> Result<()> {
        let mut at = u64::from(start(file)?) * UNIT as u64;
        for length in lengths {
            self.directory.push(unit(file, at)?);
            at += u64::from(*length);
        }
        self.block += lengths.len() as u32;
        file.write(bytes)
    }

    /// Ends the table, as the sections `<name>.blocks` and `<name>.directory`.
    pub(crate) fn finish(mut self, file: &mut PagedWriter, name: &str) -> Result<()> {
        let blocks = 1 << (self.bucket_bits - BLOCK_BITS);
        if self.block < blocks {
            self.end_block(file)?;
            self.skip_to(file, blocks)?;
        }
        self.directory.push(start(file)?);
        file.end_section(&format!("{name}.blocks"));
        for entry in &self.directory {
            file.write(&entry.to_le_bytes())?;
        }
        file.end_section(&format!("{name}.directory"));
        Ok(())
    }
}

/// Where the next block begins, in units.
fn start(file: &PagedWriter) -> Result<u32> {
    unit(file, file.section_bytes())
}

fn unit(file: &PagedWriter, bytes: u64) -> Result<u32> {
    u32::try_from(bytes / UNIT as u64).map_err(|_| {
        LookupError::damaged(
            &file.name,
            "a table of more than 32 GiB; index fewer days at once",
        )
    })
}
