//! The lower quarters that pass beside one upper quarter.

use super::dense::Lead;

/// 2¹⁶ bits, in the first-level cache.
#[derive(Debug)]
pub(crate) struct RunMap {
    words: Box<[u64; 1024]>,
}

impl Default for RunMap {
    fn default() -> Self {
        Self {
            words: Box::new([0; 1024]),
        }
    }
}

impl RunMap {
    /// Marks the lower quarters with which `upper` is within 1 bit of an entry. False, and nothing useful, when there are so
    /// many entries that the map is not worth it.
    pub(crate) fn fill(&mut self, lead: &Lead, upper: u16) -> bool {
        let flipped = || (0..16).map(|bit| lead.of(upper ^ 1 << bit));
        let own = lead.of(upper);
        if 17 * own.len() + flipped().map(<[u32]>::len).sum::<usize>() > 1 << 14 {
            return false;
        }
        self.words.fill(0);
        for &next in own {
            let lower = (next >> 16) as u16;
            self.mark(lower);
            (0..16).for_each(|bit| self.mark(lower ^ 1 << bit));
        }
        for &next in flipped().flatten() {
            self.mark((next >> 16) as u16);
        }
        true
    }

    #[inline(always)]
    fn mark(&mut self, lower: u16) {
        self.words[usize::from(lower) / 64] |= 1 << (lower % 64);
    }

    #[inline(always)]
    pub(crate) fn marks(&self, lower: u16) -> bool {
        self.words[usize::from(lower) / 64] >> (lower % 64) & 1 == 1
    }
}
