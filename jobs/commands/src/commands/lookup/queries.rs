//! Reads queries: from arguments, files and standard input.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use lookup::{Query, parse_fingerprint, string_of};
use serde_json::Value;
use storage::StorageError;

use crate::exit::Failure;

/// The longest line, in bytes.
const MAX_LINE: usize = 16 << 20;

/// A query, and how it was given.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) query: Query,
    pub(super) given: Value,
    /// Whether it is an argument of one word, and so was probably meant as the path of a file.
    pub(super) may_be_path: bool,
}

/// What an argument stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    One(Box<Asked>),
    /// The lines of a file, or of standard input.
    Lines(Option<PathBuf>),
}

impl Source {
    /// Reads an argument: `-`, a fingerprint, the path of a file that exists, or else a text.
    pub(super) fn of(given: &str, source: Option<&str>) -> Self {
        match given {
            "-" => Self::Lines(None),
            _ if parse_fingerprint(given).is_none() && is_readable(given) => {
                Self::Lines(Some(given.into()))
            }
            _ => {
                let mut asked = plain(given);
                asked.may_be_path = !given.contains(char::is_whitespace);
                asked.query.source = Query::source_of(source, None, None);
                Self::One(Box::new(asked))
            }
        }
    }
}

/// Whether there is something to read at a path: a file, or a pipe.
fn is_readable(path: &str) -> bool {
    let metadata = Path::new(path).metadata();
    metadata.is_ok_and(|metadata| !metadata.is_dir())
}

/// A query that is a fingerprint, or else a text.
fn plain(given: &str) -> Asked {
    let fingerprint = parse_fingerprint(given.trim()).or_else(|| decimal(given.trim()));
    Asked {
        query: Query {
            fingerprint,
            text: fingerprint.is_none().then(|| given.to_owned()),
            source: None,
        },
        given: given.into(),
        may_be_path: false,
    }
}

/// A fingerprint as archives have it, a signed or unsigned number of 64 bits; `None` for numbers that may be a text.
fn decimal(text: &str) -> Option<u64> {
    const LEAST_DIGITS: usize = 17;
    if text.len() < LEAST_DIGITS {
        return None;
    }
    let signed = text.parse().map(i64::cast_unsigned);
    signed.or_else(|_| text.parse()).ok()
}

/// Parses a line: a JSON object, a fingerprint, or else a text.
fn line(line: &str) -> Result<Asked, String> {
    if !line.trim_start().starts_with('{') {
        return Ok(plain(line));
    }
    let given = match serde_json::from_str::<Value>(line) {
        Ok(given) => given,
        // What begins as an object with a name was meant as one; something else in braces is a text.
        Err(error) if line.trim_start()[1..].trim_start().starts_with('"') => {
            return Err(format!(
                "no JSON object ({error}); send a text as {{\"text\": …}}"
            ));
        }
        Err(_) => return Ok(plain(line)),
    };
    let fingerprint = match &given["fp"] {
        Value::Null => None,
        given => Some(Query::fingerprint_of(given)?),
    };
    let string = |name| string_of(name, given.get(name).cloned());
    let (text, source, url) = (string("text")?, string("source")?, string("url")?);
    // An id may be a number.
    let source = Query::source_of(source.as_deref(), url.as_deref(), given["id"].as_str());
    if fingerprint.is_none() && text.is_none() {
        return Err("the object has neither \"fp\" nor \"text\"".into());
    }
    Ok(Asked {
        query: Query {
            fingerprint,
            text,
            source,
        },
        given,
        may_be_path: false,
    })
}

/// Reads all queries on a thread of its own, and yields what has arrived, up to `together` at a time: a program that sends
/// one query and waits for its answer gets it.
pub(super) fn read(
    sources: Vec<Source>,
    together: usize,
) -> impl Iterator<Item = Result<Vec<Asked>, Failure>> {
    let (sender, receiver) = sync_channel::<Result<Asked, Failure>>(together);
    std::thread::spawn(move || {
        // If the receiver is gone, the command has failed.
        let mut push = |asked: Asked| sender.send(Ok(asked)).is_ok();
        for source in sources {
            let read = match source {
                Source::One(asked) => Ok(push(*asked)),
                Source::Lines(path) => read_lines(path, &mut push),
            };
            match read {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => {
                    let _ = sender.send(Err(failure));
                    return;
                }
            }
        }
    });
    let mut failed = None;
    std::iter::from_fn(move || {
        if let Some(failure) = failed.take() {
            return Some(Err(failure));
        }
        let mut some = Vec::with_capacity(together);
        let mut bytes = 0;
        let mut next = receiver.recv().ok();
        while let Some(asked) = next.take() {
            match asked {
                Ok(asked) => {
                    bytes += asked.query.text.as_ref().map_or(0, String::len);
                    some.push(asked);
                }
                Err(failure) => failed = Some(failure),
            }
            if some.len() < together && bytes < MAX_LINE && failed.is_none() {
                next = receiver.try_recv().ok();
            }
        }
        match (some.is_empty(), failed.take()) {
            (true, None) => None,
            (true, Some(failure)) => Some(Err(failure)),
            (false, failure) => {
                failed = failure;
                Some(Ok(some))
            }
        }
    })
}

