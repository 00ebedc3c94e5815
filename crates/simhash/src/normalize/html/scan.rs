//! Cuts a page into tags and text, as the tokenizer of the HTML standard does.
//!
//! It differs from that tokenizer where this does not change the text: it leaves character references in attributes for
//! others to read, it does not report duplicate attributes, and it takes CDATA sections, which only SVG and MathML have,
//! for comments.

use memchr::memchr;

use super::elements::{EMPTY, Element};
use super::names::{COUNTED, Key, LOWERCASE, key};
use super::raw_text::{bogus_comment_end, comment_end, raw_text_end, script_end};

/// A piece of a page. Comments and declarations are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event<'p> {
    /// Text with character references.
    Text(&'p str),
    /// Text in which `&` is a character like others.
    RawText(&'p str),
    /// A start tag; [`Scanner::attributes`] has its attributes.
    Start(Tag),
    End(Tag),
}

/// A tag without its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) name: Key,
    pub(super) element: Element,
    /// Whether it ends in `/>`.
    pub(super) self_closing: bool,
    /// Whether it is of a `font` with an attribute that only HTML has, or of an `annotation-xml` that says to contain HTML.
    pub(super) is_html: bool,
    /// Where it begins in the page.
    pub(super) at: usize,
}

/// The attributes of a start tag that matter. Of attributes of one name the first counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Attributes<'p> {
    /// See [`Tag::is_html`].
    pub(super) is_html: bool,
    pub(super) open: bool,
    pub(super) popover: bool,
    /// Whether `shadowrootmode` is a mode.
    pub(super) shadow_root: Option<bool>,
    pub(super) class: Option<&'p [u8]>,
    pub(super) hidden: Option<&'p [u8]>,
    pub(super) href: Option<&'p [u8]>,
    pub(super) id: Option<&'p [u8]>,
    pub(super) role: Option<&'p [u8]>,
    pub(super) style: Option<&'p [u8]>,
}

impl<'p> Attributes<'p> {
    fn set(&mut self, name: Key, value: &'p [u8]) {
        const CLASS: Key = key(b"class");
        const HIDDEN: Key = key(b"hidden");
        const HREF: Key = key(b"href");
        const ID: Key = key(b"id");
        const OPEN: Key = key(b"open");
        const POPOVER: Key = key(b"popover");
        const ROLE: Key = key(b"role");
        const SHADOW_ROOT: Key = key(b"shadowrootmode");
        const STYLE: Key = key(b"style");
        let kept = match name {
            CLASS => &mut self.class,
            HIDDEN => &mut self.hidden,
            HREF => &mut self.href,
            ID => &mut self.id,
            STYLE => &mut self.style,
            ROLE => &mut self.role,
            OPEN => return self.open = true,
            POPOVER => return self.popover = true,
            SHADOW_ROOT => {
                let modes = [&b"open"[..], b"closed"];
                let is_mode = modes.iter().any(|mode| value.eq_ignore_ascii_case(mode));
                self.shadow_root.get_or_insert(is_mode);
                return;
            }
            _ => return,
        };
        kept.get_or_insert(value);
    }

    /// Notes whether an attribute makes an element one of HTML.
    fn set_html(&mut self, element: Element, name: Key, value: &[u8]) {
        self.is_html |= match element {
            Element::Font => ["color", "face", "size"]
                .iter()
                .any(|other| name == key(other.as_bytes())),
            Element::AnnotationXml => {
                name == key(b"encoding")
                    && ["text/html", "application/xhtml+xml"]
                        .iter()
                        .any(|html| value.eq_ignore_ascii_case(html.as_bytes()))
            }
            _ => false,
        };
    }
}

