//! The leading block of the design `trie`: the candidates of a key are not stored but gathered while sorted queries go by.
//!
//! The keys form a trie. A node stands for the keys that begin with its prefix, and holds the entries whose own leading
//! bits differ from the prefix in at most the radius; the entries of a child are among those of its parent. Sorted
//! queries visit the trie in order, so each node is made once, from its parent, and only the nodes on the path to the
//! current key are held. A table would hold as many tags as all keys have candidates together: with a radius of 3, two
//! thousand times the entries.

use std::sync::atomic::{AtomicU64, Ordering};

use super::tag_index::TagIndex;
use crate::ball::{self, volume};
use crate::buckets::{CACHE_LINE_NS, Field, Tag as _, TagScheme, TagTest};
use crate::design::Block;

/// By how many bits the prefix of a node is longer than its parent's, except below the root.
pub(super) const STEP_BITS: u32 = 6;
/// The largest radius. A tag has as many bits for it; one is set for each bit of the key that differs.
pub(super) const FLIP_BITS: u32 = 3;
/// The lowest bits of a word, see [`Children::words_of`]: how many bits of its entry's prefix differ.
pub(super) const DIFFERING: u64 = 3;
/// The last node before the keys is made if more than this many queries are below it; a smaller number is compared with
/// all its entries.
pub(super) const FEW_QUERIES: usize = 8;

/// Keys have the fewest bits that leave a query at most this many candidates, if the block has as many.
const CANDIDATES: f64 = 160.0;
const MIN_KEY_BITS: u32 = 12;
/// Gathering and sorting one entry of a node, in nanoseconds.
const ENTRY_NS: f64 = 4.0;
/// Gathering the candidates of a key, in nanoseconds.
const KEY_NS: f64 = 90.0;

/// The entries by which the nodes are made.
#[derive(Debug)]
pub(super) struct Trie {
    /// Tells this trie from every other: buffers of a probe outlive it.
    pub(super) number: u64,
    /// The lengths of prefixes, from those of the root's children to the keys.
    pub(super) levels: Vec<u32>,
    pub(super) scheme: TagScheme,
    pub(super) tag_index: TagIndex,
    radius: u32,
    /// Where the entries of a child of the root begin, as in [`Children`].
    root_starts: Vec<u32>,
    /// The differences of a step's bits within the radius, those of fewer bits first: of the root's step, and of others.
    flips: [Vec<u32>; 2],
}

impl Trie {
    /// The trie of `block`, the leading one, over `values`, which are ascending.
    pub(super) fn build(values: &[u64], block: &Block, max_distance: u32) -> Self {
        let levels = levels(block, values.len());
        let (first, key_bits) = (levels[0], levels[levels.len() - 1]);
        assert!(
            block.radius <= FLIP_BITS,
            "a tag counts up to {FLIP_BITS} differing bits"
        );
        let all = TagTest {
            mask: !0,
            limit: max_distance,
        };
        let scheme = TagScheme {
            field: Field {
                before: key_bits,
                bits: u32::BITS - FLIP_BITS,
            },
            flip_bits: FLIP_BITS,
            first: all,
            second: all,
        };
        let root_start = |place: u64| {
            // Nothing differs from an empty prefix: the first of a child's four kinds has all entries.
            let child = place.div_ceil(4);
            values.partition_point(|value| value >> (64 - first) < child) as u32
        };
        static TRIES: AtomicU64 = AtomicU64::new(0);
        Self {
            number: TRIES.fetch_add(1, Ordering::Relaxed),
            scheme,
            tag_index: TagIndex::build(values, scheme.field),
            radius: block.radius,
            root_starts: (0..=4 << first).map(root_start).collect(),
            flips: [first, STEP_BITS].map(|bits| ball::flips_by_ones(bits, block.radius)),
            levels,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.tag_index.bytes() + size_of_val(&self.root_starts[..])
    }

    /// The children of the root, whose entries are `values`.
    pub(super) fn below_root<'a>(&'a self, values: &'a [u64]) -> Children<'a, u64> {
        Children {
            entries: values,
            starts: &self.root_starts,
            flips: &self.flips[0],
            step_bits: self.levels[0],
            radius: self.radius,
            differing: 0,
        }
    }

    /// The children of another node.
    pub(super) fn below<'a, T>(&'a self, entries: &'a [T], starts: &'a [u32]) -> Children<'a, T> {
        Children {
            entries,
            starts,
            flips: &self.flips[1],
            step_bits: STEP_BITS,
            radius: self.radius,
            differing: DIFFERING,
        }
    }
}

