//! Log lines on standard error.

use std::io::{IsTerminal as _, Write as _};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{CommonArgs, LogFormat};
use crate::own_names::by_own_names;

/// This project's crates, which log at the level of `-v` or `--quiet`.
const OURS: [&str; 9] = [
    "commands",
    "lookup",
    "_native",
    "engine",
    "documents",
    "archive",
    "storage",
    "hamming",
    "simhash",
];

/// Sends log lines to standard error: warnings; with `-v` each step; with `-vv` every detail.
pub fn start(common: &CommonArgs) {
    let level = match common.verbose {
        _ if common.quiet => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // A failure in another library reaches the user as an error of this project's crates.
    let others = match common.verbose {
        0 => LevelFilter::OFF,
        _ => level.min(LevelFilter::WARN),
    };
    let targets = Targets::new()
        .with_default(others)
        .with_targets(OURS.map(|name| (name, level)));
    let terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(Scrubbed::default);
    let registry = tracing_subscriber::registry().with(targets);
    match common.log_format {
        Some(LogFormat::Json) => registry.with(lines.json().with_ansi(false)).init(),
        _ => registry
            .with(lines.with_ansi(terminal).with_target(false))
            .init(),
    }
}

/// A writer to standard error that removes secrets from each line, because libraries may quote
/// them.
#[derive(Default)]
struct Scrubbed(Vec<u8>);

impl std::io::Write for Scrubbed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let line = String::from_utf8_lossy(&self.0);
        let line = storage::scrub(&by_own_names(&line));
        self.0.clear();
        std::io::stderr().write_all(line.as_bytes())
    }
}

impl Drop for Scrubbed {
    fn drop(&mut self) {
        // If standard error is closed, there is nowhere to report it.
        let _ = self.flush();
    }
}
