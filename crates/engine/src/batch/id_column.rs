//! The ids of a batch, read row by row.

use arrow::array::{ArrayRef, AsArray as _, Int64Array, StringArray};
use arrow::datatypes::Int64Type;

/// The ids of all rows of a batch.
#[derive(Debug)]
pub(crate) enum IdColumn<'a> {
    Text(Chunks<&'a StringArray>),
    Number(Chunks<&'a Int64Array>),
}

/// Arrays of the same number of rows; the last may have fewer.
#[derive(Debug)]
pub(crate) struct Chunks<A> {
    arrays: Vec<A>,
    rows: usize,
}

impl<'a> IdColumn<'a> {
    /// The ids in `arrays` of `rows` rows each.
    pub(crate) fn new(arrays: &'a [ArrayRef], rows: usize) -> Self {
        let texts = arrays.iter().map(|array| array.as_string_opt());
        match texts.collect::<Option<Vec<_>>>() {
            Some(arrays) => Self::Text(Chunks { arrays, rows }),
            None => Self::Number(Chunks {
                arrays: arrays
                    .iter()
                    .map(|array| array.as_primitive::<Int64Type>())
                    .collect(),
                rows,
            }),
        }
    }
}

impl<A> Chunks<A> {
    /// The array with a row, and the index of the row there.
    fn place(&self, row: u32) -> (&A, usize) {
        let row = row as usize;
        (&self.arrays[row / self.rows], row % self.rows)
    }
}

impl<'a> Chunks<&'a StringArray> {
    pub(crate) fn bytes(&self, row: u32) -> &'a [u8] {
        let (array, at) = self.place(row);
        array.value(at).as_bytes()
    }
}

impl Chunks<&Int64Array> {
    pub(crate) fn value(&self, row: u32) -> i64 {
        let (array, at) = self.place(row);
        array.value(at)
    }
}
