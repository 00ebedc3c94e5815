//! Shows a command's progress on standard error: a bar on a terminal, a line every 10 seconds
//! elsewhere.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::progress::{Position, Progress, Stage};
use engine::resources::Resources;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::args::{CommonArgs, LogFormat};
use crate::printing::count;

/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(100);
/// How often a progress line is printed without --progress-every.
const REPORT: Duration = Duration::from_secs(10);

/// A thread that shows progress until this is dropped.
pub struct Display {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// Starts to show the progress in `resources`, except with --quiet.
    pub fn start(common: &CommonArgs, resources: Arc<Resources>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let wanted = !common.quiet;
        let json = common.log_format == Some(LogFormat::Json);
        let terminal = std::io::stderr().is_terminal();
        let every = common.progress_every.unwrap_or(REPORT);
        let flag = Arc::clone(&stop);
        let show = move || {
            if terminal {
                draw_bar(&resources.progress, &flag)
            } else {
                print_lines(&resources.progress, &flag, every, json)
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

/// Whether the stage counts what it has processed, also if it is not known how much there is.
fn is_counted(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Fingerprint | Stage::Probe | Stage::Index | Stage::Write | Stage::Read
    )
}

fn draw_bar(progress: &Progress, stop: &AtomicBool) {
    let named = style("{spinner} {msg} {elapsed}");
    let counted = style("{spinner} {msg} {human_pos} {unit} ({rate}) {elapsed}");
    let measured =
        style("{spinner} {msg} {bar:30} {human_pos}/{human_len} {unit} ({rate}, {eta} left)");
    let bar = ProgressBar::no_length();
    let mut drawn = None;
    while !stop.load(Ordering::Relaxed) {
        let stage = progress.stage();
        let position = progress.position();
        bar.set_message(stage.label());
        let current = Some((stage, position.unit, position.total.is_some()));
        if drawn != current {
            drawn = current;
            bar.reset();
            let style = match position.total {
                Some(_) => measured(position.unit),
                None if is_counted(stage) => counted(position.unit),
                None => named(position.unit),
            };
            if let Some(style) = style {
                bar.set_style(style);
            }
        }
        if let Some(total) = position.total {
            bar.set_length(total);
        }
        bar.set_position(position.done);
        bar.tick();
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}

/// Returns a function from a unit to the bar's style under `template`; the style shows whole-number
/// rates.
fn style(template: &'static str) -> impl Fn(&'static str) -> Option<ProgressStyle> {
    move |unit| {
        let rate = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{}/s", HumanCount(state.per_sec() as u64));
        };
        let write_unit = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(unit);
        };
        Some(
            ProgressStyle::with_template(template)
                .ok()?
                .with_key("rate", rate)
                .with_key("unit", write_unit),
        )
    }
}

fn print_lines(progress: &Progress, stop: &AtomicBool, every: Duration, json: bool) {
    let mut last = Instant::now();
    let mut pace = Pace::new(progress);
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(TICK);
        if !pace.is_of_stage(progress) {
            pace = Pace::new(progress);
        }
        if last.elapsed() < every {
            continue;
        }
        last = Instant::now();
        let seconds = pace.since.elapsed().as_secs_f64();
        if json {
            eprintln!("{}", json_line(progress, &pace, seconds))
        } else {
            eprintln!("dedup-job: {}", text_line(progress, &pace, seconds))
        }
    }
}

/// How fast a stage is.
struct Pace {
    stage: Stage,
    unit: &'static str,
    /// When it was first seen, and what was done then.
    since: Instant,
    from: u64,
}

impl Pace {
    fn new(progress: &Progress) -> Self {
        let position = progress.position();
        Self {
            stage: progress.stage(),
            unit: position.unit,
            since: Instant::now(),
            from: position.done,
        }
    }

    /// Whether the stage goes on, and counts the same.
    fn is_of_stage(&self, progress: &Progress) -> bool {
        let Position { done, unit, .. } = progress.position();
        progress.stage() == self.stage && unit == self.unit && done >= self.from
    }

    /// What was done in each of `seconds`, and the seconds that are left if the total is known; `None` if nothing was done.
    fn measured(&self, position: &Position, seconds: f64) -> Option<(f64, Option<f64>)> {
        let done = position.done.saturating_sub(self.from);
        let rate = done as f64 / seconds;
        let left = |total: u64| total.saturating_sub(position.done) as f64 / rate;
        (done > 0 && seconds > 0.0).then(|| (rate, position.total.map(left)))
    }
}

/// A progress line for people, such as `probing: 1,000 of 8,000 fingerprints (12 %), 500/s, 14 s left, 3 pairs`.
fn text_line(progress: &Progress, pace: &Pace, seconds: f64) -> String {
    let stage = progress.stage();
    let label = stage.label();
    let position = progress.position();
    let measured = pace.measured(&position, seconds);
    let Position { done, total, unit } = position;
    let mut line = match total {
        Some(total) => format!(
            "{label}: {} of {} {unit} ({} %)",
            count(done),
            count(total),
            100 * done.min(total) / total
        ),
        None if is_counted(stage) => format!("{label}: {} {unit}", count(done)),
        None => label.to_owned(),
    };
    if let Some((rate, left)) = measured.filter(|_| total.is_some() || is_counted(stage)) {
        line += &format!(", {}/s", count(rate.round() as u64));
        if let Some(left) = left {
            line += &format!(
                ", {} left",
                HumanDuration(Duration::from_secs_f64(left.min(1e9)))
            );
        }
    }
    if stage == Stage::Probe {
        let pairs = progress.pairs.load(Ordering::Relaxed);
        line += &format!(", {} pairs", count(pairs));
    }
    line
}

fn json_line(progress: &Progress, pace: &Pace, seconds: f64) -> serde_json::Value {
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let position = progress.position();
    let measured = pace.measured(&position, seconds);
    serde_json::json!({
        "timestamp": now,
        "level": "INFO",
        "fields": {
            "message": "progress",
            "stage": progress.stage().label(),
            "done": position.done,
            "all": position.total,
            "per_second": measured.map(|(rate, _)| rate),
            "seconds_left": measured.and_then(|(_, left)| left),
            "hits": progress.pairs.load(Ordering::Relaxed),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_units_and_totals() {
        let progress = Progress::default();
        let line = |stage| {
            progress.enter(stage);
            text_line(&progress, &Pace::new(&progress), 1.0)
        };
        progress.documents.store(1_500, Ordering::Relaxed);
        assert_eq!(line(Stage::Fingerprint), "fingerprinting: 1,500 documents");
        progress.documents_total.store(6_000, Ordering::Relaxed);
        assert_eq!(
            line(Stage::Fingerprint),
            "fingerprinting: 1,500 of 6,000 documents (25 %)"
        );
        let pace = Pace::new(&progress);
        progress.documents.store(3_000, Ordering::Relaxed);
        assert_eq!(
            text_line(&progress, &pace, 10.0),
            "fingerprinting: 3,000 of 6,000 documents (50 %), 150/s, 20 seconds left"
        );
        let json = json_line(&progress, &pace, 10.0);
        assert_eq!(json["fields"]["per_second"], 150.0);
        assert_eq!(json["fields"]["seconds_left"], 20.0);
        assert_eq!(line(Stage::Commit), "committing");
        progress.pairs.store(7, Ordering::Relaxed);
        progress.probe_total.store(10, Ordering::Relaxed);
        assert_eq!(
            line(Stage::Probe),
            "probing: 0 of 10 fingerprints (0 %), 7 pairs"
        );
    }
}
