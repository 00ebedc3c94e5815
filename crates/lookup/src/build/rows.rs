//! Reads the rows of a data file of the archive, sorted by fingerprint, a piece at a time.

use std::ops::Range;

use archive::{DecodedStep, FingerprintReader, RowColumns, SnapshotFile};
use arrow::array::{ArrayRef, AsArray as _, BinaryArray};
use arrow::datatypes::Int64Type;
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::SketchBits;
use tokio::sync::mpsc;

use crate::error::{LookupError, Result};
use crate::rows::{IdRef, Row};
use crate::segment::SIGN;

const PIECE: usize = 1 << 14;

/// The name of the work in errors.
const READING: &str = "reading fingerprints";

/// Pieces of a file that wait to be merged.
const PIECES: usize = 3;

/// Pieces of a file that are read at once: a disk or a store answers several reads together sooner than one by one.
const READS: usize = 3;

/// At most [`PIECE`] rows, sorted by fingerprint.
pub(super) struct Piece {
    /// Stored fingerprints, see [`SIGN`].
    pub(super) values: Vec<u64>,
    ids: ArrayRef,
    sketches: BinaryArray,
}

impl Piece {
    #[inline]
    pub(super) fn row(&self, at: usize, part: u16) -> Row<'_> {
        let id = match self.ids.as_primitive_opt::<Int64Type>() {
            Some(numbers) => IdRef::Number(numbers.value(at)),
            None => IdRef::Text(self.ids.as_string::<i32>().value(at).as_bytes()),
        };
        let sketch =
            (!arrow::array::Array::is_null(&self.sketches, at)).then(|| self.sketches.value(at));
        Row { id, part, sketch }
    }
}

/// What a reader sends: pieces, then `None`.
type Sent = Result<Option<Piece>>;

/// Reads a data file in the background.
pub(super) fn pieces(file: SnapshotFile, sketch: SketchBits) -> mpsc::Receiver<Sent> {
    let wanted = RowColumns {
        sketch,
        kept: false,
    };
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        let read = match is_sorted(&file).await {
            Ok(true) => send_in_order(&file, wanted, &sender).await,
            Ok(false) => send_sorted(&file, wanted, &sender).await,
            Err(error) => Err(error),
        };
        // If the receiver is gone, the build has failed already.
        let _ = sender.send(read.map(|()| None)).await;
    });
    receiver
}

