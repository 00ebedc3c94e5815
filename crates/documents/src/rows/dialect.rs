//! How the fields of CSV are separated and quoted.

use serde::{Deserialize, Serialize};

/// What quotes the fields of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quote {
    /// Nothing: a quote is a character like others.
    None,
    /// This ASCII character.
    Byte(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    /// What quotes fields; `None` if quotes are characters like others.
    pub(crate) quote: Option<u8>,
    /// What stands before a quote within quotes; `None` if it is written twice.
    pub(crate) escape: Option<u8>,
    /// Whether the start of the file is right without quotes, too, so that lines which one joins may be rows.
    pub(crate) lines_may_be_rows: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self::quoted(b',')
    }
}

impl Dialect {
    /// Fields in double quotes.
    pub(crate) const fn quoted(delimiter: u8) -> Self {
        Self {
            delimiter,
            quote: Some(b'"'),
            escape: None,
            lines_may_be_rows: false,
        }
    }

    pub(super) fn parser(self) -> csv_core::Reader {
        let mut parser = csv_core::ReaderBuilder::new();
        parser
            .delimiter(self.delimiter)
            .quote(self.quote.unwrap_or(b'"'))
            .quoting(self.quote.is_some())
            .escape(self.escape)
            .double_quote(self.escape.is_none())
            .build()
    }
}
