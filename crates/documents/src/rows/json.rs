//! JSON: one object a line (JSON Lines), or one array of objects. The reader uses the fields of the id, the content, the
//! preference, and those that go along to decisions.
//!
//! It builds nothing from the other fields: a tree of them, or Arrow's tape, would take many times
//! the bytes of the line.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use archive::IdType;
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use storage::Location;

use super::builder::integer;
use super::decoded::Copied;
use super::format::{FindColumns, MAX_FIELDS, RawRecords, RecordReader, RowFormat};
use super::input::Input;
use super::json_fields::{Content as Bytes, Fields, Kind};
use super::json_numbers::without_nan;
use super::json_objects::{Objects, bad_line};
use super::json_pieces::JsonPieces;
use crate::columns::{Columns, FoundColumns, Says, URL_NAMES, Unseen};
use crate::conform::NO_ID;
use crate::error::{DocumentsError, Result};
use crate::listed::listed;

/// An object as JSON, with null for the numbers that this does not have.
fn json_of(object: Vec<u8>) -> Vec<u8> {
    without_nan(&object).unwrap_or(object)
}

/// JSON Lines, or an array.
#[derive(Debug)]
pub(crate) struct Json;

impl RowFormat for Json {
    fn first_record(&self, input: Input) -> Result<Option<FindColumns>> {
        let mut objects = Objects::new(input)?;
        if !objects.advance()? {
            return Ok(None);
        }
        let name = objects.name();
        let mut texts = vec![json_of(std::mem::take(&mut objects.text))];
        let mut bytes = texts[0].len();
        // Whatever is wrong with the next ones is said when all are read.
        let mut is_whole = false;
        while !is_whole
            && texts.len() < MOST_OBJECTS
            && (bytes < ENOUGH_BYTES || (texts.len() < LEAST_OBJECTS && bytes < MOST_BYTES))
        {
            match objects.advance() {
                Ok(true) => {
                    bytes += objects.text.len();
                    texts.push(json_of(std::mem::take(&mut objects.text)));
                }
                Ok(false) => is_whole = true,
                Err(_) => break,
            }
        }
        let first = FirstObjects {
            name,
            texts,
            is_whole,
            is_array: objects.array.is_some(),
        };
        Ok(Some(Box::new(move |location, columns| {
            first.find(location, columns)
        })))
    }

    fn records(
        &self,
        input: Input,
        columns: &FoundColumns,
        id_type: IdType,
    ) -> Result<RecordReader> {
        let pieces = JsonPieces::new(Objects::new(input)?, columns, id_type);
        Ok(RecordReader::Pieces(Box::new(pieces)))
    }

    fn raw_records(&self, input: Input, columns: &FoundColumns) -> Result<RawRecords> {
        // Where lines end is the same in any encoding; where objects end is not.
        let copied = if columns.is_array || columns.is_joined {
            Copied::InUtf8
        } else {
            Copied::AsItIs
        };
        let mut objects = Objects::of_text(input.into_copy(copied))?;
        let is_array = objects.array.is_some();
        let records = RawRecords::new(move |record| {
            let is_there = objects.advance()?;
            std::mem::swap(record, &mut objects.text);
            if is_there && !is_array {
                record.push(b'\n');
            }
            Ok(is_there)
        });
        if !is_array {
            return Ok(records);
        }
        Ok(RawRecords {
            header: b"[\n".to_vec(),
            separator: b",\n",
            footer: b"\n]\n",
            ..records
        })
    }
}

/// The most fields of an inner object that an error lists.
const MAX_NESTED: usize = 100;
/// The most objects in which columns are sought, and about the most bytes of them.
const MOST_OBJECTS: usize = 1000;
const ENOUGH_BYTES: usize = 1 << 20;
/// The objects that are searched however long they are, up to [`MOST_BYTES`] bytes of them.
const LEAST_OBJECTS: usize = 10;
const MOST_BYTES: usize = 32 << 20;

/// The first objects, with the name of the line of the first.
struct FirstObjects {
    name: String,
    texts: Vec<Vec<u8>>,
    /// Whether the file has no more.
    is_whole: bool,
    is_array: bool,
}

