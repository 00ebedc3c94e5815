//! The compression of a row file, which the ending of its name says.

use storage::has_ending;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    /// One or more gzip members.
    Gzip,
    /// One or more zstd frames; skippable ones are skipped.
    Zstd,
}

pub(crate) static ENDINGS: [(&str, Compression); 2] =
    [(".gz", Compression::Gzip), (".zst", Compression::Zstd)];

impl Compression {
    /// Splits a file's name into that of the decompressed file, and the compression.
    pub(crate) fn split(name: &str) -> (&str, Self) {
        let stripped = ENDINGS.iter().find_map(|(ending, compression)| {
            has_ending(name, ending).then(|| (&name[..name.len() - ending.len()], *compression))
        });
        stripped.unwrap_or((name, Self::None))
    }
}
