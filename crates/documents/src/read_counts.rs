//! Counts and notes of the readers: the records of WARC files by reason, and the documents and files that a reader leaves out, or
//! decodes in another charset than theirs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::crawl_counts::CrawlRecordCounts;

/// The most documents or files of a note that are logged.
const MAX_LOGGED: u64 = 10;

/// What a reader notes about documents or files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Documents without a text: it is null, or its column is missing. They are not compared.
    WithoutText,
    /// Documents whose text is empty, or white space. They are not compared.
    Empty,
    /// Documents whose text is for the most part replacement characters. They are not compared.
    Garbled,
    /// Documents with bytes that their charset does not have, or that declare UTF-8 and are not.
    Malformed,
    /// Records of WARC files that are damaged or split, or whose content cannot be decoded. They are not compared.
    DamagedRecords,
    /// Files that are in another encoding than UTF-8, which they do not say.
    OtherCharset,
    /// Hidden files and directories, and those by which jobs mark what they did. They are not read.
    HiddenFiles,
    /// Files whose names' endings are of no format. They are not read.
    OtherEndings,
    /// Files whose paths are not UTF-8, or have empty parts, `.`, `..` or control characters. They are not read.
    UnreadableNames,
    /// Files that are about the records beside them. They are not read.
    BesideRecords,
    /// Pipes, devices and sockets in folders. They are not read.
    NoFiles,
}

impl Note {
    /// Whether these documents or files are missing from the comparison, so that `--strict` refuses the batch.
    pub fn is_not_compared(self) -> bool {
        !matches!(
            self,
            Self::Malformed | Self::OtherCharset | Self::HiddenFiles
        )
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithoutText => "documents without text",
            Self::Empty => "documents with an empty text",
            Self::Garbled => "documents of replacement characters",
            Self::Malformed => "documents with bytes that their charset does not have",
            Self::DamagedRecords => "damaged records",
            Self::OtherCharset => "files read in another charset than UTF-8",
            Self::HiddenFiles => "hidden files",
            Self::OtherEndings => "files of no known format, by the endings of their names",
            Self::UnreadableNames => {
                "files whose names are not UTF-8, or have empty parts, dots or control characters"
            }
            Self::NoFiles => "pipes and devices",
            Self::BesideRecords => "files of text or JSON beside files of records",
        })
    }
}

/// How many documents or files a note is about, and the first of the files by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// Documents, or files.
    pub number: u64,
    pub first: String,
}

/// Notes on documents and files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notes(BTreeMap<Note, Noted>);

impl Notes {
    /// Adds `number` documents of `file` to those of a note; or `number` files, the first of which is `file`.
    pub fn add(&mut self, note: Note, number: u64, file: &str) {
        if number == 0 {
            return;
        }
        let noted = self.0.entry(note).or_insert_with(|| Noted {
            number: 0,
            first: file.to_owned(),
        });
        noted.number = noted.number.saturating_add(number);
        if file < noted.first.as_str() {
            noted.first = file.to_owned();
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        for (note, noted) in &other.0 {
            self.add(*note, noted.number, &noted.first);
        }
    }

    /// The number of documents or files of a note.
    pub fn number(&self, note: Note) -> u64 {
        self.0.get(&note).map_or(0, |noted| noted.number)
    }

    /// The notes, in the order of [`Note`].
    pub fn iter(&self) -> impl Iterator<Item = (Note, &Noted)> {
        self.0.iter().map(|(note, noted)| (*note, noted))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What was counted in the files of a batch, or of a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCounts {
    /// The records of WARC files; `None` without such files.
    pub crawl_records: Option<CrawlRecordCounts>,
    /// Notes on documents and files.
    pub notes: Notes,
}

impl ReadCounts {
    /// Adds the counts of other files.
    pub fn add(&mut self, other: &Self) {
        if let Some(records) = &other.crawl_records {
            self.crawl_records.get_or_insert_default().add(records);
        }
        self.notes.add_all(&other.notes);
    }
}

/// [`ReadCounts`] that tasks share.
#[derive(Debug, Default)]
pub struct ReadCounters(Mutex<ReadCounts>);

impl ReadCounters {
    /// Adds the records of a WARC file, or of a part of it.
    pub fn add_records(&self, records: &CrawlRecordCounts) {
        self.change(|sum| sum.crawl_records.get_or_insert_default().add(records));
    }

    /// Adds `number` documents of `file` to those of a note.
    pub fn note(&self, note: Note, number: u64, file: &str) {
        self.change(|sum| sum.notes.add(note, number, file));
    }

    /// Adds one document or file to those of a note, and logs `what` is wrong with it, for the first [`MAX_LOGGED`].
    pub fn warn(&self, note: Note, file: &str, what: &str) {
        let number = self.change(|sum| {
            sum.notes.add(note, 1, file);
            sum.notes.number(note)
        });
        if number <= MAX_LOGGED {
            tracing::warn!("{file}: {what}");
        }
    }

    pub fn add(&self, counts: &ReadCounts) {
        self.change(|sum| sum.add(counts));
    }

    /// The counts so far.
    pub fn counts(&self) -> ReadCounts {
        self.change(|sum| sum.clone())
    }

    fn change<T>(&self, change: impl FnOnce(&mut ReadCounts) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_same_in_any_order() {
        let counts = |file: &str, documents| {
            let mut notes = Notes::default();
            notes.add(Note::WithoutText, documents, file);
            notes.add(Note::Garbled, 0, file);
            ReadCounts {
                crawl_records: None,
                notes,
            }
        };
        let all = [counts("b", 2), counts("a", 1), counts("c", 3)];
        let sum = |order: [usize; 3]| {
            let counters = ReadCounters::default();
            order.iter().for_each(|&at| counters.add(&all[at]));
            counters.counts()
        };
        let expected = sum([0, 1, 2]);
        for order in [[2, 1, 0], [1, 0, 2]] {
            assert_eq!(sum(order), expected);
        }
        let found: Vec<_> = expected.notes.iter().collect();
        let first = "a".to_owned();
        assert_eq!(found, [(Note::WithoutText, &Noted { number: 6, first })]);
        let json = serde_json::to_string(&expected).unwrap();
        assert_eq!(serde_json::from_str::<ReadCounts>(&json).unwrap(), expected);
    }
}
