//! `dedup-job tune`: compares settings on a sample of the user's documents, and says which to take.

mod best;
mod lengths;
mod next_commands;
mod text;

use ::archive::IdType;
use documents::{Columns, Documents};
use engine::SpecOptions;
use engine::progress::Stage;
use engine::recipe::IDF_POWER;
use engine::tune::{SpecToTune, Tune, tune};
use serde_json::json;
use simhash::{Tokenizer, Weight};

use crate::args::{CommonArgs, SpecArgs, TuneArgs};
use crate::exit::{Failure, usage};
use crate::printing::{print, print_json};
use crate::process::{self, Process};

const DEFAULT_SAMPLE: u32 = 20_000;
const DEFAULT_MIN_SIMILARITY: f64 = 0.8;
/// Default of --day-size.
const DEFAULT_BATCH: u32 = 1_000_000;
/// Default of --archive-size.
const DEFAULT_ARCHIVE: u64 = 1_000_000_000;

/// The tokenizers to compare.
const TOKENIZERS: [Tokenizer; 2] = [Tokenizer::WordsCjkGrams, Tokenizer::WordsAndShingles(2)];
/// The weights to compare, each with and without document frequencies.
const WEIGHTS: [Weight; 3] = [Weight::SqrtTf, Weight::LogTf, Weight::Tf];

pub fn run(common: &CommonArgs, args: &TuneArgs) -> Result<(), Failure> {
    if args.documents.is_empty() {
        return usage("documents are needed: the files to take a sample of; see --help");
    }
    let min_similarity = args.min_similarity.unwrap_or(DEFAULT_MIN_SIMILARITY);
    if !(0.5..=1.0).contains(&min_similarity) {
        return usage(format!(
            "--min-similarity {min_similarity} is not between 0.5 and 1"
        ));
    }
    let asked = Tune {
        sample: args.sample.unwrap_or(DEFAULT_SAMPLE) as usize,
        min_similarity,
        batch: args.day_size.unwrap_or(DEFAULT_BATCH) as usize,
        archive: args.archive_size.unwrap_or(DEFAULT_ARCHIVE),
        memory: process::memory_limit(common),
    };
    let compared = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let columns = Columns {
            with_sources: true,
            source: args.source.clone(),
            ..args.columns.text_columns()
        };
        let mut documents = Documents::open(&process.context, &args.documents, &columns).await?;
        let mut options = args.spec.spec_options(stores).await?;
        if args.base.is_none() {
            options = options.for_documents(&documents);
        }
        let candidates = if args.base.is_some() || chooses_features(&args.spec) {
            vec![SpecToTune {
                model: options.model_at(stores, args.base.as_deref()).await?,
                learn: None,
            }]
        } else {
            candidates(&options)?
        };
        if let Some(candidate) = candidates.first() {
            let name = args.base.as_deref().unwrap_or_default();
            documents.read_pages(options.pages(&documents, name, candidate.model.spec())?);
        }
        process.resources.progress.enter(Stage::Fingerprint);
        let id_type = documents.id_type().unwrap_or(IdType::String);
        Ok(tune(&process.context, &documents, id_type, &candidates, &asked).await?)
    })?;
    let fixed_bits = if args.base.is_some() || args.spec.sketch.is_some() {
        compared.first().map(|tuned| tuned.spec.sketch.bits())
    } else {
        None
    };
    let advice = best::advice(&compared, fixed_bits);
    let Some((tuned, k)) = advice.spec(&compared) else {
        return usage("no settings to compare");
    };
    let commands = next_commands::lines(args, &advice, tuned, min_similarity);
    if common.json {
        let mut value = json!(tuned);
        value["min_similarity"] = min_similarity.into();
        value["reliable_length"] = lengths::summary(tuned, k);
        value["compared"] = (compared.iter())
            .map(|tuned| best::summary(&compared, tuned))
            .collect();
        value["advice"] = text::advice_json(&advice);
        value["commands"] = commands.into();
        return print_json(&value);
    }
    print(&text::render(
        &compared,
        &advice,
        (tuned, k),
        &asked,
        &commands,
    ))
}

/// Whether the options fix the features or their weights, so that `tune` has no specs to compare.
fn chooses_features(spec: &SpecArgs) -> bool {
    spec.features.tokenizer.is_some() || spec.weight.is_some() || spec.idf.is_some()
}

/// The specs to compare, the default first.
fn candidates(options: &SpecOptions) -> Result<Vec<SpecToTune>, Failure> {
    let mut options = options.clone();
    let idf_power = options.idf_power.take().unwrap_or(IDF_POWER);
    let mut candidates = Vec::new();
    for tokenizer in TOKENIZERS {
        for weight in WEIGHTS {
            let options = SpecOptions {
                tokenizer: Some(tokenizer),
                weight: Some(weight),
                ..options.clone()
            };
            let model = options.model()?;
            for learn in [None, Some(idf_power)] {
                let model = model.clone();
                candidates.push(SpecToTune { model, learn });
            }
        }
    }
    Ok(candidates)
}
