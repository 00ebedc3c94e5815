//! [`Model`]: a spec of fingerprints with its tables, for Python.

use std::collections::HashMap;

use archive::Archive;
use engine::SpecOptions;
use engine::recipe::OptionFile;
use pyo3::prelude::*;
use simhash::Spec;
use storage::Stores;

use crate::error::Failed;
use crate::interrupt::wait_for;
use crate::stores::{parse, stores};

/// How fingerprints are made: a spec, and the tables that it names.
#[pyclass(frozen, module = "dedup_job._native")]
pub(crate) struct Model {
    pub(crate) model: simhash::Model,
}

#[pymethods]
impl Model {
    /// The default spec, with the options of the command line: their names without dashes, and their values as text.
    #[staticmethod]
    fn from_options(py: Python<'_>, options: HashMap<String, String>) -> PyResult<Self> {
        let model = wait_for(py, async || Ok(spec_options(&options).await?.model()?))?;
        Ok(Self { model })
    }

    /// The spec of an archive. storage has the options of object stores, as text.
    #[staticmethod]
    fn from_archive(
        py: Python<'_>,
        path: String,
        storage: HashMap<String, String>,
    ) -> PyResult<Self> {
        let stores = stores(&storage)?;
        let model = wait_for(py, async || {
            let archive = Archive::open(&stores.locate(&path)?).await?;
            Ok(archive.model().await?)
        })?;
        Ok(Self { model })
    }

    /// A spec in JSON that names no tables.
    #[staticmethod]
    fn from_json(text: String) -> PyResult<Self> {
        let spec = Spec::from_json(&text).map_err(Failed::from)?;
        let model = simhash::Model::plain(spec).map_err(Failed::from)?;
        Ok(Self { model })
    }

    /// Copies the spec, with sketches of `bits` bits.
    fn with_sketch(&self, bits: u32) -> PyResult<Self> {
        let model = &self.model;
        let sketch = parse("bits", &bits.to_string())?;
        let spec = Spec {
            sketch,
            ..model.spec().clone()
        };
        let (idf, stop_words) = (model.idf().cloned(), model.stop_words().cloned());
        let model = simhash::Model::new(spec, idf, stop_words).map_err(Failed::from)?;
        Ok(Self { model })
    }

    /// The spec as canonical JSON.
    #[getter]
    fn json(&self) -> String {
        self.model.spec().to_json()
    }

    /// SHA-256 of the canonical JSON.
    #[getter]
    fn digest(&self) -> String {
        self.model.spec().digest()
    }
}

/// The fields of a spec that options set; reads the files that they name.
async fn spec_options(options: &HashMap<String, String>) -> Result<SpecOptions, Failed> {
    let stores = Stores::default();
    let mut set = SpecOptions::default();
    for (name, value) in options {
        match name.as_str() {
            "hash_seed" => set.seed = Some(parse(name, value)?),
            "idf" => set.idf = Some(OptionFile::read(&stores, value).await?),
            "idf_power" => set.idf_power = Some(parse(name, value)?),
            "markup" => set.markup = Some(parse(name, value)?),
            "min_features" => set.min_features = Some(parse(name, value)?),
            "fold" => set.fold = Some(parse(name, value)?),
            "normalize" => set.normalize = Some(parse(name, value)?),
            "short_texts" => set.short_texts = Some(parse(name, value)?),
            "sketch" => set.sketch = Some(parse(name, value)?),
            "template" => set.template = Some(parse(name, value)?),
            "stop_words" => set.stop_words = Some(OptionFile::read(&stores, value).await?),
            "tokenizer" => set.tokenizer = Some(parse(name, value)?),
            "weight" => set.weight = Some(parse(name, value)?),
            _ => return Err(Failed::usage(format!("a spec has no option {name}"))),
        }
    }
    Ok(set)
}
