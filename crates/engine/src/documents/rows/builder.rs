//! Builds record batches from records.

use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrayRef, BinaryBuilder, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::documents::columns::{Content, FoundColumns};
use crate::documents::conform;
use crate::error::{EngineError, Result};
use crate::stream::BATCH_ROWS;

/// Bytes of ids and contents at which a record batch is full.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// Collects the ids and contents of records into a record batch.
pub(in crate::documents) struct BatchBuilder {
    schema: SchemaRef,
    /// Whether rows without an id are allowed.
    null_ids: bool,
    /// `None` if the file has no id column.
    ids: Option<Ids>,
    contents: Contents,
    /// Values of the preference column, if it is read.
    preferences: Option<BinaryBuilder>,
    rows: usize,
    bytes: usize,
}

enum Ids {
    Text(StringBuilder),
    Number(Int64Builder),
}

enum Contents {
    Text(BinaryBuilder),
    Fingerprint(Int64Builder),
}

impl BatchBuilder {
    pub(super) fn new(columns: &FoundColumns, id_type: IdType, null_ids: bool) -> Self {
        let ids = columns.id.as_ref().map(|_| match id_type {
            IdType::String => Ids::Text(StringBuilder::new()),
            IdType::Bigint => Ids::Number(Int64Builder::new()),
        });
        let (contents, content_type) = match &columns.content {
            Content::Text(_) => (Contents::Text(BinaryBuilder::new()), DataType::Binary),
            Content::Fingerprint(_) => {
                let fingerprints = Contents::Fingerprint(Int64Builder::new());
                (fingerprints, DataType::Int64)
            }
        };
        let id = columns.id.as_ref();
        let mut fields: Vec<Field> = id
            .map(|name| Field::new(name, id_type.data_type(), true))
            .into_iter()
            .collect();
        fields.push(Field::new(columns.content.column(), content_type, true));
        let preference = columns.own_preference();
        fields.extend(preference.map(|name| Field::new(name, DataType::Binary, true)));
        Self {
            schema: Arc::new(Schema::new(fields)),
            preferences: preference.map(|_| BinaryBuilder::new()),
            null_ids,
            ids,
            contents,
            rows: 0,
            bytes: 0,
        }
    }

    /// Adds a row. Texts are bytes, which need not be UTF-8; numbers are decimal digits. The error
    /// names the column and the fault.
    pub(super) fn push(
        &mut self,
        id: Option<&[u8]>,
        content: Option<&[u8]>,
        preference: Option<&[u8]>,
    ) -> std::result::Result<(), String> {
        let content_column = usize::from(self.ids.is_some());
        let bad = |column: usize, value: &[u8], what: &str| {
            let text = String::from_utf8_lossy(value);
            let start: String = text.chars().take(60).collect();
            let name = self.schema.field(column).name();
            format!("column {name:?}: {start:?} is no {what}")
        };
        let check = |bytes: usize| {
            let name = self.schema.field(0).name();
            conform::check_id_length(bytes).map_err(|reason| format!("column {name:?}: {reason}"))
        };
        match id {
            Some(id) => check(id.len())?,
            None if self.null_ids || self.ids.is_none() => {}
            None => {
                let name = self.schema.field(0).name();
                return Err(format!("{} (column {name:?})", conform::NO_ID));
            }
        }
        match &mut self.ids {
            None => {}
            Some(Ids::Text(ids)) => {
                let id = id.map(String::from_utf8_lossy);
                // Check again: the conversion may replace 1 invalid byte by a replacement character
                // of 3 bytes.
                check(id.as_ref().map_or(0, |id| id.len()))?;
                ids.append_option(id);
            }
            Some(Ids::Number(ids)) => {
                let number = |id| integer(id).ok_or_else(|| bad(0, id, "64-bit integer"));
                ids.append_option(id.map(number).transpose()?);
            }
        }
        match &mut self.contents {
            Contents::Text(texts) => texts.append_option(content),
            Contents::Fingerprint(fingerprints) => {
                let bits = |value| {
                    fingerprint(value)
                        .ok_or_else(|| bad(content_column, value, "64-bit fingerprint"))
                };
                fingerprints.append_option(content.map(bits).transpose()?);
            }
        }
        if let Some(preferences) = &mut self.preferences {
            preferences.append_option(preference);
        }
        self.rows += 1;
        let bytes = [id, content, preference]
            .into_iter()
            .flatten()
            .map(<[u8]>::len);
        self.bytes += bytes.sum::<usize>();
        Ok(())
    }

