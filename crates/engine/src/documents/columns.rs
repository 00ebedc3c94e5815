//! Finds a file's columns: the id, and the text or fingerprint.

use std::fmt;

use archive::schema::SKETCH;
use serde::{Deserialize, Serialize};

use super::preference::Prefer;
use crate::error::{EngineError, Result};

/// Names of id columns that are found without an option, the best first: the names in this program,
/// FineWeb, RedPajama and Dolma, then Common Crawl's names, as its derivatives spell them.
pub const ID_NAMES: [&str; 8] = [
    "id",
    "doc_id",
    "document_id",
    "warc_record_id",
    "WARC-Record-ID",
    "url",
    "WARC-Target-URI",
    "warc_target_uri",
];
/// Names of text columns that are found without an option.
pub const TEXT_NAMES: [&str; 5] = ["text", "content", "raw_content", "plain_text", "body"];
/// The most names of columns that an error lists.
const LISTED: usize = 20;
/// The most characters of each name: of a file without a header, the first record is taken for
/// names.
const LISTED_CHARS: usize = 60;
/// The name of a column of ready fingerprints.
const FINGERPRINT_NAME: &str = archive::schema::FINGERPRINT;

/// The columns that the options ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// The id column.
    pub id: Option<String>,
    /// The text column.
    pub text: Option<String>,
    /// The column of ready fingerprints.
    pub fingerprint: Option<String>,
    /// How documents are ordered by preference.
    pub prefer: Prefer,
    /// What separates the fields of CSV; found by the header if it is `None`.
    pub delimiter: Option<u8>,
    /// How pages are read: the documents of crawls, and files of HTML.
    pub pages: Pages,
    /// Which records of a crawl are documents.
    pub crawl: CrawlRecords,
    /// Whether files without an id column are accepted; their documents get the id `file:row`.
    pub row_ids: bool,
    /// Whether the command needs texts, so that it must not choose a fingerprint column instead.
    pub texts_only: bool,
    /// Whether the command has no options that name columns, so that errors must not suggest them.
    #[serde(skip)]
    pub without_options: bool,
}

/// How pages are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// As their visible text, for people to read.
    #[default]
    VisibleText,
    /// As HTML, for a spec that takes markup out. A plain text becomes HTML that shows this text.
    Html,
    /// As they are.
    Source,
}

/// Which records of a crawl are documents, and their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlRecords {
    /// What the id of a document is, unless a column of ids is named.
    pub id: CrawlId,
    /// The HTTP statuses of responses that are read; 200 if there are none.
    pub statuses: Vec<u16>,
    /// Whether the digests of records are checked.
    pub check_digests: bool,
}

/// What the id of a crawl's document is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrawlId {
    /// Its WARC-Record-ID.
    #[default]
    Record,
    /// Its URL.
    Url,
}

/// The content of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Texts, in the column of this name.
    Text(String),
    /// Ready fingerprints, in the column of this name.
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

/// The names of the columns that are read from a file.
#[derive(Debug, Clone)]
pub(super) struct FoundColumns {
    /// `None` if the file has no id column; its documents then get the id `file:row`.
    pub(super) id: Option<String>,
    /// Whether the file is one document; without an id column, its id is then the file's name.
    pub(super) is_one_document: bool,
    pub(super) content: Content,
    /// Whether the sketches beside ready fingerprints are read, which is so if the file's spec has
    /// them.
    pub(super) sketches: bool,
    /// How documents are ordered by preference.
    pub(super) prefer: Prefer,
    /// What separates the fields of CSV; without meaning for other formats.
    pub(super) delimiter: u8,
    /// How pages are read.
    pub(super) pages: Pages,
    /// Which records of a crawl are documents.
    pub(super) crawl: CrawlRecords,
}

impl FoundColumns {
    /// The names: id, if there is one, content and, if they are read, sketch and preference.
    pub(super) fn names(&self) -> Vec<&str> {
        let sketch = self.sketches.then_some(SKETCH);
        let names = self
            .id
            .as_deref()
            .into_iter()
            .chain([self.content.column()]);
        names.chain(sketch).chain(self.own_preference()).collect()
    }

    /// The column of preferences, unless it is the id or the content too.
    pub(super) fn own_preference(&self) -> Option<&str> {
        let name = self.prefer.column();
        name.filter(|name| self.id.as_deref() != Some(name) && *name != self.content.column())
    }
}

impl Columns {
    /// The names of the columns that are read of a file whose columns are `names`: id, content, the sketch beside it, and
    /// preference. `None` if one that is needed is missing; the error of reading the file says which.
    #[must_use]
    pub fn names_read(&self, names: &[&str]) -> Option<Vec<String>> {
        let found = FoundColumns {
            sketches: names.contains(&SKETCH),
            ..self.find("", names).ok()?
        };
        Some(found.names().into_iter().map(str::to_owned).collect())
    }

