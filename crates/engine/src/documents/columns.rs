//! Which columns are the id and the text, and their conversion to the day's table.

use std::fmt;
use std::sync::Arc;

use archive::IdType;
use archive::reader::to_id_type;
use arrow::array::{Array as _, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result, root_message};
use crate::udf::FingerprintBits;

/// Names of id columns that are taken without being asked for, the best first: ours, FineWeb's, RedPajama's and
/// Dolma's, then Common Crawl's in the spellings of its derivatives.
const ID_NAMES: [&str; 8] = [
    "id",
    "doc_id",
    "document_id",
    "warc_record_id",
    "WARC-Record-ID",
    "url",
    "WARC-Target-URI",
    "warc_target_uri",
];
/// Names of text columns that are taken without being asked for.
const TEXT_NAMES: [&str; 5] = ["text", "content", "raw_content", "plain_text", "body"];
/// The name of a column of ready fingerprints.
const FINGERPRINT_NAME: &str = archive::schema::FINGERPRINT;

/// Columns that were asked for by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// The id column.
    pub id: Option<String>,
    /// The text column.
    pub text: Option<String>,
    /// The column of ready fingerprints.
    pub fingerprint: Option<String>,
    /// Whether texts are needed, so that a column of ready fingerprints is passed over.
    pub texts_only: bool,
}

/// What a document brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text, in the column of this name.
    Text(String),
    /// A ready fingerprint, in the column of this name.
    Fingerprint(String),
}

impl Content {
    /// The column's name.
    #[must_use]
    pub fn column(&self) -> &str {
        match self {
            Self::Text(name) | Self::Fingerprint(name) => name,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(name) => write!(f, "texts (column {name:?})"),
            Self::Fingerprint(name) => write!(f, "ready fingerprints (column {name:?})"),
        }
    }
}

/// The columns of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) id: String,
    pub(super) content: Content,
}

impl Columns {
    /// Finds the columns among a file's `names`. Ready fingerprints win over text unless text is asked for.
    pub(super) fn find(&self, object: &str, names: &[&str]) -> Result<Found> {
        let missing = |what: &str, wanted: &str| EngineError::BadData {
            object: object.to_owned(),
            reason: format!(
                "no {what} column ({wanted}); its columns are {}",
                names.join(", ")
            ),
        };
        let pick = |asked: &Option<String>, known: &[&str]| match asked {
            Some(name) => names.contains(&name.as_str()).then(|| name.clone()),
            None => known
                .iter()
                .find(|name| names.contains(name))
                .map(|name| (*name).to_owned()),
        };
        let wanted = |asked: &Option<String>, known: &[&str]| {
            asked.clone().unwrap_or_else(|| known.join(" or "))
        };
        let id =
            pick(&self.id, &ID_NAMES).ok_or_else(|| missing("id", &wanted(&self.id, &ID_NAMES)))?;
        let content = if let Some(name) = &self.fingerprint {
            let found = names
                .contains(&name.as_str())
                .then(|| Content::Fingerprint(name.clone()));
            found.ok_or_else(|| missing("fingerprint", name))?
        } else if self.text.is_none() && !self.texts_only && names.contains(&FINGERPRINT_NAME) {
            Content::Fingerprint(FINGERPRINT_NAME.to_owned())
        } else {
            let text = pick(&self.text, &TEXT_NAMES).ok_or_else(|| {
                let wanted = wanted(&self.text, &TEXT_NAMES);
                if self.texts_only {
                    return missing("text", &wanted);
                }
                missing(
                    "text or fingerprint",
                    &format!("{wanted}, or {FINGERPRINT_NAME}"),
                )
            })?;
            Content::Text(text)
        };
        Ok(Found { id, content })
    }
}

/// A batch of a file (id, content) in the schema of the day's table. Null ids are refused here.
pub(super) fn conform(
    batch: &RecordBatch,
    schema: &SchemaRef,
    id_type: IdType,
    found: &Found,
    object: &str,
) -> Result<RecordBatch> {
    let bad_data = |column: &str, reason: String| EngineError::BadData {
        object: format!("{object}, column {column:?}"),
        reason,
    };
    let ids = batch.column(0);
    if ids.null_count() > 0 {
        return Err(bad_data(
            &found.id,
            "null ids; every document needs one".into(),
        ));
    }
    let ids = to_id_type(ids, id_type)
        .map_err(|error| bad_data(&found.id, format!("ids must be {id_type}: {error}")))?;
    let content = batch.column(1);
    let content = match &found.content {
        Content::Text(column) => as_bytes(content).map_err(|reason| bad_data(column, reason))?,
        Content::Fingerprint(column) => {
            as_fingerprints(content).map_err(|reason| bad_data(column, reason))?
        }
    };
    RecordBatch::try_new(Arc::clone(schema), vec![ids, content])
        .map_err(|error| bad_data(&found.id, error.to_string()))
}

/// Text of any kind as bytes, which need not be UTF-8.
fn as_bytes(text: &ArrayRef) -> Result<ArrayRef, String> {
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

/// Ready fingerprints of any integer kind as their 64 bits.
fn as_fingerprints(numbers: &ArrayRef) -> Result<ArrayRef, String> {
    let udf = FingerprintBits::udf();
    let types = udf
        .coerce_types(&[numbers.data_type().clone()])
        .map_err(|error| root_message(&error))?;
    let numbers = arrow::compute::cast(numbers, &types[0]).map_err(|error| error.to_string())?;
    let rows = numbers.len();
    let field = Arc::new(arrow::datatypes::Field::new(
        FINGERPRINT_NAME,
        types[0].clone(),
        true,
    ));
    let args = ScalarFunctionArgs {
        args: vec![ColumnarValue::Array(numbers)],
        arg_fields: vec![field],
        number_rows: rows,
        return_field: Arc::new(arrow::datatypes::Field::new(
            FINGERPRINT_NAME,
            DataType::Int64,
            true,
        )),
        config_options: Arc::default(),
    };
    let bits = udf
        .invoke_with_args(args)
        .and_then(|bits| bits.into_array(rows));
    bits.map_err(|error| root_message(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(columns: &Columns, names: &[&str]) -> Result<(String, Content), String> {
        columns
            .find("x", names)
            .map(|found| (found.id, found.content))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn known_names_are_found() {
        let text = |id: &str, name: &str| Ok((id.to_owned(), Content::Text(name.to_owned())));
        let none = Columns::default();
        let fineweb = [
            "text",
            "id",
            "dump",
            "url",
            "date",
            "file_path",
            "language",
            "language_score",
            "token_count",
        ];
        assert_eq!(find(&none, &fineweb), text("id", "text"));
        assert_eq!(
            find(&none, &["url", "raw_content"]),
            text("url", "raw_content")
        );
        assert_eq!(
            find(&none, &["id", "fp", "text"]),
            Ok(("id".into(), Content::Fingerprint("fp".into())))
        );
        let asked = Columns {
            text: Some("text".into()),
            ..Columns::default()
        };
        assert_eq!(find(&asked, &["id", "fp", "text"]), text("id", "text"));
    }

    #[test]
    fn missing_columns_are_named() {
        let error = find(&Columns::default(), &["id", "title"]).unwrap_err();
        assert!(error.contains("text") && error.contains("title"), "{error}");
        let asked = Columns {
            id: Some("key".into()),
            ..Columns::default()
        };
        assert!(find(&asked, &["id", "text"]).unwrap_err().contains("key"));
    }
}
