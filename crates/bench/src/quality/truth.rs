//! The exact Jaccard similarity of all pairs of texts.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation as _;

/// The pairs whose similarity reaches a minimum, with their similarity.
pub struct Truth {
    pairs: HashMap<(u32, u32), f64>,
}

impl Truth {
    /// Compares every pair of texts by their sets of three-word shingles. Pairs below `min_similarity` are left out.
    ///
    /// Words are those of UAX #29 in lower case, so each Han character is a word.
    pub fn compute(texts: &[String], min_similarity: f64) -> Self {
        // Shingles are compared by number, not by hash, so collisions cannot change a similarity.
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let sets: Vec<Vec<u32>> = texts
            .iter()
            .map(|text| {
                let text = text.to_lowercase();
                let words: Vec<&str> = text.unicode_words().collect();
                let mut set: Vec<u32> = words
                    .windows(words.len().clamp(1, 3))
                    .map(|shingle| {
                        let next = numbers.len() as u32;
                        *numbers.entry(shingle.join(" ")).or_insert(next)
                    })
                    .collect();
                set.sort_unstable();
                set.dedup();
                set
            })
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let sets = &sets;
        let pairs = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|worker| {
                    scope.spawn(move || {
                        let mut pairs = Vec::new();
                        for a in (worker..sets.len()).step_by(threads) {
                            for b in a + 1..sets.len() {
                                let similarity = jaccard(&sets[a], &sets[b], min_similarity);
                                if similarity >= min_similarity {
                                    pairs.push(((a as u32, b as u32), similarity));
                                }
                            }
                        }
                        pairs
                    })
                })
                .collect();
            let all = workers.into_iter().map(|worker| worker.join());
            all.flat_map(|pairs| pairs.expect("comparing does not fail"))
                .collect()
        });
        Self { pairs }
    }

    /// Returns the similarity of a pair; 0 if it is below the minimum.
    pub fn similarity(&self, pair: (u32, u32)) -> f64 {
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
