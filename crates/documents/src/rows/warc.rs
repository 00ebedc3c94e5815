//! WARC files: the pages and texts of a crawl. The reader decompresses a file itself, because it goes on after damage.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::sync::Arc;

use archive::IdType;
use arrow::datatypes::DataType;
use storage::{Location, StorageError};
use warc::{
    Broken, Choice, Dictionary, Document, Event, Fault, Limits, Place, Reader, Reason, WrongCut,
};

use super::builder::BatchBuilder;
use super::format::{FindColumns, RawRecords, RecordReader, Records, RowFormat};
use super::input::Input;
use crate::columns::{CRAWL_COLUMNS, Columns, CrawlId, FoundColumns, Pages};
use crate::crawl_counts::CrawlRecordCounts;
use crate::error::{DocumentsError, Result};
use crate::page_text;
use crate::read_counts::{Note, ReadCounters};
use crate::table_columns::TEXT;
use template::host;

/// The column of a record's id.
const RECORD_ID: &str = "warc_record_id";
const URL: &str = "url";
const STATUS: &str = "status";
/// What ends a record.
const BETWEEN_RECORDS: &[u8] = b"\r\n\r\n";
/// The most faults that are logged of a file, or of a part of it.
const MAX_LOGGED: usize = 10;

/// WARC files, also those of texts (WET).
#[derive(Debug)]
pub(crate) struct Warc;

impl RowFormat for Warc {
    fn first_record(&self, _: Input) -> Result<Option<FindColumns>> {
        Ok(Some(Box::new(find_columns)))
    }

    fn records(&self, input: Input, columns: &FoundColumns, _: IdType) -> Result<RecordReader> {
        Ok(RecordReader::Records(Box::new(WarcRecords {
            file: File::new(input, columns)?,
            columns: columns.names().into_iter().map(str::to_owned).collect(),
            has_ids: columns.id.is_some(),
            pages: columns.pages,
        })))
    }

    fn raw_records(&self, input: Input, columns: &FoundColumns) -> Result<RawRecords> {
        let mut file = File::new(input, columns)?;
        Ok(RawRecords::new(move |record| {
            let next = file.next(|document, _| {
                record.extend_from_slice(document.raw);
                // Readers need what the record lacks, and it may be followed by another now.
                if !record.ends_with(b"\n") {
                    record.extend_from_slice(BETWEEN_RECORDS);
                }
                Ok(())
            })?;
            Ok(!matches!(next, Next::End))
        }))
    }

    fn has_members(&self) -> bool {
        true
    }

    fn known_columns(&self) -> &'static [&'static str] {
        &CRAWL_COLUMNS
    }
}

/// Finds the columns among those of every such file.
fn find_columns(location: &Location, columns: &Columns) -> Result<(FoundColumns, IdType)> {
    let mut columns = columns.clone();
    if columns.id.is_none() && columns.crawl.id == CrawlId::Url {
        columns.id = Some(URL.to_owned());
    }
    let names = [RECORD_ID, TEXT].into_iter().chain(CRAWL_COLUMNS);
    let mut found = columns.find(location.given(), &names.collect::<Vec<_>>())?;
    let statuses = found.carried.iter_mut();
    for status in statuses.filter(|column| column.name == STATUS) {
        status.data_type = DataType::Int64;
    }
    Ok((found, IdType::String))
}

/// A file, or a part of it, that is being read.
struct File {
    reader: Reader<Box<dyn BufRead + Send>>,
    documents: warc::Documents,
    name: String,
    is_whole: bool,
    counts: CrawlRecordCounts,
    records: u64,
    /// Parts that cannot be read.
    broken: u64,
    first_broken: Option<Broken>,
    /// `None` if the records are not counted: they were, or will be, and faults are noted and logged then.
    faults: Option<Faults>,
}

/// What of a file cannot be read. It is logged when a record was read, because a file without any is an error, or at the end.
struct Faults {
    counters: Arc<ReadCounters>,
    number: usize,
    waiting: Vec<String>,
}