/// Ends an element's name: white space, `/` and `>`.
const ENDS_NAME: u8 = 1;
/// Ends an attribute's name: these and `=`.
const ENDS_ATTRIBUTE: u8 = 2;
/// Ends a value without quotes: white space and `>`.
const ENDS_VALUE: u8 = 4;
const WHITE_SPACE: u8 = 8;

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let white_space = b" \t\n\x0c\r";
    let mut at = 0;
    while at < white_space.len() {
        classes[white_space[at] as usize] = WHITE_SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE;
        at += 1;
    }
    classes[b'>' as usize] = ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE;
    classes[b'/' as usize] = ENDS_NAME | ENDS_ATTRIBUTE;
    classes[b'=' as usize] = ENDS_ATTRIBUTE;
    classes
};

static LOWER: [u8; 256] = LOWERCASE;

/// The raw text that comes next.
#[derive(Debug)]
struct RawText {
    end: usize,
    has_references: bool,
}

/// Reads a page from its beginning to its end.
#[derive(Debug)]
pub(super) struct Scanner<'p> {
    page: &'p str,
    /// Where the next event begins.
    at: usize,
    attributes: Attributes<'p>,
    raw_text: Option<RawText>,
}

impl<'p> Scanner<'p> {
    pub(super) fn new(page: &'p str) -> Self {
        Self {
            page,
            at: 0,
            attributes: Attributes::default(),
            raw_text: None,
        }
    }

