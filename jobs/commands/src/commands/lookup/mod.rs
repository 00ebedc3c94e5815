//! `dedup-job lookup`: finds the documents of an index near fingerprints or texts.

mod queries;
mod text;

use lookup::{Answer, Answerer, Index, IndexFiles, LookupError, LookupOptions, TextModel};
use rayon::prelude::*;
use serde_json::{Value, json};
use storage::StorageError;
use tokio::runtime::Handle;

use super::index::files;
use super::required;
use crate::args::{CommonArgs, LookupArgs};
use crate::exit::{Failure, usage};
use crate::printing::{has_colours, json_line, print};
use crate::process::{self, Process};
use queries::{Asked, Source};

/// Queries that one thread answers in one call.
const TOGETHER: usize = 512;

pub fn run(common: &CommonArgs, args: &LookupArgs) -> Result<(), Failure> {
    let dir = required(args.index.as_deref(), "--index DIR")?;
    if args.queries.is_empty() {
        return usage(
            "lookup needs a fingerprint, a text, a file, or - for the lines of standard input",
        );
    }
    let limit = args.limit.map_or(usize::MAX, |limit| limit as usize);
    let json = common.json;
    process::run(common, async |process: &Process| {
        let files = files(process, &process.locate(dir)?, &args.cache)?;
        let index = Index::open(&files).await?;
        let nearness = index.nearness(args.max_distance, args.min_similarity);
        let (k, min_similarity) = nearness.map_err(|error| match error {
            LookupError::Similarity { least, reason } => {
                Failure::Usage(format!("--min-similarity {least}: {reason}"))
            }
            error => error.into(),
        })?;
        let wanted = LookupOptions {
            k,
            limit,
            min_similarity,
            id_bytes: usize::MAX,
        };
        let model = index.model().await?;
        let sources: Vec<Source> = args
            .queries
            .iter()
            .map(|given| Source::of(given, args.source.as_deref()))
            .collect();
        let pool = streams::thread_pool(&process.context)
            .map_err(|error| StorageError::io("starting threads")(std::io::Error::other(error)))?;
        let answering = tokio::task::spawn_blocking(move || {
            answer_all(index, &files, &model, sources, wanted, &pool, json)
        });
        answering
            .await
            .unwrap_or_else(|error| Err(StorageError::io("looking up")(error.into()).into()))
    })
}

/// Queries whose answers are in memory together.
const SLICE: usize = 32;

/// Answers the queries of all sources, in their order, and prints the answers.
fn answer_all(
    mut index: Index,
    files: &IndexFiles,
    model: &TextModel,
    sources: Vec<Source>,
    wanted: LookupOptions,
    pool: &rayon::ThreadPool,
    json: bool,
) -> Result<(), Failure> {
    let threads = pool.current_num_threads();
    let mut answerers: Vec<Answerer> = (0..threads).map(|_| Answerer::new(&index, model)).collect();
    let colours = has_colours();
    for asked in queries::read(sources, TOGETHER * threads) {
        let asked = asked?;
        let each = asked.len().div_ceil(threads).max(1);
        let answer_these = |answerers: &mut Vec<Answerer>| -> Vec<Result<String, Failure>> {
            pool.install(|| {
                asked
                    .par_chunks(each)
                    .zip(answerers)
                    .map(|(asked, answerer)| answer(answerer, asked, wanted, json, colours))
                    .collect()
            })
        };
        let mut printed = answer_these(&mut answerers);
        let is_damage = |answer: &Result<String, Failure>| {
            matches!(answer, Err(Failure::Lookup(LookupError::Damaged { .. })))
        };
        if printed.iter().any(is_damage)
            && let Some(repaired) = Handle::current().block_on(index.repaired(files))?
        {
            index = repaired;
            answerers
                .iter_mut()
                .for_each(|old| *old = Answerer::new(&index, model));
            printed = answer_these(&mut answerers);
        }
        for text in printed {
            print(&text?)?;
        }
    }
    Ok(())
}

/// Answers some queries, as text to print.
fn answer(
    answerer: &mut Answerer,
    asked: &[Asked],
    wanted: LookupOptions,
    json: bool,
    colours: bool,
) -> Result<String, Failure> {
    let mut printed = String::new();
    // Few at once: the answers of a slice are held in memory.
    for asked in asked.chunks(SLICE) {
        let queries: Vec<_> = asked.iter().map(|asked| asked.query.clone()).collect();
        let answers = answerer.answer(&queries, wanted)?;
        for (asked, answer) in asked.iter().zip(&answers) {
            if asked.may_be_path && answer.fingerprint.is_none() {
                let given = asked.query.text.as_deref().map(text::shortened);
                return usage(format!(
                    "{} is no file on this machine, and as a text it has too few features (words)",
                    given.unwrap_or_default()
                ));
            }
            if json {
                printed += &json_line(&as_json(&asked.given, answer))?
            } else {
                text::write(&mut printed, asked, answer, &wanted, colours)
            }
        }
    }
    Ok(printed)
}

fn as_json(given: &Value, answer: &Answer) -> Value {
    let hits = answer.hits.iter().map(|hit| {
        let mut value = json!({ "id": hit.id, "distance": hit.distance, "day": hit.day });
        if let Some(similarity) = hit.similarity {
            value["similarity"] = similarity.into();
        }
        value
    });
    let fingerprint = answer
        .fingerprint
        .map(|fingerprint| format!("{fingerprint:016x}"));
    let mut value = json!({ "query": given, "fp": fingerprint, "hits": hits.collect::<Value>() });
    if answer.more {
        value["more"] = true.into();
    }
    value
}
