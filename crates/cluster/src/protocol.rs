//! What the processes of a cluster tell each other beside Ballista's own messages: in headers of its calls, and in the
//! texts of its errors.

use archive::ErrorKind;
use serde::{Deserialize, Serialize};
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// The version of the program: plans are understood by the same version alone.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Header of a job: the client's version.
pub(crate) const CLIENT: &str = "dedup-job-client";
/// Header of an executor's calls: an [`Announcement`].
pub(crate) const EXECUTOR: &str = "dedup-job-executor";
/// Header of a client's question about a job that it waits for.
pub(crate) const WAIT: &str = "dedup-job-wait";
/// Header of the scheduler's answers: a [`State`].
pub(crate) const STATE: &str = "dedup-job-state";

/// What an executor says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    pub(crate) version: String,
    /// Slices that it computes at the same time.
    pub(crate) slots: usize,
    /// Bytes for batches and tables.
    pub(crate) memory: u64,
}

/// What the scheduler says of the cluster, and of the job that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) version: String,
    /// Executors that are alive.
    pub(crate) executors: usize,
    /// Their slots.
    pub(crate) slots: usize,
    /// Bytes of the one that has the fewest.
    pub(crate) memory: u64,
    /// Slices of the job that are done.
    pub(crate) done: usize,
    /// When its first slice began, in milliseconds since 1970.
    pub(crate) began: Option<u64>,
    /// The slice that the job was ended for, because it loses every executor that has it.
    pub(crate) doomed: Option<u32>,
}

/// Puts a value into a header.
pub(crate) fn insert(headers: &mut MetadataMap, name: &'static str, value: &impl Serialize) {
    let text = serde_json::to_string(value).unwrap_or_default();
    if let Ok(text) = AsciiMetadataValue::try_from(text) {
        headers.insert(name, text);
    }
}

/// The value in a header.
pub(crate) fn get<T: for<'a> Deserialize<'a>>(headers: &MetadataMap, name: &str) -> Option<T> {
    serde_json::from_str(headers.get(name)?.to_str().ok()?).ok()
}

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

/// An error in a form that survives being quoted by whatever hands it on.
pub(crate) fn mark(kind: ErrorKind, message: &str) -> String {
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

/// The error that was marked somewhere in a text.
pub(crate) fn unmark(text: &str) -> Option<(ErrorKind, String)> {
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
            let marked = mark(kind, message);
            // As Ballista does: quoted, quoted again, with something before and behind.
            let quoted = format!("{:?}", format!("Execution({:?})", format!("x: {marked} y")));
            assert_eq!(unmark(&quoted), Some((kind, message.to_owned())));
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
            assert_eq!(unmark(text), None, "{text}");
        }
    }
}
