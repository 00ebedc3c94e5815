//! Printing on standard output and standard error.

use std::cmp::Reverse;
use std::io::Write as _;

use documents::ColumnsRead;
use documents::crawl_counts::CrawlRecordCounts;
use documents::read_counts::Notes;
use engine::fingerprint::ShortDocuments;
use indicatif::HumanCount;
use storage::{STANDARD_OUTPUT, StorageError};

use crate::args::CommonArgs;
use crate::exit::Failure;
use crate::own_names::by_own_names;

/// Prints on standard output. If the reader closed it, the error is [`Failure::ClosedPipe`].
pub fn print(text: &str) -> Result<(), Failure> {
    let text = by_own_names(text);
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::ClosedPipe),
        Err(source) => Err(StorageError::io(STANDARD_OUTPUT)(source).into()),
    }
}

/// Prints on standard error, for commands that write their rows to standard output.
pub fn print_aside(text: &str) {
    // If it is closed, there is nowhere to report it.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Whether standard output has colours, by the terminal's rules: none with NO_COLOR, or if it is no terminal.
pub fn has_colours() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// A heading: bold, if there are colours.
pub fn heading(text: &str, colours: bool) -> String {
    let style = anstyle::Style::new().bold();
    if colours {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// The numbers of documents of each kind, but for those of which there are none: `, 3 empty, 1 repeated ids`.
pub fn some(numbers: &[(u64, &str)]) -> String {
    let some = numbers.iter().filter(|(number, _)| *number > 0);
    some.map(|(number, what)| format!(", {} {what}", count(*number)))
        .collect()
}

/// Prints a value as JSON on one line.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(&json_line(value)?)
}

/// Prints what a command did, unless it is to be quiet.
pub fn print_summary(common: &CommonArgs, text: &str) -> Result<(), Failure> {
    if common.quiet { Ok(()) } else { print(text) }
}

/// Formats a value as JSON on one line.
pub fn json_line(value: &impl serde::Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string(value)
        .map_err(|error| StorageError::io(STANDARD_OUTPUT)(error.into()))?;
    Ok(json + "\n")
}

/// Formats a number with thousands separators.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Formats the line about the documents that are too short for a run at `k`; empty if there are none.
pub fn short_documents(short: ShortDocuments, k: u32) -> String {
    match short.documents {
        0 => String::new(),
        documents => format!(
            "  {} documents have fewer than {} features (words): -k {k} can miss copies of these in which one word differs\n",
            count(documents),
            short.features
        ),
    }
}

/// Formats the line about the records of a batch's WARC files: those that are documents, and the others by reason, the commonest
/// first.
pub fn crawl_records(records: &CrawlRecordCounts) -> String {
    let mut line = format!("  WARC records: {} documents", count(records.documents));
    line += &some(&[
        (records.incomplete, "incomplete"),
        (records.malformed, "malformed"),
    ]);
    let mut skipped: Vec<_> = records.skipped.iter().collect();
    skipped.sort_by_key(|(_, number)| Reverse(**number));
    for (position, (reason, number)) in skipped.into_iter().enumerate() {
        line.push_str(if position == 0 { "; not read: " } else { ", " });
        line += &format!("{} {reason}", count(*number));
    }
    line.push('\n');
    line
}

/// Formats the line about documents and files that are not compared, or are read in another way than as they say; empty if there are
/// none.
pub fn notes(notes: &Notes) -> String {
    let each = notes.iter().map(|(note, noted)| {
        let (number, first) = (count(noted.number), visible(&noted.first));
        format!("{note}: {number} (first: {first})")
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        String::new()
    } else {
        format!("  {}\n", each.join("; "))
    }
}

/// The line about the columns that are read; those of other files behind them.
pub fn columns(read: &[ColumnsRead]) -> String {
    let each = read.iter().enumerate().map(|(position, columns)| {
        let shown = visible(&columns.to_string());
        match (position, columns.files) {
            (0, _) => shown,
            (_, 1) => format!("of one file {shown}"),
            (_, files) => format!("of {} files {shown}", count(files)),
        }
    });
    let each: Vec<String> = each.take(4).collect();
    if each.is_empty() {
        String::new()
    } else {
        format!("read: {}\n", each.join("; "))
    }
}

/// Formats a date, from days since 1970.
pub fn date(day: i32) -> String {
    let date = chrono::NaiveDate::default().checked_add_signed(chrono::Duration::days(day.into()));
    date.map_or_else(|| format!("day {day}"), |date| date.to_string())
}

/// Formats a number of bytes with its unit.
pub fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Replaces the characters of a text that control the terminal or change the direction of writing.
pub fn visible(text: &str) -> String {
    let is_steering = |c: char| {
        c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
    };
    text.chars()
        .map(|c| if is_steering(c) { '\u{fffd}' } else { c })
        .collect()
}

/// What documents without a fingerprint are: those that are too short or, if short texts are compared as a whole, empty ones.
pub fn without_fingerprint(only_empty: bool) -> &'static str {
    if only_empty {
        "empty"
    } else {
        "too short to compare"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_by_reason() {
        let skipped = [("redirect", 3), ("not text", 1_500), ("broken", 1)];
        let mut records = CrawlRecordCounts {
            documents: 12_000,
            incomplete: 2,
            skipped: skipped.map(|(name, n)| (name.to_owned(), n)).into(),
            ..CrawlRecordCounts::default()
        };
        assert_eq!(
            crawl_records(&records),
            "  WARC records: 12,000 documents, 2 incomplete; not read: 1,500 not text, 3 redirect, 1 broken\n"
        );
        records.skipped.clear();
        (records.incomplete, records.malformed) = (0, 1);
        assert_eq!(
            crawl_records(&records),
            "  WARC records: 12,000 documents, 1 malformed\n"
        );
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(date(20_484), "2026-01-31");
        assert_eq!(date(i32::MAX), "day 2147483647");
    }
}
