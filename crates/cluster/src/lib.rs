//! Executes the two maps of a run on a Ballista cluster: map 1 fingerprints, map 2 finds pairs.
//!
//! ```text
//! run ── slices of work ──▶ scheduler ──▶ executors ── answers ──▶ run (reduce, output, commit)
//!  └── batch ──▶ shared store ──────────────▲
//! ```
//!
//! The folders follow one run: `client` cuts the work and submits it, `scheduler` hands it out,
//! `executor` runs it. All three use `plan` (the operators and their encoding), `wire` (headers,
//! answers, receipts) and `net` (connections). [`Remote`] is a run's connection to a cluster;
//! [`scheduler`] and [`executor`] are the cluster's processes.
//!
//! A plan has two operators of ours over a table of work items: the map itself ([`FingerprintExec`]
//! for map 1, [`engine::probe::ProbeExec`] for map 2), and above it [`AnswerExec`], which ends the
//! answer to each slice with a receipt. The client submits a slice again if its answer has no
//! receipt. A slice with two receipts was answered twice: the reduce removes the repeated pairs of
//! map 2, and the client drops the second answer of map 1.
//!
//! A plan holds file names, run names and settings, but neither data nor credentials. Scheduler and
//! executors refuse plans that are not ours. Without TLS ([`Tls`]) they listen only at loopback
//! addresses, unless `--insecure` is set.

mod client;
mod error;
pub mod executor;
#[cfg(fuzzing)]
pub mod fuzzing;
mod net;
mod plan;
#[cfg(any(test, fuzzing))]
mod sample_plans;
pub mod scheduler;
pub mod sizing;
mod wire;

pub use client::{Client, Guard, Remote, RemoteSettings};
pub use error::ClusterError;
pub use executor::ExecutorSettings;
pub use net::address::Address;
pub use net::listen::is_exposed;
pub use net::tls::Tls;
pub use plan::answer::AnswerExec;
pub use plan::codec::Codec;
pub use plan::fingerprint::FingerprintExec;
pub use scheduler::SchedulerSettings;