    /// Whether [`Self::finish`] should be called before the next row is added.
    pub(super) fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Takes the rows that were added; `None` if there are none.
    pub(super) fn finish(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows == 0 {
            return Ok(None);
        }
        (self.rows, self.bytes) = (0, 0);
        let mut columns: Vec<ArrayRef> = Vec::new();
        match &mut self.ids {
            None => {}
            Some(Ids::Text(ids)) => columns.push(Arc::new(ids.finish())),
            Some(Ids::Number(ids)) => columns.push(Arc::new(ids.finish())),
        }
        let contents: ArrayRef = match &mut self.contents {
            Contents::Text(texts) => Arc::new(texts.finish()),
            Contents::Fingerprint(fingerprints) => Arc::new(fingerprints.finish()),
        };
        columns.push(contents);
        if let Some(preferences) = &mut self.preferences {
            columns.push(Arc::new(preferences.finish()));
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map(Some)
            .map_err(|error| EngineError::Internal(error.to_string()))
    }
}

/// Parses a decimal number of 64 bits, signed.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Parses a decimal number of 64 bits, signed or unsigned, as its bits.
fn fingerprint(text: &[u8]) -> Option<i64> {
    let unsigned = || std::str::from_utf8(text).ok()?.trim().parse::<u64>().ok();
    integer(text).or_else(|| unsigned().map(u64::cast_signed))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(content: Content, id_type: IdType) -> BatchBuilder {
        let columns = FoundColumns {
            sketches: false,
            delimiter: b',',
            is_one_document: false,
            pages: Default::default(),
            crawl: Default::default(),
            prefer: Default::default(),
            id: Some("id".into()),
            content,
        };
        BatchBuilder::new(&columns, id_type, false)
    }

    #[test]
    fn a_batch_is_full_by_rows_and_by_bytes() {
        let mut small = batch(Content::Text("text".into()), IdType::String);
        for _ in 0..BATCH_ROWS {
            assert!(!small.is_full());
            small.push(Some(b"a"), None, None).unwrap();
        }
        assert!(small.is_full());
        assert_eq!(small.finish().unwrap().unwrap().num_rows(), BATCH_ROWS);
        assert!(small.finish().unwrap().is_none());
        small
            .push(Some(b"\xff"), Some(&vec![0xff; BATCH_BYTES]), None)
            .unwrap();
        assert!(small.is_full());
        let rows = small.finish().unwrap().unwrap();
        assert_eq!(rows.column(0).as_string::<i32>().value(0), "\u{fffd}");
        assert_eq!(
            rows.column(1).as_binary::<i32>().value(0).len(),
            BATCH_BYTES
        );
    }

    #[test]
    fn rows_without_an_id_are_refused_unless_they_are_taken() {
        let mut strict = batch(Content::Text("text".into()), IdType::String);
        let error = strict.push(None, Some(b"a"), None).unwrap_err();
        assert_eq!(error, "no id; every document needs one (column \"id\")");
        let mut lenient = BatchBuilder {
            null_ids: true,
            ..strict
        };
        lenient.push(None, Some(b"a"), None).unwrap();
        let rows = lenient.finish().unwrap().unwrap();
        assert!(rows.column(0).is_null(0));
    }

    #[test]
    fn long_ids_are_refused() {
        let longest = vec![b'1'; 1 << 20];
        for (id, bytes) in [
            (vec![b'1'; (1 << 20) + 1], (1 << 20) + 1),
            (vec![0xff; 1 << 20], 3 << 20),
        ] {
            let mut batch = batch(Content::Text("text".into()), IdType::String);
            batch.push(Some(&longest), None, None).unwrap();
            let error = batch.push(Some(&id), None, None).unwrap_err();
            assert_eq!(
                error,
                format!("column \"id\": an id of {bytes} bytes; no id may have more than 1048576")
            );
        }
    }

    #[test]
    fn numbers_are_parsed_and_others_named() {
        let mut batch = batch(Content::Fingerprint("fp".into()), IdType::Bigint);
        for (id, bits) in [
            ("7", Some("18446744073709551615")),
            (" -8 ", Some("-9223372036854775808")),
            ("9", None),
        ] {
            batch
                .push(Some(id.as_bytes()), bits.map(str::as_bytes), None)
                .unwrap();
        }
        let rows = batch.finish().unwrap().unwrap();
        let ids = rows.column(0).as_primitive::<Int64Type>();
        assert_eq!(ids.values().to_vec(), [7, -8, 9]);
        let bits = rows.column(1).as_primitive::<Int64Type>();
        assert_eq!((bits.value(0), bits.value(1)), (-1, i64::MIN));
        assert!(bits.is_null(2));
        let error = batch.push(Some(b"7.5"), None, None).unwrap_err();
        assert_eq!(error, "column \"id\": \"7.5\" is no 64-bit integer");
        for bad in ["12ab", "18446744073709551616"] {
            let error = batch
                .push(Some(b"7"), Some(bad.as_bytes()), None)
                .unwrap_err();
            assert!(error.contains("\"fp\"") && error.contains(bad), "{error}");
        }
    }
}
