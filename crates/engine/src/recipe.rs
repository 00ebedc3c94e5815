//! How the new day gets its fingerprints: what was asked for, and what the base asks for.

use std::sync::Arc;

use archive::{Archive, ArchiveError, Kept, Stores, frequencies};
use bytes::Bytes;
use simhash::{Idf, Markup, Model, ModelError, Normalize, Spec, StopWords, Tokenizer, Weight};

use crate::error::{EngineError, Result};

/// What is asked for of a spec; what is not asked for is the base's, or else the default.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// See [`Spec::tokenizer`].
    pub tokenizer: Option<Tokenizer>,
    /// See [`Spec::weight`].
    pub weight: Option<Weight>,
    /// See [`Spec::normalize`].
    pub normalize: Option<Normalize>,
    /// See [`Spec::markup`].
    pub markup: Option<Markup>,
    /// See [`Spec::min_features`].
    pub min_features: Option<u32>,
    /// See [`Spec::seed`].
    pub seed: Option<u32>,
    /// A file of document frequencies, as `dedup-job idf` makes them.
    pub idf: Option<Given>,
    /// A file of words that are left out, one a line.
    pub stop_words: Option<Given>,
}

/// A file that was given, read.
#[derive(Debug, Clone)]
pub struct Given {
    /// What errors call it.
    pub name: String,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Given {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`ArchiveError`] when it cannot be read.
    pub async fn read(stores: &Stores, path: &str) -> Result<Self> {
        let bytes = stores.locate(path)?.read().await?;
        Ok(Self {
            name: path.to_owned(),
            bytes,
        })
    }
}

/// How fingerprints come about.
#[derive(Debug, Clone)]
pub enum Recipe {
    /// They are there already, made under this spec.
    Ready(Spec),
    /// Of texts.
    Texts(Model),
}

impl Recipe {
    /// The spec of the fingerprints.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        match self {
            Self::Ready(spec) => spec,
            Self::Texts(model) => model.spec(),
        }
    }
}

impl Wanted {
    /// The model that results, and what has to be kept with an archive of it.
    ///
    /// # Errors
    /// [`EngineError`] when a file cannot be read, or things do not go together.
    pub fn model_and_kept(&self) -> Result<(Model, Kept)> {
        self.over(Spec::default())
    }

    /// The model that results.
    ///
    /// # Errors
    /// As [`Self::model_and_kept`].
    pub fn model(&self) -> Result<Model> {
        Ok(self.model_and_kept()?.0)
    }

    /// The model of an archive.
    ///
    /// # Errors
    /// As [`Self::check`], and when the archive's tables cannot be read.
    pub async fn model_of(&self, archive: &Archive) -> Result<Model> {
        self.check(&archive.location().to_string(), archive.spec())?;
        Ok(archive.model().await?)
    }

    /// The model of the archive at `base`, or, without one, that which results.
    ///
    /// # Errors
    /// As [`Self::model_of`].
    pub async fn model_at(&self, stores: &Stores, base: Option<&str>) -> Result<Model> {
        match base {
            None => self.model(),
            Some(base) => {
                self.model_of(&Archive::open(&stores.locate(base)?).await?)
                    .await
            }
        }
    }

    /// The model for texts that are to be compared with fingerprints of `base`, where no archive keeps its tables.
    ///
    /// # Errors
    /// As [`Self::model_and_kept`], and when something else is asked for than the base has.
    pub fn model_for(&self, name: &str, base: &Spec) -> Result<Model> {
        let (model, _) = self.over(base.clone())?;
        agree(name, base, model.spec())?;
        Ok(model)
    }

    /// What has to be kept of a model of this spec, so that others can make the same.
    ///
    /// # Errors
    /// As [`Self::model_and_kept`].
    pub fn kept(&self, spec: &Spec) -> Result<Kept> {
        Ok(self.over(spec.clone())?.1)
    }

    /// Checks that nothing else is asked for than `base` has.
    ///
    /// # Errors
    /// [`ArchiveError::SpecMismatch`], or when a file cannot be read.
    pub fn check(&self, name: &str, base: &Spec) -> Result<()> {
        agree(name, base, &self.resolve(base.clone())?.0)
    }

    /// `base` with what can be asked for without a file.
    fn plain(&self, base: Spec) -> Spec {
        Spec {
            tokenizer: self.tokenizer.unwrap_or(base.tokenizer),
            weight: self.weight.unwrap_or(base.weight),
            normalize: self.normalize.unwrap_or(base.normalize),
            markup: self.markup.or(base.markup),
            min_features: self.min_features.unwrap_or(base.min_features),
            seed: self.seed.unwrap_or(base.seed),
            ..base
        }
    }

    /// `base` with all that is asked for, the table of frequencies, and what has to be kept.
    fn resolve(&self, base: Spec) -> Result<(Spec, Option<Idf>, Kept)> {
        let mut spec = self.plain(base);
        let stop_words = self.stop_words(&spec)?;
        if let Some(list) = &stop_words {
            spec.stop_words = Some(list.digest().to_owned());
        }
        let (idf, frequencies) = self.idf(spec.seed)?.unzip();
        if let Some(idf) = &idf {
            spec.idf = Some(idf.digest().to_owned());
        }
        let kept = Kept {
            frequencies,
            stop_words,
        };
        Ok((spec, idf, kept))
    }

    fn over(&self, base: Spec) -> Result<(Model, Kept)> {
        let (spec, idf, kept) = self.resolve(base)?;
        let stop_words = kept.stop_words.clone();
        Model::new(spec, idf.map(Arc::new), stop_words.map(Arc::new))
            .map(|model| (model, kept))
            .map_err(|error| EngineError::Configuration(self.explain(error)))
    }

    /// What to do about it.
    fn explain(&self, error: ModelError) -> String {
        match &error {
            ModelError::Table {
                what,
                expected,
                found,
            } if found == "none" => {
                let option = match *what {
                    "stop words" => "--stop-words",
                    _ => "--idf",
                };
                format!(
                    "the base's fingerprints were made with {what} {expected}, which plain files do not keep: give them by {option}"
                )
            }
            ModelError::Features { .. } => match &self.idf {
                Some(file) => format!("{}: {error}", file.name),
                None => error.to_string(),
            },
            _ => error.to_string(),
        }
    }

    fn stop_words(&self, spec: &Spec) -> Result<Option<StopWords>> {
        let Some(file) = &self.stop_words else {
            return Ok(None);
        };
        let list = std::str::from_utf8(&file.bytes).map_err(|error| EngineError::BadData {
            object: file.name.clone(),
            reason: error.to_string(),
        })?;
        Ok(Some(StopWords::parse(list, spec.normalize)))
    }

    fn idf(&self, seed: u32) -> Result<Option<(Idf, (Spec, simhash::DocumentFrequencies))>> {
        let Some(file) = &self.idf else {
            return Ok(None);
        };
        let (spec, of) = frequencies::decode(&file.name, file.bytes.clone())?;
        let idf = frequencies::table(&file.name, &spec, seed, &of)?;
        Ok(Some((idf, (spec, of))))
    }
}

fn agree(name: &str, base: &Spec, asked: &Spec) -> Result<()> {
    if base == asked {
        return Ok(());
    }
    Err(ArchiveError::SpecMismatch {
        left: name.to_owned(),
        right: "the options".to_owned(),
        differences: base.differences(asked),
    }
    .into())
}
