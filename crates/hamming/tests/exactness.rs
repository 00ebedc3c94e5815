//! The join finds what a double loop over `count_ones` finds, at every k, with every design and
//! every kernel of this machine.

use std::sync::Arc;

use hamming::{Design, Distinct, Kernel, Limits, Match, Plan, Scratch, Tables};
use proptest::prelude::*;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

// A link to testkit's file. The published package contains the file itself, because testkit is not published.
#[allow(dead_code)]
mod oracle;

/// A random batch and a random archive with planted pairs at every distance from 0 to 20. Many
/// fingerprints of the batch are close to one of them, some repeat it, and both sets hold extremes.
fn planted(batch: usize, archive: usize, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut new: Vec<u64> = (0..batch).map(|_| rng.next_u64()).collect();
    let mut old: Vec<u64> = (0..archive).map(|_| rng.next_u64()).collect();
    for at in (0..archive).step_by(7) {
        let distance = rng.random_range(0..=20);
        let origin = new[rng.random_range(0..batch)];
        old[at] = flipped(origin, distance, &mut rng);
    }
    for at in (0..batch).step_by(13) {
        let distance = rng.random_range(0..=20);
        new[at] = flipped(new[batch / 2], distance, &mut rng);
    }
    for (side, extremes) in [
        (&mut new, [0, u64::MAX, 1 << 63]),
        (&mut old, [u64::MAX, 1, u64::MAX << 1]),
    ] {
        let count = side.len().min(3);
        side[..count].copy_from_slice(&extremes[..count]);
    }
    (new, old)
}

fn flipped(value: u64, distance: u32, rng: &mut ChaCha8Rng) -> u64 {
    let mut result = value;
    while (result ^ value).count_ones() < distance {
        result ^= 1 << rng.random_range(0..64);
    }
    result
}

/// The pairs of the join in the oracle's form: row of the batch, index in the archive, distance.
fn joined(tables: &Tables, kernel: Kernel, archive: &[u64]) -> Vec<oracle::Pair> {
    let mut matches = Vec::new();
    tables.probe(kernel, archive, &mut Scratch::default(), &mut matches);
    let mut pairs: Vec<_> = matches
        .iter()
        .flat_map(
            |&Match {
                 query,
                 entry,
                 distance,
             }| {
                tables
                    .batch()
                    .rows(entry)
                    .map(move |row| (row as usize, query as usize, distance))
            },
        )
        .collect();
    pairs.sort_unstable();
    pairs
}

/// Joins the tables' part of the batch with all values of the batch, `step` values at a time, and
/// returns the pairs in the oracle's form.
fn joined_with_itself(tables: &Tables, kernel: Kernel, step: usize) -> Vec<oracle::Pair> {
    let values = tables.batch().values().len();
    let (mut scratch, mut pairs) = (Scratch::default(), Vec::new());
    for first in (0..values).step_by(step) {
        let range = first..values.min(first + step);
        let (mut done, mut matches) = (0, Vec::new());
        while done < range.len() {
            done += tables.probe_self(kernel, range.clone(), done, &mut scratch, &mut matches);
        }
        assert!(matches.is_sorted(), "by value, then entry");
        pairs.extend(matches.iter().map(|found| {
            let query = first + found.query as usize;
            (found.entry as usize, query, found.distance)
        }));
    }
    pairs.sort_unstable();
    pairs
}

