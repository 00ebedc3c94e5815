//! The target of an output of rows: a file, whose ending says the format, or standard output.

use std::fmt;

use storage::{Location, STANDARD_OUTPUT};

use crate::error::{EngineError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Parquet,
    /// Comma-separated values with a header, quoted as RFC 4180 says.
    Csv,
    /// A JSON object a line.
    JsonLines,
}

/// The formats and the endings of their files' names.
static ENDINGS: [(OutputFormat, &str); 3] = [
    (OutputFormat::Parquet, ".parquet"),
    (OutputFormat::Csv, ".csv"),
    (OutputFormat::JsonLines, ".jsonl"),
];

impl OutputFormat {
    /// The format by the ending of a file's name; `None` for an unknown ending, or none.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = ENDINGS.iter().find(|(_, ending)| name.ends_with(ending));
        known.map(|(format, _)| *format)
    }

    /// The endings of all formats, for messages: ".parquet, .csv or .jsonl".
    pub fn endings() -> String {
        let [others @ .., last] = ENDINGS.map(|(_, ending)| ending);
        format!("{} or {last}", others.join(", "))
    }
}

/// A file, or standard output, for rows.
#[derive(Debug, Clone)]
pub struct OutputTarget {
    /// `None` is standard output.
    location: Option<Location>,
    pub(super) format: OutputFormat,
}

impl OutputTarget {
    /// The file at `location`, in the format by its name.
    ///
    /// # Errors
    /// [`EngineError::Usage`] when the ending is unknown.
    pub fn file(location: Location) -> Result<Self> {
        match OutputFormat::from_name(&location.file_name()) {
            Some(format) => Ok(Self {
                location: Some(location),
                format,
            }),
            None => Err(EngineError::Usage(format!(
                "{location}: the ending says the format, and must be {}; - stands for JSON Lines on standard output",
                OutputFormat::endings()
            ))),
        }
    }

    /// Standard output, which takes JSON Lines.
    pub fn stdout() -> Self {
        Self {
            location: None,
            format: OutputFormat::JsonLines,
        }
    }

    /// The file; `None` for standard output.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }
}

impl fmt::Display for OutputTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => fmt::Display::fmt(location, f),
            None => f.write_str(STANDARD_OUTPUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_format() {
        let format = OutputFormat::from_name;
        assert_eq!(format("a.parquet"), Some(OutputFormat::Parquet));
        assert_eq!(format("2026-01-31.csv"), Some(OutputFormat::Csv));
        assert_eq!(format("a.csv.jsonl"), Some(OutputFormat::JsonLines));
        assert_eq!(OutputFormat::endings(), ".parquet, .csv or .jsonl");
        for other in ["a", "csv", "a.json", "a.csv.gz", "a.parquet/", "-", ""] {
            assert_eq!(format(other), None, "{other}");
        }
    }
}