impl Faults {
    /// Notes the fault of a record or another part of the file.
    fn add(&mut self, file: &str, place: Place, fault: &str, what_follows: &str) {
        self.counters.note(Note::DamagedRecords, 1, file);
        self.number += 1;
        if self.number <= MAX_LOGGED {
            let fault = format!("{file}, {place}: {fault}; {what_follows}");
            self.waiting.push(fault);
        } else if self.number == MAX_LOGGED + 1 {
            let more = format!("{file}: further faults are only counted");
            self.waiting.push(more);
        }
    }

    fn log(&mut self) {
        for fault in self.waiting.drain(..) {
            tracing::warn!("{fault}");
        }
    }
}

/// What a file has next.
enum Next {
    Document,
    /// A record that is no document, or a part that cannot be read.
    Other,
    End,
}

/// The error of reading the bytes of the file called `name`.
fn failed(name: &str, error: io::Error) -> DocumentsError {
    // Errors of the disk and the store name their object themselves.
    let error = match error.downcast::<DocumentsError>() {
        Ok(own) => return own,
        Err(error) => error,
    };
    match error.downcast::<WrongCut>() {
        Ok(cut) => DocumentsError::WrongCut {
            file: name.to_owned(),
            offset: cut.offset,
        },
        Err(source) => StorageError::io(name)(source).into(),
    }
}

impl File {
    fn new(mut input: Input, columns: &FoundColumns) -> Result<Self> {
        let own = (input.limit.record, input.limit.window_log);
        let (record, window_log) = columns.crawl.limits.unwrap_or(own);
        let limits = Limits { record, window_log };
        let mut choice = Choice {
            check_digests: columns.crawl.check_digests,
            charset: columns.charset,
            ..Choice::default()
        };
        if !columns.crawl.statuses.is_empty() {
            let statuses = columns.crawl.statuses.iter();
            choice.statuses = statuses.map(|&status| status..=status).collect();
        }
        let is_whole = input.part.is_none();
        let faults = input.counters.take().map(|counters| Faults {
            counters,
            number: 0,
            waiting: Vec::new(),
        });
        let dictionary = read_dictionary(&mut input);
        let dictionary = dictionary.map_err(|error| failed(&input.name, error))?;
        let mut reader = match input.part {
            Some(part) => Reader::of_part(input.bytes, limits, part),
            None => Reader::new(input.bytes, limits),
        };
        if let Some(dictionary) = dictionary {
            reader.use_dictionary(dictionary);
        }
        Ok(Self {
            documents: warc::Documents::new(choice, limits.record),
            name: input.name,
            reader,
            is_whole,
            counts: CrawlRecordCounts::default(),
            records: 0,
            broken: 0,
            first_broken: None,
            faults,
        })
    }

