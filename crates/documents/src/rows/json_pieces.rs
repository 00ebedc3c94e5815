//! The objects of a JSON file, in pieces that several threads parse: a thread finds the ends of lines many times faster than it
//! parses them.

use std::borrow::Cow;
use std::sync::Arc;

use archive::IdType;
use arrow::array::RecordBatch;
use streams::{BATCH_BYTES, BATCH_ROWS};

use super::WantedRows;
use super::builder::BatchBuilder;
use super::json_fields::{Fields, Kind, Record};
use super::json_numbers::without_nan;
use super::json_objects::{Objects, bad_line};
use crate::columns::{Content, FoundColumns, Role};
use crate::error::{DocumentsError, Result};

/// A piece ends with the object that reaches this number of bytes. It is small, because each thread holds a piece.
const PIECE_BYTES: usize = BATCH_BYTES / 4;

pub(crate) struct JsonPieces {
    objects: Objects,
    parser: Parser,
    /// What failed behind the objects of the last piece.
    failed: Option<DocumentsError>,
}

impl JsonPieces {
    pub(super) fn new(objects: Objects, columns: &FoundColumns, id_type: IdType) -> Self {
        Self {
            objects,
            parser: Parser::new(columns, id_type),
            failed: None,
        }
    }

    /// Reads the next objects that a record batch holds; `None` at the end of the file.
    pub(super) fn next_piece(&mut self) -> Result<Option<JsonPiece>> {
        let mut piece = JsonPiece {
            file: self.objects.input.name.as_str().into(),
            text: Vec::with_capacity(PIECE_BYTES),
            objects: Vec::new(),
            parser: self.parser.clone(),
        };
        while self.failed.is_none()
            && piece.text.len() < PIECE_BYTES
            && piece.objects.len() < BATCH_ROWS
        {
            match self.objects.advance() {
                Ok(true) => {
                    piece.text.extend_from_slice(&self.objects.text);
                    let end = piece.text.len();
                    piece.objects.push((end, self.objects.number));
                }
                Ok(false) => break,
                Err(error) => self.failed = Some(error),
            }
        }
        if piece.objects.is_empty() {
            return self.failed.take().map_or(Ok(None), Err);
        }
        Ok(Some(piece))
    }
}

/// Objects that follow one another in a file, at least one.
pub(crate) struct JsonPiece {
    file: Box<str>,
    /// The objects, one behind the other.
    pub(super) text: Vec<u8>,
    /// For each object, its end in `text` and the number of its line.
    pub(super) objects: Vec<(usize, u64)>,
    parser: Parser,
}

impl JsonPiece {
    /// Parses the objects that are `wanted` into `batch`. Returns their rows, and their numbers in the file, in which the first object
    /// of this piece has the number `first`; `None` if no object is wanted.
    pub(super) fn parse(
        mut self,
        mut batch: BatchBuilder,
        first: u64,
        wanted: Option<WantedRows>,
    ) -> Result<Option<(RecordBatch, Vec<u64>)>> {
        let (mut numbers, mut start) = (Vec::new(), 0);
        for (number, (end, line)) in (first..).zip(&self.objects) {
            if wanted.as_ref().is_none_or(|wanted| wanted(number)) {
                let name = || format!("{}, line {line}", self.file);
                self.parser
                    .parse(&self.text[start..*end], &name, &mut batch)?;
                numbers.push(number);
            }
            start = *end;
        }
        Ok(batch.finish()?.map(|rows| (rows, numbers)))
    }
}

#[derive(Clone)]
struct Parser {
    fields: Arc<Fields>,
    /// The fields with the other kind of ids that the record batch can have: strings, or strings and integers. The kind that
    /// the last object needed is in `fields`.
    with_other_ids: Option<Arc<Fields>>,
    /// Whether the fields must be UTF-8: other bytes are replaced in the whole object.
    needs_utf8: bool,
}

impl Parser {
    fn new(columns: &FoundColumns, id_type: IdType) -> Self {
        let kind = |role: Role<'_>, of_ids| match role {
            Role::Id => of_ids,
            Role::Content(Content::Fingerprint(_)) => Kind::Number,
            Role::Content(Content::Text(_)) | Role::FurtherText => Kind::Texts,
            Role::Preference | Role::Sketch => Kind::Any,
            Role::Carried(_) | Role::Source => Kind::AsWritten,
        };
        let fields = |of_ids| {
            let roles = columns.roles().into_iter();
            Arc::new(Fields::new(
                roles.map(|(name, role)| (name, kind(role, of_ids))),
            ))
        };
        let (fields, with_other_ids) = match id_type {
            IdType::Bigint => (fields(Kind::Number), None),
            // Only as `Text` need an id not be UTF-8.
            IdType::String => (fields(Kind::Text), Some(fields(Kind::TextOrInteger))),
        };
        Self {
            fields,
            with_other_ids,
            needs_utf8: columns.content.is_none(),
        }
    }

    /// Adds the values of an object, which errors call `name`, to `batch`.
    fn parse(
        &mut self,
        object: &[u8],
        name: &dyn Fn() -> String,
        batch: &mut BatchBuilder,
    ) -> Result<()> {
        let replaced = self
            .needs_utf8
            .then(|| escape_controls(String::from_utf8_lossy(object)));
        let object = replaced.as_ref().map_or(object, |object| object.as_bytes());
        let repaired;
        let record = match self.record(object) {
            Ok(record) => record,
            Err(error) => {
                let bad = |error| bad_line(&name(), &error);
                // It may have numbers that JSON does not.
                repaired = without_nan(object).ok_or_else(|| bad(error))?;
                self.record(&repaired).map_err(bad)?
            }
        };
        let added = batch.push(&record.values());
        added.map_err(|reason| DocumentsError::bad_data(name(), reason))
    }

    /// The fields of an object. If its ids are of the other kind, that is tried first for the next object.
    fn record<'o>(&mut self, object: &'o [u8]) -> serde_json::Result<Record<'o>> {
        self.fields.parse(object).or_else(|error| {
            let Some(other) = &mut self.with_other_ids else {
                return Err(error);
            };
            let record = other.parse(object).map_err(|_| error)?;
            std::mem::swap(&mut self.fields, other);
            Ok(record)
        })
    }
}

/// Escapes the control characters in the strings of an object. JSON has none there, but a text may have some, and an object that is
/// read for its text must not be refused when it is read for other fields.
fn escape_controls(line: Cow<'_, str>) -> Cow<'_, str> {
    if !line.bytes().any(|byte| byte < b' ') {
        return line;
    }
    let mut escaped = String::with_capacity(line.len() + 16);
    let (mut is_within, mut is_after_backslash) = (false, false);
    for character in line.chars() {
        if is_within && character < ' ' {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
            is_after_backslash = false;
            continue;
        }
        is_within ^= character == '"' && !is_after_backslash;
        is_after_backslash = is_within && character == '\\' && !is_after_backslash;
        escaped.push(character);
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_in_strings_are_escaped() {
        for (line, expected) in [
            ("{\"a\":\t1}\n", "{\"a\":\t1}\n"),
            ("{\"a\":\t\"x\ty\n\"}\n", "{\"a\":\t\"x\\u0009y\\u000a\"}\n"),
            (r#"{"a":"\\","b":"\""}"#, r#"{"a":"\\","b":"\""}"#),
            ("{\"a\":\"\\\"\t\"}\t", "{\"a\":\"\\\"\\u0009\"}\t"),
        ] {
            assert_eq!(escape_controls(line.into()), expected);
        }
    }
}
