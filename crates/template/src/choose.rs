//! Which passages of a source's pages are its template.
//!
//! A passage is of the frame if enough distinct pages have it. Copies of one page count once; else an article that a site shows at ten
//! addresses would become template. Two pages are copies if they have most of their passages in common. In that comparison, a
//! passage weighs the less, the more pages have it, because the frame of a site is on all of its pages.
//!
//! A passage on few pages, such as an advertisement, is an insert if most of these pages share little with others.

use crate::learnt::{Learnt, LearntPassage, PAGE, Role, Seen};
use crate::numbers::Numbers;
use crate::page::{Page, PagePassage};
use crate::rule::Rule;
use crate::templates::{Template, is_small_part};

/// The most pages of a source that are looked at: those with the least identities, which are the same in any order.
pub const MOST_PAGES: usize = 1_024;

/// The least share of their passages that copies have in common, by weight, in hundredths.
const COPY: u64 = 70;

/// The least share of what a page does not share with others that stands on each side of a copied article, in hundredths.
const LESSER_SIDE: u32 = 15;

/// The fewest distinct pages that have an insert.
const INSERT_PAGES: u32 = 2;
/// What so few pages share is at most this part of each, beside the frame: they may also be about one subject.
const PART_OF_TWO: u32 = 5;

/// The most clusters with which a page is compared, or which are found by a passage: hostile pages share all with all.
const MOST_CANDIDATES: usize = 64;

/// The template of a source, and what its pages add to what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    pub template: Template,
    /// What [`Learnt::learn`] adds.
    pub seen: Seen,
}

/// Chooses the template of a source from pages with distinct identities, in the order of these, and from what was learnt before.
pub fn choose(pages: &[Page], learnt: &Learnt, rule: Rule) -> Chosen {
    let mut counted = Counted::of(pages, learnt, rule);
    let novel = counted.novel;
    // A day of many pages counts as much as all that is remembered.
    let scaled = |count: u32| {
        let most = u64::from(rule.memory).min(u64::from(novel));
        (u64::from(count * PAGE) * most / u64::from(novel.max(1))) as u32
    };
    // Remembered pages are rounded down.
    let is_enough = |of_all: u32, pages: u32| {
        let share = u64::from(of_all) * u64::from(rule.hundredths);
        let wanted = share.min(u64::from(rule.enough * PAGE) * 100);
        pages.saturating_add(PAGE / 2) >= rule.pages * PAGE && u64::from(pages) * 100 >= wanted
    };
    // The pages that have a passage, with those that are remembered.
    let with_earlier = |known: Option<&LearntPassage>, count: &Count| {
        (count.novel * PAGE).saturating_add(known.map_or(0, |passage| passage.pages))
    };
    let all_with_earlier = (novel * PAGE).saturating_add(learnt.pages);
    let keys = counted.keys.iter();
    let known: Vec<Option<&LearntPassage>> = keys.map(|key| learnt.passage(*key)).collect();
    let mut roles: Vec<Role> = known
        .iter()
        .zip(&counted.counts)
        .map(|(known, count)| {
            let is_enough = is_enough(counted.leaders.len() as u32 * PAGE, count.all * PAGE)
                || is_enough(all_with_earlier, with_earlier(*known, count));
            let is_frame = is_enough && (!rule.is_of_many || count.is_around());
            let before = known.map_or(Role::Content, |passage| passage.role);
            before.max(if is_frame { Role::Frame } else { Role::Content })
        })
        .collect();
    if !rule.is_of_many {
        counted.count_asides(pages, &roles, &known);
        for ((role, known), count) in roles.iter_mut().zip(&known).zip(&counted.counts) {
            let pages = with_earlier(*known, count).max(count.all * PAGE);
            let has_at_least = |least: u32| pages.saturating_add(PAGE / 2) >= least * PAGE;
            let asides = if has_at_least(INSERT_PAGES + 1) {
                count.asides
            } else {
                count.small_asides
            };
            if has_at_least(INSERT_PAGES) && 2 * asides > count.all {
                *role = Role::Insert.max(*role);
            }
        }
    }
    let passages = counted.keys.iter().zip(&counted.counts).zip(roles);
    let seen = Seen {
        pages: scaled(novel),
        passages: passages
            .map(|((key, count), role)| LearntPassage {
                key: *key,
                pages: scaled(count.novel),
                role,
            })
            .collect(),
    };
    let is_unseen = |passage: &&LearntPassage| counted.keys.binary_search(&passage.key).is_err();
    let unseen = learnt.passages.iter().filter(is_unseen);
    Chosen {
        template: Template::of(unseen.chain(&seen.passages)),
        seen,
    }
}

