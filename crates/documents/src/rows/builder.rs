//! Builds record batches from records.

use std::borrow::Cow;
use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrayRef, BinaryBuilder, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::columns::{Content, FoundColumns, Role};
use crate::conform;
use crate::error::{DocumentsError, Result};
use streams::{BATCH_BYTES, BATCH_ROWS};

/// Collects the values of records into a record batch.
pub(crate) struct BatchBuilder {
    schema: SchemaRef,
    null_ids: bool,
    /// Whether the first column has the ids.
    has_ids: bool,
    columns: Vec<Values>,
    rows: usize,
    bytes: usize,
}

enum Values {
    /// Texts, with the function that makes them of bytes, which need not be UTF-8.
    Text(StringBuilder, fn(&[u8]) -> Cow<'_, str>),
    /// Bytes of texts, which need not be UTF-8.
    Bytes(BinaryBuilder),
    /// Numbers of 64 bits, with the function that reads them, and what it reads.
    Number(Int64Builder, fn(&[u8]) -> Option<i64>, &'static str),
}

impl Values {
    /// The values of a column that is read for `role`, with room for texts of `bytes` bytes; no row format has sketches.
    fn new(role: Role<'_>, id_type: IdType, bytes: usize) -> Self {
        let number =
            |read: fn(&[u8]) -> Option<i64>, what| Self::Number(Int64Builder::new(), read, what);
        match (role, id_type) {
            (Role::Id, IdType::Bigint) => {
                number(integer_id, "64-bit integer, as the first id of the file is")
            }
            (Role::Carried(DataType::Int64), _) => number(integer, "64-bit integer"),
            (Role::Content(Content::Fingerprint(_)), _) => {
                number(fingerprint, "64-bit fingerprint")
            }
            // Different ids stay different.
            (Role::Id, IdType::String) => Self::Text(StringBuilder::new(), warc::percent_encoded),
            (Role::Carried(_) | Role::Source, _) => {
                Self::Text(StringBuilder::new(), String::from_utf8_lossy)
            }
            (Role::Content(Content::Text(_)), _) => {
                Self::Bytes(BinaryBuilder::with_capacity(0, bytes))
            }
            (Role::FurtherText | Role::Preference | Role::Sketch, _) => {
                Self::Bytes(BinaryBuilder::new())
            }
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Text(..) => DataType::Utf8,
            Self::Bytes(_) => DataType::Binary,
            Self::Number(..) => DataType::Int64,
        }
    }

    /// Adds a value. Returns its bytes, or for a value of another kind what it should be.
    fn push(&mut self, value: Option<&[u8]>) -> std::result::Result<usize, &'static str> {
        let bytes = value.map_or(0, <[u8]>::len);
        match self {
            Self::Text(texts, to_text) => {
                let text = value.map(*to_text);
                let bytes = text.as_ref().map_or(0, |text| text.len());
                texts.append_option(text);
                return Ok(bytes);
            }
            Self::Bytes(texts) => texts.append_option(value),
            Self::Number(numbers, read, what) => {
                let number = |value| read(value).ok_or(*what);
                numbers.append_option(value.map(number).transpose()?);
            }
        }
        Ok(bytes)
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(texts, _) => Arc::new(texts.finish()),
            Self::Bytes(texts) => Arc::new(texts.finish()),
            Self::Number(numbers, ..) => Arc::new(numbers.finish()),
        }
    }
}

impl BatchBuilder {
    /// A builder with room for texts of `bytes` bytes.
    pub(super) fn new(
        columns: &FoundColumns,
        id_type: IdType,
        null_ids: bool,
        bytes: usize,
    ) -> Self {
        let roles = columns.roles();
        let values = roles
            .iter()
            .map(|(_, role)| Values::new(*role, id_type, bytes));
        let values: Vec<Values> = values.collect();
        let fields: Vec<Field> = roles
            .iter()
            .zip(&values)
            .map(|((name, _), values)| Field::new(*name, values.data_type(), true))
            .collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            null_ids,
            has_ids: columns.id.is_some(),
            columns: values,
            rows: 0,
            bytes: 0,
        }
    }

    /// Adds a row: a value for each of [`FoundColumns::names`]. Texts are bytes, which need not be UTF-8; numbers are decimal
    /// digits. The error names the column and the fault.
    pub(super) fn push(&mut self, values: &[Option<&[u8]>]) -> std::result::Result<(), String> {
        if self.has_ids {
            let name = self.schema.field(0).name();
            match values.first().copied().flatten() {
                Some(id) => check_id_length(name, id.len())?,
                None if self.null_ids => {}
                None => return Err(format!("{} (column {name:?})", conform::NO_ID)),
            }
        }
        let columns = self.columns.iter_mut().zip(values).enumerate();
        for (number, (column, value)) in columns {
            let name = self.schema.field(number).name();
            let pushed = column.push(*value).map_err(|what| {
                let text = String::from_utf8_lossy(value.unwrap_or_default());
                let start: String = text.chars().take(60).collect();
                format!("column {name:?}: {start:?} is no {what}")
            });
            let bytes = pushed?;
            if self.has_ids && number == 0 {
                // Check again: one byte that is not UTF-8 becomes three.
                check_id_length(name, bytes)?;
            }
            self.bytes += bytes;
        }
        self.rows += 1;
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
        let columns = self.columns.iter_mut().map(Values::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map(Some)
            .map_err(|error| DocumentsError::Internal(error.to_string()))
    }
}

