//! Times in texts and numbers.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use std::str::FromStr as _;

/// The time in `text`, in nanoseconds since 1970: by ISO 8601, with or without minutes and seconds, or in a form of
/// HTTP; without an offset, in UTC.
pub(super) fn of_text(text: &str) -> Option<i128> {
    iso(text).or_else(|| http(text))
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
        let time = NaiveDateTime::parse_from_str(&whole, "%Y%m%d%H%M%S").ok()?;
        Some(nanoseconds(time.and_utc()))
    };
    // A day of the year, and one of a week.
    let day = || {
        let formats = ["%Y-%j", "%G-W%V-%u", "%GW%V%u"].into_iter();
        let mut days = formats.filter_map(|format| NaiveDate::parse_from_str(text, format).ok());
        days.next().map(midnight)
    };
    let written = of_text(text).or_else(digits).or_else(day);
    written.or_else(|| since_1970(text))
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

/// The time in a text of RFC 822, RFC 850 or `asctime`.
fn http(text: &str) -> Option<i128> {
    // Most texts are no times: do not parse them.
    let may_be = text.len() <= 64 && text.contains(':') && text.contains(' ');
    if !may_be {
        return None;
    }
    // A weekday may be wrong.
    const DAYS: [&str; 7] = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let is_day = |day: &str| DAYS.iter().any(|name| *name == day || name[..3] == *day);
    let day = text.split_once([',', ' ']).filter(|(day, _)| is_day(day));
    let text = day.map_or(text, |(_, time)| time.trim_start());
    if let Ok(time) = DateTime::parse_from_rfc2822(text) {
        return Some(nanoseconds(time.to_utc()));
    }
    // Years from 70 on are those of the last century, whenever this runs: documents keep their order.
    let formats = ["%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"].into_iter();
    let mut times = formats.filter_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    times.next().map(|time| nanoseconds(time.and_utc()))
}

fn nanoseconds(time: DateTime<Utc>) -> i128 {
    let seconds = i128::from(time.timestamp()) * 1_000_000_000;
    seconds + i128::from(time.timestamp_subsec_nanos())
}

fn midnight(day: NaiveDate) -> i128 {
    nanoseconds(day.and_time(NaiveTime::MIN).and_utc())
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
        return Some(midnight(day));
    }
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let both = first.split_once('T');
    let Some((day, time)) = both.or_else(|| Some((first, words.next()?))) else {
        let of_month = NaiveDate::from_str(&format!("{first}-01"));
        return of_month.ok().map(midnight);
    };
    // A month has no time.
    if day.len() < "2026-332".len() {
        return None;
    }
    const DAYS: [&str; 5] = ["%Y-%m-%d", "%Y%m%d", "%Y-%j", "%G-W%V-%u", "%GW%V%u"];
    let mut days = DAYS
        .iter()
        .filter_map(|format| NaiveDate::parse_from_str(day, format).ok());
    let is_of_offset = |sign: char| !matches!(sign, '0'..='9' | ':' | '.' | ',');
    let (clock, offset) = time.split_at(time.find(is_of_offset).unwrap_or(time.len()));
    // It may have a space before it.
    let offset: String = std::iter::once(offset).chain(words).collect();
    let offset = match offset.strip_prefix(['+', '-', '\u{2212}']) {
        Some(clock) if offset.starts_with('+') => since_midnight(clock)?,
        Some(clock) => -since_midnight(clock)?,
        None if ["", "Z", "z", "UTC", "GMT"].contains(&&*offset) => 0,
        None => return None,
    };
    Some(midnight(days.next()?) + since_midnight(clock)? - offset)
}

/// Nanoseconds of an hour, a minute and a second.
const UNITS: [i128; 3] = [3_600_000_000_000, 60_000_000_000, 1_000_000_000];

