//! What is remembered of a source's pages from night to night: keys of passages, and no text.

use crate::page::Page;
use crate::rule::Rule;

/// A page, in the unit in which pages are counted.
pub const PAGE: u32 = 64;
/// A passage of fewer pages is forgotten.
const LEAST: u32 = PAGE / 4;

/// What is remembered of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Learnt {
    /// Its distinct pages, in [`PAGE`]s; older ones count less.
    pub pages: u32,
    /// Passages, in the order of their keys.
    pub passages: Vec<LearntPassage>,
}

/// What is remembered of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearntPassage {
    pub key: u32,
    /// The pages with it, in [`PAGE`]s.
    pub pages: u32,
    pub role: Role,
}

/// What a passage is on the pages of its source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    #[default]
    Content,
    /// On few pages, beside much that each has alone: an advertisement.
    Insert,
    /// Many pages have it, as a navigation.
    Frame,
}

/// What the pages of a day add to what is remembered of their source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Distinct pages that are no captures of known ones, in [`PAGE`]s.
    pub pages: u32,
    /// All passages, in the order of their keys, with the pages that count.
    pub passages: Vec<LearntPassage>,
}

impl Learnt {
    /// Adds what was seen, and keeps to the limits of `rule`.
    pub fn learn(&mut self, seen: &Seen, rule: Rule) {
        let mut before = std::mem::take(&mut self.passages).into_iter().peekable();
        for found in &seen.passages {
            while let Some(other) = before.next_if(|passage| passage.key < found.key) {
                self.passages.push(other);
            }
            let known = before.next_if(|passage| passage.key == found.key);
            let (pages, role) =
                known.map_or_else(Default::default, |passage| (passage.pages, passage.role));
            self.passages.push(LearntPassage {
                key: found.key,
                // One that only captures of known pages have is of one page.
                pages: pages.saturating_add(found.pages).max(PAGE),
                role: role.max(found.role),
            });
        }
        self.passages.extend(before);
        self.pages = self.pages.saturating_add(seen.pages);
        self.forget(rule);
    }

    /// What is remembered of a passage.
    pub(crate) fn passage(&self, key: u32) -> Option<&LearntPassage> {
        let found = self
            .passages
            .binary_search_by_key(&key, |passage| passage.key);
        Some(&self.passages[found.ok()?])
    }

    /// About how many recent pages are remembered.
    pub fn pages_count(&self) -> u32 {
        self.pages.div_ceil(PAGE)
    }

    /// The keys of the passages with a role, ascending.
    pub fn keys(&self, role: Role) -> impl Iterator<Item = u32> {
        let passages = self.passages.iter();
        passages
            .filter(move |passage| passage.role == role)
            .map(|passage| passage.key)
    }

    /// The number of passages that are template.
    pub fn template_passages(&self) -> usize {
        let passages = self.passages.iter();
        passages
            .filter(|passage| passage.role != Role::Content)
            .count()
    }

    /// Whether a page is none that is remembered: of its words, where those count less that many pages have, a sixteenth or more are
    /// of unknown passages. A page that is captured again has another date, or another advertisement.
    pub(crate) fn is_novel(&self, page: &Page) -> bool {
        let (mut all, mut unknown) = (0, 0);
        for passage in &page.passages {
            let pages = self.passage(passage.key).map_or(0, |known| known.pages);
            let weight = u64::from(passage.words) * u64::from(self.pages.saturating_sub(pages));
            all += weight;
            unknown += if pages == 0 { weight } else { 0 };
        }
        self.pages == 0 || (unknown > 0 && 16 * unknown >= all)
    }

    /// Keeps to the limits of `rule`: older pages count less, and what few pages have is forgotten first.
    pub(crate) fn forget(&mut self, rule: Rule) {
        let most = rule.memory * PAGE;
        if self.pages > most {
            let scale =
                |pages: u32| (u64::from(pages) * u64::from(most) / u64::from(self.pages)) as u32;
            for passage in &mut self.passages {
                passage.pages = scale(passage.pages);
            }
            self.pages = most;
        }
        self.passages.retain(|passage| passage.pages >= LEAST);
        self.keep_most_shared(rule.passages);
    }

    /// Keeps at most `most` passages: the frame first, then those of most pages.
    pub(crate) fn keep_most_shared(&mut self, most: usize) {
        if self.passages.len() > most {
            let rank = |passage: &LearntPassage| {
                let by_pages = std::cmp::Reverse((passage.role == Role::Frame, passage.pages));
                (by_pages, passage.key)
            };
            self.passages.sort_unstable_by_key(rank);
            self.passages.truncate(most);
            self.passages.sort_unstable_by_key(|passage| passage.key);
        }
    }

    /// Forgets passages of a single page.
    pub(crate) fn forget_single(&mut self) {
        self.passages
            .retain(|passage| passage.role != Role::Content || passage.pages > PAGE);
    }
}
