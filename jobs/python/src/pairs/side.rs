//! [`Side`]: one of the sets of fingerprints that are compared.

use arrow::array::{Array as _, AsArray as _, UInt64Array};
use arrow::datatypes::UInt64Type;

use crate::error::Failed;
use crate::export::Array;

/// Fingerprints that are not null, and their rows.
pub(super) struct Side {
    pub(super) values: UInt64Array,
    /// The row of each value; `None` if all rows have one.
    rows: Option<Vec<u32>>,
}

impl Side {
    /// The values, in the order of the rows.
    pub(super) fn values(&self) -> &[u64] {
        self.values.values()
    }

    pub(super) fn new(given: &Array) -> Result<Self, Failed> {
        let values = given.array.as_primitive_opt::<UInt64Type>();
        let values =
            values.ok_or_else(|| Failed::usage("fingerprints are 64-bit unsigned integers"))?;
        if u32::try_from(values.len()).is_err() {
            return Err(Failed::usage(
                "at most 2^32 - 1 fingerprints can be compared at once",
            ));
        }
        if values.null_count() == 0 {
            let values = values.clone();
            return Ok(Self { values, rows: None });
        }
        let rows = (0..values.len() as u32)
            .filter(|row| values.is_valid(*row as usize))
            .collect();
        Ok(Self {
            values: values.iter().flatten().collect::<Vec<_>>().into(),
            rows: Some(rows),
        })
    }

    /// The row of the value with this index.
    pub(super) fn row(&self, at: u32) -> u32 {
        self.rows.as_ref().map_or(at, |rows| rows[at as usize])
    }
}
