//! The walk of sorted queries through the nodes of a [`Trie`].

use super::tag_index::TagIndex;
use super::trie::{Children, DIFFERING, FEW_QUERIES, FLIP_BITS, STEP_BITS, Trie};
use crate::buckets::{Bucket, Lookups, STRIP_LINES, Tag as _, TagView};
use crate::isa::{Isa, Work};

/// The bits of a tag that are set for differing bits of the key.
const FLIPS: u32 = (1 << FLIP_BITS) - 1;
/// Tags that are copied at once.
const AT_ONCE: usize = 8;
/// Tags behind those of a key that may be read or written.
const ROOM: usize = STRIP_LINES * u32::LANES + AT_ONCE;
/// Candidates of keys before the current one whose tags are kept until their survivors are compared.
const KEPT_TAGS: usize = 1 << 14;

/// A node on the path to the current key.
#[derive(Debug)]
struct Node<T> {
    prefix: Option<u64>,
    /// The entries, and room for more.
    entries: Vec<T>,
    /// See [`Children`].
    starts: [u32; (4 << STEP_BITS) + 1],
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self {
            prefix: None,
            entries: Vec::new(),
            starts: [0; _],
        }
    }
}

impl<T: Copy + Default> Node<T> {
    /// Makes this the node with `prefix`, one of `siblings`.
    #[inline(always)]
    fn make(&mut self, siblings: &Children<'_, u64>, prefix: u64, entry: impl Fn(u64) -> T) {
        let child = siblings.step(prefix);
        let starts = &mut self.starts;
        let place = |word: u64| (word >> (64 - STEP_BITS) << 2 | word & DIFFERING) as usize;
        starts.fill(0);
        siblings.words_of(child, |word| starts[place(word)] += 1);
        let mut end = 0;
        for start in &mut *starts {
            end += *start;
            *start = end;
        }
        grow(&mut self.entries, end as usize + AT_ONCE);
        let entries = &mut self.entries[..];
        siblings.words_of(child, |word| {
            let start = &mut starts[place(word)];
            *start -= 1;
            entries[*start as usize] = entry(word);
        });
        self.prefix = Some(prefix);
    }

    /// The number of entries.
    fn len(&self) -> usize {
        self.starts[self.starts.len() - 1] as usize
    }
}

/// The nodes on the path to the current key, and the tags of its candidates.
#[derive(Debug, Default)]
pub(crate) struct Path {
    /// The trie whose nodes are held.
    trie: Option<u64>,
    /// Those above the last: the words of their entries.
    upper: Vec<Node<u64>>,
    /// The last before the key: the tags of its entries.
    last: Node<u32>,
    /// The tags of the candidates, behind those of keys before it.
    tags: Vec<u32>,
}

/// The children of `node`, or of the root.
#[inline(always)]
fn children_of<'a>(
    node: Option<&'a Node<u64>>,
    trie: &'a Trie,
    values: &'a [u64],
) -> Children<'a, u64> {
    match node {
        Some(node) => trie.below(&node.entries, &node.starts),
        None => trie.below_root(values),
    }
}

/// The tag of an entry of the last node.
#[inline(always)]
fn tag(word: u64) -> u32 {
    let behind_key = (word >> (64 - STEP_BITS - (u32::BITS - FLIP_BITS))) as u32;
    behind_key << FLIP_BITS | ((1 << (word & DIFFERING)) - 1)
}

/// Lengthens `values` to `len` if they are shorter.
#[inline(always)]
fn grow<T: Copy + Default>(values: &mut Vec<T>, len: usize) {
    if values.len() < len {
        values.resize(len, T::default());
    }
}

impl Path {
    /// Forgets the nodes of another trie.
    fn begin(&mut self, trie: &Trie) {
        if self.trie.replace(trie.number) == Some(trie.number) {
            return;
        }
        self.upper.resize_with(trie.levels.len() - 2, Node::default);
        self.upper.iter_mut().for_each(|node| node.prefix = None);
        self.last.prefix = None;
    }

    /// Appends the tags of the candidates of the first of `queries`, from `end` on, and moves `end` behind them. Returns how
    /// many leading bits the first query shares with all that have these candidates.
    #[inline(always)]
    fn gather(&mut self, trie: &Trie, values: &[u64], queries: &[u64], end: &mut usize) -> u32 {
        let Self {
            upper, last, tags, ..
        } = self;
        let [upper_bits @ .., last_bits, key_bits] = &trie.levels[..] else {
            unreachable!("keys have more bits than a step");
        };
        let first = queries[0];
        let prefix = first >> (64 - last_bits);
        if last.prefix != Some(prefix) {
            for (at, bits) in upper_bits.iter().enumerate() {
                let (above, node) = upper.split_at_mut(at);
                let prefix = first >> (64 - bits);
                if node[0].prefix != Some(prefix) {
                    let siblings = children_of(above.last(), trie, values);
                    node[0].make(&siblings, prefix, |word| word);
                }
            }
            let children = children_of(upper.last(), trie, values);
            let many = queries.get(FEW_QUERIES);
            if many.is_none_or(|query| query >> (64 - last_bits) != prefix) {
                grow(tags, *end + children.entries.len() + ROOM);
                children.words_of(children.step(prefix), |word| {
                    tags[*end] = tag(word);
                    *end += 1;
                });
                return *last_bits;
            }
            last.make(&children, prefix, tag);
        }
        grow(tags, *end + last.len() + ROOM);
        let children = trie.below(&last.entries, &last.starts);
        children.ranges_of(children.step(first >> (64 - key_bits)), |range, ones| {
            let more = (1 << ones) - 1;
            // Whole vectors are copied: most ranges are shorter than one.
            for at in range.clone().step_by(AT_ONCE) {
                let some: &[u32; AT_ONCE] = children.entries[at..].first_chunk().expect("room");
                let some = some.map(|tag| tag & !FLIPS | (tag & FLIPS) << ones | more);
                tags[*end + at - range.start..][..AT_ONCE].copy_from_slice(&some);
            }
            *end += range.len();
        });
        *key_bits
    }
}

/// Compares ascending queries with the candidates of their keys.
pub(super) struct Walk<'a, 'm> {
    pub(super) trie: &'a Trie,
    /// The values of the batch.
    pub(super) values: &'a [u64],
    pub(super) lookups: Lookups<'a, 'm, TagIndex>,
    pub(super) path: &'a mut Path,
}

impl Work for Walk<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) {
        let Self {
            trie,
            values,
            mut lookups,
            path,
        } = self;
        let scheme = trie.scheme;
        path.begin(trie);
        let chunk = lookups.queries.fingerprints;
        let (mut query, mut end) = (0, 0);
        // A chunk of several files ascends several times.
        for ascending in chunk.chunk_by(|a, b| a <= b) {
            let queries = &chunk[..query + ascending.len()];
            lookups.queries.fingerprints = queries;
            while query < queries.len() {
                if end > KEPT_TAGS {
                    let tags = &path.tags;
                    if lookups.compare_survivors(TagView { isa, tags, scheme }) {
                        return;
                    }
                    end = 0;
                }
                let start = end as u32;
                let same_bits = path.gather(trie, values, &queries[query..], &mut end);
                let bucket = Bucket {
                    start,
                    end: end as u32,
                };
                let tags = &path.tags;
                let view = TagView { isa, tags, scheme };
                let last = queries[query] | u64::MAX >> same_bits;
                match lookups.compare_run::<I, true>(view, bucket, query, last) {
                    Some(next) => query = next,
                    None => return,
                }
            }
        }
        let tags = &path.tags;
        lookups.compare_survivors(TagView { isa, tags, scheme });
    }
}
