//! Files that no reader reads: archives of files, other compressions than a reader's, Parquet in any compression, and other
//! formats. Their first bytes tell them, or the endings of their names.

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
    remedy: Remedy,
}

/// What people do with such a file.
enum Remedy {
    /// This program decompresses the file, and pipes it.
    Decompress(&'static str),
    /// These commands pipe the crawl files of an archive of files.
    PipeCrawl(&'static str),
    /// An archive of files, which a pipe would join into one document.
    Unpack,
    Convert,
}

static KINDS: [Kind; 17] = [
    Kind {
        what: "an archive of files (WACZ)",
        endings: &[".wacz"],
        starts: &[],
        remedy: Remedy::PipeCrawl("unzip -p FILE '*.warc.gz' | dedup-job run - --format warc"),
    },
    Kind {
        what: "an archive of files (ZIP)",
        endings: &[".zip"],
        starts: &[(0, b"PK\x03\x04"), (0, b"PK\x05\x06")],
        remedy: Remedy::Unpack,
    },
    Kind {
        what: "an archive of files (7-Zip)",
        endings: &[".7z"],
        starts: &[(0, b"7z\xbc\xaf\x27\x1c")],
        remedy: Remedy::Unpack,
    },
    Kind {
        what: "an archive of files (RAR)",
        endings: &[".rar"],
        starts: &[(0, b"Rar!\x1a\x07")],
        remedy: Remedy::Unpack,
    },
    Kind {
        what: "an archive of files (tar)",
        endings: &[
            ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tbz2", ".tar.xz", ".txz",
        ],
        starts: &[(257, b"ustar")],
        remedy: Remedy::Unpack,
    },
    Kind {
        what: "compressed by bzip2",
        endings: &[".bz2"],
        // The first block, or the end of a stream without one: a text may begin with `BZh`.
        starts: &[(4, b"1AY&SY"), (4, b"\x17rE8P\x90")],
        remedy: Remedy::Decompress("bzip2"),
    },
    Kind {
        what: "compressed by xz",
        endings: &[".xz"],
        starts: &[(0, b"\xfd7zXZ\0")],
        remedy: Remedy::Decompress("xz"),
    },
    Kind {
        what: "compressed by LZMA",
        endings: &[".lzma"],
        starts: &[(0, b"\x5d\0\0")],
        remedy: Remedy::Decompress("xz"),
    },
    Kind {
        what: "compressed by lzip",
        endings: &[".lz"],
        starts: &[(0, b"LZIP\x01")],
        remedy: Remedy::Decompress("lzip"),
    },
    Kind {
        what: "compressed by LZ4",
        endings: &[".lz4"],
        starts: &[(0, b"\x04\x22\x4d\x18")],
        remedy: Remedy::Decompress("lz4"),
    },
    // These are read, but not within a compression, or under a name without their ending.
    Kind {
        what: "compressed by gzip",
        endings: &[],
        starts: &[(0, b"\x1f\x8b\x08")],
        remedy: Remedy::Decompress("gzip"),
    },
    Kind {
        what: "compressed by Zstandard",
        endings: &[],
        starts: &[(0, b"\x28\xb5\x2f\xfd")],
        remedy: Remedy::Decompress("zstd"),
    },
    Kind {
        what: "Avro",
        endings: &[".avro"],
        starts: &[(0, b"Obj\x01")],
        remedy: Remedy::Convert,
    },
    Kind {
        what: "ORC",
        endings: &[".orc"],
        starts: &[(0, b"ORC")],
        remedy: Remedy::Convert,
    },
    Kind {
        what: "Arrow IPC",
        endings: &[".arrow", ".arrows", ".feather"],
        starts: &[(0, b"ARROW1\0\0")],
        remedy: Remedy::Convert,
    },
    Kind {
        what: "PDF",
        endings: &[".pdf"],
        starts: &[(0, b"%PDF-")],
        remedy: Remedy::Convert,
    },
    Kind {
        what: "a database of SQLite",
        endings: &[".sqlite", ".sqlite3"],
        starts: &[(0, b"SQLite format 3\0")],
        remedy: Remedy::Convert,
    },
];

impl Kind {
    fn reason(&self) -> String {
        let what = self.what;
        let piped = |commands: &str| {
            format!("it is {what}: give what it holds to standard input, such as `{commands}`")
        };
        match self.remedy {
            Remedy::Decompress(program) => piped(&format!("{program} -dc FILE | dedup-job run -")),
            Remedy::PipeCrawl(commands) => piped(commands),
            Remedy::Unpack => format!("it is {what}: unpack it, and give the directory"),
            Remedy::Convert => {
                format!("it is {what}, which is not read: convert it to Parquet or JSON Lines")
            }
        }
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
    // A text may begin with the letters of a kind, too, but has no zeros.
    let has_zeros = start.iter().take(START as usize).any(|byte| *byte == 0);
    let begins = |(at, bytes): &(usize, &[u8])| {
        let found = start.get(*at..);
        found.is_some_and(|found| found.starts_with(bytes))
            && (has_zeros || !bytes.iter().all(u8::is_ascii_alphabetic))
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
        for (start, name, remedy) in [
            (&b"PK\x03\x04\x14\0"[..], "a.csv.ZIP", "unpack it"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "a.7z", "unpack it"),
            (b"BZh91AY&SY,", "a.csv.bz2", "bzip2 -dc"),
            (b"\xfd7zXZ\0\0\x04", "a.jsonl.xz", "xz -dc"),
            (
                &tar[..],
                "a.tar.xz",
                "(tar): unpack it, and give the directory",
            ),
            (b"Obj\x01\x04\x16avro.schema", "a.avro", "convert it"),
            (b"ORC\n\x06\x12\x04\0", "a.orc", "convert it"),
            (b"ARROW1\0\0\xff", "a.feather", "convert it"),
            (b"%PDF-1.4\n", "a.pdf", "convert it"),
            (b"SQLite format 3\0\x10", "a.sqlite", "convert it"),
        ] {
            let reason = why_unread(start, false).unwrap();
            assert!(reason.contains(remedy), "{reason}");
            assert_eq!(by_name(name), Some(reason.clone()));
            assert_eq!(why_unread(start, true), Some(reason));
        }
        let wacz = by_name("crawl.wacz").unwrap();
        assert!(wacz.contains("'*.warc.gz' | dedup-job run - --format warc"));
        assert_eq!(why_unread(b"PAR1\x15", false), None);
        assert_eq!(why_unread(b"PAR1\x15", true).unwrap(), COMPRESSED_PARQUET);
        assert_eq!(why_no_parquet(b"\x1f\x8b\x08").unwrap(), COMPRESSED_PARQUET);
        for text in [&b""[..], b"BZh,text\n", b"PK,text\n", b"ORCID,text\n"] {
            assert_eq!(why_unread(text, false), None);
            assert_eq!(why_no_parquet(text), None);
        }
        assert_eq!(by_name("a.csv"), None);
    }
}
