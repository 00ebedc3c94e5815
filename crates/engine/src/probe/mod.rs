//! The probe as an operator: work items in, pairs out.
//!
//! [`ProbeNode`] is its place in a logical plan, [`ProbeExec`] does the work, [`ProbePlanner`] plans the first as the
//! second. The operator has one input, a table of work items, because a distributed scheduler can split a table that it
//! knows, but not a leaf operator that it does not know. The operator names the batch, and never contains it.
//!
//! The stages are `fetch`, `probing`, `ids` and `emit`; `pipeline` connects them, and has the diagram of their channels and
//! bounds.

mod channel;
mod class_pairs;
mod coalesce;
mod driver;
mod emit;
mod exec;
mod fetch;
mod ids;
mod nearest;
mod node;
mod pair_builder;
mod pipeline;
mod probing;
mod request;

pub(crate) use class_pairs::Neighbour;
pub use exec::ProbeExec;
pub use node::{ProbeNode, ProbePlanner};
pub use probing::TOGETHER;
pub use request::{Answer, CompareSketches, Originals, Probe};
