//! Runs a [`Spec`] over texts, with buffers that are reused from text to text.

use crate::accumulate;
use crate::hash::murmur3_low64;
use crate::normalize::{self, Normalize};
use crate::spec::{Hash, Spec};
use crate::tokenize::{self, Tokenizer};
use crate::weigh::Weight;

/// Makes fingerprints under one [`Spec`]. Cheap to make; hold one per thread for its buffers.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    spec: Spec,
    folded: String,
    hashes: Vec<u64>,
}

impl Fingerprinter {
    /// A fingerprinter for `spec`.
    #[must_use]
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            folded: String::new(),
            hashes: Vec::new(),
        }
    }

    /// The spec it was made for.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The fingerprint of `text`, or `None` when it has fewer distinct features than
    /// [`Spec::min_features`] (an empty page, a bare "404"): such texts resemble each other only by
    /// saying nothing.
    pub fn fingerprint(&mut self, text: &str) -> Option<u64> {
        let Normalize::NfkcCasefold = self.spec.normalize;
        let Tokenizer::WordsCjkBigrams = self.spec.tokenizer;
        let Hash::Murmur3X64128Low64 = self.spec.hash;
        let seed = self.spec.seed;
        let folded = normalize::nfkc_casefold(text, &mut self.folded);
        let hashes = &mut self.hashes;
        hashes.clear();
        tokenize::words_cjk_bigrams(folded, |feature| {
            hashes.push(murmur3_low64(feature.as_bytes(), seed));
        });
        match self.spec.weight {
            Weight::Tf => has_distinct(hashes, self.spec.min_features)
                .then(|| accumulate::of_equal_weights(hashes)),
            Weight::Set => {
                hashes.sort_unstable();
                hashes.dedup();
                (hashes.len() >= self.spec.min_features as usize)
                    .then(|| accumulate::of_equal_weights(hashes))
            }
            weight => {
                hashes.sort_unstable();
                let groups = || hashes.chunk_by(|a, b| a == b);
                (groups().count() >= self.spec.min_features as usize).then(|| {
                    let weighted = groups().map(|group| {
                        let tf = u32::try_from(group.len()).unwrap_or(u32::MAX);
                        (group[0], weight.of(tf))
                    });
                    accumulate::of_weighted(weighted)
                })
            }
        }
    }
}

/// Whether `hashes` has at least `wanted` distinct values; stops as soon as it knows.
fn has_distinct(hashes: &[u64], wanted: u32) -> bool {
    let wanted = wanted as usize;
    if wanted <= 1 {
        return hashes.len() >= wanted;
    }
    let mut seen = Vec::with_capacity(wanted.min(hashes.len()));
    for hash in hashes {
        if !seen.contains(hash) {
            seen.push(*hash);
            if seen.len() == wanted {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Near-duplicate web documents are abundant. Two such documents differ \
        from each other in a very small portion that displays advertisements, for example.";

    fn under(weight: Weight) -> Fingerprinter {
        Fingerprinter::new(Spec {
            weight,
            ..Spec::default()
        })
    }

    /// Golden values: a change of any bit is a new spec version, not a refactoring.
    #[test]
    fn golden_fingerprints() {
        let chinese = "近似重复的网页非常多，近似重复的网页只在广告、计数器和日期上不同；广告最多，日期次之。";
        let golden: Vec<String> = [Weight::Tf, Weight::LogTf, Weight::Set]
            .into_iter()
            .flat_map(|weight| {
                [PAGE, chinese]
                    .map(|text| format!("{:016x}", under(weight).fingerprint(text).unwrap()))
            })
            .collect();
        assert_eq!(golden, GOLDEN);
    }

    const GOLDEN: [&str; 6] = [
        "6355520316187151",
        "f7b1b6c4bc883b9a",
        "6355520316187151",
        "f7b1b6c4bc883b9a",
        "6255120316183141",
        "f7b1f645bcccbb1a",
    ];

    #[test]
    fn too_few_features_have_no_fingerprint() {
        for weight in [Weight::Tf, Weight::LogTf, Weight::Set] {
            let mut fingerprinter = under(weight);
            for text in ["", "404", "404 Not Found", "a a a a a a a a", "…!?"] {
                assert_eq!(fingerprinter.fingerprint(text), None, "{text:?}");
            }
            assert!(fingerprinter.fingerprint("a b c d").is_some());
        }
        let mut any = Fingerprinter::new(Spec {
            min_features: 0,
            ..Spec::default()
        });
        assert_eq!(any.fingerprint(""), Some(0));
    }

    #[test]
    fn small_edits_stay_near_and_other_pages_far() {
        let mut fingerprinter = under(Weight::Tf);
        let page = PAGE.repeat(20);
        let edited = page.replacen("abundant", "everywhere", 1);
        let a = fingerprinter.fingerprint(&page).unwrap();
        let b = fingerprinter.fingerprint(&edited).unwrap();
        let c = fingerprinter
            .fingerprint("An entirely different page about growing tomatoes on a balcony in spring")
            .unwrap();
        assert!((a ^ b).count_ones() <= 3);
        assert!((a ^ c).count_ones() > 12);
    }
}
