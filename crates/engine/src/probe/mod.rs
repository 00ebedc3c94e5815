//! The probe as a table: work items in, pairs out.
//!
//! The stages are `fetch`, `probing`, `ids` and `emit`; `pipeline` connects them, and has the diagram of their channels and
//! bounds.

mod channel;
mod class_pairs;
mod coalesce;
mod emit;
mod fetch;
mod ids;
mod nearest;
mod pair_builder;
mod pipeline;
mod probing;
mod request;
mod table;

pub(crate) use class_pairs::Neighbour;
pub use probing::TOGETHER;
pub(crate) use request::Compared;
pub use request::{Answer, CompareSketches, Originals, Probe};
