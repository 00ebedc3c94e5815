//! What people say of documents: that two are duplicates, that two are none, that one is never dropped. It wins over distances.
//!
//! A document that a pin names is decided by itself: its class is its own, apart from that of the documents that equal it.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::sync::Arc;

use archive::{IdType, Pin};
use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::captures::MAX_SHARED;
use super::id_order::IdOrder;
use crate::batch::{Batch, Classes};
use crate::error::{EngineError, Result};
use documents::DocumentId;

/// The columns of a file of pins.
const COLUMNS: [&str; 3] = ["pin", "id", "other"];

/// Reads a file of pins, called `name`: CSV with the columns `pin`, `id` and `other`, or JSON Lines with these fields. `pin` is `same`
/// or `distinct`, `keep` without `other`, or `forget` with or without it.
///
/// # Errors
/// [`EngineError::BadData`] when it is neither, or a pin is none of these.
pub fn read_pins(name: &str, file: &[u8]) -> Result<Vec<Pin>> {
    let bad = |reason: String| EngineError::bad_data(name, reason);
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let rows = match file.trim_ascii_start().first() {
        None => return Ok(Vec::new()),
        Some(0x1f | b'(') => return Err(bad("pins are CSV or JSON Lines, not compressed".into())),
        Some(_) if file.starts_with(b"PAR1") => {
            return Err(bad("pins are CSV or JSON Lines, not Parquet".into()));
        }
        Some(b'[') => return Err(bad("it is a JSON array, and not JSON Lines".into())),
        Some(b'{') => json_rows(file),
        Some(_) => csv_rows(file),
    };
    // If the names of the columns have spaces before them, those before the values mean nothing, either.
    let header = file.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_spaced = !header.starts_with(b"{") && header.windows(2).any(|pair| pair == b", ");
    let mut pins = Vec::new();
    let mut number = 0;
    for rows in rows.map_err(|error| bad(error.to_string()))? {
        let [kinds, ids, others] = COLUMNS.map(|name| rows.column_by_name(name));
        let (Some(kinds), Some(ids)) = (kinds, ids) else {
            return Err(bad("it needs the columns pin and id, and other".into()));
        };
        let value = |column: Option<&Arc<dyn arrow::array::Array>>, row| {
            let column = column?.as_string_opt::<i32>()?;
            let value = column.value(row);
            let value = if is_spaced { value.trim() } else { value };
            (column.is_valid(row) && !value.is_empty()).then(|| value.to_owned())
        };
        for row in 0..rows.num_rows() {
            number += 1;
            let kind = value(Some(kinds), row);
            let pin = match (kind.as_deref(), value(Some(ids), row), value(others, row)) {
                (Some("same"), Some(id), Some(other)) => Pin::Same(id, other),
                (Some("distinct"), Some(id), Some(other)) => Pin::Distinct(id, other),
                (Some("keep"), Some(id), None) => Pin::Keep(id),
                (Some("forget"), Some(id), other) => Pin::Forget(id, other),
                _ => {
                    return Err(bad(format!(
                        "pin {number} is none: same or distinct with two ids (id, other), keep with one (id), or forget with one or two"
                    )));
                }
            };
            pins.push(pin);
        }
    }
    typed_pins(Some(name), &pins, IdType::String)
}

/// Columns of text with these names.
fn texts<'a>(names: impl Iterator<Item = &'a str>) -> SchemaRef {
    let field = |name| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(names.map(field).collect::<Vec<_>>()))
}

fn json_rows(file: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    let reader = arrow::json::ReaderBuilder::new(texts(COLUMNS.into_iter()))
        .with_coerce_primitive(true)
        .build(Cursor::new(file))?;
    reader.collect()
}

fn csv_rows(file: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    let format = arrow::csv::reader::Format::default().with_header(true);
    let (found, _) = format.infer_schema(Cursor::new(file), Some(0))?;
    let names = found.fields().iter().map(|field| field.name().trim());
    let has = |name: &&str| names.clone().any(|found| found == *name);
    if !COLUMNS[..2].iter().all(has) {
        let reason = "it needs the columns pin and id, and other";
        return Err(ArrowError::SchemaError(reason.into()));
    }
    let reader = arrow::csv::ReaderBuilder::new(texts(names))
        .with_format(format)
        .with_truncated_rows(true)
        .build(Cursor::new(file))?;
    reader.collect()
}

