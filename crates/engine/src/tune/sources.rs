//! Sources whose pages are alike: those of one template.

use std::collections::HashMap;

use serde::Serialize;

/// Pages that differ from another page of their source in fewer words than this.
pub const FEW_WORDS: usize = 30;
/// A source with fewer pages in the sample is not judged.
const LEAST_PAGES: usize = 20;
/// Other pages with which a page is compared.
const MOST_COMPARED: u8 = 5;
/// Stands for the source of a page that has none.
const NONE: u32 = u32::MAX;

/// A source most of whose pages differ in few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AlikeSource {
    pub source: String,
    /// Its pages in the sample.
    pub pages: usize,
    /// Those that differ from another one in fewer words than [`FEW_WORDS`].
    pub alike: usize,
}

/// The sources of a sample's texts, and which of these are alike.
#[derive(Debug, Clone)]
pub(super) struct SourcesOfTexts {
    names: Vec<String>,
    /// The number of each text's source.
    of_text: Vec<u32>,
    is_alike: Vec<bool>,
    compared: Vec<u8>,
}

impl SourcesOfTexts {
    pub(super) fn new(sources: &[Option<String>]) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut names = Vec::new();
        let mut number = |source: &str| {
            names.push(source.to_owned());
            names.len() as u32 - 1
        };
        let of_text = sources.iter().map(|source| match source {
            None => NONE,
            Some(source) => *numbers
                .entry(source)
                .or_insert_with_key(|source| number(source)),
        });
        let of_text: Vec<u32> = of_text.collect();
        Self {
            is_alike: vec![false; of_text.len()],
            compared: vec![0; of_text.len()],
            of_text,
            names,
        }
    }

    /// Compares the pages `a` and `b`, unless that says nothing new.
    pub(super) fn add(&mut self, texts: &[String], a: usize, b: usize) {
        let says_nothing = |at: usize| self.is_alike[at] || self.compared[at] == MOST_COMPARED;
        let is_same = self.of_text[a] == self.of_text[b] && self.of_text[a] != NONE;
        if !is_same || (says_nothing(a) && says_nothing(b)) {
            return;
        }
        for at in [a, b] {
            self.compared[at] = self.compared[at].saturating_add(1).min(MOST_COMPARED);
        }
        if differing_words(&texts[a], &texts[b]) < FEW_WORDS {
            (self.is_alike[a], self.is_alike[b]) = (true, true);
        }
    }

    /// The sources most of whose pages are alike, those with most such pages first.
    pub(super) fn alike(&self) -> Vec<AlikeSource> {
        let mut counts = vec![(0, 0); self.names.len()];
        let pages = self.of_text.iter().zip(&self.is_alike);
        for (source, is_alike) in pages.filter(|(source, _)| **source != NONE) {
            let (pages, alike) = &mut counts[*source as usize];
            *pages += 1;
            *alike += usize::from(*is_alike);
        }
        let counts = self.names.iter().zip(counts);
        let most = counts.filter(|(_, (pages, alike))| *pages >= LEAST_PAGES && 2 * alike > *pages);
        let mut most: Vec<AlikeSource> = most
            .map(|(source, (pages, alike))| AlikeSource {
                source: source.clone(),
                pages,
                alike,
            })
            .collect();
        most.sort_by(|a, b| b.alike.cmp(&a.alike).then_with(|| a.source.cmp(&b.source)));
        most
    }
}

/// The words of either text that the other lacks, in the text that has more of them.
fn differing_words(a: &str, b: &str) -> usize {
    let mut counts: HashMap<&str, i32> = HashMap::new();
    for word in a.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    for word in b.split_whitespace() {
        *counts.entry(word).or_default() -= 1;
    }
    let more: i32 = counts.values().filter(|count| **count > 0).sum();
    let fewer: i32 = counts.values().filter(|count| **count < 0).sum();
    more.max(-fewer).unsigned_abs() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_template_are_alike() {
        assert_eq!(differing_words("a b c", "a x c d"), 2);
        let template = "t ".repeat(500);
        let mut texts: Vec<String> = (0..40).map(|page| format!("{template} p{page}")).collect();
        texts.extend((0..40).map(|page| format!("q{page} ").repeat(50)));
        let source = |page: usize| Some(if page < 40 { "shop" } else { "news" }.to_owned());
        let mut sources: Vec<Option<String>> = (0..80).map(source).collect();
        sources[3] = None;
        let mut found = SourcesOfTexts::new(&sources);
        for a in 0..80 {
            (0..a).for_each(|b| found.add(&texts, b, a));
        }
        let expected = AlikeSource {
            source: "shop".into(),
            pages: 39,
            alike: 39,
        };
        assert_eq!(found.alike(), [expected]);
    }
}
