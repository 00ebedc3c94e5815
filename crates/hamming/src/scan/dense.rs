//! The scan of an archive so dense that many of its fingerprints share their leading 16 bits.
//!
//! There the cut need not be in the middle. Of a pair within 3 bits either the trailing 28 bits agree, or at most 2 of
//! the leading 36 differ (Σ(rᵢ + 1) = 1 + 3 > 3). The trailing bits cost one access to a small filter; the leading ones
//! nothing but the making of a map for each run of fingerprints with the same 16 bits: a bit for each value of the
//! next 20 bits with which they are within 2 bits of an entry. In ascending order that map is read in order.
//! One in 50 passes either, for a batch of a million; these are scanned by halves.
//!
//! Where the runs are shorter, the map is over fewer bits: it is made faster, fits into a nearer cache, and more pass.

use std::ops::RangeInclusive;

use crate::design::Design;
use crate::kernels::{Compare, Kernel, Work};
use crate::memory::Array;
use crate::probe::prefetch_far;
use crate::scan::pick;

/// Leading bits of a run.
pub(crate) const RUN_BITS: u32 = 16;
/// Bits of a fingerprint that a map is over, next to those.
const MAP_BITS: RangeInclusive<u32> = 17..=20;
/// Trailing bits: those that no map is over.
pub(crate) const TAIL_BITS: u32 = 64 - RUN_BITS - *MAP_BITS.end();
/// Words of the largest map.
const WORDS: usize = 1 << (*MAP_BITS.end() - WORD_BITS);
/// Bits of a map that are one word.
pub(crate) const WORD_BITS: u32 = 6;
/// Entries of a run that are copied at once, and room behind the last run's.
const SHORT: usize = 32;
/// Entries to a word of the filter.
const WORD_ENTRIES: usize = 4;

/// A Bloom filter over the trailing bits of the entries: three bits of one word each, so that a look takes one access.
/// One in 200 fingerprints passes for nothing.
#[derive(Debug)]
pub(crate) struct Tail {
    word_bits: u32,
    words: Array<u64>,
}

impl Tail {
    fn word_bits(entries: usize) -> u32 {
        let words = (entries / WORD_ENTRIES).max(1).next_power_of_two();
        words.ilog2().min(TAIL_BITS - 6)
    }

    /// Bytes for a batch of so many entries.
    pub(crate) fn bytes_for(entries: usize) -> usize {
        8 << Self::word_bits(entries)
    }

    /// Of the batch in order.
    pub(crate) fn build(entries: &[u64]) -> Self {
        let word_bits = Self::word_bits(entries.len());
        let mut words = Array::<u64>::zeroed(1 << word_bits);
        let filled: &mut [u64] = &mut words;
        for &entry in entries {
            let (word, bits) = place(entry, word_bits);
            for bit in bits {
                filled[word] |= 1u64.wrapping_shl(bit);
            }
        }
        Self { word_bits, words }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes()
    }
}

/// The word of a fingerprint's trailing bits, and three bits there, each in the lower 6 bits of a number: shifts take no more
/// of it. All depend on trailing bits only.
#[inline(always)]
fn place(fingerprint: u64, word_bits: u32) -> (usize, [u32; 3]) {
    let word = fingerprint & ((1 << word_bits) - 1);
    let low = (fingerprint >> word_bits) as u32;
    let high = (fingerprint >> (TAIL_BITS - 6)) as u32;
    let both = low ^ (fingerprint >> (TAIL_BITS - 7)) as u32;
    (word as usize, [low, high, both])
}

/// What the entries have behind their leading [`RUN_BITS`]: the next 32 bits, by those.
#[derive(Debug)]
pub(crate) struct Lead {
    starts: Array<u32>,
    next: Array<u32>,
}

impl Lead {
    /// Bytes for a batch of so many entries.
    pub(crate) fn bytes_for(entries: usize) -> usize {
        4 * (entries + SHORT + (1 << RUN_BITS) + 1)
    }