/// The batch, whole and in parts, is joined with its own values.
#[test]
fn the_batch_is_joined_with_itself() {
    let (new, _) = planted(3001, 10, 4);
    let batch = Arc::new(Distinct::new(&new));
    let values = batch.values();
    for k in [0, 1, 3, 8, 12] {
        let mut truth = oracle::pairs_within(values, values, k);
        truth.sort_unstable();
        assert!(k == 0 || truth.len() > values.len());
        for design in Design::all(k).unwrap() {
            for part in [0..values.len(), 0..1000, 1000..1001, 1700..values.len()] {
                let of_part: Vec<_> = truth
                    .iter()
                    .filter(|pair| part.contains(&pair.0))
                    .copied()
                    .collect();
                let name = design.name();
                let tables = Tables::build(Arc::clone(&batch), part.clone(), design.clone(), 2);
                for kernel in Kernel::available() {
                    for step in [values.len(), 257] {
                        let found = joined_with_itself(&tables, kernel, step);
                        assert!(found == of_part, "{name} {k} {part:?} {kernel:?} {step}");
                    }
                }
            }
        }
    }
    // Enough values that tables are large and chunks are partitioned.
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut many: Vec<u64> = (0..800_000).map(|_| rng.next_u64()).collect();
    for at in (0..many.len()).step_by(100) {
        many[at] = flipped(many[at + 1], rng.random_range(0..=3), &mut rng);
    }
    let tables = Tables::new(Distinct::new(&many), Design::named("halves", 3).unwrap());
    let values = tables.batch().values();
    let found = joined_with_itself(&tables, Kernel::detect(), 1 << 18);
    assert!(found.len() > values.len() + 10_000);
    let mut truth = oracle::pairs_by_blocks(values, values, 3);
    truth.sort_unstable();
    assert!(found == truth);
}

fn within(pairs: &[oracle::Pair], k: u32) -> Vec<oracle::Pair> {
    pairs.iter().filter(|pair| pair.2 <= k).copied().collect()
}

/// Brute force compares more than 10⁹ pairs once; the planned join finds the same at every k.
#[test]
fn the_planned_join_is_exact_over_a_billion_pairs() {
    let (new, old) = planted(31_623, 31_700, 1);
    assert!(new.len() * old.len() > 1_000_000_000);
    let truth = oracle::pairs_within(&new, &old, 16);
    assert!(truth.len() > 10_000);
    // The same in ascending order, twice.
    let mut order: Vec<usize> = (0..old.len()).collect();
    order.sort_by_key(|&at| old[at]);
    order.rotate_left(old.len() / 3);
    let sorted: Vec<u64> = order.iter().map(|&at| old[at]).collect();
    for k in 0..=16 {
        let batch = Distinct::new(&new);
        let plan = Plan::choose(batch.values().len(), k, &Limits::default()).unwrap();
        let tables = Tables::new(batch, plan.design);
        let expected = within(&truth, k);
        for kernel in Kernel::available() {
            let found = joined(&tables, kernel, &old);
            assert!(
                found == expected,
                "k = {k}, {}, {}: {} pairs, {} expected",
                tables.design().name(),
                kernel.name(),
                found.len(),
                expected.len()
            );
        }
        let Ok(trie) = Design::named("trie", k) else {
            continue;
        };
        let tables = Tables::new(Distinct::new(&new), trie);
        for kernel in Kernel::available() {
            let mut found = joined(&tables, kernel, &sorted);
            for pair in &mut found {
                pair.1 = order[pair.1];
            }
            found.sort_unstable();
            assert!(found == expected, "k = {k}, trie, {}", kernel.name());
        }
    }
}

#[test]
fn every_design_and_kernel_is_exact_at_every_distance() {
    let (new, old) = planted(1500, 2500, 2);
    let truth = oracle::pairs_within(&new, &old, 16);
    let mut designs = 0;
    for k in 0..=16 {
        let expected = within(&truth, k);
        for design in Design::all(k).unwrap() {
            designs += 1;
            let tables = Tables::new(Distinct::new(&new), design);
            for kernel in Kernel::available() {
                let found = joined(&tables, kernel, &old);
                assert!(
                    found == expected,
                    "k = {k}, {}, {}",
                    tables.design().name(),
                    kernel.name()
                );
            }
        }
    }
    assert!(designs > 150);
}

#[test]
fn empty_repeated_and_extreme_fingerprints_are_joined() {
    let cases: [(&[u64], &[u64]); 6] = [
        (&[], &[1, 2]),
        (&[1], &[]),
        (&[5], &[5]),
        (&[7; 1000], &[7, 7, 6, u64::MAX]),
        (&[u64::MAX; 3], &[u64::MAX, 0, 1 << 63]),
        (&[0, 1 << 63], &[1 << 63, 0, 3 << 62]),
    ];
    for (new, old) in cases {
        for k in [0, 1, 3, 8, 16] {
            for design in Design::all(k).unwrap() {
                let tables = Tables::new(Distinct::new(new), design);
                for kernel in Kernel::available() {
                    assert_eq!(
                        joined(&tables, kernel, old),
                        oracle::pairs_within(new, old, k)
                    );
                }
            }
        }
    }
}