/// The pins of a file, `from`, with ids as the documents have them.
///
/// # Errors
/// [`EngineError::BadData`] for the first whose id is none of the type, that names a document twice, or that another contradicts.
pub(crate) fn typed_pins(from: Option<&str>, pins: &[Pin], id_type: IdType) -> Result<Vec<Pin>> {
    let bad = |reason: String| EngineError::bad_data(from.unwrap_or("pins"), reason);
    let id = |text: &str| -> Result<String> { Ok(id_of(text, id_type).map_err(bad)?.to_string()) };
    let mut about: HashMap<(String, String), Pin> = HashMap::new();
    for pin in pins {
        let pin = match pin {
            Pin::Same(a, b) => Pin::Same(id(a)?, id(b)?),
            Pin::Distinct(a, b) => Pin::Distinct(id(a)?, id(b)?),
            Pin::Keep(a) => Pin::Keep(id(a)?),
            Pin::Forget(a, b) => Pin::Forget(id(a)?, b.as_deref().map(id).transpose()?),
        };
        let pin = pin.ordered();
        let (a, b) = pin.about();
        if a == b {
            return Err(bad(format!("{b:?} is both documents of a pin")));
        }
        if about
            .insert((a.clone(), b.clone()), pin.clone())
            .is_some_and(|other| other != pin)
        {
            let about = if b.is_empty() {
                format!("{a:?}")
            } else {
                format!("{a:?} and {b:?}")
            };
            return Err(bad(format!("two pins about {about} contradict each other")));
        }
    }
    let mut pins: Vec<Pin> = about.into_values().collect();
    pins.sort_unstable();
    Ok(pins)
}

/// The id that a pin says, of the documents' id type.
///
/// # Errors
/// When it is no integer, and ids are.
fn id_of(text: &str, id_type: IdType) -> Result<DocumentId, String> {
    match id_type {
        IdType::String => Ok(DocumentId::Text(text.into())),
        IdType::Bigint => {
            let number = text.trim().parse().map(DocumentId::Number);
            number.map_err(|_| {
                format!("the id {text:?} is no integer, and the ids of the documents are")
            })
        }
    }
}

/// The classes of a batch, with those documents apart that pins name.
pub(super) struct PinnedClasses {
    classes: Arc<Classes>,
    /// The class of each row that has one of its own.
    own: HashMap<u32, u32>,
    /// The rows of these classes, which come after the others.
    own_rows: Vec<u32>,
    /// Those of documents that equal the others of a class.
    pub(super) apart: HashMap<u32, Vec<u32>>,
    never_dropped: HashSet<u32>,
    /// The rows without a class that are never dropped.
    pub(super) never_dropped_rows: HashSet<u32>,
    /// Pairs of classes that are no duplicates, whatever their distance, both ways.
    pub(super) distinct: HashSet<(u32, u32)>,
    /// For each class, the documents of the archive that a pin calls distinct from it.
    distinct_of: HashMap<u32, HashSet<DocumentId>>,
    /// Pairs of classes that are duplicates.
    pub(super) same: Vec<(u32, u32)>,
    /// Documents that a class is a duplicate of, if the archive has and keeps them.
    pub(super) same_of: HashMap<DocumentId, Vec<u32>>,
    /// Pins that name a document of the batch.
    pub(super) named: u64,
}

impl PinnedClasses {
    /// The classes of `batch`, whose rows by id are `by_id`. The first `given` of the `pins` are those of the run, the others what the
    /// archive remembers.
    pub(super) fn new(
        classes: Arc<Classes>,
        (pins, given): (&[Pin], usize),
        batch: &Batch,
        by_id: &IdOrder,
    ) -> Result<Self> {
        let mut pinned = Self {
            classes,
            own: HashMap::new(),
            own_rows: Vec::new(),
            apart: HashMap::new(),
            never_dropped: HashSet::new(),
            never_dropped_rows: HashSet::new(),
            distinct: HashSet::new(),
            distinct_of: HashMap::new(),
            same: Vec::new(),
            same_of: HashMap::new(),
            named: 0,
        };
        let Some(id_type) = batch.id_type() else {
            return Ok(pinned);
        };
        for (at, pin) in pins.iter().enumerate() {
            let (id, other) = match pin {
                Pin::Same(id, other) | Pin::Distinct(id, other) => (id, Some(other)),
                Pin::Keep(id) => (id, None),
                Pin::Forget(..) => continue,
            };
            // Pins of another type, of an archive that another program wrote, name nothing.
            let (Ok(id), Ok(other)) = (
                id_of(id, id_type),
                other.map(|other| id_of(other, id_type)).transpose(),
            ) else {
                continue;
            };
            if other.as_ref() == Some(&id) {
                continue;
            }
            let mut of_id = |id: &DocumentId| {
                let rows = by_id.rows_with(batch, id);
                if rows.len() > MAX_SHARED {
                    let (count, id) = (rows.len(), id.to_string());
                    let many = format!("{count} documents of the batch have the id {id:?}");
                    if at >= given {
                        tracing::warn!("{many}: what the archive remembers of it is left out");
                        return Ok(Vec::new());
                    }
                    let reason = format!("{many}, and a pin can be about {MAX_SHARED} at most");
                    return Err(EngineError::bad_data("pins", reason));
                }
                if matches!(pin, Pin::Keep(_)) {
                    pinned.never_dropped_rows.extend(rows);
                }
                let classes = rows.iter().filter_map(|row| pinned.set_apart(*row));
                Ok(classes.collect::<Vec<u32>>())
            };
            let left = of_id(&id)?;
            let right = other.as_ref().map(of_id).transpose()?.unwrap_or_default();
            pinned.named += u64::from(!left.is_empty() || !right.is_empty());
            let pairs = left
                .iter()
                .flat_map(|a| right.iter().map(move |b| (*a, *b)));
            match (pin, other) {
                (Pin::Keep(_), _) => pinned.never_dropped.extend(left),
                (Pin::Forget(..), _) | (_, None) => {}
                (Pin::Same(..), Some(other)) => {
                    pinned.same.extend(pairs);
                    for (classes, of) in [(left, other), (right, id)] {
                        if !classes.is_empty() {
                            pinned.same_of.entry(of).or_default().extend(classes);
                        }
                    }
                }
                (Pin::Distinct(..), Some(other)) => {
                    for (a, b) in pairs {
                        pinned.distinct.extend([(a, b), (b, a)]);
                    }
                    for (classes, of) in [(left, &other), (right, &id)] {
                        for class in classes {
                            let of_class = pinned.distinct_of.entry(class).or_default();
                            of_class.insert(of.clone());
                        }
                    }
                }
            }
        }
        Ok(pinned)
    }