    /// Of the batch in order.
    pub(crate) fn build(entries: &[u64]) -> Self {
        let mut starts = Array::<u32>::zeroed((1 << RUN_BITS) + 1);
        let mut next = Array::<u32>::zeroed(entries.len() + SHORT);
        let mut run = 0;
        for (at, (&entry, next)) in entries.iter().zip(next.iter_mut()).enumerate() {
            *next = (entry >> (32 - RUN_BITS)) as u32;
            let of = (entry >> (64 - RUN_BITS)) as usize;
            while run < of {
                run += 1;
                starts[run] = at as u32;
            }
        }
        starts[run + 1..].fill(entries.len() as u32);
        Self { starts, next }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.starts.bytes() + self.next.bytes()
    }

    /// Where the entries of a run are.
    #[inline(always)]
    fn range(&self, run: u16) -> (usize, usize) {
        let run = usize::from(run);
        (self.starts[run] as usize, self.starts[run + 1] as usize)
    }

    /// What the entries of a run have behind its bits.
    #[inline(always)]
    pub(super) fn of(&self, run: u16) -> &[u32] {
        let (start, end) = self.range(run);
        &self.next[start..end]
    }

    /// The entries of several runs, one behind the other. Where runs are short, none of it depends on how short: every
    /// wrong guess would cost as much as the marks of a run.
    #[inline(always)]
    fn gather<'a>(&self, runs: impl Iterator<Item = u16>, gathered: &'a mut Vec<u32>) -> &'a [u32] {
        let next: &[u32] = &self.next;
        let mut count = 0;
        for run in runs {
            let (start, end) = self.range(run);
            let length = end - start;
            if gathered.len() < count + length + SHORT {
                gathered.resize(2 * (count + length + SHORT), 0);
            }
            gathered[count..count + SHORT].copy_from_slice(&next[start..start + SHORT]);
            if length > SHORT {
                gathered[count + SHORT..count + length].copy_from_slice(&next[start + SHORT..end]);
            }
            count += length;
        }
        &gathered[..count]
    }
}

/// Finding the entries that the map of a run is made of, in nanoseconds.
const RUN_NS: f64 = 2500.0;
/// Clearing a byte of a map.
const CLEAR_NS: f64 = 0.011;
/// What passes is scanned by halves and looked up: by lines, and by bitmaps.
const PASS_NS: [f64; 2] = [40.0, 90.0];
/// What a scan of everything by halves takes longer than this one without all that: by lines, and by bitmaps.
const WORTH_NS: [f64; 2] = [7.0, 20.0];

/// How many bits the maps for `chunk` are best over; none when it is not in order, or not so dense that maps of its runs
/// are worth it. The batch has so many `entries`, its halves in `bitmaps` or in lines.
pub(crate) fn map_bits(
    chunk: &[u64],
    design: &Design,
    entries: usize,
    bitmaps: bool,
) -> Option<u32> {
    let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
        return None;
    };
    // The radius holds for the distance of 3 that the cut is for, and below.
    if last < first || design.max_distance() > 3 {
        return None;
    }
    let span = ((last - first) as f64).max(1.0);
    let of_run = chunk.len() as f64 / span * 2f64.powi(64 - RUN_BITS.cast_signed());
    let by = usize::from(bitmaps);
    let entries = entries as f64;
    let cost = |bits: u32| {
        let marks = entries / f64::from(1u32 << RUN_BITS) * f64::from(marks(bits));
        // From 2¹⁹ bits on they are in the second-level cache.
        let mark = [0.6, 1.0][usize::from(bits > 18)];
        let run = RUN_NS + CLEAR_NS * f64::from(1u32 << (bits - 3)) + mark * marks;
        let lead = RUN_BITS + bits;
        let near = f64::from(1 + lead + lead * (lead - 1) / 2) / 2f64.powi(lead.cast_signed());
        run / of_run + PASS_NS[by] * (entries * near).min(1.0)
    };
    let costs = MAP_BITS.map(|bits| (bits, cost(bits)));
    let best = costs.min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.filter(|(_, cost)| *cost < WORTH_NS[by])
        .map(|(bits, _)| bits)
}

