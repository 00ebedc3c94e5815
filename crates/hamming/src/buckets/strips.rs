//! Strips: the cache lines of a bucket that are compared before the first branch, and the list of those with survivors.

/// The most cache lines of a strip.
pub(crate) const STRIP_LINES: usize = 16;
/// Strips that are collected before their survivors are sought.
const CAPACITY: usize = 32;

/// A strip, and the queries for which it has survivors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strip {
    /// The index of the first query that the strip is compared with.
    pub(super) query: u32,
    /// The queries for which any candidate passes the first test: bit i for query `query + i`.
    pub(super) any: u32,
    /// The index of the strip's first tag.
    pub(super) start: u32,
    /// The index behind the last tag of its bucket.
    pub(super) end: u32,
}

/// A list of strips that is filled without branches: every strip is written, and the next overwrites one without
/// survivors.
#[derive(Debug)]
pub(super) struct Strips {
    strips: Box<[Strip; CAPACITY]>,
    count: usize,
}

impl Default for Strips {
    fn default() -> Self {
        Self {
            strips: Box::new([Strip::default(); CAPACITY]),
            count: 0,
        }
    }
}

impl Strips {
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds `strip` if it has survivors. Returns whether the list has room for another; if not, it must be drained.
    #[inline(always)]
    pub(super) fn push_leaves_room(&mut self, strip: Strip) -> bool {
        self.strips[self.count] = strip;
        self.count += usize::from(strip.any != 0);
        self.count < CAPACITY
    }

    /// Empties the list, and returns the strips that it held.
    #[inline(always)]
    pub(super) fn drain(&mut self) -> &[Strip] {
        &self.strips[..std::mem::take(&mut self.count)]
    }
}
