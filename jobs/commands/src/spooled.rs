//! Documents from standard input and from pipes: a run reads its input several times, so they are kept in scratch.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use engine::EngineError;
use storage::StorageError;

use crate::args::{Format, PipeArgs};
use crate::exit::{Failure, usage};
use crate::own_names;
use crate::process::Process;
use crate::starts::{Begun, HEAD, Start};

/// Stands for standard input.
const STDIN: &str = "-";

impl Format {
    /// The endings of its files' names; the first is that of what does not say one of them itself.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Jsonl => &[".jsonl", ".json"],
            Self::Csv => &[".csv", ".tsv"],
            Self::Parquet => &[".parquet"],
            Self::Warc => &[".warc"],
            Self::Html => &[".html", ".xhtml"],
            Self::Text => &[".txt"],
        }
    }
}

/// The input `paths`; standard input and pipes among them are copied to files of the scratch directory, in the format that the
/// options of the `pipe` name, if the command has them, or in the one that their first bytes are of.
pub async fn spooled(
    process: &Process,
    paths: Vec<String>,
    pipe: Option<PipeArgs>,
) -> Result<Vec<String>, Failure> {
    let mut files = Vec::with_capacity(paths.len());
    if paths.iter().filter(|path| *path == STDIN).count() > 1 {
        return usage("standard input can be read only once");
    }
    for (number, path) in paths.into_iter().enumerate() {
        if path != STDIN && !is_pipe(&path) {
            files.push(path);
            continue;
        }
        let directory = process.scratch.path().join(format!("input-{number}"));
        let copied = tokio::task::spawn_blocking(move || copy(&path, &directory, pipe));
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
fn copy(path: &str, directory: &Path, pipe: Option<PipeArgs>) -> Result<PathBuf, Failure> {
    let failed = |name: &str| StorageError::io(name);
    let (mut source, name): (Box<dyn Read>, &str) = match path {
        STDIN if io::stdin().is_terminal() => {
            return usage("standard input is a terminal: pipe the documents in, or name files");
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
    let start = Start::of(&head);
    if let Some(reason) = documents::why_unread(&start.bytes, !start.compression.is_empty()) {
        return Err(Failure::Data(format!("{own}: {reason}")));
    }
    let format = pipe.and_then(|pipe| pipe.format);
    let ending = ending(start.begun(), format).map_err(|begun| match (begun, pipe) {
        (Begun::Xml, pipe) => Failure::Data(format!(
            "{own}: it is XML, and no XHTML, so it is not read: convert it to JSON Lines, CSV, Parquet, WARC, HTML or text{}",
            pipe.map_or("", |_| ", or say --format html if it is a page")
        )),
        (Begun::Blank, _) => Failure::Data(format!("{own}: it is empty")),
        (_, Some(_)) => Failure::Usage(format!(
            "{own}: its first bytes do not say its format: name it by --format (jsonl, csv, parquet, warc, html or text; decompressed, or compressed by gzip or Zstandard)"
        )),
        (_, None) => Failure::Usage(format!(
            "{own}: its first bytes do not say its format: give a file instead, whose name ends in that of its format, such as .csv or .txt.gz"
        )),
    })?;
    let is_found_csv = format.is_none() && matches!(ending, ".csv" | ".tsv");
    let hint = if is_found_csv && pipe.is_some() {
        "; its first line has a delimiter, so it is read as CSV: if it is one text, say --format text"
    } else {
        ""
    };
    let file = directory.join(format!("{name}{ending}{}", start.compression));
    let target = file.display().to_string();
    own_names::add(target.clone(), own.to_owned(), hint);
    std::fs::create_dir(directory).map_err(failed(&target))?;
    let mut written = File::create(&file).map_err(failed(&target))?;
    io::copy(&mut head.as_slice().chain(source), &mut written).map_err(failed(&target))?;
    Ok(file)
}

/// The ending of the name, but for a compression, of what has `begun` so; the same if its format is unknown.
fn ending(begun: Begun, format: Option<Format>) -> Result<&'static str, Begun> {
    match (begun, format) {
        (Begun::Ending(ending), None) => Ok(ending),
        (Begun::Ending(ending), Some(format)) if format.endings().contains(&ending) => Ok(ending),
        (_, Some(format)) => Ok(format.endings()[0]),
        (begun, None) => Err(begun),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ending of a file that begins with `head`.
    fn of(head: &[u8], format: Option<Format>) -> Option<String> {
        let start = Start::of(head);
        let ending = ending(start.begun(), format).ok()?;
        Some(format!("{ending}{}", start.compression))
    }

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for (start, expected) in [
            (&b"PAR1\x15"[..], ".parquet"),
            (b"WARC/1.0\r\n", ".warc"),
            (b"\r\nWARC/1.0\r\n", ".warc"),
            (b"\xef\xbb\xbf {\"id\"", ".jsonl"),
            (b"[\n{", ".json"),
            (b"<!doctype html>", ".html"),
            (b"<?xml version='1.0'?><html>", ".xhtml"),
            (b"id,text\n1,a", ".csv"),
            (b"id\ttext\n", ".tsv"),
            (b"\xff\xfe{\0\"\0", ".jsonl"),
            (b"\xfe\xff\0i\0d\0,\0t\0\n", ".csv"),
        ] {
            assert_eq!(of(start, None).as_deref(), Some(expected), "{start:?}");
            let zstd = zstd::encode_all(start, 1).unwrap();
            assert_eq!(of(&zstd, None), Some(format!("{expected}.zst")));
            let skippable = [b"\x50\x2a\x4d\x18\x02\0\0\0ab", &zstd[..]].concat();
            assert_eq!(of(&skippable, None), Some(format!("{expected}.zst")));
        }
        let dictionary = b"\x5d\x2a\x4d\x18\x04\0\0\0abcd";
        assert_eq!(of(dictionary, None).as_deref(), Some(".warc.zst"));
        // One column of texts, a text, or another compression.
        for start in [&b"text\none\n"[..], b"a text\nwith, commas", b"BZh91AY"] {
            assert_eq!(of(start, None), None);
            assert_eq!(of(start, Some(Format::Csv)).as_deref(), Some(".csv"));
        }
        for (start, format, expected) in [
            (&b"<?xml version='1.0'?><html>"[..], Format::Html, ".xhtml"),
            (b"<?xml version='1.0'?><rss>", Format::Html, ".html"),
            (b"[{\"id\"", Format::Jsonl, ".json"),
            (b"[{\"id\"", Format::Text, ".txt"),
            (b"id\ttext\n", Format::Csv, ".tsv"),
            (b"\n", Format::Csv, ".csv"),
        ] {
            assert_eq!(of(start, Some(format)).as_deref(), Some(expected));
        }
    }
}