/// The mark with which some programs begin UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// How files begin that are not lines of text.
const NO_LINES: [(&[u8], &str); 6] = [
    (b"PAR1", "Parquet"),
    (b"\x1f\x8b", "compressed (gzip)"),
    (b"\x28\xb5\x2f\xfd", "compressed (Zstandard)"),
    (b"BZh", "compressed (bzip2)"),
    (b"\xfd7zXZ", "compressed (xz)"),
    (b"PK\x03\x04", "a ZIP archive"),
];

/// What begins so, if it is no lines of text.
fn no_lines(start: &[u8]) -> Option<&'static str> {
    let known = NO_LINES.iter().find(|(magic, _)| start.starts_with(magic));
    let known = known.map(|(_, kind)| *kind);
    known.or_else(|| start.contains(&0).then_some("binary"))
}

/// Reads the lines of a file or of standard input. Stops and returns false when `push` returns false.
fn read_lines(
    path: Option<PathBuf>,
    push: &mut impl FnMut(Asked) -> bool,
) -> Result<bool, Failure> {
    let name = path.as_ref().map_or_else(
        || "standard input".to_owned(),
        |path| path.display().to_string(),
    );
    let failed = StorageError::io(&name);
    let mut input: Box<dyn BufRead> = match &path {
        None => Box::new(std::io::stdin().lock()),
        Some(path) => Box::new(BufReader::with_capacity(
            1 << 20,
            File::open(path).map_err(&failed)?,
        )),
    };
    let start = input.fill_buf().map_err(&failed)?;
    if let Some(kind) = no_lines(start) {
        return Err(Failure::Data(format!(
            "{name}: it is {kind}, and queries are lines of text: a text, a fingerprint or a JSON object each"
        )));
    }
    if start.starts_with(BOM) {
        input.consume(BOM.len());
    }
    let mut bytes = Vec::new();
    for number in 1u64.. {
        bytes.clear();
        if !read_line(&mut input, &mut bytes).map_err(&failed)? {
            break;
        }
        let bad = |reason: &str| Failure::Data(format!("{name}, line {number}: {reason}"));
        if bytes.len() > MAX_LINE {
            return Err(bad("longer than 16 MiB"));
        }
        let text = String::from_utf8_lossy(&bytes);
        let asked = line(text.trim_end_matches(['\n', '\r'])).map_err(|reason| bad(&reason))?;
        if !push(asked) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a line, or its first [`MAX_LINE`] + 1 bytes. Returns false at the end of the input.
fn read_line(input: &mut dyn BufRead, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut limited = std::io::Read::take(input, MAX_LINE as u64 + 1);
    Ok(limited.read_until(b'\n', bytes)? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_fingerprints_texts_or_objects() {
        let query = |given: &str| line(given).unwrap().query;
        let fingerprint = |fingerprint| Query {
            fingerprint: Some(fingerprint),
            ..Query::default()
        };
        let text = |text: &str| Query {
            fingerprint: None,
            text: Some(text.into()),
            ..Query::default()
        };
        assert_eq!(query("00000000000000ff"), fingerprint(255));
        assert_eq!(query("{\"fp\": \"00000000000000FF\"}"), fingerprint(255));
        assert_eq!(query("{\"fp\": -1}"), fingerprint(u64::MAX));
        assert_eq!(query("-9223372036854775808"), fingerprint(1 << 63));
        assert_eq!(query("18446744073709551615"), fingerprint(u64::MAX));
        assert_eq!(query("{\"text\": \"a\", \"id\": 7}"), text("a"));
        let at = |source: &str| Query {
            source: Some(source.into()),
            ..text("a")
        };
        let page = "{\"text\": \"a\", \"url\": \"https://www.a.example/b\"}";
        assert_eq!(query(page), at("a.example"));
        assert_eq!(query("{\"text\": \"a\", \"source\": \"shop\"}"), at("shop"));
        for other in ["", "ff", "00000000000000fg", "{not json}", "[1]"] {
            assert_eq!(query(other), text(other));
        }
        for bad in ["{}", "{\"fp\": 1.5}", "{\"fp\": \"ff\"}", "{\"text\": 1}"] {
            line(bad).unwrap_err();
        }
    }
}
