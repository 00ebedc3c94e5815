//! `dedup-job tune`: which largest distance finds what, among a sample of the user's own documents.

use std::fmt::Write as _;

use ::archive::IdType;
use engine::documents::{Columns, Documents};
use engine::progress::Stage;
use engine::tune::{Tune, Tuned, tune};
use serde_json::json;

use crate::args::{CommonArgs, TuneArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json, size};

/// Documents of a sample, of which all pairs are compared.
const SAMPLE: u32 = 20_000;

pub fn run(common: &CommonArgs, args: &TuneArgs) -> Result<(), Failure> {
    if args.documents.is_empty() {
        return Err(Failure::Usage(
            "documents are needed, to take a sample of; see --help".into(),
        ));
    }
    let min_similarity = args.min_similarity.unwrap_or(0.8);
    if !(0.5..=1.0).contains(&min_similarity) {
        return Err(Failure::Usage(format!(
            "--min-similarity {min_similarity} is not between 0.5 and 1"
        )));
    }
    let asked = Tune {
        sample: args.sample.unwrap_or(SAMPLE) as usize,
        min_similarity,
        day: args.day_size.unwrap_or(1_000_000) as usize,
        history: args.history_size.unwrap_or(1_000_000_000),
        memory: process::memory(common),
    };
    let (tuned, spec) = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let wanted = args.spec.wanted(stores).await?;
        let model = wanted.model_at(stores, args.base.as_deref()).await?;
        let columns = Columns {
            texts_only: true,
            ..args.columns.columns()
        };
        let documents = Documents::open(&process.context, &args.documents, &columns).await?;
        let progress = &process.resources.progress;
        progress.enter(Stage::Fingerprint);
        let id_type = documents.id_type().unwrap_or(IdType::String);
        let tuned = tune(
            &process.context,
            &documents,
            id_type,
            &model,
            &asked,
            progress,
        )
        .await?;
        Ok((tuned, model.spec().clone()))
    })?;
    if common.json {
        let mut value = json!(tuned);
        value["spec"] = json!(spec);
        value["min_similarity"] = min_similarity.into();
        return print_json(&value);
    }
    print(&as_text(&tuned, &asked, &spec.to_json()))
}

fn as_text(tuned: &Tuned, asked: &Tune, spec: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {} documents, {} without a fingerprint",
        count(tuned.sampled as u64),
        count(tuned.documents),
        count(tuned.without_fingerprint as u64)
    );
    let _ = writeln!(text, "spec: {spec}");
    let [a, b, c, d] = tuned.alike.map(|pairs| count(pairs as u64));
    let _ = writeln!(
        text,
        "pairs by their exact similarity (Jaccard, shingles of three words): {a} from 0.95 on, {b} from 0.9, {c} from 0.8, {d} from 0.5"
    );
    let _ = writeln!(
        text,
        "what -k finds; recall and precision at {}; cost of {} against {} fingerprints, predicted, one core:",
        asked.min_similarity,
        count(asked.day as u64),
        count(asked.history)
    );
    let _ = writeln!(
        text,
        "  {:>2} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7} {:>9} {:>12} {:>11} {:>9}",
        "k",
        "pairs",
        ">= .95",
        ".9-.95",
        ".8-.9",
        ".5-.8",
        "< .5",
        "recall",
        "precision",
        "design",
        "tables",
        "seconds"
    );
    for at in &tuned.distances {
        let [a, b, c, d, e] = at.by_similarity.map(|pairs| count(pairs as u64));
        let _ = writeln!(
            text,
            "  {:>2} {:>10} {a:>9} {b:>9} {c:>9} {d:>9} {e:>10} {:>7.3} {:>9.3} {:>12} {:>11} {:>9.1}",
            at.max_distance,
            count(at.pairs as u64),
            at.recall,
            at.precision,
            at.design,
            size(at.table_bytes as u64),
            at.core_seconds
        );
    }
    let enough = tuned.distances.iter().find(|at| at.recall >= 0.97);
    let _ = match (tuned.wanted, enough) {
        (0, _) => writeln!(
            text,
            "no pair of the sample is so alike: take a larger one, or documents among which there are copies"
        ),
        (_, Some(at)) => writeln!(
            text,
            "-k {} finds {:.1} % of the pairs at {}; with --verify jaccard the others that it finds are dropped",
            at.max_distance,
            100.0 * at.recall,
            asked.min_similarity
        ),
        (_, None) => writeln!(
            text,
            "no k up to 16 finds 97 % of the pairs at {}: try other features or weights",
            asked.min_similarity
        ),
    };
    text
}
