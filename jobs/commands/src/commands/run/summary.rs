//! The summary of a run: one JSON object, or a few lines for people.

use engine::run::{Audit, Commit, DecisionSummary};
use engine::{RunSettings, Summary};
use serde::Serialize;
use simhash::Measure;

use crate::args::CommonArgs;
use crate::exit::Failure;
use crate::printing::{
    columns, count, crawl_records, json_line, notes, short_documents, size, some, visible,
    without_fingerprint,
};
use crate::process;

/// The sources that the summary names.
const SOURCES: usize = 5;
/// The characters of an id that it shows.
const ID_CHARACTERS: usize = 100;

/// The summary that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    peak_memory_bytes: Option<u64>,
    version: &'static str,
}

/// The summary as JSON or text, as the options ask; `None` with --quiet and without --json.
pub(super) fn render(
    common: &CommonArgs,
    settings: &RunSettings,
    summary: &Summary,
) -> Result<Option<String>, Failure> {
    if common.json {
        let report = Report {
            summary,
            peak_memory_bytes: process::peak_memory(),
            version: env!("CARGO_PKG_VERSION"),
        };
        return json_line(&report).map(Some);
    }
    Ok((!common.quiet).then(|| {
        let mut text = columns(&summary.new.columns);
        write_decisions(&mut text, settings, summary);
        write_pairs(&mut text, settings, summary);
        write_inputs(&mut text, settings, summary);
        write_commit(&mut text, settings, summary);
        write_traffic(&mut text, summary);
        write_times(&mut text, summary);
        text
    }))
}

/// Writes the counts of the decisions first, because people look for them first.
fn write_decisions(text: &mut String, settings: &RunSettings, summary: &Summary) {
    let Some(decisions) = &summary.decisions else {
        return;
    };
    let counts = &decisions.counts;
    *text += &format!(
        "{} documents: {} kept, {} duplicates of the archive, {} duplicates within the batch{}; {} of text in duplicates\n",
        count(counts.documents()),
        count(counts.kept),
        count(counts.duplicates_of_archive),
        count(counts.duplicates_within),
        some(&[(counts.empty, "empty")]),
        size(counts.duplicate_bytes)
    );
    let captures = some(&[
        (counts.updates, "have another content now"),
        (counts.dropped_updates, "of these dropped"),
        (counts.unchanged, "are unchanged"),
    ]);
    if !captures.is_empty() {
        *text += &format!(
            "  documents of the archive: {}\n",
            captures.trim_start_matches(", ")
        );
    }
    if counts.pins > 0 || !settings.pins.is_empty() {
        *text += &format!(
            "  pins: {} name documents of the batch\n",
            count(counts.pins)
        );
    }
    if counts.largest_group > 1 {
        *text += &format!(
            "  the largest group has {} documents\n",
            count(counts.largest_group)
        );
    }
    write_losses(text, decisions);
    if let Some(output) = &decisions.output {
        *text += &format!("  decisions: {output}\n");
    }
    if let Some((output, bytes)) = decisions.kept_output.as_ref().zip(decisions.kept_bytes) {
        *text += &format!("  kept documents: {output}, {}\n", size(bytes));
    }
}

/// Writes what is dropped, for a look before anything is deleted.
fn write_losses(text: &mut String, decisions: &DecisionSummary) {
    let losses = decisions.sources.iter().take(SOURCES);
    let losses = losses.map(|loss| {
        let (dropped, documents) = (count(loss.dropped), count(loss.documents));
        format!("{} {dropped} of {documents}", one_line(&loss.source))
    });
    let losses: Vec<String> = losses.collect();
    if !losses.is_empty() {
        *text += &format!("  dropped by source: {}\n", losses.join(", "));
    }
    if !decisions.dropped_at_random.is_empty() {
        text.push_str("  some that are dropped, at random:\n");
    }
    for dropped in &decisions.dropped_at_random {
        let day = dropped.duplicate_day.as_ref();
        *text += &format!(
            "    {} repeats {}{}: {} {}{}\n",
            one_line(&dropped.id),
            one_line(&dropped.duplicate_of),
            day.map_or(String::new(), |day| format!(" of {day}")),
            dropped.distance,
            if dropped.distance == 1 { "bit" } else { "bits" },
            dropped
                .similarity
                .map_or(String::new(), |found| format!(", similarity {found:.3}"))
        );
    }
    if let Some(audit) = &decisions.audit {
        *text += &format!("{}\n", audited(audit));
    }
}

/// The start of an id or of another name, which may be long and have any characters.
fn one_line(name: &str) -> String {
    let mut characters = name.chars();
    let mut start: String = characters.by_ref().take(ID_CHARACTERS).collect();
    if characters.next().is_some() {
        start.push('…');
    }
    visible(&start)
}

/// What an audit found, as a line.
fn audited(audit: &Audit) -> String {
    let missing = match audit.without_text {
        0 => String::new(),
        some => format!(
            "; the texts of {} more, or of those that they repeat, are not at hand: name those of the archive with --base-text",
            count(some)
        ),
    };
    let Some(bound) = audit.bound else {
        return format!("  audit: no dropped document was compared{missing}");
    };
    let all = match audit.without_text {
        0 => "all dropped ones",
        _ => "all whose texts are at hand",
    };
    format!(
        "  audit: of {} dropped documents, {} have a similarity below {} to the one that they repeat; of {all}, at most {:.2} % have, with 95 % confidence{missing}",
        count(audit.compared),
        count(audit.below),
        audit.min_similarity,
        100.0 * bound
    )
}

