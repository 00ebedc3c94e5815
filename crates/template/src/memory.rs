//! What an archive remembers of all sources, within a number of bytes; as a file.
//!
//! The file is [`MAGIC`], then with zstd: what is remembered of passages that many sources share, and the sources in the order of
//! their names. Numbers are LEB128; a key is the difference to the one before.

use std::collections::BTreeMap;

use simhash::hash::murmur3_low64;

use crate::codec::{
    self, Damaged, read, read_keys, read_name, read_u32, write, write_keys, write_name,
};
use crate::learnt::{Learnt, LearntPassage, Role, Seen};
use crate::rule::{OF_MANY_SOURCES, OF_SOURCE};
use crate::templates::{Template, Templates};

/// The first bytes of the file.
const MAGIC: &[u8; 8] = b"DJTEMPL2";
/// Bytes of a passage, and of a source beside its name and its passages, in the file.
const PASSAGE_BYTES: usize = 6;
const SOURCE_BYTES: usize = 9;

/// What is remembered of all sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Passages of many sources: a page of each source counts.
    pub many_sources: Learnt,
    pub sources: BTreeMap<Box<str>, Remembered>,
}

/// What is remembered of a source, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The last day that had a page of it, in days from year 0 on.
    pub day: u32,
    pub learnt: Learnt,
}

impl Memory {
    /// Adds what a day's pages of a source add; the day is a number of days.
    pub fn learn(&mut self, name: &str, day: u32, seen: &Seen) {
        let source = self.sources.entry(name.into()).or_default();
        source.day = source.day.max(day);
        source.learnt.learn(seen, OF_SOURCE);
    }

    pub fn template_passages(&self) -> usize {
        let sources = self.sources.values().map(|source| &source.learnt);
        let learnt = sources.chain([&self.many_sources]);
        learnt.map(Learnt::template_passages).sum()
    }

    /// The templates of all sources.
    pub fn templates(&self) -> Templates {
        let sources = self.sources.iter();
        let sources =
            sources.map(|(name, source)| (name.clone(), Template::of(&source.learnt.passages)));
        Templates {
            many_sources: self.many_sources.keys(Role::Frame).collect(),
            sources: sources
                .filter(|(_, template)| !template.is_empty())
                .collect(),
        }
    }

    /// The file, of `most` bytes at most. What does not fit is forgotten: first passages of a single page in sources that have a
    /// frame, then whole sources. Those go first that had no page for long, then those of few pages, and then some that are the
    /// same from day to day, so that others are learnt.
    pub fn to_bytes(mut self, most: usize) -> Vec<u8> {
        let for_many = (most / 8 / PASSAGE_BYTES).min(OF_MANY_SOURCES.passages);
        self.many_sources.keep_most_shared(for_many);
        loop {
            let bytes = self.encode();
            if bytes.len() <= most || self.sources.is_empty() {
                return bytes;
            }
            // How much of the memory the bytes are, is about the same if less is remembered.
            let goal = self.file_bytes() as u128 * most as u128 / bytes.len() as u128;
            self.fit(goal as usize * 99 / 100);
        }
    }

    /// About the bytes of the file.
    fn file_bytes(&self) -> usize {
        let sources = self.sources.iter();
        let bytes: usize = sources.map(|(name, source)| bytes_of(name, source)).sum();
        bytes + self.many_sources.passages.len() * PASSAGE_BYTES
    }

