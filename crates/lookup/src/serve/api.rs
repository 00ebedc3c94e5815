//! The routes below `/v1/`: JSON in, lookups, JSON out.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use archive::{DocumentId, IdType};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::body;
use super::current::OpenVersion;
use super::object::Object;
use super::problem::Problem;
use super::{MAX_BATCH, Shared};
use crate::MAX_DISTANCE;
use crate::answer::{Answer, Hit, LookupOptions, Query, string_of};
use crate::error::LookupError;
use crate::index::Index;
use crate::seen::Remembered;

/// Default of `limit`, the most hits of an answer.
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;
const MAX_RESPONSE: usize = 16 << 20;
/// The most bytes of an id that is remembered.
const MAX_ID: usize = 4096;
/// Queries that are answered together. Their answers are in memory together: as many as there are threads at a time, each
/// with ids of at most [`MAX_RESPONSE`] bytes.
const TOGETHER: usize = 32;
/// The most queries, at k = 3, that are answered without moving other connections off the thread.
const SMALL: usize = 64;

/// The body of a request: one query, or a list of queries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    text: Option<Value>,
    url: Option<Value>,
    source: Option<Value>,
    fp: Option<Value>,
    id: Option<Value>,
    queries: Option<Vec<Object<QueryBody>>>,
    k: Option<Value>,
    limit: Option<Value>,
    min_similarity: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryBody {
    text: Option<Value>,
    /// The URL of the document, whose host is its source.
    url: Option<Value>,
    /// Its source, if it is not the host.
    source: Option<Value>,
    /// 16 hexadecimal digits, or a signed number as in the column `fp`.
    fp: Option<Value>,
    /// Id to remember; only `/v1/seen` uses it.
    id: Option<Value>,
}

/// A request whose body is valid.
struct LookupRequest {
    queries: Vec<Query>,
    ids: Vec<Option<String>>,
    wanted: LookupOptions,
    is_batch: bool,
}

fn bad(reason: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, reason)
}

/// The number that an argument is.
fn number_of<T>(
    name: &str,
    value: Option<Value>,
    read: impl FnOnce(&Value) -> Option<T>,
    wanted: &str,
) -> Result<Option<T>, Problem> {
    let Some(value) = value else {
        return Ok(None);
    };
    let wrong = || match &value {
        Value::Number(number) => format!("\"{name}\" is {number}; it must be {wanted}"),
        _ => format!("\"{name}\" must be {wanted}"),
    };
    read(&value).map(Some).ok_or_else(|| bad(wrong()))
}

/// The whole number that an argument is, in `range`.
fn whole_number(
    name: &str,
    value: Option<Value>,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, Problem> {
    let wanted = format!("a whole number from {} to {}", range.start(), range.end());
    let read = |value: &Value| value.as_u64().filter(|number| range.contains(number));
    number_of(name, value, read, &wanted)
}

/// Reads a body; what it leaves open is as by default in `index`.
fn checked(bytes: &[u8], index: &Index) -> Result<LookupRequest, Problem> {
    let Object(asked): Object<Body> = serde_json::from_slice(bytes)
        .map_err(|error| bad(format!("the body does not match /openapi.json: {error}")))?;
    let is_batch = asked.queries.is_some();
    let one = QueryBody {
        text: asked.text,
        url: asked.url,
        source: asked.source,
        fp: asked.fp,
        id: asked.id,
    };
    let is_one = [&one.text, &one.url, &one.source, &one.fp, &one.id]
        .iter()
        .any(|field| field.is_some());
    let all = match asked.queries {
        Some(_) if is_one => return Err(bad("send either one query or \"queries\", not both")),
        Some(queries) => queries.into_iter().map(|Object(query)| query).collect(),
        None => vec![one],
    };
    if all.len() > MAX_BATCH {
        let reason = format!("{} queries; send at most {MAX_BATCH}", all.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    let k = whole_number("k", asked.k, 0..=u64::from(MAX_DISTANCE))?;
    let least = number_of(
        "min_similarity",
        asked.min_similarity,
        Value::as_f64,
        "a number from 0 to 1",
    )?;
    let (k, min_similarity) = index
        .nearness(k.map(|k| k as u32), least)
        .map_err(|error| bad(error.to_string()))?;
    let limit = whole_number("limit", asked.limit, 1..=MAX_LIMIT as u64)?;
    let limit = limit.map_or(LIMIT, |limit| limit as usize);
    let mut queries = Vec::with_capacity(all.len());
    let mut ids = Vec::with_capacity(all.len());
    for one in all {
        let fingerprint = one.fp.as_ref().map(Query::fingerprint_of);
        let fingerprint = fingerprint.transpose().map_err(bad)?;
        let text = string_of("text", one.text).map_err(bad)?;
        let source = string_of("source", one.source).map_err(bad)?;
        let url = string_of("url", one.url).map_err(bad)?;
        let id = string_of("id", one.id).map_err(bad)?;
        if fingerprint.is_none() && text.is_none() {
            return Err(bad("a query has neither \"text\" nor \"fp\""));
        }
        queries.push(Query {
            fingerprint,
            text,
            source: Query::source_of(source.as_deref(), url.as_deref(), id.as_deref()),
        });
        ids.push(id);
    }
    Ok(LookupRequest {
        queries,
        ids,
        is_batch,
        wanted: LookupOptions {
            k,
            limit,
            min_similarity,
            id_bytes: MAX_RESPONSE,
        },
    })
}

/// Refuses a request whose `Content-Type` is missing or is not JSON: a web page can send such a request to this machine
/// without being asked.
fn require_json(request: &Request<Incoming>) -> Result<(), Problem> {
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()?.split(';').next());
    if kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        Ok(())
    } else {
        Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json",
        ))
    }
}

