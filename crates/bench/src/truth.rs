//! The pairs of texts whose exact Jaccard similarity reaches a minimum.
//!
//! Comparing every text with every other takes minutes for ten thousand texts. Two sets of
//! similarity J share at least J times the elements of either. Let all sets have the same order of
//! elements, and let the prefix of a set be its first `n - ⌈J n⌉ + 1` of n elements. Then the
//! prefixes of the two sets have a common element (prefix filter: R. Bayardo, Y. Ma, R. Srikant,
//! "Scaling Up All Pairs Similarity Search", WWW 2007). The rarest shingles come first, so few
//! texts have a prefix element in common. An inverted index finds these texts, and only they are
//! compared.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::threads;

/// The numbers of two texts, the smaller first.
pub type Pair = (u32, u32);

/// The pairs whose similarity reaches a minimum, with their similarity.
pub struct Truth {
    pairs: HashMap<Pair, f64>,
}

/// Words of a shingle.
const SHINGLE: usize = 3;

impl Truth {
    /// Compares the sets of three-word shingles of all texts. Pairs below `min_similarity`, which is above 0, are left
    /// out.
    ///
    /// Words are those of UAX #29 in lower case, so each Han character is a word.
    pub fn compute<T: AsRef<str>>(texts: &[T], min_similarity: f64) -> Self {
        assert!(
            min_similarity > 0.0,
            "texts that share nothing are no pairs"
        );
        let sets = shingle_sets(texts);
        let index = Index::new(&sets, min_similarity);
        let threads = threads::cores();
        let pairs = threads::run(threads, |worker| {
            let mut pairs = Vec::new();
            // `last[b]` is the text `a` with which this thread compared text `b` last: two texts may share several shingles.
            let mut last = vec![u32::MAX; sets.len()];
            for a in (worker..sets.len()).step_by(threads) {
                for &shingle in rarest(&sets[a], min_similarity) {
                    let texts = index.texts(shingle).iter().rev();
                    for &b in texts.take_while(|&&b| b as usize > a) {
                        let before = std::mem::replace(&mut last[b as usize], a as u32);
                        if before == a as u32 {
                            continue;
                        }
                        let similarity = jaccard(&sets[a], &sets[b as usize], min_similarity);
                        if similarity >= min_similarity {
                            pairs.push(((a as u32, b), similarity));
                        }
                    }
                }
            }
            pairs
        });
        Self {
            pairs: pairs.into_iter().flatten().collect(),
        }
    }

    /// Returns the pairs with their similarities, in no particular order.
    pub fn pairs(&self) -> impl Iterator<Item = (Pair, f64)> {
        self.pairs
            .iter()
            .map(|(&pair, &similarity)| (pair, similarity))
    }

    /// Returns the similarity of a pair; 0 if it is below the minimum.
    pub fn similarity(&self, pair: Pair) -> f64 {
        self.pairs.get(&pair).copied().unwrap_or(0.0)
    }

    /// Returns the number of pairs with a similarity of at least `level`.
    pub fn count(&self, level: f64) -> usize {
        let similarities = self.pairs.values();
        similarities
            .filter(|similarity| **similarity >= level)
            .count()
    }
}

/// Returns the set of shingles of each text, as ascending numbers. A shingle in fewer texts has a smaller number.
fn shingle_sets<T: AsRef<str>>(texts: &[T]) -> Vec<Vec<u32>> {
    // Words and shingles are compared by number, not by hash, so collisions cannot change a similarity.
    let mut word_numbers: HashMap<String, u32> = HashMap::new();
    let mut shingle_numbers: HashMap<[u32; SHINGLE], u32> = HashMap::new();
    let mut sets: Vec<Vec<u32>> = Vec::with_capacity(texts.len());
    for text in texts {
        let text = text.as_ref().to_lowercase();
        let words: Vec<u32> = text
            .unicode_words()
            .map(|word| match word_numbers.get(word) {
                Some(&number) => number,
                None => {
                    let number = word_numbers.len() as u32;
                    word_numbers.insert(word.to_owned(), number);
                    number
                }
            })
            .collect();
        // A text of one or two words is one shingle.
        let shingles = words.windows(words.len().clamp(1, SHINGLE));
        let mut set: Vec<u32> = shingles
            .map(|shingle| {
                let mut key = [u32::MAX; SHINGLE];
                key[..shingle.len()].copy_from_slice(shingle);
                let next = shingle_numbers.len() as u32;
                *shingle_numbers.entry(key).or_insert(next)
            })
            .collect();
        set.sort_unstable();
        set.dedup();
        sets.push(set);
    }
    let mut frequencies = vec![0u32; shingle_numbers.len()];
    for &shingle in sets.iter().flatten() {
        frequencies[shingle as usize] += 1;
    }
    let mut by_frequency: Vec<u32> = (0..shingle_numbers.len() as u32).collect();
    by_frequency.sort_by_key(|&shingle| frequencies[shingle as usize]);
    let mut ranks = vec![0u32; shingle_numbers.len()];
    for (rank, &shingle) in by_frequency.iter().enumerate() {
        ranks[shingle as usize] = rank as u32;
    }
    for set in &mut sets {
        for shingle in set.iter_mut() {
            *shingle = ranks[*shingle as usize];
        }
        set.sort_unstable();
    }
    sets
}

