//! Finds a file's columns: the id, the text or fingerprint, and those that go along to decisions.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use archive::schema::{FINGERPRINT, SKETCH};
use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use warc::charset::Encoding;

use super::left_out::LeftOut;
use super::listed::listed;
use super::preference::Prefer;
use super::rows::dialect::{Dialect, Quote};
use crate::error::{DocumentsError, Result};

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
/// Names of columns whose URLs say the sources of documents, unless an option names another; the best first.
pub(super) const URL_NAMES: [&str; 3] = ["url", "WARC-Target-URI", "warc_target_uri"];

/// What the values of a column say of the sources of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Urls,
    /// Each is a source, or a URL.
    Sources,
    /// Only those that are URLs say anything.
    Ids,
}

/// The columns of a document in a WARC file, beside its record's id and its text.
pub const CRAWL_COLUMNS: [&str; 5] = ["url", "host", "date", "status", "content_type"];
/// What stands between two strings of a list in the text that they become.
pub(super) const ITEM_SEPARATOR: u8 = b'\n';

/// The columns that the options ask for, each by its name, or by its path in structures: `meta.url`. The texts may be in lists, too,
/// which have no name in a path: `messages.content`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    pub id: Option<String>,
    /// The text column; or several, separated by commas, whose texts are joined by newlines.
    pub text: Option<String>,
    /// The column of ready fingerprints.
    pub fingerprint: Option<String>,
    /// The columns that an archive remembers: they count in files that have them, if no option names others.
    pub remembered: Remembered,
    /// How documents are ordered by preference.
    pub prefer: Prefer,
    /// Whether the sources of documents are read.
    pub with_sources: bool,
    /// Whether the registrable domain of a URL is the source, and not its host.
    pub domains: bool,
    /// The column that says the source of a document; the URLs in the column `url`, or else in the ids, if it is `None`.
    pub source: Option<String>,
    /// The columns that go along to decisions. Opened documents keep them apart.
    #[serde(skip)]
    pub carried: Vec<String>,
    /// What separates the fields of CSV; found by the header if it is `None`.
    pub delimiter: Option<u8>,
    /// What quotes the fields of CSV; found if it is `None`.
    pub quote: Option<Quote>,
    /// The name of the encoding of all texts; found if it is `None`.
    pub charset: Option<String>,
    /// The directory in which standard input and pipes are kept. Its files are called by their own names alone.
    #[serde(skip)]
    pub spooled: Option<PathBuf>,
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

/// The names of columns that an archive remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    pub id: Option<String>,
    /// The text column, or several.
    pub text: Option<String>,
    pub source: Option<String>,
}

/// How pages are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// As their visible text, for people to read.
    #[default]
    VisibleText,
    /// As HTML, for a spec that takes markup out. A plain text becomes HTML that shows this text.
    Html,
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
    /// The most bytes of a record, and the largest window of zstd, as a power of two. All processes of a run have the same limits,
    /// so that documents have the same numbers: of damaged files, these depend on the limits. `None` before the files are opened,
    /// and then the limits are those of the memory.
    pub limits: Option<(usize, u32)>,
}

/// What the id of a crawl's document is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrawlId {
    /// Its WARC-Record-ID.
    #[default]
    Record,
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

/// A column that goes along to decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CarriedColumn {
    /// Its name, or its path.
    pub(super) name: String,
    /// The type of its values in the decisions.
    pub(super) data_type: DataType,
}

