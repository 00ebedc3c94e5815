//! A spec with the tables that it names.

use std::collections::HashSet;
use std::sync::Arc;

use crate::idf::Idf;
use crate::spec::Spec;
use crate::stop_words::StopWords;
use crate::tokenize::Tokenizer;

/// All that is needed to make fingerprints under a [`Spec`]: the spec, and the tables that it names by their digests.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Model {
    spec: Spec,
    idf: Option<Arc<Idf>>,
    stop_words: Option<Arc<StopWords>>,
    /// The hashes of those.
    stopped: Option<Arc<HashSet<u64>>>,
}

/// Why a spec and tables do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A table that the spec names was not given, or another one, or one that the spec does not name.
    #[error("the spec asks for {what} {expected}, and {found} was given")]
    Table {
        /// The kind of table.
        what: &'static str,
        /// The digest in the spec, or "none".
        expected: String,
        /// The digest of the table, or "none".
        found: String,
    },
    /// The table of document frequencies counts other features.
    #[error("the document frequencies are of other features: {differences}")]
    Features {
        /// The fields of the specs in which they differ.
        differences: String,
    },
    /// No document can have so many features.
    #[error(
        "{tokenizer} gives at most {most} features, and documents with fewer than {min_features} have no fingerprint: set --min-features {most} or less"
    )]
    TooFew {
        /// The tokenizer.
        tokenizer: String,
        /// Features of a document, at most.
        most: u8,
        /// See [`Spec::min_features`].
        min_features: u32,
    },
    /// Stop words, and features that are no words.
    #[error("stop words go with words and shingles, not with {tokenizer}")]
    StopWords {
        /// The tokenizer.
        tokenizer: String,
    },
}

impl Model {
    /// The spec with its tables.
    ///
    /// # Errors
    /// [`ModelError`] when they do not go together.
    pub fn new(
        spec: Spec,
        idf: Option<Arc<Idf>>,
        stop_words: Option<Arc<StopWords>>,
    ) -> Result<Self, ModelError> {
        let expect = |what, expected: &Option<String>, found: Option<&str>| {
            let name = |digest: Option<&str>| digest.unwrap_or("none").to_owned();
            match expected.as_deref() == found {
                true => Ok(()),
                false => Err(ModelError::Table {
                    what,
                    expected: name(expected.as_deref()),
                    found: name(found),
                }),
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
            && !idf.spec().has_features_of(&spec)
        {
            let differences = idf.spec().differences(&spec).into_iter();
            let differences: Vec<String> = differences
                .filter(|of| !["idf", "min_features", "seed", "weight"].contains(&&*of.field))
                .map(|difference| difference.to_string())
                .collect();
            return Err(ModelError::Features {
                differences: differences.join("; "),
            });
        }
        if spec.stop_words.is_some() && !spec.tokenizer.has_words() {
            return Err(ModelError::StopWords {
                tokenizer: spec.tokenizer.to_string(),
            });
        }
        if let Tokenizer::LongestSentences(most) = spec.tokenizer
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
            stopped: stop_words.as_deref().map(hashes),
            spec,
            idf,
            stop_words,
        })
    }

    /// A spec that names no tables.
    ///
    /// # Errors
    /// [`ModelError::Table`] when it does.
    pub fn plain(spec: Spec) -> Result<Self, ModelError> {
        Self::new(spec, None, None)
    }

    /// The spec.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The document frequencies, if weights use them.
    #[must_use]
    pub fn idf(&self) -> Option<&Arc<Idf>> {
        self.idf.as_ref()
    }

    /// The words that are left out, if any are.
    #[must_use]
    pub fn stop_words(&self) -> Option<&Arc<StopWords>> {
        self.stop_words.as_ref()
    }

    /// The hashes of the words that are left out, if any are.
    pub(crate) fn stopped(&self) -> Option<&Arc<HashSet<u64>>> {
        self.stopped.as_ref()
    }
}

// Digests stand for the tables.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl Eq for Model {}

impl std::hash::Hash for Model {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.spec.hash(state);
    }
}
