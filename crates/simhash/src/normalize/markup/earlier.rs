//! The markup removal of earlier archives: `strip` and `strip-boilerplate`, version 0.
//!
//! Its output decides the fingerprints of archives that exist, so it never changes. New archives have `text` or `main`.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};

/// Elements without visible text.
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
/// Elements that extend to the end of the page if they are not closed.
const RAW_TEXT: [&[u8]; 3] = [b"script", b"style", b"title"];
/// Elements that stand inside a line of text; all others end the line.
const INLINE: [&[u8]; 16] = [
    b"a", b"abbr", b"b", b"bdi", b"code", b"em", b"font", b"i", b"mark", b"q", b"s", b"small",
    b"span", b"strong", b"sub", b"sup",
];

/// Appends the text of an HTML page to `out`; without [`BOILERPLATE`] if `without_boilerplate`.
pub(super) fn strip(page: &str, without_boilerplate: bool, out: &mut String) {
    let begin = out.len();
    let mut shown = Vec::new();
    // An element that is never closed is the page's mistake: show it rather than lose the rest of the page.
    while let Some(unclosed) = strip_except(page, without_boilerplate, &shown, out) {
        if RAW_TEXT.contains(&&*unclosed) {
            break;
        }
        out.truncate(begin);
        shown.push(unclosed);
    }
}

/// [`strip`], but keeps the elements whose names are in `shown`. Returns the name of the removed element that is never
/// closed, if there is one.
fn strip_except(
    page: &str,
    without_boilerplate: bool,
    shown: &[Vec<u8>],
    out: &mut String,
) -> Option<Vec<u8>> {
    let hides = |name: &[u8]| {
        NO_TEXT.contains(&name) || (without_boilerplate && BOILERPLATE.contains(&name))
    };
    let mut emitter = DefaultEmitter::<()>::default();
    // Otherwise the tokenizer reads scripts as markup.
    emitter.naively_switch_states(true);
    // The name of the element that is being removed, and the number of open elements with this name.
    let mut hidden: Option<(Vec<u8>, usize)> = None;
    for token in Tokenizer::new_with_emitter(page, emitter) {
        let Ok(token) = token;
        match (token, &mut hidden) {
            (Token::String(text), None) => out.push_str(&String::from_utf8_lossy(&text)),
            (Token::StartTag(tag), None) => {
                let hides = hides(&tag.name) && !shown.contains(&tag.name.0);
                if hides && !tag.self_closing {
                    hidden = Some((tag.name.0.clone(), 1));
                }
                end_line_unless_inline(&tag.name, out);
            }
            (Token::StartTag(tag), Some((name, depth))) if tag.name.0 == *name => {
                *depth += usize::from(!tag.self_closing);
            }
            (Token::EndTag(tag), None) => end_line_unless_inline(&tag.name, out),
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

/// Ends the line at a tag of an element that is not inline, so that the words before and after it stay apart.
fn end_line_unless_inline(name: &[u8], out: &mut String) {
    if !INLINE.contains(&name) {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Markup;

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
        fn any_text_can_be_stripped(page in "(<[a-z/!-]{0,6}>?|\\PC{0,5}|<script>|</script>|<nav>|</nav>|&#?[a-z0-9]{0,4};?){0,20}") {
            strip(Markup::StripBoilerplate, &page);
        }
    }
}
