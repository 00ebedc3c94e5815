//! Documents in row files (JSON, CSV, WARC, or a file for each document), plain or compressed: collects the records of a file
//! into record batches.
//!
//! The reader checks the bytes of a record and of a record batch before Arrow gets them. So no
//! file, however well it is compressed, takes more memory than a few times the longest record
//! allowed.

mod builder;
pub(super) mod compression;
pub(super) mod csv;
mod csv_dialect;
mod csv_quotes;
mod decoded;
pub(super) mod dialect;
mod encoded_bytes;
pub(super) mod format;
mod gzip_members;
pub(super) mod held;
mod input;
pub(super) mod json;
mod json_array;
mod json_fields;
mod json_numbers;
mod json_objects;
mod json_pieces;
pub(super) mod limit;
pub(super) mod warc;
pub(super) mod whole_file;

use std::ops::Range;
use std::sync::Arc;

use ::warc::charset::Encoding;
use archive::IdType;
use storage::{Location, UnchangedFile};

use super::columns::{Columns, Content};
use super::file::{InputFile, NumberedRows, RowSource, Source};
use crate::error::{DocumentsError, Result};
use crate::read_counts::ReadCounters;
use builder::BatchBuilder;
use compression::Compression;
pub(super) use encoded_bytes::window;
use format::{RawRecords, RecordReader, RowFormat};
use held::HeldFiles;
use input::{Input, RowFile};
use limit::Limit;
use streams::BATCH_BYTES;

/// The name of the encoding that a label of the Encoding Standard stands for.
pub fn charset_name(label: &str) -> Option<&'static str> {
    Encoding::for_label_no_replacement(label.as_bytes()).map(|found| found.name())
}

/// Opens a file, and finds its columns in its first record; `None` if it has none.
pub(super) async fn open(
    location: Location,
    format: &'static dyn RowFormat,
    compression: Compression,
    columns: &Columns,
    limit: Limit,
    held_files: &HeldFiles,
) -> Result<Option<InputFile>> {
    let (size, local) = match location.local() {
        Some(path) => {
            let file = UnchangedFile::at(path)?;
            (file.size(), Some(file))
        }
        None => (location.size().await?, None),
    };
    // A file of one document may be empty. A WARC file is of members, compressed or not, and may have none.
    match compression {
        _ if size > 0 => {}
        Compression::None if format.is_one_document() => {}
        Compression::Gzip | Compression::Zstd if !format.has_members() => {
            // Another compressed file has a header, even if it is empty.
            return Err(DocumentsError::bad_data(
                &location,
                "the compressed data is cut off: the file has 0 bytes",
            ));
        }
        _ => return Ok(None),
    }
    let held = if local.is_none() {
        held_files.hold(&location, size).await?
    } else {
        None
    };
    let source = RowSource {
        format,
        compression,
        size,
        // Compressed text has about a quarter of the bytes.
        bytes: match compression {
            Compression::None => size,
            Compression::Gzip | Compression::Zstd => size.saturating_mul(4),
        },
        cuts: Vec::new(),
        local,
        held,
    };
    let file = row_file(&location, &source, columns.charset(), limit);
    let has_start = !format.is_one_document() && !format.has_members();
    let is_compressed = compression != Compression::None;
    let first = file.read_start(move |mut input| {
        if has_start {
            input.check_start(is_compressed)?;
        }
        format.first_record(input)
    });
    let Some(find) = first.await? else {
        return Ok(None);
    };
    let (mut found, id_type) = find(&location, columns)?;
    let content = found.content.as_ref().map(Content::column);
    if let Some(id) = found.id.as_deref().filter(|id| content == Some(*id)) {
        let reason = format!("column {id:?} cannot be id and content at once");
        return Err(DocumentsError::bad_data(&location, reason));
    }
    Ok(Some(InputFile {
        short_name: location.file_name(),
        carried: std::mem::take(&mut found.carried),
        columns: found,
        id_type,
        spec: None,
        footer: None,
        source: Source::Rows(source),
        location,
    }))
}

/// Returns rows that are read of a file. It parses them unless they are parsed, which another thread can do; then it returns `None`
/// if none of them is wanted.
pub(super) type ReadRows = Box<dyn FnOnce() -> Result<Option<NumberedRows>> + Send>;

fn parsed(rows: NumberedRows) -> ReadRows {
    Box::new(move || Ok(Some(rows)))
}

/// Whether the row with a number is wanted.
pub(super) type WantedRows = Arc<dyn Fn(u64) -> bool + Send + Sync>;

pub(super) struct RowsToRead {
    /// A part of the file; `None` for all of it.
    pub(super) part: Option<Range<u64>>,
    pub(super) limit: Limit,
    /// If it is that of strings, the ids are, else they have the type of the file.
    pub(super) id_type: IdType,
    pub(super) null_ids: bool,
    /// Others need not be parsed; `None` if all are wanted.
    pub(super) wanted: Option<WantedRows>,
    /// The reader notes here what it reads, and at the end of a WARC file adds the counts of its records.
    pub(super) counters: Option<Arc<ReadCounters>>,
}

