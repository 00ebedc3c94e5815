//! The formats of input files: the one table of their endings, and how each is opened.
//!
//! To add a row format, add an entry to [`FORMATS`], and a file in `rows` that implements
//! [`RowFormat`].

use std::sync::LazyLock;

use storage::{Location, endings_in_words, has_ending};
use tokio::sync::Semaphore;
use warc::Form;

use super::columns::Columns;
use super::file::InputFile;
use super::rows::compression::{self, Compression};
use super::rows::format::RowFormat;
use super::rows::held::{HeldFiles, SMALL};
use super::rows::limit::Limit;
use super::rows::whole_file::WholeFiles;
use super::{OPENED, ROW_FILES_OPENED, parquet, rows, unread};
use crate::error::{DocumentsError, Result};

struct Format {
    endings: &'static [&'static str],
    reader: Reader,
    /// Whether the documents are pages, whose markup is no text.
    has_pages: bool,
}

#[derive(Clone, Copy)]
enum Reader {
    /// Row groups of columns, compressed inside the file.
    Parquet,
    /// Records of text; the file may be compressed, and its name then has a second ending.
    Rows(&'static dyn RowFormat),
}

/// The formats, the preferred one first.
static FORMATS: [Format; 8] = [
    Format::of(&[".parquet"], Reader::Parquet),
    Format::of(
        &[".jsonl", ".ndjson", ".json"],
        Reader::Rows(&rows::json::Json),
    ),
    Format::of(&[".csv", ".tsv"], Reader::Rows(&rows::csv::Csv)),
    Format::of_pages(&[".warc"], &rows::warc::Warc),
    Format::of(&[".wet"], Reader::Rows(&rows::warc::Warc)),
    Format::of_pages(&[".html", ".htm"], &WholeFiles(Form::Html)),
    Format::of_pages(&[".xhtml", ".xht"], &WholeFiles(Form::Xhtml)),
    Format::of(&[".txt"], Reader::Rows(&WholeFiles(Form::Text))),
];

impl Format {
    const fn of(endings: &'static [&'static str], reader: Reader) -> Self {
        Self {
            endings,
            reader,
            has_pages: false,
        }
    }

    const fn of_pages(endings: &'static [&'static str], reader: &'static dyn RowFormat) -> Self {
        Self {
            has_pages: true,
            ..Self::of(endings, Reader::Rows(reader))
        }
    }
}

pub(super) fn has_pages(name: &str) -> bool {
    let (stem, _) = Compression::split(name);
    of_stem(stem).is_some_and(|format| format.has_pages)
}

pub(super) fn is_parquet(name: &str) -> bool {
    matches!(reader(name), Some((Reader::Parquet, _)))
}

pub(super) fn is_one_document(name: &str) -> bool {
    matches!(reader(name), Some((Reader::Rows(format), _)) if format.is_one_document())
}

/// The endings of readable files: first without compression, then the row formats with each
/// compression.
static ENDINGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let plain = FORMATS.iter().flat_map(|format| format.endings);
    let plain = plain.map(|ending| (*ending).to_owned());
    let row_formats = FORMATS
        .iter()
        .filter(|format| matches!(format.reader, Reader::Rows(_)));
    let row_endings: Vec<&str> = row_formats
        .flat_map(|format| format.endings)
        .copied()
        .collect();
    let compressed = compression::ENDINGS.iter().flat_map(|(compressed, _)| {
        let row_endings = row_endings.iter();
        row_endings.map(move |ending| format!("{ending}{compressed}"))
    });
    plain.chain(compressed).collect()
});

/// The endings of readable files, those without compression first.
pub fn extensions() -> Vec<&'static str> {
    ENDINGS.iter().map(String::as_str).collect()
}

/// The ending of a file's name with that of its compression, such as `.csv.gz`; `None` for a name
/// that no format has.
pub(super) fn ending(name: &str) -> Option<&'static str> {
    let ending = ENDINGS.iter().find(|ending| has_ending(name, ending));
    ending.map(String::as_str)
}

/// The format of a file, by its name without the ending of a compression.
fn of_stem(stem: &str) -> Option<&'static Format> {
    let is_of = |format: &&Format| format.endings.iter().any(|ending| has_ending(stem, ending));
    FORMATS.iter().find(is_of)
}

/// The reader and the compression of a file, by its name.
fn reader(name: &str) -> Option<(Reader, Compression)> {
    let (stem, compression) = Compression::split(name);
    match (of_stem(stem)?.reader, compression) {
        (Reader::Parquet, Compression::Gzip | Compression::Zstd) => None,
        (reader, compression) => Some((reader, compression)),
    }
}

/// Opens a file and finds its columns; `None` for a row file without a first record to find them
/// in. `row_files` has a permit for each small row file that may be opened at the same time.
pub(super) async fn open(
    location: Location,
    columns: &Columns,
    limit: Limit,
    row_files: &Semaphore,
    held_files: &HeldFiles,
) -> Result<Option<InputFile>> {
    match reader(&location.file_name()) {
        Some((Reader::Parquet, _)) => parquet::open(location, columns).await.map(Some),
        Some((Reader::Rows(format), compression)) => {
            // What is compressed may be large.
            let is_small = compression == Compression::None
                && location.known_size().is_some_and(|size| size <= SMALL);
            let permits = if is_small {
                1
            } else {
                OPENED / ROW_FILES_OPENED
            };
            // The semaphore is never closed.
            let _permit = row_files.acquire_many(permits as u32).await;
            rows::open(location, format, compression, columns, limit, held_files).await
        }
        None => {
            let name = location.file_name();
            let other = || {
                let endings = endings_in_words(&extensions());
                format!("not a file of documents by its name; names end in {endings}")
            };
            let reason = match of_stem(Compression::split(&name).0) {
                // Other formats may be compressed.
                Some(_) => unread::COMPRESSED_PARQUET.to_owned(),
                None => unread::by_name(&name).unwrap_or_else(other),
            };
            Err(DocumentsError::bad_data(&location, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_read() {
        let endings = extensions();
        assert_eq!(
            endings.join(" "),
            ".parquet .jsonl .ndjson .json .csv .tsv .warc .wet .html .htm .xhtml .xht .txt \
             .jsonl.gz .ndjson.gz .json.gz .csv.gz .tsv.gz .warc.gz .wet.gz .html.gz .htm.gz .xhtml.gz .xht.gz .txt.gz \
             .jsonl.zst .ndjson.zst .json.zst .csv.zst .tsv.zst .warc.zst .wet.zst .html.zst .htm.zst .xhtml.zst .xht.zst .txt.zst"
        );
        for ending in &endings {
            assert!(reader(&format!("a.b{ending}")).is_some(), "{ending}");
        }
        for other in ["a", "csv", "a.md", "a.gz", "a.parquet.gz", "a.csv.bz2", ""] {
            assert!(reader(other).is_none(), "{other}");
        }
    }
}
