//! How many records of WARC files are documents, and why the others are not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warc::Counts;

/// The most reasons, and the most media types, that are counted one by one: files may have any.
const MAX_NAMES: usize = 100;
/// The name under which the others are counted.
const OTHER: &str = "other";

/// How many records of a batch's WARC files are documents, and how many are not, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlRecordCounts {
    pub documents: u64,
    /// Documents whose text is incomplete: the crawler cut them off, or their record or body is cut off or damaged.
    #[serde(default)]
    pub incomplete: u64,
    /// Documents with bytes that their charset does not have; these became replacement characters.
    #[serde(default)]
    pub malformed: u64,
    /// Records that are not read, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Responses that are not read because of their status, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Records that are not text, by media type.
    pub media_types: BTreeMap<String, u64>,
}

impl From<&Counts> for CrawlRecordCounts {
    fn from(counts: &Counts) -> Self {
        let skipped = counts.skipped.iter();
        Self {
            documents: counts.documents,
            incomplete: counts.incomplete,
            malformed: counts.malformed,
            skipped: skipped
                .map(|(name, records)| ((*name).to_owned(), *records))
                .collect(),
            statuses: counts.statuses.clone(),
            media_types: counts.media_types(),
        }
    }
}

impl CrawlRecordCounts {
    pub fn add(&mut self, other: &Self) {
        self.documents = self.documents.saturating_add(other.documents);
        self.incomplete = self.incomplete.saturating_add(other.incomplete);
        self.malformed = self.malformed.saturating_add(other.malformed);
        add_names(&mut self.skipped, &other.skipped);
        for (status, records) in &other.statuses {
            let sum = self.statuses.entry(*status).or_default();
            *sum = sum.saturating_add(*records);
        }
        add_names(&mut self.media_types, &other.media_types);
    }
}

/// Adds numbers by name; beyond [`MAX_NAMES`] names, under [`OTHER`].
fn add_names(sums: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, records) in more {
        let is_counted = sums.len() < MAX_NAMES || sums.contains_key(name);
        let name = if is_counted { name.as_str() } else { OTHER };
        let sum = sums.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(*records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(media_types: &[(&str, u64)]) -> CrawlRecordCounts {
        let owned = media_types
            .iter()
            .map(|(name, number)| ((*name).to_owned(), *number));
        CrawlRecordCounts {
            documents: 2,
            incomplete: 1,
            malformed: 0,
            skipped: BTreeMap::from([("not text".to_owned(), 3)]),
            statuses: BTreeMap::from([(404, 1)]),
            media_types: owned.collect(),
        }
    }

    #[test]
    fn counts_add_up() {
        let mut sum = counts(&[("image/png", 2), ("font/ttf", 1)]);
        sum.add(&counts(&[("image/png", 3)]));
        assert_eq!((sum.documents, sum.skipped["not text"]), (4, 6));
        assert_eq!((sum.statuses[&404], sum.media_types["image/png"]), (2, 5));
        assert_eq!(sum.incomplete, 2);
        let json = serde_json::to_string(&sum).unwrap();
        let read: CrawlRecordCounts = serde_json::from_str(&json).unwrap();
        assert_eq!(read, sum);
    }

    #[test]
    fn any_counts_are_added() {
        let mut sum = CrawlRecordCounts::default();
        for number in 0..1_000 {
            let name = format!("type/{number}");
            sum.add(&counts(&[(name.as_str(), 1)]));
        }
        assert_eq!(sum.media_types.len(), MAX_NAMES + 1);
        assert_eq!(sum.media_types[OTHER], 1_000 - MAX_NAMES as u64);
        sum.documents = u64::MAX;
        sum.add(&counts(&[(OTHER, u64::MAX)]));
        assert_eq!(
            (sum.documents, sum.media_types[OTHER]),
            (u64::MAX, u64::MAX)
        );
    }
}
