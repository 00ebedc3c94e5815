//! Counts which sources repeat each other. A document's source is the host if its id is a URL, or
//! else the part of the id before the first slash or colon.

use std::collections::HashMap;

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

impl Sources {
    pub(super) fn add(&mut self, new_id: &str, base_id: &str) {
        let key = (self.number(new_id), self.number(base_id));
        *self.pairs.entry(key).or_default() += 1;
    }

    fn number(&mut self, id: &str) -> u32 {
        let source = source(id);
        if let Some(&number) = self.numbers.get(source) {
            return number;
        }
        let source = if self.names.len() < MOST_NAMES {
            source
        } else {
            ""
        };
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

/// The source that a document's id names; empty if it names none.
fn source(id: &str) -> &str {
    if let Some((_, rest)) = id.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        return host.strip_prefix("www.").unwrap_or(host);
    }
    match id.find(['/', ':']) {
        Some(end) => &id[..end],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_their_source() {
        for (id, expected) in [
            ("https://www.example.com/a/b?c", "example.com"),
            ("http://user@h.example:8080/", "h.example:8080"),
            ("pages.jsonl:17", "pages.jsonl"),
            ("ps/module/page", "ps"),
            ("17", ""),
            ("", ""),
            ("/a", ""),
        ] {
            assert_eq!(source(id), expected, "{id}");
        }
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
