//! [`Needed`]: which columns of a table the program reads.

use engine::documents::{Columns, Prefer};
use pyo3::prelude::*;

/// What decides which columns the program gets; names of columns are those that the options name.
#[derive(FromPyObject)]
pub(crate) struct Needed {
    /// Whether it gets all columns.
    #[pyo3(item)]
    all: bool,
    /// Whether it reads texts even if there are fingerprints.
    #[pyo3(item)]
    texts: bool,
    /// Whether a table without ids gets row numbers.
    #[pyo3(item)]
    pub(crate) row_ids: bool,
    #[pyo3(item)]
    id_column: Option<String>,
    #[pyo3(item)]
    text_column: Option<String>,
    #[pyo3(item)]
    fingerprint_column: Option<String>,
    #[pyo3(item)]
    prefer: Option<String>,
}

impl Needed {
    /// The indexes of the columns that the program gets, of a table with the columns `names`. If one that it needs is missing,
    /// it gets all, and its error lists them.
    pub(crate) fn columns(&self, names: &[&str]) -> Vec<usize> {
        let read = self.names_read(names);
        let is_needed = |at: &usize| match &read {
            Some(read) => read.iter().any(|name| name == names[*at]),
            None => true,
        };
        (0..names.len()).filter(is_needed).collect()
    }

    /// The names of the columns that the program reads; `None` if one is missing, or if it gets all columns.
    fn names_read(&self, names: &[&str]) -> Option<Vec<String>> {
        if self.all {
            return None;
        }
        let prefer: Prefer = match &self.prefer {
            Some(prefer) => prefer.parse().ok()?,
            None => Prefer::default(),
        };
        let columns = Columns {
            id: self.id_column.clone(),
            text: self.text_column.clone(),
            fingerprint: self.fingerprint_column.clone(),
            prefer,
            row_ids: self.row_ids,
            ..Columns::default()
        };
        let mut read = columns.names_read(names)?;
        if self.texts {
            let texts = Columns {
                fingerprint: None,
                texts_only: true,
                ..columns
            };
            read.extend(texts.names_read(names)?);
        }
        Some(read)
    }
}
