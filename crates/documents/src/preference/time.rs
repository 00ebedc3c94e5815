//! Times in texts and numbers.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use std::str::FromStr as _;

/// The time in `text`, in nanoseconds since 1970: by ISO 8601, with or without seconds, or by RFC 822, as in headers of HTTP; without
/// an offset, in UTC.
pub(super) fn of_text(text: &str) -> Option<i128> {
    iso(text).or_else(|| rfc_822(text))
}

/// The time in `text`, which may also be a number: seconds, milliseconds, microseconds or nanoseconds since 1970, by its size; or the
/// eight or fourteen digits of a day or a time, such as 20261128093000.
pub(super) fn of_text_or_number(text: &str) -> Option<i128> {
    let digits = || {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match text.len() {
            14 => NaiveDateTime::parse_from_str(text, "%Y%m%d%H%M%S").ok(),
            8 => {
                let day = NaiveDate::parse_from_str(text, "%Y%m%d").ok()?;
                Some(day.and_time(NaiveTime::MIN))
            }
            _ => None,
        }
    };
    let digits = || digits().map(|time| nanoseconds(time.and_utc()));
    of_text(text).or_else(digits).or_else(|| since_1970(text))
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
    let time = may_be.then(|| DateTime::parse_from_rfc2822(text))?;
    Some(nanoseconds(time.ok()?.to_utc()))
}

fn nanoseconds(time: DateTime<Utc>) -> i128 {
    let seconds = i128::from(time.timestamp()) * 1_000_000_000;
    seconds + i128::from(time.timestamp_subsec_nanos())
}

fn iso(text: &str) -> Option<i128> {
    if text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(nanoseconds(time.to_utc()));
    }
    // The offset may have a space before it.
    let mut words = text.split_whitespace();
    let mut compact = words.next()?.to_owned();
    if let Some(more) = words.next() {
        compact = format!("{compact}T{more}");
    }
    compact.extend(words);
    let text = compact.replace("UTC", "Z");
    const WITH_OFFSET: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"];
    const WITHOUT: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
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
    let day = || {
        let day =
            NaiveDate::from_str(&text).or_else(|_| NaiveDate::from_str(&format!("{text}-01")));
        Some(day.ok()?.and_time(NaiveTime::MIN).and_utc())
    };
    with_offset().or_else(without).or_else(day).map(nanoseconds)
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
        ] {
            assert_eq!(of_text_or_number(text), expected, "{text}");
        }
        let midnight = of_text("2026-01-02");
        assert_eq!(of_text_or_number("20260102"), midnight);
        assert_eq!(of_text_or_number("-1"), Some(-1_000_000_000));
        for text in ["", "soon", "nan", "1e300", "12:30 at noon"] {
            assert_eq!(of_text_or_number(text), None, "{text}");
        }
        assert_eq!(of_text("1767323045"), None);
    }
}
