//! Strips: the cache lines of a bucket that are compared before the first branch.

/// Most cache lines of a strip.
pub(super) const STRIP: usize = 16;
/// Strips that are collected before their candidates are looked at one by one.
const MANY: usize = 32;

/// A strip, and the queries that have candidates in it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strip {
    /// The index of the first query.
    pub(super) query: u32,
    /// For which queries a candidate passes the first test: bit i for query `query + i`.
    pub(super) any: u32,
    /// Where the strip begins.
    pub(super) start: u32,
    /// Where its bucket ends.
    pub(super) end: u32,
}

/// A branchless list of strips: each strip is written, and one without candidates is overwritten by the next.
#[derive(Debug)]
pub(super) struct Strips {
    strips: Box<[Strip; MANY]>,
    count: usize,
}

impl Default for Strips {
    fn default() -> Self {
        Self {
            strips: Box::new([Strip::default(); MANY]),
            count: 0,
        }
    }
}

impl Strips {
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a strip if any query has a candidate in it. Returns false when the list is full: it must be drained.
    #[inline(always)]
    pub(super) fn push(&mut self, strip: Strip) -> bool {
        self.strips[self.count] = strip;
        self.count += usize::from(strip.any != 0);
        self.count < MANY
    }

    /// Empties the list, and returns what it held.
    #[inline(always)]
    pub(super) fn drain(&mut self) -> &[Strip] {
        &self.strips[..std::mem::take(&mut self.count)]
    }
}
