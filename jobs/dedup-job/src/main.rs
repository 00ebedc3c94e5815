//! The program `dedup-job`; see the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ExitCode::from(dedup_job::main(&arguments))
}
