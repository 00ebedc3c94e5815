//! The maps of a run on a Ballista cluster.
//!
//! ```text
//! run ── slices of work ──▶ scheduler ──▶ executors ── answers ──▶ run (reduce, output, commit)
//!  └── new batch ──▶ shared store ───────────▲
//! ```
//!
//! [`Remote`] is what a run has of a cluster; [`scheduler`] and [`executor`] are the cluster's processes. A plan has two
//! operators of ours over a table of work items: the map itself ([`engine::probe::ProbeExec`], [`FingerprintExec`]), and
//! above it [`AnswerExec`], which ends each slice with a receipt. What has no receipt was not answered and is handed out
//! again; what has two was answered twice, which the reduce does not notice and the fingerprints are spared.
//!
//! Plans are physical: the client knows them in full, and a scheduler of ours has nothing to plan. They name things, and
//! hold neither data nor credentials.

mod answer;
mod client;
mod codec;
mod error;
pub mod executor;
mod fingerprint;
mod listen;
mod outstanding;
mod protocol;
mod receipt;
mod registration;
mod remote;
mod runs;
pub mod scheduler;
pub mod sizing;
mod slices;
mod tls;

pub use answer::AnswerExec;
pub use client::{Address, Client};
pub use codec::Codec;
pub use error::ClusterError;
pub use executor::ExecutorSettings;
pub use fingerprint::FingerprintExec;
pub use remote::{Guard, Remote, RemoteSettings};
pub use scheduler::SchedulerSettings;
pub use tls::Tls;
