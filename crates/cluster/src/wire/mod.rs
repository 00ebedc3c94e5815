//! What the processes of a cluster send each other: headers of calls, errors as text, answers and their receipts.
//!
//! ```text
//! client ── plan, header CLIENT ──▶ scheduler ── task ──▶ executor
//! client ◀── job status, header STATE ── scheduler ◀── poll, header EXECUTOR, errors as text ── executor
//! client ◀── answer: rows, then one receipt (Arrow IPC) ── executor
//! ```
//!
//! [`ipc_check`] checks bytes of Arrow IPC that come from another process before a library decodes them.

pub(crate) mod answer;
pub(crate) mod error_text;
pub(crate) mod headers;
pub(crate) mod ipc_check;
pub(crate) mod receipt;
