//! What the `style` attribute of an element says of whether it is shown.
//!
//! Most styles say nothing of it, which a quick look finds. The others are read as browsers read them: with comments,
//! escapes, strings, brackets and `!important`, and with the character references of the attribute.

use std::borrow::Cow;

use html5gum::{Token, Tokenizer};
use memchr::{memchr, memchr3_iter, memmem};

use super::keywords::{DISPLAYS, display_parts, is_any};

/// What a style says of its element; `None` is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// Whether the element has a place on the page (`display`).
    pub(super) is_displayed: Option<bool>,
    /// Whether the element can be seen at its place (`visibility`).
    pub(super) is_visible: Option<bool>,
    /// Whether what the element contains is shown (`content-visibility`).
    pub(super) shows_content: Option<bool>,
}

impl Style {
    /// Reads the value of a `style` attribute, as it stands in the page.
    #[inline]
    pub(super) fn read(style: &[u8]) -> Self {
        if may_matter(style) {
            Self::read_declarations(&without_references(style))
        } else {
            Self::default()
        }
    }

    /// Of several declarations of a property the last important one counts, or else the last.
    fn read_declarations(style: &[u8]) -> Self {
        let mut read = Self::default();
        let mut is_important = [false; 3];
        let mut reader = Reader { style, at: 0 };
        while reader.at < style.len() {
            if let Some(declared) = reader.read_declaration() {
                let before = &mut is_important[declared.property as usize];
                if declared.is_important || !*before {
                    *before = declared.is_important;
                    *read.property_mut(declared.property) = match declared.value {
                        Value::Shows => Some(true),
                        Value::Hides => Some(false),
                        Value::Unset => None,
                    };
                }
            }
            reader.skip_declaration();
        }
        read
    }

    fn property_mut(&mut self, property: Property) -> &mut Option<bool> {
        match property {
            Property::Display => &mut self.is_displayed,
            Property::Visibility => &mut self.is_visible,
            Property::ContentVisibility => &mut self.shows_content,
        }
    }
}

/// Whether the style may have one of the properties: if one begins behind a `;`, or if it has what can spell or separate
/// names in another way.
fn may_matter(style: &[u8]) -> bool {
    let is_odd = |at: usize| match style[at] {
        b'&' => !is_harmless(&style[at + 1..]),
        // Other stars are multiplied, or are before a name that browsers do not read.
        b'*' => style[..at].ends_with(b"/"),
        _ => true,
    };
    memchr3_iter(b'\\', b'*', b'&', style).any(is_odd)
        || style.split(|&byte| byte == b';').any(|declaration| {
            memchr(b':', declaration)
                .and_then(|colon| Property::named(declaration[..colon].trim_ascii()))
                .is_some()
        })
}

/// Whether a character reference stands for a quote or an ampersand, as those of many styles do: of fonts and addresses.
fn is_harmless(reference: &[u8]) -> bool {
    ["quot;", "amp;", "apos;", "#34;", "#39;"]
        .iter()
        .any(|name| reference.starts_with(name.as_bytes()))
}

/// A style with its character references replaced, as html5gum does it.
fn without_references(style: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'&', style).is_none() {
        return Cow::Borrowed(style);
    }
    // A value with both kinds of quotes stood without quotes, and can do so again.
    let quote = if !style.contains(&b'"') {
        "\""
    } else if !style.contains(&b'\'') {
        "'"
    } else {
        ""
    };
    let tag = format!("<p style={quote}{}{quote}>", String::from_utf8_lossy(style));
    for token in Tokenizer::new(tag.as_str()) {
        let Ok(token) = token;
        if let Token::StartTag(start) = token
            && let Some(value) = start.attributes.get(b"style".as_slice())
        {
            return Cow::Owned(value.to_vec());
        }
    }
    Cow::Borrowed(style)
}

#[derive(Debug, Clone, Copy)]
enum Property {
    Display,
    Visibility,
    ContentVisibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Shows,
    Hides,
    /// As if nothing was declared.
    Unset,
}

#[derive(Debug, Clone, Copy)]
struct Declaration {
    property: Property,
    value: Value,
    is_important: bool,
}

