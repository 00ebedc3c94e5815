//! Which passages of a source's pages are its template.
//!
//! A passage is template if enough distinct pages share it. Pages that are copies of each other count once, or else an article that
//! a site shows under ten addresses would be template. Copies are told by what is *not* shared by all pages: the more pages have a
//! passage, the less it says that two of them are copies.

use crate::learnt::{Learnt, LearntPassage, PAGE};
use crate::page::Page;

/// What makes a passage template.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The fewest distinct pages that have it.
    pub pages: u32,
    /// The least share of distinct pages that have it, in hundredths, as long as this is fewer than [`Self::enough`] pages.
    pub hundredths: u32,
    /// So many distinct pages are always enough.
    pub enough: u32,
    /// The pages that are remembered: older ones count the less, the more came after them.
    pub memory: u32,
    /// The most passages that are remembered.
    pub passages: usize,
}

/// The rule for a source.
pub const OF_SOURCE: Rule = Rule {
    pages: 4,
    hundredths: 8,
    enough: 16,
    memory: 32,
    passages: 384,
};

/// The rule for passages of many sources, with a page of each source.
pub const OF_MANY_SOURCES: Rule = Rule {
    pages: 16,
    hundredths: 0,
    enough: 16,
    memory: 4_096,
    passages: 8_192,
};

/// The most pages of a source that are looked at: those with the least identities, which are the same in any order.
pub const MOST_PAGES: usize = 1_024;

/// The least share of their passages that copies have in common, by weight, in hundredths.
const COPY: u64 = 70;

/// The template of a source, and what is known of it now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The keys of the passages, ascending.
    pub template: Vec<u32>,
    /// What was learnt before, and from these pages.
    pub learnt: Learnt,
}

/// Chooses the template of a source from pages with distinct identities, in the order of these, and from what was learnt before.
#[must_use]
pub fn choose(pages: &[Page], learnt: &Learnt, rule: Rule) -> Chosen {
    let counted = Counted::of(pages, learnt);
    let novel_pages = counted.novel * PAGE;
    let mut template: Vec<u32> = learnt.template().collect();
    let mut passages: Vec<LearntPassage> = Vec::new();
    // A day of many pages counts as much as all that is remembered.
    let scaled = |count: u32| {
        let count = u64::from(count) * u64::from(PAGE);
        let scale = u64::from(rule.memory).min(u64::from(counted.novel));
        (count * scale / u64::from(counted.novel.max(1))) as u32
    };
    let mut before = learnt.passages.iter().peekable();
    for (key, count) in counted.keys.iter().zip(&counted.counts) {
        while let Some(other) = before.next_if(|passage| passage.key < *key) {
            passages.push(other.clone());
        }
        let known = before.next_if(|passage| passage.key == *key);
        let (known_pages, was_template) =
            known.map_or((0, false), |passage| (passage.pages, passage.is_template));
        // Remembered pages are rounded down.
        let is_enough = |of_all: u32, pages: u32| {
            let share = u64::from(of_all) * u64::from(rule.hundredths);
            let wanted = share.min(u64::from(rule.enough * PAGE) * 100);
            pages + PAGE / 2 >= rule.pages * PAGE && u64::from(pages) * 100 >= wanted
        };
        let today = is_enough(counted.clusters * PAGE, count.all * PAGE);
        let with_earlier = is_enough(novel_pages + learnt.pages, count.novel * PAGE + known_pages);
        let is_template = was_template || today || with_earlier;
        if is_template && !was_template {
            template.push(*key);
        }
        passages.push(LearntPassage {
            key: *key,
            // One that only captures of known pages have is of one page.
            pages: (known_pages + scaled(count.novel)).max(PAGE.min(known_pages + PAGE)),
            is_template,
        });
    }
    passages.extend(before.cloned());
    template.sort_unstable();
    let mut learnt = Learnt {
        pages: learnt.pages + scaled(counted.novel),
        passages,
    };
    learnt.forget(rule);
    Chosen { template, learnt }
}

/// In how many clusters of copies a passage is.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: u32,
    /// Those that are no captures of known pages.
    novel: u32,
}

