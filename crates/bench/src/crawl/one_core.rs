//! Runs a program on one core, and measures its time and memory.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{machine, threads};

/// The fastest of several runs of a program.
pub struct Best {
    pub seconds: f64,
    /// The largest peak memory of all runs, in bytes.
    pub peak_memory: u64,
    /// What the fastest run printed.
    pub output: String,
}

/// A command that runs `program` on the last core, on which the peers run, too.
pub fn command(program: &Path) -> Command {
    let cores = threads::cores();
    let mut command = Command::new("taskset");
    command
        .args(["--cpu-list", &(cores - 1).to_string()])
        .arg(program);
    command
}

/// Runs a command several times; the error is what it said when it failed.
pub fn best_of(times: usize, command: impl Fn() -> Command) -> Result<Best, String> {
    let mut best: Option<Best> = None;
    let mut peak_memory = 0;
    for _ in 0..times.max(1) {
        let run = run(command())?;
        peak_memory = run.peak_memory.max(peak_memory);
        if best.as_ref().is_none_or(|best| run.seconds < best.seconds) {
            best = Some(run);
        }
    }
    let best = best.expect("at least one run");
    Ok(Best {
        peak_memory,
        ..best
    })
}

/// Runs a command once. `taskset` becomes the program that it starts, so the id of the process is that of the program.
fn run(mut command: Command) -> Result<Best, String> {
    let scratch = tempfile::tempdir().expect("a directory");
    let [output, errors] = ["output", "errors"].map(|name| scratch.path().join(name));
    let file = |path: &Path| Stdio::from(File::create(path).expect("a file"));
    command.stdout(file(&output)).stderr(file(&errors));
    let begin = Instant::now();
    let mut child = command.spawn().expect("taskset, of util-linux");
    let (status, peak_memory) = machine::wait(&mut child);
    let seconds = begin.elapsed().as_secs_f64();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    if !status.success() {
        let errors = read(&errors);
        return Err(errors.lines().next().unwrap_or("it failed").to_owned());
    }
    Ok(Best {
        seconds,
        peak_memory,
        output: read(&output),
    })
}