impl Property {
    #[inline]
    fn named(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"display") {
            Some(Self::Display)
        } else if name.eq_ignore_ascii_case(b"visibility") {
            Some(Self::Visibility)
        } else if name.eq_ignore_ascii_case(b"content-visibility") {
            Some(Self::ContentVisibility)
        } else {
            None
        }
    }

    /// What a keyword says. `None` if it is none of this property's.
    fn value(self, keyword: &[u8]) -> Option<Value> {
        let is_any = |names: &[&str]| is_any(keyword, names);
        if is_any(&["revert", "revert-layer"]) {
            return Some(Value::Unset);
        }
        match self {
            Self::Display if is_any(&["none"]) => Some(Value::Hides),
            Self::Display => {
                let is_shown = display_parts(keyword) != 0 || is_any(DISPLAYS);
                is_shown.then_some(Value::Shows)
            }
            // Elements inherit it.
            Self::Visibility if is_any(&["inherit", "unset"]) => Some(Value::Unset),
            Self::Visibility if is_any(&["visible", "initial"]) => Some(Value::Shows),
            Self::Visibility if is_any(&["hidden", "collapse"]) => Some(Value::Hides),
            Self::ContentVisibility if is_any(&["hidden"]) => Some(Value::Hides),
            Self::ContentVisibility
                if is_any(&["visible", "auto", "initial", "unset", "inherit"]) =>
            {
                Some(Value::Shows)
            }
            Self::Visibility | Self::ContentVisibility => None,
        }
    }
}

/// Reads the declarations of a style.
struct Reader<'s> {
    style: &'s [u8],
    at: usize,
}

impl<'s> Reader<'s> {
    /// Reads a declaration of one of the properties. `None` if it is another, or is wrong. What is left of it is then to be
    /// skipped.
    fn read_declaration(&mut self) -> Option<Declaration> {
        self.skip_space();
        let property = Property::named(&self.read_word())?;
        self.skip_space();
        if !self.take(b':') {
            return None;
        }
        self.skip_space();
        let word = self.read_word();
        let value = if self.peek() != Some(b'(') {
            property.value(&word)?
        } else if word.eq_ignore_ascii_case(b"var") {
            self.read_variable(property)?
        } else {
            return None;
        };
        self.skip_space();
        // `display: inline flex`.
        let mut parts = display_parts(&word);
        while self.peek().is_some_and(is_of_word) {
            let more = display_parts(&self.read_word());
            if parts == 0 || more == 0 || parts & more != 0 {
                return None;
            }
            parts |= more;
            self.skip_space();
        }
        let is_important = self.take(b'!');
        if is_important {
            self.skip_space();
            if !self.read_word().eq_ignore_ascii_case(b"important") {
                return None;
            }
            self.skip_space();
        }
        matches!(self.peek(), None | Some(b';')).then_some(Declaration {
            property,
            value,
            is_important,
        })
    }

    /// Reads a variable, from its `(` on. Its value stands in a style sheet, so this takes the keyword behind the comma, which
    /// is for want of one. Without such a keyword the property is unset.
    fn read_variable(&mut self, property: Property) -> Option<Value> {
        self.take(b'(');
        self.skip_space();
        self.read_word();
        self.skip_space();
        let mut value = None;
        if self.take(b',') {
            self.skip_space();
            value = property.value(&self.read_word());
            self.skip_space();
        }
        if self.peek().is_some_and(|byte| byte != b')') {
            value = None;
            self.skip_until(b')');
        }
        self.take(b')');
        value.or_else(|| property.value(b"unset"))
    }

    /// Skips the rest of a declaration, with its `;`.
    fn skip_declaration(&mut self) {
        self.skip_until(b';');
        self.take(b';');
    }

