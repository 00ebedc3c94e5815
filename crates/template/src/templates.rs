//! The templates of sources, and texts without them.

use std::collections::HashMap;

use crate::codec::{self, Damaged, read, read_keys, read_name, write, write_keys, write_name};
use crate::learnt::{LearntPassage, Role};
use crate::passages::{Passage, each_passage};

/// The first bytes of templates as bytes.
const MAGIC: &[u8; 8] = b"DJTEMPS2";
/// A text without its template is compared within its source alone if it has fewer words than this.
const LEAST_WORDS: u32 = 8;

/// The templates of sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// Keys of passages that many sources share, ascending.
    pub many_sources: Vec<u32>,
    /// By the name of the source.
    pub sources: HashMap<Box<str>, Template>,
}

/// The template of a source: keys of passages, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub frame: Vec<u32>,
    /// Left out of a page only if they are a small part of it.
    pub inserts: Vec<u32>,
}

impl Template {
    /// The passages that are no content.
    pub(crate) fn of<'p>(passages: impl IntoIterator<Item = &'p LearntPassage>) -> Self {
        let mut template = Self::default();
        for passage in passages {
            match passage.role {
                Role::Content => {}
                Role::Insert => template.inserts.push(passage.key),
                Role::Frame => template.frame.push(passage.key),
            }
        }
        template.inserts.sort_unstable();
        template.frame.sort_unstable();
        template
    }

    pub fn len(&self) -> usize {
        self.frame.len() + self.inserts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_frame(&self, key: u32) -> bool {
        has(&self.frame, key)
    }
}

fn has(keys: &[u32], key: u32) -> bool {
    keys.binary_search(&key).is_ok()
}

/// Whether `words` are at most a third of a page's `own` words, which are those beside the frame.
pub(crate) fn is_small_part(words: u32, own: u32) -> bool {
    3 * u64::from(words) <= u64::from(own)
}

impl Templates {
    /// The templates as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        write_keys(&mut body, &self.many_sources);
        write(&mut body, self.sources.len() as u64);
        let mut sources: Vec<(&Box<str>, &Template)> = self.sources.iter().collect();
        sources.sort_unstable_by_key(|(name, _)| *name);
        for (name, template) in sources {
            write_name(&mut body, name);
            write_keys(&mut body, &template.frame);
            write_keys(&mut body, &template.inserts);
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
            let template = Template {
                frame: read_keys(&mut rest)?,
                inserts: read_keys(&mut rest)?,
            };
            sources.insert(name.into(), template);
        }
        Ok(Self {
            many_sources,
            sources,
        })
    }

    /// Whether a passage is template in `source`.
    pub fn has(&self, source: &str, key: u32) -> bool {
        let own = self.sources.get(source);
        own.is_some_and(|own| own.is_frame(key) || has(&own.inserts, key))
            || has(&self.many_sources, key)
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
        let Some(source) = source else {
            return text;
        };
        let (many, nothing) = (&templates.many_sources, Template::default());
        let own = templates.sources.get(source).unwrap_or(&nothing);
        if own.is_empty() && many.is_empty() {
            return text;
        }
        let is_frame = |key: u32| has(&own.frame, key) || has(many, key);
        let (mut words, mut of_inserts) = (0, 0);
        if !own.inserts.is_empty() {
            each_passage(text, |passage| {
                if !passage.key.is_some_and(is_frame) {
                    words += passage.words;
                    let is_insert = passage.key.is_some_and(|key| has(&own.inserts, key));
                    of_inserts += if is_insert { passage.words } else { 0 };
                }
            });
        }
        let leaves_inserts_out = of_inserts > 0 && is_small_part(of_inserts, words);
        let content = &mut self.content;
        content.clear();
        let mut left = 0;
        each_passage(text, |passage| {
            let is_left_out = |key| is_frame(key) || (leaves_inserts_out && has(&own.inserts, key));
            if passage.key.is_some_and(is_left_out) {
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
            content.extend_from_slice(source.as_bytes());
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
        let template = Template {
            frame: keys("Home\nImprint"),
            inserts: keys("Buy two now!\nAnd one for a friend."),
        };
        let templates = Templates {
            many_sources: keys("We use cookies."),
            sources: [("a.example".into(), template)].into(),
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
        let with_insert = format!("{article}Buy two now!\n");
        assert_eq!(content(Some("a.example"), &with_insert), article);
        // Together they are more than a third of the page.
        let with_inserts = format!("{with_insert}And one for a friend.\n");
        assert_eq!(content(Some("a.example"), &with_inserts), with_inserts);
        let few = "Home\nfew words\nImprint";
        assert_eq!(content(Some("a.example"), few), "few words\n\na.example");
        assert_eq!(content(Some("a.example"), "Home\nImprint"), "Home\nImprint");
        let read = Templates::from_bytes(&templates.to_bytes());
        assert_eq!(read.as_ref(), Ok(&templates));
        assert!(templates.has("a.example", keys("home")[0]));
        assert!(!templates.has("b.example", keys("home")[0]));
    }
}
