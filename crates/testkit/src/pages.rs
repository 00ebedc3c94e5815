//! Synthetic web pages with planted near-copies of the kinds that crawls meet: mirrors, other advertisements, counters,
//! edits.
//!
//! Each page is a function of the seed and its number, so a batch of any size is generated page by page and nothing is
//! kept. The vocabulary is large enough that unrelated pages are far apart. One page in eight is Chinese.

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How a page relates to its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No copy of another page.
    Unrelated,
    /// A copy with the same text.
    Mirror,
    /// A copy with another advertisement.
    Advertisement,
    /// A copy with another counter and date.
    Counter,
    /// A copy with one to three words changed.
    Edit,
    /// An error page of three words, too short for a fingerprint.
    ErrorPage,
}

/// The page from which another was copied. All copies of one page have the same origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    Archive(u64),
    Batch(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Unique in batch and archive together.
    pub id: String,
    /// Title, body, advertisement, and date with counter.
    pub text: String,
    /// How the page relates to its origin.
    pub kind: Kind,
    /// The page that it copies, or the page itself.
    pub origin: Origin,
}

/// Pages of the batch come in cycles of this many: first copies of archive pages, then unrelated pages, last copies of
/// batch pages.
const CYCLE: u64 = 20;
/// Copies of archive pages in a cycle.
const COPIES_OF_ARCHIVE: u64 = 5;
/// Copies of batch pages in a cycle.
const COPIES_OF_BATCH: u64 = 2;
/// One page in this many is an error page.
const ERROR_PAGE_EVERY: u64 = 97;

/// Number of words in the vocabulary.
const VOCABULARY: u64 = 60_000;

#[derive(Debug, Clone)]
pub struct Pages {
    archive: u64,
    seed: u64,
    vocabulary: Vec<String>,
}

impl Pages {
    /// Creates a generator for an archive of `archive` pages and a batch of any size. `seed` decides all random choices.
    #[must_use]
    pub fn new(archive: u64, seed: u64) -> Self {
        Self {
            archive,
            seed,
            vocabulary: (0..VOCABULARY).map(word).collect(),
        }
    }

    /// Returns page `number` of the archive.
    #[must_use]
    pub fn archive_page(&self, number: u64) -> Page {
        let mut layout = self.layout(Origin::Archive(number));
        let kind = if is_error_page(number) {
            layout = Layout::error_page();
            Kind::ErrorPage
        } else {
            Kind::Unrelated
        };
        Page {
            id: format!("archive/{number:010}"),
            text: layout.render(),
            kind,
            origin: Origin::Archive(number),
        }
    }

    /// Returns page `number` of the batch.
    #[must_use]
    pub fn batch_page(&self, number: u64) -> Page {
        let mut rng = self.rng(Origin::Batch(number), 1);
        let origin = self.origin(number, &mut rng);
        let mut layout = self.layout(origin);
        let kind = if is_error_page(number) {
            layout = Layout::error_page();
            Kind::ErrorPage
        } else if origin == Origin::Batch(number) {
            Kind::Unrelated
        } else {
            [Kind::Mirror, Kind::Advertisement, Kind::Counter, Kind::Edit][rng.random_range(0..4)]
        };
        match kind {
            Kind::Advertisement => layout.advertisement = self.words(&mut rng, 9, layout.chinese),
            Kind::Counter => layout.stamp = stamp(&mut rng),
            Kind::Edit => {
                for _ in 0..rng.random_range(1..=3) {
                    let at = rng.random_range(0..layout.body.len());
                    layout.body[at] = self.words(&mut rng, 1, layout.chinese).remove(0);
                }
            }
            Kind::Unrelated | Kind::Mirror | Kind::ErrorPage => {}
        }
        Page {
            id: format!("new/{number:010}"),
            text: layout.render(),
            kind,
            origin: if kind == Kind::ErrorPage {
                Origin::Batch(number)
            } else {
                origin
            },
        }
    }

    /// Returns the origin of page `number` of the batch.
    fn origin(&self, number: u64, rng: &mut ChaCha8Rng) -> Origin {
        let place = number % CYCLE;
        if place < COPIES_OF_ARCHIVE && self.archive > 0 {
            let original = rng.random_range(0..self.archive);
            if !is_error_page(original) {
                return Origin::Archive(original);
            }
        } else if place >= CYCLE - COPIES_OF_BATCH {
            // An unrelated page of the same cycle.
            let other = number - place
                + COPIES_OF_ARCHIVE
                + rng.random_range(0..CYCLE - COPIES_OF_BATCH - COPIES_OF_ARCHIVE);
            if !is_error_page(other) {
                return Origin::Batch(other);
            }
        }
        Origin::Batch(number)
    }

    /// Returns one of a page's two random streams: `purpose` 0 decides its layout, 1 how it is
    /// copied.
    fn rng(&self, page: Origin, purpose: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(match page {
            Origin::Archive(number) => 4 * number + 2 * purpose,
            Origin::Batch(number) => 4 * number + 2 * purpose + 1,
        });
        rng
    }

