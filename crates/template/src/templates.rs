//! The templates of sources, and texts without them.

use std::collections::HashMap;

use crate::codec::{self, Damaged, read, read_keys, read_name, write, write_keys, write_name};
use crate::passages::{Passage, each_passage};

/// The first bytes of templates as bytes.
const MAGIC: &[u8; 8] = b"DJTEMPS1";
/// A text without its template is compared within its source alone if it has fewer words than this.
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
    /// The templates as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        write_keys(&mut body, &self.many_sources);
        write(&mut body, self.sources.len() as u64);
        let mut sources: Vec<(&Box<str>, &Vec<u32>)> = self.sources.iter().collect();
        sources.sort_unstable();
        for (name, keys) in sources {
            write_name(&mut body, name);
            write_keys(&mut body, keys);
        }
        codec::compress(&body, MAGIC)
    }

    /// The templates that became `bytes`.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let body = codec::decompress(bytes, MAGIC)?;
        let mut rest = &body[..];
        let many_sources = read_keys(&mut rest)?;
        let mut sources = HashMap::new();
        for _ in 0..read(&mut rest)? {
            let name = read_name(&mut rest)?;
            sources.insert(name.into(), read_keys(&mut rest)?);
        }
        Ok(Self {
            many_sources,
            sources,
        })
    }

    /// Whether a passage is template in `source`.
    pub fn has(&self, source: &str, key: u32) -> bool {
        let own = self.sources.get(source);
        own.is_some_and(|keys| keys.binary_search(&key).is_ok())
            || self.many_sources.binary_search(&key).is_ok()
    }
}

/// Takes templates out of texts, with buffers that are reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    content: Vec<u8>,
}

impl Contents {
    /// The content of a text of `source`: the text without the template. If fewer than eight words are left, they say nothing outside
    /// of their source, and its name goes with them. The whole text if no word is left, and that of a document without a source.
    pub fn content<'t>(
        &'t mut self,
        templates: &Templates,
        source: Option<&str>,
        text: &'t [u8],
    ) -> &'t [u8] {
        self.cut(templates, source, text, |_| {})
    }

    /// As [`Self::content`]. Calls `left_out` with the passages of the template; if the whole text is returned, none is left out.
    pub fn cut<'t>(
        &'t mut self,
        templates: &Templates,
        source: Option<&str>,
        text: &'t [u8],
        mut left_out: impl FnMut(Passage<'t>),
    ) -> &'t [u8] {
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
        each_passage(text, |passage| {
            let is_template = passage.key.is_some_and(|key| {
                own.binary_search(&key).is_ok() || many.binary_search(&key).is_ok()
            });
            if is_template {
                left_out(passage);
            } else {
                content.extend_from_slice(passage.text);
                left += passage.words;
            }
        });
        if left == 0 || content.len() == text.len() {
            return text;
        }
        if left < LEAST_WORDS {
            content.push(b'\n');
            content.extend_from_slice(source.unwrap_or_default().as_bytes());
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;

    fn keys(text: &str) -> Vec<u32> {
        let passages = Page::of_text(text.as_bytes()).passages;
        passages.iter().map(|passage| passage.key).collect()
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
        let mut content = |source, text: &str| {
            let content = contents.content(&templates, source, text.as_bytes());
            String::from_utf8(content.to_vec()).unwrap()
        };
        assert_eq!(content(Some("a.example"), &text), article);
        let with_frame = format!("Home\n{article}Imprint");
        assert_eq!(content(Some("b.example"), &text), with_frame);
        assert_eq!(content(None, &text), text);
        let few = "Home\nfew words\nImprint";
        assert_eq!(content(Some("a.example"), few), "few words\n\na.example");
        assert_eq!(content(Some("a.example"), "Home\nImprint"), "Home\nImprint");
        assert_eq!(
            Templates::from_bytes(&templates.to_bytes()).as_ref(),
            Ok(&templates)
        );
        assert!(templates.has("a.example", keys("home")[0]));
        assert!(!templates.has("b.example", keys("home")[0]));
    }
}
