//! Which columns are read of the files of a batch, for people to check.

use std::fmt;

use archive::schema::{DAY, FINGERPRINT, SKETCH};
use serde::Serialize;

use super::Documents;
use super::columns::{Columns, Content, Says};
use super::file::InputFile;
use crate::error::Result;

/// Columns that are read of some of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnsRead {
    /// The column of ids, or what stands for one.
    pub id: String,
    /// The columns of texts, joined by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The column of ready fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How many files these are.
    pub files: u64,
}

impl ColumnsRead {
    fn of_file(file: &InputFile) -> Self {
        let columns = &file.columns;
        let (mut text, mut fingerprint) = (None, None);
        match &columns.content {
            Some(Content::Text(first)) => {
                let names = [first].into_iter().chain(&columns.further_texts);
                text = Some(names.map(String::as_str).collect::<Vec<_>>().join(","));
            }
            Some(Content::Fingerprint(name)) => fingerprint = Some(name.clone()),
            None => {}
        }
        let id = match (&columns.id, columns.is_one_document) {
            (Some(name), _) => name.clone(),
            (None, true) => "path of the file".into(),
            (None, false) => "file and row".into(),
        };
        let source = columns.source.as_ref().map(|(name, says)| match says {
            Says::Urls => format!("host of {name}"),
            Says::Sources | Says::Ids => name.clone(),
        });
        Self {
            id,
            text,
            fingerprint,
            source,
            files: 1,
        }
    }

    fn has_columns_of(&self, other: &Self) -> bool {
        let files = other.files;
        Self {
            files,
            ..self.clone()
        } == *other
    }
}

impl fmt::Display for ColumnsRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id: {}", self.id)?;
        for (what, column) in [
            ("text", &self.text),
            ("fingerprint", &self.fingerprint),
            ("source", &self.source),
        ] {
            if let Some(column) = column {
                write!(f, ", {what}: {column}")?;
            }
        }
        Ok(())
    }
}

impl Columns {
    /// Whether nothing says what a column beside ready fingerprints has, so that it may have the texts.
    pub(super) fn may_have_texts(&self, name: &str) -> bool {
        // Who names columns knows them.
        let are_known = self.prefer.columns().next().is_some()
            || self.source.is_some()
            || !self.carried.is_empty();
        !are_known && ![FINGERPRINT, SKETCH, DAY].contains(&name)
    }
}

impl Documents {
    /// The columns that are read; several if files have others, those of the most files first.
    pub fn columns_read(&self) -> Vec<ColumnsRead> {
        let mut found: Vec<ColumnsRead> = Vec::new();
        for file in &self.files {
            let columns = ColumnsRead::of_file(file);
            match found.iter_mut().find(|other| columns.has_columns_of(other)) {
                Some(other) => other.files += 1,
                None => found.push(columns),
            }
        }
        // The order of equal ones stays that of the files.
        found.sort_by_key(|columns| std::cmp::Reverse(columns.files));
        found
    }

    /// Refuses a file with several columns that may be that of the texts, unless an option names it.
    pub(super) fn refuse_other_texts(&self) -> Result<()> {
        let mut files = self.files.iter();
        let Some(first) = files.find(|file| !file.columns.other_texts.is_empty()) else {
            return Ok(());
        };
        let content = first.columns.content.as_ref().map_or("", Content::column);
        let others = first.columns.other_texts.join(", ");
        Err(first.bad_data(format!(
            "its column {content} may be that of the texts, and so may {others}: name it by --text-column"
        )))
    }
}
