//! Answers queries: from a text or a fingerprint to the documents near it.

use std::borrow::Cow;

use archive::DocumentId;
use chrono::NaiveDate;
use simhash::sketch;
use template::{source_of_url, source_said};

use crate::error::{LookupError, Result};
use crate::index::Index;
use crate::search::{Found, Searcher};
use crate::text_model::{TextFingerprinter, TextModel};

/// What to look up. If both are given, the fingerprint is looked up, and the text gives only the sketch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub fingerprint: Option<u64>,
    /// A text; the index's spec makes its fingerprint and its sketch.
    pub text: Option<String>,
    /// The source of the text, whose template is left out of it.
    pub source: Option<String>,
}

impl Query {
    /// The source of a document, as a run finds it: what is called so, or else the host of its URL, or of an id that is a URL.
    pub fn source_of(source: Option<&str>, url: Option<&str>, id: Option<&str>) -> Option<String> {
        let said = source.and_then(source_said);
        let of_url = || url.into_iter().chain(id).find_map(source_of_url);
        said.or_else(of_url).map(Cow::into_owned)
    }

    /// The fingerprint that a JSON value is: 16 hexadecimal digits, or a number of 64 bits, signed or not.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fingerprint_of(value: &serde_json::Value) -> std::result::Result<u64, &'static str> {
        let parsed = match value {
            serde_json::Value::String(text) => parse_fingerprint(text),
            number => number
                .as_u64()
                .or_else(|| number.as_i64().map(i64::cast_unsigned)),
        };
        parsed.ok_or("\"fp\" is neither 16 hexadecimal digits nor an integer of 64 bits")
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LookupOptions {
    /// The largest distance, in bits; at most [`MAX_DISTANCE`](crate::MAX_DISTANCE).
    pub k: u32,
    /// The most hits of one answer: the nearest. Among hits at one distance it keeps any.
    pub limit: usize,
    /// Leave out hits whose estimated similarity is lower. Hits without an estimate stay.
    pub min_similarity: f64,
    /// Stop adding hits once the ids of all answers of one call take this many bytes.
    pub id_bytes: usize,
}

/// The documents near a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The fingerprint that was looked up; `None` if the text has too few features for one.
    pub fingerprint: Option<u64>,
    /// By distance, then by id.
    pub hits: Vec<Hit>,
    /// Whether there are more hits than `limit`.
    pub more: bool,
}

/// A document near a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub id: DocumentId,
    /// The distance of the fingerprints, in bits.
    pub distance: u32,
    /// The day as which it was committed to the archive.
    pub day: Option<NaiveDate>,
    pub fingerprint: u64,
    /// The similarity of the texts, estimated by sketches, if both have one.
    pub similarity: Option<f64>,
}

/// Bytes of a hit beside its id, about, as JSON.
const HIT_BYTES: usize = 96;

/// Answers queries; has the buffers of one thread.
pub struct Answerer {
    index: Index,
    searcher: Searcher,
    fingerprinter: TextFingerprinter,
    /// The fingerprints to search for: of the queries that have one.
    fingerprints: Vec<u64>,
    /// For each of `fingerprints`, the number of its query.
    queries: Vec<usize>,
    /// The sketch of each query's text. A query without a sketch has an empty one.
    sketches: Vec<Vec<u8>>,
    found: Vec<Found>,
}

