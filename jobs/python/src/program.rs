//! The program `dedup-job`, run by this process.

use std::ffi::OsString;

use pyo3::prelude::*;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The exit code of a process that SIGTERM stopped.
const TERMINATED: u8 = 128 + 15;

/// Run the program dedup-job in this process; return its exit code.
///
/// arguments begin with the program's name. If parent is given, this process stops when the process of that number, its
/// parent, dies.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, parent: Option<i32>) -> u8 {
    if let Some(parent) = parent {
        // If this fails, as it does not on Linux, the process outlives its parent and ends by itself.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        // The parent may have died before.
        if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
            return TERMINATED;
        }
    }
    py.detach(|| commands::main(&arguments))
}
