//! Probing: the fingerprints of the archive stream past the tables, a chunk at a time.

use std::ops::Range;
use std::time::Duration;

use crate::index::Buffers;
use crate::isa::Kernel;
use crate::matches::{Match, Matches};
use crate::mechanism::BatchPart;
use crate::tables::Tables;

/// Most matches of one probe, repeated ones included; a chunk with more is probed in shorter pieces.
const MANY_MATCHES: usize = 1 << 20;

/// Buffers of a probe, reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Time spent so far on picking the fingerprints that are worth a lookup; 0 in designs that look up all.
    pub filtering: Duration,
    /// Time spent so far on bringing fingerprints into the order of a table; 0 in designs that do not.
    pub partitioning: Duration,
    /// Time spent so far on lookups and comparisons of fingerprints, not on verified pairs.
    pub verifying: Duration,
    buffers: Buffers,
    /// Most fingerprints to probe at once; 0 is no limit.
    together: usize,
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
            done += self.probe_some(kernel, chunk, done, scratch, matches);
        }
    }

    /// As [`Self::probe`], from index `from` on, but stops after a bounded number of matches, though not before the first
    /// fingerprint is done. Returns how many fingerprints it probed.
    ///
    /// A caller that consumes the matches between two calls bounds its memory.
    ///
    /// # Panics
    /// When `chunk` has 2³² or more fingerprints, or less than `from`.
    pub fn probe_some(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        self.probe_bounded(kernel, (chunk, None), from, scratch, matches)
    }

    /// Probes the batch's own values in `range`, as [`Self::probe_some`] would, but faster: a value's match with itself needs
    /// no lookup. The `query` of a match is an index into `range`; all matches of a query come from one call.
    ///
    /// # Panics
    /// When `range` reaches beyond the batch's values, or `from` beyond `range`.
    pub fn probe_own(
        &self,
        kernel: Kernel,
        range: Range<usize>,
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        let own_chunk = self.index().own_chunk_len();
        let own = own_chunk.map(|_| range.start);
        let most = own_chunk.unwrap_or_else(|| self.chunk_len());
        let chunk = &self.batch().values()[range];
        let chunk = &chunk[..chunk.len().min(from + most)];
        let before = matches.len();
        let done = self.probe_bounded(kernel, (chunk, own), from, scratch, matches);
        let Some(own) = own.filter(|_| !self.part().is_empty()) else {
            return done;
        };
        // The probe left out each value's match with itself: insert it in order.
        let found = matches.split_off(before);
        let mut found = found.into_iter().peekable();
        for query in from..from + done {
            let itself = Match {
                query: query as u32,
                entry: (own + query) as u32,
                distance: 0,
            };
            matches.extend(std::iter::from_fn(|| {
                found.next_if(|other| *other < itself)
            }));
            if self.part().contains(&(own + query)) {
                matches.push(itself);
            }
        }
        matches.extend(found);
        done
    }

    /// As [`Self::probe_some`]. If the chunk is of the batch's own values, `own` is the index of `chunk[0]` in the batch, and
    /// each value's match with itself is left out.
    fn probe_bounded(
        &self,
        kernel: Kernel,
        (chunk, own): (&[u64], Option<usize>),
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        assert!(
            u32::try_from(chunk.len()).is_ok(),
            "a chunk has less than 2^32 fingerprints"
        );
        let rest = &chunk[from..];
        let own = own.map(|own| own + from);
        if self.part().is_empty() {
            return rest.len();
        }
        // The limit that one chunk needed most likely suits the next: start from it, and double it for the one after.
        let allowed = match scratch.together {
            0 => usize::MAX,
            allowed => allowed,
        };
        scratch.together = allowed.saturating_mul(2);
        let mut together = rest.len().min(allowed);
        let before = matches.len();
        loop {
            let most = match together {
                1 => usize::MAX,
                _ => before + MANY_MATCHES,
            };
            let mut found = Matches::new(matches, most);
            self.probe_at_once(kernel, &rest[..together], own, scratch, &mut found);
            if !found.is_full() {
                break;
            }
            matches.truncate(before);
            together = together.div_ceil(2);
            scratch.together = together;
        }
        let new = &mut matches[before..];
        for found in &mut *new {
            found.query += from as u32;
        }
        new.sort_unstable();
        if self.index().repeats_pairs() {
            let mut kept = before;
            for at in before..matches.len() {
                if kept == before || matches[kept - 1] != matches[at] {
                    matches[kept] = matches[at];
                    kept += 1;
                }
            }
            matches.truncate(kept);
        }
        together
    }

    /// Appends all matches of a chunk, in no order and some repeatedly, until `matches` is full.
    fn probe_at_once(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        own: Option<usize>,
        scratch: &mut Scratch,
        matches: &mut Matches<'_>,
    ) {
        let part = BatchPart {
            values: self.values(),
            first: self.part().start,
            own,
            max_distance: self.design().max_distance(),
        };
        let times = self
            .index()
            .probe(kernel, &part, chunk, &mut scratch.buffers, matches);
        scratch.filtering += times.filtering;
        scratch.partitioning += times.partitioning;
        scratch.verifying += times.verifying;
    }
}
