//! Takes columns out of the structures and lists in which the Parquet reader returns them.

use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryViewArray, BooleanArray, LargeBinaryBuilder,
    ListArray, RecordBatch, StructArray,
};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::leaf::Leaf;
use crate::columns::ITEM_SEPARATOR;
use crate::conform::as_bytes;
use crate::error::{DocumentsError, Result};
use streams::BATCH_BYTES;

/// The most bytes of a text, however much memory there is: Arrow counts them with 31 bits.
const MAX_TEXT: usize = i32::MAX as usize;

#[derive(Debug, Clone)]
pub(super) struct LeafColumn {
    /// The name by which it is asked for.
    name: String,
    pub(super) index: usize,
    /// The names of the structures around the column, the outermost first, and then its own name.
    path: Vec<String>,
    pub(super) is_in_lists: bool,
}

impl LeafColumn {
    /// The column `leaf`, which is asked for as `name`.
    pub(super) fn new(name: &str, leaf: &Leaf<'_>) -> Self {
        Self {
            name: name.to_owned(),
            index: leaf.index,
            path: leaf.path.iter().map(|&level| level.to_owned()).collect(),
            is_in_lists: leaf.is_in_lists,
        }
    }

    /// Its values in a record batch of the reader, which has structures; those in lists with the outermost lists.
    fn values(&self, batch: &RecordBatch) -> Result<ArrayRef, ArrowError> {
        let missing = || ArrowError::SchemaError(format!("column {:?} was not read", self.name));
        let (root, within) = self.path.split_first().ok_or_else(missing)?;
        let mut values = Arc::clone(batch.column_by_name(root).ok_or_else(missing)?);
        for name in within {
            // The rest of the path is within the items.
            if matches!(values.data_type(), DataType::List(_)) {
                break;
            }
            let structures = values.as_struct_opt().ok_or_else(missing)?;
            let inner = structures.column_by_name(name).ok_or_else(missing)?;
            values = column_of(structures, inner)?;
        }
        Ok(values)
    }
}

/// The column `inner` of `structures`. In a structure that is null, it has no value.
fn column_of(structures: &StructArray, inner: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match structures.nulls() {
        Some(nulls) => nullif(inner, &BooleanArray::new(!nulls.inner(), None)),
        None => Ok(Arc::clone(inner)),
    }
}

/// The columns of a record batch of the reader, in this order and under their names. Columns in lists are lists.
pub(super) fn named(
    batch: &RecordBatch,
    columns: &[LeafColumn],
) -> Result<RecordBatch, ArrowError> {
    let values = columns.iter().map(|column| column.values(batch));
    let values = values.collect::<Result<Vec<ArrayRef>, _>>()?;
    let field = |(column, values): (&LeafColumn, &ArrayRef)| {
        Field::new(&column.name, values.data_type().clone(), true)
    };
    let fields: Vec<Field> = columns.iter().zip(&values).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), values)
}

/// The rows of a record batch, with texts in place of a column of lists: the items of each row, joined by newlines. Items that are
/// null are left out; a null list is a null text, and a list without items an empty one.
///
/// Items that are equal may be in memory once, and so the texts may have many times the bytes of the record batch. They come in
/// record batches of about [`BATCH_BYTES`] bytes.
pub(super) struct JoinedTexts {
    batch: RecordBatch,
    /// The number of the column of lists.
    column: usize,
    items: Items,
    schema: SchemaRef,
    next: usize,
    /// The most bytes of a text.
    longest: usize,
    /// The name of the column in errors.
    object: String,
}

