//! The join against a double loop over `count_ones`: the fuzzer chooses the sets, the design, the kernel and the chunks.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use hamming::{Design, Distinct, Kernel, Match, Plan, Scratch, Tables};
use libfuzzer_sys::fuzz_target;

/// The most fingerprints of a set: few enough that the double loop takes a millisecond or two.
const MOST: usize = 700;

#[derive(Debug, Arbitrary)]
struct Input {
    max_distance: u8,
    design: u8,
    kernel: u8,
    parts: u8,
    chunk: u16,
    sorted: bool,
    batch: Vec<Piece>,
    archive: Vec<Piece>,
}

/// A piece of a set: some fingerprints.
#[derive(Debug, Arbitrary)]
enum Piece {
    Value(u64),
    /// A fingerprint that differs from an earlier one in these bits.
    Near { of: u16, bits: Vec<u8> },
    /// An earlier fingerprint plus multiples of a step, shifted by some bits: a dense set, which
    /// shares its leading bits or crowds one key.
    Steps { of: u16, shift: u8, step: u8, count: u16 },
    Copies { of: u16, count: u8 },
}

/// The fingerprints of `pieces`; a piece may refer to those of `before` and of the pieces before it.
fn values(pieces: &[Piece], before: &[u64]) -> Vec<u64> {
    let mut all = before.to_vec();
    for piece in pieces {
        if all.len() >= before.len() + MOST {
            break;
        }
        let earlier = |of: u16| {
            let at = usize::from(of) % all.len().max(1);
            all.get(at).copied().unwrap_or(0)
        };
        match piece {
            Piece::Value(value) => all.push(*value),
            Piece::Near { of, bits } => {
                let near = bits.iter().take(20).fold(earlier(*of), |value, bit| value ^ 1 << (bit % 64));
                all.push(near);
            }
            Piece::Steps { of, shift, step, count } => {
                let first = earlier(*of);
                let count = u64::from(*count) % 600;
                all.extend((0..count).map(|at| first.wrapping_add(at * u64::from(*step) << (shift % 64))));
            }
            Piece::Copies { of, count } => {
                let value = earlier(*of);
                all.extend((0..*count).map(|_| value));
            }
        }
    }
    all.truncate(before.len() + MOST);
    all.split_off(before.len())
}

fuzz_target!(|input: Input| {
    let batch = values(&input.batch, &[]);
    let mut archive = values(&input.archive, &batch);
    if input.sorted {
        archive.sort_unstable();
    }
    let max_distance = u32::from(input.max_distance % 17);
    let designs = Design::all(max_distance).expect("a distance up to 16");
    let design = &designs[usize::from(input.design) % designs.len()];
    let kernels = Kernel::available();
    let kernel = kernels[usize::from(input.kernel) % kernels.len()];

    let mut expected = Vec::new();
    for (query, old) in archive.iter().enumerate() {
        for (row, new) in batch.iter().enumerate() {
            let distance = (old ^ new).count_ones();
            if distance <= max_distance {
                expected.push((query as u32, row as u32, distance));
            }
        }
    }
    let distinct = Arc::new(Distinct::new(&batch));
    let entries = distinct.values().len();
    let parts = usize::from(input.parts % 3) + 1;
    let mut found = Vec::new();
    for part in 0..parts {
        let range = Plan::part_range(parts, part, entries);
        let tables = Tables::build(Arc::clone(&distinct), range, design.clone(), 1);
        let (mut scratch, mut matches) = (Scratch::default(), Vec::new());
        let size = usize::from(input.chunk).max(1);
        for (at, chunk) in archive.chunks(size).enumerate() {
            let before = matches.len();
            tables.probe(kernel, chunk, &mut scratch, &mut matches);
            for found in &mut matches[before..] {
                found.query += (at * size) as u32;
            }
        }
        assert!(matches.is_sorted(), "matches come in order");
        for Match { query, entry, distance } in matches {
            found.extend(distinct.rows(entry).map(|row| (query, row, distance)));
        }
    }
    found.sort_unstable();
    assert!(
        found == expected,
        "{} at k = {max_distance} with {}: {} pairs, {} expected",
        design.name(),
        kernel.name(),
        found.len(),
        expected.len()
    );
});
