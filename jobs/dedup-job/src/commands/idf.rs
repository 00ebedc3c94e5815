//! `dedup-job idf`: a table of document frequencies, learnt from documents.

use std::path::Path;

use ::archive::frequencies;
use engine::documents::{Columns, Documents};
use engine::idf::{self, Learnt};
use engine::progress::Stage;
use serde_json::json;

use super::{check_output, local, required};
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
    let output = local("--output", &given)?;
    let inputs: Vec<&str> = args.documents.iter().map(String::as_str).collect();
    check_output("--output", &output, &inputs)?;
    let terms = args.terms.unwrap_or(TERMS) as usize;
    let (learnt, digest) = process::run(common, async |process: &Process| {
        let model = args.features.wanted().model()?;
        let columns = Columns {
            texts_only: true,
            ..args.columns.columns()
        };
        let documents = Documents::open(&process.context, &args.documents, &columns).await?;
        let progress = &process.resources.progress;
        progress.enter(Stage::Fingerprint);
        let learnt = idf::learn(&process.context, &documents, &model, terms, progress).await?;
        let name = output.display().to_string();
        let table = frequencies::table(&name, model.spec(), 0, &learnt.frequencies)?;
        let bytes = frequencies::encode(&name, model.spec(), &learnt.frequencies)?;
        write(&output, &bytes)?;
        Ok((learnt, table.digest().to_owned()))
    })?;
    report(common, &given, &learnt, &digest)
}

/// Writes the file whole or not at all.
fn write(output: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |source| Failure::Io {
        path: output.display().to_string(),
        source,
    };
    let directory = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut staged = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        // As other programs' files: temporary files are private by default.
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)
        .map_err(failed)?;
    std::io::Write::write_all(&mut staged, bytes)
        .and_then(|()| staged.as_file().sync_all())
        .map_err(failed)?;
    let published = staged.persist(output);
    published.map_err(|error| failed(error.error)).map(drop)
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
