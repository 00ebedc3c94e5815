//! `dedup-job history`: the captures of a document in an archive.

use archive::{Archive, Capture, IdSet};
use engine::progress::Stage;
use serde::Serialize;
use simhash::sketch::{differing_bits, similarity_by_bits};

use crate::args::{CommonArgs, HistoryArgs};
use crate::exit::Failure;
use crate::printing::{print, print_json};
use crate::process::{self, Process};

/// A capture, compared with the one before it.
#[derive(Debug, Serialize)]
struct Shown {
    day: Option<String>,
    /// The name of its batch, if its day has several.
    batch: Option<String>,
    /// As 16 hexadecimal digits.
    fingerprint: String,
    /// Whether it was kept; null if nothing was decided.
    kept: Option<bool>,
    /// Whether a newer capture counts instead, by --on-update keep-new.
    superseded: bool,
    /// Bits in which its fingerprint differs from that of the capture before.
    distance: Option<u32>,
    /// The similarity with the capture before that their sketches estimate.
    similarity: Option<f64>,
}

pub fn run(common: &CommonArgs, args: &HistoryArgs) -> Result<(), Failure> {
    let captures = process::run(common, async |process: &Process| {
        let archive = Archive::open(&process.locate(&args.dir)?).await?;
        let id_type = archive.id_type();
        let id = IdSet::parse(std::iter::once(args.id.as_str()), id_type).map_err(|id| {
            Failure::Usage(format!(
                "{id:?} is no id of {}: its ids are {id_type}",
                args.dir
            ))
        })?;
        process.resources.progress.enter(Stage::Open);
        Ok(archive.captures(&id).await?)
    })?;
    let shown = shown(&captures);
    if common.json {
        return print_json(&serde_json::json!({ "id": args.id, "captures": shown }));
    }
    print(&text(&args.dir, &args.id, &shown))
}

fn shown(captures: &[Capture]) -> Vec<Shown> {
    let before = std::iter::once(None).chain(captures.iter().map(Some));
    let compare = |(capture, before): (&Capture, Option<&Capture>)| {
        let sketches =
            before.and_then(|before| before.sketch.as_ref().zip(capture.sketch.as_ref()));
        Shown {
            day: capture.day.map(|day| day.to_string()),
            batch: (!capture.batch.is_empty()).then(|| capture.batch.to_string()),
            fingerprint: format!("{:016x}", capture.fingerprint),
            kept: capture.kept,
            superseded: capture.superseded,
            distance: before.map(|before| (before.fingerprint ^ capture.fingerprint).count_ones()),
            similarity: sketches
                .map(|(a, b)| similarity_by_bits(differing_bits(a, b), 8 * a.len() as u32)),
        }
    };
    captures.iter().zip(before).map(compare).collect()
}

fn text(dir: &str, id: &str, captures: &[Shown]) -> String {
    let number = match captures.len() {
        0 => return format!("{dir}: no document has the id {}\n", id.escape_debug()),
        1 => "1 capture".to_owned(),
        number => format!("{number} captures"),
    };
    let width = captures.iter().map(|capture| shown_day(capture).len() + 2);
    let width = width.max().unwrap_or(0).max(12);
    let mut text = format!("{dir}: {number} of {}\n", id.escape_debug());
    text += &format!(
        "  {:<width$}{:<18}{:<12}distance and similarity to the one before\n",
        "day", "fingerprint", "kept"
    );
    for capture in captures {
        let kept = match (capture.superseded, capture.kept) {
            (true, _) => "superseded",
            (false, Some(true)) => "yes",
            (false, Some(false)) => "no",
            (false, None) => "-",
        };
        text += &format!(
            "  {:<width$}{:<18}{kept:<12}",
            shown_day(capture),
            capture.fingerprint
        );
        let change = match (capture.distance, capture.similarity) {
            (None, _) => String::new(),
            (Some(distance), None) => distance.to_string(),
            (Some(distance), Some(similarity)) => format!("{distance:<4}{similarity:.2}"),
        };
        text += &format!("{}\n", change.trim_end());
    }
    // A row without a comparison ends in spaces.
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// The day of a capture, with the name of its batch.
fn shown_day(capture: &Shown) -> String {
    match (&capture.day, &capture.batch) {
        (Some(day), Some(batch)) => format!("{day}/{batch}"),
        (Some(day), None) => day.clone(),
        (None, _) => "-".into(),
    }
}