    /// Returns the parts of a page that is its own origin.
    fn layout(&self, origin: Origin) -> Layout {
        let mut rng = self.rng(origin, 0);
        let chinese = rng.random_ratio(1, 8);
        let length = rng.random_range(120..480);
        Layout {
            title: self.words(&mut rng, 6, chinese),
            body: self.words(&mut rng, length, chinese),
            advertisement: self.words(&mut rng, 9, chinese),
            stamp: stamp(&mut rng),
            chinese,
        }
    }

    fn words(&self, rng: &mut ChaCha8Rng, count: usize, chinese: bool) -> Vec<String> {
        (0..count)
            .map(|_| {
                if chinese {
                    let length = rng.random_range(1..=4);
                    (0..length)
                        .filter_map(|_| char::from_u32(rng.random_range(0x4e00..0x9fa5)))
                        .collect()
                } else if rng.random_ratio(1, 6) {
                    COMMON[rng.random_range(0..COMMON.len())].to_owned()
                } else {
                    // The larger of two uniform draws: some words are more frequent than others.
                    let a = rng.random_range(0..VOCABULARY);
                    let b = rng.random_range(0..VOCABULARY);
                    self.vocabulary[(a.max(b)) as usize].clone()
                }
            })
            .collect()
    }
}

/// The parts of a page.
struct Layout {
    title: Vec<String>,
    body: Vec<String>,
    advertisement: Vec<String>,
    stamp: String,
    chinese: bool,
}

impl Layout {
    fn error_page() -> Self {
        Self {
            title: vec!["404".into(), "Not".into(), "Found".into()],
            body: Vec::new(),
            advertisement: Vec::new(),
            stamp: String::new(),
            chinese: false,
        }
    }

    fn render(&self) -> String {
        let (space, stop, line) = if self.chinese {
            ("", "，", 12)
        } else {
            (" ", ".", 14)
        };
        let mut text = self.title.join(space);
        for sentence in self.body.chunks(line) {
            text.push('\n');
            text.push_str(&sentence.join(space));
            text.push_str(stop);
        }
        for part in [&self.advertisement.join(space), &self.stamp] {
            if !part.is_empty() {
                text.push_str("\n\n");
                text.push_str(part);
            }
        }
        text
    }
}

/// Returns whether page `number` is an error page.
fn is_error_page(number: u64) -> bool {
    number % ERROR_PAGE_EVERY == ERROR_PAGE_EVERY - 1
}

/// Draws a date and a counter.
fn stamp(rng: &mut ChaCha8Rng) -> String {
    format!(
        "Updated 20{:02}-{:02}-{:02}, {} views",
        rng.random_range(10..27),
        rng.random_range(1..13),
        rng.random_range(1..29),
        rng.next_u32() % 1_000_000
    )
}

/// Frequent words.
const COMMON: [&str; 32] = [
    "the", "of", "and", "to", "a", "in", "is", "it", "that", "was", "for", "on", "as", "with",
    "be", "by", "at", "this", "from", "or", "an", "are", "not", "have", "one", "had", "but", "all",
    "were", "when", "we", "there",
];

/// Returns word `rank` of the vocabulary: the number in base 80, with a syllable for each digit.
fn word(rank: u64) -> String {
    const ONSETS: [&str; 16] = [
        "b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "ch", "st", "tr",
    ];
    const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];
    let mut rest = rank + 80;
    let mut word = String::new();
    while rest > 0 {
        let syllable = (rest % 80) as usize;
        word.push_str(ONSETS[syllable % 16]);
        word.push_str(VOWELS[syllable / 16]);
        rest /= 80;
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_batch_has_every_kind_and_is_fixed_by_its_seed() {
        let pages = Pages::new(500, 1);
        let batch: Vec<Page> = (0..400).map(|number| pages.batch_page(number)).collect();
        let kinds: HashSet<Kind> = batch.iter().map(|page| page.kind).collect();
        assert_eq!(kinds.len(), 6);
        let again = Pages::new(500, 1);
        assert!(
            batch
                .iter()
                .enumerate()
                .all(|(number, page)| again.batch_page(number as u64) == *page)
        );
        for page in &batch {
            let original = match page.origin {
                Origin::Archive(number) => pages.archive_page(number),
                Origin::Batch(number) => pages.batch_page(number),
            };
            match page.kind {
                Kind::Mirror => assert_eq!(page.text, original.text),
                Kind::Edit | Kind::Counter | Kind::Advertisement => {
                    assert_ne!(page.id, original.id)
                }
                Kind::Unrelated => assert_eq!(page.id, original.id),
                Kind::ErrorPage => assert_eq!(page.text, "404 Not Found"),
            }
        }
    }

    #[test]
    fn the_vocabulary_has_no_word_twice() {
        let words: HashSet<String> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len() as u64, VOCABULARY);
    }
}