    /// Forgets what is more than `most` of [`Self::file_bytes`].
    fn fit(&mut self, most: usize) {
        let mut bytes = self.file_bytes();
        let mut order: Vec<(u32, u32, u64, Box<str>)> = self
            .sources
            .iter()
            .map(|(name, source)| {
                let hash = murmur3_low64(name.as_bytes(), 0);
                (source.day, source.learnt.pages, hash, name.clone())
            })
            .collect();
        order.sort_unstable();
        for (.., name) in &order {
            if bytes <= most {
                return;
            }
            if let Some(source) = self.sources.get_mut(name)
                && source.learnt.keys(Role::Frame).next().is_some()
            {
                bytes -= bytes_of(name, source);
                source.learnt.forget_single();
                bytes += bytes_of(name, source);
            }
        }
        for (.., name) in &order {
            if bytes <= most {
                return;
            }
            if let Some(source) = self.sources.remove(name) {
                bytes -= bytes_of(name, &source);
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        write_learnt(&mut body, &self.many_sources);
        write(&mut body, self.sources.len() as u64);
        for (name, source) in &self.sources {
            write_name(&mut body, name);
            write(&mut body, u64::from(source.day));
            write_learnt(&mut body, &source.learnt);
        }
        codec::compress(&body, MAGIC)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let body = codec::decompress(bytes, MAGIC)?;
        let mut rest = &body[..];
        let many_sources = read_learnt(&mut rest)?;
        let count = read(&mut rest)?;
        let mut sources = BTreeMap::new();
        for _ in 0..count {
            let name = read_name(&mut rest)?;
            let source = Remembered {
                day: read_u32(&mut rest)?,
                learnt: read_learnt(&mut rest)?,
            };
            sources.insert(name.into(), source);
        }
        if rest.is_empty() {
            Ok(Self {
                many_sources,
                sources,
            })
        } else {
            Err(Damaged)
        }
    }
}

/// About the bytes of a source in the file.
fn bytes_of(name: &str, source: &Remembered) -> usize {
    name.len() + SOURCE_BYTES + source.learnt.passages.len() * PASSAGE_BYTES
}

fn write_learnt(out: &mut Vec<u8>, learnt: &Learnt) {
    write(out, u64::from(learnt.pages));
    let keys: Vec<u32> = learnt.passages.iter().map(|passage| passage.key).collect();
    write_keys(out, &keys);
    for passage in &learnt.passages {
        write(out, u64::from(passage.pages) << 2 | passage.role as u64);
    }
}

fn read_learnt(bytes: &mut &[u8]) -> Result<Learnt, Damaged> {
    let pages = read_u32(bytes)?;
    let mut passages = Vec::new();
    for key in read_keys(bytes)? {
        let word = read(bytes)?;
        passages.push(LearntPassage {
            key,
            pages: u32::try_from(word >> 2).map_err(|_| Damaged)?,
            role: match word & 3 {
                0 => Role::Content,
                1 => Role::Insert,
                2 => Role::Frame,
                _ => return Err(Damaged),
            },
        });
    }
    Ok(Learnt { pages, passages })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::learnt::PAGE;

    fn learnt() -> impl Strategy<Value = Learnt> {
        let roles = vec![Role::Content, Role::Insert, Role::Frame];
        let passage = (any::<u32>(), 0..100 * PAGE, prop::sample::select(roles));
        let passages = prop::collection::vec(passage, 0..20);
        (0..100 * PAGE, passages).prop_map(|(pages, mut passages)| {
            passages.sort_unstable();
            passages.dedup_by_key(|passage| passage.0);
            let passage = |(key, pages, role)| LearntPassage { key, pages, role };
            Learnt {
                pages,
                passages: passages.into_iter().map(passage).collect(),
            }
        })
    }

    prop_compose! {
        fn memory()(
            many_sources in learnt(),
            sources in prop::collection::btree_map("[a-z.]{0,9}", (0..900_000_u32, learnt()), 0..9),
        ) -> Memory {
            let remembered = |(name, (day, learnt)): (String, _)| (name.into(), Remembered { day, learnt });
            Memory { many_sources, sources: sources.into_iter().map(remembered).collect() }
        }
    }

    proptest! {
        #[test]
        fn a_file_is_read_as_it_was_written(memory in memory(), at in any::<prop::sample::Index>()) {
            let bytes = memory.clone().to_bytes(usize::MAX);
            prop_assert_eq!(Memory::from_bytes(&bytes), Ok(memory));
            // A file that is cut is refused, and one with another byte does no harm.
            let at = at.index(bytes.len());
            prop_assert!(Memory::from_bytes(&bytes[..at]).is_err());
            let mut other = bytes;
            other[at] ^= 1;
            let _ = Memory::from_bytes(&other);
        }

        #[test]
        fn a_file_fits(memory in memory(), most in 100..2_000_usize) {
            let bytes = memory.to_bytes(most);
            let read = Memory::from_bytes(&bytes).unwrap();
            prop_assert!(bytes.len() <= most || read.sources.is_empty());
        }
    }

    /// A source of `pages` pages that share half of a hundred passages.
    fn source(day: u32, pages: u32, seed: u32) -> Remembered {
        let mut passages: Vec<LearntPassage> = (0..100)
            .map(|n| LearntPassage {
                key: (n + 100 * seed).wrapping_mul(0x9e37_79b1),
                pages: if n < 50 { pages * PAGE } else { PAGE },
                role: if n < 50 && pages > 3 {
                    Role::Frame
                } else {
                    Role::Content
                },
            })
            .collect();
        passages.sort_unstable_by_key(|passage| passage.key);
        let learnt = Learnt {
            pages: pages * PAGE,
            passages,
        };
        Remembered { day, learnt }
    }

    #[test]
    fn single_pages_of_old_sources_are_forgotten_first() {
        let mut memory = Memory::default();
        for (name, day) in [("old", 1), ("new", 3), ("middle", 2)] {
            memory.sources.insert(name.into(), source(day, 4, day));
        }
        let kept = |most: usize| {
            let mut memory = memory.clone();
            memory.fit(most);
            ["old", "middle", "new"].map(|name| {
                let source = memory.sources.get(name);
                source.map_or(0, |source| source.learnt.passages.len())
            })
        };
        assert_eq!(kept(2_000), [100, 100, 100]);
        assert_eq!(kept(1_600), [50, 100, 100]);
        assert_eq!(kept(1_000), [50, 50, 50]);
        assert_eq!(kept(700), [0, 50, 50]);
    }

    #[test]
    fn the_same_sources_stay_until_they_are_learnt() {
        let most = 64 << 10;
        let mut known = Memory::default();
        for night in 1..5 {
            for number in 0..5_000 {
                let name = format!("host{number}.example");
                let before = known.sources.get(&*name);
                let pages = before.map_or(0, |source| source.learnt.pages / PAGE) + 1;
                known
                    .sources
                    .insert(name.into(), source(night, pages, number));
            }
            let bytes = known.to_bytes(most);
            assert!(
                bytes.len() <= most && bytes.len() > most / 10 * 9,
                "{}",
                bytes.len()
            );
            known = Memory::from_bytes(&bytes).unwrap();
        }
        let learnt = known.sources.values();
        let learnt = learnt.filter(|source| source.learnt.template_passages() > 0);
        assert!(learnt.count() > 100);
    }
}
