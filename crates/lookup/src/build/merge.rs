//! Merges sorted rows into a segment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::rows::Piece;
use crate::error::{LookupError, Result};
use crate::rows::{Row, RowShape};
use crate::segment::{Part, Scan, SegmentFacts, SegmentWriter};

/// Rows between two reports of progress.
const REPORT: u64 = 1 << 20;

/// A segment to be written, and its inputs.
pub(super) struct Merge {
    pub(super) name: String,
    pub(super) files: (File, File),
    pub(super) shape: RowShape,
    pub(super) parts: Vec<Part>,
    pub(super) rows: u64,
    pub(super) inputs: Vec<Input>,
    pub(super) scratch: PathBuf,
    pub(super) pool: Arc<rayon::ThreadPool>,
    pub(super) rows_done: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Merge {
    pub(super) fn run(mut self) -> Result<(SegmentFacts, [(u64, u64); 2])> {
        let mut writer = SegmentWriter::new(
            &self.name,
            self.files,
            self.shape,
            self.parts,
            self.rows,
            &self.scratch,
        )?;
        let mut heads = BinaryHeap::with_capacity(self.inputs.len());
        for (number, input) in self.inputs.iter_mut().enumerate() {
            if let Some(value) = input.next()? {
                heads.push(Reverse((value, number)));
            }
        }
        let (mut done, mut reported) = (0, 0);
        while let Some(Reverse((value, number))) = heads.pop() {
            // The fingerprints of a day's files hardly overlap, so read one input up to the next input's first value.
            let end = heads.peek().map(|Reverse((next, _))| *next);
            let input = &mut self.inputs[number];
            let mut next = Some(value);
            while let Some(value) = next.filter(|value| end.is_none_or(|end| *value < end)) {
                let mut rows = 0u32;
                next = push_rows_of(input, value, &mut rows, &mut writer)?;
                done += push_value(&mut writer, value, rows)?;
                if done - reported >= REPORT {
                    (self.rows_done)(done - reported);
                    reported = done;
                }
            }
            let Some(value) = next else { continue };
            heads.push(Reverse((value, number)));
            // Other inputs have this value, too; write all its rows, in the order of the inputs.
            let mut rows = 0u32;
            while heads
                .peek()
                .is_some_and(|Reverse((next, _))| *next == value)
            {
                let Some(Reverse((_, number))) = heads.pop() else {
                    break;
                };
                let next = push_rows_of(&mut self.inputs[number], value, &mut rows, &mut writer)?;
                heads.extend(next.map(|next| Reverse((next, number))));
            }
            done += push_value(&mut writer, value, rows)?;
        }
        (self.rows_done)(done - reported);
        writer.finish(&self.pool)
    }
}

/// Writes all rows of the input's current value, `value`, and adds their number to `rows`. Returns the input's next
/// value.
#[inline]
fn push_rows_of(
    input: &mut Input,
    value: u64,
    rows: &mut u32,
    writer: &mut SegmentWriter,
) -> Result<Option<u64>> {
    loop {
        *rows += input.push_rows(writer)?;
        let next = input.next()?;
        if next != Some(value) {
            return Ok(next);
        }
    }
}

/// Writes a value after its rows, if it has any: all rows of a value may belong to parts that are left out.
#[inline]
fn push_value(writer: &mut SegmentWriter, value: u64, rows: u32) -> Result<u64> {
    if rows > 0 {
        writer.push(value, rows)?;
    }
    Ok(rows.into())
}

/// Sorted rows: of a data file of the archive, or of a segment.
pub(super) enum Input {
    File {
        pieces: mpsc::Receiver<Result<Option<Piece>>>,
        piece: Option<Piece>,
        at: usize,
    },
    Segment {
        scan: Box<Scan>,
        /// The first row of the current value, and its number of rows.
        rows: (u32, u32),
        /// For each part of the segment, its number in the new segment; `None` if its rows are left out.
        numbers: Vec<Option<u16>>,
    },
}

impl Input {
    /// The rows of a segment; `numbers` has the new number of each of its parts, `None` for parts that are left out.
    pub(super) fn segment(scan: Scan, numbers: Vec<Option<u16>>) -> Self {
        Self::Segment {
            scan: Box::new(scan),
            rows: (0, 0),
            numbers,
        }
    }

    /// Advances to the next row of a file, or the next value of a segment. Returns the value.
    fn next(&mut self) -> Result<Option<u64>> {
        match self {
            Self::File { pieces, piece, at } => {
                *at += 1;
                while piece.as_ref().is_none_or(|piece| *at >= piece.values.len()) {
                    let Some(sent) = pieces.blocking_recv() else {
                        // The reader sends `None` after the last piece; without it, the reader has failed.
                        let failed = LookupError::io("reading the archive");
                        return Err(failed(std::io::Error::other("a reader has failed")));
                    };
                    let Some(next) = sent? else {
                        return Ok(None);
                    };
                    *piece = Some(next);
                    *at = 0;
                }
                Ok(piece.as_ref().map(|piece| piece.values[*at]))
            }
            Self::Segment { scan, rows, .. } => Ok(scan.next()?.map(|(value, first, count)| {
                *rows = (first, count);
                value
            })),
        }
    }

    /// Writes the current row of a file, or all rows of a segment's current value. Returns how many rows it wrote.
    #[inline]
    fn push_rows(&self, writer: &mut SegmentWriter) -> Result<u32> {
        match self {
            Self::File { piece, at, .. } => {
                let Some(piece) = piece else { return Ok(0) };
                writer.push_row(piece.row(*at, 0))?;
                Ok(1)
            }
            Self::Segment {
                scan,
                rows: (first, count),
                numbers,
            } => {
                let mut pushed = 0;
                for row in *first..first.saturating_add(*count) {
                    let row = scan.segment.rows.row(row)?;
                    if let Some(&Some(part)) = numbers.get(usize::from(row.part)) {
                        writer.push_row(Row { part, ..row })?;
                        pushed += 1;
                    }
                }
                Ok(pushed)
            }
        }
    }
}
