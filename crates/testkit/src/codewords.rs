//! Fingerprints without texts, at any scale, whose pairs are known exactly.
//!
//! Random 64-bit numbers have accidental pairs (19 expected for 8 billion against 1 million at k = 3), which only a
//! join could find. So fingerprints are codewords of an extended BCH code of length 64: two different codewords differ
//! in at least d bits. For a planted pair, e ≤ k bits of a codeword are flipped. The result differs from every other
//! codeword in at least d − e bits. That is more than k if d ≥ 2k + 1, so the planted pairs are the only ones.
//!
//! The code is systematic with the message in the high bits: ascending messages give fingerprints
//! that ascend as signed numbers, and a day of any size is generated in order. The join does the
//! same work as on random numbers: any d′ − 1 bits of the codewords have uniform values (d′ is the
//! minimum distance of the dual code), and no bit depends on the day.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The largest distance for which [`Code::for_distance`] has a code.
pub const MAX_DISTANCE: u32 = 10;

/// An extended BCH code of length 64 in systematic form.
#[derive(Debug, Clone)]
pub struct Code {
    message_bits: u32,
    /// `bytes[i][v]` is the codeword of the message whose byte i, from the lowest, is `v` and whose
    /// other bytes are 0.
    bytes: Vec<[u64; 256]>,
}

impl Code {
    /// Returns a code whose codewords differ in more than `max_distance` bits, even after `max_distance` bits of one of
    /// them are flipped; `None` above [`MAX_DISTANCE`].
    #[must_use]
    pub fn for_distance(max_distance: u32) -> Option<Self> {
        // Designed distances of the narrow-sense BCH codes of length 63; the extension adds one.
        [7, 11, 13, 15, 21]
            .into_iter()
            .find(|designed| designed + 1 > 2 * max_distance)
            .map(Self::bch)
    }

    /// Returns the extended BCH code of a designed distance.
    fn bch(designed: u32) -> Self {
        let generator = generator_polynomial(designed);
        let check_bits = generator.ilog2();
        let message_bits = 63 - check_bits;
        let basis: Vec<u64> = (0..message_bits)
            .map(|bit| {
                // x^(check_bits + bit) minus its remainder is a multiple of the generator.
                let shifted = 1u64 << (check_bits + bit);
                let word = shifted | remainder(shifted, generator);
                // The extension: an overall parity bit as the lowest.
                word << 1 | u64::from(word.count_ones() & 1)
            })
            .collect();
        let sum = |words: &[u64], byte: usize| {
            let chosen = words.iter().enumerate().filter(|(i, _)| byte >> i & 1 == 1);
            chosen.fold(0, |sum, (_, word)| sum ^ word)
        };
        Self {
            message_bits,
            bytes: basis
                .chunks(8)
                .map(|words| std::array::from_fn(|byte| sum(words, byte)))
                .collect(),
        }
    }

    /// Returns the codeword of `message` with its top bit flipped.
    ///
    /// The flip makes fingerprints ascend with their messages as signed numbers, and changes no distance.
    #[must_use]
    pub fn encode(&self, message: u64) -> u64 {
        let bytes = self.bytes.iter().zip(message.to_le_bytes());
        bytes.fold(1 << 63, |word, (words, byte)| {
            word ^ words[usize::from(byte)]
        })
    }
}

/// Returns the product of the distinct minimal polynomials over GF(2) of α¹, α², …, α^(designed − 1), α primitive in
/// GF(64).
fn generator_polynomial(designed: u32) -> u64 {
    let mut covered = [false; 63];
    let mut product = 1;
    for power in 1..designed as usize {
        if covered[power] {
            continue;
        }
        // The conjugates of α^power are the roots of its minimal polynomial.
        let mut minimal = vec![1u8];
        let mut conjugate = power;
        while !covered[conjugate] {
            covered[conjugate] = true;
            // Multiplies by (x + α^conjugate); the constant coefficient is the first.
            let root = alpha(conjugate);
            let mut next = vec![0; minimal.len() + 1];
            for (i, &c) in minimal.iter().enumerate() {
                next[i + 1] ^= c;
                next[i] ^= multiply(c, root);
            }
            minimal = next;
            conjugate = 2 * conjugate % 63;
        }
        let minimal = minimal
            .iter()
            .enumerate()
            .fold(0u64, |bits, (i, &c)| bits | u64::from(c) << i);
        product = carryless_product(product, minimal);
    }
    product
}