/// Returns the rarest shingles of a set. Two sets whose similarity is at least `min_similarity` share one of these.
fn rarest(set: &[u32], min_similarity: f64) -> &[u32] {
    // The subtraction makes up for rounding: a number above ⌈J n⌉ would miss pairs.
    let shared = (min_similarity * set.len() as f64 - 1e-9).ceil() as usize;
    &set[..(set.len() + 1) - shared.clamp(1, set.len() + 1)]
}

/// For each shingle, the texts that have it among their rarest.
struct Index {
    /// Where the texts of each shingle begin, and the end of the last.
    starts: Vec<usize>,
    /// The numbers of texts, ascending for each shingle.
    texts: Vec<u32>,
}

impl Index {
    fn new(sets: &[Vec<u32>], min_similarity: f64) -> Self {
        let greatest = sets.iter().filter_map(|set| set.last()).max();
        let shingles = greatest.map_or(0, |&greatest| greatest as usize + 1);
        let mut starts = vec![0; shingles + 1];
        for set in sets {
            for &shingle in rarest(set, min_similarity) {
                starts[shingle as usize + 1] += 1;
            }
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let mut next = starts.clone();
        let mut texts = vec![0; total];
        for (text, set) in sets.iter().enumerate() {
            for &shingle in rarest(set, min_similarity) {
                let at = &mut next[shingle as usize];
                texts[*at] = text as u32;
                *at += 1;
            }
        }
        Self { starts, texts }
    }

    fn texts(&self, shingle: u32) -> &[u32] {
        let at = shingle as usize;
        &self.texts[self.starts[at]..self.starts[at + 1]]
    }
}

/// Returns the Jaccard similarity of two ascending sets; 0 if their sizes alone show that it is below `min_similarity`.
fn jaccard(a: &[u32], b: &[u32], min_similarity: f64) -> f64 {
    let (fewer, more) = (a.len().min(b.len()), a.len().max(b.len()));
    if more == 0 || (fewer as f64) < min_similarity * more as f64 {
        return 0.0;
    }
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        common += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    common as f64 / (a.len() + b.len() - common) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Texts of 0 to 39 words, of which many are edited copies of an earlier one.
    fn corpus() -> Vec<String> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut texts: Vec<Vec<String>> = Vec::new();
        for number in 0..400 {
            let mut words: Vec<String> = if number % 3 > 0 {
                texts[rng.random_range(0..number)].clone()
            } else {
                let length = rng.random_range(0..40);
                (0..length)
                    .map(|_| format!("w{}", rng.random_range(0..60)))
                    .collect()
            };
            for _ in 0..rng.random_range(0..4) {
                if !words.is_empty() {
                    let at = rng.random_range(0..words.len());
                    words[at] = format!("W{}", rng.random_range(0..60));
                }
            }
            texts.push(words);
        }
        texts.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn the_index_finds_what_brute_force_finds() {
        let texts = corpus();
        let sets: Vec<BTreeSet<String>> = texts
            .iter()
            .map(|text| {
                let text = text.to_lowercase();
                let words: Vec<&str> = text.split_whitespace().collect();
                let shingles = words.windows(words.len().clamp(1, 3));
                shingles.map(|shingle| shingle.join(" ")).collect()
            })
            .collect();
        for min_similarity in [0.1, 0.5, 0.8, 1.0] {
            let truth = Truth::compute(&texts, min_similarity);
            let mut expected = 0;
            for (a, x) in sets.iter().enumerate() {
                for (b, y) in sets.iter().enumerate().skip(a + 1) {
                    let common = x.intersection(y).count() as f64;
                    let similarity = common / x.union(y).count().max(1) as f64;
                    if similarity >= min_similarity {
                        expected += 1;
                        assert_eq!(truth.similarity((a as u32, b as u32)), similarity);
                    }
                }
            }
            assert!(expected > 0);
            assert_eq!(truth.pairs().count(), expected);
            assert_eq!(truth.count(min_similarity), expected);
        }
    }
}