    /// The attributes of the last start tag; none if its element is [`EMPTY`].
    pub(super) fn attributes(&self) -> &Attributes<'p> {
        &self.attributes
    }

    /// The next event; `None` at the end of the page.
    pub(super) fn next_event(&mut self) -> Option<Event<'p>> {
        if let Some(RawText {
            end,
            has_references,
        }) = self.raw_text.take()
        {
            let text = &self.page[self.at..end];
            self.at = end;
            return Some(if has_references {
                Event::Text(text)
            } else {
                Event::RawText(text)
            });
        }
        loop {
            let begin = self.at;
            self.at = self.text_end();
            if self.at > begin {
                return Some(Event::Text(&self.page[begin..self.at]));
            }
            if self.at == self.page.len() {
                return None;
            }
            if let Some(event) = self.read_markup() {
                return Some(event);
            }
        }
    }

    /// Reads the content of the element whose start tag was the last event, if it is raw text: leaves out what is not
    /// visible, and makes one event of the rest. Returns what it left out. Not to be called in SVG and MathML, which have no
    /// raw text.
    pub(super) fn read_raw_text(&mut self, element: Element) -> &'p str {
        let page = self.page.as_bytes();
        let begin = self.at;
        let end = |name: &str| raw_text_end(page, begin, name);
        match element {
            Element::Script => self.at = script_end(page, begin),
            // As with scripts turned on.
            Element::Noscript
            | Element::Style
            | Element::Title
            | Element::Iframe
            | Element::Noembed
            | Element::Noframes => self.at = end(element.name()),
            Element::Textarea | Element::Xmp => {
                self.raw_text = Some(RawText {
                    end: end(element.name()),
                    has_references: element == Element::Textarea,
                });
            }
            Element::Plaintext => {
                self.raw_text = Some(RawText {
                    end: page.len(),
                    has_references: false,
                });
            }
            _ => {}
        }
        &self.page[begin..self.at]
    }

    /// Where the text ends that begins here: at the next `<` with a tag, a comment or a declaration.
    fn text_end(&self) -> usize {
        let page = self.page.as_bytes();
        let mut at = self.at;
        while let Some(step) = memchr(b'<', &page[at..]) {
            at += step;
            match page[at + 1..] {
                [b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'?', ..] | [b'/', _, ..] => return at,
                _ => at += 1,
            }
        }
        page.len()
    }

    /// Reads what begins with the `<` here. `None` if it is a comment, a declaration, or a tag that does not end.
    fn read_markup(&mut self) -> Option<Event<'p>> {
        let page = self.page.as_bytes();
        let begin = self.at;
        match page[begin + 1..] {
            [b'!', b'-', b'-', ..] => self.at = comment_end(page, begin + 4),
            [b'!' | b'?', ..] => self.at = bogus_comment_end(page, begin + 2),
            [b'/', b'a'..=b'z' | b'A'..=b'Z', ..] => {
                self.at = begin + 2;
                return self.read_tag(begin, true);
            }
            [b'/', ..] => self.at = bogus_comment_end(page, begin + 2),
            _ => {
                self.at = begin + 1;
                return self.read_tag(begin, false);
            }
        }
        None
    }

    /// Reads the tag that begins at `begin`, from its name on. `None` if it does not end; then the page has been read.
    fn read_tag(&mut self, begin: usize, is_end: bool) -> Option<Event<'p>> {
        let name = self.read_name(ENDS_NAME);
        let element = Element::of(name);
        if !is_end {
            self.attributes = Attributes::default();
        }
        let self_closing = self.read_attributes(element, is_end)?;
        let tag = Tag {
            name,
            element,
            self_closing,
            is_html: !is_end && self.attributes.is_html,
            at: begin,
        };
        Some(if is_end {
            Event::End(tag)
        } else {
            Event::Start(tag)
        })
    }

    /// Reads to the end of the tag, and keeps the attributes of a start tag, unless its element is [`EMPTY`]. Returns whether the
    /// tag ends in `/>`; `None` if it does not end.
    fn read_attributes(&mut self, element: Element, is_end: bool) -> Option<bool> {
        let keeps = !is_end && !element.has(EMPTY);
        let may_be_html = !is_end && matches!(element, Element::Font | Element::AnnotationXml);
        loop {
            self.skip_white_space();
            let name = match self.peek()? {
                b'>' => {
                    self.at += 1;
                    return Some(false);
                }
                b'/' => {
                    self.at += 1;
                    if self.peek()? == b'>' {
                        self.at += 1;
                        return Some(true);
                    }
                    continue;
                }
                // Belongs to a name if it is the first character. We look for no such name.
                b'=' => {
                    self.at += 1;
                    self.read_name(ENDS_ATTRIBUTE);
                    0
                }
                _ => self.read_name(ENDS_ATTRIBUTE),
            };
            self.skip_white_space();
            let mut value: &[u8] = b"";
            if self.peek()? == b'=' {
                self.at += 1;
                self.skip_white_space();
                value = self.read_value()?;
            }
            if keeps {
                self.attributes.set(name, value);
            }
            if may_be_html {
                self.attributes.set_html(element, name, value);
            }
        }
    }

    /// Reads a value, which begins here. `None` if its quotes are not closed.
    fn read_value(&mut self) -> Option<&'p [u8]> {
        let page = self.page.as_bytes();
        let first = self.peek()?;
        let begin = self.at + usize::from(first == b'"' || first == b'\'');
        if begin == self.at {
            while self.peek().is_some_and(|byte| !has(byte, ENDS_VALUE)) {
                self.at += 1;
            }
            return Some(&page[begin..self.at]);
        }
        match memchr(first, &page[begin..]) {
            Some(len) => {
                self.at = begin + len + 1;
                Some(&page[begin..begin + len])
            }
            None => {
                self.at = page.len();
                None
            }
        }
    }

    /// Reads to the first byte of the class `ends`. Returns the key of what was read.
    fn read_name(&mut self, ends: u8) -> Key {
        let page = self.page.as_bytes();
        let begin = self.at;
        let (mut low, mut high) = (0u64, 0u64);
        while let Some(&byte) = page.get(self.at)
            && !has(byte, ends)
        {
            let byte = u64::from(LOWER[usize::from(byte)]);
            match self.at - begin {
                at @ 0..8 => low |= byte << (8 * at),
                at @ 8..COUNTED => high |= byte << (8 * (at - 8)),
                _ => {}
            }
            self.at += 1;
        }
        Key::from(high) << 64 | Key::from(low)
    }

    #[inline]
    fn skip_white_space(&mut self) {
        while self.peek().is_some_and(|byte| has(byte, WHITE_SPACE)) {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.page.as_bytes().get(self.at).copied()
    }
}