    /// Finds the columns among a file's `names`. Ready fingerprints win over texts unless texts are asked for.
    pub(super) fn find(&self, object: &str, names: &[&str]) -> Result<FoundColumns> {
        let missing = |what: &str, sought: &str, option: &str| {
            let remedy = match self.without_options {
                true => "only these names are found".to_owned(),
                false => format!("name it by {option}"),
            };
            EngineError::BadData {
                object: object.to_owned(),
                reason: format!(
                    "no {what} column ({sought}); {remedy}; its columns are {}",
                    listed(names)
                ),
            }
        };
        let pick = |asked: &Option<String>, known: &[&str]| match asked {
            Some(name) => names.contains(&name.as_str()).then(|| name.clone()),
            None => known
                .iter()
                .find(|name| names.contains(name))
                .map(|name| (*name).to_owned()),
        };
        let sought = |asked: &Option<String>, known: &[&str]| {
            asked.clone().unwrap_or_else(|| known.join(" or "))
        };
        let id = pick(&self.id, &ID_NAMES);
        if id.is_none() && (self.id.is_some() || !self.row_ids) {
            return Err(missing("id", &sought(&self.id, &ID_NAMES), "--id-column"));
        }
        let content = if let Some(name) = &self.fingerprint {
            let found = names
                .contains(&name.as_str())
                .then(|| Content::Fingerprint(name.clone()));
            found.ok_or_else(|| missing("fingerprint", name, "--fingerprint-column"))?
        } else if self.text.is_none() && !self.texts_only && names.contains(&FINGERPRINT_NAME) {
            Content::Fingerprint(FINGERPRINT_NAME.to_owned())
        } else {
            let text = pick(&self.text, &TEXT_NAMES).ok_or_else(|| {
                let sought = sought(&self.text, &TEXT_NAMES);
                if self.texts_only {
                    return missing("text", &sought, "--text-column");
                }
                missing(
                    "text or fingerprint",
                    &format!("{sought}, or {FINGERPRINT_NAME}"),
                    "--text-column or --fingerprint-column",
                )
            })?;
            Content::Text(text)
        };
        if let Some(name) = self.prefer.column()
            && !names.contains(&name)
        {
            return Err(missing("preference", name, "--prefer"));
        }
        Ok(FoundColumns {
            id,
            is_one_document: false,
            content,
            sketches: false,
            delimiter: self.delimiter.unwrap_or(b','),
            pages: self.pages,
            crawl: self.crawl.clone(),
            prefer: self.prefer.clone(),
        })
    }
}

/// The column names as an error lists them: the first ones, each shortened.
fn listed(names: &[&str]) -> String {
    let short = |name: &&str| -> String {
        // Control characters would break the message's line.
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let mut short: String = name.chars().take(LISTED_CHARS).map(visible).collect();
        if name.chars().nth(LISTED_CHARS).is_some() {
            short.push_str("...");
        }
        short
    };
    let shown: Vec<String> = names.iter().take(LISTED).map(short).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(columns: &Columns, names: &[&str]) -> Result<(String, Content), String> {
        columns
            .find("x", names)
            .map(|found| (found.id.unwrap_or_default(), found.content))
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
    fn the_names_read_are_those_of_the_columns_found() {
        let names = ["id", "fp", "text", "sketch", "rank", "other"];
        let read = |columns: &Columns| columns.names_read(&names);
        let expected = |names: &[&str]| -> Option<Vec<String>> {
            Some(names.iter().map(|name| (*name).to_owned()).collect())
        };
        let mut columns = Columns::default();
        assert_eq!(read(&columns), expected(&["id", "fp", "sketch"]));
        columns.text = Some("text".into());
        columns.prefer = "rank:desc".parse().unwrap();
        assert_eq!(read(&columns), expected(&["id", "text", "sketch", "rank"]));
        columns.id = Some("key".into());
        assert_eq!(read(&columns), None);
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

    #[test]
    fn errors_list_few_names_and_the_start_of_each() {
        let long = "secret\n".repeat(1_000);
        let error = find(&Columns::default(), &[long.as_str(); 50]).unwrap_err();
        assert!(error.ends_with("... and 30 more"), "{error}");
        assert!(error.len() < 2_000 && !error.contains('\n'), "{error}");
        let names: Vec<String> = (0..20).map(|number| format!("column {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let error = find(&Columns::default(), &names).unwrap_err();
        assert!(error.ends_with(", column 18, column 19"), "{error}");
    }
}
