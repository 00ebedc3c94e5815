//! The job on DataFusion: documents to fingerprints, the probe as an operator, the reduce as a stock plan.
//!
//! ```text
//! documents ──▶ day (map 1) ──▶ batch ─┐
//! base ───────▶ work items ──▶ ProbeExec (map 2) ──▶ reduce ──▶ output
//! ```
//!
//! [`session`] registers everything that a process needs, in one place; [`run`] strings the stages together.

pub mod batch;
pub mod cluster;
pub mod day;
pub mod documents;
pub mod draft;
pub mod error;
pub mod explain;
pub mod idf;
pub mod output;
pub mod probe;
pub mod progress;
pub mod recipe;
pub mod reduce;
pub mod resources;
pub mod run;
pub mod session;
pub mod stream;
pub mod tune;
pub mod udf;
pub mod verify;
pub mod work;

pub use error::{EngineError, Result};
pub use recipe::{Recipe, Wanted};
pub use run::{RunSettings, Summary, run};
pub use session::Limits;
pub use verify::{Verified, Verify};
