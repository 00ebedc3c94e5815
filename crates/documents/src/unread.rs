//! Files that no reader reads: archives of files, other compressions than a reader's, Parquet in any compression, and other
//! formats. Their first bytes tell them, or the endings of their names.

use storage::has_ending;
use warc::charset::Hints;

use Remedy::{Convert, Decompress, PipeCrawl, Unpack};

/// Bytes of the start of a file by which it is known.
pub(super) const START: u64 = 512;

/// Why Parquet in a compression is not read.
pub(super) const COMPRESSED_PARQUET: &str = "it is Parquet that is compressed as a whole, which is not read: decompress it (`gzip -dc`, `zstd -dc`); its pages are compressed already";

struct Kind {
    name: &'static str,
    endings: &'static [&'static str],
    /// How they begin: one of `starts` is at the offset `at`.
    at: usize,
    starts: &'static [&'static [u8]],
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
    Kind::of(
        "WACZ",
        &[".wacz"],
        0,
        &[],
        PipeCrawl("unzip -p FILE '*.warc.gz' | dedup-job run - --format warc"),
    ),
    Kind::of("ZIP", &[".zip"], 0, &[b"PK\x03\x04", b"PK\x05\x06"], Unpack),
    Kind::of("7-Zip", &[".7z"], 0, &[b"7z\xbc\xaf\x27\x1c"], Unpack),
    Kind::of("RAR", &[".rar"], 0, &[b"Rar!\x1a\x07"], Unpack),
    Kind::of(
        "tar",
        &[
            ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tbz2", ".tar.xz", ".txz",
        ],
        257,
        &[b"ustar"],
        Unpack,
    ),
    // The first block, or the end of a stream without one: a text may begin with `BZh`.
    Kind::of(
        "bzip2",
        &[".bz2"],
        4,
        &[b"1AY&SY", b"\x17rE8P\x90"],
        Decompress("bzip2"),
    ),
    Kind::of("xz", &[".xz"], 0, &[b"\xfd7zXZ\0"], Decompress("xz")),
    Kind::of("LZMA", &[".lzma"], 0, &[b"\x5d\0\0"], Decompress("xz")),
    Kind::of("lzip", &[".lz"], 0, &[b"LZIP\x01"], Decompress("lzip")),
    Kind::of("LZ4", &[".lz4"], 0, &[b"\x04\x22M\x18"], Decompress("lz4")),
    // These are read, but not within a compression, or under a name without their ending.
    Kind::of("gzip", &[], 0, &[b"\x1f\x8b\x08"], Decompress("gzip")),
    Kind::of("Zstandard", &[], 0, &[b"(\xb5/\xfd"], Decompress("zstd")),
    Kind::of("Avro", &[".avro"], 0, &[b"Obj\x01"], Convert),
    Kind::of("ORC", &[".orc"], 0, &[b"ORC"], Convert),
    Kind::of(
        "Arrow IPC",
        &[".arrow", ".arrows", ".feather"],
        0,
        &[b"ARROW1\0\0"],
        Convert,
    ),
    Kind::of("PDF", &[".pdf"], 0, &[b"%PDF-"], Convert),
    Kind::of(
        "a database of SQLite",
        &[".sqlite", ".sqlite3"],
        0,
        &[b"SQLite format 3\0"],
        Convert,
    ),
];

impl Kind {
    const fn of(
        name: &'static str,
        endings: &'static [&'static str],
        at: usize,
        starts: &'static [&'static [u8]],
        remedy: Remedy,
    ) -> Self {
        Self {
            name,
            endings,
            at,
            starts,
            remedy,
        }
    }

    fn reason(&self) -> String {
        let name = self.name;
        let piped = |what: String, commands: &str| {
            format!("it is {what}: give what it holds to standard input, such as `{commands}`")
        };
        match self.remedy {
            Decompress(program) => piped(
                format!("compressed by {name}"),
                &format!("{program} -dc FILE | dedup-job run -"),
            ),
            PipeCrawl(commands) => piped(format!("an archive of files ({name})"), commands),
            Unpack => {
                format!("it is an archive of files ({name}): unpack it, and give the directory")
            }
            Convert => {
                format!("it is {name}, which is not read: convert it to Parquet or JSON Lines")
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
    let begins_so = |kind: &&Kind| {
        let found = start.get(kind.at..).unwrap_or_default();
        let begins = |bytes: &&[u8]| {
            found.starts_with(bytes) && (has_zeros || !bytes.iter().all(u8::is_ascii_alphabetic))
        };
        kind.starts.iter().any(begins)
    };
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
