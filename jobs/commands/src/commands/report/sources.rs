//! Counts which sources repeat each other. A document's source is its host, if the decisions have a column `host` or `url`.
//! Otherwise it is the host if its id is a URL, or else the part of the id before the first slash or colon.

use std::borrow::Cow;
use std::collections::HashMap;

use documents::{source_of_site, source_of_url};
use engine::output::ReadRow;
use engine::template::SourceWords;
use simhash::hash::murmur3_low64;

/// The most sources in the matrix.
const MOST_SOURCES: usize = 10;
/// The most sources that are counted; any further source counts as unknown. If the ids have more
/// different prefixes than this, the prefixes are no sources.
const MOST_NAMES: usize = 100_000;

/// Pairs by the sources of their documents.
#[derive(Debug, Default)]
pub(super) struct Sources {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    pairs: HashMap<(u32, u32), u64>,
}

/// The sources with most pairs, and the pairs between them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) names: Vec<String>,
    /// Pairs by the source of the document of the batch, then by that of the other one.
    pub(super) pairs: Vec<Vec<u64>>,
    /// Pairs with a source that is not in the matrix.
    pub(super) others: u64,
}

/// Duplicates by the sources of their documents, as the decisions' column `host` or `url` says them. The rows are read twice:
/// the kept document of a duplicate may come behind it.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub(super) sources: Sources,
    /// The sources of the kept documents that have duplicates, by the hashes of their ids.
    kept: HashMap<u64, u32>,
    /// Whether a row of the first pass has a host or a URL.
    pub(super) are_known: bool,
    /// The documents of each source, and those that are dropped.
    losses: HashMap<u32, (u64, u64)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) source: String,
    pub(super) documents: u64,
    pub(super) dropped: u64,
    /// Words of its documents, or of those of its domain, if an archive's templates were looked up.
    pub(super) words: Option<SourceWords>,
}

impl Sites {
    /// Adds a row of the first pass.
    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        let Some(site) = row.site else { return };
        self.are_known = true;
        let number = self
            .sources
            .number(&source_of_site(site).unwrap_or_default());
        let (documents, dropped) = self.losses.entry(number).or_default();
        *documents += 1;
        *dropped += u64::from(row.pair.is_some());
        if row.pair.is_none() && row.group_size.is_some_and(|size| size > 1) {
            self.kept.insert(id_hash(row.id), number);
        }
    }

    /// Adds a row of the second pass. Of a kept document in the archive, only the id is known.
    pub(super) fn add_again(&mut self, row: &ReadRow<'_>) {
        let Some(pair) = row.pair else { return };
        let new = row.site.and_then(source_of_site).unwrap_or_default();
        let new = self.sources.number(&new);
        let kept = self.kept.get(&id_hash(pair.base_id)).copied();
        let kept = kept.unwrap_or_else(|| self.sources.number(&source(pair.base_id)));
        self.sources.add_pair(new, kept);
    }

    /// The sources that lose most documents.
    pub(super) fn losses(&self) -> Vec<Loss> {
        let losses = self
            .losses
            .iter()
            .map(|(number, (documents, dropped))| Loss {
                source: self.sources.names[*number as usize].to_string(),
                documents: *documents,
                dropped: *dropped,
                words: None,
            });
        let named = |loss: &Loss| loss.dropped > 0 && !loss.source.is_empty();
        let mut losses: Vec<Loss> = losses.filter(named).collect();
        losses.sort_by(|a, b| (b.dropped, &a.source).cmp(&(a.dropped, &b.source)));
        losses.truncate(MOST_SOURCES);
        losses
    }
}

fn id_hash(id: &str) -> u64 {
    murmur3_low64(id.as_bytes(), 0)
}

impl Sources {
    pub(super) fn add(&mut self, new_id: &str, base_id: &str) {
        let (new, base) = (self.number(&source(new_id)), self.number(&source(base_id)));
        self.add_pair(new, base);
    }

    fn add_pair(&mut self, new: u32, base: u32) {
        *self.pairs.entry((new, base)).or_default() += 1;
    }

    fn number(&mut self, source: &str) -> u32 {
        let is_counted = self.names.len() < MOST_NAMES || self.numbers.contains_key(source);
        let source = if is_counted { source } else { "" };
        if let Some(&number) = self.numbers.get(source) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(source.into());
        self.numbers.insert(source.into(), number);
        number
    }

