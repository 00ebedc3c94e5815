//! Errors of tasks as text: the kind and the message, escaped so that quoting the text does not change it.
//!
//! Ballista 55 reports a failed task as one string, the `Debug` form of the error, and quotes it again on the way to
//! the client. The kind, which decides the exit code, would be lost, and the message unreadable.
//!
//! ```text
//! [dedup-job KIND|MESSAGE|]      MESSAGE in printable ASCII; %, ", ', \, | and all other bytes as %xx
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
const BEGIN: &str = "[dedup-job ";
const END: &str = "|]";

/// Encodes an error so that [`decode`] finds it in any text that quotes it.
pub(crate) fn encode(kind: ErrorKind, message: &str) -> String {
    let mut text = format!("{BEGIN}{kind:?}|");
    for byte in message.bytes() {
        match byte {
            b'%' | b'"' | b'\'' | b'\\' | b'|' => text.push_str(&format!("%{byte:02x}")),
            b' ' | 0x21..=0x7e => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text + END
}

/// Returns the first encoded error in `text`.
pub(crate) fn decode(text: &str) -> Option<(ErrorKind, String)> {
    let text = &text[text.find(BEGIN)? + BEGIN.len()..];
    let text = &text[..text.find(END)?];
    let (kind, escaped) = text.split_once('|')?;
    let kind = KINDS
        .into_iter()
        .find(|known| format!("{known:?}") == kind)?;
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
    Some((kind, String::from_utf8(message).ok()?))
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
        }
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
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
