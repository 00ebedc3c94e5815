//! Texts without the templates of their sources.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryViewBuilder, StringArray};
use simhash::Markup;
use template::{Contents, Templates};

/// An element whose content, up to the end of the page, is text: plain texts are read so as HTML.
pub(super) const PLAIN_TEXT: &str = "<plaintext>";

/// What is left out of the texts of documents.
#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The templates of the sources.
    pub templates: Templates,
    /// The markup: passages are those of the text without it.
    pub markup: Markup,
}

impl LeftOut {
    /// The contents of texts, which are without markup.
    pub(super) fn contents(&self, texts: &ArrayRef, sources: &StringArray) -> ArrayRef {
        let texts = texts.as_binary_view();
        let mut found = BinaryViewBuilder::with_capacity(texts.len());
        let (mut contents, mut shown) = (Contents::default(), String::new());
        for (text, source) in texts.iter().zip(sources) {
            let content = text.map(|text| {
                let text = visible(self.markup, text, &mut shown);
                contents.content(&self.templates, source, text)
            });
            found.append_option(content);
        }
        Arc::new(found.finish())
    }
}

/// The text without markup.
pub fn visible<'t>(markup: Markup, text: &'t [u8], shown: &'t mut String) -> &'t [u8] {
    if markup.is_none() {
        return text;
    }
    // A plain text, as `page_text` makes HTML of it: its lines count.
    if let Some(plain) = text.strip_prefix(PLAIN_TEXT.as_bytes()) {
        return plain;
    }
    shown.clear();
    markup.strip(&String::from_utf8_lossy(text), shown);
    shown.as_bytes()
}