/// In how many clusters of copies a passage is.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: u32,
    /// Those that are no captures of known pages.
    novel: u32,
    /// How much of what each page does not share stands before the passage, and how much behind it: the lesser shares, in hundredths.
    lesser_sides: u32,
    sides: u32,
    /// Pages of which the passage is the most part.
    main_part: u32,
    /// Clusters whose first page shares, beside the frame, only a small part with other clusters.
    asides: u32,
    /// Those that share at most the part that [`PART_OF_TWO`] says.
    small_asides: u32,
}

impl Count {
    /// Whether the passage stands around what its pages do not share, and neither within it nor in its place.
    fn is_around(&self) -> bool {
        self.sides > 0
            && self.lesser_sides <= LESSER_SIDE * self.sides
            && 2 * self.main_part < self.sides
    }
}

/// The passages of pages, counted.
struct Counted {
    /// The keys of all passages, ascending.
    keys: Vec<u32>,
    counts: Vec<Count>,
    numbers: Numbers,
    /// The first page of each cluster, and whether it is novel.
    leaders: Vec<(usize, bool)>,
    novel: u32,
}

impl Counted {
    fn of(pages: &[Page], learnt: &Learnt, rule: Rule) -> Self {
        let mut keys: Vec<u32> = pages
            .iter()
            .flat_map(|page| page.passages.iter().map(|passage| passage.key))
            .collect();
        keys.sort_unstable();
        let equal = keys.chunk_by(|key, other| key == other);
        let pages_with: Vec<u32> = equal.map(|keys| keys.len() as u32).collect();
        keys.dedup();
        let numbers = Numbers::new(&keys);
        // The passages of each page by their numbers, with weights.
        let weighed: Vec<Vec<(usize, u64)>> = pages
            .iter()
            .map(|page| {
                let weigh = |passage: &PagePassage| {
                    let number = numbers.of(passage.key, &keys);
                    let without = if rule.is_of_many {
                        1
                    } else {
                        pages.len() as u64 - u64::from(pages_with[number])
                    };
                    (number, u64::from(passage.words) * without)
                };
                page.passages.iter().map(weigh).collect()
            })
            .collect();
        let clusters = clusters(&weighed, &pages_with);
        let mut counts = vec![Count::default(); keys.len()];
        let mut in_cluster = vec![u32::MAX; keys.len()];
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_by_key(|&page| (clusters[page], page));
        let (mut leaders, mut novel) = (Vec::new(), 0);
        let mut is_novel = false;
        for page in order {
            let cluster = clusters[page];
            if cluster as usize == leaders.len() {
                is_novel = learnt.is_novel(&pages[page]);
                leaders.push((page, is_novel));
                novel += u32::from(is_novel);
            }
            for (number, _) in &weighed[page] {
                if std::mem::replace(&mut in_cluster[*number], cluster) != cluster {
                    counts[*number].all += 1;
                    counts[*number].novel += u32::from(is_novel);
                }
            }
        }
        let mut counted = Self {
            keys,
            counts,
            numbers,
            leaders,
            novel,
        };
        if rule.is_of_many {
            for page in pages {
                counted.add_sides(page, &pages_with);
            }
        }
        counted
    }

