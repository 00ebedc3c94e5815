//! How many records of WARC files are documents, and why the others are not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warc::{Broken, Document, Reason};

/// The most reasons, and the most media types, that are counted one by one: files may have any.
const MAX_NAMES: usize = 100;
/// A longer media type is not counted by its name.
const MAX_NAME_LENGTH: usize = 100;
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
    /// Responses that are not read because of their status, by status. Redirects are not among them.
    pub statuses: BTreeMap<u16, u64>,
    /// Records that are not text, by media type, in lower case.
    pub media_types: BTreeMap<String, u64>,
}

impl CrawlRecordCounts {
    /// Counts a record: its document, or why it has none.
    pub fn count(&mut self, record: &Result<Document<'_>, Reason<'_>>) {
        match record {
            Ok(document) => {
                self.documents += 1;
                self.incomplete += u64::from(document.is_incomplete);
                self.malformed += u64::from(document.is_malformed);
            }
            Err(reason) => self.count_skipped(reason),
        }
    }

    /// Counts a part of a file that cannot be read.
    pub fn count_broken(&mut self, broken: Broken) {
        self.count_skipped(&Reason::Broken(broken.fault));
    }

    fn count_skipped(&mut self, reason: &Reason<'_>) {
        add_name(&mut self.skipped, reason.name(), 1);
        match reason {
            Reason::Status(status) => *self.statuses.entry(*status).or_default() += 1,
            Reason::NotText(name) if name.is_empty() || name.len() > MAX_NAME_LENGTH => {
                add_name(&mut self.media_types, OTHER, 1);
            }
            // Most are in lower case, and counted before.
            Reason::NotText(name) => match self.media_types.get_mut(*name) {
                Some(sum) => *sum += 1,
                None => add_name(&mut self.media_types, &name.to_ascii_lowercase(), 1),
            },
            _ => {}
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.documents = self.documents.saturating_add(other.documents);
        self.incomplete = self.incomplete.saturating_add(other.incomplete);
        self.malformed = self.malformed.saturating_add(other.malformed);
        for (name, records) in &other.skipped {
            add_name(&mut self.skipped, name, *records);
        }
        for (status, records) in &other.statuses {
            let sum = self.statuses.entry(*status).or_default();
            *sum = sum.saturating_add(*records);
        }
        for (name, records) in &other.media_types {
            add_name(&mut self.media_types, name, *records);
        }
    }
}

/// Adds to the number of a name; beyond [`MAX_NAMES`] names, to that of [`OTHER`].
fn add_name(sums: &mut BTreeMap<String, u64>, name: &str, records: u64) {
    let is_counted = sums.len() < MAX_NAMES || sums.contains_key(name);
    let name = if is_counted { name } else { OTHER };
    match sums.get_mut(name) {
        Some(sum) => *sum = sum.saturating_add(records),
        None => {
            sums.insert(name.to_owned(), records);
        }
    }
}

#[cfg(test)]
mod tests {
    use warc::{Fault, Place};

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

    fn counts_of(reasons: &[Reason<'_>]) -> CrawlRecordCounts {
        let mut counts = CrawlRecordCounts::default();
        for reason in reasons {
            counts.count(&Err(*reason));
        }
        counts
    }

    #[test]
    fn records_are_counted_by_reason() {
        let mut all = counts_of(&[
            Reason::Redirect,
            Reason::NotText("image/png"),
            Reason::NotText("Image/PNG"),
            Reason::NotText("application/pdf"),
            Reason::NotText(""),
            Reason::Status(404),
            Reason::Status(500),
            Reason::Status(404),
            Reason::NotText("application/PDF"),
            Reason::NotText("application/pdf"),
            Reason::Warcinfo,
        ]);
        all.count_broken(Broken {
            place: Place {
                offset: 7,
                decompressed: 0,
            },
            fault: Fault::Damaged,
        });
        assert_eq!(all.documents, 0);
        let skipped = [
            ("damaged compression", 1),
            ("not text", 6),
            ("other status", 3),
            ("redirect", 1),
            ("warcinfo", 1),
        ];
        let owned = |(name, records): (&str, u64)| (name.to_owned(), records);
        assert_eq!(all.skipped, BTreeMap::from(skipped.map(owned)));
        assert_eq!(all.statuses, BTreeMap::from([(404, 2), (500, 1)]));
        let media_types = [("application/pdf", 3), ("image/png", 2), ("other", 1)];
        assert_eq!(all.media_types, BTreeMap::from(media_types.map(owned)));
    }

    #[test]
    fn the_number_of_media_types_is_bounded() {
        let types: Vec<String> = (0..1_000).map(|n| format!("image/{n}")).collect();
        let mut reasons: Vec<Reason<'_>> = types.iter().map(|name| Reason::NotText(name)).collect();
        let long = "x".repeat(MAX_NAME_LENGTH + 1);
        reasons.push(Reason::NotText(&long));
        reasons.push(Reason::NotText("image/7"));
        reasons.push(Reason::NotText("IMAGE/7"));
        let all = counts_of(&reasons);
        let media_types = &all.media_types;
        assert_eq!(media_types.len(), MAX_NAMES + 1);
        assert_eq!((media_types["image/7"], media_types[OTHER]), (3, 901));
        assert_eq!(all.skipped["not text"], 1_003);
    }
}