fn check_id_length(name: &str, bytes: usize) -> std::result::Result<(), String> {
    conform::check_id_length(bytes).map_err(|reason| format!("column {name:?}: {reason}"))
}

pub(super) fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Parses an id that is an integer of 64 bits, and written as these are: `007` is another id than 7.
fn integer_id(text: &[u8]) -> Option<i64> {
    integer(text).filter(|_| archive::reader::is_integer(text))
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
    use crate::columns::CarriedColumn;

    fn batch(content: Content, id_type: IdType) -> BatchBuilder {
        let columns = FoundColumns {
            id: Some("id".into()),
            content: Some(content),
            ..FoundColumns::default()
        };
        BatchBuilder::new(&columns, id_type, false, 0)
    }

    #[test]
    fn a_batch_is_full_by_rows_and_by_bytes() {
        let mut small = batch(Content::Text("text".into()), IdType::String);
        for _ in 0..BATCH_ROWS {
            assert!(!small.is_full());
            small.push(&[Some(b"a"), None]).unwrap();
        }
        assert!(small.is_full());
        assert_eq!(small.finish().unwrap().unwrap().num_rows(), BATCH_ROWS);
        assert!(small.finish().unwrap().is_none());
        small
            .push(&[Some(b"\xff"), Some(&vec![0xff; BATCH_BYTES])])
            .unwrap();
        assert!(small.is_full());
        let rows = small.finish().unwrap().unwrap();
        assert_eq!(rows.column(0).as_string::<i32>().value(0), "%FF");
        assert_eq!(
            rows.column(1).as_binary::<i32>().value(0).len(),
            BATCH_BYTES
        );
    }

    #[test]
    fn rows_without_an_id_are_refused_unless_they_are_taken() {
        let mut strict = batch(Content::Text("text".into()), IdType::String);
        let error = strict.push(&[None, Some(b"a")]).unwrap_err();
        assert_eq!(error, "no id; every document needs one (column \"id\")");
        let mut lenient = BatchBuilder {
            null_ids: true,
            ..strict
        };
        lenient.push(&[None, Some(b"a")]).unwrap();
        let rows = lenient.finish().unwrap().unwrap();
        assert!(rows.column(0).is_null(0));
    }

    #[test]
    fn long_ids_are_refused() {
        let longest = vec![b'1'; 8 << 10];
        for (id, bytes) in [
            (vec![b'1'; (8 << 10) + 1], (8 << 10) + 1),
            (vec![0xff; 8 << 10], 24 << 10),
        ] {
            let mut batch = batch(Content::Text("text".into()), IdType::String);
            batch.push(&[Some(&longest), None]).unwrap();
            let error = batch.push(&[Some(&id), None]).unwrap_err();
            assert_eq!(
                error,
                format!("column \"id\": an id of {bytes} bytes; no id may have more than 8192")
            );
        }
    }

    #[test]
    fn numbers_are_parsed_and_others_named() {
        let mut batch = batch(Content::Fingerprint("fp".into()), IdType::Bigint);
        for (id, bits) in [
            ("7", Some("18446744073709551615")),
            ("-8", Some("-9223372036854775808")),
            ("9", None),
        ] {
            batch
                .push(&[Some(id.as_bytes()), bits.map(str::as_bytes)])
                .unwrap();
        }
        let rows = batch.finish().unwrap().unwrap();
        let ids = rows.column(0).as_primitive::<Int64Type>();
        assert_eq!(ids.values().to_vec(), [7, -8, 9]);
        let bits = rows.column(1).as_primitive::<Int64Type>();
        assert_eq!((bits.value(0), bits.value(1)), (-1, i64::MIN));
        assert!(bits.is_null(2));
        for bad in ["7.5", "007", "+7", " 7"] {
            let error = batch.push(&[Some(bad.as_bytes()), None]).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "column \"id\": {bad:?} is no 64-bit integer, as the first id of the file is"
                )
            );
        }
        for bad in ["12ab", "18446744073709551616"] {
            let error = batch.push(&[Some(b"7"), Some(bad.as_bytes())]).unwrap_err();
            assert!(error.contains("\"fp\"") && error.contains(bad), "{error}");
        }
    }

    #[test]
    fn carried_columns_have_their_types() {
        let carried = |name: &str, data_type| CarriedColumn {
            name: name.into(),
            data_type,
        };
        let columns = FoundColumns {
            carried: vec![
                carried("url", DataType::Utf8),
                carried("status", DataType::Int64),
            ],
            ..FoundColumns::default()
        };
        let mut batch = BatchBuilder::new(&columns, IdType::String, false, 0);
        batch.push(&[Some(b"a\xff"), Some(b"200")]).unwrap();
        batch.push(&[None, None]).unwrap();
        let rows = batch.finish().unwrap().unwrap();
        let urls: Vec<_> = rows.column(0).as_string::<i32>().iter().collect();
        assert_eq!(urls, [Some("a\u{fffd}"), None]);
        let statuses: Vec<_> = rows.column(1).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(statuses, [Some(200), None]);
    }
}
