//! Character references: `&amp;`, `&#8217;`, `&eacute` and the like.

use std::collections::HashMap;

use html5gum::{Token, Tokenizer};

/// The references that most pages have.
const COMMON: [(&str, &str); 6] = [
    ("&amp;", "&"),
    ("&nbsp;", "\u{a0}"),
    ("&quot;", "\""),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&apos;", "'"),
];

/// At least the length of the longest name.
const LONGEST: usize = 40;

/// The number of names that are remembered.
const REMEMBERED: usize = 256;

/// Reads character references. Other names than the common ones are read by html5gum, which has the table of the
/// standard; a name that comes again is remembered.
#[derive(Debug, Default)]
pub(super) struct References<'p> {
    names: HashMap<&'p str, Box<str>>,
    /// Holds the character of a numeric reference.
    character: [u8; 4],
}

impl<'p> References<'p> {
    /// Reads the character reference at the start of `text`, which begins with `&`. Returns its length and the characters that
    /// it stands for. If this `&` begins no reference, returns a part of `text`, with its length.
    pub(super) fn read(&mut self, text: &'p str) -> (usize, &str) {
        let bytes = text.as_bytes();
        match bytes.get(1) {
            Some(b'#') => match numeric(bytes) {
                Some((len, character)) => (len, &*character.encode_utf8(&mut self.character)),
                None => (1, "&"),
            },
            Some(byte) if byte.is_ascii_alphanumeric() => {
                for (name, decoded) in COMMON {
                    if text.starts_with(name) {
                        return (name.len(), decoded);
                    }
                }
                let name = &text[..named_len(bytes)];
                if self.names.len() == REMEMBERED {
                    self.names.clear();
                }
                let decoded = self.names.entry(name).or_insert_with(|| decode(name));
                (name.len(), &**decoded)
            }
            _ => (1, "&"),
        }
    }
}

/// The length of `&`, letters and digits, and a semicolon if there is one.
///
/// What follows a name without a semicolon is text, so it does no harm to end within a word that is longer than all
/// names.
fn named_len(bytes: &[u8]) -> usize {
    let letters = bytes[1..].iter().take(LONGEST);
    let len = 1 + letters
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    len + usize::from(bytes.get(len) == Some(&b';'))
}

/// What html5gum makes of a reference by name, which may be the beginning of `text` only, or not be there at all.
fn decode(text: &str) -> Box<str> {
    let mut decoded = Vec::new();
    for token in Tokenizer::new(text) {
        let Ok(token) = token;
        if let Token::String(text) = token {
            decoded.extend_from_slice(&text);
        }
    }
    String::from_utf8_lossy(&decoded).into()
}

/// The length of the numeric reference at the start of `bytes`, and the character that it stands for.
fn numeric(bytes: &[u8]) -> Option<(usize, char)> {
    let (begin, radix) = match bytes.get(2) {
        Some(b'x' | b'X') => (3, 16),
        _ => (2, 10),
    };
    let (mut at, mut code) = (begin, 0u32);
    while let Some(byte) = bytes.get(at)
        && let Some(digit) = char::from(*byte).to_digit(radix)
    {
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == begin {
        return None;
    }
    let len = at + usize::from(bytes.get(at) == Some(&b';'));
    let character = match code {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..0xa0 => WINDOWS_1252[code as usize - 0x80],
        // Surrogates and what is beyond Unicode are no characters.
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Some((len, character))
}

/// The characters of 0x80 to 0x9f in Windows-1252, which pages mean by references to control characters.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `text` with each reference replaced.
    fn read_all(mut text: &str) -> String {
        let mut references = References::default();
        let mut out = String::new();
        while let Some(at) = text.find('&') {
            out.push_str(&text[..at]);
            let (len, decoded) = references.read(&text[at..]);
            out.push_str(decoded);
            text = &text[at + len..];
        }
        out + text
    }

    #[test]
    fn references_are_read() {
        for (text, expected) in [
            ("&amp;lt; &lt;b&gt; &quot;&apos;", "&lt; <b> \"'"),
            (
                "caf&eacute; caf&eacute &eacutes &EACUTE;",
                "café café és &EACUTE;",
            ),
            (
                "&notin; &notit; &not &nosuch; &nosuch",
                "∉ ¬it; ¬ &nosuch; &nosuch",
            ),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("&#8217;&#x2019;&#X2019&#39", "’’’'"),
            ("&#146;&#x80;&#129;", "’€\u{81}"),
            (
                "&#0;&#xd800;&#x110000;&#99999999999;",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("&# &#; &#x &#xg; & &; &&amp;", "&# &#; &#x &#xg; & &; &&"),
            ("AT&T &ampere &AMP", "AT&T &ere &"),
        ] {
            assert_eq!(read_all(text), expected);
        }
        let long = "a".repeat(100);
        assert_eq!(
            read_all(&format!("&{long};&copy{long}")),
            format!("&{long};©{long}")
        );
    }

    proptest! {
        #[test]
        fn references_equal_those_of_html5gum(
            text in "(&(#[xX]?)?[a-zA-Z0-9]{0,6};?|&(amp|notin|not|lt|nbsp|eacute|hellip|Gt|copy|reg|fjlig|#1[23][0-9]|#x[0-9a-f]{1,6});?|[a-z =]|近){0,12}",
        ) {
            prop_assert_eq!(read_all(&text), decode(&text).into_string());
        }
    }
}
