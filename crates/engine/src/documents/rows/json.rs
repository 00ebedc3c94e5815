//! JSON: one object a line (JSON Lines), or one array of objects. The reader uses the fields of the id, the content and the
//! preference.
//!
//! It builds nothing from the other fields: a tree of them, or Arrow's tape, would take many times
//! the bytes of the line.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead as _, Read as _};

use archive::IdType;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use storage::Location;

use super::builder::{BATCH_BYTES, BatchBuilder, integer};
use super::format::{FirstRecord, MAX_FIELDS, RawRecords, Records, RowFormat};
use super::input::Input;
use super::json_array::{Array, Element};
use crate::documents::columns::{Columns, Content, FoundColumns};
use crate::documents::conform::NO_ID;
use crate::error::{EngineError, Result};

/// The objects of a file: its lines that are not blank, or the elements of its array.
struct Objects {
    input: Input,
    /// Number of the line in which `text` begins, from 1 on.
    number: u64,
    text: Vec<u8>,
    /// The array that the file is, if it is one and is begun.
    array: Option<Array>,
}

impl Objects {
    /// The objects of a file from its start.
    fn new(input: Input) -> Result<Self> {
        let mut objects = Self {
            input,
            number: 1,
            text: Vec::new(),
            array: None,
        };
        let begun = Array::begin(&mut objects.input.bytes);
        let (line, array) = begun.map_err(|error| objects.input.failed(1, error))?;
        // The number of a line counts up when the line is read.
        objects.number = if array.is_some() { line } else { line - 1 };
        objects.array = array;
        Ok(objects)
    }

    /// Reads the next object into `text`; returns `false` at the end of the file.
    fn advance(&mut self) -> Result<bool> {
        let limit = self.input.limit;
        // Free the memory of a long object.
        if self.text.capacity() > BATCH_BYTES {
            self.text = Vec::new();
        }
        self.text.clear();
        let Some(array) = &mut self.array else {
            return self.next_line();
        };
        let element = array.next(&mut self.input.bytes, limit.record, &mut self.text);
        self.number = array.line();
        match element {
            Ok(Element::Object) => Ok(true),
            Ok(Element::End) => Ok(false),
            Ok(Element::TooLong) => Err(limit.exceeded(self.name())),
            Ok(Element::Bad(reason)) => Err(EngineError::BadData {
                object: self.name(),
                reason: reason.to_owned(),
            }),
            Err(error) => Err(self.input.failed(self.number, error)),
        }
    }

