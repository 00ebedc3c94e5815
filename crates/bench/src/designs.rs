//! Joins in memory with every design: predicted and measured cost.

use std::time::Instant;

use serde_json::{Value, json};

use engine::probe::TOGETHER;
use hamming::{Design, Distinct, Kernel, Limits, Plan, Scratch, Tables};

use crate::data;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of fingerprints in the batch
    #[arg(long, default_value_t = 1_000_000)]
    batch: usize,
    /// Number of fingerprints in the archive that the row groups are sampled from
    #[arg(long, default_value_t = 1_000_000_000)]
    archive: u64,
    /// Number of row groups to probe, each of 2^20 fingerprints
    #[arg(long, default_value_t = 16)]
    chunks: usize,
    /// Largest distance of a pair, in bits
    #[arg(short = 'k', long, default_value_t = 3)]
    max_distance: u32,
    /// Measure only this design
    #[arg(long)]
    design: Option<String>,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Leave out designs whose predicted cost is above this many nanoseconds for each fingerprint of the archive
    #[arg(long, default_value_t = 2000.0)]
    slowest: f64,
}

pub fn run(args: &Args) -> Vec<Value> {
    let batch = data::random_batch(args.batch);
    let groups = data::row_groups(&batch, args.archive, args.chunks);
    let distinct = Distinct::new(&batch).values().len();
    let plans: Vec<Plan> = Plan::alternatives(
        distinct,
        args.max_distance,
        &Limits {
            queries: args.archive,
            sorted_run: args.archive,
            ..Limits::default()
        },
    )
    .expect("a distance that is supported")
    .into_iter()
    .filter(|plan| match &args.design {
        Some(name) => plan.design.name() == *name,
        None => plan.probe_ns <= args.slowest,
    })
    .collect();
    println!(
        "k = {}, batch {}, archive {}, {}, {} threads",
        args.max_distance,
        args.batch,
        args.archive,
        Kernel::detect().name(),
        args.threads
    );
    println!(
        "{:<12} {:>12} {:>10} {:>10} {:>12} {:>10} {:>10}",
        "design", "MiB", "predicted", "ns/fp", "build pred.", "build s", "matches"
    );
    plans
        .into_iter()
        .map(|plan| measure(args, plan, &batch, &groups))
        .collect()
}

/// Builds the tables of a plan and probes all row groups three times; prints and returns the fastest.
fn measure(args: &Args, plan: Plan, batch: &[u64], groups: &[Vec<u64>]) -> Value {
    let begin = Instant::now();
    let design = Design::named(&plan.design.name(), args.max_distance)
        .expect("the name of a planned design");
    let tables = Tables::new(Distinct::new(batch), design);
    let build = begin.elapsed().as_secs_f64();
    let mut best = f64::MAX;
    let mut hits = 0;
    // Reused between runs, as the program reuses its buffers.
    let mut buffers: Vec<_> = (0..args.threads)
        .map(|_| (Scratch::default(), Vec::new(), Vec::new()))
        .collect();
    for _ in 0..3 {
        let begin = Instant::now();
        hits = std::thread::scope(|scope| {
            let workers: Vec<_> = (buffers.iter_mut().enumerate())
                .map(|(first, (scratch, matches, gathered))| {
                    let tables = &tables;
                    scope.spawn(move || {
                        let mut hits = 0;
                        let mut probe = |step: &[u64]| {
                            matches.clear();
                            tables.probe(Kernel::detect(), step, scratch, matches);
                            hits += matches.len();
                        };
                        let share = groups.len().div_ceil(args.threads);
                        let together = groups.chunks(TOGETHER.min(share));
                        for groups in together.skip(first).step_by(args.threads) {
                            let step = tables.chunk_len();
                            if step < data::ROW_GROUP {
                                groups
                                    .iter()
                                    .for_each(|group| group.chunks(step).for_each(&mut probe));
                                continue;
                            }
                            gathered.clear();
                            groups
                                .iter()
                                .for_each(|group| gathered.extend_from_slice(group));
                            gathered.chunks(step).for_each(&mut probe);
                        }
                        hits
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("no panic"))
                .sum()
        });
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let fingerprints = (groups.len() * data::ROW_GROUP) as f64;
    println!(
        "{:<12} {:>12.1} {:>10.1} {:>10.2} {:>12.2} {:>10.2} {:>10}",
        plan.design.name(),
        tables.bytes() as f64 / 1048576.0,
        plan.probe_ns,
        best * 1e9 / fingerprints * args.threads as f64,
        plan.build_seconds,
        build,
        hits,
    );
    json!({
        "max_distance": args.max_distance,
        "batch": args.batch,
        "archive": args.archive,
        "threads": args.threads,
        "design": plan.design.name(),
        "bytes": tables.bytes(),
        "predicted_ns": plan.probe_ns,
        "measured_ns": best * 1e9 / fingerprints * args.threads as f64,
        "predicted_build_seconds": plan.build_seconds,
        "measured_build_seconds": build,
        "hits": hits,
    })
}
