//! Decides which documents of a random graph to keep, from pairs in any order. For comparison,
//! scipy finds the connected components of the same pairs; they decide on no document yet.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use engine::Limits;
use engine::decide::greedy::{Decision, Greedy, OrderedPair};
use engine::decide::sorter::PairSorter;
use engine::resources::Resources;
use serde_json::{Value, json};
use storage::{StoreOptions, Stores};

use crate::{machine, program};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of documents
    #[arg(long, default_value_t = 50_000_000)]
    documents: u32,
    /// Number of pairs
    #[arg(long, default_value_t = 100_000_000)]
    pairs: u64,
    /// Bytes of memory for each document: pairs beyond them are sorted on the disk
    #[arg(long, default_value_t = 16)]
    bytes: usize,
    /// Python with numpy and scipy; without it, decisions are measured alone
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// The pair with this number: the later document, the earlier one, their distance.
fn pair(number: u64, documents: u32) -> (u32, u32, u8) {
    // The finalizer of splitmix64.
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    let scaled = |bits: u64| (((bits & 0xffff_ffff) * u64::from(documents)) >> 32) as u32;
    let (a, b) = (scaled(z), scaled(z >> 32));
    let later = a.max(b).max(1);
    (later, a.min(b).min(later - 1), (z % 4) as u8)
}

pub fn run(args: &Args) -> Vec<Value> {
    let begin = Instant::now();
    let decided = decide(args);
    let seconds = begin.elapsed().as_secs_f64();
    let peak = machine::memory("self", "VmHWM");
    let kept = (0..args.documents).filter(|&at| decided.decision(at) == Decision::Kept);
    let kept = kept.count();
    assert_eq!(kept, kept_in_memory(args), "documents kept");
    let bytes =
        Greedy::bytes_for(args.documents as usize, false) as f64 / f64::from(args.documents);
    println!(
        "documents    pairs        kept         seconds   bytes a document   peak of the process"
    );
    println!(
        "{:<12} {:<12} {kept:<12} {seconds:>7.2} {bytes:>12.1} {:>18} MiB",
        args.documents,
        args.pairs,
        peak >> 20
    );
    let components = args
        .python
        .as_deref()
        .map(|python| components(args, python));
    if let Some(seconds) = components {
        println!("scipy, connected components: {seconds:.2} s");
    }
    vec![json!({
        "documents": args.documents,
        "pairs": args.pairs,
        "kept": kept,
        "seconds": seconds,
        "bytes_a_document": bytes,
        "peak_bytes": peak,
        "memory_limit_bytes_a_document": args.bytes,
        "components_seconds": components,
    })]
}

/// Decides about the documents as a run does, from pairs in any order.
fn decide(args: &Args) -> Greedy {
    let scratch = tempfile::tempdir().expect("a directory");
    let resources = Arc::new(Resources::new(Stores::new(StoreOptions::default())));
    let count = args.documents as usize;
    let limits = Limits {
        threads: 1,
        // The sorter keeps pairs in half of the free memory; the other half is for sorting them.
        memory: 2 * args
            .bytes
            .saturating_mul(count)
            .saturating_sub(Greedy::bytes_for(count, false)),
        spill: scratch.path().to_owned(),
    };
    let context = engine::session::session(&limits, resources).expect("a session");
    let mut sorter = PairSorter::new(&context, count, false).expect("memory");
    for number in 0..args.pairs {
        let (later, earlier, distance) = pair(number, args.documents);
        let pair = OrderedPair {
            later,
            earlier,
            distance,
            similarity: None,
        };
        sorter.add(&pair).expect("room for the pair");
    }
    let mut greedy = Greedy::new(count, false);
    sorter.decide(&mut greedy).expect("decisions");
    greedy
}

/// The number of documents that a plain loop over the pairs in memory keeps: the known answer.
fn kept_in_memory(args: &Args) -> usize {
    let count = args.documents as usize;
    let pairs = || (0..args.pairs).map(|number| pair(number, args.documents));
    let mut starts = vec![0_u32; count + 1];
    for (later, ..) in pairs() {
        starts[later as usize + 1] += 1;
    }
    for at in 0..count {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut before = vec![0_u32; args.pairs as usize];
    for (later, earlier, _) in pairs() {
        let place = &mut next[later as usize];
        before[*place as usize] = earlier;
        *place += 1;
    }
    let mut kept = vec![false; count];
    for document in 0..count {
        let others = &before[starts[document] as usize..starts[document + 1] as usize];
        kept[document] = !others.iter().any(|&other| kept[other as usize]);
    }
    kept.into_iter().filter(|kept| *kept).count()
}

/// The seconds that scipy takes to find the connected components of the pairs. Loading the pairs
/// into numpy is not measured.
fn components(args: &Args, python: &Path) -> f64 {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("pairs");
    let file = std::fs::File::create(&path).expect("a file");
    let mut file = std::io::BufWriter::new(file);
    for number in 0..args.pairs {
        let (later, earlier, _) = pair(number, args.documents);
        file.write_all(&later.to_le_bytes()).expect("room");
        file.write_all(&earlier.to_le_bytes()).expect("room");
    }
    drop(file);
    let script = "
import sys, time
import numpy, scipy.sparse, scipy.sparse.csgraph
pairs = numpy.fromfile(sys.argv[1], dtype=numpy.uint32).astype(numpy.int32).reshape(-1, 2)
count = int(sys.argv[2])
begin = time.perf_counter()
ones = numpy.ones(len(pairs), dtype=numpy.int8)
graph = scipy.sparse.coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
scipy.sparse.csgraph.connected_components(graph, directed=False)
print(time.perf_counter() - begin)
";
    let output = program::output(
        Command::new(python)
            .args(["-c", script])
            .arg(&path)
            .arg(args.documents.to_string()),
    );
    let seconds = String::from_utf8(output).expect("a number");
    seconds.trim().parse().expect("a number")
}