/// The columns that are read from a file.
#[derive(Debug, Clone, Default)]
pub(super) struct FoundColumns {
    /// `None` if the file has no id column; its documents then get the id `file:row`.
    pub(super) id: Option<String>,
    /// Whether the file is one document; without an id column, its id is then the file's name.
    pub(super) is_one_document: bool,
    /// Whether the ids are bytes that are not said to be text.
    pub(super) has_byte_ids: bool,
    /// `None` if only carried columns are read.
    pub(super) content: Option<Content>,
    /// The columns whose texts are joined to the content.
    pub(super) further_texts: Vec<String>,
    /// Known names of text columns that the file has, too, if no option says which is read.
    pub(super) other_texts: Vec<&'static str>,
    /// Whether the column of fingerprints was chosen by its name, `fp`, and the file has another column that may have the texts.
    pub(super) are_guessed: bool,
    /// Whether the file is one array of JSON.
    pub(super) is_array: bool,
    /// Columns that options name, and that the documents at the start of the file lack.
    pub(super) unseen: Vec<Unseen>,
    /// Whether the sketches beside ready fingerprints are read, which is so if the file's spec has
    /// them.
    pub(super) sketches: bool,
    pub(super) prefer: Prefer,
    /// The column that says the sources of documents; `None` if the ids do.
    pub(super) source: Option<(String, Says)>,
    /// As [`Columns::domains`].
    pub(super) domains: bool,
    pub(super) carried: Vec<CarriedColumn>,
    /// The dialect of CSV; without meaning for other formats.
    pub(super) dialect: Dialect,
    pub(super) charset: Option<&'static Encoding>,
    pub(super) pages: Pages,
    pub(super) left_out: Option<Arc<LeftOut>>,
    pub(super) crawl: CrawlRecords,
    /// Whether a copy has records of several files, and so must be in UTF-8.
    pub(super) is_joined: bool,
}

/// A column that an option names, and that the documents at the start of a file lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unseen {
    pub(super) name: String,
    /// Whether these are all documents of the file.
    pub(super) in_whole_file: bool,
    /// The columns that there are, as an error lists them.
    pub(super) columns: String,
}

