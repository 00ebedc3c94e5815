//! [`Needed`]: which columns of a table the program reads.

use documents::{Columns, Prefer};
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
    prefer: Vec<String>,
    #[pyo3(item)]
    source: Option<String>,
    /// The columns that go along to decisions.
    #[pyo3(item)]
    carried: Vec<String>,
}

impl Needed {
    /// The indexes of the columns that the program gets, of a table with the columns `names`. If one that it needs is missing,
    /// it gets all, and its error lists them.
    pub(crate) fn columns(&self, names: &[&str]) -> Vec<usize> {
        let Some(read) = self.names_read(names) else {
            return (0..names.len()).collect();
        };
        let read: Vec<&str> = read.iter().map(|name| first_level(name, names)).collect();
        let is_needed = |at: &usize| read.contains(&names[*at]);
        (0..names.len()).filter(is_needed).collect()
    }

    /// The names of the columns that the program reads; `None` if one is missing, or if it gets all columns.
    fn names_read(&self, names: &[&str]) -> Option<Vec<String>> {
        if self.all {
            return None;
        }
        // A file of sources needs no column.
        let rules = |text: &String| Prefer::parse(text, |path| Ok(path.to_owned()));
        let rules: Result<Vec<Prefer>, String> = self.prefer.iter().map(rules).collect();
        let prefer = rules.ok()?.into_iter().reduce(Prefer::then);
        let prefer = prefer.unwrap_or_default();
        let columns = Columns {
            id: self.id_column.clone(),
            text: self.text_column.clone(),
            fingerprint: self.fingerprint_column.clone(),
            prefer,
            with_sources: true,
            source: self.source.clone(),
            carried: self.carried.clone(),
            row_ids: self.row_ids,
            ..Columns::default()
        };
        // A path is there if its first level is. Whether the rest is there, too, the program finds.
        let asked = [&self.id_column, &self.text_column, &self.fingerprint_column];
        let asked = asked.into_iter().flatten().chain(&self.carried);
        let asked = asked.map(String::as_str).chain(columns.prefer.columns());
        let paths: Vec<String> = asked
            .filter(|name| names.contains(&first_level(name, names)))
            .map(str::to_owned)
            .collect();
        let paths = paths.iter().map(String::as_str);
        let names: Vec<&str> = names.iter().copied().chain(paths).collect();
        let mut read = columns.names_read(&names)?;
        if self.texts {
            let texts = Columns {
                fingerprint: None,
                texts_only: true,
                ..columns
            };
            read.extend(texts.names_read(&names)?);
        }
        Some(read)
    }
}

/// The column, of those in `names`, that has the values at a path; the path itself if it is the name of one.
fn first_level<'p>(path: &'p str, names: &[&str]) -> &'p str {
    match path.split_once('.') {
        Some((first, _)) if !names.contains(&path) => first,
        _ => path,
    }
}
