//! How a batch's fingerprints are made: under the archive's spec, which the options must not
//! contradict, or without an archive under the options' spec.

use std::sync::Arc;

use archive::{Archive, ArchiveError, SpecFiles, frequencies};
use bytes::Bytes;
use simhash::{
    Fold, Idf, IdfPower, Markup, Model, ModelError, Normalize, ShortTexts, SketchBits, Spec,
    StopWords, Template, Tokenizer, Weight,
};
use storage::Stores;

use crate::error::{EngineError, Result};
use crate::profile::Profile;
use documents::{Documents, Pages};

/// The spec fields that the options set, as in [`Spec`]. The others come from the archive's spec or, without an
/// archive, from the default spec.
#[derive(Debug, Clone, Default)]
pub struct SpecOptions {
    pub tokenizer: Option<Tokenizer>,
    pub weight: Option<Weight>,
    pub fold: Option<Fold>,
    pub normalize: Option<Normalize>,
    pub markup: Option<Markup>,
    pub min_features: Option<u32>,
    pub seed: Option<u32>,
    pub short_texts: Option<ShortTexts>,
    pub template: Option<Template>,
    pub sketch: Option<SketchBits>,
    /// A file of document frequencies, as `dedup-job idf` makes them.
    pub idf: Option<OptionFile>,
    /// See [`Spec::idf_power`]; without it, a new spec with document frequencies has [`IDF_POWER`].
    pub idf_power: Option<IdfPower>,
    /// A file of stop words, one a line.
    pub stop_words: Option<OptionFile>,
}

/// The power of the inverse document frequency in a new spec. In an archive of a billion documents
/// it keeps unrelated ones apart, even if the frequencies were learnt from other documents;
/// docs/quality.md has the figures.
pub const IDF_POWER: IdfPower = IdfPower::Half;

/// A file that an option names, with its content.
#[derive(Debug, Clone)]
pub struct OptionFile {
    pub name: String,
    pub bytes: Bytes,
}

impl OptionFile {
    pub async fn read(stores: &Stores, path: &str) -> Result<Self> {
        let bytes = stores.locate(path)?.read().await?;
        Ok(Self {
            name: path.to_owned(),
            bytes,
        })
    }
}

/// Where the fingerprints of documents come from.
#[derive(Debug, Clone)]
pub enum Recipe {
    /// The documents contain them, made under this spec.
    Ready(Spec),
    /// This model makes them from the texts.
    Texts(Model),
}

impl Recipe {
    pub fn spec(&self) -> &Spec {
        match self {
            Self::Ready(spec) => spec,
            Self::Texts(model) => model.spec(),
        }
    }
}

impl SpecOptions {
    /// These options for a new spec under which `documents` are fingerprinted: of pages, the visible text counts, unless an
    /// option says otherwise.
    pub fn for_documents(&self, documents: &Documents) -> Self {
        let of_pages = documents.have_pages().then_some(Markup::Text);
        Self {
            markup: self.markup.or(of_pages),
            ..self.clone()
        }
    }

    /// These options for a new spec of texts by `profile`.
    pub fn for_profile(&self, profile: Profile) -> Self {
        Self {
            short_texts: self.short_texts.or(Some(profile.short_texts())),
            template: self.template.or(Some(profile.template())),
            ..self.clone()
        }
    }

    /// How `spec` wants the pages among `documents` to be read; `name` is that of the archive that has the spec.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if there are pages, and the spec leaves their markup in, but no option asks for that.
    pub fn pages(&self, documents: &Documents, name: &str, spec: &Spec) -> Result<Pages> {
        let asked = self.markup == Some(Markup::None);
        match spec.markup.is_none() {
            false => Ok(Pages::Html),
            true if asked || !documents.have_pages() => Ok(Pages::Source),
            true => Err(EngineError::Usage(format!(
                "{}: these are pages, and {name} compares texts as they are, with their markup: make an archive of visible texts by `dedup-job archive create --markup text`, or compare the pages' source with --markup none",
                documents.given()
            ))),
        }
    }

    /// How pages are read whose texts are compared under `spec`: those of the batch again, or those of the archive.
    pub fn pages_under(&self, spec: &Spec) -> Pages {
        match self.markup {
            _ if !spec.markup.is_none() => Pages::Html,
            Some(Markup::None) => Pages::Source,
            _ => Pages::VisibleText,
        }
    }

    /// The model of the default spec with the options' fields, and the spec files that an archive
    /// keeps.
    ///
    /// # Errors
    /// [`EngineError`] when a file has bad data, or the options contradict each other.
    pub fn model_and_files(&self) -> Result<(Model, SpecFiles)> {
        self.complete(Spec::default())
    }

    /// The model of the default spec with the fields that the options set.
    pub fn model(&self) -> Result<Model> {
        Ok(self.model_and_files()?.0)
    }

    /// The model of an archive, with which the options must agree.
    pub async fn model_from_archive(&self, archive: &Archive) -> Result<Model> {
        self.check(&archive.location().to_string(), archive.spec())?;
        Ok(archive.model().await?)
    }