/// The passages of pages, counted.
struct Counted {
    /// The keys of all passages, ascending.
    keys: Vec<u32>,
    counts: Vec<Count>,
    clusters: u32,
    novel: u32,
}

impl Counted {
    fn of(pages: &[Page], learnt: &Learnt) -> Self {
        let mut keys: Vec<u32> = pages.iter().flat_map(|page| &page.keys).copied().collect();
        keys.sort_unstable();
        let mut pages_with: Vec<u32> = Vec::new();
        let mut last = None;
        for key in &keys {
            if last != Some(*key) {
                pages_with.push(0);
                last = Some(*key);
            }
            if let Some(count) = pages_with.last_mut() {
                *count += 1;
            }
        }
        keys.dedup();
        let number = |key: u32| keys.partition_point(|other| *other < key);
        // The passages of each page by their numbers, with weights.
        let weighed: Vec<Vec<(usize, u64)>> = pages
            .iter()
            .map(|page| {
                let weigh = |(key, words): (u32, u8)| {
                    let number = number(key);
                    let without = pages.len() as u64 - u64::from(pages_with[number]);
                    (number, u64::from(words) * without)
                };
                page.passages().map(weigh).collect()
            })
            .collect();
        let clusters = clusters(&weighed, &pages_with);
        let mut counts = vec![Count::default(); keys.len()];
        let mut in_cluster = vec![u32::MAX; keys.len()];
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_by_key(|&page| (clusters[page], page));
        let (mut found, mut novel) = (0, 0);
        let mut is_novel = false;
        for page in order {
            let cluster = clusters[page];
            if cluster == found {
                found += 1;
                is_novel = learnt.is_novel(&pages[page]);
                novel += u32::from(is_novel);
            }
            for (number, _) in &weighed[page] {
                if std::mem::replace(&mut in_cluster[*number], cluster) != cluster {
                    counts[*number].all += 1;
                    counts[*number].novel += u32::from(is_novel);
                }
            }
        }
        Self {
            keys,
            counts,
            clusters: found,
            novel,
        }
    }
}