/// The parts of a batch, each with tables of its own, together find what the whole finds.
#[test]
fn parts_of_the_batch_find_the_whole() {
    let (new, old) = planted(1500, 2500, 5);
    let expected = within(&oracle::pairs_within(&new, &old, 16), 3);
    let batch = Arc::new(Distinct::new(&new));
    let values = batch.values().len();
    for name in ["halves", "blocks-4"] {
        for (parts, threads) in [(1, 3), (2, 1), (7, 16), (values + 1, 2)] {
            let mut found = Vec::new();
            for part in 0..parts {
                let range = values * part / parts..values * (part + 1) / parts;
                let design = Design::named(name, 3).unwrap();
                let tables = Tables::build(Arc::clone(&batch), range, design, threads);
                found.extend(joined(&tables, Kernel::detect(), &old));
                if parts > 100 && part > 20 {
                    break;
                }
            }
            found.sort_unstable();
            if parts <= 100 {
                assert!(found == expected, "{name} in {parts} parts");
            } else {
                assert!(found.iter().all(|pair| expected.contains(pair)));
            }
        }
    }
}

/// Batches so large that the planner chooses other layouts. All pairs are planted: no two random
/// fingerprints are this near.
#[test]
fn large_batches_find_all_that_is_planted() {
    for (name, k, size) in [
        ("halves", 3, 200_000),
        ("halves", 3, 1_500_000),
        ("halves", 3, 4_000_000),
        ("variants-3", 6, 400_000),
        ("blocks-4", 3, 1_500_000),
    ] {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let new: Vec<u64> = (0..size).map(|_| rng.next_u64()).collect();
        let mut planted: Vec<(u64, oracle::Pair)> = (0..40_000)
            .map(|at| {
                let row = rng.random_range(0..size);
                let distance = at as u32 % (k + 3);
                (flipped(new[row], distance, &mut rng), (row, 0, distance))
            })
            .collect();
        let batch = Arc::new(Distinct::new(&new));
        assert_eq!(batch.values().len(), size);
        let design = Design::named(name, k).unwrap();
        let tables = Tables::build(batch, 0..size, design, 2);
        for sorted in [false, true] {
            if sorted {
                planted.sort_unstable();
            }
            let old: Vec<u64> = planted.iter().map(|planted| planted.0).collect();
            let mut expected: Vec<oracle::Pair> = (planted.iter().enumerate())
                .map(|(at, &(_, (row, _, distance)))| (row, at, distance))
                .filter(|pair| pair.2 <= k)
                .collect();
            expected.sort_unstable();
            for kernel in Kernel::available() {
                let found = joined(&tables, kernel, &old);
                assert!(
                    found == expected,
                    "{name}, {size}, sorted {sorted}, {}: {} of {}",
                    kernel.name(),
                    found.len(),
                    expected.len()
                );
            }
        }
    }
}

/// Every strip of a bucket is compared: in a sorted archive, whose many fingerprints of one key
/// share a lookup, and with batches that have many entries for each key or each tag.
#[test]
fn every_strip_of_a_crowded_bucket_is_compared() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for (name, k, fixed) in [
        ("variants-3", 3, !0u64 << 44),
        ("variants-3", 8, !0u64 << 42),
        ("variants-3", 8, 0x3f_ffff << 20),
        ("variants-4", 9, !0u64 << 48),
    ] {
        // All fingerprints have the same bits in the first block, or in the second.
        let same = rng.next_u64() & fixed;
        let alike = |rng: &mut ChaCha8Rng| same | rng.next_u64() & !fixed;
        let new: Vec<u64> = (0..1500).map(|_| alike(&mut rng)).collect();
        let mut old: Vec<u64> = (0..6000)
            .map(|at| match at % 3 {
                0 => alike(&mut rng),
                _ => flipped(new[at % new.len()], at as u32 % (k + 2), &mut rng),
            })
            .collect();
        old.sort_unstable();
        let batch = Distinct::new(&new);
        let expected = oracle::pairs_within(&new, &old, k);
        let design = Design::named(name, k).unwrap();
        let part = 0..batch.values().len();
        let tables = Tables::build(Arc::new(batch), part, design, 1);
        for kernel in Kernel::available() {
            let found = joined(&tables, kernel, &old);
            assert!(found == expected, "{name}, {k}, {}", kernel.name());
        }
    }
}

