//! Prints what every design would cost for a batch, a distance, and an archive: `plans [BATCH [K [ARCHIVE [MIB]]]]`.
//!
//! ```console
//! cargo run --release -p dedup-hamming --example plans 1000000 3 1000000000
//! ```

use hamming::{DesignError, Limits, Plan};

fn main() -> Result<(), DesignError> {
    let given: Vec<u64> = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().expect("a number"))
        .collect();
    let number = |at: usize, default| given.get(at).copied().unwrap_or(default);
    let (batch, k) = (number(0, 1_000_000) as usize, number(1, 3) as u32);
    let limits = Limits {
        queries: number(2, 1_000_000_000),
        memory: (number(3, 1024) as usize) << 20,
        ..Limits::default()
    };
    println!("design       tables passes      MiB   lookups candidates   ns each    seconds");
    for plan in Plan::alternatives(batch, k, &limits)? {
        println!(
            "{:<12} {:>6} {:>6} {:>8} {:>9.2} {:>10.2} {:>9.1} {:>10.1}",
            plan.design.name(),
            plan.design.blocks().len(),
            plan.parts,
            plan.bytes >> 20,
            plan.lookups,
            plan.candidates,
            plan.probe_ns,
            plan.seconds(limits.queries),
        );
    }
    Ok(())
}