    /// Reads the next line that is not blank.
    fn next_line(&mut self) -> Result<bool> {
        let limit = self.input.limit;
        loop {
            self.text.clear();
            self.number += 1;
            // Read at most the longest line allowed, and its line end.
            let mut bytes = self.input.bytes.by_ref().take(limit.record as u64 + 1);
            let read = bytes.read_until(b'\n', &mut self.text);
            if read.map_err(|error| self.input.failed(self.number, error))? == 0 {
                return Ok(false);
            }
            if self.text.last() == Some(&b'\n') {
                self.text.pop();
            }
            if self.text.len() > limit.record {
                return Err(limit.exceeded(self.name()));
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The name of the line in which the object begins, for messages.
    fn name(&self) -> String {
        self.input.line_name(self.number)
    }
}

/// The error of a line that cannot be parsed. It names the position in the line if the parser does.
fn bad_line(line: &str, error: &serde_json::Error) -> EngineError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let (object, reason) = match text.strip_suffix(&place) {
        Some(reason) => (format!("{line}, column {}", error.column()), reason),
        None => (line.to_owned(), &*text),
    };
    EngineError::BadData {
        object,
        reason: reason.to_owned(),
    }
}

/// JSON Lines, or an array.
#[derive(Debug)]
pub(in crate::documents) struct Json;

impl RowFormat for Json {
    fn first_record(&self, input: Input) -> Result<Option<Box<dyn FirstRecord>>> {
        let mut objects = Objects::new(input)?;
        let found = objects.advance()?;
        Ok(found.then(|| {
            Box::new(FirstObject {
                name: objects.name(),
                text: objects.text,
            }) as Box<dyn FirstRecord>
        }))
    }

    fn records(
        &self,
        input: Input,
        columns: &FoundColumns,
        id_type: IdType,
    ) -> Result<Box<dyn Records>> {
        Ok(Box::new(JsonRecords::new(input, columns, id_type)?))
    }

    fn raw_records(&self, input: Input, _: &FoundColumns) -> Result<Box<dyn RawRecords>> {
        Ok(Box::new(RawObjects(Objects::new(input)?)))
    }
}

/// The unparsed objects.
struct RawObjects(Objects);

impl RawRecords for RawObjects {
    fn header(&self) -> &[u8] {
        match self.0.array {
            Some(_) => b"[\n",
            None => b"",
        }
    }

    fn next_record(&mut self) -> Result<Option<&[u8]>> {
        if !self.0.advance()? {
            return Ok(None);
        }
        if self.0.array.is_none() {
            self.0.text.push(b'\n');
        }
        Ok(Some(&self.0.text))
    }

    fn separator(&self) -> &'static [u8] {
        match self.0.array {
            Some(_) => b",\n",
            None => b"",
        }
    }

    fn footer(&self) -> &'static [u8] {
        match self.0.array {
            Some(_) => b"\n]\n",
            None => b"",
        }
    }
}

/// The first object, with the name of its line.
struct FirstObject {
    name: String,
    text: Vec<u8>,
}

impl FirstRecord for FirstObject {
    fn find(&self, location: &Location, columns: &Columns) -> Result<(FoundColumns, IdType)> {
        let names = self.names().map_err(|error| bad_line(&self.name, &error))?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // This object may lack the preference, and others have it.
        let names: Vec<&str> = names.into_iter().chain(columns.prefer.column()).collect();
        let found = columns.find(location.given(), &names)?;
        let Some(name) = found.id.clone() else {
            return Ok((found, IdType::String));
        };
        let is_id = |kind, check: fn(&[u8]) -> bool| {
            let id = Some(Field {
                name: name.clone(),
                kind,
            });
            let fields = Fields {
                id,
                content: None,
                preference: None,
            };
            let record = fields.parse(&self.text);
            // The whole line was parsed before, so only the id can fail.
            record.map_or(Some(false), |record| record.id.map(|id| check(&id)))
        };
        let id_type = match is_id(Kind::Text, |_| true) {
            None => {
                return Err(EngineError::BadData {
                    object: self.name.clone(),
                    reason: format!("{NO_ID} (column {name:?})"),
                });
            }
            Some(true) => IdType::String,
            Some(false) if is_id(Kind::Number, |id| integer(id).is_some()) == Some(true) => {
                IdType::Bigint
            }
            Some(false) => {
                return Err(EngineError::BadData {
                    object: format!("{}, column {name:?}", self.name),
                    reason: "ids are text or integers of 64 bits, and this is neither".into(),
                });
            }
        };
        Ok((found, id_type))
    }
}

impl FirstObject {
    /// The names of the fields.
    fn names(&self) -> serde_json::Result<Vec<String>> {
        let mut json = serde_json::Deserializer::from_slice(&self.text);
        let names = json.deserialize_map(Names)?;
        json.end()?;
        Ok(names)
    }
}

/// The names of an object's fields.
struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            if names.len() == MAX_FIELDS {
                let reason = format!("more than {MAX_FIELDS} fields");
                return Err(de::Error::custom(reason));
            }
            names.push(name);
        }
        Ok(names)
    }
}

/// The records of a file.
struct JsonRecords {
    objects: Objects,
    fields: Fields,
}