/// Archives so dense that the scan by runs is worth it, sorted and not, with planted pairs at every
/// distance from 0 to 5. One scratch serves all chunks and all tables: a stale map would miss pairs.
#[test]
fn dense_archives_are_scanned_by_runs_exactly() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut scratch = Scratch::default();
    for (seed, bits) in [(1u64, 20), (2, 24), (3, 34)] {
        // All fingerprints are in a small part of the space, as those of a row group of a large archive are.
        let top = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits) << (64 - bits);
        let spread = |rng: &mut ChaCha8Rng| top | rng.next_u64() >> bits;
        let mut new: Vec<u64> = (0..4000).map(|_| rng.next_u64()).collect();
        let mut old: Vec<u64> = (0..20_000).map(|_| spread(&mut rng)).collect();
        for (at, value) in new.iter_mut().enumerate().step_by(2) {
            *value = flipped(old[at * 5], at as u32 / 2 % 6, &mut rng);
        }
        for order in ["sorted", "in no order"] {
            if order == "sorted" {
                old.sort_unstable();
            } else {
                old.reverse();
                old.swap(3, 19_000);
            }
            let expected = oracle::pairs_within(&new, &old, 3);
            assert!(expected.len() > 1000);
            let tables = Tables::new(Distinct::new(&new), Design::named("halves", 3).unwrap());
            for kernel in Kernel::available() {
                let mut found = Vec::new();
                for (at, chunk) in old.chunks(7000).enumerate() {
                    let mut matches = Vec::new();
                    tables.probe(kernel, chunk, &mut scratch, &mut matches);
                    found.extend(matches.iter().flat_map(|m| {
                        let query = at * 7000 + m.query as usize;
                        tables
                            .batch()
                            .rows(m.entry)
                            .map(move |row| (row as usize, query, m.distance))
                    }));
                }
                found.sort_unstable();
                assert!(found == expected, "{bits} bits, {order}, {}", kernel.name());
            }
        }
    }
}

/// Archives with one long run (one leading quarter), sorted and not, and batches with many entries
/// in that quarter: they exercise the maps of long runs, lines that overflow, and crowded keys.
#[test]
fn long_runs_and_crowded_keys_are_scanned_exactly() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for crowd in [0u64, 300, 3000] {
        let quarter = 0x9abc_u64 << 48;
        let mut new: Vec<u64> = (0..1500).map(|_| rng.next_u64()).collect();
        new.extend((0..crowd).map(|_| quarter | rng.next_u64() >> 16));
        let mut old: Vec<u64> = (0..3000).map(|_| quarter | rng.next_u64() >> 16).collect();
        old.extend((0..1000).map(|_| rng.next_u64()));
        for at in 0..2000 {
            let near = flipped(new[rng.random_range(0..new.len())], at as u32 % 5, &mut rng);
            old.push(near);
            // Adds a near pair in the quarter or near it: one to the batch, one to the archive.
            let inside = flipped(quarter | near >> 16, at as u32 % 3, &mut rng);
            new[at % 1500] = flipped(inside, at as u32 % 3, &mut rng);
            old.push(inside);
        }
        let truth = oracle::pairs_within(&new, &old, 3);
        assert!(truth.len() > 1000);
        let tables = Tables::new(Distinct::new(&new), Design::named("halves", 3).unwrap());
        for kernel in Kernel::available() {
            assert!(
                joined(&tables, kernel, &old) == truth,
                "in no order, {}",
                kernel.name()
            );
        }
        old.sort_unstable();
        let truth = oracle::pairs_within(&new, &old, 3);
        for kernel in Kernel::available() {
            assert!(
                joined(&tables, kernel, &old) == truth,
                "sorted, {}",
                kernel.name()
            );
        }
    }
}

