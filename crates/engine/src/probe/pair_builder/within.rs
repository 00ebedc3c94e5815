//! Pairs inside the batch.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use datafusion::error::Result;
use hamming::Match;

use super::{PairBuilder, Sent};
use crate::batch::{Batch, Classes};

impl PairBuilder<'_> {
    /// Sends the pairs inside the batch; returns how many.
    ///
    /// The document with the larger id is the new one of a pair. Two documents that share an id are a pair of this id with
    /// itself. Of copies (documents that share id and fingerprint, and the sketch if sketches are compared), only the first is
    /// paired with other documents, and once with the last copy: the reduce would drop all other pairs, and their number grows
    /// with the square of the copies.
    pub(in crate::probe) async fn send_pairs_within(mut self, matches: &[Match]) -> Result<Sent> {
        if let Some(classes) = &self.source.classes {
            return self.send_class_pairs_within(classes, matches).await;
        }
        let batch = &self.source.batch;
        for found in matches {
            // Each pair of distinct fingerprints is found from both sides; equal ones once.
            let is_own = match found.entry.cmp(&found.query) {
                Ordering::Less => false,
                Ordering::Equal => true,
                Ordering::Greater => continue,
            };
            if is_own && batch.distinct.rows(found.query).len() == 1 {
                // Most are alone.
                continue;
            }
            let by_sketch = self.source.sketches.is_some();
            let others = copies(batch, found.entry, by_sketch);
            for (at, copies) in copies(batch, found.query, by_sketch)
                .into_iter()
                .enumerate()
            {
                let before = if is_own { at } else { others.len() };
                let with_itself = (is_own && copies.first != copies.last).then_some(copies.last);
                let bases = others[..before].iter().map(|other| other.first);
                for other in bases.chain(with_itself) {
                    if self.push_within(copies.first, other, found.distance) && !self.send().await?
                    {
                        return Ok(self.sent);
                    }
                }
            }
        }
        self.finish().await
    }

    /// Sends the pairs inside the batch of the first documents of `classes`, and those of each other document with the first of its
    /// class; returns how many.
    async fn send_class_pairs_within(
        mut self,
        classes: &Classes,
        matches: &[Match],
    ) -> Result<Sent> {
        let distinct = &self.source.batch.distinct;
        for found in matches.iter().filter(|found| found.entry <= found.query) {
            let is_own = found.entry == found.query;
            let of_entry = classes.of_fingerprint(found.entry);
            let others = |class: u32| {
                if is_own {
                    of_entry.start..class
                } else {
                    of_entry.clone()
                }
            };
            let firsts = classes.of_fingerprint(found.query).flat_map(|class| {
                others(class).map(move |other| (classes.row(class), classes.row(other)))
            });
            let rows = is_own.then(|| distinct.rows(found.entry)).into_iter();
            let with_first = rows.flatten().filter_map(|row| {
                let first = classes.row(classes.of_row(row)?);
                (first != row).then_some((row, first))
            });
            for (one, other) in firsts.chain(with_first) {
                if self.push_within(one, other, found.distance) && !self.send().await? {
                    return Ok(self.sent);
                }
            }
        }
        self.finish().await
    }

    /// Adds the pair of two rows of the batch; the row with the larger id becomes the new one. Returns whether the record batch is
    /// full.
    fn push_within(&mut self, one: u32, other: u32, distance: u32) -> bool {
        let batch = &self.source.batch;
        let (new, base) = match batch.compare_ids(one, other) {
            Ordering::Less => (other, one),
            _ => (one, other),
        };
        self.push(new, base, distance, batch.sketch(base))
    }

    /// Sends the pairs inside the batch, at most the `limit` nearest of each id; returns how many it sent and left out.
    pub(in crate::probe) async fn send_nearest_within(
        mut self,
        matches: &[Match],
        limit: usize,
    ) -> Result<(Sent, u64)> {
        let batch = &self.source.batch;
        let mut left_out = 0;
        for same_query in matches.chunk_by(|a, b| a.query == b.query) {
            for copies in copies(batch, same_query[0].query, false) {
                // The last document with an id has all others with that id and fingerprint before it.
                let new = copies.last;
                let (nearest, documents) = self.nearest_before(new, same_query, limit);
                let kept: usize = nearest.iter().map(|near| near.documents).sum();
                left_out += (documents - kept) as u64;
                for near in nearest {
                    if self.push(new, near.row, near.distance, batch.sketch(near.row))
                        && !self.send().await?
                    {
                        return Ok((self.sent, left_out));
                    }
                }
            }
        }
        Ok((self.finish().await?, left_out))
    }

    /// The `limit` nearest ids among the documents before `new`, and the number of all matching
    /// documents before `new`. The query of `matches` is the fingerprint of `new`.
    fn nearest_before(&self, new: u32, matches: &[Match], limit: usize) -> (Vec<Near>, usize) {
        let batch = &self.source.batch;
        let mut nearest: Vec<Near> = Vec::new();
        let mut documents = 0;
        for found in matches {
            // Rows of one fingerprint ascend by id, as the batch's file does, so the smallest come first.
            let row = |at| batch.distinct.row(found.entry, at);
            let all = batch.distinct.rows(found.entry).len();
            // Rows of one id have the order of their numbers.
            let is_before = |at| {
                let row = row(at);
                batch.compare_ids(row, new).then(row.cmp(&new)).is_lt()
            };
            let before = partition_point(0..all, is_before);
            documents += before;
            let mut at = 0;
            for _ in 0..limit {
                if at == before {
                    break;
                }
                let start = at;
                at = end_of_copies(batch, found.entry, start..before);
                nearest.push(Near {
                    distance: found.distance,
                    row: row(start),
                    documents: at - start,
                });
            }
        }
        if matches.len() > 1 {
            // If several fingerprints have an id, the nearest counts.
            nearest.sort_unstable_by(|a, b| {
                batch
                    .compare_ids(a.row, b.row)
                    .then(a.distance.cmp(&b.distance))
            });
            nearest.dedup_by(|next, kept| {
                let is_same = batch.compare_ids(next.row, kept.row).is_eq();
                kept.documents += if is_same { next.documents } else { 0 };
                is_same
            });
            nearest.sort_unstable_by(|a, b| {
                let by_distance = a.distance.cmp(&b.distance);
                by_distance.then_with(|| batch.compare_ids(a.row, b.row))
            });
            nearest.truncate(limit);
        }
        (nearest, documents)
    }
}