impl Answerer {
    /// An answerer for `index`; `model` comes from [`Index::model`].
    pub fn new(index: &Index, model: &TextModel) -> Self {
        Self {
            searcher: index.searcher(),
            fingerprinter: TextFingerprinter::new(model),
            index: index.clone(),
            fingerprints: Vec::new(),
            queries: Vec::new(),
            sketches: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the fingerprint of a query. Writes the sketch of its text to `sketch`, or leaves `sketch` empty.
    fn fingerprint(&mut self, query: &Query, sketch: &mut Vec<u8>) -> Option<u64> {
        sketch.clear();
        if query.fingerprint.is_some() && self.index.spec().sketch.is_none() {
            return query.fingerprint;
        }
        let text = query.text.as_deref();
        let source = query.source.as_deref();
        let of_text = text.and_then(|text| {
            self.fingerprinter
                .fingerprint_and_sketch(text, source, sketch)
        });
        if of_text.is_none() {
            sketch.clear();
        }
        query.fingerprint.or(of_text)
    }

    /// Answers queries, in their order. One call with many queries is faster than many calls.
    pub fn answer(&mut self, queries: &[Query], wanted: LookupOptions) -> Result<Vec<Answer>> {
        let mut answers = vec![Answer::default(); queries.len()];
        self.fingerprints.clear();
        self.queries.clear();
        self.sketches
            .resize(queries.len().max(self.sketches.len()), Vec::new());
        for (number, query) in queries.iter().enumerate() {
            let mut sketch = std::mem::take(&mut self.sketches[number]);
            let fingerprint = self.fingerprint(query, &mut sketch);
            self.sketches[number] = sketch;
            answers[number].fingerprint = fingerprint;
            if let Some(fingerprint) = fingerprint {
                self.fingerprints.push(fingerprint);
                self.queries.push(number);
            }
        }
        self.found.clear();
        self.searcher
            .search(&self.fingerprints, wanted.k, &mut self.found)?;
        let order = |found: &Found| {
            (
                found.query,
                found.distance,
                found.fingerprint,
                found.segment,
            )
        };
        self.found.sort_unstable_by_key(order);
        let mut id_bytes = 0;
        for found in &self.found {
            let number = self.queries[found.query as usize];
            let sketch = Some(&self.sketches[number][..]).filter(|sketch| !sketch.is_empty());
            let answer = &mut answers[number];
            self.add(found, sketch, wanted, &mut id_bytes, answer)?;
        }
        for answer in &mut answers {
            answer
                .hits
                .sort_by(|a, b| (a.distance, &a.id).cmp(&(b.distance, &b.id)));
        }
        Ok(answers)
    }

    /// Adds the documents of a fingerprint to an answer.
    fn add(
        &self,
        found: &Found,
        sketch: Option<&[u8]>,
        wanted: LookupOptions,
        id_bytes: &mut usize,
        answer: &mut Answer,
    ) -> Result<()> {
        for row in found.rows.clone() {
            if *id_bytes > wanted.id_bytes {
                return Err(LookupError::AnswerTooLarge {
                    bytes: wanted.id_bytes,
                });
            }
            if answer.more {
                return Ok(());
            }
            let document = self.index.document(found.segment, row)?;
            let similarity = sketch
                .zip(document.sketch.as_deref())
                .filter(|(own, other)| own.len() == other.len())
                .map(|(own, other)| sketch::estimate(own, other));
            if similarity.is_some_and(|similarity| similarity < wanted.min_similarity) {
                continue;
            }
            if answer.hits.len() >= wanted.limit {
                answer.more = true;
                return Ok(());
            }
            let own = match &document.id {
                DocumentId::Number(_) => 8,
                DocumentId::Text(text) => text.len(),
            };
            *id_bytes += own + HIT_BYTES;
            answer.hits.push(Hit {
                id: document.id,
                distance: found.distance,
                day: document.day,
                fingerprint: found.fingerprint,
                similarity,
            });
        }
        Ok(())
    }
}

/// The string that the field `name` of a JSON object is; `None` for one that is missing or null.
///
/// # Errors
/// What is wrong with it.
pub fn string_of(
    name: &str,
    value: Option<serde_json::Value>,
) -> std::result::Result<Option<String>, String> {
    match value {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("\"{name}\" is not a string")),
    }
}

/// Parses a fingerprint of 16 hexadecimal digits.
pub fn parse_fingerprint(text: &str) -> Option<u64> {
    let is_hexadecimal = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| u64::from_str_radix(text, 16).ok())?
}