/// Returns α^power in GF(64) = GF(2)[x]/(x⁶ + x + 1).
fn alpha(power: usize) -> u8 {
    (0..power).fold(1, |value, _| multiply(value, 2))
}

/// Multiplies in GF(64).
fn multiply(a: u8, b: u8) -> u8 {
    let product = carryless_product(a.into(), b.into());
    remainder(product, 0b100_0011) as u8
}

fn carryless_product(a: u64, b: u64) -> u64 {
    (0..64)
        .filter(|bit| b >> bit & 1 == 1)
        .fold(0, |product, bit| product ^ a << bit)
}

/// Returns the remainder of a division of polynomials over GF(2).
fn remainder(mut value: u64, divisor: u64) -> u64 {
    while value != 0 && value.ilog2() >= divisor.ilog2() {
        value ^= divisor << (value.ilog2() - divisor.ilog2());
    }
    value
}

/// Sizes and seed of a batch and an archive of fingerprints with planted pairs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of fingerprints in the archive.
    pub archive: u64,
    /// Number of days among which the archive is divided evenly.
    pub days: u64,
    /// Number of fingerprints in the batch.
    pub batch: u64,
    /// Number of planted pairs: each has one fingerprint of the batch and one of the archive, which are in no other
    /// pair.
    pub pairs: u64,
    /// Largest distance of a planted pair; all other fingerprints are farther apart.
    pub max_distance: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchFingerprint {
    /// The 64 bits.
    pub fingerprint: u64,
    /// The archive fingerprint of its planted pair, and the distance.
    pub near: Option<(ArchivePosition, u32)>,
}

/// Where a fingerprint is in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchivePosition {
    /// Its number in the archive: days come in order, and the fingerprints of a day ascend.
    pub number: u64,
    pub day: u64,
}

/// Generates fingerprints from [`Settings`].
#[derive(Debug, Clone)]
pub struct Generator {
    settings: Settings,
    code: Code,
}

/// Number of fingerprints of a chunk, which is generated and sorted as a whole. Chunks are small,
/// because planting a pair generates the whole chunk of its archive fingerprint.
const CHUNK: u64 = 1 << 10;

