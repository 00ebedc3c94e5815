//! Taking markup out of a page, where that is asked for.

use html5gum::{Token, Tokenizer};
use serde::{Deserialize, Serialize};

/// What is taken out of a text before it is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Markup {
    /// HTML tags and comments, and what is no text: scripts, styles, templates.
    Strip,
    /// The same, and what stands around the text of a page: navigation, header, footer, asides, forms.
    StripBoilerplate,
}

const NO_TEXT: [&[u8]; 6] = [
    b"script",
    b"style",
    b"template",
    b"noscript",
    b"svg",
    b"head",
];
const BOILERPLATE: [&[u8]; 7] = [
    b"nav", b"header", b"footer", b"aside", b"form", b"menu", b"dialog",
];
/// Elements inside a line; all others end one.
const INLINE: [&[u8]; 16] = [
    b"a", b"abbr", b"b", b"bdi", b"code", b"em", b"font", b"i", b"mark", b"q", b"s", b"small",
    b"span", b"strong", b"sub", b"sup",
];

impl Markup {
    /// Appends the text of an HTML page to `out`. Any bytes can be read as HTML.
    pub fn strip(self, page: &str, out: &mut String) {
        // The element that is left out, and how many of the same name are open.
        let mut hidden: Option<(Vec<u8>, usize)> = None;
        for token in Tokenizer::new(page) {
            let Ok(token) = token;
            match (token, &mut hidden) {
                (Token::String(text), None) => out.push_str(&String::from_utf8_lossy(&text)),
                (Token::StartTag(tag), None) => {
                    if self.hides(&tag.name) && !tag.self_closing {
                        hidden = Some((tag.name.0.clone(), 1));
                    }
                    separate(&tag.name, out);
                }
                (Token::StartTag(tag), Some((name, depth))) if tag.name.0 == *name => {
                    *depth += usize::from(!tag.self_closing);
                }
                (Token::EndTag(tag), None) => separate(&tag.name, out),
                (Token::EndTag(tag), Some((name, depth))) if tag.name.0 == *name => {
                    *depth -= 1;
                    if *depth == 0 {
                        hidden = None;
                    }
                }
                _ => {}
            }
        }
    }

    fn hides(self, name: &[u8]) -> bool {
        NO_TEXT.contains(&name) || (self == Self::StripBoilerplate && BOILERPLATE.contains(&name))
    }
}

/// Words on both sides of an element that is no part of a line are not one.
fn separate(name: &[u8], out: &mut String) {
    if !INLINE.contains(&name) {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strip(markup: Markup, page: &str) -> Vec<String> {
        let mut out = String::new();
        markup.strip(page, &mut out);
        out.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn text_of_a_page() {
        let page = "<!doctype html><html><head><title>T</title><style>p {}</style></head><body><nav><nav>x</nav>Home</nav>\
            <p>One <b>t</b>wo &amp; three<br>four<!-- five --><script>if (a < b) {}</script></p><footer>Legal</footer>";
        assert_eq!(
            strip(Markup::Strip, page),
            ["x", "Home", "One", "two", "&", "three", "four", "Legal"]
        );
        assert_eq!(
            strip(Markup::StripBoilerplate, page),
            ["One", "two", "&", "three", "four"]
        );
        assert_eq!(
            strip(Markup::Strip, "no markup, 1 < 2"),
            ["no", "markup,", "1", "<", "2"]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(page in "(<[a-z/!-]{0,6}>?|\\PC{0,5}|<script>|</script>|<nav>|</nav>|&#?[a-z0-9]{0,4};?){0,20}") {
            strip(Markup::StripBoilerplate, &page);
        }
    }
}
