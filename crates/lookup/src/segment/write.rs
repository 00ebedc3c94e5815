//! Writes a segment.

use std::fs::File;
use std::path::Path;

use super::rotated::RotatedSort;
use super::{Part, ROTATION, SegmentFacts};
use crate::error::{LookupError, Result};
use crate::paged::PagedWriter;
use crate::rows::{Row, RowShape, RowsWriter};
use crate::table::{TableWriter, bucket_bits};

/// The most fingerprints that are sorted for the table `rotated` in memory; more are spilled to the disk.
const VALUES_IN_MEMORY: u64 = 48 << 20;

pub(crate) struct SegmentWriter {
    tables: PagedWriter,
    rows_file: PagedWriter,
    straight: TableWriter,
    rotated: RotatedSort,
    rows: RowsWriter,
    facts: SegmentFacts,
}

impl SegmentWriter {
    /// Begins a segment of at most `rows` rows of `parts`, in two empty files; errors name it `name`. Spills to
    /// `scratch`.
    pub(crate) fn new(
        name: &str,
        (tables, rows_file): (File, File),
        shape: RowShape,
        parts: Vec<Part>,
        rows: u64,
        scratch: &Path,
    ) -> Result<Self> {
        if rows > u64::from(u32::MAX) || parts.len() > usize::from(u16::MAX) {
            return Err(LookupError::damaged(
                name,
                "too many rows or parts for one segment",
            ));
        }
        let bucket_bits = bucket_bits(rows);
        Ok(Self {
            tables: PagedWriter::new(&format!("{name}, tables"), tables),
            rows_file: PagedWriter::new(&format!("{name}, rows"), rows_file),
            straight: TableWriter::new(bucket_bits),
            rotated: RotatedSort::new(name, bucket_bits, rows, VALUES_IN_MEMORY, scratch)?,
            rows: RowsWriter::new(shape),
            facts: SegmentFacts {
                fingerprints: 0,
                rows: 0,
                bucket_bits,
                shape,
                parts,
            },
        })
    }

    /// Appends a row of the next fingerprint. After its last row, call [`Self::push`].
    #[inline]
    pub(crate) fn push_row(&mut self, row: Row<'_>) -> Result<()> {
        self.rows.push(&mut self.rows_file, row)
    }

    /// Appends a stored fingerprint, whose `rows` rows were just appended. It must be larger than the one before.
    #[inline]
    pub(crate) fn push(&mut self, fingerprint: u64, rows: u32) -> Result<()> {
        self.facts.fingerprints += 1;
        self.facts.rows += u64::from(rows);
        self.rotated.push(fingerprint.rotate_left(ROTATION))?;
        self.straight.push(&mut self.tables, fingerprint, rows)
    }

    /// Writes the rotated table and the footers. Returns the size in bytes and the checksum of each file: the tables, and
    /// the rows.
    pub(crate) fn finish(
        mut self,
        pool: &rayon::ThreadPool,
    ) -> Result<(SegmentFacts, [(u64, u64); 2])> {
        self.straight.finish(&mut self.tables, "straight")?;
        let mut rotated = TableWriter::new(self.facts.bucket_bits);
        self.rotated.write(&mut rotated, &mut self.tables, pool)?;
        rotated.finish(&mut self.tables, "rotated")?;
        self.rows.finish(&mut self.rows_file)?;
        let tables = self.tables.finish(&self.facts)?;
        let rows = self.rows_file.finish(&self.facts)?;
        Ok((self.facts, [tables, rows]))
    }
}
