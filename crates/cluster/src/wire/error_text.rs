//! Errors of tasks as text: the kind and the message, escaped so that quoting the text does not change it.
//!
//! Ballista 55 reports a failed task as one string, the `Debug` form of the error, and quotes it again on the way to
//! the client. The kind, which decides the exit code, would be lost, and the message unreadable.
//!
//! A wrong cut of a file is encoded as the file's name and the offset: the client then has the file read as a whole.
//!
//! ```text
//! [dedup-job KIND|MESSAGE|]                 MESSAGE in printable ASCII; %, ", ', \, | and all other bytes as %xx
//! [dedup-job WrongCut|OFFSET FILE|]         the same of FILE
//! ```

use storage::ErrorKind;

const KINDS: [ErrorKind; 8] = [
    ErrorKind::Usage,
    ErrorKind::Data,
    ErrorKind::Unreachable,
    ErrorKind::Internal,
    ErrorKind::Io,
    ErrorKind::TryAgain,
    ErrorKind::Permission,
    ErrorKind::Configuration,
];
/// Stands in the place of a kind.
const WRONG_CUT: &str = "WrongCut";
const BEGIN: &str = "[dedup-job ";
const END: &str = "|]";

/// Encodes an error so that [`decode`] finds it in any text that quotes it.
pub(crate) fn encode(kind: ErrorKind, message: &str) -> String {
    quote(&format!("{kind:?}"), message)
}

/// Encodes a wrong cut of a file so that [`decode_wrong_cut`] finds it in any text that quotes it.
pub(crate) fn encode_wrong_cut(file: &str, offset: u64) -> String {
    quote(WRONG_CUT, &format!("{offset} {file}"))
}

/// Returns the first encoded error in `text`.
pub(crate) fn decode(text: &str) -> Option<(ErrorKind, String)> {
    let (name, message) = unquote(text)?;
    let kind = KINDS
        .into_iter()
        .find(|known| format!("{known:?}") == name)?;
    Some((kind, message))
}

/// Returns the file and the offset of a wrong cut, if that is the first encoded error in `text`.
pub(crate) fn decode_wrong_cut(text: &str) -> Option<(String, u64)> {
    let (name, cut) = unquote(text)?;
    let (offset, file) = cut.split_once(' ').filter(|_| name == WRONG_CUT)?;
    Some((file.to_owned(), offset.parse().ok()?))
}

fn quote(name: &str, message: &str) -> String {
    let mut text = format!("{BEGIN}{name}|");
    for byte in message.bytes() {
        match byte {
            b'%' | b'"' | b'\'' | b'\\' | b'|' => text.push_str(&format!("%{byte:02x}")),
            b' ' | 0x21..=0x7e => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text + END
}

/// Returns the name and the message that `text` quotes first.
fn unquote(text: &str) -> Option<(&str, String)> {
    let text = &text[text.find(BEGIN)? + BEGIN.len()..];
    let text = &text[..text.find(END)?];
    let (name, escaped) = text.split_once('|')?;
    let mut message = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            message.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        message.push(u8::from_str_radix(digits, 16).ok()?);
    }
    Some((name, String::from_utf8(message).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_quotation() {
        let message =
            "a/\"b\" 100%.parquet, row group 3: 'kaputt' | [x|] \\ \u{e4}\u{4e2d}\n\t\u{300}";
        for kind in KINDS {
            let encoded = encode(kind, message);
            // As Ballista does: quoted twice, with text before and after.
            let reported = format!("Execution({:?})", format!("x: {encoded} y"));
            let quoted = format!("{reported:?}");
            assert_eq!(decode(&quoted), Some((kind, message.to_owned())));
            assert_eq!(decode_wrong_cut(&quoted), None);
        }
        let encoded = encode_wrong_cut(message, u64::MAX);
        let quoted = format!("{:?}", format!("Execution({encoded:?})"));
        let expected = Some((message.to_owned(), u64::MAX));
        assert_eq!(decode_wrong_cut(&quoted), expected);
        assert_eq!(decode(&quoted), None);
    }

    #[test]
    fn other_texts_are_not_taken_for_errors() {
        for text in [
            "",
            "job failed",
            "[dedup-job ",
            "[dedup-job Data|",
            "[dedup-job Data|%4|]",
            "[dedup-job Data|%zz|]",
            "[dedup-job Nonsense|x|]",
            "[dedup-job Data|%ff|]",
            "[dedup-job WrongCut|7|]",
            "[dedup-job WrongCut|x a.warc.gz|]",
        ] {
            assert_eq!(decode(text), None, "{text}");
            assert_eq!(decode_wrong_cut(text), None, "{text}");
        }
    }
}
