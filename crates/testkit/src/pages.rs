//! Synthetic pages with planted near-copies of the kinds that crawls meet.
//!
//! Every page is a function of the seed and its number, so that a day of any size is made page by page and
//! nothing is kept. Words are drawn from a vocabulary large enough for unrelated pages to be unrelated;
//! one page in eight is Chinese.

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A day and an archive of pages.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Pages in the archive.
    pub base: u64,
    /// Pages in the new day.
    pub new: u64,
    /// Decides everything else.
    pub seed: u64,
}

/// What a page of the new day is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A page like no other.
    Unrelated,
    /// Word for word the same.
    Mirror,
    /// The same page around another advertisement.
    Advertisement,
    /// The same page with another counter and date.
    Counter,
    /// A few words of the same page changed.
    Edit,
    /// An error page of three words: too little to have a fingerprint.
    Empty,
}

/// The page that another is a copy of, by its number; it stands for the family of all its copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A page of the archive.
    Base(u64),
    /// A page of the new day.
    New(u64),
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Unique among both sides.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What it is.
    pub kind: Kind,
    /// Of what it is a copy, or itself.
    pub origin: Origin,
}

/// In every 20 pages of the new day: so many are copies of archive pages, then so many of other new pages.
const COPIES_OF_BASE: u64 = 5;
const COPIES_OF_NEW: u64 = 2;
const CYCLE: u64 = 20;
/// One page in so many is an error page.
const EMPTY_EVERY: u64 = 97;

const VOCABULARY: u64 = 60_000;

/// Carries out a [`Plan`].
#[derive(Debug, Clone)]
pub struct Pages {
    plan: Plan,
    vocabulary: Vec<String>,
}

impl Pages {
    /// A generator for `plan`.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let vocabulary = (0..VOCABULARY).map(word).collect();
        Self { plan, vocabulary }
    }

    /// Page `number` of the archive.
    #[must_use]
    pub fn base(&self, number: u64) -> Page {
        let mut layout = self.layout(Origin::Base(number));
        let kind = if is_empty(number) {
            layout = Layout::empty();
            Kind::Empty
        } else {
            Kind::Unrelated
        };
        Page {
            id: format!("archive/{number:010}"),
            text: layout.render(),
            kind,
            origin: Origin::Base(number),
        }
    }

    /// Page `number` of the new day.
    #[must_use]
    pub fn new_day(&self, number: u64) -> Page {
        let mut rng = self.rng(Origin::New(number), 1);
        let origin = self.origin(number, &mut rng);
        let mut layout = self.layout(origin);
        let kind = if is_empty(number) {
            layout = Layout::empty();
            Kind::Empty
        } else if origin == Origin::New(number) {
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
            Kind::Unrelated | Kind::Mirror | Kind::Empty => {}
        }
        Page {
            id: format!("new/{number:010}"),
            text: layout.render(),
            kind,
            origin: if kind == Kind::Empty {
                Origin::New(number)
            } else {
                origin
            },
        }
    }

    /// What page `number` of the new day is a copy of.
    fn origin(&self, number: u64, rng: &mut ChaCha8Rng) -> Origin {
        let place = number % CYCLE;
        if place < COPIES_OF_BASE && self.plan.base > 0 {
            let base = rng.random_range(0..self.plan.base);
            if !is_empty(base) {
                return Origin::Base(base);
            }
        } else if place >= CYCLE - COPIES_OF_NEW {
            // An unrelated page of the same cycle.
            let other = number - place
                + COPIES_OF_BASE
                + rng.random_range(0..CYCLE - COPIES_OF_NEW - COPIES_OF_BASE);
            if !is_empty(other) {
                return Origin::New(other);
            }
        }
        Origin::New(number)
    }

    fn rng(&self, of: Origin, purpose: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed);
        rng.set_stream(match of {
            Origin::Base(number) => 4 * number + 2 * purpose,
            Origin::New(number) => 4 * number + 2 * purpose + 1,
        });
        rng
    }

    /// The page as it first was.
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
                    // The product of two uniform draws favours low ranks, as words do.
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
    fn empty() -> Self {
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

/// Whether the page of this number is an error page.
fn is_empty(number: u64) -> bool {
    number % EMPTY_EVERY == EMPTY_EVERY - 1
}

fn stamp(rng: &mut ChaCha8Rng) -> String {
    format!(
        "Updated 20{:02}-{:02}-{:02}, {} views",
        rng.random_range(10..27),
        rng.random_range(1..13),
        rng.random_range(1..29),
        rng.next_u32() % 1_000_000
    )
}

const COMMON: [&str; 32] = [
    "the", "of", "and", "to", "a", "in", "is", "it", "that", "was", "for", "on", "as", "with",
    "be", "by", "at", "this", "from", "or", "an", "are", "not", "have", "one", "had", "but", "all",
    "were", "when", "we", "there",
];

/// Word `rank` of the vocabulary: its number in syllables.
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
    fn a_day_has_every_kind_and_is_fixed_by_its_seed() {
        let plan = Plan {
            base: 500,
            new: 400,
            seed: 1,
        };
        let pages = Pages::new(plan.clone());
        let day: Vec<Page> = (0..400).map(|number| pages.new_day(number)).collect();
        let kinds: HashSet<Kind> = day.iter().map(|page| page.kind).collect();
        assert_eq!(kinds.len(), 6);
        let again = Pages::new(plan);
        assert!(
            day.iter()
                .enumerate()
                .all(|(number, page)| again.new_day(number as u64) == *page)
        );
        for page in &day {
            let original = match page.origin {
                Origin::Base(number) => pages.base(number),
                Origin::New(number) => pages.new_day(number),
            };
            match page.kind {
                Kind::Mirror => assert_eq!(page.text, original.text),
                Kind::Edit | Kind::Counter | Kind::Advertisement => {
                    assert_ne!(page.id, original.id)
                }
                Kind::Unrelated => assert_eq!(page.id, original.id),
                Kind::Empty => assert_eq!(page.text, "404 Not Found"),
            }
        }
    }

    #[test]
    fn the_vocabulary_has_no_word_twice() {
        let words: HashSet<String> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len() as u64, VOCABULARY);
    }
}
