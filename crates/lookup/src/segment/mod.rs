//! A segment: the rows of some files of an archive, in two files that never change.
//!
//! `<name>.tables` has two compressed tables: `straight` has the distinct fingerprints, sorted; `rotated` has them
//! rotated by 32 bits, then sorted. `<name>.rows` has the id, part and sketch of each row, in the order of `straight`.

mod rotated;
mod scan;
#[cfg(any(test, fuzzing))]
pub(crate) mod testing;
mod write;

use std::ops::Range;
use std::path::Path;

use archive::DocumentId;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::error::{LookupError, Result};
use crate::paged::PagedFile;
use crate::rows::{IdRef, RowShape, Rows};
use crate::table::{Block, Table};

pub(crate) use scan::Scan;
pub(crate) use write::SegmentWriter;

/// Bits by which the table `rotated` rotates fingerprints: the trailing half becomes the leading one.
pub(crate) const ROTATION: u32 = 32;

/// The sign bit. A *stored* fingerprint, or value, has it flipped, so that unsigned order is the order of the archive's
/// BIGINTs. The distance of two stored fingerprints is that of the fingerprints.
pub(crate) const SIGN: u64 = 1 << 63;

pub(crate) const TABLES: &str = "tables";
pub(crate) const ROWS: &str = "rows";

/// Data files of one day of an archive, which are indexed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The day; null for rows without one, which only other programs write.
    pub day: Option<NaiveDate>,
    /// SHA-256 of the files' paths and digests, as the archive's log has them: another digest is another part.
    pub source: String,
}

/// What a segment holds, in the footers of its files and in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentFacts {
    /// Distinct fingerprints.
    pub fingerprints: u64,
    /// Rows with a fingerprint.
    pub rows: u64,
    /// Leading bits of a value that are its bucket's number.
    pub(crate) bucket_bits: u32,
    pub(crate) shape: RowShape,
    /// The files of the archive that it covers.
    pub parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) facts: SegmentFacts,
    pub(crate) file: PagedFile,
    pub(crate) tables: [Table; 2],
    pub(crate) rows: Rows,
}

/// What an index knows of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: DocumentId,
    /// The day as which it was committed to the archive.
    pub day: Option<NaiveDate>,
    /// Its sketch, if the archive has sketches and the document has one.
    pub sketch: Option<Vec<u8>>,
}

impl Segment {
    pub(crate) fn open(directory: &Path, name: &str) -> Result<Self> {
        let path = |ending: &str| directory.join(format!("{name}.{ending}"));
        let file = PagedFile::open(&path(TABLES))?;
        let facts: SegmentFacts = file.facts()?;
        let rows = PagedFile::open(&path(ROWS))?;
        if rows.facts::<SegmentFacts>()? != facts {
            return Err(LookupError::damaged(
                &rows.name,
                "it does not belong to the tables of the same name",
            ));
        }
        if facts.rows > u64::from(u32::MAX) || facts.fingerprints > facts.rows {
            return Err(LookupError::damaged(
                &file.name,
                "the number of rows is damaged",
            ));
        }
        let bits = facts.bucket_bits;
        let tables = [
            Table::open(&file, "straight", bits, 0)?,
            Table::open(&file, "rotated", bits, ROTATION)?,
        ];
        Ok(Self {
            tables,
            rows: Rows::open(rows, facts.shape, facts.rows)?,
            file,
            facts,
        })
    }

    /// A block of a table (0 is `straight`, 1 is `rotated`), checked; `None` if it is empty.
    pub(crate) fn block(&self, table: usize, block: u32) -> Result<Option<Block<'_>>> {
        let range = self.tables[table].block_range(block);
        if range.is_empty() {
            return Ok(None);
        }
        let bytes = self.file.bytes(range)?;
        let parsed = Block::parse(bytes, self.tables[table].bucket_bits);
        parsed.map(Some).ok_or_else(|| self.damaged(table, block))
    }

    /// The rows of a stored fingerprint; empty if the segment does not have it.
    pub(crate) fn rows_of(&self, stored: u64) -> Result<Range<u32>> {
        let table = &self.tables[0];
        let (number, bucket) = table.place(stored);
        let Some(block) = self.block(0, number)? else {
            return Ok(0..0);
        };
        let damaged = || self.damaged(0, number);
        let wanted = stored ^ table.bucket_value(number, bucket);
        for value in block.bucket(bucket).ok_or_else(damaged)? {
            if block.remainder(value).ok_or_else(damaged)? == wanted {
                return block.rows(value).ok_or_else(damaged);
            }
        }
        Ok(0..0)
    }

    pub(crate) fn document(&self, row: u32) -> Result<Document> {
        let found = self.rows.row(row)?;
        let part = self.facts.parts.get(usize::from(found.part));
        let part = part.ok_or_else(|| self.rows.damaged(row))?;
        Ok(Document {
            id: match found.id {
                IdRef::Number(number) => DocumentId::Number(number),
                IdRef::Text(text) => DocumentId::Text(String::from_utf8_lossy(text).into()),
            },
            day: part.day,
            sketch: found.sketch.map(<[u8]>::to_vec),
        })
    }

    #[cold]
    pub(crate) fn damaged(&self, table: usize, block: u32) -> LookupError {
        let name = ["straight", "rotated"][table];
        LookupError::damaged(
            &self.file.name,
            format!("table {name}, block {block} is damaged"),
        )
    }

    /// Its files: the tables, and the rows.
    pub(crate) fn files(&self) -> [&PagedFile; 2] {
        [&self.file, &self.rows.file]
    }

    /// Reads the files whole, and checks every page, every block, and that both tables have the same fingerprints.
    ///
    /// # Errors
    /// [`LookupError::Damaged`].
    pub(crate) fn verify(&self) -> Result<()> {
        self.file.read_in_order();
        self.file.verify()?;
        self.rows.file.verify()?;
        // Two tables have the same sum of hashes only if they have the same fingerprints, except by chance.
        let mut sums = [0u64; 2];
        for (table, shape) in self.tables.iter().enumerate() {
            let (mut values, mut rows) = (0u64, 0u64);
            let sum = &mut sums[table];
            for number in 0..shape.blocks() {
                let Some(block) = self.block(table, number)? else {
                    continue;
                };
                let each = |value: u64, count: u32| {
                    let fingerprint = value.rotate_right(shape.rotation);
                    *sum = sum
                        .wrapping_add(twox_hash::XxHash3_64::oneshot(&fingerprint.to_le_bytes()));
                    values += 1;
                    rows += u64::from(count);
                };
                block
                    .for_each(number, each)
                    .ok_or_else(|| self.damaged(table, number))?;
            }
            let counted = [self.facts.rows, self.facts.fingerprints][table];
            if values != self.facts.fingerprints || rows != counted {
                return Err(LookupError::damaged(
                    &self.file.name,
                    "a table has not the counts that the footer states",
                ));
            }
        }
        if sums[0] == sums[1] {
            Ok(())
        } else {
            Err(LookupError::damaged(
                &self.file.name,
                "the two tables do not have the same fingerprints",
            ))
        }
    }
}
