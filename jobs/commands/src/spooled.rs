//! Documents from standard input and from pipes: a run reads its input several times, so they are kept in scratch.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use engine::EngineError;
use storage::StorageError;

use crate::args::Format;
use crate::exit::Failure;
use crate::own_names;
use crate::process::Process;

/// Stands for standard input.
const STDIN: &str = "-";
/// Bytes by which the format is found.
const HEAD: usize = 64 << 10;
/// The start of the frame with the dictionary of a Zstandard-compressed WARC file.
const DICTIONARY: &[u8] = b"\x5d\x2a\x4d\x18";

impl Format {
    /// The ending of its files' names.
    fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => ".jsonl",
            Self::Csv => ".csv",
            Self::Parquet => ".parquet",
            Self::Warc => ".warc",
            Self::Html => ".html",
            Self::Text => ".txt",
        }
    }

    /// The format of what begins so, decompressed; `None` if it may be anything.
    fn of_start(start: &[u8]) -> Option<Self> {
        const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
        let text = MARKS.iter().find_map(|mark| start.strip_prefix(*mark));
        // In UTF-16, zeros stand beside the letters.
        let text = text.unwrap_or(start).iter().copied();
        let text: Vec<u8> = text.filter(|byte| *byte != 0).collect();
        let text = text.trim_ascii_start();
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Some(match () {
            () if start.starts_with(b"PAR1") => Self::Parquet,
            () if start.starts_with(b"WARC/") => Self::Warc,
            () if text.starts_with(b"{") || text.starts_with(b"[") => Self::Jsonl,
            () if documents::is_no_text(&start[..start.len().min(HEAD)]) => return None,
            () if text.starts_with(b"<") => Self::Html,
            () if line.iter().any(|byte| b",;\t|".contains(byte)) => Self::Csv,
            () => return None,
        })
    }
}

/// The input `paths`; standard input and pipes among them are copied to files of the scratch directory, in the `format`, or in the
/// one that their first bytes are of.
pub async fn spooled(
    process: &Process,
    paths: Vec<String>,
    format: Option<Format>,
) -> Result<Vec<String>, Failure> {
    let mut files = Vec::with_capacity(paths.len());
    if paths.iter().filter(|path| *path == STDIN).count() > 1 {
        return Err(Failure::Usage(
            "standard input can be read only once".into(),
        ));
    }
    for (number, path) in paths.into_iter().enumerate() {
        if path != STDIN && !is_pipe(&path) {
            files.push(path);
            continue;
        }
        let directory = process.scratch.path().join(format!("input-{number}"));
        let copied = tokio::task::spawn_blocking(move || copy(&path, &directory, format));
        let ended = |error: tokio::task::JoinError| EngineError::Internal(error.to_string());
        let file = copied.await.map_err(ended)??;
        files.push(file.to_string_lossy().into_owned());
    }
    Ok(files)
}

/// Whether a path is a named pipe, or a descriptor of one, as shells give it for `<(command)`.
fn is_pipe(path: &str) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Copies what comes from `path` to a file in `directory`, whose name says what it is.
fn copy(path: &str, directory: &Path, format: Option<Format>) -> Result<PathBuf, Failure> {
    let failed = |name: &str| StorageError::io(name);
    let (mut source, name): (Box<dyn Read>, &str) = match path {
        STDIN if io::stdin().is_terminal() => {
            return Err(Failure::Usage(
                "standard input is a terminal: pipe the documents in, or name files".into(),
            ));
        }
        STDIN => (Box::new(io::stdin().lock()), "standard-input"),
        path => {
            let file = File::open(path).map_err(failed(path))?;
            let name = Path::new(path).file_name().and_then(|name| name.to_str());
            (Box::new(file), name.unwrap_or("pipe"))
        }
    };
    let own = if path == STDIN {
        "standard input"
    } else {
        path
    };
    let mut head = Vec::new();
    let read = source.by_ref().take(HEAD as u64).read_to_end(&mut head);
    read.map_err(failed(path))?;
    if head.is_empty() {
        return Err(Failure::Data(format!("{own}: it is empty")));
    }
    let (start, compression) = decompressed(&head);
    if let Some(reason) = documents::why_unread(&start, !compression.is_empty()) {
        return Err(Failure::Data(format!("{own}: {reason}")));
    }
    let ending = ending(&head, format).ok_or_else(|| {
        Failure::Usage(format!(
            "{own}: its first bytes do not say its format: name it by --format (jsonl, csv, parquet, warc, html or text; decompressed, or compressed by gzip or Zstandard)"
        ))
    })?;
    let file = directory.join(format!("{name}{ending}"));
    let target = file.display().to_string();
    own_names::add(target.clone(), own.to_owned());
    std::fs::create_dir(directory).map_err(failed(&target))?;
    let mut written = File::create(&file).map_err(failed(&target))?;
    io::copy(&mut head.as_slice().chain(source), &mut written).map_err(failed(&target))?;
    Ok(file)
}

/// The ending of a file that begins with `head`: its format, and its compression; `None` if its format is unknown.
fn ending(head: &[u8], format: Option<Format>) -> Option<String> {
    let (start, compression) = decompressed(head);
    let of_start = || {
        if head.starts_with(DICTIONARY) {
            // Only crawls have one.
            Some(Format::Warc)
        } else {
            Format::of_start(&start)
        }
    };
    let format = format.or_else(of_start)?;
    Some(format!("{}{compression}", format.ending()))
}

/// The start of what begins with `head`, decompressed, and the ending of its compression.
fn decompressed(head: &[u8]) -> (Vec<u8>, &'static str) {
    let mut start = Vec::new();
    // Whatever is wrong with it is said when it is read.
    if head.starts_with(b"\x1f\x8b") {
        let _ = flate2::read::MultiGzDecoder::new(head).read_to_end(&mut start);
        (start, ".gz")
    } else if head.starts_with(b"\x28\xb5\x2f\xfd")
        || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
    {
        if let Ok(decoder) = zstd::stream::read::Decoder::new(head) {
            let _ = decoder.take(HEAD as u64).read_to_end(&mut start);
        }
        (start, ".zst")
    } else {
        (head.to_vec(), "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for (start, expected) in [
            (&b"PAR1\x15"[..], ".parquet"),
            (b"WARC/1.0\r\n", ".warc"),
            (b"\xef\xbb\xbf {\"id\"", ".jsonl"),
            (b"[\n{", ".jsonl"),
            (b"<!doctype html>", ".html"),
            (b"id,text\n1,a", ".csv"),
            (b"id\ttext\n", ".csv"),
            (b"\xff\xfe{\0\"\0", ".jsonl"),
            (b"\xfe\xff\0i\0d\0,\0t\0\n", ".csv"),
        ] {
            assert_eq!(ending(start, None).as_deref(), Some(expected), "{start:?}");
            let zstd = zstd::encode_all(start, 1).unwrap();
            assert_eq!(ending(&zstd, None), Some(format!("{expected}.zst")));
            let skippable = [b"\x50\x2a\x4d\x18\x02\0\0\0ab", &zstd[..]].concat();
            assert_eq!(ending(&skippable, None), Some(format!("{expected}.zst")));
        }
        assert_eq!(
            ending(b"\x5d\x2a\x4d\x18\x04\0\0\0abcd", None).as_deref(),
            Some(".warc.zst")
        );
        // One column of texts, a text, or another compression.
        for start in [&b"text\none\n"[..], b"a text\nwith, commas", b"BZh91AY"] {
            assert_eq!(ending(start, None), None);
            assert_eq!(ending(start, Some(Format::Csv)).as_deref(), Some(".csv"));
        }
    }
}