impl JoinedTexts {
    /// Joins the lists in the column number `column` of `batch`. A text of more than `longest` bytes is an error. Errors name the
    /// rows `object`.
    pub(super) fn new(
        batch: RecordBatch,
        column: usize,
        longest: usize,
        object: &str,
    ) -> Result<Self> {
        let lists = batch.schema();
        let object = format!("{object}, column {:?}", lists.field(column).name());
        let items = Items::new(batch.column(column))
            .map_err(|reason| DocumentsError::bad_data(&object, reason))?;
        let field = |(number, field): (usize, &FieldRef)| {
            if number == column {
                Arc::new(Field::clone(field).with_data_type(DataType::BinaryView))
            } else {
                Arc::clone(field)
            }
        };
        let fields: Vec<FieldRef> = lists.fields().iter().enumerate().map(field).collect();
        Ok(Self {
            column,
            items,
            schema: Arc::new(Schema::new(fields)),
            next: 0,
            longest: longest.min(MAX_TEXT),
            object,
            batch,
        })
    }

    /// Adds the text of the next row to `texts`.
    fn join_next(&self, texts: &mut LargeBinaryBuilder) -> Result<()> {
        let start = texts.values_slice().len();
        let mut is_first = true;
        self.items.for_each(self.next, &mut |item: &[u8]| {
            // Writing to memory has no errors.
            if !is_first {
                let _ = texts.write_all(&[ITEM_SEPARATOR]);
            }
            is_first = false;
            if texts.values_slice().len() - start + item.len() > self.longest {
                return Err(self.too_long());
            }
            let _ = texts.write_all(item);
            Ok(())
        })?;
        // What was written becomes the value.
        let end = self.items.is_valid(self.next).then_some(b"");
        texts.append_option(end);
        Ok(())
    }

    fn too_long(&self) -> DocumentsError {
        let text = format!("a text of more than {} bytes", self.longest);
        if self.longest < MAX_TEXT {
            DocumentsError::OutOfMemory {
                what: format!("{}: {text}", self.object),
            }
        } else {
            DocumentsError::bad_data(&self.object, format!("{text}; no text may be longer"))
        }
    }

    /// The rows from number `start` on, with their `texts`.
    fn rows(&self, start: usize, mut texts: LargeBinaryBuilder) -> Result<RecordBatch> {
        let texts = BinaryViewArray::from(&texts.finish());
        let rows = self.batch.slice(start, texts.len());
        let mut columns = rows.columns().to_vec();
        columns[self.column] = Arc::new(texts);
        let joined = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        joined.map_err(|error| DocumentsError::Internal(format!("{}: {error}", self.object)))
    }
}

impl Iterator for JoinedTexts {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, end) = (self.next, self.batch.num_rows());
        if start >= end {
            return None;
        }
        let mut texts = LargeBinaryBuilder::new();
        while self.next < end && texts.values_slice().len() < BATCH_BYTES {
            if let Err(error) = self.join_next(&mut texts) {
                self.next = end;
                return Some(Err(error));
            }
            self.next += 1;
        }
        Some(self.rows(start, texts))
    }
}

/// The texts in lists, which may be in lists.
enum Items {
    Text(BinaryViewArray),
    List(ListArray, Box<Items>),
}

impl Items {
    /// The items of a column. The error says what else it has.
    fn new(values: &ArrayRef) -> Result<Self, String> {
        match values.data_type() {
            DataType::List(_) => {
                let lists = values.as_list::<i32>();
                let items = Self::new(lists.values())?;
                Ok(Self::List(lists.clone(), Box::new(items)))
            }
            DataType::Struct(_) => {
                let structures = values.as_struct();
                // No other column in lists is read.
                let [inner] = structures.columns() else {
                    return Err("several columns of a list were read".into());
                };
                let inner = column_of(structures, inner).map_err(|error| error.to_string())?;
                Self::new(&inner)
            }
            _ => {
                let texts = as_bytes(values)?;
                Ok(Self::Text(texts.as_binary_view().clone()))
            }
        }
    }

    fn is_valid(&self, at: usize) -> bool {
        match self {
            Self::Text(texts) => texts.is_valid(at),
            Self::List(lists, _) => lists.is_valid(at),
        }
    }

