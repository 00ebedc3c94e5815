//! The visible text of a page by definition: slow, from the tokens of html5gum. Tests compare [`super::visible_text`]
//! with it.
//!
//! It shares the rules by which elements are closed, which have tests of their own; see [`super::open`].

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, State, Token, Tokenizer};

use super::elements::{Element, HIDDEN};
use super::hidden::Sight;
use super::names::key;
use super::open::OpenElements;
use super::scan::Tag;
use super::write::Gap;

/// Stand for gaps. No page of a test has them.
const SPACE: char = '\u{e000}';
const LINE: char = '\u{e001}';

pub(super) fn visible_text(page: &str) -> String {
    let mut shown = Vec::new();
    loop {
        let hides = shown.len() <= 3;
        match read(page, |number| !hides || shown.contains(&number)) {
            Ok(text) => return text,
            Err(unclosed) => shown.push(unclosed),
        }
    }
}

/// Reads a page, with its hidden elements if `is_shown` says so of the number of their start tag. An error is the
/// number of a hidden element that is not closed.
fn read(page: &str, is_shown: impl Fn(usize) -> bool) -> Result<String, usize> {
    let mut tokenizer = Tokenizer::new_with_emitter(page, DefaultEmitter::<()>::default());
    let mut open = OpenElements::<()>::new();
    let mut text = String::new();
    let mut number = 0;
    // Whether the text up to the next tag is that of a script or the like.
    let mut is_left_out = false;
    while let Some(Ok(token)) = tokenizer.next() {
        match token {
            Token::String(string) => {
                if open.sight() == Sight::Shown && !is_left_out {
                    let string = std::str::from_utf8(&string).expect("tags are ASCII");
                    text.extend(string.chars().filter(|c| *c != '\0'));
                }
            }
            Token::StartTag(start) => {
                number += 1;
                let mut tag = tag(&start.name, start.self_closing, number);
                let has = |name: &&str| start.attributes.contains_key(name.as_bytes());
                tag.is_html = match tag.element {
                    Element::Font => ["color", "face", "size"].iter().any(has),
                    Element::AnnotationXml => start
                        .attributes
                        .get(b"encoding".as_slice())
                        .is_some_and(|value| {
                            value.eq_ignore_ascii_case(b"text/html")
                                || value.eq_ignore_ascii_case(b"application/xhtml+xml")
                        }),
                    _ => false,
                };
                let opens = open.make_way(tag);
                let is_foreign = open.is_foreign();
                let outer = open.sight();
                if has_place(outer) {
                    text.extend(separator(tag.element));
                }
                if opens {
                    let sight = if is_shown(number) {
                        outer
                    } else {
                        sight(outer, &start)
                    };
                    open.open(tag, sight, ());
                }
                if let Some((state, leaves_out)) = raw_text(&start.name)
                    && !is_foreign
                {
                    tokenizer.set_state(state);
                    is_left_out = leaves_out;
                }
            }
            Token::EndTag(end) => {
                let tag = tag(&end.name, false, 0);
                open.close(tag);
                if has_place(open.sight()) {
                    text.extend(separator(tag.element));
                }
                is_left_out = false;
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    match open.hidden_since() {
        Some(unclosed) => Err(unclosed),
        None => Ok(collapse(&text)),
    }
}

fn tag(name: &[u8], self_closing: bool, at: usize) -> Tag {
    let name = key(name);
    Tag {
        name,
        element: Element::of(name),
        self_closing,
        is_html: false,
        at,
    }
}

fn separator(element: Element) -> Option<char> {
    match element.gap() {
        Gap::None => None,
        Gap::Space => Some(SPACE),
        Gap::Line | Gap::Block => Some(LINE),
    }
}

/// The state of the tokenizer behind a start tag, if it is another, and whether the text there is left out.
fn raw_text(name: &[u8]) -> Option<(State, bool)> {
    match name {
        b"textarea" => Some((State::RcData, false)),
        b"title" => Some((State::RcData, true)),
        b"xmp" => Some((State::RawText, false)),
        b"plaintext" => Some((State::PlainText, false)),
        b"script" => Some((State::ScriptData, true)),
        b"style" | b"noscript" | b"iframe" | b"noembed" | b"noframes" => {
            Some((State::RawText, true))
        }
        _ => None,
    }
}

fn has_place(sight: Sight) -> bool {
    matches!(sight, Sight::Shown | Sight::Invisible)
}

/// The sight of an element inside of one with the sight `outer`. Of its style only what is written as most people do.
fn sight(outer: Sight, start: &StartTag<()>) -> Sight {
    let value = |name: &str| {
        let value = start.attributes.get(name.as_bytes());
        value.map(|value| String::from_utf8_lossy(value).to_ascii_lowercase())
    };
    let style = value("style").unwrap_or_default();
    let mut declarations: Vec<(&str, &str, bool)> = style
        .split(';')
        .filter_map(|declaration| declaration.split_once(':'))
        .map(|(property, value)| {
            let important = value.trim_ascii().strip_suffix("!important");
            let value = important.unwrap_or(value).trim_ascii();
            (property.trim_ascii(), value, important.is_some())
        })
        .filter(|(_, value, _)| !value.is_empty())
        .collect();
    declarations.sort_by_key(|(_, _, is_important)| *is_important);
    let style = |property: &str| {
        let last = declarations.iter().rfind(|(name, ..)| *name == property);
        last.map_or("", |(_, value, _)| *value)
    };
    let element = Element::of(key(&start.name));
    let is_closed = if element == Element::Dialog {
        value("open").is_none()
    } else {
        value("popover").is_some()
    };
    let display = style("display");
    if outer == Sight::Never || element.has(HIDDEN) || (is_closed && matches!(display, "" | "none"))
    {
        Sight::Never
    } else if outer == Sight::Veiled
        || display == "none"
        || (value("hidden").is_some() && display.is_empty())
    {
        Sight::Veiled
    } else {
        match style("visibility") {
            "hidden" | "collapse" => Sight::Invisible,
            "visible" => Sight::Shown,
            _ => outer,
        }
    }
}

/// Collapses white space, and replaces the characters that stand for gaps.
fn collapse(text: &str) -> String {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r' | '\u{a0}' | SPACE);
    let lines = text.split(LINE).map(|line| {
        let words = line.split(is_space).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    });
    let lines = lines.filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