    /// Counts [`Count::asides`], by what is known of each passage and the roles that they have so far.
    fn count_asides(&mut self, pages: &[Page], roles: &[Role], known: &[Option<&LearntPassage>]) {
        let mut own: Vec<(usize, u32)> = Vec::new();
        for &(leader, is_novel) in &self.leaders {
            own.clear();
            own.extend(pages[leader].passages.iter().filter_map(|passage| {
                let number = self.numbers.of(passage.key, &self.keys);
                (roles[number] != Role::Frame).then_some((number, u32::from(passage.words)))
            }));
            let is_alone = |number: usize| {
                // A page that is remembered may be the one that had the passage.
                let of_another = |passage: &LearntPassage| is_novel || passage.pages > PAGE;
                self.counts[number].all == 1 && !known[number].is_some_and(of_another)
            };
            let all: u32 = own.iter().map(|(_, words)| words).sum();
            let alone = own.iter().filter(|(number, _)| is_alone(*number));
            let alone: u32 = alone.map(|(_, words)| words).sum();
            let shared = all - alone;
            for (number, _) in &own {
                let count = &mut self.counts[*number];
                count.asides += u32::from(is_small_part(shared, all));
                count.small_asides += u32::from(PART_OF_TWO * shared <= all);
            }
        }
    }

    /// Adds on which sides of each shared passage of a page the words stand that no other page has.
    fn add_sides(&mut self, page: &Page, pages_with: &[u32]) {
        let numbers = &self.numbers;
        let mut passages: Vec<(u8, u32, usize)> = page
            .passages
            .iter()
            .map(|passage| {
                let number = numbers.of(passage.key, &self.keys);
                let own = match pages_with[number] {
                    1 => u32::from(passage.words),
                    _ => 0,
                };
                (passage.place, own, number)
            })
            .collect();
        passages.sort_unstable();
        let all: u32 = passages.iter().map(|(_, own, _)| own).sum();
        let words: u32 = page
            .passages
            .iter()
            .map(|passage| u32::from(passage.words))
            .sum();
        if all == 0 {
            return;
        }
        for passage in &page.passages {
            if 2 * u32::from(passage.words) > words {
                let number = numbers.of(passage.key, &self.keys);
                self.counts[number].main_part += 1;
            }
        }
        let mut before = 0;
        for (_, own, number) in passages {
            before += own;
            if own == 0 {
                let count = &mut self.counts[number];
                count.lesser_sides += before.min(all - before) * 100 / all;
                count.sides += 1;
            }
        }
    }
}

