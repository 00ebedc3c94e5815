//! One module per command: it builds settings from the arguments, calls a library once and prints a
//! summary. Commands share `output_checks`, which checks output files.

pub mod archive;
pub mod completions;
mod dropped;
pub mod explain;
pub mod fingerprint;
pub mod generate;
pub mod groups;
pub mod history;
pub mod idf;
pub mod index;
pub mod job;
pub mod lookup;
pub mod output_checks;
pub mod plan;
pub mod report;
pub mod run;
pub mod serve;
pub mod show;
pub mod sql;
pub mod tune;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use documents::{Columns, DocumentId, Documents, Pages};
use simhash::Markup;
use storage::Location;

use crate::exit::Failure;
use crate::process::Process;
use crate::spooled::spooled;

/// The value of an option that the command requires; without one, an error that names the option.
fn required<T>(value: Option<T>, option: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::Usage(format!("{option} is required; see --help")))
}

/// Opens documents whose texts are looked up by their ids. Those of files without ids have the ids that a run gives them.
async fn open_texts(
    process: &Process,
    paths: &[String],
    columns: Columns,
) -> Result<Documents, Failure> {
    let columns = Columns {
        row_ids: true,
        spooled: Some(process.scratch.path().to_owned()),
        ..columns
    };
    let paths = spooled(process, paths.to_vec(), None).await?;
    Ok(Documents::open(&process.context, &paths, &columns).await?)
}

/// The texts of the documents with the `wanted` ids, by id, for people to read: of pages, the text that `markup` leaves, or
/// without one the visible text.
async fn texts_to_show(
    process: &Process,
    paths: &[String],
    columns: Columns,
    markup: Option<Markup>,
    wanted: HashSet<DocumentId>,
) -> Result<HashMap<String, String>, Failure> {
    let mut documents = open_texts(process, paths, columns).await?;
    documents.read_pages(match markup {
        None => Pages::VisibleText,
        Some(Markup::None) => Pages::Source,
        Some(_) => Pages::Html,
    });
    let mut texts = documents.texts(&process.context, Arc::new(wanted)).await?;
    if let Some(markup) = markup.filter(|markup| !markup.is_none()) {
        for text in texts.values_mut() {
            let page = std::mem::take(text);
            markup.strip(&page, text);
        }
    }
    Ok(texts)
}

/// The outputs that the paths name; files of one directory or pattern are sorted by name.
async fn output_files(process: &Process, paths: &[String]) -> Result<Vec<Location>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let listed = ::archive::input_files(process.stores(), path, &OUTPUT_ENDINGS).await;
        files.extend(listed?.0);
    }
    // A file with several paths is read once.
    let mut seen = HashSet::new();
    files.retain(|file: &Location| seen.insert(file.identity()));
    Ok(files)
}

/// Endings of outputs in a directory.
const OUTPUT_ENDINGS: [&str; 3] = ["parquet", "csv", "jsonl"];

/// Refuses a value of --near that no similarity can have.
fn check_near(near: f64) -> Result<(), Failure> {
    if (0.0..=1.0).contains(&near) {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "--near {near} is not a similarity from 0 to 1"
        )))
    }
}
