//! Plans of the maps: their operators, the resources that tasks share, the encoding, and the checks
//! of plans from other processes.
//!
//! ```text
//! ShuffleWriterExec        Ballista's: writes the answer to a file of the executor
//!   AnswerExec             answer: ends the rows of each slice with a receipt
//!     ProbeExec            engine::probe: map 2       or FingerprintExec  fingerprint: map 1
//!       DataSourceExec     a table of work items in memory, one partition per slice
//! ```
//!
//! Plans are physical, so the scheduler has nothing to plan. A plan holds file names, run names and
//! settings, but neither data nor credentials.

pub(crate) mod answer;
pub(crate) mod codec;
pub(crate) mod document_items;
pub(crate) mod encoded_check;
pub(crate) mod fingerprint;
pub(crate) mod operator_check;
pub(crate) mod run_cache;
pub(crate) mod session;
