//! What comes without a name, by its first bytes.

use std::io::Read as _;

/// Bytes by which the format is found.
pub const HEAD: usize = 64 << 10;
/// The start of the frame with the dictionary of a Zstandard-compressed WARC file.
const DICTIONARY: &[u8] = b"\x5d\x2a\x4d\x18";
/// What may separate the fields of CSV; of two that a header has as often, the first does.
const DELIMITERS: &[u8] = b",;\t|";

/// How something begins.
pub struct Start {
    /// Decompressed.
    pub bytes: Vec<u8>,
    /// The ending of its compression.
    pub compression: &'static str,
    /// Whether there is no more.
    is_whole: bool,
    has_dictionary: bool,
}

/// What something is, by its start.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// Its format is that of files with this ending.
    Ending(&'static str),
    /// XML that is no page.
    Xml,
    /// Nothing but blank lines.
    Blank,
    Anything,
}

impl Start {
    /// The start of what begins with `head`, which is all of it if it has less than [`HEAD`] bytes.
    pub fn of(head: &[u8]) -> Self {
        let mut bytes = Vec::new();
        // Whatever is wrong with it is said when it is read.
        let (is_right, compression) = if head.starts_with(b"\x1f\x8b") {
            let mut decoder = flate2::read::MultiGzDecoder::new(head).take(HEAD as u64);
            (decoder.read_to_end(&mut bytes).is_ok(), ".gz")
        } else if head.starts_with(b"\x28\xb5\x2f\xfd")
            || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
        {
            let decoder = zstd::stream::read::Decoder::new(head);
            let read = decoder.and_then(|decoder| {
                let mut decoder = decoder.take(HEAD as u64);
                decoder.read_to_end(&mut bytes)
            });
            (read.is_ok(), ".zst")
        } else {
            bytes.extend_from_slice(head);
            (true, "")
        };
        Self {
            is_whole: is_right && head.len() < HEAD && bytes.len() < HEAD,
            bytes,
            compression,
            has_dictionary: head.starts_with(DICTIONARY),
        }
    }

    pub fn begun(&self) -> Begun {
        const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
        let start = &self.bytes;
        let text = MARKS.iter().find_map(|mark| start.strip_prefix(*mark));
        // In UTF-16, zeros stand beside the letters.
        let text = text.unwrap_or(start).iter().copied();
        let text: Vec<u8> = text.filter(|byte| *byte != 0).collect();
        let text = text.trim_ascii_start();
        let ending = match () {
            () if start.starts_with(b"PAR1") => Some(".parquet"),
            // Only crawls have one.
            () if self.has_dictionary || text.starts_with(b"WARC/") => Some(".warc"),
            () if text.starts_with(b"{") => Some(".jsonl"),
            () if text.starts_with(b"[") => Some(".json"),
            () if documents::is_no_text(&start[..start.len().min(HEAD)]) => None,
            () if text.is_empty() && self.is_whole => return Begun::Blank,
            () if text.starts_with(b"<") => match markup(&String::from_utf8_lossy(text)) {
                None => return Begun::Xml,
                page => page,
            },
            () => table(text),
        };
        ending.map_or(Begun::Anything, Begun::Ending)
    }
}

/// The ending of the table that begins so, whose first record has delimiters outside quotes; `None` if it has none.
fn table(text: &[u8]) -> Option<&'static str> {
    let mut counts = [0; DELIMITERS.len()];
    let (mut is_quoted, mut before) = (false, DELIMITERS[0]);
    for &byte in text {
        // A quote opens at the start of a field, and again behind one that closes.
        let may_open = before == b'"' || DELIMITERS.contains(&before);
        match byte {
            b'"' if is_quoted || may_open => is_quoted = !is_quoted,
            b'\r' | b'\n' if !is_quoted => break,
            _ if is_quoted => {}
            _ => {
                if let Some(at) = DELIMITERS.iter().position(|delimiter| *delimiter == byte) {
                    counts[at] += 1;
                }
            }
        }
        before = byte;
    }
    let most = *counts.iter().max()?;
    let first = counts.iter().position(|count| *count == most)?;
    match DELIMITERS[first] {
        _ if most == 0 => None,
        b'\t' => Some(".tsv"),
        _ => Some(".csv"),
    }
}

