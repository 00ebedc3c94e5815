//! The program `dedup-job`. What it does is in the package `commands`, which the Python package has too.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ExitCode::from(commands::main(&arguments))
}