/// Reads a time of day as nanoseconds since midnight: `HH`, `HH:MM`, `HHMM`, `HH:MM:SS` or `HHMMSS`. Its last number may have a
/// fraction.
fn since_midnight(clock: &str) -> Option<i128> {
    let (whole, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let whole = whole.as_bytes();
    let numbers: Vec<&[u8]> = if whole.contains(&b':') {
        whole.split(|byte| *byte == b':').collect()
    } else {
        whole.chunks(2).collect()
    };
    let last = *UNITS.get(numbers.len().checked_sub(1)?)?;
    let digits = &fraction.as_bytes()[..fraction.len().min(18)];
    let mut sum = last * number(digits)? / 10_i128.pow(digits.len() as u32);
    // There are leap seconds.
    for ((digits, unit), most) in numbers.iter().zip(UNITS).zip([24, 59, 60]) {
        let is_short = digits.len() <= 2;
        let number = number(digits).filter(|number| is_short && *number <= most)?;
        sum += number * unit;
    }
    // The end of the day.
    let end = 24 * UNITS[0];
    (sum == end || numbers[0] != b"24").then_some(sum)
}

/// The number that 1 to 18 digits are.
fn number(digits: &[u8]) -> Option<i128> {
    let is_number = matches!(digits.len(), 1..=18) && digits.iter().all(u8::is_ascii_digit);
    let digits = digits.iter().map(|digit| i128::from(digit - b'0'));
    is_number.then(|| digits.fold(0, |number, digit| 10 * number + digit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_day_has_hours() {
        let day = of_text("2026-11-28").unwrap();
        let [hour, minute, second] = UNITS;
        for (clock, since_midnight) in [
            ("2026-11-28T10", 10 * hour),
            ("2026-11-28T10Z", 10 * hour),
            ("2026-11-28 10 UTC", 10 * hour),
            ("20261128T10Z", 10 * hour),
            ("20261128T1030", 10 * hour + 30 * minute),
            ("2026-332T10:30", 10 * hour + 30 * minute),
            ("2026-W48-6T10:30Z", 10 * hour + 30 * minute),
            ("2026W486T1030Z", 10 * hour + 30 * minute),
            ("2026-11-28T10:00:00,5Z", 10 * hour + second / 2),
            ("20261128T100000,5+01", 9 * hour + second / 2),
            ("2026-11-28T10:30,5", 10 * hour + 30 * minute + 30 * second),
            ("2026-11-28T10,25Z", 10 * hour + 15 * minute),
            ("2026-11-28T24", 24 * hour),
            ("2026-11-28T24:00", 24 * hour),
            ("2026-11-28T24:00:00,0Z", 24 * hour),
            ("20261128T240000-0130", 25 * hour + 30 * minute),
            ("2026-11-28T23:59:60.5Z", 24 * hour + second / 2),
        ] {
            assert_eq!(of_text(clock), Some(day + since_midnight), "{clock}");
            assert_eq!(of_text_or_number(clock), of_text(clock), "{clock}");
        }
        for text in [
            "2026-11-28T",
            "2026-11-28TZ",
            "2026-11-28T25",
            "2026-11-28T24:00:01",
            "2026-11-28T24:00:00.001",
            "2026-11-28T10:60",
            "2026-11-28T10:",
            "2026-11-28T10:00:00:00",
            "2026-11-28T100000000000000000000000000000000000000000:00",
            "2026-11-28T10:00.",
            "2026-11-28T10:00.5.5",
            "2026-11-28T10 20",
            "2026-11-28T10é",
            "2026-11-28T10+é",
            "2026-11-31T10",
            "2026-11T10",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }

    proptest! {
        /// Against the sum of the numbers.
        #[test]
        fn forms_of_a_time_are_equal(
            day in 0..40_000_i32,
            clock in (0..24_i64, 0..60_i64, 0..60_i64),
            shown in 1..4_usize,
            fraction in proptest::option::of("[0-9]{1,12}"),
            offset in proptest::option::of((-23..24_i64, 0..60_i64)),
            is_basic: bool,
            has_comma: bool,
            has_space: bool,
        ) {
            // Days since the year 1.
            let date = NaiveDate::from_num_days_from_ce_opt(719_163 + day).unwrap();
            let (date_format, colon) = if is_basic { ("%Y%m%d", "") } else { ("%Y-%m-%d", ":") };
            let numbers = &[clock.0, clock.1, clock.2].map(i128::from)[..shown];
            let mut expected = 24 * UNITS[0] * i128::from(day);
            expected += numbers.iter().zip(UNITS).map(|(number, unit)| number * unit).sum::<i128>();
            let texts: Vec<String> = numbers.iter().map(|number| format!("{number:02}")).collect();
            let mut text = format!("{}T{}", date.format(date_format), texts.join(colon));
            if let Some(digits) = &fraction {
                text += &format!("{}{digits}", if has_comma { ',' } else { '.' });
                let part: i128 = digits.parse().unwrap();
                expected += part * UNITS[shown - 1] / 10_i128.pow(digits.len() as u32);
            }
            if let Some((hours, minutes)) = offset {
                let (sign, factor) = if hours < 0 { ('-', -1) } else { ('+', 1) };
                let space = if has_space { " " } else { "" };
                text += &format!("{space}{sign}{:02}{colon}{minutes:02}", hours.abs());
                let minutes = i128::from(60 * hours.abs() + minutes);
                expected -= factor * minutes * UNITS[1];
            }
            prop_assert_eq!(of_text(&text), Some(expected), "{}", text);
        }
    }

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
            "Friday, 02-Jan-26 03:04:05 GMT",
            "Fri Jan  2 03:04:05 2026",
            "Fri Jan 02 03:04:05 2026",
        ] {
            assert_eq!(of_text_or_number(text), expected, "{text}");
        }
        for (two_digits, four) in [("69", "2069"), ("70", "1970"), ("94", "1994")] {
            let text = format!("Sunday, 06-Nov-{two_digits} 08:49:37 GMT");
            let expected = of_text(&format!("{four}-11-06T08:49:37Z"));
            assert!(expected.is_some() && of_text(&text) == expected, "{text}");
        }
        let midnight = of_text("2026-01-02");
        for text in ["20260102", "2026-002", "2026-W01-5", "2026W015"] {
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
            "Satur, 31-Jan-26 06:30:00 GMT",
            "Saturday, 31-Feb-26 06:30:00 GMT",
            "Sat Jan 31 06:30:00",
        ] {
            assert_eq!(of_text_or_number(text), None, "{text}");
        }
        for text in ["1767323045", "2026-001", "2026"] {
            assert_eq!(of_text(text), None);
        }
    }
}
