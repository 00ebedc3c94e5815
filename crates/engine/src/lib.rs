//! Runs a batch on DataFusion: fingerprints its documents, probes the archive with an operator of
//! its own, and reduces the pairs with stock operators.
//!
//! ```text
//! documents ──▶ fingerprint (map 1) ──▶ batch ─┐
//! archive ────▶ work items ──▶ probe (map 2) ──▶ reduce ──▶ verify ──▶ output
//!                                     └──▶ decide ──▶ decisions, kept documents
//! ```
//!
//! [`session`] registers everything that a process needs, in one place; [`run`] connects the stages.

mod arrow_file;
pub mod batch;
mod class_pairs;
pub mod decide;
pub mod error;
pub mod explain;
pub mod fingerprint;
mod fingerprint_sort;
mod id_count;
pub mod idf;
pub mod job;
mod memory;
pub mod output;
pub mod pairs;
mod part_list;
pub mod probe;
pub mod profile;
pub mod progress;
pub mod recipe;
pub mod reduce;
pub mod resources;
mod resume;
pub mod run;
pub mod session;
pub mod template;
pub mod text_counts;
pub mod tune;
pub mod udf;
pub mod verify;
pub mod work_items;

pub use error::{EngineError, Result};
pub use part_list::part_list;
pub use profile::{CompareOptions, Profile};
pub use recipe::{Recipe, SpecOptions};
pub use run::{RunSettings, Summary, run};
pub use session::Limits;
pub use verify::{Verified, Verify};
