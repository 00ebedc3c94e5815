//! What a person sees while a command runs: a bar on a terminal, log lines elsewhere, both on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::progress::{Progress, Stage};
use engine::resources::Resources;
use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{CommonArgs, LogFormat};
use crate::exit::Failure;

/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(100);
/// How often a log line says how far the work is.
const REPORT: Duration = Duration::from_secs(10);

/// Sends logs to standard error: warnings, with `-v` what is done, with `-vv` everything of ours.
pub fn start_logging(common: &CommonArgs) {
    let level = match common.verbose {
        _ if common.quiet => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // What matters of theirs comes back as errors.
    let others = match common.verbose {
        0 => LevelFilter::OFF,
        _ => level.min(LevelFilter::WARN),
    };
    let ours = [
        "dedup_job",
        "cluster",
        "engine",
        "archive",
        "hamming",
        "simhash",
    ]
    .map(|name| (name, level));
    let targets = Targets::new()
        .with_default(others)
        .with_targets(ours)
        // It tries to tell executors of what has ended, which ours ask for themselves.
        .with_target(
            "ballista_scheduler::state::executor_manager",
            LevelFilter::OFF,
        );
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

/// Standard error, where each line goes without the secrets that a library may quote.
#[derive(Default)]
struct Scrubbed(Vec<u8>);

impl std::io::Write for Scrubbed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let line = archive::store::scrub(&String::from_utf8_lossy(&self.0));
        self.0.clear();
        std::io::stderr().write_all(line.as_bytes())
    }
}

impl Drop for Scrubbed {
    fn drop(&mut self) {
        // Where standard error is closed there is nobody to tell.
        let _ = self.flush();
    }
}

/// A thread that shows progress until it is dropped.
pub struct Display {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// Starts to show the progress in `resources`, unless it is not wanted.
    pub fn start(common: &CommonArgs, resources: Arc<Resources>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let wanted = !common.quiet;
        let json = common.log_format == Some(LogFormat::Json);
        let terminal = std::io::stderr().is_terminal();
        let flag = Arc::clone(&stop);
        let show = move || {
            if terminal {
                bar(&resources.progress, &flag)
            } else {
                lines(&resources.progress, &flag, json)
            }
        };
        Self {
            stop,
            thread: wanted.then(|| std::thread::spawn(show)),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn bar(progress: &Progress, stop: &AtomicBool) {
    let spinner = style("{spinner} {msg} {human_pos} ({rate}) {elapsed}");
    let measured = style("{spinner} {msg} {bar:30} {human_pos}/{human_len} ({rate}, {eta} left)");
    let bar = ProgressBar::no_length();
    let mut shown = None;
    while !stop.load(Ordering::Relaxed) {
        let stage = progress.stage();
        let (position, length) = position(progress, stage);
        bar.set_message(label(progress, stage));
        if shown != Some((stage, length.is_some())) {
            shown = Some((stage, length.is_some()));
            bar.reset();
            if let Some(style) = if length.is_some() {
                &measured
            } else {
                &spinner
            } {
                bar.set_style(style.clone());
            }
        }
        if let Some(length) = length {
            bar.set_length(length);
        }
        bar.set_position(position);
        bar.tick();
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}

/// A style with the rate in whole numbers.
fn style(template: &str) -> Option<ProgressStyle> {
    let rate = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        let _ = write!(text, "{}/s", HumanCount(state.per_sec() as u64));
    };
    Some(
        ProgressStyle::with_template(template)
            .ok()?
            .with_key("rate", rate),
    )
}

fn lines(progress: &Progress, stop: &AtomicBool, json: bool) {
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(TICK);
        if last.elapsed() < REPORT {
            continue;
        }
        last = Instant::now();
        let stage = progress.stage();
        let hits = progress.hits.load(Ordering::Relaxed);
        let (done, all) = position(progress, stage);
        if json {
            let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
            let line = serde_json::json!({
                "timestamp": now,
                "level": "INFO",
                "fields": {
                    "message": "progress",
                    "stage": stage.label(),
                    "done": done,
                    "all": all,
                    "hits": hits,
                    "executors": executors(progress, stage),
                },
            });
            eprintln!("{line}");
            continue;
        }
        match all {
            Some(all) => eprintln!(
                "dedup-job: {}: {done} of {all}, {hits} hits",
                label(progress, stage)
            ),
            None => eprintln!("dedup-job: {}: {done}", label(progress, stage)),
        }
    }
}

/// The executors that work on a stage, where a cluster does.
fn executors(progress: &Progress, stage: Stage) -> Option<u64> {
    let is_map = matches!(stage, Stage::Fingerprint | Stage::Probe);
    let on_cluster = is_map && progress.slices_total.load(Ordering::Relaxed) > 0;
    on_cluster.then(|| progress.executors.load(Ordering::Relaxed))
}

/// What is being done; on a cluster, progress is counted in slices.
fn label(progress: &Progress, stage: Stage) -> String {
    match executors(progress, stage) {
        Some(1) => format!("{} on 1 executor, slices", stage.label()),
        Some(number) => format!("{} on {number} executors, slices", stage.label()),
        None => stage.label().to_owned(),
    }
}

/// How far a stage is, and how far it has to go, where that is known.
fn position(progress: &Progress, stage: Stage) -> (u64, Option<u64>) {
    let (done, all) = match stage {
        _ if executors(progress, stage).is_some() => (&progress.slices, &progress.slices_total),
        Stage::Probe => (&progress.probed, &progress.probe_total),
        _ => (&progress.documents, &progress.documents_total),
    };
    let all = all.load(Ordering::Relaxed);
    let known = matches!(stage, Stage::Fingerprint | Stage::Probe) && all > 0;
    (done.load(Ordering::Relaxed), known.then_some(all))
}

/// Prints on standard output. A reader that has closed it has what it wanted.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::ClosedPipe),
        Err(source) => Err(Failure::Io {
            path: "standard output".into(),
            source,
        }),
    }
}

/// Prints a value as JSON on one line.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(value).map_err(|error| Failure::Io {
        path: "standard output".into(),
        source: error.into(),
    })?;
    print(&format!("{json}\n"))
}

/// A number with its thousands apart.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A size in bytes as people read it.
pub fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}
