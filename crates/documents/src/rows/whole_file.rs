//! Files that are one document each: HTML, or plain text.

use std::borrow::Cow;
use std::io::Read as _;

use archive::IdType;
use storage::Location;
use warc::Form;
use warc::charset::{self, Hints};

use super::builder::BatchBuilder;
use super::format::{FindColumns, RawRecords, RecordReader, Records, RowFormat};
use super::input::Input;
use crate::columns::{Columns, FoundColumns, Pages};
use crate::error::{DocumentsError, Result};
use crate::page_text;
use crate::read_counts::Note;
use crate::table_columns::TEXT;

#[derive(Debug)]
pub(crate) struct WholeFiles(pub(crate) Form);

impl RowFormat for WholeFiles {
    fn first_record(&self, _: Input) -> Result<Option<FindColumns>> {
        Ok(Some(Box::new(find_columns)))
    }

    fn records(&self, input: Input, columns: &FoundColumns, _: IdType) -> Result<RecordReader> {
        Ok(RecordReader::Records(Box::new(WholeFile {
            input: Some(input),
            form: self.0,
            pages: columns.pages,
        })))
    }

    fn is_one_document(&self) -> bool {
        true
    }

    fn raw_records(&self, input: Input, _: &FoundColumns) -> Result<RawRecords> {
        let mut input = Some(input);
        Ok(RawRecords::new(move |bytes| {
            let Some(input) = input.take() else {
                return Ok(false);
            };
            *bytes = read_all(input)?;
            Ok(true)
        }))
    }
}

/// Every such file has a text, and nothing else.
fn find_columns(location: &Location, columns: &Columns) -> Result<(FoundColumns, IdType)> {
    let columns = Columns {
        row_ids: true,
        ..columns.clone()
    };
    let mut found = columns.find(location.given(), &[TEXT])?;
    found.is_one_document = true;
    Ok((found, IdType::String))
}

/// The document of a file.
struct WholeFile {
    /// `None` when it is read.
    input: Option<Input>,
    form: Form,
    pages: Pages,
}

impl Records for WholeFile {
    fn read(&mut self, batch: &mut BatchBuilder) -> Result<bool> {
        let Some(input) = self.input.take() else {
            return Ok(false);
        };
        let (name, charset) = (input.name.clone(), input.file.charset);
        let counters = input.counters.clone();
        let bytes = read_all(input)?;
        let hints = Hints {
            is_markup: self.form != Form::Text,
            charset,
            ..Hints::default()
        };
        let mut buffer = String::new();
        let decoded = charset::decode(&bytes, &hints, &mut buffer);
        if let Some(counters) = counters.filter(|_| decoded.is_malformed) {
            let what = "it has bytes that its charset does not have (see --charset)";
            counters.warn(Note::Malformed, &name, what);
        }
        let text = page_text::content(self.pages, self.form, Cow::Borrowed(decoded.text));
        let text = (!warc::is_no_text(&bytes, &hints)).then_some(text.as_bytes());
        // The only column that there is.
        let added = batch.push(&[text]);
        added.map_err(|reason| DocumentsError::bad_data(name, reason))?;
        Ok(true)
    }
}

/// All bytes of a file, which count as a record.
fn read_all(mut input: Input) -> Result<Vec<u8>> {
    let limit = input.limit;
    let mut bytes = Vec::new();
    let mut part = input.bytes.by_ref().take(limit.record as u64 + 1);
    let read = part.read_to_end(&mut bytes);
    read.map_err(|error| input.failed(1, error))?;
    if bytes.len() > limit.record {
        Err(limit.exceeded(input.name))
    } else {
        Ok(bytes)
    }
}
