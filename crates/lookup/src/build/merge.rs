//! Merges sorted rows into a segment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use archive::{Archive, DataFile};
use tokio::sync::mpsc;

use super::rows::{Piece, pieces};
use crate::error::Result;
use crate::rows::{Row, RowShape};
use crate::segment::{Part, Scan, SegmentFacts, SegmentWriter, WrittenFiles};

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
    /// Writes the segment.
    pub(super) fn run(mut self) -> Result<(SegmentFacts, WrittenFiles)> {
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
        while let Some(&Reverse((value, _))) = heads.peek() {
            let mut rows = 0u32;
            // Inputs with the same value come in their own order.
            while let Some(mut head) = heads.peek_mut().filter(|head| head.0.0 == value) {
                let input = &mut self.inputs[head.0.1];
                rows += input.push_rows(&mut writer)?;
                match input.next()? {
                    Some(next) => head.0.0 = next,
                    None => {
                        PeekMut::pop(head);
                    }
                }
            }
            // Of a segment, rows may be left out.
            if rows > 0 {
                writer.push(value, rows)?;
            }
            done += u64::from(rows);
            if done - reported >= REPORT {
                (self.rows_done)(done - reported);
                reported = done;
            }
        }
        (self.rows_done)(done - reported);
        writer.finish(&self.pool)
    }
}

/// Sorted rows: of a data file of the archive, or of a segment.
pub(super) enum Input {
    File {
        pieces: mpsc::Receiver<Result<Piece>>,
        piece: Option<Piece>,
        at: usize,
    },
    Segment {
        scan: Box<Scan>,
        /// The first row of the value, and how many it has.
        rows: (u32, u32),
        /// For each part of the segment, its number in the new one; `None` if its rows are left out.
        numbers: Vec<Option<u16>>,
    },
}

impl Input {
    /// The rows of a data file.
    pub(super) async fn file(archive: &Archive, file: &DataFile) -> Result<Self> {
        Ok(Self::File {
            pieces: pieces(archive, file).await?,
            piece: None,
            at: 0,
        })
    }

    /// The rows of a segment; `numbers` has the new number of each of its parts, and nothing for parts that are left out.
    pub(super) fn segment(scan: Scan, numbers: Vec<Option<u16>>) -> Self {
        Self::Segment {
            scan: Box::new(scan),
            rows: (0, 0),
            numbers,
        }
    }

    /// Goes on to the next row, or value, and returns its value.
    fn next(&mut self) -> Result<Option<u64>> {
        match self {
            Self::File { pieces, piece, at } => {
                *at += 1;
                while piece.as_ref().is_none_or(|piece| *at >= piece.values.len()) {
                    match pieces.blocking_recv() {
                        None => return Ok(None),
                        Some(next) => {
                            *piece = Some(next?);
                            *at = 0;
                        }
                    }
                }
                Ok(piece.as_ref().map(|piece| piece.values[*at]))
            }
            Self::Segment { scan, rows, .. } => Ok(scan.next()?.map(|(value, first, count)| {
                *rows = (first, count);
                value
            })),
        }
    }

    /// Writes the row, or the rows of the value. Returns how many they are.
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
                    let row = scan.segment().row(row)?;
                    if let Some(&Some(day)) = numbers.get(usize::from(row.day)) {
                        writer.push_row(Row { day, ..row })?;
                        pushed += 1;
                    }
                }
                Ok(pushed)
            }
        }
    }
}
