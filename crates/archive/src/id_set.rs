//! Ids of documents that are looked for in an archive.

use std::collections::{BTreeSet, HashSet};

use arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::schema::IdType;

/// The most ids that are named.
pub(crate) const NAMED: usize = 10;

/// Ids of documents, of an archive's id type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdSet {
    /// Text ids.
    Strings(HashSet<String>),
    /// Integer ids.
    Bigints(HashSet<i64>),
}

impl IdSet {
    /// Parses ids of one type.
    ///
    /// # Errors
    /// The first id that is not of the type.
    pub fn parse<'a>(ids: impl Iterator<Item = &'a str>, id_type: IdType) -> Result<Self, &'a str> {
        Ok(match id_type {
            IdType::String => Self::Strings(ids.map(str::to_owned).collect()),
            IdType::Bigint => {
                let ids: Result<_, _> = ids.map(|id| id.parse().map_err(|_| id)).collect();
                Self::Bigints(ids?)
            }
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Strings(ids) => ids.len(),
            Self::Bigints(ids) => ids.len(),
        }
    }

    pub(crate) fn has_text(&self, id: &str) -> bool {
        match self {
            Self::Strings(ids) => ids.contains(id),
            Self::Bigints(ids) => id.parse().is_ok_and(|id: i64| ids.contains(&id)),
        }
    }

    /// Any of its ids, as text.
    pub(crate) fn first(&self) -> String {
        match self {
            Self::Strings(ids) => ids.iter().next().cloned().unwrap_or_default(),
            Self::Bigints(ids) => ids.iter().next().map(i64::to_string).unwrap_or_default(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For each row of a record batch: whether its id is in the set. Adds each such id to `found`, as text.
    pub(crate) fn row_mask(
        &self,
        batch: &RecordBatch,
        found: &mut HashSet<String>,
    ) -> BooleanArray {
        let ids = batch.column(1);
        let in_set = |row| match self {
            Self::Strings(set) => set.get(ids.as_string::<i32>().value(row)).cloned(),
            Self::Bigints(set) => {
                let id = ids.as_primitive::<Int64Type>().value(row);
                set.get(&id).map(i64::to_string)
            }
        };
        let rows = (0..batch.num_rows()).map(in_set);
        rows.map(|id| Some(id.map(|id| found.insert(id)).is_some()))
            .collect()
    }

    /// The first ids, in order, that are not in `found`; [`NAMED`] at most.
    pub(crate) fn first_without(&self, found: &HashSet<String>) -> Vec<String> {
        match self {
            Self::Strings(ids) => first_missing(ids, found),
            Self::Bigints(ids) => first_missing(ids, found),
        }
    }
}

fn first_missing<T: Ord + std::fmt::Display>(
    ids: &HashSet<T>,
    found: &HashSet<String>,
) -> Vec<String> {
    let missing = ids.iter().filter(|id| !found.contains(&id.to_string()));
    let missing: BTreeSet<&T> = missing.collect();
    let first = missing.into_iter().take(NAMED);
    first.map(ToString::to_string).collect()
}
