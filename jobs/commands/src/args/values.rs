//! Parsers of option values.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{Datelike as _, NaiveDate};
use clap::builder::{PossibleValue, TypedValueParser};
use documents::{Quote, charset_name};
use engine::run::{Appended, DaySource};
use simhash::Choice;

/// The paths that are given as arguments, or else by an option.
pub fn either<'a>(arguments: &'a [String], option: &'a [String]) -> &'a [String] {
    if arguments.is_empty() {
        option
    } else {
        arguments
    }
}

/// The first of some options that is given.
pub(super) fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(option, _)| *option)
}

/// Parses a path on this machine. A URL is refused, because as a path it names a file in a directory such as `s3:`.
pub(super) fn local_path(text: &str) -> Result<PathBuf, String> {
    if text.contains("://") {
        Err("it must be a path on this machine, not a URL".into())
    } else {
        Ok(text.into())
    }
}

/// Parses a time span such as 30s, 5m or 7d; 0 is refused.
pub fn time_span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("the time must be longer than 0".into()),
        Ok(span) => Ok(span),
        Err(error) => Err(format!(
            "{error}; a time is a number with the unit s, m, h or d"
        )),
    }
}

/// Parses a date: YYYY-MM-DD, or yesterday or today in UTC.
pub(super) fn date(text: &str) -> Result<NaiveDate, String> {
    let today = chrono::Utc::now().date_naive();
    match text {
        "today" => Ok(today),
        "yesterday" => today
            .pred_opt()
            .ok_or_else(|| "there is no such date".into()),
        // Other engines read no other years.
        date => match date.parse::<NaiveDate>() {
            Ok(found) if has_form_of_date(date) && found.year() > 0 => Ok(found),
            Ok(_) => Err(format!(
                "{date:?} is not YYYY-MM-DD, in the years 1 to 9999"
            )),
            Err(_) if has_form_of_date(date) => Err("there is no such date".to_owned()),
            Err(_) => Err(format!("{date:?} is not YYYY-MM-DD, yesterday or today")),
        },
    }
}

/// The most parts of a list.
const MAX_PARTS: usize = 1_000_000;

/// Parses numbers of parts: `3`, `4..9` with both ends, or several of these with commas.
pub(super) fn parts(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("{text:?} is no list of parts, such as 3 or 4..9 or 3,7");
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
    let mut parts = Vec::new();
    for run in text.split(',') {
        let (first, last) = match run.split_once("..") {
            Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
            None => (number(run)?, number(run)?),
        };
        if first > last || (last - first) as usize >= MAX_PARTS {
            return Err(wrong());
        }
        parts.extend(first..=last);
    }
    Ok(parts)
}

/// Whether a text is four digits, two and two, with hyphens between.
fn has_form_of_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    lengths == [4, 2, 2] && parts.iter().all(digits)
}

/// Parses the day of a batch: a date as by [`date`], or `from-records`.
pub(super) fn day(text: &str) -> Result<DaySource, String> {
    match text {
        "from-records" => Ok(DaySource::Records),
        text => date(text).map(DaySource::Date).map_err(|error| {
            if has_form_of_date(text) {
                error
            } else {
                format!("{error}, or from-records")
            }
        }),
    }
}

/// Parses what separates the fields of CSV: an ASCII character, or `tab`.
pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [b'"' | b'\r' | b'\n' | b'\0'] => Err("it has another meaning in CSV".into()),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("it is neither one ASCII character nor tab".into()),
    }
}

/// Parses what quotes the fields of CSV: an ASCII character, or `none`.
pub(super) fn quote(text: &str) -> Result<Quote, String> {
    match text.as_bytes() {
        b"none" => Ok(Quote::None),
        [b'\r' | b'\n' | b'\0'] => Err("it has another meaning in CSV".into()),
        [byte] if byte.is_ascii() => Ok(Quote::Byte(*byte)),
        _ => Err("it is neither one ASCII character nor none".into()),
    }
}

/// Parses the name of an encoding, as the Encoding Standard has it.
pub(super) fn charset(text: &str) -> Result<String, String> {
    let name = charset_name(text);
    let name = name.ok_or("it is none; some are utf-8, windows-1251, shift_jis, gb18030, utf-16le");
    Ok(name?.to_owned())
}

/// Parses which documents of a batch are appended: all or kept.
pub(super) fn appended(text: &str) -> Result<Appended, String> {
    match text {
        "all" => Ok(Appended::All),
        "kept" => Ok(Appended::Kept),
        other => Err(format!("{other:?} is neither all nor kept")),
    }
}

/// A parser of the names of a [`Choice`]. The help text lists the names, and marks that of `default`.
pub(super) fn choice<T: Choice>(default: Option<T>) -> ChoiceParser<T> {
    ChoiceParser { default }
}

/// The parser that [`choice`] returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChoiceParser<T> {
    default: Option<T>,
}

impl<T: Choice + Send + Sync> TypedValueParser for ChoiceParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        TypedValueParser::parse_ref(&simhash::choice::parse::<T>, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let default = self.default;
        Some(Box::new(T::NAMES.iter().map(move |name| {
            let mut help = format!("{}{}", name.help(), name.limits());
            if default.is_some_and(|value| name.is_name_of(value)) {
                help.push_str(" (default)");
            }
            PossibleValue::new(name.name()).help(help)
        })))
    }
}
