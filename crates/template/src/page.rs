//! A page as templates are found by: the keys of its passages.

use simhash::hash::murmur3_low64;

use crate::passages::Passages;

/// The most passages of a page that are looked at: those with the least keys, which are the same of every page.
const MOST_PASSAGES: usize = 4_096;
/// The most words of a passage that count.
const MOST_WORDS: u32 = 255;

/// The passages of a page: a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Equal of pages that differ in case, punctuation, numbers, and repeated passages alone.
    pub identity: u64,
    /// The keys, ascending.
    pub keys: Vec<u32>,
    /// The words of each passage.
    pub words: Vec<u8>,
}

impl Page {
    /// The page of a text.
    #[must_use]
    pub fn of_text(text: &[u8], passages: &mut Passages) -> Self {
        let mut found: Vec<(u32, u8)> = Vec::new();
        passages.each(text, |passage| {
            if let Some(key) = passage.key {
                found.push((key, passage.words.min(MOST_WORDS) as u8));
            }
        });
        found.sort_unstable();
        found.dedup_by_key(|(key, _)| *key);
        found.truncate(MOST_PASSAGES);
        let (keys, words): (Vec<u32>, Vec<u8>) = found.into_iter().unzip();
        Self {
            identity: identity(&keys),
            keys,
            words,
        }
    }

    /// The page without the passages whose keys are `left_out`, ascending.
    #[must_use]
    pub fn without(&self, left_out: &[u32]) -> Self {
        let passages = self.passages();
        let (keys, words): (Vec<u32>, Vec<u8>) = passages
            .filter(|(key, _)| left_out.binary_search(key).is_err())
            .unzip();
        Self {
            identity: identity(&keys),
            keys,
            words,
        }
    }

    /// The keys, each with the words of its passage.
    pub fn passages(&self) -> impl Iterator<Item = (u32, u8)> {
        self.keys.iter().copied().zip(self.words.iter().copied())
    }

    /// The page as bytes, whose order is first that of the identities.
    pub fn to_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.identity.to_be_bytes());
        for key in &self.keys {
            bytes.extend_from_slice(&key.to_le_bytes());
        }
        bytes.extend_from_slice(&self.words);
    }

    /// The page that became `bytes`; `None` if none did.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (identity, rest) = bytes.split_first_chunk::<8>()?;
        let count = rest.len() / 5;
        if rest.len() % 5 != 0 {
            return None;
        }
        let (keys, words) = rest.split_at(4 * count);
        Some(Self {
            identity: u64::from_be_bytes(*identity),
            keys: keys
                .as_chunks::<4>()
                .0
                .iter()
                .map(|key| u32::from_le_bytes(*key))
                .collect(),
            words: words.to_vec(),
        })
    }
}

fn identity(keys: &[u32]) -> u64 {
    let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
    murmur3_low64(&bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_sets_of_passages() {
        let page = |text: &str| Page::of_text(text.as_bytes(), &mut Passages::default());
        let one = page("Home\nSeen 12 times\nThe article is here.");
        assert_eq!(
            one,
            page("home\n home\nThe article is here!\nSeen 9 times\n")
        );
        assert_ne!(one.identity, page("Home\nThe article is here.").identity);
        let mut bytes = Vec::new();
        one.to_bytes(&mut bytes);
        assert_eq!(Page::from_bytes(&bytes).as_ref(), Some(&one));
        assert_eq!(Page::from_bytes(&bytes[..bytes.len() - 1]), None);
        let home = page("home");
        assert_eq!(
            one.without(&home.keys),
            page("Seen 1 times\nThe article is here")
        );
    }
}