impl Generator {
    /// Creates a generator.
    ///
    /// # Errors
    /// A sentence that says why, when the distance is above [`MAX_DISTANCE`] or the code has too few words.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let code = Code::for_distance(settings.max_distance).ok_or_else(|| {
            format!("fingerprints with known pairs can be generated up to a distance of {MAX_DISTANCE}, not {}", settings.max_distance)
        })?;
        let generator = Self { settings, code };
        let settings = &generator.settings;
        let capacity = generator.messages() / 4;
        if settings.archive.div_ceil(settings.days.max(1)) > capacity || settings.batch > capacity {
            return Err(format!(
                "at a distance of {} and with {} archived days, a day or batch can have at most {capacity} fingerprints",
                settings.max_distance, settings.days
            ));
        }
        if settings.pairs > settings.archive.min(settings.batch) {
            return Err(format!(
                "{} pairs need as many fingerprints in the batch and in the archive",
                settings.pairs
            ));
        }
        Ok(generator)
    }

    /// Returns the number of the first fingerprint of an archived day.
    #[must_use]
    pub fn first_of_day(&self, day: u64) -> u64 {
        part_start(self.settings.archive, day, self.settings.days)
    }

    /// Returns the number of chunks of an archived day.
    #[must_use]
    pub fn chunks(&self, day: u64) -> u64 {
        self.len(day).div_ceil(CHUNK)
    }

    /// Returns chunk `chunk` of an archived day: the number of its first fingerprint, and its fingerprints. They ascend
    /// as signed numbers, also from chunk to chunk.
    #[must_use]
    pub fn chunk(&self, day: u64, chunk: u64) -> (u64, Vec<u64>) {
        let chunks = self.chunks(day);
        let (first, end) = (
            part_start(self.len(day), chunk, chunks),
            part_start(self.len(day), chunk + 1, chunks),
        );
        let messages = self.messages();
        let mut rng = self.rng((1 + day) << 32 | chunk);
        let range = part_start(messages, chunk, chunks)..part_start(messages, chunk + 1, chunks);
        let drawn = draw(&mut rng, range, (end - first) as usize);
        let fingerprints = drawn
            .into_iter()
            .map(|number| self.fingerprint(day, number));
        (self.first_of_day(day) + first, fingerprints.collect())
    }

    /// Returns the fingerprints of the batch in random order.
    #[must_use]
    pub fn batch(&self) -> Vec<BatchFingerprint> {
        let settings = &self.settings;
        let mut rng = self.rng(0);
        let mut batch = Vec::with_capacity(settings.batch as usize);
        let mut cached = ((u64::MAX, u64::MAX), (0, Vec::new()));
        for pair in 0..settings.pairs {
            // Pairs are spread over the archive in ascending order, so each chunk is generated
            // once.
            let number = part_start(settings.archive, pair, settings.pairs);
            let day = part_of(settings.archive, number, settings.days);
            let in_day = number - self.first_of_day(day);
            let chunk = part_of(self.len(day), in_day, self.chunks(day));
            if cached.0 != (day, chunk) {
                cached = ((day, chunk), self.chunk(day, chunk));
            }
            let (first, fingerprints) = &cached.1;
            let original = fingerprints[(number - first) as usize];
            let distance = (pair % u64::from(settings.max_distance + 1)) as u32;
            let mut fingerprint = original;
            while (fingerprint ^ original).count_ones() < distance {
                let bit = 1u64 << rng.random_range(0..64);
                if (fingerprint ^ original) & bit == 0 {
                    fingerprint ^= bit;
                }
            }
            batch.push(BatchFingerprint {
                fingerprint,
                near: Some((ArchivePosition { number, day }, distance)),
            });
        }
        let unrelated = (settings.batch - settings.pairs) as usize;
        let drawn = draw(&mut rng, 0..self.messages(), unrelated);
        batch.extend(drawn.into_iter().map(|number| BatchFingerprint {
            fingerprint: self.fingerprint(settings.days, number),
            near: None,
        }));
        // Fisher-Yates shuffle.
        for last in (1..batch.len()).rev() {
            batch.swap(last, rng.random_range(0..=last));
        }
        batch
    }

    /// Returns the number of fingerprints of an archived day.
    fn len(&self, day: u64) -> u64 {
        self.first_of_day(day + 1) - self.first_of_day(day)
    }

    /// Returns the number of messages available to each archived day and to the batch.
    fn messages(&self) -> u64 {
        (1 << self.code.message_bits) / (self.settings.days + 1)
    }

    /// Returns fingerprint `number` of a day, in ascending order; the batch counts as one more day.
    ///
    /// Messages are cut into groups of consecutive ones, and each day gets one message of each group, so no two days
    /// share a message. A hash of the group's number decides which day gets which: otherwise the low bits of a message
    /// would tell its day, and the join would have fewer candidates.
    fn fingerprint(&self, day: u64, number: u64) -> u64 {
        let days = self.settings.days + 1;
        self.code
            .encode(number * days + (mix(number) % days + day) % days)
    }

    /// Returns a random stream: 0 is the batch's, the others are the chunks'.
    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.settings.seed);
        rng.set_stream(stream);
        rng
    }
}

/// Returns where part `part` begins when `total` is divided into `parts`.
fn part_start(total: u64, part: u64, parts: u64) -> u64 {
    (u128::from(total) * u128::from(part) / u128::from(parts.max(1))) as u64
}

/// Returns the part that contains `number` when `total` is divided into `parts`.
fn part_of(total: u64, number: u64, parts: u64) -> u64 {
    // The last part that begins at `number` or before.
    ((u128::from(number) + 1) * u128::from(parts)).div_ceil(u128::from(total)) as u64 - 1
}

/// Draws `count` different numbers of `range`; returns them in ascending order.
fn draw(rng: &mut ChaCha8Rng, range: std::ops::Range<u64>, count: usize) -> Vec<u64> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        drawn.extend((drawn.len()..count).map(|_| rng.random_range(range.clone())));
        drawn.sort_unstable();
        drawn.dedup();
    }
    drawn
}

