//! Carried columns: columns of the documents that go along to decisions. They are read when everything is decided.

use std::sync::Arc;

use archive::IdType;
use arrow::datatypes::{DataType, Field};
use datafusion::prelude::{DataFrame, SessionContext};

use super::columns::CarriedColumn;
use super::file::InputFile;
use super::partition_reader::Rows;
use super::splits::Split;
use super::table_columns;
use super::{Documents, numbered_splits, read_table};
use crate::error::Result;

impl Documents {
    /// The columns that all files have by their formats, beside an id and a text; none if the formats differ in them.
    #[must_use]
    pub fn known_columns(&self) -> &'static [&'static str] {
        let mut known = self.files.iter().map(|file| file.known_columns());
        let first = known.next().unwrap_or_default();
        match known.all(|other| other == first) {
            true => first,
            false => &[],
        }
    }

    /// As [`Self::table`], with the carried columns behind the others.
    ///
    /// # Errors
    /// When a carried column has the name of another column of the table.
    pub fn table_with_carried(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
    ) -> Result<DataFrame> {
        let files = self.files.iter().map(|file| file.with_carried());
        let files: Vec<Arc<InputFile>> = files.map(Arc::new).collect();
        let content = self.files.first();
        let content = content.and_then(|file| file.columns.content.as_ref());
        let (sketches, carried) = (self.has_sketches(), self.carried_fields());
        let schema = table_columns::schema(id_type, content, sketches, false, carried);
        let splits = numbered_splits(&files);
        read_table(
            context,
            schema,
            id_type,
            partitions,
            &Rows::All,
            splits,
            None,
        )
    }

    /// Whether there are carried columns.
    pub(crate) fn has_carried(&self) -> bool {
        !self.carried.is_empty()
    }

    /// The carried columns, with the types that they get: text where the files differ.
    pub(crate) fn carried_fields(&self) -> Vec<Field> {
        let field = |(at, name): (usize, &String)| {
            let columns = self.files.iter().filter_map(|file| file.carried.get(at));
            let mut types = columns
                .map(|column| &column.data_type)
                .filter(|data_type| **data_type != DataType::Null);
            let data_type = match types.next() {
                Some(first) if types.all(|other| other == first) => first.clone(),
                _ => DataType::Utf8,
            };
            Field::new(name, data_type, true)
        };
        self.carried.iter().enumerate().map(field).collect()
    }

    /// The table of carried columns: the position of each document, then the columns of [`Self::carried_fields`], in that
    /// order. Nothing else is read.
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn carried_table(
        &self,
        context: &SessionContext,
        partitions: usize,
    ) -> Result<DataFrame> {
        let files = self.only_carried();
        carried_columns_table(context, partitions, files, self.carried_fields())
    }

    /// About how many bytes are read for [`Self::carried_table`].
    pub(crate) fn carried_bytes(&self) -> u64 {
        let splits = numbered_splits(&self.only_carried());
        splits.iter().map(Split::bytes).fold(0, u64::saturating_add)
    }

    /// The files; their readers read the carried columns and no others.
    fn only_carried(&self) -> Vec<Arc<InputFile>> {
        let files = self.files.iter().map(|file| file.only(&file.carried));
        files.map(Arc::new).collect()
    }

    /// The table of a column that all files have by their formats, as text, beside the positions of the documents. Nothing
    /// else is read.
    ///
    /// # Errors
    /// None in practice.
    pub(super) fn known_column_table(
        &self,
        context: &SessionContext,
        partitions: usize,
        name: &str,
    ) -> Result<DataFrame> {
        let column = CarriedColumn {
            name: name.to_owned(),
            data_type: DataType::Utf8,
        };
        let only = |file: &Arc<InputFile>| Arc::new(file.only(std::slice::from_ref(&column)));
        let files = self.files.iter().map(only).collect();
        let field = Field::new(name, DataType::Utf8, true);
        carried_columns_table(context, partitions, files, vec![field])
    }
}

/// The table of the positions of documents and the carried columns of `files`. Reads no other columns.
fn carried_columns_table(
    context: &SessionContext,
    partitions: usize,
    files: Vec<Arc<InputFile>>,
    carried: Vec<Field>,
) -> Result<DataFrame> {
    let schema = table_columns::carried_schema(carried);
    // There are no ids.
    let id_type = IdType::String;
    let splits = numbered_splits(&files);
    read_table(
        context,
        schema,
        id_type,
        partitions,
        &Rows::Carried,
        splits,
        None,
    )
}