/// The entries of a node, from which its children are made.
///
/// The node sorts its entries by the bits of the next step, `b`, then by the number of bits in which they differ from the
/// node's prefix, `d`. The entries of each `b` and `d` begin at `starts[4 * b + d]`.
#[derive(Clone, Copy)]
pub(super) struct Children<'a, T> {
    pub(super) entries: &'a [T],
    starts: &'a [u32],
    flips: &'a [u32],
    step_bits: u32,
    radius: u32,
    /// The bits of a word that count differing bits; none below the root.
    differing: u64,
}

impl<T> Children<'_, T> {
    /// The bits of the step to the child that is on the path to the keys that begin with `prefix`.
    #[inline(always)]
    pub(super) fn step(&self, prefix: u64) -> u32 {
        prefix as u32 & ((1 << self.step_bits) - 1)
    }

    /// Calls `each` with the ranges of those entries that a child has, too, and the number of bits in which their step
    /// differs from the child's.
    #[inline(always)]
    pub(super) fn ranges_of(&self, child: u32, mut each: impl FnMut(std::ops::Range<usize>, u32)) {
        for flip in self.flips {
            let ones = flip.count_ones();
            let from = (child ^ flip) as usize * 4;
            let to = from + (self.radius - ones) as usize + 1;
            each(self.starts[from] as usize..self.starts[to] as usize, ones);
        }
    }
}

impl Children<'_, u64> {
    /// Calls `each` with the word of every entry of a child: the bits behind its prefix, and in the lowest bits the number
    /// of bits of the prefix that differ.
    #[inline(always)]
    pub(super) fn words_of(&self, child: u32, mut each: impl FnMut(u64)) {
        self.ranges_of(child, |range, ones| {
            for &word in &self.entries[range] {
                let differing = (word & self.differing) + u64::from(ones);
                each((word & !self.differing) << self.step_bits | differing);
            }
        });
    }
}

/// The lengths of prefixes over `entries` entries.
fn levels(block: &Block, entries: usize) -> Vec<u32> {
    let few = |bits: &u32| held(block, entries, *bits) <= CANDIDATES;
    let most = block.mask.count_ones();
    let key_bits = (MIN_KEY_BITS..most).find(few).unwrap_or(most);
    // The root's step has 3 to 8 bits: a word needs two for its count, and one level more would cost more.
    let first = (key_bits - 3) % STEP_BITS + 3;
    (first..=key_bits).step_by(STEP_BITS as usize).collect()
}

/// The entries of a node with a prefix of `bits` bits, on average.
fn held(block: &Block, entries: usize, bits: u32) -> f64 {
    entries as f64 * volume(bits, block.radius) / 2f64.powi(bits.cast_signed())
}

/// Bytes over `entries` entries: of the index of their tags, and of the path of each of `threads` threads. A node may hold all
/// entries, if they are related.
pub(super) fn bytes_for(block: &Block, entries: usize, threads: usize) -> usize {
    let upper = levels(block, entries).len() - 2;
    let path = entries * (size_of::<u64>() * upper + 2 * size_of::<u32>());
    TagIndex::bytes_for(entries).saturating_add(path.saturating_mul(threads))
}

/// Describes the trie of a block in a few words.
pub(super) fn describe(block: &Block, entries: usize) -> String {
    let key_bits = levels(block, entries).pop().unwrap_or(0);
    let candidates = held(block, entries, key_bits);
    format!("a trie of {key_bits} bits with {candidates:.1} candidates")
}

/// The candidates of one query, and its cost in nanoseconds, if `sorted_run` queries follow in ascending order.
pub(super) fn predict(block: &Block, entries: usize, sorted_run: u64) -> (f64, f64) {
    let run = sorted_run.max(1) as f64;
    let levels = levels(block, entries);
    let visited = |bits: u32| run.min(2f64.powi(bits.cast_signed()));
    let [.., last, key_bits] = levels[..] else {
        unreachable!("keys have more bits than a step");
    };
    let nodes: f64 = (levels.iter().filter(|&&bits| bits <= last))
        .map(|&bits| ENTRY_NS * held(block, entries, bits) * visited(bits))
        .sum();
    let (compared_bits, keys) = if run < FEW_QUERIES as f64 * visited(last) {
        (last, 0.0)
    } else {
        (key_bits, KEY_NS * visited(key_bits))
    };
    let candidates = held(block, entries, compared_bits);
    let lines = candidates / u32::LANES as f64 + 0.5;
    (candidates, (nodes + keys) / run + CACHE_LINE_NS * lines)
}