    /// Gives a row a class of its own; `None` if it has no fingerprint.
    fn set_apart(&mut self, row: u32) -> Option<u32> {
        let of = self.classes.of_row(row)?;
        let next = self.count() as u32;
        let own = *self.own.entry(row).or_insert(next);
        if own == next {
            self.own_rows.push(row);
            self.apart.entry(of).or_default().push(own);
        }
        Some(own)
    }

    pub(super) fn count(&self) -> usize {
        self.classes.count() + self.own_rows.len()
    }

    /// The class of a row; `None` for one without a fingerprint.
    pub(super) fn of_row(&self, row: u32) -> Option<u32> {
        match self.own.get(&row) {
            Some(own) => Some(*own),
            None => self.classes.of_row(row),
        }
    }

    /// The class that probing found, and those apart from it.
    pub(super) fn members(&self, class: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let apart = self.apart.get(&class).into_iter().flatten().copied();
        std::iter::once(class).chain(apart)
    }

    pub(super) fn own_row(&self, class: u32) -> Option<u32> {
        let at = (class as usize).checked_sub(self.classes.count())?;
        self.own_rows.get(at).copied()
    }

    pub(super) fn row(&self, class: u32) -> u32 {
        match self.own_row(class) {
            Some(row) => row,
            None => self.classes.row(class),
        }
    }

    pub(super) fn is_never_dropped(&self, class: u32) -> bool {
        self.never_dropped.contains(&class)
    }

    /// Whether a class is no duplicate of a document of the archive.
    pub(super) fn is_distinct_of(&self, class: u32, id: &DocumentId) -> bool {
        let of = self.distinct_of.get(&class);
        of.is_some_and(|of| of.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_from_csv_and_json_lines() {
        let csv = "id,pin,other\nb,same,a\nc,keep,\n\"d,1\",distinct,e\n";
        let json = "{\"pin\":\"same\",\"id\":\"b\",\"other\":\"a\"}\n{\"pin\":\"keep\",\"id\":\"c\"}\n{\"pin\":\"distinct\",\"id\":\"d,1\",\"other\":\"e\",\"by\":\"me\"}";
        let expected = [
            Pin::Same("a".into(), "b".into()),
            Pin::Distinct("d,1".into(), "e".into()),
            Pin::Keep("c".into()),
        ];
        for file in [csv, json] {
            assert_eq!(
                read_pins("pins", file.as_bytes()).unwrap(),
                expected,
                "{file}"
            );
        }
        let numbers = read_pins("pins", b"{\"pin\":\"keep\",\"id\":7}").unwrap();
        assert_eq!(numbers, [Pin::Keep("7".into())]);
        assert!(read_pins("pins", b"").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_pin_is_refused() {
        for file in [
            "id,other\na,b\n",
            "pin,id,other\nequal,a,b\n",
            "pin,id,other\nsame,a,\n",
            "pin,id,other\nsame,a,a\n",
            "pin,id,other\nkeep,a,b\n",
            "pin,id,other\nkeep,a,\nforget,a,\n",
            "pin,id,other\nforget,a,a\n",
            "pin,id,other\nsame,a,b\ndistinct,b,a\n",
            "{\"pin\":\"keep\"}",
            "{\"pin\":",
        ] {
            let error = read_pins("pins.csv", file.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("pins.csv"), "{file}: {error}");
        }
    }
}
