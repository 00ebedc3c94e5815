//! A run's side of a cluster: cuts the maps into slices, submits them as jobs, fetches and accounts for their answers.
//!
//! ```text
//! run ─▶ rounds ─▶ job ─▶ scheduler_client     submit the plan
//!          ▲        ├───▶ status               wait until the job has ended
//!          │        └───▶ fetch ─▶ accounting  take each whole answer off the open items
//!          └── items without an answer: their slices are handed out again
//! ```
//!
//! Ballista's own client, `DistributedQueryExec`, submits logical plans, decodes results unchecked, and fails the query when
//! one executor is gone before its results are fetched.

pub(crate) mod accounting;
mod fetch;
mod job;
mod map;
mod remote;
mod rounds;
mod run;
mod scheduler_client;
pub(crate) mod slices;
mod status;

pub use remote::{Guard, Remote, RemoteSettings};
pub use scheduler_client::Client;
