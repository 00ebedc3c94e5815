//! Files that no reader reads: archives of files, other compressions than a reader's, and Parquet in any compression. Their first
//! bytes tell them, or the endings of their names.

use storage::has_ending;
use warc::charset::Hints;

/// Bytes of the start of a file by which it is known.
pub(super) const START: u64 = 512;

/// Why Parquet in a compression is not read.
pub(super) const COMPRESSED_PARQUET: &str = "it is Parquet that is compressed as a whole, which is not read: decompress it (`gzip -dc`, `zstd -dc`); its pages are compressed already";

/// A kind of files.
struct Kind {
    what: &'static str,
    /// The endings of their names.
    endings: &'static [&'static str],
    /// How they begin: one of these bytes is at its offset.
    starts: &'static [(usize, &'static [u8])],
    /// The command that writes what a file has to standard output.
    command: &'static str,
}

static KINDS: [Kind; 12] = [
    Kind {
        what: "an archive of files (WACZ)",
        endings: &[".wacz"],
        starts: &[],
        command: "unzip -p FILE '*.warc.gz'",
    },
    Kind {
        what: "an archive of files (ZIP)",
        endings: &[".zip"],
        starts: &[(0, b"PK\x03\x04"), (0, b"PK\x05\x06")],
        command: "unzip -p FILE",
    },
    Kind {
        what: "an archive of files (7-Zip)",
        endings: &[".7z"],
        starts: &[(0, b"7z\xbc\xaf\x27\x1c")],
        command: "7z x -so FILE",
    },
    Kind {
        what: "an archive of files (RAR)",
        endings: &[".rar"],
        starts: &[(0, b"Rar!\x1a\x07")],
        command: "unrar p -inul FILE",
    },
    Kind {
        what: "an archive of files (tar)",
        endings: &[".tar", ".tar.gz", ".tgz", ".tar.zst"],
        starts: &[(257, b"ustar")],
        command: "tar -xOf FILE",
    },
    Kind {
        what: "compressed by bzip2",
        endings: &[".bz2"],
        // The first block, or the end of a stream without one: a text may begin with `BZh`.
        starts: &[(4, b"1AY&SY"), (4, b"\x17rE8P\x90")],
        command: "bzip2 -dc FILE",
    },
    Kind {
        what: "compressed by xz",
        endings: &[".xz"],
        starts: &[(0, b"\xfd7zXZ\0")],
        command: "xz -dc FILE",
    },
    Kind {
        what: "compressed by LZMA",
        endings: &[".lzma"],
        starts: &[(0, b"\x5d\0\0")],
        command: "xz -dc FILE",
    },
    Kind {
        what: "compressed by lzip",
        endings: &[".lz"],
        starts: &[(0, b"LZIP\x01")],
        command: "lzip -dc FILE",
    },
    Kind {
        what: "compressed by LZ4",
        endings: &[".lz4"],
        starts: &[(0, b"\x04\x22\x4d\x18")],
        command: "lz4 -dc FILE",
    },
    // These are read, but not within a compression, or under a name without their ending.
    Kind {
        what: "compressed by gzip",
        endings: &[],
        starts: &[(0, b"\x1f\x8b\x08")],
        command: "gzip -dc FILE",
    },
    Kind {
        what: "compressed by Zstandard",
        endings: &[],
        starts: &[(0, b"\x28\xb5\x2f\xfd")],
        command: "zstd -dc FILE",
    },
];

impl Kind {
    fn reason(&self) -> String {
        let Self { what, command, .. } = self;
        format!(
            "it is {what}: give what it holds to standard input, such as `{command} | dedup-job run -`"
        )
    }
}

/// Why no reader reads a file with this name; `None` if its ending says nothing.
pub(super) fn by_name(name: &str) -> Option<String> {
    let has_its = |kind: &&Kind| kind.endings.iter().any(|ending| has_ending(name, ending));
    KINDS.iter().find(has_its).map(Kind::reason)
}

/// Why no reader of records reads a file that begins so, when its compression is taken away, if it is compressed; `None` if one may.
pub fn why_unread(start: &[u8], is_compressed: bool) -> Option<String> {
    if is_compressed && start.starts_with(b"PAR1") {
        return Some(COMPRESSED_PARQUET.to_owned());
    }
    let begins = |(at, bytes): &(usize, &[u8])| {
        let found = start.get(*at..);
        found.is_some_and(|found| found.starts_with(bytes))
    };
    let begins_so = |kind: &&Kind| kind.starts.iter().any(begins);
    KINDS.iter().find(begins_so).map(Kind::reason)
}

/// Why a file with the name of Parquet that begins so has no footer; `None` if its start does not say it.
pub(super) fn why_no_parquet(start: &[u8]) -> Option<String> {
    let is_compressed = start.starts_with(b"\x1f\x8b") || start.starts_with(b"\x28\xb5\x2f\xfd");
    if is_compressed {
        return Some(COMPRESSED_PARQUET.to_owned());
    }
    why_unread(start, false)
}

/// Whether a file that begins so is no text in any encoding.
pub fn is_no_text(start: &[u8]) -> bool {
    warc::is_no_text(start, &Hints::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_names_say_the_same() {
        let tar = [&[b'a'; 100][..], &[0; 157], b"ustar\x0000"].concat();
        for (start, name, command) in [
            (&b"PK\x03\x04\x14\0"[..], "a.csv.ZIP", "unzip -p"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "a.7z", "7z x"),
            (b"BZh91AY&SY,", "a.csv.bz2", "bzip2 -dc"),
            (b"\xfd7zXZ\0\0\x04", "a.jsonl.xz", "xz -dc"),
            (&tar[..], "a.tar", "tar -xOf"),
        ] {
            let reason = why_unread(start, false).unwrap();
            assert!(reason.contains(command), "{reason}");
            assert_eq!(by_name(name), Some(reason.clone()));
            assert_eq!(why_unread(start, true), Some(reason));
        }
        assert!(by_name("crawl.wacz").unwrap().contains("'*.warc.gz'"));
        assert_eq!(why_unread(b"PAR1\x15", false), None);
        assert_eq!(why_unread(b"PAR1\x15", true).unwrap(), COMPRESSED_PARQUET);
        assert_eq!(why_no_parquet(b"\x1f\x8b\x08").unwrap(), COMPRESSED_PARQUET);
        for text in [&b""[..], b"BZh,text\n", b"PK,text\n", b"id,text\n"] {
            assert_eq!(why_unread(text, false), None);
            assert_eq!(why_no_parquet(text), None);
        }
        assert_eq!(by_name("a.csv"), None);
    }
}
