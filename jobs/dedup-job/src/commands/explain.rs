//! `dedup-job explain`: why two documents are near, or are not.

use std::fmt::Write as _;
use std::path::Path;

use ::archive::Stores;
use engine::documents::{Columns, Documents};
use engine::explain::{Explanation, FeatureOf, explain};
use hamming::{Design, Limits, Plan};
use serde_json::json;

use crate::args::{CommonArgs, ExplainArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json};

/// A new day of so many fingerprints decides the design, where none is asked for.
const DAY: usize = 1_000_000;

/// Where a text came from, and the text.
struct Given {
    from: String,
    text: String,
}

pub fn run(common: &CommonArgs, args: &ExplainArgs) -> Result<(), Failure> {
    let k = args.max_distance.unwrap_or(3);
    let design = match &args.design {
        Some(name) => Design::named(name, k).map_err(|error| Failure::Usage(error.to_string()))?,
        None => {
            let plan = Plan::choose(DAY, k, &Limits::default());
            plan.map_err(engine::EngineError::from)?.design
        }
    };
    let (explanation, given) = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let wanted = args.spec.wanted(stores).await?;
        let model = wanted.model_at(stores, args.base.as_deref()).await?;
        let documents = match args.documents.is_empty() {
            true => None,
            false => {
                let columns = Columns {
                    texts_only: true,
                    ..args.columns.columns()
                };
                Some(Documents::open(&process.context, &args.documents, &columns).await?)
            }
        };
        let found = match &documents {
            None => [None, None],
            Some(documents) => {
                documents
                    .texts_of(&process.context, [&args.first, &args.second])
                    .await?
            }
        };
        let [in_first, in_second] = found;
        let first = resolve(stores, &args.first, in_first, documents.as_ref()).await?;
        let second = resolve(stores, &args.second, in_second, documents.as_ref()).await?;
        let top = args.top.unwrap_or(10) as usize;
        let explanation = explain(&model, [&first.text, &second.text], &design, top);
        Ok((explanation, [first, second]))
    })?;
    if common.json {
        let mut value = json!(explanation);
        value["max_distance"] = k.into();
        for (at, given) in given.iter().enumerate() {
            value["texts"][at]["from"] = given.from.clone().into();
        }
        return print_json(&value);
    }
    print(&as_text(&explanation, &given, k))
}

/// An id of the documents, a file, or the text itself.
async fn resolve(
    stores: &Stores,
    given: &str,
    document: Option<String>,
    documents: Option<&Documents>,
) -> Result<Given, Failure> {
    if let Some(text) = document {
        return Ok(Given {
            from: format!("document {given}"),
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
    // A word is hardly meant as a text where documents are given.
    if let Some(documents) = documents
        && !given.contains(char::is_whitespace)
    {
        return Err(Failure::Usage(format!(
            "there is no document with id {given:?} in {}, and no such file",
            documents.given()
        )));
    }
    Ok(Given {
        from: "the text given".into(),
        text: given.to_owned(),
    })
}

fn as_text(of: &Explanation, given: &[Given; 2], k: u32) -> String {
    let mut text = String::new();
    for ((name, given), side) in ["A", "B"].iter().zip(given).zip(&of.texts) {
        let _ = writeln!(
            text,
            "{name}: {}: {} characters, {} features, {} of them different",
            given.from,
            count(side.characters as u64),
            count(side.features),
            count(side.distinct_features as u64)
        );
    }
    let _ = match of.distance {
        None => writeln!(
            text,
            "too few features for a fingerprint: such documents are never matched"
        ),
        Some(distance) => {
            let verdict = match distance <= k {
                true => format!("a pair at k = {k}"),
                false => format!("no pair at k = {k}"),
            };
            writeln!(text, "distance: {distance} of 64 bits: {verdict}")
        }
    };
    for (name, side) in ["A", "B"].iter().zip(&of.texts) {
        if let Some(bits) = &side.fingerprint {
            let _ = writeln!(text, "  {name}  {}", grouped(bits));
        }
    }
    if of.distance.is_some_and(|distance| distance > 0) {
        let marks: String = (0..64)
            .rev()
            .map(|bit| {
                if of.differing_bits.contains(&bit) {
                    '^'
                } else {
                    ' '
                }
            })
            .collect();
        let _ = writeln!(text, "     {}", grouped(&marks).trim_end());
    }
    if of.distance.is_some() {
        let _ = writeln!(text, "blocks of the design {}:", of.design);
        for (number, block) in of.blocks.iter().enumerate() {
            let beside = block.beside.as_ref();
            let beside_mask = beside.map_or("", |beside| &beside.mask).chars();
            let places: String = block
                .mask
                .chars()
                .zip(beside_mask.chain(std::iter::repeat('0')))
                .map(|bits| match bits {
                    ('1', _) => '#',
                    (_, '1') => '+',
                    _ => '.',
                })
                .collect();
            let beside = beside.map_or(String::new(), |beside| {
                format!(", and {} of those at +, 1 may", beside.differing)
            });
            let _ = writeln!(
                text,
                "  {:<2} {}  {} differ, {} may{beside}: {}",
                number + 1,
                grouped(&places),
                block.differing,
                block.radius,
                if block.matches {
                    "a candidate"
                } else {
                    "not near"
                }
            );
        }
    }
    let _ = writeln!(
        text,
        "exact similarity: jaccard {:.4}, cosine {:.4}, edit {}",
        of.similarity.jaccard,
        of.similarity.cosine,
        of.similarity
            .edit
            .map_or("not computed, the texts are long".into(), |edit| format!(
                "{edit:.4}"
            ))
    );
    let _ = writeln!(
        text,
        "features: {:.1} % of the weight is in those that both have",
        100.0 * of.shared_weight
    );
    for (title, features) in [
        ("both", &of.shared),
        ("only A", &of.only_first),
        ("only B", &of.only_second),
    ] {
        let _ = writeln!(text, "  {title}: {}", listed(features));
    }
    text
}

/// 64 characters in eights.
fn grouped(bits: &str) -> String {
    let characters: Vec<char> = bits.chars().collect();
    let eights: Vec<String> = characters
        .chunks(8)
        .map(|eight| eight.iter().collect())
        .collect();
    eights.join(" ")
}

fn listed(features: &[FeatureOf]) -> String {
    if features.is_empty() {
        return "none".into();
    }
    let each: Vec<String> = features
        .iter()
        .map(|of| {
            // A feature can be a long sentence.
            let mut name: String = of.feature.chars().take(60).collect();
            if name.len() < of.feature.len() {
                name.push('…');
            }
            match of.weights {
                [a, b] if a == b || b == 0 => format!("{name:?} {a}"),
                [0, b] => format!("{name:?} {b}"),
                [a, b] => format!("{name:?} {a}/{b}"),
            }
        })
        .collect();
    each.join(", ")
}
