//! A page as templates are found by: the keys of its passages.

use simhash::hash::murmur3_low64;

use crate::passages::each_passage;

/// The most passages of a page that are looked at: those with the least keys, which are the same of every page.
const MOST_PASSAGES: usize = 1_024;
/// The most words of a passage that count.
const MOST_WORDS: u32 = 255;
/// Bytes of a passage.
const BYTES: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePassage {
    pub key: u32,
    pub words: u8,
    /// Where it stands in the page, from 0 to 255.
    pub place: u8,
}

/// The passages of a page: a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Equal of pages that differ in case, punctuation, numbers, and in how often and where passages stand alone.
    pub identity: u64,
    /// In the order of the keys.
    pub passages: Vec<PagePassage>,
}

impl Page {
    pub fn of_text(text: &[u8]) -> Self {
        let mut found: Vec<PagePassage> = Vec::new();
        let mut at = 0;
        each_passage(text, |passage| {
            let place = (at as u64 * 256 / text.len() as u64) as u8;
            at += passage.text.len();
            if let Some(key) = passage.key {
                let words = passage.words.min(MOST_WORDS) as u8;
                found.push(PagePassage { key, words, place });
            }
        });
        // Of equal passages, the first.
        found.sort_unstable_by_key(|passage| (passage.key, passage.place, passage.words));
        found.dedup_by_key(|passage| passage.key);
        found.truncate(MOST_PASSAGES);
        Self::of_passages(found)
    }

    fn of_passages(passages: Vec<PagePassage>) -> Self {
        let keys = passages
            .iter()
            .flat_map(|passage| passage.key.to_le_bytes());
        let keys: Vec<u8> = keys.collect();
        Self {
            identity: murmur3_low64(&keys, 0),
            passages,
        }
    }

    /// The page without the passages whose keys are left out, and of the others the `most` with the least keys.
    pub fn without(&self, is_left_out: impl Fn(u32) -> bool, most: usize) -> Self {
        let mut passages = self.passages.clone();
        passages.retain(|passage| !is_left_out(passage.key));
        passages.truncate(most);
        Self::of_passages(passages)
    }

    /// The page as bytes, whose order is first that of the identities.
    pub fn to_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.identity.to_be_bytes());
        for passage in &self.passages {
            bytes.extend_from_slice(&passage.key.to_le_bytes());
            bytes.extend_from_slice(&[passage.words, passage.place]);
        }
    }

    /// The page that became `bytes`; `None` if none did.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (identity, rest) = bytes.split_first_chunk::<8>()?;
        let (passages, rest) = rest.as_chunks::<BYTES>();
        let passage = |&[a, b, c, d, words, place]: &[u8; BYTES]| PagePassage {
            key: u32::from_le_bytes([a, b, c, d]),
            words,
            place,
        };
        rest.is_empty().then(|| Self {
            identity: u64::from_be_bytes(*identity),
            passages: passages.iter().map(passage).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_sets_of_passages() {
        let page = |text: &str| Page::of_text(text.as_bytes());
        let one = page("Home\nSeen 12 times\nThe article is here.");
        let other = page("home\n home\nThe article is here!\nSeen 9 times\n");
        assert_eq!(one.identity, other.identity);
        assert_ne!(one.identity, page("Home\nThe article is here.").identity);
        let mut bytes = Vec::new();
        one.to_bytes(&mut bytes);
        assert_eq!(Page::from_bytes(&bytes).as_ref(), Some(&one));
        assert_eq!(Page::from_bytes(&bytes[..bytes.len() - 1]), None);
        let home = page("home").passages[0].key;
        let without = page("Seen 1 times\nThe article is here");
        assert_eq!(one.without(|key| key == home, 9).identity, without.identity);
    }
}
