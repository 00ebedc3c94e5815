//! `dedup-job idf`: a table of document frequencies, learnt from documents.

use ::archive::frequencies;
use engine::documents::{Columns, Documents};
use engine::draft::Draft;
use engine::idf::{self, Learnt};
use engine::progress::Stage;
use serde_json::json;

use super::{output, required};
use crate::args::{CommonArgs, IdfArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json};

/// Features that are listed unless another number is asked for.
const TERMS: u32 = 1_000_000;

pub fn run(common: &CommonArgs, args: &IdfArgs) -> Result<(), Failure> {
    if args.documents.is_empty() {
        return Err(Failure::Usage(
            "documents are needed, to learn from; see --help".into(),
        ));
    }
    let given = required(args.output.clone(), "--output FILE")?;
    let inputs: Vec<&str> = args.documents.iter().map(String::as_str).collect();
    let terms = args.terms.unwrap_or(TERMS) as usize;
    let (learnt, digest) = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let place = output(stores, "--output", &given, &inputs).await?;
        let model = args.features.wanted(stores).await?.model()?;
        let columns = Columns {
            texts_only: true,
            ..args.columns.columns()
        };
        let documents = Documents::open(&process.context, &args.documents, &columns).await?;
        let progress = &process.resources.progress;
        progress.enter(Stage::Fingerprint);
        let learnt = idf::learn(&process.context, &documents, &model, terms, progress).await?;
        let table = frequencies::table(&given, model.spec(), 0, &learnt.frequencies)?;
        let bytes = frequencies::encode(&given, model.spec(), &learnt.frequencies)?;
        let draft = Draft::new(&place, process.scratch.path())?;
        let written = std::io::Write::write_all(&mut draft.open()?, &bytes);
        written.map_err(|source| Failure::Io {
            path: given.clone(),
            source,
        })?;
        draft.publish().await?;
        Ok((learnt, table.digest().to_owned()))
    })?;
    report(common, &given, &learnt, &digest)
}

fn report(common: &CommonArgs, output: &str, learnt: &Learnt, digest: &str) -> Result<(), Failure> {
    let of = &learnt.frequencies;
    if common.json {
        return print_json(&json!({
            "output": output,
            "documents": of.documents,
            "distinct_features": learnt.distinct,
            "terms": of.features.len(),
            "rest": of.rest,
            "digest": digest,
        }));
    }
    if common.quiet {
        return Ok(());
    }
    let commonest: Vec<String> = of
        .features
        .iter()
        .take(5)
        .map(|(feature, documents)| format!("{feature:?} in {}", count(*documents)))
        .collect();
    print(&format!(
        "{output}: {} of {} features of {} documents; the others count as if each were in {}\n  most frequent: {}\n",
        count(of.features.len() as u64),
        count(learnt.distinct),
        count(of.documents),
        count(of.rest),
        commonest.join(", ")
    ))
}
