//! Size and SHA-256 of a stream of bytes.

use sha2::{Digest as _, Sha256};

/// Counts the bytes of an object that is read or written piece by piece, and computes their SHA-256.
#[derive(Debug, Default)]
pub(crate) struct Digester {
    size: u64,
    sha256: Sha256,
}

impl Digester {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
    }

    /// Size in bytes and SHA-256, in hexadecimal, of the bytes so far.
    pub(crate) fn found(&self) -> (u64, String) {
        (self.size, hex(&self.sha256.clone().finalize()))
    }
}

/// Bytes in hexadecimal, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
