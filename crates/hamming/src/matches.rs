//! What a probe reports: pairs of a query and an entry.

/// A fingerprint of the chunk and one of the batch that are within the design's distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// Index of the fingerprint in the chunk.
    pub query: u32,
    /// Index into [`crate::Distinct::values`] of the batch.
    pub entry: u32,
    /// Number of bits in which the two differ.
    pub distance: u32,
}

/// The matches of one probe. When there are more than `limit`, the probe gives up.
#[derive(Debug)]
pub(crate) struct Matches<'a> {
    matches: &'a mut Vec<Match>,
    limit: usize,
}

impl<'a> Matches<'a> {
    /// Appends to `matches`. It is full once it holds more than `limit` matches, counting those it
    /// already holds.
    pub(crate) fn new(matches: &'a mut Vec<Match>, limit: usize) -> Self {
        Self { matches, limit }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, found: Match) {
        self.matches.push(found);
    }

    /// Whether there are more matches than the limit, so that the probe should give up.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.matches.len() > self.limit
    }
}