/// Documents of the batch that share id and fingerprint, and perhaps the sketch.
#[derive(Debug, Clone, Copy)]
struct Copies {
    first: u32,
    last: u32,
}

/// The copies of each id among the rows of a fingerprint, which ascend by id; with `by_sketch`, those of each id and sketch.
fn copies(batch: &Batch, entry: u32, by_sketch: bool) -> Vec<Copies> {
    let all = batch.distinct.rows(entry).len();
    let row = |at| batch.distinct.row(entry, at);
    let mut found = Vec::new();
    let mut start = 0;
    while start < all {
        let end = end_of_copies(batch, entry, start..all);
        if by_sketch && end - start > 1 {
            let mut of_sketches: HashMap<Option<&[u8]>, usize> = HashMap::new();
            for row in (start..end).map(row) {
                let at = *of_sketches.entry(batch.sketch(row)).or_insert_with(|| {
                    found.push(Copies {
                        first: row,
                        last: row,
                    });
                    found.len() - 1
                });
                found[at].last = row;
            }
        } else {
            found.push(Copies {
                first: row(start),
                last: row(end - 1),
            });
        }
        start = end;
    }
    found
}

/// The end of the copies that begin at the start of `range`. The range must not be empty; its positions count the rows of
/// the fingerprint `entry`.
fn end_of_copies(batch: &Batch, entry: u32, range: Range<usize>) -> usize {
    let first = batch.distinct.row(entry, range.start);
    let is_same = |at| {
        let other = batch.distinct.row(entry, at);
        batch.compare_ids(first, other).is_eq()
    };
    let next = range.start + 1;
    // Most ids occur once.
    if next < range.end && is_same(next) {
        partition_point(next..range.end, is_same)
    } else {
        next
    }
}

/// An id near a document of the batch.
struct Near {
    distance: u32,
    /// A row with the id.
    row: u32,
    /// How many of the matching documents have the id.
    documents: usize,
}

/// The first position of `range` for which `before` is false, or its end.
fn partition_point(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
