//! A spec with the tables that it names: document frequencies and stop words.

use std::collections::HashSet;
use std::sync::Arc;

use crate::idf::Idf;
use crate::normalize::Markup;
use crate::spec::Spec;
use crate::stop_words::StopWords;

/// Everything that is needed to make fingerprints under a [`Spec`]: the spec, and the tables that it names by their
/// digests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Model {
    spec: Spec,
    idf: Option<Arc<Idf>>,
    stop_words: Option<Arc<StopWords>>,
    stop_word_hashes: Option<Arc<HashSet<u64>>>,
    has_markup: bool,
}

/// Why a spec and tables do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The table that was given is not the one that the spec names.
    #[error("the spec names {what} {expected}, but {found} was given")]
    Table {
        /// The kind of table.
        what: &'static str,
        /// The digest in the spec, or "none".
        expected: String,
        /// The digest of the given table, or "none".
        found: String,
    },
    /// The table counts the document frequencies of features that the spec does not extract.
    #[error("the document frequencies count other features: {differences}")]
    Features {
        /// The fields that differ between the table's spec and this one.
        differences: String,
    },
    /// The spec asks for a version of its markup removal that this crate does not have.
    #[error("the spec has markup_version {found}, this version knows {expected} only")]
    MarkupVersion {
        /// The version in the spec.
        found: u32,
        /// The version that [`crate::Markup::version`] says.
        expected: u32,
    },
    /// The tokenizer never gives as many features as a fingerprint needs.
    #[error(
        "{tokenizer} gives at most {most} features, and documents with fewer than {min_features} have no fingerprint: set --min-features {most} or less"
    )]
    TooFew {
        /// The tokenizer.
        tokenizer: String,
        /// The greatest number of features of a document.
        most: u8,
        /// See [`Spec::min_features`].
        min_features: u32,
    },
    /// The spec names stop words, but the tokenizer's features do not consist of words.
    #[error("stop words go with words and shingles, not with {tokenizer}")]
    StopWords {
        /// The tokenizer.
        tokenizer: String,
    },
}

impl Model {
    /// A model of `spec` and the tables that it names.
    ///
    /// # Errors
    /// [`ModelError`] if they do not fit together.
    pub fn new(
        spec: Spec,
        idf: Option<Arc<Idf>>,
        stop_words: Option<Arc<StopWords>>,
    ) -> Result<Self, ModelError> {
        let expect = |what, expected: &Option<String>, found: Option<&str>| {
            let name = |digest: Option<&str>| digest.unwrap_or("none").to_owned();
            if expected.as_deref() == found {
                Ok(())
            } else {
                Err(ModelError::Table {
                    what,
                    expected: name(expected.as_deref()),
                    found: name(found),
                })
            }
        };
        expect(
            "document frequencies",
            &spec.idf,
            idf.as_deref().map(Idf::digest),
        )?;
        expect(
            "stop words",
            &spec.stop_words,
            stop_words.as_deref().map(StopWords::digest),
        )?;
        if let Some(idf) = &idf
            && (!idf.spec().has_same_features(&spec) || idf.spec().idf_power != spec.idf_power)
        {
            let of_features = |spec: &Spec| Spec {
                idf_power: spec.idf_power,
                ..spec.features_only()
            };
            let differences = of_features(idf.spec()).differences(&of_features(&spec));
            let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
            return Err(ModelError::Features {
                differences: differences.join("; "),
            });
        }
        let expected = spec.markup.version();
        if spec.markup_version != expected {
            return Err(ModelError::MarkupVersion {
                found: spec.markup_version,
                expected,
            });
        }
        if spec.stop_words.is_some() && !spec.tokenizer.has_words() {
            return Err(ModelError::StopWords {
                tokenizer: spec.tokenizer.to_string(),
            });
        }
        if let Some(most) = spec.tokenizer.max_features()
            && spec.min_features > u32::from(most)
        {
            return Err(ModelError::TooFew {
                tokenizer: spec.tokenizer.to_string(),
                most,
                min_features: spec.min_features,
            });
        }
        let hashes = |list: &StopWords| Arc::new(list.hashes(spec.seed));
        Ok(Self {
            stop_word_hashes: stop_words.as_deref().map(hashes),
            has_markup: !spec.markup.is_none(),
            spec,
            idf,
            stop_words,
        })
    }

    /// A model of a spec that names no tables.
    ///
    /// # Errors
    /// [`ModelError`] if the spec names a table, or contradicts itself.
    pub fn plain(spec: Spec) -> Result<Self, ModelError> {
        Self::new(spec, None, None)
    }

    /// The same model, for texts whose markup is removed already.
    #[must_use]
    pub fn without_markup(&self) -> Self {
        Self {
            has_markup: false,
            ..self.clone()
        }
    }

    /// The markup that is to be removed.
    pub(crate) fn markup(&self) -> Markup {
        if self.has_markup {
            self.spec.markup
        } else {
            Markup::None
        }
    }

    /// The spec.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The document frequencies that multiply weights, if the spec names any.
    #[must_use]
    pub fn idf(&self) -> Option<&Arc<Idf>> {
        self.idf.as_ref()
    }

    /// The words that are left out of the features, if the spec names any.
    #[must_use]
    pub fn stop_words(&self) -> Option<&Arc<StopWords>> {
        self.stop_words.as_ref()
    }

    pub(crate) fn stop_word_hashes(&self) -> Option<&Arc<HashSet<u64>>> {
        self.stop_word_hashes.as_ref()
    }
}

// Models with equal specs have equal tables, because the specs hold the digests of the tables.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        (&self.spec, self.has_markup) == (&other.spec, other.has_markup)
    }
}

impl Eq for Model {}

impl std::hash::Hash for Model {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.spec, self.has_markup).hash(state);
    }
}