/// `GET /v1/info`.
pub(super) fn info(shared: &Shared) -> Value {
    let serving = shared.current.serving();
    let (info, spec) = (serving.index.info(), serving.index.spec());
    let (k, min_similarity) = serving.index.default_nearness();
    json!({
        "version": info.version,
        "archive": info.archive,
        "archive_version": info.archive_version,
        "rows": info.rows,
        "fingerprints": info.fingerprints,
        "days": info.days,
        "max_distance": info.max_distance,
        "k": k,
        "min_similarity": min_similarity,
        "sketch_bits": spec.sketch.bits(),
        "tokenizer": spec.tokenizer.to_string(),
        "id_type": serving.index.id_type().to_string(),
    })
}

/// The JSON of a response, and the time that its lookups took.
pub(super) type Timed = (String, Duration);

/// `POST /v1/lookup`.
pub(super) async fn lookup(shared: &Shared, request: Request<Incoming>) -> Result<Timed, Problem> {
    require_json(&request)?;
    let (bytes, _room) = body(shared, request).await?;
    let asked = checked(&bytes, &shared.current.serving().index)?;
    let _turn = shared.admission.turn().await?;
    asked.on_this_thread(|| {
        let mut response = Response::new(shared, &asked);
        for queries in asked.queries.chunks(TOGETHER) {
            for answer in response.answers(queries)? {
                let json = response.as_json(&answer)?;
                response.push(&json)?;
            }
        }
        Ok(response.finish())
    })
}

/// `POST /v1/seen`: answers, and remembers.
pub(super) async fn seen(shared: &Shared, request: Request<Incoming>) -> Result<Timed, Problem> {
    require_json(&request)?;
    let (bytes, _room) = body(shared, request).await?;
    let asked = checked(&bytes, &shared.current.serving().index)?;
    let Some(seen) = &shared.seen else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "the server was started without --remember",
        ));
    };
    let ids: Option<Vec<String>> = asked.ids.iter().cloned().collect();
    let ids = ids.ok_or_else(|| bad("each query of /v1/seen needs an \"id\""))?;
    if ids.iter().any(|id| id.len() > MAX_ID) {
        return Err(bad(format!("an \"id\" has more than {MAX_ID} bytes")));
    }
    let turn = shared.admission.turn().await?;
    let mut written = Vec::new();
    let response = asked.on_this_thread(|| {
        let mut response = Response::new(shared, &asked);
        let (k, limit) = (asked.wanted.k, asked.wanted.limit);
        for (queries, ids) in asked.queries.chunks(TOGETHER).zip(ids.chunks(TOGETHER)) {
            let answers = response.answers(queries)?;
            // One step finds and remembers, so that of two duplicates that arrive at once, one finds the other.
            let entries = answers.iter().zip(ids).filter_map(|(answer, id)| {
                let fingerprint = answer.fingerprint?;
                let id = id.clone();
                Some(Remembered { fingerprint, id })
            });
            let (known, durable) = seen
                // One more than the limit says whether there are more.
                .look_up_and_add(entries.collect(), k, limit + 1)
                .map_err(failed)?;
            written.push(durable);
            let mut known = known.into_iter();
            for answer in answers {
                let mut json = response.as_json(&answer)?;
                if answer.fingerprint.is_some() {
                    let known = known.next().unwrap_or_default();
                    let id_type = response.serving.index.id_type();
                    add_remembered(&mut json, known, limit, id_type);
                }
                response.push(&json)?;
            }
        }
        Ok(response.finish())
    });
    drop(turn);
    for durable in written {
        durable.await.map_err(failed)?;
    }
    response
}

/// Adds remembered documents to the hits of an answer, and cuts them to the limit.
fn add_remembered(
    answer: &mut Value,
    remembered: Vec<(u32, Remembered)>,
    limit: usize,
    id_type: IdType,
) {
    let Some(hits) = answer["hits"].as_array_mut() else {
        return;
    };
    hits.extend(remembered.into_iter().map(|(distance, entry)| {
        json!({
            "id": entry.id,
            "distance": distance,
            "day": null,
            "fp": format!("{:016x}", entry.fingerprint),
            "remembered": true,
        })
    }));
    hits.sort_by_cached_key(|hit| (hit["distance"].as_u64(), id_order(&hit["id"], id_type)));
    let more = hits.len() > limit;
    hits.truncate(limit);
    if more {
        answer["more"] = true.into();
    }
}

