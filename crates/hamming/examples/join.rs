//! Joins two sets of 64-bit fingerprints: prints all pairs that differ in at most 3 bits.
//!
//! ```console
//! cargo run --release -p dedup-hamming --example join
//! ```

use std::sync::Arc;

use hamming::{Distinct, Kernel, Limits, Plan, PlanError, Scratch, Tables};

const K: u32 = 3;

static BATCH: [u64; 3] = [
    0x0123_4567_89ab_cdef,
    0xffff_0000_ffff_0000,
    0x0f0f_0f0f_0f0f_0f0f,
];

static ARCHIVE: [u64; 4] = [
    0x0123_4567_89ab_cdee,
    0x0123_4567_89ab_cdef,
    0x7fff_0001_ffff_0001,
    0xf0f0_f0f0_f0f0_f0f0,
];

fn main() -> Result<(), PlanError> {
    // The tables are built from the batch, the smaller set, and the archive is streamed past them.
    let batch = Arc::new(Distinct::new(&BATCH));
    let all = 0..batch.values().len();
    let plan = Plan::choose(all.len(), K, &Limits::default())?;
    let tables = Tables::build(Arc::clone(&batch), all, plan.design, 1);

    let (mut scratch, mut matches) = (Scratch::default(), Vec::new());
    tables.probe(Kernel::detect(), &ARCHIVE, &mut scratch, &mut matches);
    for found in &matches {
        let archived = ARCHIVE[found.query as usize];
        for row in batch.rows(found.entry) {
            let new = BATCH[row as usize];
            println!("{new:016x} {archived:016x} distance {}", found.distance);
        }
    }

    let pairs = ARCHIVE
        .iter()
        .flat_map(|x| BATCH.iter().map(move |y| (x ^ y).count_ones()));
    assert_eq!(
        matches.len(),
        pairs.filter(|&distance| distance <= K).count()
    );
    Ok(())
}
