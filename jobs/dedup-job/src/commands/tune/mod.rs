//! `dedup-job tune`: which pairs each largest distance finds in a sample of the user's documents.

mod command;
mod text;

use ::archive::IdType;
use engine::documents::Documents;
use engine::progress::Stage;
use engine::tune::{Tune, tune};
use serde_json::json;

use crate::args::{CommonArgs, TuneArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{print, print_json};

/// Documents of the sample, by default.
const SAMPLE: u32 = 20_000;
/// The smallest similarity of a pair that should be found, by default.
const MIN_SIMILARITY: f64 = 0.8;
/// Documents of a batch, by default.
const BATCH: u32 = 1_000_000;
/// Documents of the archive, by default.
const ARCHIVE: u64 = 1_000_000_000;

pub fn run(common: &CommonArgs, args: &TuneArgs) -> Result<(), Failure> {
    if args.documents.is_empty() {
        return Err(Failure::Usage(
            "documents are needed: the files to take a sample of; see --help".into(),
        ));
    }
    let min_similarity = args.min_similarity.unwrap_or(MIN_SIMILARITY);
    if !(0.5..=1.0).contains(&min_similarity) {
        return Err(Failure::Usage(format!(
            "--min-similarity {min_similarity} is not between 0.5 and 1"
        )));
    }
    let asked = Tune {
        sample: args.sample.unwrap_or(SAMPLE) as usize,
        min_similarity,
        day: args.day_size.unwrap_or(BATCH) as usize,
        history: args.history_size.unwrap_or(ARCHIVE),
        memory: process::memory(common),
    };
    let (tuned, spec) = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let wanted = args.spec.wanted(stores).await?;
        let model = wanted.model_at(stores, args.base.as_deref()).await?;
        let columns = args.columns.text_columns();
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
    print(&text::render(&tuned, &asked, &spec, args))
}
