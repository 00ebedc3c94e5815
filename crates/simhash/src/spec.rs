//! The fingerprint specification: every choice that decides the bits of a fingerprint.
//!
//! It is stored with the fingerprints (in an archive's metadata, in a fingerprint file's footer) as canonical JSON: one
//! object, keys in alphabetical order, no spaces. Its digest is the SHA-256 of that text.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::normalize::{Fold, Markup, Normalize};
use crate::short_texts::ShortTexts;
use crate::sketch::SketchBits;
use crate::template::Template;
use crate::tokenize::Tokenizer;
use crate::weight::{IdfPower, Weight};

/// The version of the specification that this crate writes and reads.
pub const VERSION: u32 = 2;

/// The hash function of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Hash {
    /// MurmurHash3 x64-128, low 64 bits.
    #[serde(rename = "murmur3-x64-128-low64")]
    Murmur3X64128Low64,
}

/// How fingerprints are made. Two fingerprints may be compared only when their specs are equal.
// The fields are in alphabetical order, which is the order of the canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The number of bits of a fingerprint: 64.
    pub bits: u32,
    /// Whether letters that differ in their diacritics are alike.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fold: Fold,
    /// The hash function of features.
    pub hash: Hash,
    /// The digest of the table of document frequencies that multiplies the weights, if any; see [`crate::Idf`].
    pub idf: Option<String>,
    /// The power to which the inverse document frequency is raised; without effect if [`Spec::idf`] is none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idf_power: IdfPower,
    /// The markup that is removed from the text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub markup: Markup,
    /// The version of the code that removes the markup, [`Markup::version`]; 0 without [`Spec::markup`].
    /// [`Spec::with_markup`] sets both.
    #[serde(default, skip_serializing_if = "is_default")]
    pub markup_version: u32,
    /// A document with fewer distinct features than this is not compared by its features; see [`Spec::short_texts`].
    pub min_features: u32,
    /// How the text is folded.
    pub normalize: Normalize,
    /// The seed of the hash.
    pub seed: u32,
    /// What becomes of documents with too few features.
    #[serde(default, skip_serializing_if = "is_default")]
    pub short_texts: ShortTexts,
    /// The sketch that is kept beside each fingerprint, if any.
    #[serde(
        default,
        skip_serializing_if = "is_default",
        with = "crate::sketch::number"
    )]
    pub sketch: SketchBits,
    /// The digest of the list of words that are left out, if any; see [`crate::StopWords`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_words: Option<String>,
    /// Whether the template of a document's source is left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub template: Template,
    /// How the text is cut into features.
    pub tokenizer: Tokenizer,
    /// The version of the specification itself.
    pub version: u32,
    /// How much a feature counts.
    pub weight: Weight,
}