impl JsonRecords {
    fn new(input: Input, columns: &FoundColumns, id_type: IdType) -> Result<Self> {
        let id = columns.id.clone().map(|name| Field {
            name,
            kind: match id_type {
                IdType::String => Kind::Text,
                IdType::Bigint => Kind::Number,
            },
        });
        let content = Field {
            name: columns.content.column().to_owned(),
            kind: match columns.content {
                Content::Text(_) => Kind::Text,
                Content::Fingerprint(_) => Kind::Number,
            },
        };
        let preference = columns.own_preference().map(|name| Field {
            name: name.to_owned(),
            kind: Kind::Any,
        });
        Ok(Self {
            objects: Objects::new(input)?,
            fields: Fields {
                id,
                content: Some(content),
                preference,
            },
        })
    }
}

impl Records for JsonRecords {
    fn read(&mut self, batch: &mut BatchBuilder) -> Result<bool> {
        if !self.objects.advance()? {
            return Ok(false);
        }
        let record = self.fields.parse(&self.objects.text);
        let record = record.map_err(|error| bad_line(&self.objects.name(), &error))?;
        let [id, content, preference] =
            [&record.id, &record.content, &record.preference].map(Option::as_deref);
        let added = batch.push(id, content, preference);
        added.map_err(|reason| EngineError::BadData {
            object: self.objects.name(),
            reason,
        })?;
        Ok(true)
    }
}

/// The fields to read; `None` for one that is not read.
struct Fields {
    id: Option<Field>,
    content: Option<Field>,
    preference: Option<Field>,
}

struct Field {
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A string. Its bytes need not be UTF-8: that is checked later.
    Text,
    /// A number, or a string that may be one.
    Number,
    /// A string, a number, or a boolean, which becomes 1 or 0.
    Any,
}

/// The fields of one object: missing and null ones as `None`, numbers in decimal.
#[derive(Default)]
struct Record<'a> {
    id: Option<Cow<'a, [u8]>>,
    content: Option<Cow<'a, [u8]>>,
    preference: Option<Cow<'a, [u8]>>,
}

impl Fields {
    fn parse<'a>(&self, line: &'a [u8]) -> serde_json::Result<Record<'a>> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let record = json.deserialize_map(self)?;
        json.end()?;
        Ok(record)
    }
}

impl<'de> Visitor<'de> for &Fields {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record<'de>, A::Error> {
        let mut record = Record::default();
        let mut ignored = None;
        while let Some(column) = map.next_key_seed(Key(self))? {
            let (field, value) = match column {
                Column::Id => (&self.id, &mut record.id),
                Column::Content => (&self.content, &mut record.content),
                Column::Preference => (&self.preference, &mut record.preference),
                Column::Other => (&None, &mut ignored),
            };
            match field {
                Some(field) => *value = map.next_value_seed(field)?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(record)
    }
}

/// Reads the name of the next field, and tells which column it is.
struct Key<'f>(&'f Fields);

enum Column {
    Id,
    Content,
    Preference,
    Other,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Column;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Column, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Column;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Column, E> {
        let is_named =
            |field: &Option<Field>| field.as_ref().is_some_and(|field| field.name == name);
        Ok(if is_named(&self.0.id) {
            Column::Id
        } else if is_named(&self.0.content) {
            Column::Content
        } else if is_named(&self.0.preference) {
            Column::Preference
        } else {
            Column::Other
        })
    }
}

