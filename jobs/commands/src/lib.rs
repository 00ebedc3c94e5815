//! The command line of `dedup-job`: turns arguments into settings, calls a library once, prints a summary and returns
//! an exit code.
//!
//! The program and the Python package both have it: [`main`] is the program.

mod args;
mod commands;
mod config;
mod control_groups;
mod exit;
mod logging;
mod own_names;
mod panics;
mod printing;
mod process;
mod progress;
mod scratch;
mod settings;
mod signals;
mod spooled;
mod starts;
mod word_diff;

use std::ffi::OsString;

use crate::args::{Cli, Command};
use crate::exit::Failure;

pub use crate::args::time_span;
pub use crate::exit::exit_code;

/// Runs the program: `arguments` begin with its name, as those of a process do. Returns the exit code.
///
/// It prints on standard output and standard error, starts to log, and handles SIGHUP, SIGINT and SIGTERM, so call it
/// once in a process that does nothing else.
pub fn main(arguments: &[OsString]) -> u8 {
    panics::stay_quiet();
    match panics::caught(|| dispatch(config::parse(arguments)?)) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> Result<(), Failure> {
    let common = cli.common;
    logging::start(&common);
    process::allow_open_files();
    match cli.command {
        Command::Run(args) => commands::run::run(&common, &args),
        Command::Split(args) => commands::job::split(&common, &args),
        Command::Map(args) => commands::job::map(&common, &args),
        Command::Reduce(args) => commands::job::reduce(&common, &args),
        Command::Fingerprint(args) => commands::fingerprint::run(&common, &args),
        Command::History(args) => commands::history::run(&common, &args),
        Command::Archive(command) => commands::archive::run(&common, command),
        Command::Plan(args) => commands::plan::run(&common, &args),
        Command::Idf(args) => commands::idf::run(&common, &args),
        Command::Tune(args) => commands::tune::run(&common, &args),
        Command::Explain(args) => commands::explain::run(&common, &args),
        Command::Show(args) => commands::show::run(&common, &args),
        Command::Groups(args) => commands::groups::run(&common, &args),
        Command::Report(args) => commands::report::run(&common, &args),
        Command::Index(command) => commands::index::run(&common, command),
        Command::Lookup(args) => commands::lookup::run(&common, &args),
        Command::Serve(args) => commands::serve::run(&common, &args),
        Command::Sql(args) => commands::sql::run(&common, &args),
        Command::Generate(command) => commands::generate::run(&common, command),
        Command::Completions { shell } => commands::completions::completions(shell),
        Command::Man { output } => commands::completions::man(output.as_deref()),
    }
}
