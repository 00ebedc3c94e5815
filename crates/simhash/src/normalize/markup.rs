//! Taking markup out of a page, where that is asked for.

use html5gum::emitters::default::DefaultEmitter;
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
    b"title",
    b"template",
    b"noscript",
    b"svg",
];
const BOILERPLATE: [&[u8]; 7] = [
    b"nav", b"header", b"footer", b"aside", b"form", b"menu", b"dialog",
];
/// Elements that go on to the end of a page where they are not closed.
const RAW_TEXT: [&[u8]; 3] = [b"script", b"style", b"title"];
/// Elements inside a line; all others end one.
const INLINE: [&[u8]; 16] = [
    b"a", b"abbr", b"b", b"bdi", b"code", b"em", b"font", b"i", b"mark", b"q", b"s", b"small",
    b"span", b"strong", b"sub", b"sup",
];

impl Markup {
    /// Appends the text of an HTML page to `out`. Any bytes can be read as HTML.
    pub fn strip(self, page: &str, out: &mut String) {
        let begin = out.len();
        let mut shown = Vec::new();
        // An element that is never closed is a mistake of the page, and is no reason to lose the rest of it.
        while let Some(unclosed) = self.strip_but(page, &shown, out) {
            if RAW_TEXT.contains(&&*unclosed) {
                break;
            }
            out.truncate(begin);
            shown.push(unclosed);
        }
    }

    /// Strips, but shows the elements with some names. Gives the hidden element that is never closed, if there is one.
    fn strip_but(self, page: &str, shown: &[Vec<u8>], out: &mut String) -> Option<Vec<u8>> {
        let mut emitter = DefaultEmitter::<()>::default();
        // Else scripts are read as if they were markup.
        emitter.naively_switch_states(true);
        // The element that is left out, and how many of the same name are open.
        let mut hidden: Option<(Vec<u8>, usize)> = None;
        for token in Tokenizer::new_with_emitter(page, emitter) {
            let Ok(token) = token;
            match (token, &mut hidden) {
                (Token::String(text), None) => out.push_str(&String::from_utf8_lossy(&text)),
                (Token::StartTag(tag), None) => {
                    let hides = self.hides(&tag.name) && !shown.contains(&tag.name.0);
                    if hides && !tag.self_closing {
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
        hidden.map(|(name, _)| name)
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
        for page in [
            "<script>if(a<b){x()}</script><p>one two</p>",
            "<script>var s=\"<script>\";</script><p>one two",
            "<html><head><title>T</title><body><p>one two</p>",
            "<html><head><meta><style>a<b</style></head><svg><g></svg><p>one<nav></p>two",
            "<template>one <p>two",
        ] {
            for markup in [Markup::Strip, Markup::StripBoilerplate] {
                assert_eq!(strip(markup, page), ["one", "two"], "{page}");
            }
        }
        assert_eq!(strip(Markup::Strip, "one<script>two"), ["one"]);
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