impl FirstObjects {
    fn find(&self, location: &Location, columns: &Columns) -> Result<(FoundColumns, IdType)> {
        let bad = |error| bad_line(&self.name, &error);
        let (text, next) = (&self.texts[0], &self.texts[1..]);
        let mut all = vec![names_in(text, columns).map_err(bad)?];
        all.extend(next.iter().flat_map(|text| names_in(text, columns)));
        let names = &all[0];
        // An object may lack the preference, the source and the carried columns, and others have them.
        let seeks_urls = columns.with_sources && columns.source.is_none();
        let urls = URL_NAMES.into_iter().filter(|_| seeks_urls);
        let mut missing: BTreeSet<&str> = columns.optional().chain(urls.clone()).collect();
        for name in all.iter().flatten() {
            missing.remove(name.as_str());
        }
        let unseen = columns.optional().filter(|name| missing.contains(name));
        let unseen = unseen.map(|name| Unseen {
            name: name.to_owned(),
            in_whole_file: self.is_whole,
            columns: listed(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        });
        let unseen: Vec<Unseen> = unseen.collect();
        let url = urls.clone().find(|name| !missing.contains(name));
        let optional: Vec<&str> = columns.optional().collect();
        let find = |names: &[String]| {
            let names = names.iter().map(String::as_str);
            let names: Vec<&str> = names.chain(optional.iter().copied()).collect();
            columns.find(location.given(), &names)
        };
        // The first object may be like no other: what most of them have counts.
        let common = common_names(&all, columns);
        let found = find(&common).or_else(|_| {
            if let Some(found) = all.iter().find_map(|names| find(names).ok()) {
                return Ok(found);
            }
            let nested = nested_paths(text);
            let nested = nested.into_iter().filter(|path| !names.contains(path));
            find(&names.iter().cloned().chain(nested).collect::<Vec<_>>())
        })?;
        let found = FoundColumns {
            is_array: self.is_array,
            unseen,
            source: found.source.or(url.map(|url| (url.to_owned(), Says::Urls))),
            ..found
        };
        let Some(name) = found.id.clone() else {
            return Ok((found, IdType::String));
        };
        let is_id = |kind, check: fn(&[u8]) -> bool| {
            let record = Fields::new([(name.as_str(), kind)]).parse(text);
            // The whole line was parsed before, so only the id can fail.
            record.map_or(Some(false), |record| record.values()[0].map(check))
        };
        let id_type = match is_id(Kind::Text, |_| true) {
            None => {
                let reason = format!("{NO_ID} (column {name:?})");
                return Err(DocumentsError::bad_data(&self.name, reason));
            }
            Some(true) => IdType::String,
            Some(false) if is_id(Kind::Number, |id| integer(id).is_some()) == Some(true) => {
                IdType::Bigint
            }
            // An integer above those of 64 bits with a sign.
            Some(false) if is_id(Kind::TextOrInteger, |_| true) == Some(true) => IdType::String,
            Some(false) => {
                return Err(DocumentsError::bad_data(
                    format!("{}, column {name:?}", self.name),
                    "ids are text or integers of 64 bits, outside of lists, and this is neither",
                ));
            }
        };
        Ok((found, id_type))
    }
}

/// The names of fields that at least half of some objects have, with each that an option names and one of them has.
fn common_names(objects: &[Vec<String>], columns: &Columns) -> Vec<String> {
    let (mut counts, mut order) = (HashMap::new(), Vec::new());
    for names in objects {
        let mut distinct = BTreeSet::new();
        for name in names.iter().map(String::as_str) {
            if distinct.insert(name) {
                *counts.entry(name).or_insert_with(|| {
                    order.push(name);
                    0
                }) += 1;
            }
        }
    }
    let named: BTreeSet<&str> = columns.named().collect();
    order.retain(|name| 2 * counts[name] >= objects.len() || named.contains(name));
    order.into_iter().map(str::to_owned).collect()
}

/// The names of the fields of an object, and the paths of those fields inside of its objects that `columns` name for ids and
/// contents.
fn names_in(object: &[u8], columns: &Columns) -> serde_json::Result<Vec<String>> {
    let mut json = serde_json::Deserializer::from_slice(object);
    let mut names = json.deserialize_map(Names)?;
    json.end()?;
    let paths: BTreeSet<&str> = columns.named().filter(|name| name.contains('.')).collect();
    let fields = Fields::new(paths.iter().map(|path| (*path, Kind::Presence)));
    let record = fields.parse(object)?;
    let there = paths.iter().zip(record.values());
    let there = there.filter(|(_, value)| value.is_some());
    names.extend(there.map(|(path, _)| (*path).to_owned()));
    Ok(names)
}

/// The paths of the fields inside of an object's objects, for an error that lists them.
fn nested_paths(object: &[u8]) -> Vec<String> {
    fn add(value: &serde_json::Value, path: &str, paths: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields.iter().take(MAX_NESTED) {
                    let path = format!("{path}.{name}");
                    add(value, &path, paths);
                    paths.push(path);
                }
            }
            serde_json::Value::Array(items) => {
                items.iter().take(1).for_each(|item| add(item, path, paths));
            }
            _ => {}
        }
    }
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(object).unwrap_or_default();
    let mut paths = Vec::new();
    for (name, value) in &fields {
        add(value, name, &mut paths);
    }
    paths
}

/// The name of a field. An escape in it may be half of a character, which is replaced.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(name: D) -> Result<Self, D::Error> {
        let bytes = name.deserialize_bytes(Bytes)?;
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
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