/// The sort key of an id: integers by value, then texts by their bytes. A remembered id is a text, also where the index has
/// integers.
fn id_order(id: &Value, id_type: IdType) -> DocumentId {
    let text = id.as_str().unwrap_or_default();
    let number = match id_type {
        IdType::Bigint => id.as_i64().or_else(|| text.parse().ok()),
        IdType::String => None,
    };
    number.map_or_else(|| DocumentId::Text(text.into()), DocumentId::Number)
}

/// The response to a request, while it is made. It is bounded in bytes and in time.
struct Response<'a> {
    shared: &'a Shared,
    serving: Arc<OpenVersion>,
    asked: &'a LookupRequest,
    begin: Instant,
    json: String,
    answers: usize,
}

impl<'a> Response<'a> {
    fn new(shared: &'a Shared, asked: &'a LookupRequest) -> Self {
        Self {
            serving: shared.current.serving(),
            shared,
            asked,
            begin: Instant::now(),
            json: String::new(),
            answers: 0,
        }
    }

    fn answers(&mut self, queries: &[Query]) -> Result<Vec<Answer>, Problem> {
        if self.begin.elapsed() > self.shared.settings.timeout {
            let reason =
                "the request takes too long; ask for fewer queries at once, or a smaller \"k\"";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason));
        }
        let wanted = self.asked.wanted;
        let answers = self
            .serving
            .with_answerer(|answerer| answerer.answer(queries, wanted));
        answers
            .inspect_err(|error| self.serving.note(error))
            .map_err(failed)
    }

    fn as_json(&self, answer: &Answer) -> Result<Value, Problem> {
        // Texts are copied only as far as they fit.
        let mut room = MAX_RESPONSE.saturating_sub(self.json.len());
        let texts = &self.shared.settings.texts;
        let mut hits = Vec::with_capacity(answer.hits.len());
        for hit in &answer.hits {
            let text = match &hit.id {
                DocumentId::Text(id) => texts.get(&**id),
                DocumentId::Number(id) => texts.get(&id.to_string()),
            };
            room = room
                .checked_sub(text.map_or(0, String::len))
                .ok_or_else(too_large)?;
            hits.push(hit_as_json(hit, text));
        }
        Ok(json!({
            "fp": answer.fingerprint.map(|fingerprint| format!("{fingerprint:016x}")),
            "hits": hits,
            "more": answer.more,
        }))
    }

    fn push(&mut self, answer: &Value) -> Result<(), Problem> {
        let separator = match (self.asked.is_batch, self.answers) {
            (false, _) => "",
            (true, 0) => "{\"results\":[",
            (true, _) => ",",
        };
        self.json.push_str(separator);
        self.json.push_str(&answer.to_string());
        self.answers += 1;
        let hits = answer["hits"].as_array().map_or(0, Vec::len);
        let metrics = &self.shared.metrics;
        metrics.hits.fetch_add(hits as u64, Ordering::Relaxed);
        if self.json.len() > MAX_RESPONSE {
            Err(too_large())
        } else {
            Ok(())
        }
    }

    fn finish(mut self) -> Timed {
        let took = self.begin.elapsed();
        let (metrics, queries) = (&self.shared.metrics, self.answers as u64);
        metrics.looked_up(took);
        metrics.queries.fetch_add(queries, Ordering::Relaxed);
        match (self.asked.is_batch, self.answers) {
            (false, _) => {}
            (true, 0) => self.json.push_str("{\"results\":[]}"),
            (true, _) => self.json.push_str("]}"),
        }
        (self.json, took)
    }
}

impl LookupRequest {
    /// Runs `work` on this thread, which serves connections, too. If it may take long, the connections move to another one.
    fn on_this_thread<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_short = |query: &Query| query.text.as_ref().is_none_or(|text| text.len() <= 1 << 16);
        let is_small = self.queries.len() <= SMALL
            && self.wanted.k <= 3
            && self.wanted.limit <= LIMIT
            && self.queries.iter().all(is_short);
        if is_small {
            work()
        } else {
            tokio::task::block_in_place(work)
        }
    }
}

fn failed(error: LookupError) -> Problem {
    let reason = storage::scrub(&error.to_string());
    let status = match error {
        LookupError::Full { .. } => StatusCode::SERVICE_UNAVAILABLE,
        LookupError::AnswerTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        _ => {
            tracing::error!("{reason}");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    Problem::new(status, reason)
}

fn too_large() -> Problem {
    failed(LookupError::AnswerTooLarge {
        bytes: MAX_RESPONSE,
    })
}

fn hit_as_json(hit: &Hit, text: Option<&String>) -> Value {
    let mut value = json!({
        "id": hit.id,
        "distance": hit.distance,
        "day": hit.day,
        "fp": format!("{:016x}", hit.fingerprint),
    });
    if let Some(similarity) = hit.similarity {
        value["similarity"] = similarity.into();
    }
    if let Some(text) = text {
        value["text"] = text.as_str().into();
    }
    value
}
