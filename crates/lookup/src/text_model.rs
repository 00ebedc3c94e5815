//! How texts that are looked up become fingerprints: as those of the archive did, without the templates of their sources.

use std::sync::Arc;

use archive::{spec_files, template_memory};
use simhash::{Fingerprinter, Model, Spec, Template};
use storage::Location;
use template::{Contents, Memory, Templates, domain};

use crate::error::{LookupError, Result};

/// The model of texts, and the templates of sources.
#[derive(Debug, Clone)]
pub struct TextModel {
    model: Model,
    templates: Option<Arc<Templates>>,
}

impl TextModel {
    /// Reads the model of `spec`, and the memory of templates, from the index at `location`.
    pub(crate) async fn read(
        location: &Location,
        spec: &Spec,
        memory: Option<i64>,
    ) -> Result<Self> {
        let templates = match memory {
            Some(version) => {
                let file = template_memory::read(location, version).await?;
                let memory = Memory::from_bytes(&file);
                let memory = memory.map_err(|error| LookupError::damaged(location, error))?;
                Some(Arc::new(memory.templates()))
            }
            None => None,
        };
        Ok(Self {
            model: spec_files::load(location, spec).await?,
            templates,
        })
    }

    pub fn spec(&self) -> &Spec {
        self.model.spec()
    }
}

/// Makes fingerprints of texts; has the buffers of one thread.
pub(crate) struct TextFingerprinter {
    templates: Option<Arc<Templates>>,
    fingerprinter: Fingerprinter,
    of_contents: Fingerprinter,
    contents: Contents,
    shown: String,
}

impl TextFingerprinter {
    pub(crate) fn new(model: &TextModel) -> Self {
        Self {
            templates: model.templates.clone(),
            fingerprinter: Fingerprinter::new(model.model.clone()),
            of_contents: Fingerprinter::new(model.model.without_markup()),
            contents: Contents::default(),
            shown: String::new(),
        }
    }

    /// The fingerprint of a text of `source`, as of a document; appends the sketch.
    pub(crate) fn fingerprint_and_sketch(
        &mut self,
        text: &str,
        source: Option<&str>,
        sketch: &mut Vec<u8>,
    ) -> Option<u64> {
        let Some((templates, source)) = self.templates.as_deref().zip(source) else {
            return self.fingerprinter.fingerprint_and_sketch(text, sketch);
        };
        // A person may write the host as a browser shows it.
        let without_www = source.strip_prefix("www.");
        let by_domain = self.fingerprinter.spec().template == Template::Domains;
        let source = match without_www {
            _ if templates.sources.contains_key(source) => source,
            _ if by_domain => domain(source),
            Some(host) => host,
            None => source,
        };
        self.shown.clear();
        self.fingerprinter
            .spec()
            .markup
            .strip(text, &mut self.shown);
        let content = self
            .contents
            .content(templates, Some(source), self.shown.as_bytes());
        let content = String::from_utf8_lossy(content);
        self.of_contents.fingerprint_and_sketch(&content, sketch)
    }
}