    /// Skips what is before `end`. One in a string, an address or brackets is not the end.
    fn skip_until(&mut self, end: u8) {
        // What closes the open brackets.
        let mut closers = Vec::new();
        while let Some(byte) = self.peek() {
            if byte == end && closers.is_empty() {
                return;
            }
            match byte {
                b'"' | b'\'' => self.skip_string(byte),
                b'\\' => self.at = self.style.len().min(self.at + 2),
                b'/' if self.style[self.at..].starts_with(b"/*") => self.skip_comment(),
                b'(' if self.is_before_address() => self.skip_string(b')'),
                _ => {
                    self.at += 1;
                    match byte {
                        b'(' => closers.push(b')'),
                        b'[' => closers.push(b']'),
                        b'{' => closers.push(b'}'),
                        _ if closers.last() == Some(&byte) => {
                            closers.pop();
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Whether an address without quotes begins here, at a bracket: `url(data:image/png;base64,)`.
    fn is_before_address(&self) -> bool {
        let Some((before, name)) = self.style[..self.at].split_last_chunk::<3>() else {
            return false;
        };
        name.eq_ignore_ascii_case(b"url")
            && before.last().is_none_or(|byte| !is_of_word(*byte))
            && !matches!(
                self.style[self.at + 1..].trim_ascii_start(),
                [b'"' | b'\'', ..]
            )
    }

    /// Skips what begins with a character here, and ends with `end`: a string, which a line end also ends, or an address.
    fn skip_string(&mut self, end: u8) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == end || (is_line_end(byte) && end != b')') {
                return;
            }
            if byte == b'\\' {
                // A line end may be two bytes.
                let is_pair = self.style[self.at..].starts_with(b"\r\n");
                self.at = self.style.len().min(self.at + 1 + usize::from(is_pair));
            }
        }
    }

    fn skip_comment(&mut self) {
        let text = self.at + 2;
        let len = memmem::find(&self.style[text..], b"*/");
        self.at = len.map_or(self.style.len(), |len| text + len + 2);
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            match self.style[self.at..] {
                [b' ' | b'\t' | b'\n' | b'\x0c' | b'\r', ..] => self.at += 1,
                [b'/', b'*', ..] => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// Reads a name or a keyword, with escapes. Empty if none begins here.
    fn read_word(&mut self) -> Cow<'s, [u8]> {
        let begin = self.at;
        while self.peek().is_some_and(is_of_word) {
            self.at += 1;
        }
        let style = self.style;
        if self.peek() != Some(b'\\') {
            return Cow::Borrowed(&style[begin..self.at]);
        }
        let mut word = style[begin..self.at].to_vec();
        while let Some(byte) = self.peek() {
            if is_of_word(byte) {
                word.push(byte);
                self.at += 1;
            } else if byte != b'\\' || !self.read_escape(&mut word) {
                break;
            }
        }
        Cow::Owned(word)
    }

    /// Appends the character of the escape that begins here. Returns whether it is one.
    fn read_escape(&mut self, word: &mut Vec<u8>) -> bool {
        let escaped = &self.style[self.at + 1..];
        let digits = escaped.iter().take(6);
        let digits = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            // Any other character stands for itself.
            let Some(&byte) = escaped.first().filter(|byte| !is_line_end(**byte)) else {
                return false;
            };
            word.push(byte);
            self.at += 2;
            return true;
        }
        let code = escaped[..digits].iter().fold(0, |code, digit| {
            16 * code + char::from(*digit).to_digit(16).unwrap_or_default()
        });
        let character = char::from_u32(code).filter(|_| code != 0);
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        word.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        // White space ends the digits.
        let space = match escaped[digits..] {
            [b'\r', b'\n', ..] => 2,
            [b' ' | b'\t' | b'\n' | b'\x0c' | b'\r', ..] => 1,
            _ => 0,
        };
        self.at += 1 + digits + space;
        true
    }

    /// Skips `byte` if it is here. Returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    fn peek(&self) -> Option<u8> {
        self.style.get(self.at).copied()
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\x0c')
}

/// Whether a byte can be a part of a name.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_show_and_hide() {
        for (style, expected) in [
            ("display:none", Some(false)),
            ("color: red; DISPLAY : None !important", Some(false)),
            ("display:block;display:none!important", Some(false)),
            ("display:none;display:block", Some(true)),
            ("display: inline flex", Some(true)),
            ("display: Inline Flow-Root list-item", Some(true)),
            ("display:-webkit-box", Some(true)),
            ("display: var(--x)", Some(true)),
            ("display:var( --x , none )", Some(false)),
            ("display:none;display:VAR(--x,inline flex)", Some(true)),
            ("display:none;display:var(--x,var(--y,none))", Some(true)),
            (
                "display:var(--x,none) !important;display:block",
                Some(false),
            ),
            ("display:var(--x)!important;display:none", Some(true)),
            ("display:none;display:var(--x) !ie", Some(false)),
            ("display:none;display:revert", None),
            // An important declaration counts more than later ones.
            ("display:none ! important;display:block", Some(false)),
            ("display:none!important;display:block!important", Some(true)),
            // Wrong declarations do not count.
            ("", None),
            (";;", None),
            ("display", None),
            ("display:", None),
            ("display none", None),
            ("display:none;display:", Some(false)),
            ("display:none;display:10px", Some(false)),
            ("display:none;display:hidden", Some(false)),
            ("display:undefined", None),
            ("display:null", None),
            ("display:--x", None),
            ("display:block inline", None),
            ("display:flex list-item", None),
            ("display:inline inline-block", None),
            ("display:none !ie", None),
            ("display:none none", None),
            ("display:block none", None),
            ("display:none\\9", None),
            ("*display:none", None),
            ("x-display:none", None),
            ("color:red} display:none", None),
            // Comments.
            ("/**/display/* x */:/*;*/none/", None),
            ("/**/display/* x */:/*;*/none/* y", Some(false)),
            ("/*a;*/ display:none", Some(false)),
            ("/* display:none", None),
            ("color:/*;display:none;*/red", None),
            // Escapes.
            ("d\\69splay:none", Some(false)),
            ("d\\69 splay:no\\6e e", Some(false)),
            ("\\000064isplay:n\\6f\nne;", Some(false)),
            ("di\\splay:none", Some(false)),
            ("display\\:none", None),
            ("color:\\;display:none", None),
            ("display:none\\", None),
            ("display:\\0", None),
            // Strings, brackets and addresses.
            ("content:';display:none;'", None),
            ("content:'\\';display:none", None),
            ("content:'\n;display:none", Some(false)),
            ("content:'\r;display:none", Some(false)),
            ("content:'\x0c;display:none", Some(false)),
            ("content:'\\\r\n';display:none", Some(false)),
            ("content:'\\\r;display:none", None),
            ("d\\\risplay:none", None),
            ("font-family:\"a;b\";display:none", Some(false)),
            ("background:url(display:none)", None),
            ("background:url(a;display:none)", None),
            (
                "background:url(data:x;base64,'/*);display:none",
                Some(false),
            ),
            ("background:url( ';)' );display:none", Some(false)),
            ("background:url(a\\);display:none", None),
            ("x:xurl(a'b);display:none'c);display:none", Some(false)),
            ("width:calc((1px*2) + 1px);display:none", Some(false)),
            ("x:(;display:none", None),
            ("x:(];display:none", None),
            ("x:[(])];display:none", Some(false)),
            ("x:[{()}];display:none", Some(false)),
            ("x:};display:none", Some(false)),
            // Character references.
            ("display&colon;none", Some(false)),
            ("display:&#110;one", Some(false)),
            ("color:red&semi;display:none", Some(false)),
            ("dis&#x70;lay:none", Some(false)),
            ("font-family:&quot;a&quot;;display:none", Some(false)),
            ("font-family:&quot;a;display:none&quot;", None),
            ("background:url('a?b=1&amp;c');display:none", Some(false)),
            ("background:url(\"a'&semi;display:none\")", None),
            ("display:none&nosuch;", None),
        ] {
            let read = Style::read(style.as_bytes());
            assert_eq!(read.is_displayed, expected, "{style}");
        }
    }

    #[test]
    fn styles_show_and_hide_text() {
        for (style, expected) in [
            ("visibility:hidden;", Some(false)),
            ("VISIBILITY : Collapse", Some(false)),
            ("visibility:visible", Some(true)),
            ("visibility:initial", Some(true)),
            ("visibility:hidden;visibility:inherit", None),
            ("visibility:hidden;visibility:var(--x)", None),
            ("visibility:var(--x,hidden)", Some(false)),
            ("visibility:hidden;visibility:calc(1)", Some(false)),
            ("visibility:calc(;visibility:hidden)", None),
            ("visibility:hidden;visibility:shown", Some(false)),
            ("visibility:hidden visible", None),
            ("overflow:hidden", None),
        ] {
            let read = Style::read(style.as_bytes());
            assert_eq!(read.is_visible, expected, "{style}");
        }
        for (style, expected) in [
            ("content-visibility:hidden", Some(false)),
            ("content-visibility:auto", Some(true)),
            ("content-visibility:none", None),
        ] {
            let read = Style::read(style.as_bytes());
            assert_eq!(read.shows_content, expected, "{style}");
        }
    }

    /// Each takes minutes if a part of it is read again at each byte.
    #[test]
    fn hostile_styles_take_linear_time() {
        for piece in [
            "display:",
            "/*",
            "\\",
            "(",
            "url( ",
            "'",
            "&amp",
            "&semi;",
            "a:b;",
            "display:a ",
            "display:var(--x,",
            "display:var(--x)",
            "([{",
        ] {
            Style::read(piece.repeat(1_000_000 / piece.len()).as_bytes());
        }
    }
}
