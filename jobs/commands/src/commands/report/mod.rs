//! `dedup-job report`: one page of HTML about an output of pairs or of decisions.

mod bit_shares;
mod chart;
mod escape;
mod facts;
mod page;
mod samples;
mod source_tables;
pub(super) mod sources;
mod warnings;

use std::sync::atomic::Ordering;

use archive::{Archive, Scope, Snapshot};
use documents::DocumentId;
use engine::EngineError;
use engine::output::{OutputKind, ReadRow, read_rows};
use engine::progress::Stage;
use engine::template::{CutText, CutTexts};
use serde_json::json;
use storage::Location;

use self::bit_shares::BitShares;
use self::facts::Facts;
use self::page::{Report, Shown};
use self::samples::{Sample, Samples};
use self::sources::Loss;
use super::output_checks::Outputs;
use super::{ShownDocuments, check_near, output_files, required, texts_to_show};
use crate::args::{CommonArgs, ReportArgs};
use crate::exit::{Failure, usage};
use crate::printing::{count, print_json, print_summary, size};
use crate::process::{self, Process};
use crate::word_diff;

/// The similarity around which samples are chosen, unless --near says otherwise.
const DEFAULT_THRESHOLD: f64 = 0.8;

pub fn run(common: &CommonArgs, args: &ReportArgs) -> Result<(), Failure> {
    if args.rows.is_empty() {
        return usage("PAIRS or DECISIONS are required; see --help");
    }
    let output = required(args.output.clone(), "--output")?;
    let threshold = args.near.unwrap_or(DEFAULT_THRESHOLD);
    check_near(threshold)?;
    let (facts, samples, bytes) = process::run(common, async |process: &Process| {
        let location = check_output(process, args, &output).await?;
        let files = output_files(process, &args.rows).await?;
        let name = match &files[..] {
            [] => {
                return usage(format!(
                    "{}: there is no output of `run`",
                    args.rows.join(", ")
                ));
            }
            [only] => only.file_name(),
            files => format!("{} files", files.len()),
        };
        process.resources.progress.enter(Stage::Read);
        let (mut facts, samples) = count_rows(process, &files, threshold).await?;
        let samples = find_texts(process, args, samples, &mut facts.losses).await?;
        let bit_shares = match &args.archive {
            Some(archive) => {
                let archive = Archive::open(&process.locate(archive)?).await?;
                let snapshot = Snapshot::open_archive(&archive, Scope::All).await?;
                Some(BitShares::read(&snapshot).await?)
            }
            None => None,
        };
        let page = page::page(&Report {
            name: &name,
            facts: &facts,
            matrix: facts.sources.matrix().as_ref(),
            bit_shares: bit_shares.as_ref(),
            warnings: &warnings::warnings(&facts, bit_shares.as_ref()),
            samples: &samples,
            threshold,
            looked_up: !args.documents.is_empty(),
            texts: !args.no_text,
        });
        process.write(&location, page.as_bytes()).await?;
        Ok((facts, samples.len(), page.len() as u64))
    })?;
    if common.json {
        return print_json(&json!({
            "output": output,
            "bytes": bytes,
            "rows": facts.rows,
            "pairs": facts.pairs,
            "samples": samples,
        }));
    }
    let what = match facts.kind {
        OutputKind::Decisions => format!(
            "{} documents, {} kept",
            count(facts.rows),
            count(facts.kept())
        ),
        _ => format!("{} pairs", count(facts.pairs)),
    };
    print_summary(
        common,
        &format!("{output}: {what}, {samples} samples, {}\n", size(bytes)),
    )
}

/// Checks that --output may be written; returns its location.
async fn check_output(
    process: &Process,
    args: &ReportArgs,
    output: &str,
) -> Result<Location, Failure> {
    let inputs = args.documents.iter().chain(&args.rows).map(String::as_str);
    let outputs = Outputs {
        stores: process.stores(),
        inputs: inputs.chain(args.archive.as_deref()).collect(),
        overwrite: args.overwrite,
    };
    let is_html = [".html", ".htm"]
        .iter()
        .any(|ending| output.ends_with(ending));
    if !is_html {
        return usage(format!(
            "--output {output}: the report is a page, so its name must end in .html"
        ));
    }
    outputs
        .check_file("--output", output, OutputKind::Report)
        .await
}

/// Counts the rows and chooses samples of them.
async fn count_rows(
    process: &Process,
    files: &[Location],
    threshold: f64,
) -> Result<(Facts, Vec<Sample>), Failure> {
    let mut facts = Facts::new(threshold);
    let mut kind = None;
    let steps = &process.resources.progress.steps;
    for file in files {
        let found = read_rows(file, |row| {
            steps.fetch_add(1, Ordering::Relaxed);
            facts.add(&row);
        });
        let found = found.await?;
        if kind.is_some() && found.is_some() && kind != found {
            return Err(EngineError::bad_data(file, format!("it has other rows than {}: one has pairs, the other decisions; make a report of each", files[0]))
            .into());
        }
        kind = kind.or(found);
    }
    facts.finish(kind.unwrap_or(OutputKind::Pairs));
    let samples = std::mem::replace(&mut facts.samples, Samples::new(threshold));
    let mut second = samples.into_second_pass();
    let mut sites = std::mem::take(&mut facts.sites);
    if second.is_needed() || sites.are_known {
        let mut add = |row: ReadRow<'_>| {
            second.add(&row);
            sites.add_again(&row);
        };
        for file in files {
            read_rows(file, &mut add).await?;
        }
    }
    if sites.are_known {
        facts.losses = sites.losses();
        facts.sources = sites.sources;
    }
    Ok((facts, second.into_samples()))
}

/// Looks up the texts of the samples, and compares them; adds to the losses how much of the sources is template.
async fn find_texts(
    process: &Process,
    args: &ReportArgs,
    samples: Vec<Sample>,
    losses: &mut [Loss],
) -> Result<Vec<Shown>, Failure> {
    let mut found = CutTexts::default();
    if !args.documents.is_empty() {
        let documents = ShownDocuments {
            paths: &args.documents,
            columns: args.columns.text_columns(),
            markup: args.markup,
            archive: args.archive.as_deref(),
        };
        let ids = samples.iter().flat_map(|sample| sample.pair.ids());
        let wanted = ids.map(|id| DocumentId::Text(id.into())).collect();
        let sources = losses.iter().map(|loss| loss.source.clone()).collect();
        found = texts_to_show(process, documents, wanted, &sources).await?;
    }
    for loss in losses {
        loss.words = found.sources.get(&loss.source).copied();
    }
    let shown = samples.into_iter().map(|sample| {
        let [new, base] = found.of_pair(sample.pair.ids());
        let both = new.zip(base);
        let start = |text: &CutText| word_diff::template_start(&text.template);
        Shown {
            sides: both.map(|(new, base)| word_diff::compare(&new.content, &base.content)),
            templates: both.map_or([None, None], |(new, base)| [start(new), start(base)]),
            sample,
        }
    });
    Ok(shown.collect())
}