/// Words that are changed for an entry, in all maps over so many bits together.
const fn marks(bits: u32) -> u32 {
    let high = bits - WORD_BITS;
    let own = 1 + high + high * (high - 1) / 2;
    own + RUN_BITS * (1 + high) + RUN_BITS * (RUN_BITS - 1) / 2
}

/// What is within one or two bits of the bit of a word.
const BALLS: [[u64; 64]; 2] = {
    let mut balls = [[0; 64]; 2];
    let mut bit = 0;
    while bit < 64 {
        let mut other = 0;
        while other < 64 {
            let distance = (bit ^ other as usize).count_ones();
            if distance <= 1 {
                balls[0][bit] |= 1 << other;
            }
            if distance <= 2 {
                balls[1][bit] |= 1 << other;
            }
            other += 1;
        }
        bit += 1;
    }
    balls
};

/// Pairs of 16 bits, those of lower bits first.
const PAIRS: [u16; 120] = {
    let mut pairs = [0; 120];
    let (mut at, mut upper) = (0, 0);
    while upper < 16 {
        let mut lower = 0;
        while lower < upper {
            pairs[at] = 1 << upper | 1 << lower;
            at += 1;
            lower += 1;
        }
        upper += 1;
    }
    pairs
};

/// The map of one run, reused from run to run.
#[derive(Debug)]
pub(crate) struct LeadMap {
    /// Which tables' entries are marked, for which leading bits, over how many.
    made_of: Option<(u64, u16, u32)>,
    words: Array<u64>,
    gathered: Vec<u32>,
}

impl Default for LeadMap {
    fn default() -> Self {
        Self {
            made_of: None,
            words: Array::zeroed(WORDS),
            gathered: Vec::new(),
        }
    }
}

impl LeadMap {
    /// Adds the indexes of those in `chunk` that are within 2 bits of an entry on the leading part, or may have the
    /// trailing part of one. `tables` tells their tables from others.
    pub(crate) fn scan(
        &mut self,
        kernel: Kernel,
        (tables, lead, tail): (u64, &Lead, &Tail),
        bits: u32,
        chunk: &[u64],
        indexes: &mut Vec<u32>,
    ) {
        let mut first = 0;
        while let Some(&begin) = chunk.get(first) {
            let run = (begin >> (64 - RUN_BITS)) as u16;
            let same = |fingerprint: &u64| (fingerprint ^ begin) >> (64 - RUN_BITS) == 0;
            let rest = &chunk[first..];
            let of_run = &rest[..rest.partition_point(same).max(1)];
            let begin = first as u32;
            first += of_run.len();
            let differences = of_run.iter().fold(0, |all, f| all | f ^ of_run[0]);
            if differences >> (64 - RUN_BITS) != 0 {
                // They are in no order.
                indexes.extend(begin..first as u32);
                continue;
            }
            let made_of = (tables, run, bits);
            if self.made_of.replace(made_of) != Some(made_of) {
                macro_rules! mark {
                    ($high:literal) => {
                        kernel.run(Mark::<$high> {
                            words: &mut self.words,
                            lead,
                            run,
                            gathered: &mut self.gathered,
                        })
                    };
                }
                match bits - WORD_BITS {
                    11 => mark!(11),
                    12 => mark!(12),
                    13 => mark!(13),
                    _ => mark!(14),
                }
            }
            kernel.run(Near {
                words: &self.words,
                tail,
                bits,
                run: of_run,
                first: begin,
                indexes,
            });
        }
    }
}

/// Makes the map of a run, over `HIGH` and [`WORD_BITS`] bits.
struct Mark<'a, const HIGH: u32> {
    words: &'a mut [u64],
    lead: &'a Lead,
    run: u16,
    gathered: &'a mut Vec<u32>,
}