fn write_pairs(text: &mut String, settings: &RunSettings, summary: &Summary) {
    if let Some((output, hits)) = summary.output.as_ref().zip(summary.hits) {
        *text += &format!(
            "{output}: {} pairs within {} bits\n",
            count(hits),
            summary.max_distance
        );
    }
    if let Some(verified) = &summary.verified {
        let (by, what) = match verified.measure {
            Measure::Sketch => ("sketch".to_owned(), "sketch"),
            measure => (format!("text ({measure})"), "text"),
        };
        *text += &format!(
            "  verified by {by}: {} of {} pairs dropped, with a similarity below {}",
            count(verified.dropped),
            count(verified.checked),
            verified.min_similarity,
        );
        if verified.without_text > 0 {
            *text += &format!(
                "; {} pairs not verified, because a {what} was not found: they drop no document",
                count(verified.without_text)
            );
        }
        text.push('\n');
    } else if summary.hits.is_some() || summary.decisions.is_some() {
        text.push_str("  not verified: pairs of near fingerprints, whatever their texts\n");
    }
    if let Some(limit) = settings.max_hits {
        *text += &format!(
            "  {} more pairs left out: each document keeps its {limit} nearest\n",
            count(summary.hits_left_out)
        );
    }
}

fn write_inputs(text: &mut String, settings: &RunSettings, summary: &Summary) {
    let (new, base) = (&summary.new, &summary.base);
    *text += &format!(
        "  batch: {} documents{}\n",
        count(new.documents),
        some(&[
            (new.without_fingerprint, without_fingerprint(new.only_empty)),
            (new.duplicate_ids, "repeated ids"),
            (new.invalid_utf8, "not UTF-8"),
        ])
    );
    if let Some(templates) = new.templates
        && templates.passages + templates.of_many_sources > 0
    {
        let of_many = match templates.of_many_sources {
            0 => String::new(),
            passages => format!(", and {} that many sources share", count(passages)),
        };
        *text += &format!(
            "  templates: left out of the texts of {} of {} sources: {} passages{of_many}\n",
            count(templates.with_template),
            count(templates.sources),
            count(templates.passages)
        );
    }
    if let Some(records) = &new.crawl_records {
        text.push_str(&crawl_records(records));
    }
    text.push_str(&notes(&new.notes));
    if let Some(short) = new.short {
        text.push_str(&short_documents(short, summary.max_distance));
    }
    if summary.verified.is_none() {
        text.push_str(&alike(new.number_texts, new.long_texts));
    }
    if settings.base.is_empty() {
        return;
    }
    let name = settings.base.join(" and ");
    let version = base
        .version
        .map_or(String::new(), |version| format!(" (version {version})"));
    *text += &format!(
        "  archive: {} fingerprints in {} files of {}{version}, {} read\n",
        count(base.fingerprints),
        count(base.files),
        name,
        size(base.bytes_read)
    );
}

/// The line about documents whose fingerprints are near although their texts are not.
fn alike(numbers: u64, long: u64) -> String {
    let kinds = some(&[
        (numbers, "documents are mostly digits"),
        (long, "documents have more than 300 kB"),
    ]);
    if kinds.is_empty() {
        return kinds;
    }
    format!(
        "  {}: unrelated ones of these can have near fingerprints, and nothing else was compared; see --verify\n",
        kinds.trim_start_matches(", ")
    )
}

fn write_commit(text: &mut String, settings: &RunSettings, summary: &Summary) {
    let day = summary.day.as_deref().unwrap_or_default();
    match summary.commit {
        Commit::NotAsked if settings.day.is_none() && summary.day.is_some() => {
            *text += &format!(
                "  the batch is already day {day} of the archive: compared only with what was committed before it\n"
            );
        }
        Commit::NotAsked => {}
        Commit::Committed(version) => {
            *text += &format!("  day {day}: committed as version {version}\n");
        }
        Commit::AlreadyThere => {
            *text += &format!("  day {day}: committed already; the archive is unchanged\n");
        }
    }
    if summary.removed > 0 {
        *text += &format!(
            "  {} documents of the day were removed from the archive later, and are not compared\n",
            count(summary.removed)
        );
    }
    if summary.comparisons > 1 {
        *text += &format!(
            "  compared {} times, because the archive changed during the run\n",
            summary.comparisons
        );
    }
}

fn write_traffic(text: &mut String, summary: &Summary) {
    let network = &summary.network;
    if network.requests > 0 {
        *text += &format!(
            "  storage: {} requests, {} of them failed temporarily; {} received, {} sent\n",
            count(network.requests),
            count(network.retries),
            size(network.bytes_received),
            size(network.bytes_sent)
        );
    }
}

fn write_times(text: &mut String, summary: &Summary) {
    let seconds = &summary.seconds;
    let passes = match summary.passes {
        1 => String::new(),
        passes => format!(", {passes} passes over the archive due to the memory limit"),
    };
    let verify = match summary.verified {
        Some(_) => format!(", verify {:.2}", seconds.verify),
        None => String::new(),
    };
    let peak = process::peak_memory().map_or(String::new(), |bytes| {
        format!("; peak memory {}", size(bytes))
    });
    *text += &format!(
        "  {:.2} s: open {:.2}, fingerprint {:.2}, build {:.2} ({}{passes}), probe {:.2} ({}){verify}, commit {:.2}{peak}\n",
        seconds.total,
        seconds.open,
        seconds.fingerprint,
        seconds.build,
        summary.design,
        seconds.probe,
        summary.kernel,
        seconds.commit
    );
}
