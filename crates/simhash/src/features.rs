//! The features of a text: markup removed, folded, and cut, with buffers that are reused from text to text.

use crate::isa::Kernel;
use crate::model::Model;
use crate::normalize::{Folder, Markup};
use crate::text::Folded;
use crate::tokenize::{Extract as _, Extractor, TakeFeature};

/// Finds the features of texts under one [`Model`].
#[derive(Debug, Clone)]
pub(crate) struct Features {
    markup: Markup,
    folder: Folder,
    extractor: Extractor,
    stripped: String,
    folded: Folded,
}

impl Features {
    pub(crate) fn new(model: &Model, kernel: Kernel) -> Self {
        let spec = model.spec();
        let stop_words = model.stop_word_hashes();
        Self {
            markup: model.markup(),
            folder: Folder::new(spec.normalize, spec.fold, kernel),
            extractor: Extractor::new(spec.tokenizer, kernel, stop_words, spec.seed),
            stripped: String::new(),
            folded: Folded::default(),
        }
    }

    /// Removes the markup of `text`, and folds the rest.
    pub(crate) fn fold(&mut self, text: &str) -> &Folded {
        let text = match self.markup {
            Markup::None => text,
            markup => {
                self.stripped.clear();
                markup.strip(text, &mut self.stripped);
                &self.stripped
            }
        };
        self.folder.fold(text, &mut self.folded);
        &self.folded
    }

    /// The text that was folded last.
    pub(crate) fn folded(&self) -> &str {
        self.folded.as_str()
    }

    /// Whether the features of the text that was folded last are its words.
    pub(crate) fn are_words(&self) -> bool {
        self.extractor.gives_words(&self.folded)
    }

    /// Gives `each` every feature of `text`, in the order of the text, once per occurrence.
    pub(crate) fn extract(&mut self, text: &str, each: &mut impl TakeFeature) {
        self.fold(text);
        self.extract_again(each);
    }

    /// Gives `each` the features of the text that was folded last.
    pub(crate) fn extract_again(&mut self, each: &mut impl TakeFeature) {
        self.extractor.extract(&self.folded, each);
    }
}
