//! Probing: the fingerprints of the archive stream past the tables, a chunk at a time.

use std::ops::Range;
use std::time::Duration;

use crate::any_tables::AnyBuffers;
use crate::isa::Kernel;
use crate::matches::{Match, Matches};
use crate::mechanism::BatchPart;
use crate::tables::Tables;

/// The most matches of one probe, repeated ones included; a chunk with more is probed in shorter pieces.
const MANY_MATCHES: usize = 1 << 20;

/// A probe takes this many of the batch's own values at once: enough for partitioning them by a table's keys to save time.
const SELF_CHUNK: usize = 1 << 18;

/// Buffers of a probe, reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Time spent so far on picking the fingerprints that are worth a lookup; 0 in designs that look up all.
    pub filtering: Duration,
    /// Time spent so far on partitioning chunks by a table's keys; 0 in designs that do not partition.
    pub partitioning: Duration,
    /// Time spent so far on lookups, and on comparing fingerprints (not texts).
    pub comparing: Duration,
    buffers: AnyBuffers,
    /// The most fingerprints to probe at once, as one piece of a chunk; 0 means no limit.
    max_piece_len: usize,
}

impl Tables {
    /// Finds every pair of a fingerprint in `chunk` and one in the batch within the design's distance.
    /// Appends each pair once, ordered by query, then entry.
    ///
    /// # Panics
    /// When `chunk` has 2³² or more fingerprints.
    pub fn probe(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) {
        let mut done = 0;
        while done < chunk.len() {
            done += self.probe_piece(kernel, chunk, done, scratch, matches);
        }
    }

    /// Probes a piece of `chunk` that begins at index `from`: short enough to have at most 2²⁰
    /// matches, or one fingerprint long. Returns the number of fingerprints probed: at least one if
    /// any is left.
    ///
    /// Appends matches as [`Self::probe`] does. A caller that consumes them between two calls bounds its memory.
    ///
    /// # Panics
    /// When `chunk` has 2³² or more fingerprints, or fewer than `from`.
    pub fn probe_piece(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        self.probe_bounded(kernel, (chunk, None), from, scratch, matches)
    }

    /// Probes the batch's own values in `range`, from index `from` of the range on, as
    /// [`Self::probe_piece`] does. It is faster for `halves`, `variants-N` and `trie`: their tables leave
    /// out each value's match with itself, and this function adds it.
    ///
    /// The `query` of a match counts from the start of `range`. If the tables index both values of
    /// a pair and both are in `range`, the pair is appended twice: each value is once the query and
    /// once the entry. One call appends all matches of a query.
    ///
    /// # Panics
    /// When `range` reaches beyond the batch's values, or `from` beyond `range`.
    pub fn probe_self(
        &self,
        kernel: Kernel,
        range: Range<usize>,
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        let self_start = self.by_mechanism().repeat_pairs().then_some(range.start);
        let most = self_start.map_or_else(|| self.chunk_len(), |_| SELF_CHUNK);
        let chunk = &self.batch().values()[range];
        let chunk = &chunk[..chunk.len().min(from + most)];
        let before = matches.len();
        let done = self.probe_bounded(kernel, (chunk, self_start), from, scratch, matches);
        let Some(self_start) = self_start.filter(|_| !self.part().is_empty()) else {
            return done;
        };
        // The probe left out each value's match with itself: insert it in order.
        let found = matches.split_off(before);
        let mut found = found.into_iter().peekable();
        for query in from..from + done {
            let itself = Match {
                query: query as u32,
                entry: (self_start + query) as u32,
                distance: 0,
            };
            matches.extend(std::iter::from_fn(|| {
                found.next_if(|other| *other < itself)
            }));
            if self.part().contains(&(self_start + query)) {
                matches.push(itself);
            }
        }
        matches.extend(found);
        done
    }

    /// Probes as [`Self::probe_piece`] does. If the chunk consists of the batch's own values,
    /// `self_start` is the index of `chunk[0]` in the batch, and the probe leaves out each value's
    /// match with itself.
    fn probe_bounded(
        &self,
        kernel: Kernel,
        (chunk, self_start): (&[u64], Option<usize>),
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        assert!(
            u32::try_from(chunk.len()).is_ok(),
            "a chunk has less than 2^32 fingerprints"
        );
        let rest = &chunk[from..];
        let self_start = self_start.map(|start| start + from);
        if self.part().is_empty() {
            return rest.len();
        }
        // The piece length that one chunk needed most likely suits the next: start from it, and double it for the one
        // after.
        let allowed = match scratch.max_piece_len {
            0 => usize::MAX,
            allowed => allowed,
        };
        scratch.max_piece_len = allowed.saturating_mul(2);
        let mut piece_len = rest.len().min(allowed);
        let before = matches.len();
        loop {
            let limit = match piece_len {
                1 => usize::MAX,
                _ => before + MANY_MATCHES,
            };
            let mut found = Matches::new(matches, limit);
            self.probe_at_once(kernel, &rest[..piece_len], self_start, scratch, &mut found);
            if !found.is_full() {
                break;
            }
            matches.truncate(before);
            piece_len = piece_len.div_ceil(2);
            scratch.max_piece_len = piece_len;
        }
        let new = &mut matches[before..];
        for found in &mut *new {
            found.query += from as u32;
        }
        // One comparison for both: they determine the distance.
        new.sort_unstable_by_key(|found| u64::from(found.query) << 32 | u64::from(found.entry));
        if self.by_mechanism().repeat_pairs() {
            let mut kept = before;
            for at in before..matches.len() {
                if kept == before || matches[kept - 1] != matches[at] {
                    matches[kept] = matches[at];
                    kept += 1;
                }
            }
            matches.truncate(kept);
        }
        piece_len
    }

    /// Appends all matches of `chunk`, until `matches` is full: in any order, and perhaps more than once.
    fn probe_at_once(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        self_start: Option<usize>,
        scratch: &mut Scratch,
        matches: &mut Matches<'_>,
    ) {
        let part = BatchPart {
            values: self.values(),
            first: self.part().start,
            self_start,
            max_distance: self.design().max_distance(),
        };
        let times = self
            .by_mechanism()
            .probe(kernel, &part, chunk, &mut scratch.buffers, matches);
        scratch.filtering += times.filtering;
        scratch.partitioning += times.partitioning;
        scratch.comparing += times.comparing;
    }
}
