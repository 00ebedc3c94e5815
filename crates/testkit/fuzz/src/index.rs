//! Fuzzes the index: forged files are refused or read, without a panic, and small segments answer as brute force does.
#![no_main]

use inputs::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| run(|| {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    if kind & 1 == 0 {
        // An error is as good as an answer.
        let _ = lookup::fuzzing::read_forged(directory.path(), rest);
        return;
    }
    let values: Vec<u64> = rest
        .chunks_exact(3)
        .map(|part| {
            // Few centres, so that many are near each other.
            let centre = u64::from(part[0] & 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bit = |byte: u8| u64::from(byte & 64 > 0) << (byte & 63);
            centre ^ bit(part[1]) ^ bit(part[2]) ^ u64::from(part[0] >> 2) << 58
        })
        .collect();
    let (fingerprints, queries) = values.split_at(values.len() * 3 / 4);
    lookup::fuzzing::compare(directory.path(), fingerprints, queries, u32::from(kind >> 1) % 9);
}));