/// The ending of the page that begins so; `None` for other XML.
fn markup(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase().replace('\'', "\"");
    let declaration = text.strip_prefix("<?xml");
    let is_declared = declaration.is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let (mut is_xml, mut is_html) = (is_declared, false);
    let mut rest = text.as_str();
    loop {
        rest = rest.trim_start();
        let end = if rest.starts_with("<?") {
            "?>"
        } else if rest.starts_with("<!--") {
            "-->"
        } else if rest.starts_with("<!") {
            // A document type may have declarations of its own.
            let end = rest.find(['[', '>']);
            end.map_or(">", |at| {
                if rest[at..].starts_with('[') {
                    "]>"
                } else {
                    ">"
                }
            })
        } else {
            break;
        };
        let Some((skipped, behind)) = rest.split_once(end) else {
            break;
        };
        if let Some(doctype) = skipped.strip_prefix("<!doctype") {
            is_html = doctype.trim_start().starts_with("html");
            is_xml |= !is_html;
        }
        rest = behind;
    }
    let tag = rest.split('>').next().unwrap_or_default();
    let is_end = |c: char| !c.is_alphanumeric() && !":_-.".contains(c);
    let root = tag
        .strip_prefix('<')
        .and_then(|tag| tag.split(is_end).next());
    is_xml |= root == Some("rss") || tag.contains("xmlns");
    let is_of_xhtml = tag.contains("xmlns=\"http://www.w3.org/1999/xhtml\"");
    // What has no root is a page, as browsers read it.
    let is_page = is_html || is_of_xhtml || matches!(root, None | Some("" | "html"));
    if is_xml && !is_page {
        return None;
    }
    // A document type alone says little: most pages with that of XHTML are no XML.
    Some(if is_declared || is_of_xhtml {
        ".xhtml"
    } else {
        ".html"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(head: &[u8]) -> Begun {
        Start::of(head).begun()
    }

    #[test]
    fn tables_have_delimiters_in_their_first_record() {
        for (start, ending) in [
            ("id,text\n1,a", ".csv"),
            ("id\ttext\n", ".tsv"),
            ("id|a\tb|text\n", ".csv"),
            ("sep=;\nid;text\n", ".csv"),
            ("\"the\nid\",id,\"text\"\n,a,b\n", ".csv"),
            ("\"the \"\"\nid\"\"\"\tid\n", ".tsv"),
        ] {
            assert_eq!(begun(start.as_bytes()), Begun::Ending(ending), "{start}");
        }
        for start in [
            "text\none, two\n",
            "text\rone, two\r",
            "\"Well, yes\" she said\n",
            "\"Well, and\nso on, without an end",
        ] {
            assert_eq!(begun(start.as_bytes()), Begun::Anything, "{start}");
        }
    }

    #[test]
    fn xml_is_a_page_only_if_its_root_says_so() {
        for (start, ending) in [
            ("<!DOCTYPE html><html>", ".html"),
            ("<!-- <rss> --><p>one", ".html"),
            ("<title>A page", ".html"),
            (
                "<!DOCTYPE html>\n<head xmlns:og='http://ogp.me/ns#'>",
                ".html",
            ),
            ("<3 and more", ".html"),
            ("<html xmlns:o='urn:schemas-microsoft-com'>", ".html"),
            ("<?php it's ?><p>", ".html"),
            ("<?xml version='1.0'?>\n<HTML>", ".xhtml"),
            (
                "<html lang='en' xmlns='http://www.w3.org/1999/xhtml'>",
                ".xhtml",
            ),
            (
                "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'a'><html>",
                ".html",
            ),
            (
                "<?xml version='1.0'?><!-- a --><!DOCTYPE html [<!ENTITY a 'b>'>]><html>",
                ".xhtml",
            ),
        ] {
            assert_eq!(begun(start.as_bytes()), Begun::Ending(ending), "{start}");
        }
        for start in [
            "<?xml version='1.0'?><rss version='2.0'>",
            "<rss version='2.0'>",
            "\u{feff}<feed xmlns='http://www.w3.org/2005/Atom'>",
            "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'a'>\n<svg>",
            "<urlset xmlns='a' xmlns:xhtml='http://www.w3.org/1999/xhtml'>",
        ] {
            assert_eq!(begun(start.as_bytes()), Begun::Xml, "{start}");
        }
    }

    #[test]
    fn what_is_blank_is_known_only_as_a_whole() {
        let zstd = zstd::encode_all(&b"\n"[..], 1).unwrap();
        for blank in [&b"\n\n"[..], b"\xef\xbb\xbf", b"\xff\xfe\n\0", &zstd[..]] {
            assert_eq!(begun(blank), Begun::Blank, "{blank:?}");
        }
        let cut_off = &zstd[..zstd.len() - 1];
        for start in [&b"\n".repeat(HEAD)[..], b"\x1f\x8b\x08", cut_off] {
            assert_eq!(begun(start), Begun::Anything);
        }
    }
}