    /// The model of the archive at the path `base`; without a path, [`Self::model`].
    pub async fn model_at(&self, stores: &Stores, base: Option<&str>) -> Result<Model> {
        match base {
            None => self.model(),
            Some(base) => {
                self.model_from_archive(&Archive::open(&stores.locate(base)?).await?)
                    .await
            }
        }
    }

    /// The model of the plain fingerprint files called `name`, which were made under `spec`. Plain
    /// files keep no document frequencies or stop words, so the options must name those.
    ///
    /// # Errors
    /// As [`Self::model_and_files`], and [`ArchiveError::SpecMismatch`] when the options ask for another spec.
    pub fn model_of_plain_files(&self, name: &str, spec: &Spec) -> Result<Model> {
        let (model, _) = self.complete(spec.clone())?;
        check_same(name, spec, model.spec())?;
        Ok(model)
    }

    /// The files that an archive of this spec keeps, so that later runs make the same model.
    pub fn files(&self, spec: &Spec) -> Result<SpecFiles> {
        Ok(self.complete(spec.clone())?.1)
    }

    /// Checks that the options do not contradict `spec`, which is the spec of the object called
    /// `name`.
    ///
    /// # Errors
    /// [`ArchiveError::SpecMismatch`], or [`EngineError`] when a file has bad data.
    pub fn check(&self, name: &str, spec: &Spec) -> Result<()> {
        check_same(name, spec, &self.resolve(spec.clone())?.0)
    }

    /// `spec` with all fields that the options set, the weights by document frequency, and the spec
    /// files that an archive keeps.
    fn resolve(&self, spec: Spec) -> Result<(Spec, Option<Idf>, SpecFiles)> {
        let mut spec = Spec {
            tokenizer: self.tokenizer.unwrap_or(spec.tokenizer),
            weight: self.weight.unwrap_or(spec.weight),
            fold: self.fold.unwrap_or(spec.fold),
            normalize: self.normalize.unwrap_or(spec.normalize),
            markup: self.markup.unwrap_or(spec.markup),
            markup_version: self.markup.map_or(spec.markup_version, Markup::version),
            min_features: self.min_features.unwrap_or(spec.min_features),
            seed: self.seed.unwrap_or(spec.seed),
            short_texts: self.short_texts.unwrap_or(spec.short_texts),
            sketch: self.sketch.unwrap_or(spec.sketch),
            template: self.template.unwrap_or(spec.template),
            idf_power: self.idf_power.unwrap_or(match (&self.idf, &spec.idf) {
                (Some(_), None) => IDF_POWER,
                _ => spec.idf_power,
            }),
            ..spec
        };
        let stop_words = match &self.stop_words {
            Some(file) => {
                let list = std::str::from_utf8(&file.bytes)
                    .map_err(|error| EngineError::bad_data(&file.name, error.to_string()))?;
                let list = StopWords::parse(list, &spec);
                spec.stop_words = Some(list.digest().to_owned());
                Some(list)
            }
            None => None,
        };
        let (idf, frequencies) = match &self.idf {
            Some(file) => {
                let (features, counts) = frequencies::decode(&file.name, file.bytes.clone())?;
                let idf = frequencies::weights(&file.name, &features, &spec, &counts)?;
                spec.idf = Some(idf.digest().to_owned());
                (Some(idf), Some((features, counts)))
            }
            None => (None, None),
        };
        if spec.idf.is_none() && self.idf_power.is_some() {
            return Err(EngineError::Usage(
                "--idf-power needs document frequencies: --idf FILE, or `archive create --learn`"
                    .into(),
            ));
        }
        let files = SpecFiles {
            frequencies,
            stop_words,
        };
        Ok((spec, idf, files))
    }

    /// The model of `spec` with the options' fields, and the spec files that an archive keeps.
    fn complete(&self, spec: Spec) -> Result<(Model, SpecFiles)> {
        let (spec, idf, files) = self.resolve(spec)?;
        let stop_words = files.stop_words.clone();
        Model::new(spec, idf.map(Arc::new), stop_words.map(Arc::new))
            .map(|model| (model, files))
            .map_err(|error| EngineError::Configuration(self.explain(error)))
    }

    /// The message of an error of the model. It names the option that helps.
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
                    "the fingerprints of --base were made with {what} {expected}, which plain files do not keep: name them by {option}"
                )
            }
            ModelError::Features { .. } => match &self.idf {
                Some(file) => format!("{}: {error}", file.name),
                None => error.to_string(),
            },
            _ => error.to_string(),
        }
    }
}

/// Refuses the options' spec `asked` if it differs from `spec`, which is the spec of the object
/// called `name`.
fn check_same(name: &str, spec: &Spec, asked: &Spec) -> Result<()> {
    if spec == asked {
        return Ok(());
    }
    Err(ArchiveError::SpecMismatch {
        left: name.to_owned(),
        right: "the options".to_owned(),
        differences: spec.differences(asked),
    }
    .into())
}