/// Whether a file is sorted by fingerprint. Files of this program have a checksum in the log, and are. Other programs may
/// keep the order or not, so their files are read for it.
async fn is_sorted(file: &SnapshotFile) -> Result<bool> {
    if file.tail.is_some() {
        return Ok(true);
    }
    let mut last = 0;
    for group in 0..file.reader.row_groups().len() {
        let read = fingerprints(&file.reader, group).await?;
        if !continues(&mut last, &read.values) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether `values` are sorted, and begin with `last` or more; `last` becomes the last of them.
fn continues(last: &mut u64, values: &[u64]) -> bool {
    let continues = values.first().is_none_or(|first| first >= last) && values.is_sorted();
    *last = values.last().copied().unwrap_or(*last);
    continues
}

/// Sends the rows of a file that is sorted.
async fn send_in_order(
    file: &SnapshotFile,
    wanted: RowColumns,
    sender: &mpsc::Sender<Sent>,
) -> Result<()> {
    let pages = file.reader.row_pages().await?;
    let groups = file.reader.row_groups().len();
    let mut next = None;
    let mut last = 0;
    for group in 0..groups {
        let read = match next.take() {
            Some(reading) => LookupError::joined(reading, READING).await?,
            None => fingerprints(&file.reader, group).await?,
        };
        if !continues(&mut last, &read.values) {
            let reason = "its rows are not sorted by fingerprint";
            return Err(LookupError::damaged(file.reader.name(), reason));
        }
        let (file, pages, read) = (&file, &pages, &read);
        let reading = read.ranges().map(|range| async move {
            let rows = read.rows(range.clone());
            let found = file.reader.rows(pages, group, &rows, wanted).await?;
            Ok::<_, LookupError>(Piece {
                values: read.values[range].to_vec(),
                ids: found.ids,
                sketches: found.sketches,
            })
        });
        let mut reading = futures::stream::iter(reading).buffered(READS);
        let mut number = 0;
        while let Some(piece) = reading.try_next().await? {
            // Not before: a file whose turn has not come holds one row group only.
            if number == PIECES + 2 && group + 1 < groups {
                let reader = file.reader.clone();
                let reading = async move { fingerprints(&reader, group + 1).await };
                next = Some(tokio::spawn(reading));
            }
            number += 1;
            if sender.send(Ok(Some(piece))).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Sends the rows of a file that may be unsorted: reads all of them into memory, and sorts them.
async fn send_sorted(
    file: &SnapshotFile,
    wanted: RowColumns,
    sender: &mpsc::Sender<Sent>,
) -> Result<()> {
    let pages = file.reader.row_pages().await?;
    let mut pieces = Vec::new();
    let mut order: Vec<(u64, u32, u32)> = Vec::new();
    for group in 0..file.reader.row_groups().len() {
        let read = fingerprints(&file.reader, group).await?;
        for range in read.ranges() {
            let rows = read.rows(range.clone());
            let found = file.reader.rows(&pages, group, &rows, wanted).await?;
            let piece = pieces.len() as u32;
            let values = read.values[range].iter().enumerate();
            order.extend(values.map(|(at, value)| (*value, piece, at as u32)));
            pieces.push(found);
        }
    }
    order.sort_unstable();
    for some in order.chunks(PIECE) {
        let places: Vec<(usize, usize)> = some
            .iter()
            .map(|(_, piece, at)| (*piece as usize, *at as usize))
            .collect();
        let failed = archive::ArchiveError::arrow(file.reader.name());
        let ids: Vec<&dyn arrow::array::Array> =
            pieces.iter().map(|piece| piece.ids.as_ref()).collect();
        let sketches: Vec<&dyn arrow::array::Array> =
            pieces.iter().map(|piece| &piece.sketches as _).collect();
        let piece = Piece {
            values: some.iter().map(|(value, ..)| *value).collect(),
            ids: arrow::compute::interleave(&ids, &places).map_err(&failed)?,
            sketches: arrow::compute::interleave(&sketches, &places)
                .map_err(&failed)?
                .as_binary()
                .clone(),
        };
        if sender.send(Ok(Some(piece))).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The stored fingerprints of a row group.
struct GroupValues {
    values: Vec<u64>,
    /// The row of each value; empty if every row has a value.
    rows: Vec<u32>,
}

impl GroupValues {
    /// The values of each piece.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let values = self.values.len();
        let starts = (0..values).step_by(PIECE);
        starts.map(move |start| start..values.min(start + PIECE))
    }

    fn rows(&self, values: Range<usize>) -> Vec<u32> {
        if self.rows.is_empty() {
            (values.start as u32..values.end as u32).collect()
        } else {
            self.rows[values].to_vec()
        }
    }
}

async fn fingerprints(reader: &FingerprintReader, group: usize) -> Result<GroupValues> {
    let encoded = reader.fetch(group).await?;
    let reader = reader.clone();
    let reading = tokio::task::spawn_blocking(move || -> Result<GroupValues> {
        let mut read = GroupValues {
            values: Vec::new(),
            rows: Vec::new(),
        };
        reader.decode(group, encoded, &mut DecodedStep::default(), |step| {
            for (at, value) in step.values().iter().enumerate() {
                let (row, values) = (step.row(at), read.values.len());
                if !read.rows.is_empty() || row as usize != values {
                    if read.rows.is_empty() {
                        // The first row without a value came before this one.
                        read.rows.extend(0..values as u32);
                    }
                    read.rows.push(row);
                }
                read.values.push(value ^ SIGN);
            }
            true
        })?;
        Ok(read)
    });
    LookupError::joined(reading, READING).await
}
