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
mod pairs;
pub mod plan;
pub mod report;
pub mod run;
pub mod serve;
pub mod show;
pub mod sql;
pub mod tune;

use std::collections::HashSet;
use std::sync::Arc;

use ::archive::Archive;
use documents::{Columns, DocumentId, Documents, Pages};
use engine::recipe::SpecOptions;
use engine::template::{CutText, CutTexts, archive_templates, cut_texts};
use hamming::Design;
use simhash::{Markup, Template};
use storage::Location;
use template::domain;

use crate::exit::{Failure, usage};
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

/// Documents whose texts people read.
struct ShownDocuments<'a> {
    paths: &'a [String],
    columns: Columns,
    /// What is left of pages; without one, the visible text.
    markup: Option<Markup>,
    /// An archive, whose templates are cut off, unless there is a markup.
    archive: Option<&'a str>,
}

/// The texts of the documents with the `wanted` ids; and, with an archive that leaves templates out, the words of the `sources`.
async fn texts_to_show(
    process: &Process,
    shown: ShownDocuments<'_>,
    wanted: HashSet<DocumentId>,
    sources: &HashSet<String>,
) -> Result<CutTexts, Failure> {
    let (paths, markup) = (shown.paths, shown.markup);
    if let (Some(archive), None) = (shown.archive, markup) {
        let archive = Archive::open(&process.locate(archive)?).await?;
        if let Some(left_out) = archive_templates(&archive).await? {
            let columns = Columns {
                with_sources: true,
                ..shown.columns
            };
            let mut documents = open_texts(process, paths, columns).await?;
            let spec = archive.spec();
            documents.read_pages(SpecOptions::default().pages_under(spec));
            if spec.template == Template::Domains {
                documents.source_by_domains();
            }
            // All hosts of a domain may be one source.
            let source_of = |host: &str| match spec.template {
                Template::Domains => domain(host).to_owned(),
                Template::On | Template::Off => host.to_owned(),
            };
            let names = sources.iter().map(|host| source_of(host)).collect();
            let cut = cut_texts(&process.context, &documents, &left_out, &wanted, &names);
            let CutTexts { texts, sources: of } = cut.await?;
            let words = sources
                .iter()
                .filter_map(|host| Some((host.clone(), *of.get(&source_of(host))?)));
            return Ok(CutTexts {
                texts,
                sources: words.collect(),
            });
        }
    }
    let mut documents = open_texts(process, paths, shown.columns).await?;
    documents.read_pages(match markup {
        None => Pages::VisibleText,
        Some(Markup::None) => Pages::Source,
        Some(_) => Pages::Html,
    });
    let mut texts = documents.texts(&process.context, Arc::new(wanted)).await?;
    if let Some(markup) = markup.filter(|markup| !markup.is_none()) {
        for text in texts.values_mut().flatten() {
            let page = std::mem::take(text);
            markup.strip(&page, text);
        }
    }
    let whole = texts.into_iter().map(|(id, contents)| {
        let whole = |content| CutText {
            content,
            template: String::new(),
        };
        (id, contents.into_iter().map(whole).collect())
    });
    Ok(CutTexts {
        texts: whole.collect(),
        ..CutTexts::default()
    })
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

/// The design of a --design, for pairs within `k` bits.
fn design_named(name: Option<&str>, k: u32) -> Result<Option<Design>, Failure> {
    let design = name.map(|name| Design::named(name, k)).transpose();
    design.map_err(|error| Failure::Usage(error.to_string()))
}

/// Refuses a value of --near that no similarity can have.
fn check_near(near: f64) -> Result<(), Failure> {
    if (0.0..=1.0).contains(&near) {
        Ok(())
    } else {
        usage(format!("--near {near} is not a similarity from 0 to 1"))
    }
}
