//! How many records of WARC files are documents, and why the others are not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use warc::Counts;

/// The counts of one file, which its readers share. Each reader that reaches the end of the file replaces them.
#[derive(Debug, Clone, Default)]
pub(super) struct FileCounts(Arc<Mutex<Option<Counts>>>);

impl FileCounts {
    pub(super) fn set(&self, counts: Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
    }

    /// The counts; `None` until a reader has read the whole file.
    pub(super) fn get(&self) -> Option<Counts> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// How many records of a batch's WARC files are documents, and how many are not, by reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CrawlRecordCounts {
    /// Records that are documents.
    pub documents: u64,
    /// Records that are not read, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Responses that are not read because of their status, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Records that are not text, by media type.
    pub media_types: BTreeMap<String, u64>,
}

impl CrawlRecordCounts {
    /// The sum of the counts of files; `None` if there are none.
    pub(super) fn sum(files: impl Iterator<Item = Counts>) -> Option<Self> {
        let sum = files.reduce(|mut sum, file| {
            sum.add(&file);
            sum
        })?;
        let names = |counts: Vec<(&str, u64)>| {
            let owned = counts.into_iter();
            owned
                .map(|(name, records)| (name.to_owned(), records))
                .collect()
        };
        Some(Self {
            documents: sum.documents(),
            skipped: names(sum.all_skipped()),
            statuses: sum.statuses().into_iter().collect(),
            media_types: names(sum.media_types()),
        })
    }
}

/// `7 documents; not read: 3 redirect, 1 truncated`.
impl fmt::Display for CrawlRecordCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} documents", self.documents)?;
        let mut skipped: Vec<_> = self.skipped.iter().collect();
        skipped.sort_by_key(|(_, records)| std::cmp::Reverse(**records));
        for (number, (name, records)) in skipped.into_iter().enumerate() {
            f.write_str(if number == 0 { "; not read: " } else { ", " })?;
            write!(f, "{records} {name}")?;
        }
        Ok(())
    }
}