impl<const HIGH: u32> Work for Mark<'_, HIGH> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self {
            words,
            lead,
            run,
            gathered,
        } = self;
        // Loops over indexes: iterators of closures are calls here, and took three times as long.
        let mut at = 0;
        while at < RUN_BITS as usize + PAIRS.len() {
            let other = match at.checked_sub(RUN_BITS as usize) {
                None => run ^ 1 << at,
                Some(pair) => run ^ PAIRS[pair],
            };
            let (start, end) = lead.range(other);
            prefetch_far(&lead.next, start);
            prefetch_far(&lead.next, end);
            at += 1;
        }
        let words = &mut words[..1 << HIGH];
        words.fill(0);
        for &next in lead.of(run) {
            let (word, bit) = place_in_map::<HIGH>(next);
            let (alone, ball) = (1 << bit, BALLS[0][bit]);
            mark::<HIGH>(words, word, BALLS[1][bit]);
            let mut one = 0;
            while one < HIGH {
                mark::<HIGH>(words, word ^ 1 << one, ball);
                let mut other = 0;
                while other < one {
                    mark::<HIGH>(words, word ^ 1 << one ^ 1 << other, alone);
                    other += 1;
                }
                one += 1;
            }
        }
        // Bits that differ in the run's part leave so many fewer for the map's.
        for &next in lead.gather((0..RUN_BITS).map(|bit| run ^ 1 << bit), gathered) {
            let (word, bit) = place_in_map::<HIGH>(next);
            mark::<HIGH>(words, word, BALLS[0][bit]);
            let mut one = 0;
            while one < HIGH {
                mark::<HIGH>(words, word ^ 1 << one, 1 << bit);
                one += 1;
            }
        }
        for &next in lead.gather(PAIRS.iter().map(|pair| run ^ pair), gathered) {
            let (word, bit) = place_in_map::<HIGH>(next);
            mark::<HIGH>(words, word, 1 << bit);
        }
    }
}

/// The word and the bit of what follows an entry's leading bits, in a map over `HIGH` and [`WORD_BITS`] bits.
#[inline(always)]
fn place_in_map<const HIGH: u32>(next: u32) -> (usize, usize) {
    let value = next >> (32 - HIGH - WORD_BITS);
    ((value >> WORD_BITS) as usize, (value % 64) as usize)
}

#[inline(always)]
fn mark<const HIGH: u32>(words: &mut [u64], word: usize, marks: u64) {
    debug_assert!(words.len() == 1 << HIGH && word < words.len());
    // SAFETY: the words of `place_in_map` have HIGH bits, so have they with some of these flipped; and the map has as many words.
    unsafe { *words.get_unchecked_mut(word) |= marks };
}

/// Picks of a run what is near on either part.
struct Near<'a> {
    words: &'a [u64],
    tail: &'a Tail,
    bits: u32,
    run: &'a [u64],
    first: u32,
    indexes: &'a mut Vec<u32>,
}

impl Work for Near<'_> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let tail = &self.tail.words[..1 << self.tail.word_bits];
        let look = Look::new(self.words, self.bits, tail);
        let word_bits = look.word_bits();
        let fetch = |f| prefetch_far(tail, place(f, word_bits).0);
        pick(
            self.run,
            self.first as usize,
            self.indexes,
            fetch,
            |block| {
                // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                unsafe { C::marked(&look, block) }
            },
        );
    }
}

/// What the fingerprints of a run are looked up in.
pub(crate) struct Look<'a> {
    map: &'a [u64; WORDS],
    bits: u32,
    tail: &'a [u64],
}

impl<'a> Look<'a> {
    /// A bit of `map` for each value of the `bits` bits behind a run's; and the words of [`Tail`].
    ///
    /// # Panics
    /// When it is no map, has more bits than that, or the words are not a power of two: kernels rely on it.
    #[inline(always)]
    fn new(map: &'a [u64], bits: u32, tail: &'a [u64]) -> Self {
        assert!(bits <= *MAP_BITS.end() && tail.len().is_power_of_two());
        let map = map.try_into().expect("a map");
        Self { map, bits, tail }
    }