#[test]
fn chunks_of_any_size_find_the_same() {
    let (new, old) = planted(700, 3000, 3);
    for (design, k) in [
        ("blocks-4", 3),
        ("choose-6-3", 3),
        ("nested-4", 3),
        ("halves", 3),
        ("variants-4", 5),
        ("variants-6", 8),
        ("exhaustive", 3),
    ] {
        let truth = oracle::pairs_within(&new, &old, k);
        let tables = Tables::new(Distinct::new(&new), Design::named(design, k).unwrap());
        for kernel in Kernel::available() {
            chunks(&tables, kernel, &old, &truth);
        }
    }
}

fn chunks(tables: &Tables, kernel: Kernel, old: &[u64], truth: &[oracle::Pair]) {
    for size in [1, 2, 63, 64, 65, 127, 1000] {
        let mut scratch = Scratch::default();
        let mut pairs = Vec::new();
        for (at, chunk) in old.chunks(size).enumerate() {
            let mut matches = Vec::new();
            tables.probe(kernel, chunk, &mut scratch, &mut matches);
            pairs.extend(matches.iter().flat_map(|found| {
                let query = at * size + found.query as usize;
                tables
                    .batch()
                    .rows(found.entry)
                    .map(move |row| (row as usize, query, found.distance))
            }));
        }
        pairs.sort_unstable();
        let design = tables.design().name();
        assert!(
            pairs == truth,
            "{design}, {}, chunks of {size}",
            kernel.name()
        );
    }
}

/// A batch of 2,500 and an archive of 4,000 fingerprints have more than eight million pairs; each
/// call of `probe_piece` appends at most 2²⁰ matches.
#[test]
fn matches_of_one_call_are_bounded() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let origin = rng.next_u64();
    let mut near = |distance: u32| flipped(origin, distance, &mut rng);
    let new: Vec<u64> = (0..2500).map(|at| near(at % 3)).collect();
    let old: Vec<u64> = (0..4000).map(|at| near(at % 3)).collect();
    let truth = oracle::pairs_within(&new, &old, 4);
    assert!(truth.len() > 8_000_000);
    let values = Distinct::new(&new).values().to_vec();
    let mut with_itself = oracle::pairs_within(&values, &values, 4);
    with_itself.sort_unstable();
    for design in Design::all(4).unwrap() {
        let tables = Tables::new(Distinct::new(&new), design);
        // The batch has more pairs with itself than one call appends.
        assert!(joined_with_itself(&tables, Kernel::detect(), values.len()) == with_itself);
        assert!(
            joined(&tables, Kernel::detect(), &old) == truth,
            "{}",
            tables.design().name()
        );
        let (mut scratch, mut done, mut found) = (Scratch::default(), 0, 0);
        while done < old.len() {
            let mut matches = Vec::new();
            done += tables.probe_piece(Kernel::detect(), &old, done, &mut scratch, &mut matches);
            assert!(matches.len() <= 1 << 20, "{}", tables.design().name());
            let rows = matches
                .iter()
                .map(|found| tables.batch().rows(found.entry).len());
            found += rows.sum::<usize>();
        }
        assert_eq!(found, truth.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In small sets of close values, where many pairs share many blocks, each pair is reported once.
    #[test]
    fn close_sets_are_joined_exactly(
        origin: u64,
        new in proptest::collection::vec(proptest::collection::vec(0u32..64, 0..12), 0..40),
        old in proptest::collection::vec(proptest::collection::vec(0u32..64, 0..12), 0..80),
        k in 0u32..=16,
    ) {
        let values = |sets: &[Vec<u32>]| -> Vec<u64> {
            sets.iter().map(|bits| bits.iter().fold(origin, |value, bit| value ^ (1 << bit))).collect()
        };
        let (new, old) = (values(&new), values(&old));
        let expected = oracle::pairs_within(&new, &old, k);
        for design in Design::all(k).unwrap() {
            let tables = Tables::new(Distinct::new(&new), design);
            for kernel in Kernel::available() {
                prop_assert_eq!(&joined(&tables, kernel, &old), &expected, "{} {}", tables.design().name(), kernel.name());
            }
        }
    }
}
