//! `dedup-job idf`: counts the documents that contain each feature, and writes the table.

use ::archive::frequencies;
use documents::Documents;
use engine::SpecOptions;
use engine::idf::{self, Learnt};
use engine::output::OutputKind;
use engine::progress::Stage;
use serde_json::json;
use simhash::Model;

use super::output_checks::Outputs;
use super::required;
use crate::args::{ColumnArgs, CommonArgs, FeatureArgs, IdfArgs};
use crate::exit::{Failure, usage};
use crate::printing::{count, print_json, print_summary};
use crate::process::{self, Process};

pub(super) const DEFAULT_TERMS: u32 = 1_000_000;

pub fn run(common: &CommonArgs, args: &IdfArgs) -> Result<(), Failure> {
    if args.documents.is_empty() {
        return usage("documents are required: the files to count features in; see --help");
    }
    let output = required(args.output.clone(), "--output FILE")?;
    let (learnt, digest) = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let inputs = args.documents.iter().map(String::as_str);
        let outputs = Outputs {
            stores,
            inputs: inputs.chain(args.features.stop_words.as_deref()).collect(),
            overwrite: args.overwrite,
        };
        let place = outputs
            .check_parquet("--output", &output, OutputKind::Frequencies)
            .await?;
        let (model, learnt) = learn(
            process,
            &args.documents,
            &args.columns,
            &args.features,
            args.terms.unwrap_or(DEFAULT_TERMS),
        )
        .await?;
        let table = frequencies::weights(&output, model.spec(), model.spec(), &learnt.frequencies)?;
        let bytes = frequencies::encode(&output, model.spec(), &learnt.frequencies)?;
        process.write(&place, &bytes).await?;
        Ok((learnt, table.digest().to_owned()))
    })?;
    report(common, &output, &learnt, &digest)
}

/// Counts the documents that contain each feature, and keeps the `terms` most frequent features.
pub(super) async fn learn(
    process: &Process,
    paths: &[String],
    columns: &ColumnArgs,
    features: &FeatureArgs,
    terms: u32,
) -> Result<(Model, Learnt), Failure> {
    let options = SpecOptions {
        // Features are counted whether or not a document has enough of them for a fingerprint.
        min_features: Some(0),
        ..features.spec_options(process.stores()).await?
    };
    let mut documents = Documents::open(&process.context, paths, &columns.text_columns()).await?;
    let options = options.for_documents(&documents);
    let model = options.model()?;
    documents.read_pages(options.pages(&documents, "the table", model.spec())?);
    let progress = &process.resources.progress;
    progress.enter(Stage::Fingerprint);
    let terms = terms as usize;
    let learnt = idf::learn(&process.context, &documents, &model, terms, progress).await?;
    Ok((model, learnt))
}

fn report(common: &CommonArgs, output: &str, learnt: &Learnt, digest: &str) -> Result<(), Failure> {
    let table = &learnt.frequencies;
    if common.json {
        return print_json(&json!({
            "output": output,
            "documents": learnt.documents,
            "counted_as_documents": table.documents,
            "distinct_features": learnt.distinct,
            "terms": table.features.len(),
            "rest": table.rest,
            "digest": digest,
        }));
    }
    let most_frequent: Vec<String> = table
        .features
        .iter()
        .take(5)
        .map(|(feature, documents)| format!("{feature:?} in {}", count(*documents)))
        .collect();
    print_summary(
        common,
        &format!(
            "{output}: {} of {} features of {} documents{}; each other feature counts as if it were in {} documents\n  most frequent: {}\n",
            count(table.features.len() as u64),
            count(learnt.distinct),
            count(learnt.documents),
            if table.documents > learnt.documents {
                format!(", which count as a part of {}", count(table.documents))
            } else {
                String::new()
            },
            count(table.rest),
            most_frequent.join(", ")
        ),
    )
}
