//! The client of a cluster: cuts the work of a map into slices, submits them as jobs, fetches the
//! answers.
//!
//! ```text
//! engine_cluster ─▶ rounds ─▶ job ─▶ scheduler_client     submit the plan
//!                     ▲        ├───▶ status               wait until the job has ended
//!                     │        └───▶ fetch ─▶ settle      settle the open items of each whole answer
//!                     └── slices with an open item: the next round
//! ```
//!
//! Ballista's own client, `DistributedQueryExec`, submits logical plans, decodes results unchecked, and fails the query
//! when one executor is gone before its results are fetched.

mod connection;
mod engine_cluster;
mod fetch;
mod job;
mod map_parameters;
mod rounds;
mod scheduler_client;
pub(crate) mod settle;
pub(crate) mod slices;
mod status;

pub use connection::{Guard, Remote, RemoteSettings};
pub use scheduler_client::Client;
