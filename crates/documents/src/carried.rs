//! Carried columns: columns of the documents that go along to decisions. They are read when everything is decided.

use std::sync::Arc;

use archive::IdType;
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::prelude::{DataFrame, SessionContext};

use super::file::InputFile;
use super::splits::{Split, numbered_splits, total_bytes};
use super::table_columns;
use super::wanted_rows::Rows;
use super::{Documents, conform, read_table};
use crate::error::{DocumentsError, Result};

impl Documents {
    /// The columns that all files have by their formats, beside an id and a text; none if the formats differ in them.
    pub fn known_columns(&self) -> &'static [&'static str] {
        let mut known = self.files.iter().map(|file| file.known_columns());
        let first = known.next().unwrap_or_default();
        if known.all(|other| other == first) {
            first
        } else {
            &[]
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
        let schema = table_columns::schema(id_type, content, sketches, None, carried);
        let (rows, splits) = (Rows::All, numbered_splits(&files));
        read_table(context, schema, id_type, partitions, rows, splits, None)
    }

    /// Whether there are carried columns.
    pub fn has_carried(&self) -> bool {
        !self.carried.is_empty()
    }

    /// The carried columns, with the types that they get: text where the files differ.
    pub fn carried_fields(&self) -> Vec<Field> {
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

    /// Refuses carried columns whose values in a file cannot get the type of [`Self::carried_fields`]. They are read when all
    /// work is done, which is late to find that out.
    pub(super) fn check_carried(&self) -> Result<()> {
        let fields = self.carried_fields();
        for file in &self.files {
            for (column, field) in file.carried.iter().zip(&fields) {
                let (found, wanted) = (&column.data_type, field.data_type());
                if !conform::can_be_carried(found, wanted) {
                    return Err(DocumentsError::bad_data(
                        format!("{}, column {:?}", file.location, column.name),
                        format!(
                            "its type {found} cannot become {wanted}, which the column has in the decisions because the files differ in it; leave it out of --columns, or run files of one type by themselves"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The table of carried columns: the position of each document, then the columns of [`Self::carried_fields`], in that
    /// order. Nothing else is read.
    pub fn carried_table(&self, context: &SessionContext, partitions: usize) -> Result<DataFrame> {
        let splits = numbered_splits(&self.only_carried());
        carried_columns_table(context, partitions, splits, self.carried_fields())
    }

    /// The schema of [`Self::carried_table`].
    pub fn carried_schema(&self) -> SchemaRef {
        table_columns::carried_schema(self.carried_fields())
    }

    /// About how many bytes are read for [`Self::carried_table`].
    pub fn carried_bytes(&self) -> u64 {
        total_bytes(&numbered_splits(&self.only_carried()))
    }

    /// The files; their readers read the carried columns and no others.
    pub(super) fn only_carried(&self) -> Vec<Arc<InputFile>> {
        let files = self.files.iter().map(|file| file.only(&file.carried));
        files.map(Arc::new).collect()
    }
}

/// The table of the positions of documents and the carried columns of `splits`. Reads no other columns.
pub(super) fn carried_columns_table(
    context: &SessionContext,
    partitions: usize,
    splits: Vec<Split>,
    carried: Vec<Field>,
) -> Result<DataFrame> {
    let schema = table_columns::carried_schema(carried);
    // There are no ids.
    let (rows, id_type) = (Rows::All, IdType::String);
    read_table(context, schema, id_type, partitions, rows, splits, None)
}

#[cfg(test)]
mod tests {
    use storage::ErrorKind;

    use super::*;
    use crate::Columns;
    use crate::session::test_session;

    #[tokio::test]
    async fn types_that_cannot_become_text_are_refused_beside_others() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a.jsonl", "b.jsonl"].map(|name| dir.path().join(name));
        for path in &paths {
            std::fs::write(path, "{\"id\":\"x\",\"fp\":1,\"tags\":[]}\n").unwrap();
        }
        let given = paths.map(|path| path.to_str().unwrap().to_owned());
        let context = test_session(1 << 30);
        let columns = Columns {
            carried: vec!["tags".into()],
            ..Columns::default()
        };
        let opened = Documents::open(&context, &given, &columns).await;
        let mut documents = opened.unwrap();
        let mut check = |types: [&DataType; 2]| {
            for (file, data_type) in documents.files.iter_mut().zip(types) {
                Arc::make_mut(file).carried[0].data_type = data_type.clone();
            }
            documents.check_carried()
        };
        let structure = DataType::Struct(vec![Field::new("b", DataType::Utf8, true)].into());
        for types in [
            [&DataType::Utf8, &DataType::Int64],
            [&DataType::FixedSizeBinary(16), &DataType::Boolean],
            [&structure, &structure],
            [&DataType::Null, &structure],
        ] {
            assert!(check(types).is_ok(), "{types:?}");
        }
        for (types, name) in [
            ([&DataType::Utf8, &structure], "b.jsonl"),
            ([&structure, &DataType::Int64], "a.jsonl"),
        ] {
            let error = check(types).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            let expected =
                format!("{name}, column \"tags\": its type {structure} cannot become Utf8, which");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }
}