    /// The sources with most pairs; `None` if there are none with a name.
    pub(super) fn matrix(&self) -> Option<Matrix> {
        let mut totals = vec![0_u64; self.names.len()];
        for ((one, other), pairs) in &self.pairs {
            totals[*one as usize] += pairs;
            if one != other {
                totals[*other as usize] += pairs;
            }
        }
        let mut order: Vec<u32> = (0..self.names.len() as u32).collect();
        order.retain(|number| !self.names[*number as usize].is_empty());
        order.sort_unstable_by_key(|number| {
            let at = *number as usize;
            (std::cmp::Reverse(totals[at]), &self.names[at])
        });
        order.truncate(MOST_SOURCES);
        if order.is_empty() {
            return None;
        }
        let of = |one: u32, other: u32| self.pairs.get(&(one, other)).copied().unwrap_or(0);
        let pairs: Vec<Vec<u64>> = order
            .iter()
            .map(|one| order.iter().map(|other| of(*one, *other)).collect())
            .collect();
        let shown: u64 = pairs.iter().flatten().sum();
        Some(Matrix {
            names: order
                .iter()
                .map(|number| self.names[*number as usize].to_string())
                .collect(),
            pairs,
            others: self.pairs.values().sum::<u64>() - shown,
        })
    }
}

/// The source that the host or the URL of a row says, or else its id; empty if they say none.
pub(in crate::commands) fn source_of_row<'a>(row: &ReadRow<'a>) -> Cow<'a, str> {
    let site = row.site.and_then(source_of_site);
    site.unwrap_or_else(|| source(row.id))
}

/// The source that a document's id names; empty if it names none.
fn source(id: &str) -> Cow<'_, str> {
    if id.contains("://") {
        return source_of_url(id).unwrap_or_default();
    }
    // The ids of records in WARC files.
    if id.starts_with("urn:") {
        return "".into();
    }
    match id.find(['/', ':']) {
        Some(end) => id[..end].into(),
        None => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use engine::output::ReadPair;

    use super::*;

    #[test]
    fn ids_say_their_source() {
        for (id, expected) in [
            ("https://www.example.com/a/b?c", "example.com"),
            ("http://user@h.example:8080/", "h.example"),
            ("pages.jsonl:17", "pages.jsonl"),
            ("ps/module/page", "ps"),
            ("17", ""),
            ("", ""),
            ("/a", ""),
            ("urn:uuid:6a4f", ""),
        ] {
            assert_eq!(source(id), expected, "{id}");
        }
    }

    #[test]
    fn hosts_of_the_decisions_are_sources() {
        let row = |id, of: Option<&'static str>, site| ReadRow {
            id,
            pair: of.map(|base_id| ReadPair {
                base_id,
                distance: 0,
                base_day: None,
                similarity: None,
            }),
            group_size: Some(2),
            site,
        };
        let rows = [
            row("1", Some("3"), Some("a.example")),
            row("2", Some("https://c.example/"), Some("a.example")),
            row("3", None, Some("www.b.example")),
            row("4", Some("urn:uuid:1"), None),
        ];
        let mut sites = Sites::default();
        rows.iter().for_each(|row| sites.add(row));
        assert!(sites.are_known);
        let loss = Loss {
            source: "a.example".into(),
            documents: 2,
            dropped: 2,
            words: None,
        };
        assert_eq!(sites.losses(), [loss]);
        rows.iter().for_each(|row| sites.add_again(row));
        let matrix = sites.sources.matrix().unwrap();
        assert_eq!(matrix.names, ["a.example", "b.example", "c.example"]);
        assert_eq!(matrix.pairs, [[0, 1, 1], [0, 0, 0], [0, 0, 0]]);
        assert_eq!(matrix.others, 1);
        let mut unknown = Sites::default();
        unknown.add(&row("1", None, None));
        assert!(!unknown.are_known);
    }

    #[test]
    fn the_matrix_has_the_sources_with_most_pairs() {
        let mut sources = Sources::default();
        for _ in 0..3 {
            sources.add("b/1", "a/1");
        }
        sources.add("a/1", "a/2");
        sources.add("1", "2");
        assert_eq!(
            sources.matrix(),
            Some(Matrix {
                names: vec!["a".into(), "b".into()],
                pairs: vec![vec![1, 0], vec![3, 0]],
                others: 1,
            })
        );
        assert_eq!(Sources::default().matrix(), None);
    }
}