/// The finalizer of `SplitMix64`.
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{pairs_inside, pairs_within};

    #[test]
    fn codes_have_their_distance() {
        for (k, message_bits, min_distance) in [
            (3, 45, 8),
            (5, 36, 12),
            (6, 30, 14),
            (7, 24, 16),
            (10, 18, 22),
        ] {
            let code = Code::for_distance(k).unwrap();
            assert_eq!(code.message_bits, message_bits);
            let mut rng = ChaCha8Rng::seed_from_u64(k.into());
            for _ in 0..20_000 {
                // The code is linear: its minimum distance is its minimum weight.
                let message = rng.random_range(1..1u64 << message_bits);
                let zero = code.encode(0);
                assert!((code.encode(message) ^ zero).count_ones() >= min_distance);
                let next = message + 1;
                let ascending =
                    code.encode(message).cast_signed() < code.encode(next).cast_signed();
                assert!(ascending || next >> message_bits != 0);
            }
            for bit in 0..message_bits {
                assert!((code.encode(1 << bit) ^ code.encode(0)).count_ones() >= min_distance);
            }
        }
        assert!(Code::for_distance(11).is_none());
    }

    fn settings(archive: u64, days: u64, batch: u64, pairs: u64, max_distance: u32) -> Settings {
        Settings {
            archive,
            days,
            batch,
            pairs,
            max_distance,
            seed: 7,
        }
    }

    /// Returns the archive in the order of its numbers; fails if they have gaps or a day does not ascend.
    fn archive(generator: &Generator) -> Vec<u64> {
        let mut archive = Vec::new();
        for day in 0..generator.settings.days {
            let start = archive.len();
            assert_eq!(generator.first_of_day(day), start as u64);
            for chunk in 0..generator.chunks(day) {
                let (first, fingerprints) = generator.chunk(day, chunk);
                assert_eq!(first, archive.len() as u64);
                archive.extend(fingerprints);
            }
            assert!(archive[start..].is_sorted_by(|a, b| a.cast_signed() < b.cast_signed()));
        }
        archive
    }

    #[test]
    fn planted_pairs_are_the_only_ones() {
        for (max_distance, days) in [(0, 1), (3, 1), (3, 4), (5, 2), (7, 3)] {
            let generator = Generator::new(settings(3000, days, 700, 200, max_distance)).unwrap();
            let base = archive(&generator);
            assert_eq!(base.len(), 3000);
            assert!(pairs_inside(&base, max_distance).is_empty());
            let batch = generator.batch();
            let fingerprints: Vec<u64> = batch.iter().map(|new| new.fingerprint).collect();
            let near = batch.iter().enumerate();
            let expected: Vec<_> = near
                .filter_map(|(i, new)| Some((i, new.near?)))
                .map(|(i, (base, distance))| (i, base.number as usize, distance))
                .collect();
            assert_eq!(expected.len(), 200);
            assert_eq!(pairs_within(&fingerprints, &base, max_distance), expected);
            assert!(pairs_inside(&fingerprints, max_distance).is_empty());
            assert_eq!(generator.batch(), batch);
        }
    }

    #[test]
    fn chunks_and_days_leave_no_gaps() {
        for (base, days) in [
            (2 * CHUNK + 77, 1),
            (9 * CHUNK + 1, 7),
            (3, 5),
            (1, 1),
            (0, 2),
        ] {
            let generator = Generator::new(settings(base, days, 50, base.min(50), 3)).unwrap();
            let archive = archive(&generator);
            assert_eq!(archive.len() as u64, base);
            for new in generator.batch() {
                let Some((base, distance)) = new.near else {
                    continue;
                };
                let day = generator.first_of_day(base.day)..generator.first_of_day(base.day + 1);
                assert!(day.contains(&base.number));
                let original = archive[base.number as usize];
                assert_eq!((original ^ new.fingerprint).count_ones(), distance);
            }
        }
        let too_many = Generator::new(settings(40_000, 1, 10, 0, 10));
        assert!(too_many.unwrap_err().contains("at most 32768"));
    }

    #[test]
    fn no_bits_tell_days_apart() {
        let generator = Generator::new(settings(4000, 2, 2000, 0, 3)).unwrap();
        let archive = archive(&generator);
        let batch = generator.batch();
        let days = [
            archive[..2000].to_vec(),
            archive[2000..].to_vec(),
            batch.iter().map(|new| new.fingerprint).collect(),
        ];
        // Of 2000 random fingerprints, 1000 have a given bit set, within five standard deviations
        // (112). The same holds for the XOR of nearby bits.
        for day in days {
            for (bits, shift) in [1u64, 3, 5, 7, 15]
                .iter()
                .flat_map(|b| (0..60).map(move |s| (b, s)))
            {
                let odd = day
                    .iter()
                    .filter(|&f| (f & bits << shift).count_ones() % 2 == 1);
                assert!(odd.count().abs_diff(1000) < 112, "{bits:b} at {shift}");
            }
        }
    }
}
