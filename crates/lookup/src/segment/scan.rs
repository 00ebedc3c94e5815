//! Reads a segment's rows in order.

use std::sync::Arc;

use super::Segment;
use crate::error::Result;

/// The fingerprints of a segment in order, each with its rows.
pub(crate) struct Scan {
    pub(crate) segment: Arc<Segment>,
    next_block: u32,
    /// The values of the current block that are left, with their numbers of rows, in reverse.
    values: Vec<(u64, u32)>,
    row: u32,
}

impl Scan {
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        Self {
            segment,
            next_block: 0,
            values: Vec::new(),
            row: 0,
        }
    }

    /// The next stored fingerprint, its first row, and its number of rows.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, u32, u32)>> {
        while self.values.is_empty() {
            if self.next_block == self.segment.tables[0].blocks() {
                return Ok(None);
            }
            let number = self.next_block;
            self.next_block += 1;
            let Some(block) = self.segment.block(0, number)? else {
                continue;
            };
            let values = &mut self.values;
            block
                .for_each(number, |value, rows| values.push((value, rows)))
                .ok_or_else(|| self.segment.damaged(0, number))?;
            self.values.reverse();
        }
        let next = self.values.pop();
        Ok(next.map(|(value, rows)| {
            let first = self.row;
            self.row = self.row.saturating_add(rows);
            (value, first, rows)
        }))
    }
}
