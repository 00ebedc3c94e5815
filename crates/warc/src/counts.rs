//! [`Counts`]: how many records of files are documents, and why the others are not.

use std::collections::BTreeMap;

use crate::documents::Outcome;
use crate::fault::Broken;
use crate::reason::Reason;

/// The most media types that are counted one by one.
const MAX_TYPES: usize = 100;
/// A longer media type is not counted by its name.
const MAX_TYPE_LENGTH: usize = 100;

/// How many records are documents, and how many are not, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub documents: u64,
    /// The number of documents with [incomplete](crate::Document::is_incomplete) text.
    pub incomplete: u64,
    /// The number of documents with [malformed](crate::Document::is_malformed) text.
    pub malformed: u64,
    /// The names of reasons ([`Reason::name`]), and the number of records that are no documents for each.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Statuses that were not chosen, and the number of responses with each. Redirects are not among them.
    pub statuses: BTreeMap<u16, u64>,
    media_types: BTreeMap<String, u64>,
    other_media_types: u64,
}

impl Counts {
    pub fn count(&mut self, outcome: &Outcome<'_>) {
        match outcome {
            Outcome::Document(document) => {
                self.documents += 1;
                self.incomplete += u64::from(document.is_incomplete);
                self.malformed += u64::from(document.is_malformed);
            }
            Outcome::Skipped(reason) => self.count_skipped(reason),
        }
    }

    /// Counts a part of a file that cannot be read.
    pub fn count_broken(&mut self, broken: Broken) {
        self.count_skipped(&Reason::Broken(broken.fault));
    }

    fn count_skipped(&mut self, reason: &Reason<'_>) {
        *self.skipped.entry(reason.name()).or_default() += 1;
        match reason {
            Reason::Status(status) => *self.statuses.entry(*status).or_default() += 1,
            Reason::NotText(media_type) => self.count_media_type(media_type),
            _ => {}
        }
    }

    fn count_media_type(&mut self, media_type: &str) {
        if media_type.is_empty() || media_type.len() > MAX_TYPE_LENGTH {
            self.other_media_types += 1;
            return;
        }
        // Most are in lower case, and counted before.
        if let Some(count) = self.media_types.get_mut(media_type) {
            *count += 1;
            return;
        }
        let media_type = media_type.to_ascii_lowercase();
        let is_full = self.media_types.len() == MAX_TYPES;
        if is_full && !self.media_types.contains_key(&media_type) {
            self.other_media_types += 1;
        } else {
            *self.media_types.entry(media_type).or_default() += 1;
        }
    }

    /// Media types that are no text, in lower case, and the number of records of each. After the first 100 types, further ones
    /// are counted together, as `other`.
    pub fn media_types(&self) -> BTreeMap<String, u64> {
        let mut types = self.media_types.clone();
        if self.other_media_types > 0 {
            types.insert("other".to_owned(), self.other_media_types);
        }
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, Place};

    fn counts(reasons: &[Reason<'_>]) -> Counts {
        let mut counts = Counts::default();
        for reason in reasons {
            counts.count(&Outcome::Skipped(*reason));
        }
        counts
    }

    #[test]
    fn records_are_counted_by_reason() {
        let mut all = counts(&[
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
        let (place, fault) = (Place::at(7), Fault::Damaged);
        all.count_broken(Broken { place, fault });
        assert_eq!(all.documents, 0);
        let skipped = [
            ("damaged compression", 1),
            ("not text", 6),
            ("other status", 3),
            ("redirect", 1),
            ("warcinfo", 1),
        ];
        assert_eq!(all.skipped, BTreeMap::from(skipped));
        assert_eq!(all.statuses, BTreeMap::from([(404, 2), (500, 1)]));
        let media_types = [("application/pdf", 3), ("image/png", 2), ("other", 1)];
        let media_types = media_types.map(|(name, records)| (name.to_owned(), records));
        assert_eq!(all.media_types(), BTreeMap::from(media_types));
    }

    #[test]
    fn the_number_of_media_types_is_bounded() {
        let types: Vec<String> = (0..1_000).map(|n| format!("image/{n}")).collect();
        let mut reasons: Vec<Reason<'_>> = types.iter().map(|name| Reason::NotText(name)).collect();
        let long = "x".repeat(MAX_TYPE_LENGTH + 1);
        reasons.push(Reason::NotText(&long));
        reasons.push(Reason::NotText("image/7"));
        reasons.push(Reason::NotText("IMAGE/7"));
        let all = counts(&reasons);
        let media_types = all.media_types();
        assert_eq!(media_types.len(), MAX_TYPES + 1);
        assert_eq!((media_types["image/7"], media_types["other"]), (3, 901));
        assert_eq!(all.skipped["not text"], 1_003);
    }
}
