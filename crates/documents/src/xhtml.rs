//! XHTML that is XML, as HTML that shows the same.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// Elements of HTML that have no content, and no end tag.
const EMPTY: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];

/// The same page as HTML: an element that ends in its own start tag gets an end tag, and a CDATA section becomes text. Comments,
/// which may end elsewhere in HTML, are left out.
pub(super) fn to_html(page: &str) -> Cow<'_, str> {
    let bytes = page.as_bytes();
    if ["/>", "<!", "<?"]
        .iter()
        .all(|part| memmem::find(bytes, part.as_bytes()).is_none())
    {
        return Cow::Borrowed(page);
    }
    let mut html = String::with_capacity(page.len() + page.len() / 16);
    let mut rest = page;
    while let Some(at) = memchr(b'<', rest.as_bytes()) {
        html.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if let Some(text) = rest.strip_prefix("<![CDATA[") {
            let end = memmem::find(text.as_bytes(), b"]]>").unwrap_or(text.len());
            push_text(&mut html, &text[..end]);
            rest = text[end..].strip_prefix("]]>").unwrap_or_default();
            continue;
        } else if rest.starts_with("<?")
            && let Some(end) = memmem::find(rest.as_bytes(), b"?>")
        {
            rest = &rest[end + 2..];
            continue;
        } else if let Some(end) = end_of_declarations(rest) {
            rest = &rest[end..];
            continue;
        } else if let Some(comment) = rest.strip_prefix("<!--") {
            let end = memmem::find(comment.as_bytes(), b"-->");
            rest = end.map_or("", |end| &comment[end + 3..]);
            continue;
        } else {
            tag_length(rest.as_bytes())
        };
        let (tag, after) = rest.split_at(length.unwrap_or(rest.len()));
        rest = after;
        match empty_element(tag) {
            Some(name) => {
                html.push_str(tag.trim_end_matches("/>"));
                html.push_str("></");
                html.push_str(name);
                html.push('>');
            }
            None => html.push_str(tag),
        }
    }
    html.push_str(rest);
    Cow::Owned(html)
}

/// The length of the document type at the start of `text`, if it has declarations of its own, which HTML would show.
fn end_of_declarations(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix("<!DOCTYPE")?;
    let mut is_within = false;
    loop {
        rest = &rest[rest.find(['"', '\'', '<', '[', ']', '>'])?..];
        let skipped = match rest.as_bytes()[0] {
            quote @ (b'"' | b'\'') => 2 + memchr(quote, &rest.as_bytes()[1..])?,
            b'<' if rest.starts_with("<!--") => 3 + rest.find("-->")?,
            b'<' if rest.starts_with("<?") => 2 + rest.find("?>")?,
            b'[' => {
                is_within = true;
                1
            }
            b']' if is_within && rest[1..].trim_start().starts_with('>') => {
                let end = rest.find('>')?;
                return Some(text.len() - rest.len() + end + 1);
            }
            b'>' if !is_within => return None,
            _ => 1,
        };
        rest = &rest[skipped..];
    }
}

/// The length of the tag at the start of `text`; `None` if it does not end.
fn tag_length(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    let end = text.iter().position(|&byte| {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return true,
            _ => {}
        }
        false
    });
    end.map(|end| end + 1)
}

/// The name of an element that ends in its own start tag, and does not in HTML.
fn empty_element(tag: &str) -> Option<&str> {
    let content = tag.strip_prefix('<')?.strip_suffix("/>")?;
    let is_end = |c: char| c.is_ascii_whitespace() || c == '/';
    let name = &content[..content.find(is_end).unwrap_or(content.len())];
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_empty = |known: &&[u8]| name.as_bytes().eq_ignore_ascii_case(known);
    (is_name && !EMPTY.iter().any(is_empty)).then_some(name)
}

/// Appends a text as HTML writes it.
fn push_text(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            _ => html.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_end_where_xml_says() {
        for (page, html) in [
            ("<p>one</p>", "<p>one</p>"),
            (
                "<title/><p>one<br/>two</p>",
                "<title></title><p>one<br/>two</p>",
            ),
            (
                "<script src='a/>b' />x<IMG/>",
                "<script src='a/>b' ></script>x<IMG/>",
            ),
            ("<![CDATA[a < b & c]]>d", "a &lt; b &amp; cd"),
            ("<![CDATA[a", "a"),
            ("<!-- <p/> --><p/>", "<p></p>"),
            ("<!--> a -->b", "b"),
            ("<script><!-- </script> --></script>", "<script></script>"),
            ("<!DOCTYPE html [<!ENTITY a 'b'>]><p>a</p>", "<p>a</p>"),
            ("a < b /> <?xml a?><x:y/>", "a < b /> <x:y></x:y>"),
            ("<?php it's ?><p/>", "<p></p>"),
            ("<!DOCTYPE html [ <!ENTITY a \"b\"> ]><p/>", "<p></p>"),
            (
                "<!DOCTYPE html [<!-- ' ]> --> <!ENTITY a ']>'> ] ><p/>a]]>",
                "<p></p>a]]>",
            ),
            (
                "<!DOCTYPE html PUBLIC '-//[' ''><p/>a]>b",
                "<!DOCTYPE html PUBLIC '-//[' ''><p></p>a]>b",
            ),
            ("<p", "<p"),
            ("</p/>", "</p/>"),
        ] {
            assert_eq!(to_html(page), html, "{page}");
        }
    }
}
