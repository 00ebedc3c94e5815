//! The routes below `/v1/`: JSON in, lookups, JSON out.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::body;
use super::current::Serving;
use super::problem::Problem;
use super::{MAX_BATCH, Shared};
use crate::answer::{Answer, Hit, Query, Wanted, parse_fingerprint};
use crate::error::LookupError;
use crate::rows::Id;
use crate::seen::Remembered;

/// Default of `limit`, the most hits of an answer.
const LIMIT: usize = 100;
/// The largest `limit`.
const MAX_LIMIT: usize = 10_000;
/// The most bytes of ids in one response.
const MAX_IDS: usize = 16 << 20;
/// The most queries, at k = 3, that are answered without moving other connections off the thread.
const SMALL: usize = 64;

/// The body of a request: one query, or a list of queries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    text: Option<String>,
    fp: Option<Fingerprint>,
    id: Option<String>,
    queries: Option<Vec<One>>,
    k: Option<u32>,
    limit: Option<usize>,
    min_similarity: Option<f64>,
}

/// One query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    text: Option<String>,
    fp: Option<Fingerprint>,
    /// Id to remember; only `/v1/seen` uses it.
    id: Option<String>,
}

/// 16 hexadecimal digits, or a signed number as in the column `fp`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Fingerprint {
    Number(i64),
    Text(String),
}

/// A request whose body is valid.
struct Checked {
    queries: Vec<Query>,
    ids: Vec<Option<String>>,
    wanted: Wanted,
    is_batch: bool,
}

fn bad(reason: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, reason)
}

fn checked(bytes: &[u8], max_distance: u32) -> Result<Checked, Problem> {
    let asked: Asked = serde_json::from_slice(bytes)
        .map_err(|error| bad(format!("the body does not match /openapi.json: {error}")))?;
    let is_batch = asked.queries.is_some();
    let one = One {
        text: asked.text,
        fp: asked.fp,
        id: asked.id,
    };
    let is_one = one.text.is_some() || one.fp.is_some() || one.id.is_some();
    let all = match asked.queries {
        Some(_) if is_one => return Err(bad("send either one query or \"queries\", not both")),
        Some(queries) => queries,
        None => vec![one],
    };
    if all.len() > MAX_BATCH {
        let reason = format!("{} queries; send at most {MAX_BATCH}", all.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    let k = asked.k.unwrap_or(3);
    if k > max_distance {
        return Err(bad(format!(
            "\"k\" is {k}; it must be from 0 to {max_distance}"
        )));
    }
    let limit = asked.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(bad(format!(
            "\"limit\" is {limit}; it must be from 1 to {MAX_LIMIT}"
        )));
    }
    let min_similarity = asked.min_similarity.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&min_similarity) {
        return Err(bad("\"min_similarity\" must be from 0 to 1"));
    }
    let mut queries = Vec::with_capacity(all.len());
    let mut ids = Vec::with_capacity(all.len());
    for one in all {
        let fingerprint = match one.fp {
            None => None,
            Some(Fingerprint::Number(number)) => Some(number.cast_unsigned()),
            Some(Fingerprint::Text(text)) => Some(
                parse_fingerprint(&text)
                    .ok_or_else(|| bad("\"fp\" is not 16 hexadecimal digits"))?,
            ),
        };
        if fingerprint.is_none() && one.text.is_none() {
            return Err(bad("a query has neither \"text\" nor \"fp\""));
        }
        queries.push(Query {
            fingerprint,
            text: one.text,
        });
        ids.push(one.id);
    }
    Ok(Checked {
        queries,
        ids,
        is_batch,
        wanted: Wanted {
            k,
            limit,
            min_similarity,
            id_bytes: MAX_IDS,
        },
    })
}

/// Refuses a request whose `Content-Type` is not JSON; it may be missing.
fn require_json(request: &Request<Incoming>) -> Result<(), Problem> {
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    match kind.is_none_or(|kind| {
        kind.split(';')
            .next()
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    }) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json",
        )),
    }
}

/// `GET /v1/info`.
pub(super) fn info(shared: &Shared) -> Value {
    let serving = shared.current.serving();
    let (info, spec) = (serving.index().info(), serving.index().spec());
    json!({
        "version": info.version,
        "archive": info.archive,
        "archive_version": info.archive_version,
        "rows": info.rows,
        "fingerprints": info.fingerprints,
        "days": info.days,
        "max_distance": info.max_distance,
        "sketch_bits": spec.sketch.bits(),
        "tokenizer": spec.tokenizer.to_string(),
        "id_type": serving.index().id_type().to_string(),
    })
}

/// The JSON of a response, and the time that its lookups took.
pub(super) type Timed = (String, Duration);

