//! Times in texts and numbers.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use std::str::FromStr as _;

/// The time in `text`, in nanoseconds since 1970: by ISO 8601, with or without seconds, or by RFC 822, as in headers of HTTP; without
/// an offset, in UTC.
pub(super) fn of_text(text: &str) -> Option<i128> {
    iso(text).or_else(|| rfc_822(text))
}

/// The time in `text`, which may also be a number: seconds, milliseconds, microseconds or nanoseconds since 1970, by its size; or the
/// digits of a year, a month, a day or a time, such as 2026, 202611, 20261128 and 20261128093000.
pub(super) fn of_text_or_number(text: &str) -> Option<i128> {
    let digits = || {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // As numbers since 1970, these would be of that year, or far in the future.
        let whole = match text.len() {
            14 => text.to_owned(),
            8 => format!("{text}000000"),
            12 if is_year(text) => format!("{text}00"),
            10 if is_year(text) => format!("{text}0000"),
            6 if is_year(text) => format!("{text}01000000"),
            4 if is_year(text) => format!("{text}0101000000"),
            _ => return None,
        };
        NaiveDateTime::parse_from_str(&whole, "%Y%m%d%H%M%S").ok()
    };
    // A day of the year, and one of a week.
    let day = || {
        let formats = ["%Y-%j", "%G-W%V-%u"].into_iter();
        let mut days = formats.filter_map(|format| NaiveDate::parse_from_str(text, format).ok());
        Some(days.next()?.and_time(NaiveTime::MIN))
    };
    let other = || {
        digits()
            .or_else(day)
            .map(|time| nanoseconds(time.and_utc()))
    };
    of_text(text).or_else(other).or_else(|| since_1970(text))
}

/// Whether digits begin with a year from 1900 to 2099.
fn is_year(digits: &str) -> bool {
    digits.starts_with("19") || digits.starts_with("20")
}

/// Numbers below this, on either side of 0, are seconds since 1970; then each thousand times as much is the next smaller unit. So
/// seconds reach to the year 5138, and milliseconds begin in March 1973.
const SECONDS_END: f64 = 1e11;

/// The time that a number is.
fn since_1970(text: &str) -> Option<i128> {
    let number: f64 = text.parse().ok()?;
    let units = [1_000_000_000, 1_000_000, 1000, 1];
    let ends = [SECONDS_END, SECONDS_END * 1e3, SECONDS_END * 1e6, 1e20];
    let (unit, _) = units
        .into_iter()
        .zip(ends)
        .find(|(_, end)| number.abs() < *end)?;
    let whole: Option<i128> = text.parse().ok();
    Some(match whole {
        Some(whole) => whole * unit,
        None => (number * unit as f64) as i128,
    })
}

fn rfc_822(text: &str) -> Option<i128> {
    // Most texts are no times: do not parse them.
    let may_be = text.len() <= 64 && text.contains(':') && text.contains(' ');
    if !may_be {
        return None;
    }
    // A weekday may be wrong.
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let day = text.split_once(", ").filter(|(day, _)| DAYS.contains(day));
    let text = day.map_or(text, |(_, time)| time);
    let time = DateTime::parse_from_rfc2822(text).ok()?;
    Some(nanoseconds(time.to_utc()))
}

fn nanoseconds(time: DateTime<Utc>) -> i128 {
    let seconds = i128::from(time.timestamp()) * 1_000_000_000;
    seconds + i128::from(time.timestamp_subsec_nanos())
}

fn iso(text: &str) -> Option<i128> {
    let is_basic = text.as_bytes().get(8) == Some(&b'T');
    if text.as_bytes().get(4) != Some(&b'-') && !is_basic {
        return None;
    }
    // The usual forms first: each of the others takes several attempts.
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(nanoseconds(time.to_utc()));
    }
    if let Ok(day) = NaiveDate::from_str(text) {
        return Some(nanoseconds(day.and_time(NaiveTime::MIN).and_utc()));
    }
    // The offset may have a space before it.
    let mut words = text.split_whitespace();
    let mut compact = words.next()?.to_owned();
    if let Some(more) = words.next() {
        compact = format!("{compact}T{more}");
    }
    compact.extend(words);
    let text = compact.replace("UTC", "Z").replace("GMT", "Z");
    const WITH_OFFSET: [&str; 4] = [
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%dT%H:%M%#z",
        "%Y%m%dT%H%M%S%.f%#z",
        "%Y%m%dT%H%M%#z",
    ];
    const WITHOUT: [&str; 4] = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y%m%dT%H%M%S%.f",
        "%Y%m%dT%H%M",
    ];
    let with_offset = || {
        let times = WITH_OFFSET
            .iter()
            .map(|format| DateTime::parse_from_str(&text, format));
        times.flatten().next().map(|time| time.to_utc())
    };
    let without = || {
        let times = WITHOUT
            .iter()
            .map(|format| NaiveDateTime::parse_from_str(&text, format));
        times.flatten().next().map(|time| time.and_utc())
    };
    let month = || {
        let day = NaiveDate::from_str(&format!("{text}-01")).ok()?;
        Some(day.and_time(NaiveTime::MIN).and_utc())
    };
    let usual = NaiveDateTime::from_str(&text).map(|time| time.and_utc());
    let time = usual.ok().or_else(with_offset).or_else(without);
    time.or_else(month).map(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_has_many_forms() {
        let expected = Some(1_767_323_045_000_000_000);
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02 05:04:05 +02:00",
            "Fri, 02 Jan 2026 03:04:05 GMT",
            "2 Jan 2026 04:04:05 +0100",
            "1767323045",
            "1767323045.0",
            "1767323045000",
            "1767323045000000",
            "1767323045000000000",
            "20260102030405",
            "20260102T030405Z",
            "20260102T050405+0200",
            "2026-01-02 03:04:05 GMT",
            "Mon, 02 Jan 2026 03:04:05 GMT",
        ] {
            assert_eq!(of_text_or_number(text), expected, "{text}");
        }
        let midnight = of_text("2026-01-02");
        for text in ["20260102", "2026-002", "2026-W01-5"] {
            assert_eq!(of_text_or_number(text), midnight, "{text}");
        }
        let first = of_text("2026-01-01");
        for text in ["2026", "202601", "2026-01", "2026010100", "202601010000"] {
            assert_eq!(of_text_or_number(text), first, "{text}");
        }
        assert_eq!(of_text_or_number("1100"), Some(1_100_000_000_000));
        assert_eq!(of_text_or_number("-1"), Some(-1_000_000_000));
        for text in [
            "",
            "soon",
            "nan",
            "1e300",
            "12:30 at noon",
            "2026-400",
            "Zebra, 02 Jan 2026 03:04:05 GMT",
        ] {
            assert_eq!(of_text_or_number(text), None, "{text}");
        }
        for text in ["1767323045", "2026-001", "2026"] {
            assert_eq!(of_text(text), None);
        }
    }
}