/// For each page, the number of its cluster. A page is in the cluster of a page before it that shares so much with it as copies do.
fn clusters(pages: &[Vec<(usize, u64)>], pages_with: &[u32]) -> Vec<u32> {
    let weight = |page: &[(usize, u64)]| page.iter().map(|(_, weight)| weight).sum::<u64>();
    // For each passage that some pages share: the clusters whose first page has it.
    let mut leaders_with: Vec<Vec<u32>> = vec![Vec::new(); pages_with.len()];
    let mut weights_of_leaders: Vec<u64> = Vec::new();
    let mut shared: Vec<u64> = Vec::new();
    let mut touched: Vec<u32> = Vec::new();
    let mut found = Vec::with_capacity(pages.len());
    for page in pages {
        let total = weight(page);
        touched.clear();
        for (passage, weight) in page {
            for &leader in &leaders_with[*passage] {
                let shared = &mut shared[leader as usize];
                if *shared == 0 {
                    touched.push(leader);
                }
                *shared += weight;
            }
        }
        let mut best: Option<(u64, u32)> = None;
        for &leader in &touched {
            let shared = std::mem::take(&mut shared[leader as usize]);
            let either = total + weights_of_leaders[leader as usize] - shared;
            if 100 * shared >= COPY * either
                && best.is_none_or(|best| (best.0, leader) > (shared, best.1))
            {
                best = Some((shared, leader));
            }
        }
        if let Some((_, leader)) = best {
            found.push(leader);
            continue;
        }
        let leader = weights_of_leaders.len() as u32;
        for (passage, weight) in page {
            if *weight > 0 && pages_with[*passage] > 1 {
                leaders_with[*passage].push(leader);
            }
        }
        weights_of_leaders.push(total);
        shared.push(0);
        found.push(leader);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passages::Passages;

    /// Distinct pages in the order of their identities.
    pub(crate) fn pages(texts: &[String]) -> Vec<Page> {
        let mut passages = Passages::default();
        let mut pages: Vec<Page> = texts
            .iter()
            .map(|text| Page::of_text(text.as_bytes(), &mut passages))
            .collect();
        pages.sort_by_key(|page| page.identity);
        pages.dedup_by_key(|page| page.identity);
        pages
    }

    fn is_template(chosen: &Chosen, passage: &str) -> bool {
        let page = Page::of_text(passage.as_bytes(), &mut Passages::default());
        chosen.template.binary_search(&page.keys[0]).is_ok()
    }

    /// A sentence of words that no other one has.
    fn sentence(name: &str, words: usize) -> String {
        let letters = |mut n: usize| {
            let mut word = String::new();
            loop {
                word.push(char::from(b'a' + (n % 26) as u8));
                n /= 26;
                if n == 0 {
                    return word;
                }
            }
        };
        let words: Vec<String> = (0..words)
            .map(|n| format!("{name}{}", letters(n)))
            .collect();
        words.join(" ") + ".\n"
    }

    fn name(n: usize) -> String {
        format!(
            "p{}{}",
            char::from(b'a' + (n / 26) as u8),
            char::from(b'a' + (n % 26) as u8)
        )
    }

    #[test]
    fn what_many_pages_share_is_template() {
        let frame = sentence("frame", 300);
        let texts: Vec<String> = (0..40)
            .map(|n| format!("Home\n{frame}{}", sentence(&name(n), 30)))
            .collect();
        let chosen = choose(&pages(&texts), &Learnt::default(), OF_SOURCE);
        assert!(is_template(&chosen, &frame) && is_template(&chosen, "home"));
        assert_eq!(chosen.template.len(), 2);
        let three = choose(&pages(&texts[..3]), &Learnt::default(), OF_SOURCE);
        assert_eq!(three.template, Vec::<u32>::new());
    }

    #[test]
    fn copies_of_a_page_count_once() {
        let frame = sentence("frame", 300);
        let article = sentence("article", 250);
        let mut texts: Vec<String> = (0..100)
            .map(|n| format!("{frame}{}", sentence(&name(n), 60)))
            .collect();
        // Copies that differ in an advertisement.
        texts.extend((0..300).map(|n| format!("{frame}{article}{}", sentence(&name(n + 100), 9))));
        let chosen = choose(&pages(&texts), &Learnt::default(), OF_SOURCE);
        assert!(is_template(&chosen, &frame));
        assert!(!is_template(&chosen, &article));
        assert_eq!(chosen.template.len(), 1);
    }

    #[test]
    fn a_page_a_night_is_learnt_and_the_same_page_is_not() {
        let frame = sentence("frame", 50);
        let night = |n: usize| pages(&[format!("{frame}{}", sentence(&name(n), 60))]);
        let mut learnt = Learnt::default();
        for n in 0..60 {
            let chosen = choose(&night(n), &learnt, OF_SOURCE);
            assert_eq!(is_template(&chosen, &frame), n >= 3, "{n}");
            assert!(chosen.template.len() <= 1);
            learnt = chosen.learnt;
        }
        let mut learnt = Learnt::default();
        for n in 0..60 {
            let page = format!("{frame}{}Seen {n} times", sentence("article", 60));
            let chosen = choose(&pages(&[page]), &learnt, OF_SOURCE);
            assert_eq!(chosen.template, Vec::<u32>::new(), "{n}");
            learnt = chosen.learnt;
        }
    }

    #[test]
    fn a_redesign_after_three_hundred_nights_is_learnt_in_a_few() {
        let (old, new) = (sentence("old", 50), sentence("new", 50));
        let night = |frame: &str, n: usize| pages(&[format!("{frame}{}", sentence(&name(n), 60))]);
        let mut learnt = Learnt::default();
        for n in 0..300 {
            learnt = choose(&night(&old, n), &learnt, OF_SOURCE).learnt;
        }
        for n in 300..304 {
            let chosen = choose(&night(&new, n), &learnt, OF_SOURCE);
            // Old captures keep their content.
            assert!(is_template(&chosen, &old));
            assert_eq!(is_template(&chosen, &new), n == 303);
            learnt = chosen.learnt;
        }
    }
}