/// `POST /v1/lookup`.
pub(super) async fn lookup(shared: &Shared, request: Request<Incoming>) -> Result<Timed, Problem> {
    require_json(&request)?;
    let asked = checked(&body(shared, request).await?, crate::MAX_DISTANCE)?;
    let _turn = shared.admission.turn().await?;
    let (answers, took) = answers(shared, &asked)?;
    let answers: Vec<Value> = answers
        .iter()
        .map(|answer| as_json(shared, answer))
        .collect();
    Ok((rendered(answers, asked.is_batch), took))
}

/// `POST /v1/seen`: answers, and remembers.
pub(super) async fn seen(shared: &Shared, request: Request<Incoming>) -> Result<Timed, Problem> {
    require_json(&request)?;
    let asked = checked(&body(shared, request).await?, crate::MAX_DISTANCE)?;
    let Some(seen) = &shared.seen else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "the server was started without --remember",
        ));
    };
    let ids: Option<Vec<String>> = asked.ids.iter().cloned().collect();
    let ids = ids.ok_or_else(|| bad("each query of /v1/seen needs an \"id\""))?;
    let turn = shared.admission.turn().await?;
    let (answers, took) = answers(shared, &asked)?;
    // One step finds and remembers, so that of two duplicates that arrive at once, one finds the other.
    let entries = answers.iter().zip(ids).filter_map(|(answer, id)| {
        let fingerprint = answer.fingerprint?;
        Some(Remembered { fingerprint, id })
    });
    let (known, durable) = seen
        .look_up_and_add(entries.collect(), asked.wanted.k, asked.wanted.limit)
        .map_err(failed)?;
    drop(turn);
    durable.await.map_err(failed)?;
    let mut known = known.into_iter();
    let answers = answers.iter().map(|answer| {
        let mut value = as_json(shared, answer);
        let remembered = if answer.fingerprint.is_some() {
            known.next()
        } else {
            None
        };
        if let Some(hits) = value["hits"].as_array_mut() {
            for (distance, entry) in remembered.into_iter().flatten() {
                hits.push(json!({
                    "id": entry.id,
                    "distance": distance,
                    "day": null,
                    "fp": format!("{:016x}", entry.fingerprint),
                    "remembered": true,
                }));
            }
            hits.sort_by_key(|hit| hit["distance"].as_u64());
        }
        value
    });
    Ok((rendered(answers.collect(), asked.is_batch), took))
}

fn rendered(mut answers: Vec<Value>, is_batch: bool) -> String {
    match is_batch {
        true => json!({ "results": answers }).to_string(),
        false => answers.pop().unwrap_or_default().to_string(),
    }
}

/// Looks up what was asked; returns also the time that it took.
fn answers(shared: &Shared, asked: &Checked) -> Result<(Vec<Answer>, Duration), Problem> {
    let serving = shared.current.serving();
    let begin = Instant::now();
    let work = || answered(&serving, asked);
    let is_small = asked.queries.len() <= SMALL
        && asked.wanted.k <= 3
        && asked
            .queries
            .iter()
            .all(|query| query.text.as_ref().is_none_or(|text| text.len() <= 1 << 16));
    let answers = match is_small {
        true => work(),
        // Moves the other connections of this thread to another one.
        false => tokio::task::block_in_place(work),
    };
    let took = begin.elapsed();
    shared.metrics.looked_up(took);
    let answers = answers.map_err(failed)?;
    shared
        .metrics
        .queries
        .fetch_add(answers.len() as u64, Ordering::Relaxed);
    let hits: usize = answers.iter().map(|answer| answer.hits.len()).sum();
    shared
        .metrics
        .hits
        .fetch_add(hits as u64, Ordering::Relaxed);
    Ok((answers, took))
}

fn answered(serving: &Serving, asked: &Checked) -> Result<Vec<Answer>, LookupError> {
    serving.with_answerer(|answerer| answerer.answer(&asked.queries, asked.wanted))
}

fn failed(error: LookupError) -> Problem {
    let reason = storage::scrub(&error.to_string());
    tracing::error!("{reason}");
    let status = match error {
        LookupError::Full { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Problem::new(status, reason)
}

fn as_json(shared: &Shared, answer: &Answer) -> Value {
    let hits: Vec<Value> = answer
        .hits
        .iter()
        .map(|hit| hit_as_json(shared, hit))
        .collect();
    json!({
        "fp": answer.fingerprint.map(|fingerprint| format!("{fingerprint:016x}")),
        "hits": hits,
        "more": answer.more,
    })
}

fn hit_as_json(shared: &Shared, hit: &Hit) -> Value {
    let mut value = json!({
        "id": hit.id,
        "distance": hit.distance,
        "day": hit.day,
        "fp": format!("{:016x}", hit.fingerprint),
    });
    if let Some(similarity) = hit.similarity {
        value["similarity"] = similarity.into();
    }
    let text = match &hit.id {
        Id::Text(id) => shared.settings.texts.get(id),
        Id::Number(id) => shared.settings.texts.get(&id.to_string()),
    };
    if let Some(text) = text {
        value["text"] = text.as_str().into();
    }
    value
}