/// For each page, the number of its cluster. A page is in the cluster of the page before it that shares most with it, if it shares
/// as much as copies do.
///
/// Pages are compared only if they share one of their rarest passages: those without which not enough is left to be shared; and
/// with [`MOST_CANDIDATES`] clusters at most.
fn clusters(pages: &[Vec<(usize, u64)>], pages_with: &[u32]) -> Vec<u32> {
    // For each passage: the clusters whose first page has it among its rarest.
    let mut leaders_with: Vec<Vec<u32>> = vec![Vec::new(); pages_with.len()];
    let mut leaders: Vec<(usize, u64)> = Vec::new();
    let mut found = Vec::with_capacity(pages.len());
    let mut candidates: Vec<u32> = Vec::new();
    for (number, page) in pages.iter().enumerate() {
        let total: u64 = page.iter().map(|(_, weight)| weight).sum();
        let rarest = rarest(page, total, pages_with);
        candidates.clear();
        for passage in &rarest {
            candidates.extend_from_slice(&leaders_with[*passage]);
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates.truncate(MOST_CANDIDATES);
        let mut best: Option<(u64, u32)> = None;
        for &leader in &candidates {
            let (first, of_leader) = leaders[leader as usize];
            let shared = shared(page, &pages[first]);
            let either = total + of_leader - shared;
            let is_copy = 100 * shared >= COPY * either;
            if is_copy && best.is_none_or(|(most, _)| shared > most) {
                best = Some((shared, leader));
            }
        }
        let leader = best.map_or(leaders.len() as u32, |(_, leader)| leader);
        if best.is_none() {
            leaders.push((number, total));
            for passage in rarest {
                let leaders = &mut leaders_with[passage];
                if leaders.len() < MOST_CANDIDATES {
                    leaders.push(leader);
                }
            }
        }
        found.push(leader);
    }
    found
}

/// The rarest passages of a page: the others weigh less than copies share.
fn rarest(page: &[(usize, u64)], total: u64, pages_with: &[u32]) -> Vec<usize> {
    let mut passages: Vec<(u32, usize, u64)> = page
        .iter()
        .filter(|(_, weight)| *weight > 0)
        .map(|(passage, weight)| (pages_with[*passage], *passage, *weight))
        .collect();
    passages.sort_unstable();
    let mut left = total;
    let enough = passages.iter().take_while(|(.., weight)| {
        let is_needed = 100 * left >= COPY * total;
        left -= weight;
        is_needed
    });
    enough.map(|(_, passage, _)| *passage).collect()
}

/// The weight of the passages that both pages have.
fn shared(page: &[(usize, u64)], other: &[(usize, u64)]) -> u64 {
    let mut others = other.iter().peekable();
    let mut shared = 0;
    for (passage, weight) in page {
        while others.next_if(|(other, _)| other < passage).is_some() {}
        if others.next_if(|(other, _)| other == passage).is_some() {
            shared += weight;
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::rule::{OF_MANY_SOURCES, OF_SOURCE};

    /// Distinct pages in the order of their identities.
    pub(crate) fn pages(texts: &[String]) -> Vec<Page> {
        let mut pages: Vec<Page> = texts
            .iter()
            .map(|text| Page::of_text(text.as_bytes()))
            .collect();
        pages.sort_by_key(|page| page.identity);
        pages.dedup_by_key(|page| page.identity);
        pages
    }

    fn is_template(chosen: &Chosen, passage: &str) -> bool {
        let page = Page::of_text(passage.as_bytes());
        chosen.template.frame.contains(&page.passages[0].key)
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
        assert_eq!(chosen.template.frame.len(), 2);
        let three = choose(&pages(&texts[..3]), &Learnt::default(), OF_SOURCE);
        assert_eq!(three.template.frame, Vec::<u32>::new());
    }

    #[test]
    fn what_few_pages_share_in_passing_is_an_insert() {
        let (frame, advert) = (sentence("frame", 100), sentence("advert", 15));
        let own = |n: usize| sentence(&name(n), 80);
        let mut texts: Vec<String> = (0..10).map(|n| format!("{frame}{}", own(n))).collect();
        texts[3].push_str(&advert);
        texts[7].push_str(&advert);
        let keys = |text: &str| Page::of_text(text.as_bytes()).passages[0].key;
        let chosen = choose(&pages(&texts), &Learnt::default(), OF_SOURCE);
        assert_eq!(chosen.template.frame, [keys(&frame)]);
        assert_eq!(chosen.template.inserts, [keys(&advert)]);
        // The beginning of an article on a page that lists it.
        texts[3] = format!("{frame}{}{advert}", sentence("teaser", 15));
        let chosen = choose(&pages(&texts), &Learnt::default(), OF_SOURCE);
        assert_eq!(chosen.template.inserts, Vec::<u32>::new());
        // One page a night.
        let night = |n: usize, learnt: &Learnt| {
            let text = format!("{}{advert}", own(20 + n));
            choose(&pages(&[text]), learnt, OF_SOURCE)
        };
        let mut learnt = Learnt::default();
        learnt.learn(&night(0, &learnt).seen, OF_SOURCE);
        let second = night(1, &learnt);
        assert_eq!(second.template.inserts, [keys(&advert)]);
        learnt.learn(&second.seen, OF_SOURCE);
        assert_eq!(night(2, &learnt).template.inserts, [keys(&advert)]);
    }

    #[test]
    fn clusters_are_those_of_all_comparisons() {
        let mut random = ChaCha8Rng::seed_from_u64(45);
        for _ in 0..200 {
            let passages = random.random_range(1..12);
            let pages: Vec<Vec<(usize, u64)>> = (0..random.random_range(1..30))
                .map(|_| {
                    let has = (0..passages).filter(|_| random.random_bool(0.7));
                    has.map(|passage| (passage, passage as u64 % 4)).collect()
                })
                .collect();
            let mut pages_with = vec![0; passages];
            for (passage, _) in pages.iter().flatten() {
                pages_with[*passage] += 1;
            }
            let mut expected: Vec<u32> = Vec::new();
            let mut leaders: Vec<usize> = Vec::new();
            for (number, page) in pages.iter().enumerate() {
                let weight =
                    |page: &Vec<(usize, u64)>| page.iter().map(|(_, weight)| weight).sum::<u64>();
                let of_both = |leader: &usize| {
                    let other = &pages[*leader];
                    let both = page.iter().filter(|passage| other.contains(passage));
                    let both = both.map(|(_, weight)| weight).sum::<u64>();
                    (both, weight(page) + weight(other) - both)
                };
                let copies = leaders.iter().enumerate().filter(|(_, leader)| {
                    let (both, either) = of_both(leader);
                    both > 0 && 100 * both >= COPY * either
                });
                let best =
                    copies.max_by_key(|(at, leader)| (of_both(leader).0, std::cmp::Reverse(*at)));
                let cluster = best.map_or(leaders.len(), |(at, _)| at);
                if cluster == leaders.len() {
                    leaders.push(number);
                }
                expected.push(cluster as u32);
            }
            assert_eq!(clusters(&pages, &pages_with), expected);
        }
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
        assert_eq!(chosen.template.frame.len(), 1);
    }

    #[test]
    fn what_many_sources_share_around_their_contents_is_template() {
        let notice = sentence("notice", 30);
        let release = sentence("release", 200);
        let (top, end) = (sentence("top", 60), sentence("end", 40));
        let own = |n: usize, words: usize| sentence(&name(n), words);
        let mut texts: Vec<String> = Vec::new();
        for n in 0..40 {
            // A free hoster; and a release that hosts of a page each have in frames of their own.
            texts.push(format!("{top}{}{end}", own(n, 100)));
            texts.push(format!("{}{release}{}", own(n + 40, 90), own(n + 80, 80)));
            texts.push(format!("{}{notice}", own(n + 120, 150)));
        }
        let chosen = choose(&pages(&texts), &Learnt::default(), OF_MANY_SOURCES);
        for frame in [&top, &end, &notice] {
            assert!(is_template(&chosen, frame), "{frame}");
        }
        assert!(!is_template(&chosen, &release));
        assert_eq!(chosen.template.frame.len(), 3);
        // The same release alone, with little around it.
        let texts: Vec<String> = (0..40)
            .map(|n| format!("{release}{}", own(n, 20)))
            .collect();
        let chosen = choose(&pages(&texts), &Learnt::default(), OF_MANY_SOURCES);
        assert_eq!(chosen.template.frame, Vec::<u32>::new());
    }

    #[test]
    fn a_page_a_night_is_learnt_and_the_same_page_is_not() {
        let frame = sentence("frame", 50);
        let night = |n: usize| pages(&[format!("{frame}{}", sentence(&name(n), 60))]);
        let mut learnt = Learnt::default();
        for n in 0..60 {
            let chosen = choose(&night(n), &learnt, OF_SOURCE);
            assert_eq!(is_template(&chosen, &frame), n >= 3, "{n}");
            assert!(chosen.template.frame.len() <= 1);
            learnt.learn(&chosen.seen, OF_SOURCE);
        }
        let mut learnt = Learnt::default();
        for n in 0..60 {
            let page = format!("{frame}{}Seen {n} times", sentence("article", 60));
            let chosen = choose(&pages(&[page]), &learnt, OF_SOURCE);
            assert_eq!(chosen.template.frame, Vec::<u32>::new(), "{n}");
            learnt.learn(&chosen.seen, OF_SOURCE);
        }
    }

    #[test]
    fn a_redesign_after_three_hundred_nights_is_learnt_in_a_few() {
        let (old, new) = (sentence("old", 150), sentence("new", 300));
        let night = |frame: &str, n: usize| pages(&[format!("{frame}{}", sentence(&name(n), 60))]);
        let mut learnt = Learnt::default();
        for n in 0..300 {
            let seen = choose(&night(&old, n), &learnt, OF_SOURCE).seen;
            learnt.learn(&seen, OF_SOURCE);
        }
        for n in 300..304 {
            let chosen = choose(&night(&new, n), &learnt, OF_SOURCE);
            // Old captures keep their content.
            assert!(is_template(&chosen, &old));
            assert_eq!(is_template(&chosen, &new), n == 303);
            learnt.learn(&chosen.seen, OF_SOURCE);
        }
    }
}