/// The rows of a file. The first `next` opens the file. A file in a store must be read on a blocking thread.
pub(super) fn batches(
    file: Arc<InputFile>,
    reading: RowsToRead,
) -> impl Iterator<Item = Result<ReadRows>> + Send + 'static {
    let mut unopened = Some((file, reading));
    let mut open = None;
    std::iter::from_fn(move || {
        if let Some((file, reading)) = unopened.take() {
            match OpenFile::open(file, reading) {
                Ok(opened) => open = Some(opened),
                Err(error) => return Some(Err(error)),
            }
        }
        let opened = open.as_mut()?;
        let rows = opened.next_rows();
        if let (Ok(None), Some(counters), RecordReader::Records(records)) =
            (&rows, &opened.reading.counters, &opened.reader)
            && let Some(counts) = records.crawl_counts()
        {
            counters.add_records(counts);
        }
        if !matches!(rows, Ok(Some(_))) {
            open = None;
        }
        rows.transpose()
    })
}

/// The unparsed records of a file, or of a part of it. A file in a store must be opened and read on a blocking thread.
pub(super) fn raw_records(
    file: &InputFile,
    part: Option<Range<u64>>,
    limit: Limit,
) -> Result<RawRecords> {
    let (input, format) = open_input(file, part, limit)?;
    format.raw_records(input, &file.columns)
}

/// The file at `location`, to be read as a format gets its bytes.
fn row_file(
    location: &Location,
    source: &RowSource,
    charset: Option<&'static Encoding>,
    limit: Limit,
) -> RowFile {
    RowFile {
        location: location.clone(),
        local: source.local.clone(),
        held: source.held.clone(),
        size: source.size,
        compression: if source.format.has_members() {
            Compression::None
        } else {
            source.compression
        },
        charset,
        limit,
    }
}

/// The bytes of a file, or of a part of it, and its format.
fn open_input(
    file: &InputFile,
    part: Option<Range<u64>>,
    limit: Limit,
) -> Result<(Input, &'static dyn RowFormat)> {
    let Some(source) = file.rows() else {
        return Err(DocumentsError::Internal(format!(
            "{}: Parquet has no rows of text",
            file.location
        )));
    };
    if part.is_some() && !source.format.has_members() {
        return Err(DocumentsError::Internal(format!(
            "{}: files of this format are not cut",
            file.location
        )));
    }
    let rows = row_file(&file.location, source, file.columns.charset, limit);
    Ok((rows.open(part)?, source.format))
}

struct OpenFile {
    file: Arc<InputFile>,
    reading: RowsToRead,
    reader: RecordReader,
    read: u64,
}

impl OpenFile {
    fn open(file: Arc<InputFile>, mut reading: RowsToRead) -> Result<Self> {
        let (mut input, format) = open_input(&file, reading.part.take(), reading.limit)?;
        input.counters = reading.counters.clone();
        if reading.id_type == IdType::Bigint {
            reading.id_type = file.id_type;
        }
        Ok(Self {
            reader: format.records(input, &file.columns, reading.id_type)?,
            file,
            reading,
            read: 0,
        })
    }

    fn next_rows(&mut self) -> Result<Option<ReadRows>> {
        let RowsToRead {
            id_type, null_ids, ..
        } = self.reading;
        let builder = |bytes| BatchBuilder::new(&self.file.columns, id_type, null_ids, bytes);
        match &mut self.reader {
            RecordReader::Records(records) => {
                let mut batch = builder(0);
                let mut numbers = Vec::new();
                while !batch.is_full() && records.read(&mut batch)? {
                    numbers.push(records.number().unwrap_or(self.read));
                    self.read += 1;
                }
                records.free();
                let rows = batch.finish()?;
                Ok(rows.map(|rows| parsed(NumberedRows { rows, numbers })))
            }
            RecordReader::Pieces(pieces) => {
                while let Some(piece) = pieces.next_piece()? {
                    let first = self.read;
                    self.read += piece.objects.len() as u64;
                    // No others should be in memory while it is parsed.
                    let is_long = piece.text.len() > BATCH_BYTES;
                    let batch = builder(piece.text.len());
                    let wanted = self.reading.wanted.clone();
                    let parse = move || -> Result<Option<NumberedRows>> {
                        let rows = piece.parse(batch, first, wanted)?;
                        Ok(rows.map(|(rows, numbers)| NumberedRows { rows, numbers }))
                    };
                    if !is_long {
                        return Ok(Some(Box::new(parse)));
                    }
                    if let Some(rows) = parse()? {
                        return Ok(Some(parsed(rows)));
                    }
                }
                Ok(None)
            }
        }
    }
}
