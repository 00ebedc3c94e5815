//! Converts a file's rows to the schema of the documents' table.

use std::collections::BTreeSet;
use std::sync::Arc;

use archive::IdType;
use archive::reader::to_id_type;
use archive::schema::{ID, SKETCH};
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryViewBuilder, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, SchemaRef};

use super::columns::{Content, FoundColumns, ITEM_SEPARATOR, Says};
use super::source::{self, lossy_texts};
use super::table_columns::POSITION;
use crate::error::{DocumentsError, Result};
use crate::fingerprint_bits::fingerprint_bits;

/// The most bytes of an id: rows are held in memory by the thousand.
const MAX_ID: usize = archive::MAX_ID_BYTES;
/// Values of a record batch that tell whether they are fingerprints.
const SAMPLE: usize = 1000;
/// The fewest distinct values of a sample for the rule of 52 bits.
const SEVERAL: usize = 4;
/// The fewest distinct values of a sample for the rule of the first 8 bits: so many fingerprints hardly ever share them.
const MANY: usize = 8;
pub(super) const NO_ID: &str = "no id; every document needs one";

pub(super) fn check_id_length(bytes: usize) -> Result<(), String> {
    if bytes > MAX_ID {
        Err(format!(
            "an id of {bytes} bytes; no id may have more than {MAX_ID}"
        ))
    } else {
        Ok(())
    }
}

/// Refuses ids if one has too many bytes. Integers always pass.
fn check_id_lengths(ids: &ArrayRef) -> Result<(), String> {
    let offsets = match ids.data_type() {
        DataType::Utf8 => ids.as_string::<i32>().value_offsets(),
        DataType::Binary => ids.as_binary::<i32>().value_offsets(),
        _ => return Ok(()),
    };
    let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = lengths.max().unwrap_or(0);
    check_id_length(usize::try_from(longest).unwrap_or(0))
}

/// Refuses ids of bytes that are not UTF-8: replacement characters would make one id of different ones.
fn check_bytes(ids: &ArrayRef) -> Result<(), String> {
    let Some(ids) = ids.as_binary_opt::<i32>() else {
        return Ok(());
    };
    let mut ids = ids.iter().flatten();
    match ids.find(|id| simdutf8::basic::from_utf8(id).is_err()) {
        None => Ok(()),
        Some(id) => Err(format!(
            "the id {:?} is bytes that are not UTF-8; write ids as text, such as hexadecimal digits",
            String::from_utf8_lossy(&id[..id.len().min(40)])
        )),
    }
}

/// The ids of a record batch: those in the file; or the file's name, if the file is one document; or else `file_name:row` with rows
/// counted from 1. `rows` are the numbers of its rows in the file, counted from 0.
pub(super) fn ids(
    batch: &RecordBatch,
    found: &FoundColumns,
    file_name: &str,
    rows: &[u64],
    object: &str,
) -> Result<ArrayRef> {
    match &found.id {
        Some(name) => file_column(batch, name, object).cloned(),
        None => {
            let id = |row: &u64| {
                Some(if found.is_one_document {
                    file_name.to_owned()
                } else {
                    format!("{file_name}:{}", row + 1)
                })
            };
            Ok(Arc::new(rows.iter().map(id).collect::<StringArray>()))
        }
    }
}

/// The column called `name` in a record batch of the file `object`.
pub(super) fn file_column<'a>(
    batch: &'a RecordBatch,
    name: &str,
    object: &str,
) -> Result<&'a ArrayRef> {
    let column = batch.column_by_name(name);
    column
        .ok_or_else(|| DocumentsError::Internal(format!("{object}: column {name:?} was not read")))
}

/// Whether values are counters or times rather than fingerprints: they differ, and all fit 32 bits; or there are several, and all fit
/// 52 bits, as microseconds do; or there are many, whose first 8 bits are nearly always the same, and which are not sorted. Four fingerprints all fit 52 bits once in 2⁴⁸ times,
/// and near-duplicates of one once in 2¹².
fn are_no_fingerprints(values: &ArrayRef) -> bool {
    let Some(values) = values.as_primitive_opt::<Int64Type>() else {
        return false;
    };
    let sample: Vec<i64> = values.iter().flatten().take(SAMPLE).collect();
    let distinct: BTreeSet<i64> = sample.iter().copied().collect();
    let fit = |bits: u32| {
        let mut magnitudes = distinct.iter().map(|value| value.unsigned_abs());
        magnitudes.all(|magnitude| magnitude >> bits == 0)
    };
    let first_bits: BTreeSet<i64> = distinct.iter().map(|value| value >> 56).collect();
    let share_first_bits =
        distinct.len() >= MANY && MANY * first_bits.len() <= distinct.len().min(256);
    // So do fingerprints that are sorted, but these lie far apart.
    let mut gaps = distinct.iter().zip(distinct.iter().skip(1));
    let mut are_near = || gaps.all(|(a, b)| b.abs_diff(*a) >> 24 == 0);
    (distinct.len() >= 2 && fit(32))
        || (distinct.len() >= SEVERAL && fit(52))
        || (share_first_bits && (!sample.is_sorted() || are_near()))
}

