//! What a job would cost on several machines, before there is one. `bench parts` measures the constants.

use hamming::Plan;
use serde::Serialize;

use super::cut::parts_of;
use super::map_documents::text_bytes_per_second;

/// Seconds until a process has started, and read what its command needs of the job.
const START_SECONDS: f64 = 0.03;
/// Seconds to load a document of the batch, its fingerprint and id: one core decodes, and another checks.
const LOAD_SECONDS: f64 = 30e-9;
/// Seconds of one core to settle a document: its fingerprint is sorted, written and shared.
const SETTLE_SECONDS: f64 = 200e-9;

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Documents of the batch.
    pub documents: u64,
    /// Bytes of their texts; `None` for ready fingerprints.
    pub text_bytes: Option<u64>,
    /// Whether they get sketches.
    pub sketches: bool,
    /// Fingerprints of the archive.
    pub archive: u64,
}

/// What a job would cost.
#[derive(Debug, Clone, Serialize)]
pub struct Forecast {
    pub machines: u64,
    pub cores: u64,
    /// The rounds that fingerprint and probe; templates, verification by texts and copies of kept documents come on top.
    pub rounds: Vec<ForecastRound>,
    /// Seconds of all rounds, with `split` before each and `reduce` at the end.
    pub seconds: f64,
}

/// A round of a job.
#[derive(Debug, Clone, Serialize)]
pub struct ForecastRound {
    pub map: &'static str,
    pub parts: usize,
    /// Seconds of one core for all parts, without what each process does anew.
    pub core_seconds: f64,
    /// Seconds until the slowest machine has done its parts, in one process.
    pub seconds: f64,
}

impl Forecast {
    /// Predicts a job of these sizes with the tables of `plan`, on `machines` machines of `cores` cores.
    pub fn new(sizes: Sizes, plan: &Plan, machines: u64, cores: u64) -> Self {
        let (machines, cores) = (machines.max(1), cores.max(1));
        let documents = sizes.documents as f64;
        let round = |map, core_seconds: f64, anew: f64| {
            // `--parts` gives each machine one.
            let parts = parts_of(core_seconds, None).max(machines as usize);
            let of_machine = parts.div_ceil(machines as usize) as f64;
            let each = core_seconds / parts as f64 / cores as f64;
            ForecastRound {
                map,
                parts,
                core_seconds,
                seconds: START_SECONDS + anew + of_machine * each,
            }
        };
        let mut rounds = Vec::new();
        if let Some(bytes) = sizes.text_bytes {
            let rate = text_bytes_per_second(sizes.sketches);
            rounds.push(round("fingerprint", bytes as f64 / rate, 0.0));
        }
        let probe = plan.seconds(sizes.archive + sizes.documents) - plan.build_seconds;
        let anew = LOAD_SECONDS * documents + plan.build_seconds / cores as f64;
        rounds.push(round("probe", probe, anew));
        // `split` settles the batch once, and loads it once more than that; so does `reduce`.
        let between = (rounds.len() + 2) as f64 * START_SECONDS;
        let settle = (SETTLE_SECONDS + 2.0 * LOAD_SECONDS) * documents;
        let seconds = rounds.iter().map(|round| round.seconds).sum::<f64>() + between + settle;
        Self {
            machines,
            cores,
            rounds,
            seconds,
        }
    }
}