    /// Reads what comes next, and calls `each` if it is a document.
    fn next(&mut self, each: impl FnOnce(&Document<'_>, &str) -> Result<()>) -> Result<Next> {
        let event = self.reader.next_event();
        match event.map_err(|error| failed(&self.name, error))? {
            None => return self.end().map(|()| Next::End),
            Some(Event::Broken(broken)) => {
                self.counts.count_broken(broken);
                self.first_broken.get_or_insert(broken);
                self.broken += 1;
                if let Some(faults) = &mut self.faults {
                    let what_follows = match broken.fault {
                        Fault::Endless => "no more of the file is read",
                        _ => "reading goes on behind it",
                    };
                    faults.add(&self.name, broken.place, broken.fault.name(), what_follows);
                }
            }
            Some(Event::Record(record)) => {
                self.records += 1;
                let outcome = self.documents.read(&record);
                self.counts.count(&outcome);
                if let Some(faults) = &mut self.faults {
                    match &outcome {
                        Err(reason) if is_fault(reason) => {
                            let left_out = "the record is left out";
                            faults.add(&self.name, record.place, reason.name(), left_out);
                        }
                        Ok(document) if document.is_malformed => {
                            faults.counters.note(Note::Malformed, 1, &self.name);
                        }
                        _ => {}
                    }
                    faults.log();
                }
                if let Ok(document) = &outcome {
                    return each(document, &self.name).map(|()| Next::Document);
                }
            }
        }
        Ok(Next::Other)
    }

    /// The number of what was read last. All records count, also those that are too long.
    fn number(&self) -> u64 {
        (self.records + self.broken).saturating_sub(1)
    }

    /// Refuses a file without a record.
    fn end(&mut self) -> Result<()> {
        // Of a file that is cut, the first part has a record.
        if let (true, 0, Some(broken)) = (self.is_whole, self.records, self.first_broken) {
            return Err(DocumentsError::bad_data(
                format!("{}, {}", self.name, broken.place),
                format!(
                    "{}; there is no WARC record in the file",
                    broken.fault.name()
                ),
            ));
        }
        if let Some(faults) = &mut self.faults {
            faults.log();
        }
        Ok(())
    }
}

/// Whether a record is left out because it is wrong or split, and not because of its kind.
fn is_fault(reason: &Reason<'_>) -> bool {
    matches!(
        reason,
        Reason::Http | Reason::Segment | Reason::Encoding | Reason::Digest | Reason::Broken(_)
    )
}

/// The dictionary that the file starts with, if `input` is a part that may need it and does not start with it.
fn read_dictionary(input: &mut Input) -> io::Result<Option<Dictionary>> {
    let start = input.part.as_ref().map_or(0, |part| part.start);
    if start == 0 || !Dictionary::may_be_needed(input.bytes.fill_buf()?) {
        return Ok(None);
    }
    // Less than the whole file: some servers ignore a range that covers it.
    let read = |length: usize| input.start_of_file(start.min(length as u64));
    let header = read(Dictionary::HEADER_LENGTH)?;
    Ok(match Dictionary::frame_length(&header) {
        Some(length) => Dictionary::from_start(&read(length)?),
        None => None,
    })
}

/// The value of a column of a document, but for its text; `None` if it has none.
fn value<'d>(document: &'d Document<'_>, column: &str) -> Option<Cow<'d, str>> {
    let url = document.url.as_deref();
    match column {
        RECORD_ID => document.id.as_deref().map(Cow::Borrowed),
        URL => url.map(Cow::Borrowed),
        "host" => url.and_then(host),
        "date" => document.date.as_deref().map(Cow::Borrowed),
        "content_type" => Some(lower_case(document.content_type)),
        STATUS => document.status.map(|status| status.to_string().into()),
        _ => None,
    }
}

/// The id of a document that has no other: its file and its place there.
fn place_name(file: &str, place: Place) -> String {
    match place.decompressed {
        0 => format!("{file}:{}", place.offset),
        within => format!("{file}:{}:{within}", place.offset),
    }
}

fn lower_case(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}

struct WarcRecords {
    file: File,
    columns: Vec<String>,
    /// Whether the first column has the ids.
    has_ids: bool,
    pages: Pages,
}

impl Records for WarcRecords {
    fn free(&mut self) {
        self.file.reader.free();
        self.file.documents.free();
    }

    fn read(&mut self, batch: &mut BatchBuilder) -> Result<bool> {
        loop {
            let next = self.file.next(|document, file| {
                let text = Cow::Borrowed(document.text);
                let values = self.columns.iter().map(|column| match column.as_str() {
                    TEXT => Some(page_text::content(self.pages, document.form, text.clone())),
                    column => value(document, column),
                });
                let mut values: Vec<Option<Cow<'_, str>>> = values.collect();
                if self.has_ids && values.first().is_some_and(Option::is_none) {
                    // A record need not have an id: then its URL stands for it, or its place.
                    let known = value(document, RECORD_ID).or_else(|| value(document, URL));
                    let place = || place_name(file, document.place).into();
                    values[0] = Some(known.unwrap_or_else(place));
                }
                let values = values
                    .iter()
                    .map(|value| value.as_deref().map(str::as_bytes));
                let values: Vec<Option<&[u8]>> = values.collect();
                let added = batch.push(&values);
                added.map_err(|reason| {
                    DocumentsError::bad_data(format!("{file}, {}", document.place), reason)
                })
            })?;
            match next {
                Next::Document => return Ok(true),
                Next::Other => {}
                Next::End => return Ok(false),
            }
        }
    }

    fn number(&self) -> Option<u64> {
        Some(self.file.number())
    }

    fn crawl_counts(&self) -> Option<&CrawlRecordCounts> {
        Some(&self.file.counts)
    }
}