/// Converts a record batch of a file to the schema of the table. Refuses null ids, and ids that are
/// too long. `ids` are the ids of the record batch, `file` is the number of the file, and `positions` are the positions of the rows.
pub(super) fn conform(
    batch: &RecordBatch,
    ids: &ArrayRef,
    schema: &SchemaRef,
    id_type: IdType,
    found: &FoundColumns,
    (file, positions): (usize, Int64Array),
    object: &str,
) -> Result<RecordBatch> {
    let bad_data = |column: &str, reason: String| {
        DocumentsError::bad_data(format!("{object}, column {column:?}"), reason)
    };
    let name = found.id.as_deref().unwrap_or(ID);
    if ids.logical_null_count() > 0 {
        return Err(bad_data(name, "null ids; every document needs one".into()));
    }
    let check = |ids: &ArrayRef| check_id_lengths(ids).map_err(|reason| bad_data(name, reason));
    check(ids)?;
    if found.has_byte_ids {
        check_bytes(ids).map_err(|reason| bad_data(name, reason))?;
    }
    let ids = to_id_type(ids, id_type)
        .map_err(|error| bad_data(name, format!("ids must be {id_type}: {error}")))?;
    // Check again: the conversion may replace 1 invalid byte by a replacement character of 3 bytes.
    check(&ids)?;
    let content = found.content.as_ref();
    let content =
        content.ok_or_else(|| DocumentsError::Internal(format!("{object}: no content")))?;
    let column = content.column();
    let values = file_column(batch, column, object)?;
    let values = match content {
        Content::Text(_) => as_bytes(values),
        Content::Fingerprint(_) => fingerprint_bits(values),
    };
    let mut values = values.map_err(|reason| bad_data(column, reason))?;
    if found.are_guessed && are_no_fingerprints(&values) {
        return Err(bad_data(
            column,
            "all its values are small numbers, or times, and fingerprints have 64 bits; name the column of texts by --text-column, or this one by --fingerprint-column".into(),
        ));
    }
    for column in &found.further_texts {
        let further = as_bytes(file_column(batch, column, object)?);
        let further = further.map_err(|reason| bad_data(column, reason))?;
        values = joined(&values, &further);
    }
    let sources_by = |domains| match &found.source {
        Some((name, says)) => {
            let values = file_column(batch, name, object)?;
            Ok::<_, DocumentsError>(source::sources(values, *says, domains))
        }
        None => Ok(source::sources(&ids, Says::Ids, domains)),
    };
    let sources = || sources_by(found.domains);
    if let (Some(left_out), Content::Text(_)) = (&found.left_out, content) {
        values = left_out.contents(&values, &sources()?);
    }
    let mut columns = vec![Arc::clone(&ids), values];
    if schema.field_with_name(SKETCH).is_ok() {
        let sketches = file_column(batch, SKETCH, object)?;
        let sketches = arrow::compute::cast(sketches, &DataType::Binary);
        columns.push(sketches.map_err(|error| bad_data(SKETCH, error.to_string()))?);
    }
    if schema.field_with_name(POSITION).is_ok() {
        let bytes = text_bytes(&columns[1]);
        let sources = sources()?;
        if found.prefer.has_keys() {
            // Preferred sources are hosts.
            let hosts = || sources_by(false);
            let column = |name: &str| file_column(batch, name, object);
            let positions = positions.values();
            let keys = found.prefer.keys(column, hosts, bad_data, file, positions);
            let [keys, rest] = keys?;
            columns.push(Arc::new(keys));
            if found.prefer.are_keys_cut() {
                columns.push(Arc::new(rest));
            }
        }
        columns.push(bytes);
        columns.push(Arc::new(sources));
        columns.push(Arc::new(positions));
    }
    let fields = &schema.fields()[columns.len()..];
    for (carried, field) in found.carried.iter().zip(fields) {
        columns.push(as_carried(batch, &carried.name, field, object)?);
    }
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| bad_data(name, error.to_string()))
}