/// The default features are words, and in Chinese, Japanese and Korean text characters and pairs of
/// characters. A feature weighs the square root of its occurrences, so that words common to all
/// texts do not dominate.
///
/// The default needs no table of document frequencies. It balances two aims: to find revisions of
/// English and Chinese pages, and to keep unrelated pages apart in an archive of a billion
/// documents. The repository's docs/quality.md has figures for each choice.
impl Default for Spec {
    fn default() -> Self {
        Self {
            bits: 64,
            fold: Fold::None,
            hash: Hash::Murmur3X64128Low64,
            idf: None,
            idf_power: IdfPower::One,
            markup: Markup::None,
            markup_version: 0,
            min_features: 4,
            normalize: Normalize::NfkcCasefold,
            seed: 0,
            short_texts: ShortTexts::Unmarked,
            sketch: SketchBits::None,
            stop_words: None,
            template: Template::Off,
            tokenizer: Tokenizer::WordsCjkGrams,
            version: VERSION,
            weight: Weight::SqrtTf,
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
    /// The text is not JSON, or has a field or value that this version does not know.
    #[error("not a fingerprint spec that this version can read: {text}")]
    Unreadable {
        /// The text as stored.
        text: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The spec is well-formed, but has another version, another number of bits, or another version of its markup removal.
    #[error("fingerprint spec has {field} {found}, this version reads {expected} only")]
    Unsupported {
        /// The field.
        field: &'static str,
        /// Its value in the spec.
        found: u32,
        /// The value that this crate can read.
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
    /// [`SpecError`] if the text is not a spec of this version.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(text).map_err(|source| SpecError::Unreadable {
            text: text.to_owned(),
            source,
        })?;
        for (field, found, expected) in [
            ("version", spec.version, VERSION),
            ("bits", spec.bits, 64),
            ("markup_version", spec.markup_version, spec.markup.version()),
        ] {
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

    /// This spec with `markup`, and with the version that this crate has of it.
    #[must_use]
    pub fn with_markup(self, markup: Markup) -> Self {
        Self {
            markup,
            markup_version: markup.version(),
            ..self
        }
    }

    /// SHA-256 of the canonical JSON, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.to_json()))
    }

    /// Whether `other` extracts the same features from every text, whatever they weigh.
    #[must_use]
    pub fn has_same_features(&self, other: &Self) -> bool {
        self.features_only() == other.features_only()
    }

    /// This spec, with a fixed value in each field that does not affect the features.
    pub(crate) fn features_only(&self) -> Self {
        Self {
            idf: None,
            idf_power: IdfPower::One,
            min_features: 0,
            seed: 0,
            short_texts: ShortTexts::Unmarked,
            sketch: SketchBits::None,
            template: Template::Off,
            weight: Weight::Tf,
            ..self.clone()
        }
    }

    /// The fields that differ between `self` (left) and `other` (right).
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let object = |spec: &Self| match serde_json::to_value(spec) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => unreachable!("a spec serialises as an object"),
        };
        let (left, right) = (object(self), object(other));
        // The JSON leaves out some fields without a value, so the keys of both specs are needed.
        let fields: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        let value = |object: &serde_json::Map<String, serde_json::Value>, field: &str| match (
            object.get(field),
            field,
        ) {
            (Some(value), _) => value.to_string(),
            (None, "template") => format!("{:?}", Template::Off.to_string()),
            (None, "fold") => format!("{:?}", Fold::None.to_string()),
            (None, _) => serde_json::Value::Null.to_string(),
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

/// Whether a value is left out of the JSON.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `bytes` in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_and_digest_are_fixed() {
        let spec = Spec::default();
        assert_eq!(
            spec.to_json(),
            r#"{"bits":64,"hash":"murmur3-x64-128-low64","idf":null,"min_features":4,"normalize":"nfkc-casefold","seed":0,"tokenizer":"words+cjk-grams","version":2,"weight":"sqrt-tf"}"#
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
                r#"weight: "sqrt-tf" against "log-tf""#
            ]
        );
        assert_ne!(Spec::default().digest(), other.digest());
        let stopped = Spec {
            stop_words: Some("ab".into()),
            ..Spec::default()
        };
        let difference = &Spec::default().differences(&stopped)[0];
        assert_eq!(difference.to_string(), r#"stop_words: null against "ab""#);
        assert!(other.has_same_features(&Spec::default()) && !stopped.has_same_features(&other));
    }

    #[test]
    fn markup_has_a_version() {
        let spec = Spec::default().with_markup(Markup::Main);
        let json = spec.to_json();
        assert!(
            json.contains(r#""idf":null,"markup":"main","markup_version":2,"min_features":4"#),
            "{json}"
        );
        assert_eq!(Spec::from_json(&json).unwrap(), spec);
        let named: Vec<String> = Spec::default()
            .differences(&spec)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            named,
            [
                r#"markup: null against "main""#,
                "markup_version: null against 2"
            ]
        );
        assert_eq!(spec.clone().with_markup(Markup::None), Spec::default());

        for (markup, version, expected) in [
            (Markup::Main, 1, 2),
            (Markup::Main, 3, 2),
            (Markup::Text, 0, 1),
            (Markup::None, 1, 0),
        ] {
            let other = Spec {
                markup,
                markup_version: version,
                ..Spec::default()
            };
            let error = Spec::from_json(&other.to_json()).unwrap_err().to_string();
            let known = format!("this version reads {expected} only");
            assert!(
                error.contains(&format!("markup_version {version}")) && error.contains(&known),
                "{error}"
            );
            assert!(crate::Model::plain(other).is_err());
        }
    }

    #[test]
    fn specs_of_other_versions_are_refused() {
        assert!(Spec::from_json("{").is_err());
        let later = Spec {
            version: VERSION + 1,
            ..Spec::default()
        };
        let error = Spec::from_json(&later.to_json()).unwrap_err();
        assert!(error.to_string().contains("version 3"));
        let sketched = Spec {
            sketch: SketchBits::Bits128,
            ..Spec::default()
        };
        let json = sketched.to_json();
        assert!(
            json.contains(r#""seed":0,"sketch":128,"tokenizer""#),
            "{json}"
        );
        assert_eq!(Spec::from_json(&json).unwrap(), sketched);
        assert!(Spec::from_json(&json.replace("128", "100")).is_err());
        let unknown = Spec::default().to_json().replace("\"seed\"", "\"salt\"");
        assert!(Spec::from_json(&unknown).is_err());
    }
}
