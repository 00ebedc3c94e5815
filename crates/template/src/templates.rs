//! The templates of sources, and texts without them.

use std::collections::HashMap;

use crate::passages::Passages;

/// A text without its template is taken as a whole if it has fewer words than this.
const LEAST_WORDS: u32 = 8;

/// The templates of sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// Keys of passages that many sources share, ascending.
    pub many_sources: Vec<u32>,
    /// Keys of passages, ascending, by the name of the source.
    pub sources: HashMap<Box<str>, Vec<u32>>,
}

impl Templates {
    /// Whether there is no template.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.many_sources.is_empty() && self.sources.is_empty()
    }

    /// Whether a passage is template in `source`.
    #[must_use]
    pub fn has(&self, source: &str, key: u32) -> bool {
        let own = self.sources.get(source);
        own.is_some_and(|keys| keys.binary_search(&key).is_ok())
            || self.many_sources.binary_search(&key).is_ok()
    }
}

/// Takes templates out of texts, with buffers that are reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    passages: Passages,
    content: String,
}

impl Contents {
    /// The content of a text of `source`: the text without the template. The whole text if fewer than eight words are left, and that
    /// of a document without a source.
    pub fn content<'t>(
        &'t mut self,
        templates: &Templates,
        source: Option<&str>,
        text: &'t str,
    ) -> &'t str {
        let own = source.and_then(|source| templates.sources.get(source));
        let many: &[u32] = match source {
            Some(_) => &templates.many_sources,
            None => &[],
        };
        let own: &[u32] = own.map_or(&[], |keys| keys);
        if own.is_empty() && many.is_empty() {
            return text;
        }
        let content = &mut self.content;
        content.clear();
        let mut left = 0;
        self.passages.each(text, |passage| {
            let is_template = passage.key.is_some_and(|key| {
                own.binary_search(&key).is_ok() || many.binary_search(&key).is_ok()
            });
            if !is_template {
                content.push_str(passage.text);
                left += passage.words;
            }
        });
        match left < LEAST_WORDS {
            true => text,
            false => content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;

    fn keys(text: &str) -> Vec<u32> {
        Page::of_text(text, &mut Passages::default()).keys
    }

    #[test]
    fn templates_are_left_out_by_source() {
        let templates = Templates {
            many_sources: keys("We use cookies."),
            sources: [("a.example".into(), keys("Home\nImprint"))].into(),
        };
        let article = "An article of more words than seven, and a second line.\n";
        let text = format!("Home\n{article}We use cookies! Imprint");
        let mut contents = Contents::default();
        let mut content = |source, text: &str| contents.content(&templates, source, text).to_owned();
        assert_eq!(content(Some("a.example"), &text), article);
        let with_frame = format!("Home\n{article}Imprint");
        assert_eq!(content(Some("b.example"), &text), with_frame);
        assert_eq!(content(None, &text), text);
        assert_eq!(content(Some("a.example"), "Home\nfew words\nImprint"), "Home\nfew words\nImprint");
        assert!(templates.has("a.example", keys("home")[0]));
        assert!(!templates.has("b.example", keys("home")[0]));
    }
}
