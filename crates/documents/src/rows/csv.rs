//! CSV with a header. Every record has as many fields as the header; the reader uses the id, the
//! content, the preference, and those that go along to decisions. A quoted field may span lines. How the fields are separated and
//! quoted is found; see [`super::csv_dialect`].

use std::io::{BufRead as _, Read as _};

use archive::IdType;
use csv_core::ReadRecordResult;
use storage::Location;

use super::builder::BatchBuilder;
use super::csv_dialect::{is_line_end, is_one_column, names, separator_line, without_line_end};
use super::csv_quotes::{Lines, Quotes, are_rows};
use super::decoded::Copied;
use super::dialect::Dialect;
use super::format::{FindColumns, MAX_FIELDS, RawRecords, RecordReader, Records, RowFormat};
use super::input::Input;
use crate::columns::{Columns, FoundColumns};
use crate::error::{DocumentsError, Result};
use streams::BATCH_BYTES;

/// Bytes by which the dialect of a file is found.
const SAMPLE: usize = 256 << 10;
/// Bytes of a record's buffer at first; it grows for longer records.
const FIRST_ROOM: usize = 64 << 10;

/// The records of a file, with quotes removed.
struct Parser {
    input: Input,
    core: csv_core::Reader,
    quotes: Quotes,
    lines: Lines,
    /// Line of the start of the next record, from 1 on.
    next_line: u64,
    /// Line of the start of the last record.
    line: u64,
    /// The last record's fields, one after the other.
    text: Vec<u8>,
    /// The end of each field in `text`.
    ends: Vec<usize>,
    fields: usize,
    has_lines: bool,
    /// The bytes of the last record, with all, a part or none of its line end. `None` if the records after the header are not
    /// copied.
    raw: Option<Vec<u8>>,
}

impl Parser {
    fn new(input: Input, dialect: Dialect) -> Self {
        Self {
            input,
            core: dialect.parser(),
            quotes: Quotes::new(dialect),
            lines: Lines::default(),
            next_line: 1,
            line: 1,
            text: Vec::new(),
            ends: Vec::new(),
            fields: 0,
            has_lines: false,
            raw: Some(Vec::new()),
        }
    }

