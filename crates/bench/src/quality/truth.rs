//! The exact Jaccard similarity of all pairs of texts.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation as _;

/// The pairs at least so alike, with how alike they are.
pub struct Truth {
    pairs: HashMap<(u32, u32), f64>,
}

impl Truth {
    /// Compares all texts with all, by the sets of their shingles of three words (UAX #29, lower case; each Han character is a
    /// word). What is less alike than `least` is left out.
    pub fn find(texts: &[String], least: f64) -> Self {
        // Equal shingles have equal numbers: no hashing decides.
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
                                let alike = jaccard(&sets[a], &sets[b], least);
                                if alike >= least {
                                    pairs.push(((a as u32, b as u32), alike));
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

    /// How alike a pair is, 0 where that is less than the least.
    pub fn of(&self, pair: (u32, u32)) -> f64 {
        self.pairs.get(&pair).copied().unwrap_or(0.0)
    }

    /// How many pairs are at least so alike.
    pub fn count(&self, level: f64) -> usize {
        self.pairs.values().filter(|alike| **alike >= level).count()
    }
}

/// The Jaccard similarity of two ascending sets; 0 if their sizes alone make it less than `least`.
fn jaccard(a: &[u32], b: &[u32], least: f64) -> f64 {
    let (fewer, more) = (a.len().min(b.len()), a.len().max(b.len()));
    if more == 0 || (fewer as f64) < least * more as f64 {
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