#[inline]
fn has(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a page, each as a text. A start tag lists its attributes.
    fn scan(page: &str) -> Vec<String> {
        let mut scanner = Scanner::new(page);
        let mut events = Vec::new();
        while let Some(event) = scanner.next_event() {
            events.push(match event {
                Event::Text(text) => text.to_owned(),
                Event::RawText(text) => format!("raw {text}"),
                Event::End(tag) => format!("</{}>", tag.element.name()),
                Event::Start(tag) => {
                    let attributes = *scanner.attributes();
                    scanner.read_raw_text(tag.element);
                    let mut shown = format!("<{}", tag.element.name());
                    for (name, value) in [
                        ("class", attributes.class),
                        ("id", attributes.id),
                        ("style", attributes.style),
                    ] {
                        if let Some(value) = value {
                            let value = String::from_utf8_lossy(value);
                            shown.push_str(&format!(" {name}={value}"));
                        }
                    }
                    for (name, is_set) in [
                        ("hidden", attributes.hidden.is_some()),
                        ("href", attributes.href.is_some()),
                    ] {
                        if is_set {
                            shown.push_str(&format!(" {name}"));
                        }
                    }
                    shown + if tag.self_closing { "/>" } else { ">" }
                }
            });
        }
        events
    }

    #[test]
    fn tags_and_text() {
        let page = "a<P Class = x id='y>' style=\"<b>\">b</p >c<br/>d<img hidden>";
        let expected = [
            "a",
            "<p class=x id=y> style=<b>>",
            "b",
            "</p>",
            "c",
            "<br/>",
            "d",
            "<img>",
        ];
        assert_eq!(scan(page), expected);
        for (page, expected) in [
            // What comes between attributes and around them.
            ("<p class=a/b/>", vec!["<p class=a/b/>"]),
            ("<p class/=x id>", vec!["<p class= id=>"]),
            ("<p =class=x class=y>", vec!["<p class=y>"]),
            (
                "<p class=x class=y ID = 'z'hidden>",
                vec!["<p class=x id=z hidden>"],
            ),
            ("<p class=>x", vec!["<p class=>", "x"]),
            ("<a/href=x/hidden>", vec!["<a href>"]),
            ("<p\thidden\r\n\x0c>", vec!["<p hidden>"]),
            ("<p hidden\0 \"class=x>", vec!["<p>"]),
            // What is no tag.
            ("1 < 2 <3 <", vec!["1 < 2 <3 <"]),
            ("a</>b</3>c</", vec!["a", "b", "c</"]),
            (
                "<?xml version='1.0'?>a<!doctype html>b<![CDATA[<c>]]>",
                vec!["a", "b", "]]>"],
            ),
            (
                "a<!-- <b> -->b<!-->c<!--->d<!-- e",
                vec!["a", "b", "c", "d"],
            ),
            // What does not end.
            ("a<p class=x", vec!["a"]),
            ("a<p class='x>b", vec!["a"]),
            ("a</p", vec!["a"]),
            // Raw text.
            ("<script>a<b</script>c", vec!["<script>", "</script>", "c"]),
            ("<title>a</b></title >c", vec!["<title>", "</title>", "c"]),
            (
                "<textarea>a<b&lt;</textarea>c",
                vec!["<textarea>", "a<b&lt;", "</textarea>", "c"],
            ),
            ("<xmp>a<b&lt;", vec!["<xmp>", "raw a<b&lt;"]),
            (
                "<plaintext>a</plaintext>",
                vec!["<plaintext>", "raw a</plaintext>"],
            ),
            ("<style/>a", vec!["<style/>"]),
        ] {
            assert_eq!(scan(page), expected, "{page:?}");
        }
    }
}