    /// Reads the next record, of at most `most` fields; `false` if there is none.
    fn advance(&mut self, most: usize) -> Result<bool> {
        if !self.skip_line_ends()? {
            return Ok(false);
        }
        self.line = self.next_line;
        self.quotes.start();
        let limit = self.input.limit;
        // Free the memory of a long record.
        if self.text.is_empty() || self.text.len() > BATCH_BYTES {
            self.text = vec![0; FIRST_ROOM.min(limit.record + 1)];
        }
        // Room for one field more, to notice a record with too many.
        self.ends.resize(most + 1, 0);
        if let Some(raw) = &mut self.raw {
            raw.clear();
        }
        let (mut read, mut written, mut fields) = (0, 0, 0);
        let ends_with_file = loop {
            let bytes = match self.input.bytes.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) => return Err(self.input.failed(self.line, error)),
            };
            let at_end = bytes.is_empty();
            // At the end of the file, parse one more line end: if the record then goes on, a quote
            // is open.
            let bytes: &[u8] = if at_end { b"\n" } else { bytes };
            let (result, consumed, copied, ended) =
                self.core
                    .read_record(bytes, &mut self.text[written..], &mut self.ends[fields..]);
            written += copied;
            fields += ended;
            if !at_end {
                self.next_line += self.lines.ends(&bytes[..consumed]);
                if !self.quotes.are_right(&bytes[..consumed]) {
                    return Err(self.bad(
                        "text follows the quote that closes a field; if quotes are characters like others in this file, say --quote none",
                    ));
                }
                if let Some(raw) = &mut self.raw {
                    raw.extend_from_slice(&bytes[..consumed]);
                }
                self.input.bytes.consume(consumed);
                read += consumed;
            }
            if read > limit.record {
                return Err(limit.exceeded(self.name()));
            }
            match result {
                ReadRecordResult::Record => break at_end,
                ReadRecordResult::InputEmpty if at_end => {
                    let field = fields + 1;
                    return Err(self.bad(&format!(
                        "field {field}: the file ends inside a quoted field"
                    )));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    let room = (self.text.len() * 2).min(limit.record + 1);
                    self.text.resize(room.max(written + 1), 0);
                }
                ReadRecordResult::OutputEndsFull => {
                    return Err(self.bad(&format!("more than {most} fields, the most allowed")));
                }
                ReadRecordResult::End => return Ok(false),
            }
        };
        self.fields = fields;
        // The last line of the file may have no end.
        self.has_lines = self.next_line - self.line > u64::from(!ends_with_file);
        Ok(true)
    }

    /// Reads the first line if it says the delimiter.
    fn separator(&mut self) -> Result<Vec<u8>> {
        let line = match self.input.bytes.fill_buf() {
            Ok(start) => start[..separator_line(start)].to_vec(),
            Err(error) => return Err(self.input.failed(1, error)),
        };
        self.next_line += self.lines.ends(&line);
        self.input.bytes.consume(line.len());
        Ok(line)
    }

    /// Skips blank lines up to the next record; `false` if there is none.
    fn skip_line_ends(&mut self) -> Result<bool> {
        loop {
            let bytes = match self.input.bytes.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) => return Err(self.input.failed(self.next_line, error)),
            };
            if bytes.is_empty() {
                return Ok(false);
            }
            let record = bytes.iter().position(|byte| !is_line_end(byte));
            let skipped = record.unwrap_or(bytes.len());
            self.next_line += self.lines.ends(&bytes[..skipped]);
            self.input.bytes.consume(skipped);
            if record.is_some() {
                return Ok(true);
            }
        }
    }

    /// A field of the record, by its number, which must exist.
    fn field(&self, number: usize) -> &[u8] {
        let start = match number {
            0 => 0,
            _ => self.ends[number - 1],
        };
        &self.text[start..self.ends[number]]
    }

    /// Appends the record to `copy`, and completes its line end: the parser may have read only a part of it, and the last line may
    /// have none.
    fn copy_record(&self, line_end: &[u8], copy: &mut Vec<u8>) {
        let raw = self.raw.as_deref().unwrap_or_default();
        copy.extend_from_slice(without_line_end(raw));
        copy.extend_from_slice(line_end);
    }

    /// Whether the record is rows that a quote joins, as far as one can tell.
    fn joins_rows(&self) -> bool {
        let Dialect {
            delimiter,
            lines_may_be_rows,
            ..
        } = self.quotes.dialect;
        self.has_lines && lines_may_be_rows && {
            let fields: Vec<&[u8]> = (0..self.fields).map(|at| self.field(at)).collect();
            are_rows(&fields, delimiter)
        }
    }

    fn name(&self) -> String {
        self.input.line_name(self.line)
    }

    fn bad(&self, reason: &str) -> DocumentsError {
        DocumentsError::bad_data(self.name(), reason.to_owned())
    }
}

#[derive(Debug)]
pub(crate) struct Csv;

impl RowFormat for Csv {
    fn first_record(&self, input: Input) -> Result<Option<FindColumns>> {
        let mut input = input.into_text();
        let mut start = Vec::new();
        let limit = input.limit;
        let mut bytes = input.bytes.by_ref().take(SAMPLE as u64);
        let mut read = bytes.read_to_end(&mut start);
        let is_whole = read.is_ok() && start.len() < SAMPLE;
        let has_line = |start: &[u8]| start[separator_line(start)..].iter().any(is_line_end);
        // A long header.
        while !is_whole && read.is_ok() && !has_line(&start) {
            if start.len() > limit.record {
                return Err(limit.exceeded(input.line_name(1)));
            }
            read = input
                .bytes
                .by_ref()
                .take(SAMPLE as u64)
                .read_to_end(&mut start);
            if matches!(read, Ok(0)) {
                break;
            }
        }
        // Whatever is wrong behind the header is said when all is read.
        if let Err(error) = read
            && !start.contains(&b'\n')
        {
            return Err(input.failed(1, error));
        }
        let is_blank = start[separator_line(&start)..].iter().all(is_line_end);
        Ok((!is_blank).then(|| -> FindColumns {
            Box::new(move |location, columns| find_columns(&start, is_whole, location, columns))
        }))
    }

