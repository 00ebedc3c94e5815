//! `dedup-job explain`: why two documents are a near-duplicate pair, or why not.

mod text;

use std::path::Path;
use std::sync::Arc;

use archive::Archive;
use documents::{Columns, DocumentId, Documents};
use engine::explain::{explain, nearest};
use engine::profile::Against;
use engine::template::archive_templates;
use engine::{CompareOptions, Profile};
use hamming::{Limits, Plan};
use serde_json::json;
use simhash::{Model, Template};
use storage::Stores;

use super::{design_named, open_texts};
use crate::args::{CommonArgs, ExplainArgs};
use crate::exit::{Failure, usage};
use crate::printing::{print, print_json};
use crate::process::{self, Process};

/// The size of the batch for which, without --design, the cheapest design is chosen.
const PLANNED_BATCH: usize = 1_000_000;

/// How a text came from that is a document.
const DOCUMENT: &str = "document ";

/// A text, and where it came from.
struct Given {
    from: String,
    text: String,
}

pub fn run(common: &CommonArgs, args: &ExplainArgs) -> Result<(), Failure> {
    let (explanation, given, min_features, compare, design) =
        process::run(common, async |process: &Process| {
            let stores = process.stores();
            let options = args.spec.spec_options(stores).await?;
            let mut documents = if args.documents.is_empty() {
                None
            } else {
                let columns = Columns {
                    with_sources: true,
                    ..args.columns.text_columns()
                };
                Some(open_texts(process, &args.documents, columns).await?)
            };
            let archive = match &args.base {
                Some(base) => Some(Archive::open(&process.locate(base)?).await?),
                None => None,
            };
            let mut model = match (&archive, &documents) {
                (Some(archive), _) => options.model_from_archive(archive).await?,
                // As in a run without an archive.
                (None, Some(documents)) => options
                    .for_documents(documents)
                    .for_profile(Profile::Sharp)
                    .model()?,
                (None, None) => options.for_profile(Profile::Sharp).model()?,
            };
            let options_of_run = CompareOptions {
                max_distance: args.max_distance,
                ..CompareOptions::default()
            };
            let compare = options_of_run.resolve(match &archive {
                Some(archive) => Against::Archive(archive.run_defaults()),
                None => Against::Texts,
            })?;
            let k = compare.max_distance;
            let design = match design_named(args.design.as_deref(), k)? {
                Some(design) => design,
                None => {
                    let plan = Plan::choose(PLANNED_BATCH, k, &Limits::default());
                    plan.map_err(engine::EngineError::from)?.design
                }
            };
            if let Some(documents) = &mut documents {
                documents.read_pages(options.pages_under(model.spec()));
                if model.spec().template == Template::Domains {
                    documents.source_by_domains();
                }
            }
            let mut given = find_texts(process, args, documents.as_ref(), &model).await?;
            let left_out = match &archive {
                Some(archive) => archive_templates(archive).await?,
                None => None,
            };
            if let (Some(documents), Some(left_out)) = (&mut documents, left_out) {
                documents.leave_out(Some(&left_out));
                given = without_templates(process, args, documents, &model, given).await?;
                model = model.without_markup();
            }
            let [first, second] = &given;
            let top = args.top.unwrap_or(10) as usize;
            let explanation = explain(&model, [&first.text, &second.text], &design, top);
            Ok((
                explanation,
                given,
                model.spec().min_features,
                compare,
                design,
            ))
        })?;
    if common.json {
        let mut value = json!(explanation);
        value["max_distance"] = compare.max_distance.into();
        value["verify"] = json!(compare.verify.as_ref().map(|verify| json!({
            "measure": verify.measure, "min_similarity": verify.min_similarity,
        })));
        for (at, given) in given.iter().enumerate() {
            value["texts"][at]["from"] = given.from.clone().into();
        }
        return print_json(&value);
    }
    let layout = || Plan::predict(design.clone(), PLANNED_BATCH, 1, &Limits::default()).layout();
    let layout = (common.verbose > 0).then(layout);
    print(&text::render(
        &explanation,
        &given,
        &compare,
        min_features,
        layout.as_deref(),
    ))
}

/// The texts of `documents`, which leave out templates and markup, and says where a template is left out of one of the `whole` texts.
async fn without_templates(
    process: &Process,
    args: &ExplainArgs,
    documents: &Documents,
    model: &Model,
    whole: [Given; 2],
) -> Result<[Given; 2], Failure> {
    let markup = model.spec().markup;
    let contents = model.without_markup();
    let mut given = find_texts(process, args, Some(documents), &contents).await?;
    for (given, whole) in given.iter_mut().zip(whole) {
        let mut visible = String::new();
        markup.strip(&whole.text, &mut visible);
        if !given.from.starts_with(DOCUMENT) {
            given.text = visible;
        } else if given.text != visible {
            given.from.push_str(", without the template of its source");
        }
    }
    Ok(given)
}

/// Finds the two texts: by id, by path, or as they were given. If several documents have an id, the two are taken that are nearest
/// under `model`, as decisions are about these.
async fn find_texts(
    process: &Process,
    args: &ExplainArgs,
    documents: Option<&Documents>,
    model: &Model,
) -> Result<[Given; 2], Failure> {
    let ids = [&args.first, &args.second];
    let mut found = match documents {
        None => [Vec::new(), Vec::new()],
        Some(documents) => {
            let wanted = ids.map(|id| DocumentId::Text(id.as_str().into()));
            let wanted = Arc::new(wanted.into());
            let found = documents.texts(&process.context, wanted).await?;
            ids.map(|id| found.get(id).cloned().unwrap_or_default())
        }
    };
    let numbers = found.each_ref().map(Vec::len);
    let is_same = args.first == args.second;
    let nearest = nearest(model, &found, is_same);
    let stores = process.stores();
    let mut given = Vec::with_capacity(2);
    for (side, name) in ids.into_iter().enumerate() {
        let texts = &mut found[side];
        let text = (!texts.is_empty()).then(|| texts.swap_remove(nearest[side]));
        let mut resolved = resolve(stores, name, text, documents).await?;
        if numbers[side] > 1 {
            let number = numbers[side];
            resolved.from += &format!(" (one of {number} documents of this id, the nearest)");
        }
        given.push(resolved);
    }
    <[Given; 2]>::try_from(given).map_err(|_| Failure::Data("two texts are compared".into()))
}

/// The text that an argument stands for: that of the document found by this id, or else that of the
/// file with this name, or else the argument itself.
async fn resolve(
    stores: &Stores,
    given: &str,
    document: Option<String>,
    documents: Option<&Documents>,
) -> Result<Given, Failure> {
    if let Some(text) = document {
        return Ok(Given {
            from: format!("{DOCUMENT}{given}"),
            text,
        });
    }
    let is_url = given.contains("://") && !given.contains(char::is_whitespace);
    if is_url || Path::new(given).is_file() {
        let bytes = stores.locate(given)?.read().await?;
        return Ok(Given {
            from: format!("file {given}"),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    // With --documents, a single word is probably an id.
    if let Some(documents) = documents
        && !given.contains(char::is_whitespace)
    {
        return usage(format!(
            "there is no document with id {given:?} in {}, and no file of this name",
            documents.given()
        ));
    }
    Ok(Given {
        from: "the text given".into(),
        text: given.to_owned(),
    })
}