/// What a column is read for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role<'a> {
    Id,
    Content(&'a Content),
    FurtherText,
    Sketch,
    Preference,
    Source,
    /// It goes along to decisions, with values of this type.
    Carried(&'a DataType),
}

impl FoundColumns {
    /// The columns to read, each with its role: first the id, if there is one. A column with several roles is read once, in
    /// the first of them.
    pub(super) fn roles(&self) -> Vec<(&str, Role<'_>)> {
        let id = self.id.as_deref().map(|name| (name, Role::Id));
        let content = self.content.as_ref();
        let content = content.map(|content| (content.column(), Role::Content(content)));
        let further = self.further_texts.iter();
        let further = further.map(|name| (&**name, Role::FurtherText));
        let sketch = self.sketches.then_some((SKETCH, Role::Sketch));
        let preference = self.prefer.columns().map(|name| (name, Role::Preference));
        let source = self
            .source
            .as_ref()
            .map(|(name, _)| (&**name, Role::Source));
        let carried = self.carried.iter();
        let carried = carried.map(|column| (&*column.name, Role::Carried(&column.data_type)));
        let mut roles: Vec<(&str, Role<'_>)> = Vec::new();
        for (name, role) in id
            .into_iter()
            .chain(content)
            .chain(further)
            .chain(sketch)
            .chain(preference)
            .chain(source)
            .chain(carried)
        {
            if roles.iter().all(|(other, _)| *other != name) {
                roles.push((name, role));
            }
        }
        roles
    }

    /// A column to read whose name several of the file's `names` are.
    pub(super) fn repeated(&self, names: &[&str]) -> Option<&str> {
        let mut read = self.names().into_iter();
        read.find(|column| names.iter().filter(|name| *name == column).count() > 1)
    }

    /// The names of the columns to read, in the order of [`Self::roles`].
    pub(super) fn names(&self) -> Vec<&str> {
        self.roles().into_iter().map(|(name, _)| name).collect()
    }
}

impl Columns {
    /// The names of the columns that are read of a file whose columns are `names`: id, content, the sketch beside it,
    /// preference, and carried columns. `None` if one that is needed is missing; the error of reading the file says which.
    pub fn names_read(&self, names: &[&str]) -> Option<Vec<String>> {
        let found = FoundColumns {
            sketches: names.contains(&SKETCH),
            ..self.find("", names).ok()?
        };
        Some(found.names().into_iter().map(str::to_owned).collect())
    }

    pub(super) fn charset(&self) -> Option<&'static Encoding> {
        Encoding::for_label(self.charset.as_ref()?.as_bytes())
    }

    /// The names of columns, or paths, that these columns have, whether a file has them or not.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        let Remembered { id, text, source } = &self.remembered;
        let one = [
            &self.id,
            &self.fingerprint,
            &self.source,
            source,
            id,
            &self.text,
            text,
        ];
        let one = one.into_iter().flatten().map(String::as_str);
        let several = cut_names(self.text.as_deref(), &[]);
        let several = several.into_iter().chain(cut_names(text.as_deref(), &[]));
        one.chain(several).chain(self.optional())
    }

    /// The names of columns that a document may lack.
    pub(super) fn optional(&self) -> impl Iterator<Item = &str> {
        let carried = self.carried.iter().map(String::as_str);
        let named = self.prefer.columns().chain(self.source.as_deref());
        named.chain(carried)
    }

    /// With the names that the archive remembers in place of those that no option says, where `names`, those of a file, have them.
    fn with_remembered(&self, names: &[&str]) -> Self {
        let Remembered { id, text, source } = &self.remembered;
        let has = |name: &&String| {
            cut_names(Some(name), names)
                .iter()
                .all(|one| names.contains(one))
        };
        // Fingerprints that an option names are read instead of texts.
        let text = text.as_ref().filter(|_| self.fingerprint.is_none());
        Self {
            id: self.id.clone().or(id.as_ref().filter(has).cloned()),
            text: self.text.clone().or(text.filter(has).cloned()),
            source: self.source.clone().or(source.as_ref().filter(has).cloned()),
            remembered: Remembered::default(),
            ..self.clone()
        }
    }

    /// Finds the columns among a file's `names`. Texts win over ready fingerprints unless these are asked for.
    pub(super) fn find(&self, object: &str, names: &[&str]) -> Result<FoundColumns> {
        if self.remembered != Remembered::default() {
            return self.with_remembered(names).find(object, names);
        }
        let missing = |what: &str, sought: &str, option: &str| {
            let remedy = match (self.without_options, option) {
                (true, _) => "; only these names are found".to_owned(),
                (false, "--prefer") => {
                    let hint = self.prefer.hint(|name| !names.contains(&name));
                    format!(", which --prefer names{hint}")
                }
                (false, "--source") => ", which --source names".to_owned(),
                (false, _) => format!("; name it by {option}"),
            };
            let columns = listed(names);
            let reason = format!("no {what} column ({sought}){remedy}; its columns are {columns}");
            DocumentsError::bad_data(object, reason)
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
        let (mut further_texts, mut other_texts) = (Vec::new(), Vec::new());
        let mut are_guessed = false;
        let content = if let Some(name) = &self.fingerprint {
            let is_there = names.contains(&name.as_str());
            let found = is_there.then(|| Content::Fingerprint(name.clone()));
            found.ok_or_else(|| missing("fingerprint", name, "--fingerprint-column"))?
        } else if self.text.is_none()
            && !self.texts_only
            && names.contains(&FINGERPRINT)
            // What is only called so may be anything.
            && !TEXT_NAMES.iter().any(|name| names.contains(name))
        {
            let mut others = names.iter().filter(|name| id.as_deref() != Some(name));
            are_guessed = others.any(|name| self.may_have_texts(name));
            Content::Fingerprint(FINGERPRINT.to_owned())
        } else {
            let mut asked = cut_names(self.text.as_deref(), names);
            let are_there = asked.iter().all(|name| names.contains(name));
            let asked_for = (!asked.is_empty()).then(|| asked.remove(0).to_owned());
            further_texts = asked.into_iter().map(str::to_owned).collect();
            if asked_for.is_none() {
                let known = TEXT_NAMES.into_iter().filter(|name| names.contains(name));
                other_texts = known.skip(1).collect();
            }
            let text = pick(&asked_for, &TEXT_NAMES)
                .filter(|_| are_there)
                .ok_or_else(|| {
                    let sought = sought(&self.text, &TEXT_NAMES);
                    if self.texts_only {
                        return missing("text", &sought, "--text-column");
                    }
                    missing(
                        "text or fingerprint",
                        &format!("{sought}, or {FINGERPRINT}"),
                        "--text-column or --fingerprint-column",
                    )
                })?;
            Content::Text(text)
        };
        let prefer = self.prefer.with_columns(names);
        let prefer = prefer.map_err(|sought| missing("time", &sought, "--prefer"))?;
        if let Some(name) = prefer.columns().find(|name| !names.contains(name)) {
            return Err(missing("preference", name, "--prefer"));
        }
        let source = match &self.source {
            _ if !self.with_sources => None,
            Some(name) if !names.contains(&&**name) => {
                return Err(missing("source", name, "--source"));
            }
            Some(name) => Some((name.clone(), Says::Sources)),
            None => {
                let known = URL_NAMES.into_iter().find(|name| names.contains(name));
                known.map(|name| (name.to_owned(), Says::Urls))
            }
        };
        let is_missing = |name: &&String| !names.contains(&name.as_str());
        if let Some(name) = self.carried.iter().find(is_missing) {
            let columns = listed(names);
            let reason =
                format!("no column {name:?}, which --columns names; its columns are {columns}");
            return Err(DocumentsError::bad_data(object, reason));
        }
        let carried = self.carried.iter().map(|name| CarriedColumn {
            name: name.clone(),
            data_type: DataType::Utf8,
        });
        Ok(FoundColumns {
            id,
            content: Some(content),
            carried: carried.collect(),
            source,
            domains: self.domains,
            other_texts,
            are_guessed,
            further_texts,
            charset: self.charset(),
            pages: self.pages,
            crawl: self.crawl.clone(),
            prefer,
            ..FoundColumns::default()
        })
    }
}

/// One name, or the names that commas separate; `names` are those of the file, which may have commas.
fn cut_names<'a>(given: Option<&'a str>, names: &[&str]) -> Vec<&'a str> {
    match given {
        None => Vec::new(),
        Some(given) if names.contains(&given) => vec![given],
        Some(given) => given.split(',').map(str::trim).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(columns: &Columns, names: &[&str]) -> Result<(String, Content), String> {
        columns
            .find("x", names)
            .map(|found| (found.id.unwrap_or_default(), found.content.unwrap()))
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
        let ready = Ok(("id".to_owned(), Content::Fingerprint("fp".into())));
        assert_eq!(find(&none, &["id", "fp", "title"]), ready);
        assert_eq!(find(&none, &["id", "fp", "text"]), text("id", "text"));
        let asked = Columns {
            fingerprint: Some("fp".into()),
            ..Columns::default()
        };
        assert_eq!(find(&asked, &["id", "fp", "text"]), ready);
    }

    #[test]
    fn the_names_read_are_those_of_the_columns_found() {
        let names = ["id", "fp", "sketch", "rank", "other"];
        let read = |columns: &Columns| columns.names_read(&names);
        let expected = |names: &[&str]| -> Option<Vec<String>> {
            Some(names.iter().map(|name| (*name).to_owned()).collect())
        };
        let mut columns = Columns::default();
        assert_eq!(read(&columns), expected(&["id", "fp", "sketch"]));
        columns.text = Some("other".into());
        columns.prefer = Prefer::parse("rank:desc", |_| unreachable!()).unwrap();
        assert_eq!(read(&columns), expected(&["id", "other", "sketch", "rank"]));
        // A column with several roles is read once.
        columns.carried = vec!["other".into(), "rank".into(), "id".into()];
        assert_eq!(read(&columns), expected(&["id", "other", "sketch", "rank"]));
        columns.carried = vec!["none".into()];
        assert_eq!(read(&columns), None);
        columns.carried.clear();
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
        let asked = Columns {
            carried: vec!["id".into(), "uri".into()],
            ..Columns::default()
        };
        assert_eq!(
            find(&asked, &["id", "text"]).unwrap_err(),
            "x: no column \"uri\", which --columns names; its columns are id, text"
        );
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
