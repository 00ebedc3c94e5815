//! [`Counts`]: how many records of files are documents, and why the others are not.

use std::collections::BTreeMap;
use std::fmt;

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
    documents: u64,
    incomplete: u64,
    malformed: u64,
    skipped: BTreeMap<&'static str, u64>,
    statuses: BTreeMap<u16, u64>,
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
            Reason::NotText(media_type) => self.count_media_type(media_type, 1),
            _ => {}
        }
    }

    fn count_media_type(&mut self, media_type: &str, records: u64) {
        if media_type.is_empty() || media_type.len() > MAX_TYPE_LENGTH {
            self.other_media_types += records;
            return;
        }
        // Most are in lower case, and counted before.
        if let Some(count) = self.media_types.get_mut(media_type) {
            *count += records;
            return;
        }
        let media_type = media_type.to_ascii_lowercase();
        let is_full = self.media_types.len() == MAX_TYPES;
        if is_full && !self.media_types.contains_key(&media_type) {
            self.other_media_types += records;
        } else {
            *self.media_types.entry(media_type).or_default() += records;
        }
    }

    /// Adds the counts of other files.
    pub fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.incomplete += other.incomplete;
        self.malformed += other.malformed;
        for (name, records) in &other.skipped {
            *self.skipped.entry(*name).or_default() += records;
        }
        for (status, records) in &other.statuses {
            *self.statuses.entry(*status).or_default() += records;
        }
        for (media_type, records) in &other.media_types {
            self.count_media_type(media_type, *records);
        }
        self.other_media_types += other.other_media_types;
    }

    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The number of documents with [incomplete](crate::Document::is_incomplete) text.
    pub fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// The number of documents with [malformed](crate::Document::is_malformed) text.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// The number of records that are no documents for the reason of this name ([`Reason::name`]).
    pub fn skipped(&self, name: &str) -> u64 {
        self.skipped.get(name).copied().unwrap_or(0)
    }

    /// The names of reasons, and the number of records that are no documents for each, most frequent first.
    pub fn all_skipped(&self) -> Vec<(&'static str, u64)> {
        let all = self.skipped.iter().map(|(name, records)| (*name, *records));
        by_frequency(all)
    }

    /// Statuses that were not chosen, and the number of responses with each, most frequent first. Redirects are not among them.
    pub fn statuses(&self) -> Vec<(u16, u64)> {
        let all = self.statuses.iter();
        by_frequency(all.map(|(status, records)| (*status, *records)))
    }

    /// Media types that are no text, in lower case, and the number of records of each, most frequent first. After the first
    /// 100 types, further ones are counted together, as `other`.
    pub fn media_types(&self) -> Vec<(&str, u64)> {
        let all = self.media_types.iter();
        let mut types = by_frequency(all.map(|(name, records)| (name.as_str(), *records)));
        if self.other_media_types > 0 {
            types.push(("other", self.other_media_types));
        }
        types
    }
}

/// Names and numbers, the largest number first; of equal numbers, in the order of the names.
fn by_frequency<T>(all: impl Iterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut all: Vec<(T, u64)> = all.collect();
    all.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    all
}

/// Several lines: the number of documents, and of the records that are none, by reason, with statuses and media types.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} documents", self.documents)?;
        for (name, number) in [
            ("incomplete", self.incomplete),
            ("malformed", self.malformed),
        ] {
            if number > 0 {
                write!(f, "\n{number} of them {name}")?;
            }
        }
        for (name, records) in self.all_skipped() {
            write!(f, "\n{records} {name}")?;
            if name == Reason::Status(0).name() {
                write_each(f, &self.statuses())?;
            } else if name == Reason::NotText("").name() {
                write_each(f, &self.media_types())?;
            }
        }
        Ok(())
    }
}

/// Writes numbers of names, in parentheses.
fn write_each<T: fmt::Display>(f: &mut fmt::Formatter<'_>, all: &[(T, u64)]) -> fmt::Result {
    for (position, (name, number)) in all.iter().enumerate() {
        f.write_str(if position == 0 { " (" } else { ", " })?;
        write!(f, "{name}: {number}")?;
    }
    f.write_str(if all.is_empty() { "" } else { ")" })
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
    fn counts_add_up_and_are_printed() {
        let mut all = counts(&[
            Reason::Redirect,
            Reason::NotText("image/png"),
            Reason::NotText("Image/PNG"),
            Reason::NotText("application/pdf"),
            Reason::NotText(""),
            Reason::Status(404),
        ]);
        let mut more = counts(&[
            Reason::Status(500),
            Reason::Status(404),
            Reason::NotText("application/PDF"),
            Reason::NotText("application/pdf"),
            Reason::Warcinfo,
        ]);
        let (place, fault) = (Place::at(7), Fault::Damaged);
        more.count_broken(Broken { place, fault });
        all.add(&more);
        assert_eq!(all.documents(), 0);
        assert_eq!(all.skipped("not text"), 6);
        assert_eq!(all.skipped("damaged compression"), 1);
        assert_eq!(all.skipped("revisit"), 0);
        assert_eq!(all.statuses(), [(404, 2), (500, 1)]);
        assert_eq!(
            all.to_string(),
            "0 documents\n\
             6 not text (application/pdf: 3, image/png: 2, other: 1)\n\
             3 other status (404: 2, 500: 1)\n\
             1 damaged compression\n\
             1 redirect\n\
             1 warcinfo"
        );
    }

    #[test]
    fn the_number_of_media_types_is_bounded() {
        let types: Vec<String> = (0..1_000).map(|n| format!("image/{n}")).collect();
        let mut reasons: Vec<Reason<'_>> = types.iter().map(|name| Reason::NotText(name)).collect();
        let long = "x".repeat(MAX_TYPE_LENGTH + 1);
        reasons.push(Reason::NotText(&long));
        reasons.push(Reason::NotText("image/7"));
        reasons.push(Reason::NotText("IMAGE/7"));
        let mut all = counts(&reasons);
        assert_eq!(all.media_types().len(), MAX_TYPES + 1);
        assert_eq!(all.media_types()[0], ("image/7", 3));
        assert_eq!(all.media_types()[MAX_TYPES], ("other", 901));
        all.add(&all.clone());
        assert_eq!(all.media_types()[MAX_TYPES], ("other", 1_802));
        assert_eq!(all.skipped("not text"), 2 * 1_003);
    }
}