    /// Calls `each` with every text of the item number `at`, in order, until it fails.
    fn for_each<F: FnMut(&[u8]) -> Result<()>>(&self, at: usize, each: &mut F) -> Result<()> {
        if !self.is_valid(at) {
            return Ok(());
        }
        match self {
            Self::Text(texts) => each(texts.value(at)),
            Self::List(lists, items) => {
                let offsets = lists.value_offsets();
                let mut range = offsets[at] as usize..offsets[at + 1] as usize;
                range.try_for_each(|item| items.for_each(item, each))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, BooleanBuilder, Int64Array, ListBuilder, NullArray, StringArray, StringBuilder,
    };
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::Int32Type;

    use super::*;

    /// The texts of a column of lists, in the record batches that they come in; or the error.
    fn batches(lists: ArrayRef, longest: usize) -> Result<Vec<Vec<Option<String>>>, String> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..lists.len() as i64));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("number", numbers, true),
            ("text", lists, true),
        ]);
        let joined = JoinedTexts::new(batch.unwrap(), 1, longest, "x");
        let mut found = Vec::new();
        for rows in joined.map_err(|error| error.to_string())? {
            let rows = rows.map_err(|error| error.to_string())?;
            let texts = rows.column(1).as_binary_view().iter();
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            found.push(texts.map(|bytes| bytes.map(text)).collect());
        }
        Ok(found)
    }

    /// The texts of a column of lists that fit into one record batch.
    fn texts(lists: impl arrow::array::Array + 'static) -> Vec<Option<String>> {
        let [texts] = <[_; 1]>::try_from(batches(Arc::new(lists), 1 << 20).unwrap()).unwrap();
        texts
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_strings_of_a_list_are_joined() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a"), None, Some("b\nc")]);
        lists.append_null();
        lists.append_value(Vec::<Option<&str>>::new());
        lists.append_value([None::<&str>]);
        lists.append_value([Some("")]);
        lists.append_value([Some(""), Some("d")]);
        let lists = lists.finish();
        let expected = [
            some("a\nb\nc"),
            None,
            some(""),
            some(""),
            some(""),
            some("\nd"),
        ];
        assert_eq!(texts(lists.slice(1, 4)), expected[1..5]);
        assert_eq!(texts(lists), expected);
    }

    #[test]
    fn lists_of_lists_are_flattened() {
        let mut lists = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
        lists.values().append_value([Some("a"), Some("b")]);
        lists.values().append_null();
        lists.values().append_value(Vec::<Option<&str>>::new());
        lists.values().append_value([None, Some("c")]);
        lists.append(true);
        lists.append(true);
        lists.append(false);
        lists.values().append_null();
        lists.append(true);
        lists.values().append_value([Some("d")]);
        lists.values().append_value([Some("e")]);
        lists.append(true);
        let lists = lists.finish();
        let expected = [some("a\nb\nc"), some(""), None, some(""), some("d\ne")];
        assert_eq!(texts(lists.slice(2, 3)), expected[2..]);
        assert_eq!(texts(lists), expected);
    }

    /// Lists with `lengths` structures, each with a text. A list or a structure is null where `lists` or `structures` has `false`;
    /// its items or its text are in memory nevertheless.
    fn of_structures(lengths: &[usize], lists: &[bool], structures: &[bool]) -> ListArray {
        let contents: StringArray = (0..structures.len())
            .map(|item| (item != 1).then(|| item.to_string()))
            .collect();
        let contents: ArrayRef = Arc::new(contents);
        let field = Field::new("content", DataType::Utf8, true);
        let structures = StructArray::new(
            vec![field].into(),
            vec![contents],
            Some(NullBuffer::from(structures)),
        );
        let item = Field::new("item", structures.data_type().clone(), true);
        ListArray::new(
            Arc::new(item),
            OffsetBuffer::from_lengths(lengths.iter().copied()),
            Arc::new(structures),
            Some(NullBuffer::from(lists)),
        )
    }

    #[test]
    fn what_is_hidden_by_a_null_is_left_out() {
        let lists = of_structures(
            &[3, 2, 1, 1],
            &[true, false, true, true],
            &[true, true, true, true, true, false, true],
        );
        let expected = [some("0\n2"), None, some(""), some("6")];
        assert_eq!(texts(lists.slice(1, 2)), expected[1..3]);
        assert_eq!(texts(lists), expected);
    }

    #[test]
    fn lists_are_taken_out_of_structures() {
        let lists: ArrayRef = Arc::new(of_structures(&[1, 1], &[true; 2], &[true; 2]));
        let field = Field::new("messages", lists.data_type().clone(), true);
        let nulls = NullBuffer::from(vec![false, true]);
        let meta = StructArray::new(vec![field].into(), vec![lists], Some(nulls));
        let batch = RecordBatch::try_from_iter([("meta", Arc::new(meta) as ArrayRef)]).unwrap();
        let leaf = Leaf {
            index: 0,
            path: vec!["meta", "messages", "content"],
            data_type: &DataType::Utf8,
            is_in_lists: true,
            is_repeated: false,
        };
        let column = LeafColumn::new("meta.messages.content", &leaf);
        let rows = named(&batch, std::slice::from_ref(&column)).unwrap();
        assert_eq!(rows.schema().field(0).name(), "meta.messages.content");
        let lists = batches(Arc::clone(rows.column(0)), 100).unwrap();
        // The content of the second row is null.
        assert_eq!(lists, [[None, some("")]]);
        let missing = LeafColumn {
            path: vec!["meta".into(), "other".into()],
            ..column
        };
        let error = named(&batch, &[missing]).unwrap_err().to_string();
        assert!(error.contains("was not read"), "{error}");
    }

    #[test]
    fn bytes_and_nulls_are_joined_and_other_items_refused() {
        let list_of = |items: ArrayRef| {
            let field = Arc::new(Field::new("item", items.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths([items.len()]);
            ListArray::new(field, offsets, items, None)
        };
        let bytes = BinaryArray::from_vec(vec![b"\xff".as_slice(), b"a"]);
        assert_eq!(texts(list_of(Arc::new(bytes))), [some("\u{fffd}\na")]);
        assert_eq!(texts(list_of(Arc::new(NullArray::new(3)))), [some("")]);
        let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
        let mut flags = ListBuilder::new(BooleanBuilder::new());
        flags.append_value([Some(true)]);
        for (lists, found) in [
            (Arc::new(numbers) as ArrayRef, "Int32"),
            (Arc::new(flags.finish()) as ArrayRef, "Boolean"),
        ] {
            let error = batches(lists, 100).unwrap_err();
            let expected = format!("x, column \"text\": texts are strings, this is {found}");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn texts_have_a_most_length() {
        let lists = || {
            let mut lists = ListBuilder::new(StringBuilder::new());
            lists.append_value([Some("abc"), Some("de")]);
            lists.append_value([Some("a"), Some("b"), Some(""), Some("")]);
            Arc::new(lists.finish())
        };
        let found = batches(lists(), 6).unwrap();
        assert_eq!(found, [[some("abc\nde"), some("a\nb\n\n")]]);
        let error = batches(lists(), 5).unwrap_err();
        assert_eq!(
            error,
            "out of the memory limit: x, column \"text\": a text of more than 5 bytes; raise --memory-limit"
        );
        let mut empty = ListBuilder::new(StringBuilder::new());
        empty.append_value(vec![Some(""); 7]);
        assert!(batches(Arc::new(empty.finish()), 5).is_err());
    }

    #[test]
    fn long_texts_come_in_several_batches() {
        let long = "x".repeat(BATCH_BYTES / 4);
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in 0..5 {
            lists.append_value([Some(&*long), Some(&*long)]);
            if row == 3 {
                lists.append_null();
            }
        }
        let found = batches(Arc::new(lists.finish()), usize::MAX).unwrap();
        let lengths = |batch: &Vec<Option<String>>| -> Vec<usize> {
            let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
            batch.iter().map(length).collect()
        };
        let joined = 2 * long.len() + 1;
        let lengths: Vec<Vec<usize>> = found.iter().map(lengths).collect();
        let expected = [vec![joined; 2], vec![joined; 2], vec![0, joined]];
        assert_eq!(lengths, expected);
        assert_eq!(found[2][0], None);
    }
}
