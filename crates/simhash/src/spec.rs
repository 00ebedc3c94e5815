//! The fingerprint specification: every choice that decides a fingerprint's bits.
//!
//! It is stored with the data (an archive's metadata, a fingerprint file's footer) as canonical JSON:
//! one object, keys in alphabetical order, no spaces. Its digest is the SHA-256 of that text.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::normalize::{Markup, Normalize};
use crate::tokenize::Tokenizer;
use crate::weigh::Weight;

/// The version of the specification that this crate writes and reads.
pub const VERSION: u32 = 1;

/// The hash of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Hash {
    /// MurmurHash3 x64-128, low 64 bits.
    #[serde(rename = "murmur3-x64-128-low64")]
    Murmur3X64128Low64,
}

/// How fingerprints are made. Two fingerprints may be compared only when their specs are equal.
// Fields stand in alphabetical order: that is the order of the canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Bits of a fingerprint: 64.
    pub bits: u32,
    /// The hash of a feature.
    pub hash: Hash,
    /// Digest of the table of document frequencies that weights are multiplied by, if they are; see [`crate::Idf`].
    pub idf: Option<String>,
    /// What markup is taken out, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markup: Option<Markup>,
    /// A document with fewer distinct features has no fingerprint.
    pub min_features: u32,
    /// Folding of the text.
    pub normalize: Normalize,
    /// Seed of the hash.
    pub seed: u32,
    /// Digest of the list of words that are left out, if there is one; see [`crate::StopWords`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_words: Option<String>,
    /// How the text is cut into features.
    pub tokenizer: Tokenizer,
    /// Version of the specification itself.
    pub version: u32,
    /// How much a feature counts.
    pub weight: Weight,
}

/// Every occurrence of every word counts, and of every character of Chinese and its like: what finds nearly all pairs at
/// J ≥ .95 in both languages, at a precision that leaves few for the texts to decide.
///
/// Decided by `bench quality` on real revision histories (English: 2,769 documents, Chinese: 961), against the exact Jaccard
/// similarity J of all pairs. Recall at J ≥ .95 / ≥ .8, and precision at J ≥ .8, of pairs within 3 bits:
///
/// | features, weights                 | English     | P    | Chinese     | P    |
/// |-----------------------------------|-------------|------|-------------|------|
/// | words + CJK grams, tf (default)   | .996 / .930 | .761 | .991 / .891 | .527 |
/// | words + CJK grams, tf·idf         | .967 / .826 | .913 | .905 / .645 | .727 |
/// | words + CJK grams, 1+log tf       | .864 / .673 | .953 | .919 / .615 | .810 |
/// | words + CJK grams, levels         | .862 / .641 | .961 | .939 / .599 | .840 |
/// | words + CJK grams, set            | .714 / .488 | .984 | .836 / .472 | .950 |
/// | words + CJK bigrams, tf           | .996 / .930 | .761 | .946 / .710 | .741 |
/// | words + CJK bigrams, tf·idf       | .967 / .826 | .912 | .827 / .522 | .904 |
/// | 2-word shingles, tf               | .879 / .631 | .982 | .800 / .465 | .933 |
/// | 3-word shingles, tf               | .728 / .468 | .996 | .703 / .335 | .987 |
/// | 4 characters, tf                  | .982 / .866 | .858 | .800 / .513 | .835 |
/// | 2 characters, tf                  | .996 / .990 | .120 | .928 / .717 | .631 |
/// | words (of Chinese, characters)    | .996 / .930 | .761 | .993 / .940 | .445 |
/// | words (of Chinese, a dictionary's)| .996 / .930 | .761 | .968 / .876 | .536 |
/// | ClickHouse, single words, no case | .995 / .972 | .643 | .984 / .868 | .431 |
/// | ClickHouse, shingles of 2         | .972 / .854 | .888 | .818 / .555 | .708 |
/// | ClickHouse, shingles of 3         | .923 / .752 | .915 | .755 / .444 | .792 |
/// | Daft, simhash                     | .880 / .799 | .121 | .845 / .594 | .549 |
/// | simhash-pybind                    | .560 / .347 | .999 | .842 / .582 | .462 |
/// | text-dedup, simhash               | .622 / .438 | .974 | .694 / .318 | 1.00 |
/// | MinHash LSH, 128, threshold .8    | .935 / .848 | .959 | .986 / .788 | .880 |
///
/// Of Chinese, bigrams alone find the same at 6 bits (recall .914, precision .530) that single characters beside them find
/// at 3: these change less with an edit. What a pair is worth the texts tell: within 8 bits and verified, recall at J ≥ .8 is
/// .999 and .999, with bigrams alone .999 and .965, and precision 1: F1 is 1.000 and 1.000, that of the best peer as it is
/// .900 and .842 (MinHash). Behind the same verification, ClickHouse's single words come to 1.000 and .990. All rows are in
/// `crates/bench/results/quality.json`.
///
/// `bench features`, one core of an Intel Xeon with AVX-512 at some 2.9 GHz, MB/s of the same texts:
///
/// | way                               | English | Chinese |
/// |-----------------------------------|--------:|--------:|
/// | words + CJK grams, tf (default)   |     666 |     129 |
/// | words + CJK bigrams, tf           |     682 |     155 |
/// | the same, tf·idf, a million terms |     416 |     123 |
/// | the same, 1+log tf                |     325 |      97 |
/// | 3-word shingles, tf               |     220 |      93 |
/// | 4 characters, tf                  |     115 |     122 |
/// | ClickHouse, shingles of 3         |     136 |     224 |
/// | Daft, simhash                     |      28 |      30 |
/// | simhash-pybind                    |     5.3 |     1.2 |
/// | text-dedup, simhash               |     1.2 |     0.9 |
impl Default for Spec {
    fn default() -> Self {
        Self {
            bits: 64,
            hash: Hash::Murmur3X64128Low64,
            idf: None,
            markup: None,
            min_features: 4,
            normalize: Normalize::NfkcCasefold,
            seed: 0,
            stop_words: None,
            tokenizer: Tokenizer::WordsCjkGrams,
            version: VERSION,
            weight: Weight::Tf,
        }
    }
}

