//! The objects of a JSON file: its lines, or the elements of its array.

use std::io::{BufRead as _, Read as _};

use streams::BATCH_BYTES;

use super::input::Input;
use super::json_array::{Array, Element};
use crate::error::{DocumentsError, Result};

/// The objects of a file: its lines that are not blank, or the elements of its array.
pub(super) struct Objects {
    pub(super) input: Input,
    /// Number of the line in which `text` begins, from 1 on.
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
    /// The array that the file is, if it is one and is begun.
    pub(super) array: Option<Array>,
}

impl Objects {
    pub(super) fn new(input: Input) -> Result<Self> {
        Self::of_text(input.into_text())
    }

    pub(super) fn of_text(input: Input) -> Result<Self> {
        let mut objects = Self {
            input,
            number: 1,
            text: Vec::new(),
            array: None,
        };
        let begun = Array::begin(&mut objects.input.bytes);
        let (line, array) = begun.map_err(|error| objects.input.failed(1, error))?;
        // The number of a line counts up when the line is read.
        objects.number = if array.is_some() { line } else { line - 1 };
        objects.array = array;
        Ok(objects)
    }

    /// Reads the next object into `text`; returns `false` at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool> {
        let limit = self.input.limit;
        // Free the memory of a long object.
        if self.text.capacity() > BATCH_BYTES {
            self.text = Vec::new();
        }
        self.text.clear();
        let Some(array) = &mut self.array else {
            return self.next_line();
        };
        let element = array.next(&mut self.input.bytes, limit.record, &mut self.text);
        self.number = array.line;
        match element {
            Ok(Element::Object) => Ok(true),
            Ok(Element::End) => Ok(false),
            Ok(Element::TooLong) => Err(limit.exceeded(self.name())),
            Ok(Element::Bad(reason)) => {
                Err(DocumentsError::bad_data(self.name(), reason.to_owned()))
            }
            Err(error) => Err(self.input.failed(self.number, error)),
        }
    }

    /// Reads the next line that is not blank.
    fn next_line(&mut self) -> Result<bool> {
        let limit = self.input.limit;
        loop {
            self.text.clear();
            self.number += 1;
            // Read at most the longest line allowed, and its line end.
            let mut bytes = self.input.bytes.by_ref().take(limit.record as u64 + 1);
            let read = bytes.read_until(b'\n', &mut self.text);
            if read.map_err(|error| self.input.failed(self.number, error))? == 0 {
                return Ok(false);
            }
            if self.text.last() == Some(&b'\n') {
                self.text.pop();
            }
            if self.text.len() > limit.record {
                return Err(limit.exceeded(self.name()));
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The name of the line in which the object begins, for messages.
    pub(super) fn name(&self) -> String {
        self.input.line_name(self.number)
    }
}

/// The error of a line that cannot be parsed. It names the position in the line if the parser does.
pub(super) fn bad_line(line: &str, error: &serde_json::Error) -> DocumentsError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let (object, reason) = match text.strip_suffix(&place) {
        Some(reason) => (format!("{line}, column {}", error.column()), reason),
        None => (line.to_owned(), &*text),
    };
    let reason = match reason {
        reason if error.is_eof() => {
            format!("{reason}: an object that is not in an array must be one line")
        }
        "trailing characters" => {
            "more follows behind the object: each object must have a line of its own".to_owned()
        }
        reason => reason.to_owned(),
    };
    DocumentsError::bad_data(object, reason)
}

#[cfg(test)]
mod tests {
    use super::super::json_fields::{Fields, Kind};
    use super::*;

    #[test]
    fn errors_say_where_in_the_line() {
        let fields = Fields::new([("id", Kind::Text), ("text", Kind::Text)]);
        let error = fields.parse(br#"{"id":"a","text":x}"#).err().unwrap();
        let error = bad_line("day.jsonl, line 3", &error).to_string();
        assert_eq!(error, "day.jsonl, line 3, column 18: expected value");
    }
}