impl<'de> DeserializeSeed<'de> for &Field {
    type Value = Option<Cow<'de, [u8]>>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for &Field {
    type Value = Option<Cow<'de, [u8]>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Text => "a string",
            Kind::Number => "an integer",
            Kind::Any => "a string or a number",
        };
        write!(f, "{kind} in column {:?}", self.name)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        match self.kind {
            Kind::Text => value.deserialize_bytes(self),
            Kind::Number | Kind::Any => value.deserialize_any(self),
        }
    }

    fn visit_borrowed_bytes<E: de::Error>(self, text: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        match self.kind {
            Kind::Any => Ok(Some(Cow::Owned(number.to_string().into_bytes()))),
            _ => Err(E::invalid_type(de::Unexpected::Float(number), &self)),
        }
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        match self.kind {
            Kind::Any => Ok(Some(Cow::Borrowed(if value { b"1" } else { b"0" }))),
            _ => Err(E::invalid_type(de::Unexpected::Bool(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(number.to_string().into_bytes())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(number.to_string().into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(id: Kind, content: Kind) -> Fields {
        let field = |name: &str, kind| Field {
            name: name.to_owned(),
            kind,
        };
        Fields {
            id: Some(field("id", id)),
            content: Some(field("text", content)),
            preference: None,
        }
    }

    /// Id and content of a line, or what is wrong with it.
    fn parse(fields: &Fields, line: &[u8]) -> Result<[Option<Vec<u8>>; 2], String> {
        let record = fields.parse(line).map_err(|error| error.to_string())?;
        Ok([record.id, record.content].map(|value| value.map(Cow::into_owned)))
    }

    #[test]
    fn two_fields_of_an_object_are_read() {
        let texts = fields(Kind::Text, Kind::Text);
        let row = |id: &[u8], text: &[u8]| Ok([Some(id.to_vec()), Some(text.to_vec())]);
        let read = |line: &[u8]| parse(&texts, line);
        assert_eq!(read(br#"{"id":"a","text":"b"}"#), row(b"a", b"b"));
        assert_eq!(
            read(br#" {"x":[{"id":1}],"te\u0078t":"\u00e9\n\"","y":null,"id":"\ud83d\ude00"} "#),
            row("\u{1f600}".as_bytes(), "\u{e9}\n\"".as_bytes())
        );
        // Bytes that are no UTF-8, and a tab that is not escaped.
        assert_eq!(
            read(b"{\"id\":\"a\tb\",\"text\":\"\xff\xfe\"}"),
            row(b"a\tb", b"\xff\xfe")
        );
        assert_eq!(read(br#"{"id":null,"text":null}"#), Ok([None, None]));
        assert_eq!(read(b"{}"), Ok([None, None]));
        for bad in [
            &br#"{"id":"a","text":"b""#[..],
            br#"{"id":"a"} {"id":"b"}"#,
            br#"{"id":1}"#,
            br#"{"text":["b"]}"#,
            br#"[1]"#,
            br#"{"x":[1,}"#,
        ] {
            read(bad).unwrap_err();
        }
    }

    #[test]
    fn numbers_keep_every_digit() {
        let numbers = fields(Kind::Number, Kind::Number);
        let row = |id: &str, text: &str| {
            let value = |text: &str| Some(text.as_bytes().to_vec());
            Ok([value(id), value(text)])
        };
        assert_eq!(
            parse(&numbers, br#"{"id":-7,"text":18446744073709551615}"#),
            row("-7", "18446744073709551615")
        );
        assert_eq!(
            parse(&numbers, br#"{"id":"12","text":"x"}"#),
            row("12", "x")
        );
        for bad in ["1.5", "true", "[1]", "18446744073709551616"] {
            let line = format!("{{\"id\":{bad}}}");
            let error = parse(&numbers, line.as_bytes()).unwrap_err();
            assert!(error.contains("integer in column \"id\""), "{error}");
        }
    }

    #[test]
    fn errors_say_where_in_the_line() {
        let texts = fields(Kind::Text, Kind::Text);
        let error = texts.parse(br#"{"id":"a","text":x}"#).err().unwrap();
        let error = bad_line("day.jsonl, line 3", &error).to_string();
        assert_eq!(error, "day.jsonl, line 3, column 18: expected value");
    }

    #[test]
    fn deep_nesting_is_skipped() {
        let depth = 200_000;
        let line = format!(
            "{{\"x\":{}{},\"id\":\"a\"}}",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let texts = fields(Kind::Text, Kind::Text);
        let id = Some(b"a".to_vec());
        assert_eq!(parse(&texts, line.as_bytes()), Ok([id, None]));
    }
}