/// One field in which two specs differ, with both values as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The field's name.
    pub field: String,
    /// Its value in the first spec.
    pub left: String,
    /// Its value in the second spec.
    pub right: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} against {}", self.field, self.left, self.right)
    }
}

/// Why a stored spec cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Not JSON, or a field or value that this version does not know.
    #[error("not a fingerprint spec that this version can read: {text}")]
    Unreadable {
        /// The text as stored.
        text: String,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// Well-formed, but of another version or width.
    #[error("fingerprint spec has {field} {found}, this version reads {expected} only")]
    Unsupported {
        /// The field.
        field: &'static str,
        /// What the spec says.
        found: u32,
        /// What this crate can read.
        expected: u32,
    },
}

impl Spec {
    /// The canonical JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a spec has only plain fields")
    }

    /// Reads a spec from JSON.
    ///
    /// # Errors
    /// [`SpecError`] when the text is no spec, or one of another version.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(text).map_err(|source| SpecError::Unreadable {
            text: text.to_owned(),
            source,
        })?;
        for (field, found, expected) in
            [("version", spec.version, VERSION), ("bits", spec.bits, 64)]
        {
            if found != expected {
                return Err(SpecError::Unsupported {
                    field,
                    found,
                    expected,
                });
            }
        }
        Ok(spec)
    }

    /// SHA-256 of the canonical JSON, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.to_json()))
    }

    /// Whether `other` cuts texts into the same features, whatever they weigh.
    #[must_use]
    pub fn has_features_of(&self, other: &Self) -> bool {
        let features = |spec: &Self| Self {
            idf: None,
            min_features: 0,
            seed: 0,
            weight: Weight::Tf,
            ..spec.clone()
        };
        features(self) == features(other)
    }

    /// The fields in which `self` (left) and `other` (right) differ.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let object = |spec: &Self| match serde_json::to_value(spec) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => unreachable!("a spec serialises as an object"),
        };
        let (left, right) = (object(self), object(other));
        // Fields that say nothing are not written.
        let fields: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        let value = |of: &serde_json::Map<String, serde_json::Value>, field: &str| {
            of.get(field)
                .unwrap_or(&serde_json::Value::Null)
                .to_string()
        };
        fields
            .into_iter()
            .filter(|field| left.get(*field) != right.get(*field))
            .map(|field| Difference {
                field: field.clone(),
                left: value(&left, field),
                right: value(&right, field),
            })
            .collect()
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_and_digest_are_fixed() {
        let spec = Spec::default();
        assert_eq!(
            spec.to_json(),
            r#"{"bits":64,"hash":"murmur3-x64-128-low64","idf":null,"min_features":4,"normalize":"nfkc-casefold","seed":0,"tokenizer":"words+cjk-grams","version":1,"weight":"tf"}"#
        );
        assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
        assert_eq!(spec.digest().len(), 64);
    }

    #[test]
    fn differences_name_the_fields() {
        let other = Spec {
            weight: Weight::LogTf,
            min_features: 9,
            ..Spec::default()
        };
        let differences = Spec::default().differences(&other);
        assert_eq!(
            differences
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            [
                "min_features: 4 against 9",
                r#"weight: "tf" against "log-tf""#
            ]
        );
        assert_ne!(Spec::default().digest(), other.digest());
        let stopped = Spec {
            stop_words: Some("ab".into()),
            ..Spec::default()
        };
        let difference = &Spec::default().differences(&stopped)[0];
        assert_eq!(difference.to_string(), r#"stop_words: null against "ab""#);
        assert!(other.has_features_of(&Spec::default()) && !stopped.has_features_of(&other));
    }

    #[test]
    fn foreign_specs_are_refused() {
        assert!(Spec::from_json("{").is_err());
        let later = Spec {
            version: 2,
            ..Spec::default()
        };
        let error = Spec::from_json(&later.to_json()).unwrap_err();
        assert!(error.to_string().contains("version 2"));
        let unknown = Spec::default().to_json().replace("\"seed\"", "\"salt\"");
        assert!(Spec::from_json(&unknown).is_err());
    }
}