/// Converts a record batch that has only carried columns to `schema`: the positions of the documents, then these columns.
pub(super) fn conform_carried(
    batch: &RecordBatch,
    schema: &SchemaRef,
    found: &FoundColumns,
    positions: Int64Array,
    object: &str,
) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(positions)];
    for (carried, field) in found.carried.iter().zip(&schema.fields()[1..]) {
        columns.push(as_carried(batch, &carried.name, field, object)?);
    }
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| DocumentsError::Internal(format!("{object}: {error}")))
}

/// Whether [`as_carried`] converts a column of the type `found` to the type `wanted`. A single value may still have no text, such
/// as a time beyond the calendar.
pub(super) fn can_be_carried(found: &DataType, wanted: &DataType) -> bool {
    let is_lossy_text = matches!(
        (found, wanted),
        (DataType::FixedSizeBinary(_), DataType::Utf8)
    );
    is_lossy_text || arrow::compute::can_cast_types(found, wanted)
}

/// The column called `name` in a record batch of the file `object`, in the type of `field`. Bytes that are no UTF-8 become
/// replacement characters in a text.
fn as_carried(batch: &RecordBatch, name: &str, field: &Field, object: &str) -> Result<ArrayRef> {
    let column = file_column(batch, name, object)?;
    match (column.data_type(), field.data_type()) {
        (found, wanted) if found == wanted => Ok(Arc::clone(column)),
        (DataType::Binary, DataType::Utf8) => Ok(lossy_texts(column.as_binary::<i32>().iter())),
        // The texts of documents are read as views.
        (DataType::BinaryView, DataType::Utf8) => Ok(lossy_texts(column.as_binary_view().iter())),
        // Arrow has no such cast.
        (DataType::FixedSizeBinary(_), DataType::Utf8) => {
            Ok(lossy_texts(column.as_fixed_size_binary().iter()))
        }
        (_, wanted) => arrow::compute::cast(column, wanted).map_err(|error| {
            DocumentsError::bad_data(format!("{object}, column {name:?}"), error.to_string())
        }),
    }
}

/// The texts of two columns, joined by newlines; null where neither has one.
fn joined(texts: &ArrayRef, further: &ArrayRef) -> ArrayRef {
    let (texts, further) = (texts.as_binary_view(), further.as_binary_view());
    let mut both = BinaryViewBuilder::with_capacity(texts.len());
    let mut text = Vec::new();
    for row in 0..texts.len() {
        text.clear();
        for column in [texts, further] {
            if column.is_valid(row) {
                if !text.is_empty() {
                    text.push(ITEM_SEPARATOR);
                }
                text.extend_from_slice(column.value(row));
            }
        }
        let is_there = texts.is_valid(row) || further.is_valid(row);
        both.append_option(is_there.then_some(&text));
    }
    Arc::new(both.finish())
}

/// The length of each text in bytes; null for a null text, and for ready fingerprints.
fn text_bytes(content: &ArrayRef) -> ArrayRef {
    match content.as_binary_view_opt() {
        Some(texts) => {
            let lengths = texts.iter().map(|text| text.map(|text| text.len() as i64));
            Arc::new(lengths.collect::<Int64Array>())
        }
        None => Arc::new(Int64Array::new_null(content.len())),
    }
}

