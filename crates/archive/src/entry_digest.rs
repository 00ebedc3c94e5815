//! The digest in each log entry that this program writes. A damaged entry, or the content of another one, can be valid JSON, and would
//! be read as a commit of other files.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use storage::hex;

/// How an entry begins.
const START: &[u8] = b"{\"commitInfo\":{";
/// The field behind the start. Its value covers the entry's name and all bytes but the field's own.
const FIELD: &[u8] = b"\"dedup-job.digest\":\"";
/// The end of the field.
const END: &[u8] = b"\",";
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

fn digest(name: &str, start: &[u8], rest: &[u8]) -> String {
    let digest = Sha256::new()
        .chain_update(name)
        .chain_update(start)
        .chain_update(rest);
    hex(&digest.finalize())
}

/// The entry of this file name with its digest.
pub(crate) fn with_digest(name: &str, entry: Bytes) -> Bytes {
    let Some(rest) = entry.strip_prefix(START) else {
        return entry;
    };
    let digest = digest(name, START, rest);
    [START, FIELD, digest.as_bytes(), END, rest].concat().into()
}

/// Whether the entry of this file name has a digest, and other bytes than it was written with. Other programs, and earlier versions of
/// this one, write none.
pub(crate) fn is_damaged(name: &str, entry: &[u8]) -> bool {
    let parts = || {
        let (start, rest) = entry.split_at_checked(START.len())?;
        let (said, rest) = rest.strip_prefix(FIELD)?.split_at_checked(DIGITS)?;
        Some((start, said, rest))
    };
    parts().is_some_and(|(start, said, rest)| {
        let written = rest.strip_prefix(END);
        written.is_none_or(|rest| said != digest(name, start, rest).as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_byte_and_each_lost_line_is_noticed() {
        let name = "00000000000000000003.json";
        let text = "{\"commitInfo\":{\"operation\":\"DELETE\"}}\n{\"remove\":{\"path\":\"a\"}}\n";
        let entry = with_digest(name, text.into());
        assert!(!is_damaged(name, &entry));
        assert!(is_damaged("00000000000000000004.json", &entry));
        for line in entry.split(|byte| *byte == b'\n') {
            let json = serde_json::from_slice::<serde_json::Value>(line);
            assert!(line.is_empty() || json.is_ok());
        }
        for at in 0..entry.len() {
            let mut changed = entry.to_vec();
            changed[at] ^= 1;
            // Without the name of the field, the entry is as it would be without a digest.
            let is_name = (START.len()..START.len() + FIELD.len()).contains(&at);
            assert_eq!(is_damaged(name, &changed), !is_name, "byte {at}");
        }
        let begin = START.len() + FIELD.len() + DIGITS;
        for end in begin..entry.len() {
            assert!(is_damaged(name, &entry[..end]), "{end}");
        }
        for other in ["{\"commitInfo\":{}}", "{\"add\":{}}", "PAR1", ""] {
            assert!(!is_damaged(name, other.as_bytes()), "{other}");
        }
        let foreign = "{\"add\":{}}\n{\"commitInfo\":{}}";
        assert_eq!(with_digest(name, foreign.into()), foreign);
    }
}