    /// Bits of a fingerprint that say which word of the tail is its own.
    #[inline(always)]
    pub(crate) fn word_bits(&self) -> u32 {
        self.tail.len().trailing_zeros()
    }

    /// Whether the map or the tail has a fingerprint.
    #[inline(always)]
    pub(crate) fn marks(&self, fingerprint: u64) -> bool {
        let value = (fingerprint << RUN_BITS) >> (64 - self.bits);
        let marked = self.map[(value >> WORD_BITS) as usize % WORDS].wrapping_shr(value as u32);
        let (word, [a, b, c]) = place(fingerprint, self.word_bits());
        let word = self.tail[word];
        let all = word.wrapping_shr(a) & word.wrapping_shr(b) & word.wrapping_shr(c);
        (marked | all) & 1 == 1
    }
}

/// For kernels that gather.
#[cfg(target_arch = "x86_64")]
impl Look<'_> {
    #[inline(always)]
    pub(crate) fn map(&self) -> &[u64; WORDS] {
        self.map
    }

    #[inline(always)]
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    #[inline(always)]
    pub(crate) fn tail(&self) -> &[u64] {
        self.tail
    }
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom as _;
    use rand::{Rng as _, RngCore as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn maps_and_filter_pass_what_is_near() {
        for entries in [0, 1, 40, 3000] {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            // In few runs, so that those have neighbours, and more entries than are gathered at once.
            let mut values: Vec<u64> = (0..entries)
                .map(|_| rng.next_u64() & 0x0111_ffff_ffff_ffff | 0x4000 << 48)
                .collect();
            values.sort_unstable();
            values.dedup();
            let (lead, tail) = (Lead::build(&values), Tail::build(&values));
            let mut chunk: Vec<u64> = (0..2000)
                .map(|at| match values.is_empty() || at % 4 == 0 {
                    true => rng.next_u64() & 0x0333_ffff_ffff_ffff | 0x4000 << 48,
                    false => {
                        let near = values[rng.random_range(0..values.len())];
                        (0..at % 5).fold(near, |near, _| near ^ 1 << rng.random_range(0..64))
                    }
                })
                .collect();
            let mut map = LeadMap::default();
            for (tables, bits) in MAP_BITS.enumerate() {
                let mut of_scalar = None;
                for (kernel, in_order) in Kernel::available()
                    .into_iter()
                    .flat_map(|kernel| [(kernel, true), (kernel, false)])
                {
                    match in_order {
                        true => chunk.sort_unstable(),
                        false => chunk.shuffle(&mut rng),
                    }
                    let of = (tables as u64, &lead, &tail);
                    let mut indexes = Vec::new();
                    map.scan(kernel, of, bits, &chunk, &mut indexes);
                    let near = |fingerprint: u64| {
                        let mut differences = values.iter().map(|value| value ^ fingerprint);
                        differences.any(|all| {
                            let trailing = all & ((1 << TAIL_BITS) - 1);
                            (all >> (64 - RUN_BITS - bits)).count_ones() <= 2 || trailing == 0
                        })
                    };
                    let mut others = 0;
                    for (at, &fingerprint) in (0..).zip(&chunk) {
                        let passes = indexes.binary_search(&at).is_ok();
                        let is_near = near(fingerprint);
                        assert!(passes || !is_near, "{bits} {fingerprint:x}");
                        others += u32::from(passes && !is_near);
                    }
                    assert!(!in_order || others < 60, "{others} pass for nothing");
                    if in_order {
                        let scalar = of_scalar.get_or_insert_with(|| indexes.clone());
                        assert_eq!(*scalar, indexes, "{}", kernel.name());
                    }
                }
            }
        }
    }
}