/// Converts texts of any type to bytes, which need not be UTF-8.
pub(super) fn as_bytes(text: &ArrayRef) -> Result<ArrayRef, String> {
    match text.data_type() {
        DataType::BinaryView => Ok(Arc::clone(text)),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::LargeBinary
        | DataType::Binary
        | DataType::Null => {
            arrow::compute::cast(text, &DataType::BinaryView).map_err(|error| error.to_string())
        }
        other => Err(format!("texts are strings, this is {other}")),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, BinaryViewArray, Date32Array, Int32Array, new_null_array};
    use arrow::datatypes::{IntervalUnit, Schema, TimeUnit};

    use super::*;

    #[test]
    fn counters_and_times_are_no_fingerprints() {
        let of = |values: &mut dyn Iterator<Item = i64>| -> ArrayRef {
            Arc::new(values.collect::<arrow::array::Int64Array>())
        };
        let microseconds = 1_769_853_600_000_000;
        let of_two_days = |n: i64| microseconds * 1000 + n * 17_280_000_000_000;
        for values in [
            of(&mut (0..2)),
            of(&mut (0..4).map(|n| microseconds + n)),
            of(&mut (0..8).rev().map(of_two_days)),
            of(&mut (0..8).map(|n| microseconds * 1000 + 1000 * n)),
            of(&mut (0..1000).rev().map(|n| (n * 86_400_000 + n) << 22)),
        ] {
            assert!(are_no_fingerprints(&values), "{values:?}");
        }
        let fingerprint = |n: i64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        for count in [1, 2, 4, 8, 1000] {
            assert!(!are_no_fingerprints(&of(&mut (0..count).map(fingerprint))));
        }
        let sorted = |n: i64| (1 << 62) + (n << 40);
        assert!(!are_no_fingerprints(&of(&mut (0..1000).map(sorted))));
        let near = |n: i64| fingerprint(7) ^ 1 << (9 * n % 64);
        assert!(!are_no_fingerprints(&of(&mut (0..8).map(near))));
    }

    #[test]
    fn ids_are_limited_with_their_replacement_characters() {
        let found = FoundColumns {
            id: Some("key".into()),
            content: Some(Content::Text("text".into())),
            ..FoundColumns::default()
        };
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("text", DataType::BinaryView, true),
        ]));
        let conformed = |id: &[u8]| {
            let ids: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"a".as_slice(), id]));
            let texts: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![None, None]));
            let batch = RecordBatch::try_from_iter([("key", ids), ("text", texts)]).unwrap();
            conform(
                &batch,
                batch.column(0),
                &schema,
                IdType::String,
                &found,
                (0, Int64Array::from(vec![0])),
                "x",
            )
            .map(|batch| batch.num_rows())
            .map_err(|error| error.to_string())
        };
        assert_eq!(conformed(&vec![b'x'; MAX_ID]), Ok(2));
        for (id, bytes) in [
            (vec![b'x'; MAX_ID + 1], MAX_ID + 1),
            (vec![0xff; MAX_ID], 3 * MAX_ID),
        ] {
            let error = conformed(&id).unwrap_err();
            let expected = format!("x, column \"key\": an id of {bytes} bytes; no id may have");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn carried_columns_get_the_types_of_the_table() {
        let converted = |values: ArrayRef, data_type| {
            let batch = RecordBatch::try_from_iter([("a", values)]).unwrap();
            let field = Field::new("b", data_type, true);
            as_carried(&batch, "a", &field, "x").unwrap()
        };
        let texts = |values: ArrayRef| {
            let texts = converted(values, DataType::Utf8);
            let texts = texts.as_string::<i32>().iter();
            texts
                .map(|text| text.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let some = |text: &str| Some(text.to_owned());
        let bytes = BinaryArray::from_opt_vec(vec![Some(b"\xffa".as_slice()), None]);
        assert_eq!(texts(Arc::new(bytes)), [some("\u{fffd}a"), None]);
        let views = BinaryViewArray::from_iter([Some(b"\xffa".as_slice()), None]);
        assert_eq!(texts(Arc::new(views)), [some("\u{fffd}a"), None]);
        let numbers = Int32Array::from(vec![7]);
        assert_eq!(texts(Arc::new(numbers)), [some("7")]);
        let days: ArrayRef = Arc::new(Date32Array::from(vec![20_484]));
        assert_eq!(texts(Arc::clone(&days)), [some("2026-01-31")]);
        assert_eq!(&converted(Arc::clone(&days), DataType::Date32), &days);
    }

    #[test]
    fn types_that_can_be_carried_are_converted() {
        let list = |of: DataType| DataType::List(Arc::new(Field::new("item", of, true)));
        let text = Field::new("a", DataType::Utf8, true);
        for found in [
            DataType::Null,
            DataType::Boolean,
            DataType::UInt64,
            DataType::Float16,
            DataType::Decimal128(38, 2),
            DataType::Date32,
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            DataType::Interval(IntervalUnit::DayTime),
            DataType::Binary,
            DataType::BinaryView,
            DataType::FixedSizeBinary(16),
            list(DataType::Int64),
        ] {
            assert!(can_be_carried(&found, text.data_type()), "{found}");
            let batch = RecordBatch::try_from_iter([("a", new_null_array(&found, 2))]).unwrap();
            let texts = as_carried(&batch, "a", &text, "x").unwrap();
            assert_eq!(texts.data_type(), text.data_type(), "{found}");
            assert_eq!(texts.null_count(), 2, "{found}");
        }
        let structure = DataType::Struct(vec![Field::new("b", DataType::Utf8, true)].into());
        assert!(can_be_carried(&structure, &structure));
        for found in [structure.clone(), list(structure)] {
            assert!(!can_be_carried(&found, text.data_type()), "{found}");
        }
    }
}