    fn records(&self, input: Input, columns: &FoundColumns, _: IdType) -> Result<RecordReader> {
        let mut parser = Parser::new(input.into_text(), columns.dialect);
        parser.separator()?;
        parser.advance(MAX_FIELDS)?;
        let header = parser.raw.take().unwrap_or_default();
        let names = names(without_line_end(&header), columns.dialect);
        let number = |column: &str| {
            let number = names.iter().position(|name| name == column);
            number.ok_or_else(|| parser.bad(&format!("no column {column:?} any more")))
        };
        let read: Result<Vec<usize>> = columns.names().into_iter().map(number).collect();
        Ok(RecordReader::Records(Box::new(CsvRecords {
            read: read?,
            fields: parser.fields,
            parser,
        })))
    }

    fn raw_records(&self, input: Input, columns: &FoundColumns) -> Result<RawRecords> {
        let copied = if columns.is_joined {
            Copied::InUtf8
        } else {
            Copied::AsItIs
        };
        let mut parser = Parser::new(input.into_copy(copied), columns.dialect);
        let mut header = parser.separator()?;
        parser.advance(MAX_FIELDS)?;
        let line_end: &'static [u8] = match parser.raw.as_deref() {
            Some([.., b'\r']) => b"\r\n",
            _ => b"\n",
        };
        parser.copy_record(line_end, &mut header);
        let records = RawRecords::new(move |record| {
            let is_there = parser.advance(MAX_FIELDS)?;
            if is_there {
                parser.copy_record(line_end, record);
            }
            Ok(is_there)
        });
        Ok(RawRecords { header, ..records })
    }
}

/// Finds the columns of a file that begins with `start`, and is longer unless `is_whole`.
fn find_columns(
    start: &[u8],
    is_whole: bool,
    location: &Location,
    columns: &Columns,
) -> Result<(FoundColumns, IdType)> {
    // A file of one column has no delimiter: a comma in it is a part of the text.
    let is_tsv = location.file_name().split('.').any(|part| part == "tsv");
    let tab = (is_tsv && is_one_column(start)).then_some(b'\t');
    let dialect = Dialect::find(start, is_whole, columns.delimiter.or(tab), columns.quote);
    let names = names(dialect.header(start), dialect);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = columns.find(location.given(), &names);
    let mut found = found.map_err(|error| match error {
        DocumentsError::BadData { object, reason } => {
            let cut = char::from(dialect.delimiter);
            let reason = format!(
                "{reason}; is the first line a header? It was cut at each {cut:?} (see --delimiter)"
            );
            DocumentsError::bad_data(object, reason)
        }
        error => error,
    })?;
    if let Some(column) = found.repeated(&names) {
        let reason = format!("several columns are called {column:?}");
        return Err(DocumentsError::bad_data(location, reason));
    }
    found.dialect = dialect;
    Ok((found, IdType::String))
}

/// The records after the header.
struct CsvRecords {
    parser: Parser,
    /// The number of fields in the header, and so in every record.
    fields: usize,
    /// Numbers of the fields to read.
    read: Vec<usize>,
}

impl Records for CsvRecords {
    fn read(&mut self, batch: &mut BatchBuilder) -> Result<bool> {
        if !self.parser.advance(self.fields)? {
            return Ok(false);
        }
        if self.parser.fields != self.fields {
            let (found, expected) = (self.parser.fields, self.fields);
            let reason = format!(
                "{found} fields, but the header has {expected} (see --delimiter and --quote)"
            );
            return Err(self.parser.bad(&reason));
        }
        if self.parser.joins_rows() {
            return Err(self.parser.bad(
                "a quote joins lines that are rows without it; say --quote none if quotes are characters like others in this file, or --quote '\"'",
            ));
        }
        // An empty field is null.
        let value =
            |number: &usize| Some(self.parser.field(*number)).filter(|value| !value.is_empty());
        let values: Vec<Option<&[u8]>> = self.read.iter().map(value).collect();
        let added = batch.push(&values);
        added.map_err(|reason| self.parser.bad(&reason))?;
        Ok(true)
    }
}
