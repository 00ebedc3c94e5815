//! Which of several near-duplicates is preferred: the order of documents by a column, or by the length of their texts.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

/// How documents are ordered by preference. Of equally preferred ones, that with the smallest id
/// comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prefer {
    /// The longest text, in features: markup, scripts and white space do not count.
    #[default]
    LongestText,
    /// The values of a column of the documents. Numbers, times and texts that are numbers or times come before other texts, and
    /// a document without a value comes last.
    Column {
        /// Its name.
        name: String,
        /// Whether the largest value is preferred, not the smallest.
        descending: bool,
    },
}

impl Prefer {
    /// The column; `None` if documents are preferred by their texts.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::LongestText => None,
            Self::Column { name, .. } => Some(name),
        }
    }
}

impl fmt::Display for Prefer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongestText => f.write_str("the longest text"),
            Self::Column { name, descending } => {
                write!(f, "{name}:{}", if *descending { "desc" } else { "asc" })
            }
        }
    }
}

impl FromStr for Prefer {
    type Err = String;

    /// Reads `COLUMN`, `COLUMN:asc` or `COLUMN:desc`; the direction in small or capital letters. The name of a column may have
    /// colons, but not end like a direction.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, direction) = text.rsplit_once(':').unwrap_or((text, ""));
        let (name, descending) = match direction.to_ascii_lowercase().as_str() {
            "asc" => (name, false),
            "desc" => (name, true),
            "ascending" | "descending" => {
                return Err(format!("{direction:?} is no direction; write asc or desc"));
            }
            _ => (text, false),
        };
        match name {
            "" => Err("the name of the column is missing".to_owned()),
            name => Ok(Self::Column {
                name: name.to_owned(),
                descending,
            }),
        }
    }
}

/// The sort key by which the text with the most features comes first.
pub(crate) fn length_key(features: usize) -> Vec<u8> {
    directed(integer_key(features as i128), true)
}

/// Sort keys of a column's values: in the order of their bytes, the most preferred value comes
/// first. A value without a key comes last.
pub(super) fn keys(column: &ArrayRef, descending: bool) -> Result<BinaryArray, String> {
    let as_type = |column: &ArrayRef, data_type: &DataType| {
        arrow::compute::cast(column, data_type).map_err(|error| error.to_string())
    };
    // Files may have different units of time; keys have nanoseconds.
    let unit: i128 = match column.data_type() {
        DataType::Null => return Ok(BinaryArray::new_null(column.len())),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => {
            let texts = as_type(column, &DataType::Binary)?;
            let texts = texts.as_binary::<i32>().iter();
            let key = |text: &[u8]| match text.len() > MAX_TEXT {
                true => Err(format!(
                    "a value of {} bytes; documents are not ordered by values of more than {MAX_TEXT}",
                    text.len()
                )),
                false => Ok(directed(text_key(text), descending)),
            };
            return texts.map(|text| text.map(key).transpose()).collect();
        }
        // Their texts have all their digits, and floats as few as tell them apart.
        kind if kind.is_decimal() || kind.is_floating() || *kind == DataType::UInt64 => {
            let texts = as_type(column, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter();
            let infinite = |text: &str| match text {
                "inf" => Some(vec![NUMBER, INFINITE]),
                "-inf" => Some(vec![NUMBER, MINUS_INFINITE]),
                _ => None,
            };
            let key = |text: &str| {
                let number = number_key(text).or_else(|| infinite(text));
                number.map(|key| directed(key, descending))
            };
            return Ok(texts.map(|text| text.and_then(key)).collect());
        }
        DataType::Date32 => 86_400_000_000_000,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Boolean => 1,
        kind if kind.is_integer() => 1,
        other => return Err(format!("documents cannot be ordered by values of {other}")),
    };
    let integers = as_type(column, &DataType::Int64)?;
    let integers = integers.as_primitive::<Int64Type>().iter();
    let key = |number: i64| directed(integer_key(i128::from(number) * unit), descending);
    Ok(integers.map(|number| number.map(key)).collect())
}

/// The first byte of a key. Numbers sort before other texts in either direction.
const NUMBER: u8 = 1;
const TEXT: u8 = 2;
/// The second byte of the key of a number: its sign.
const MINUS_INFINITE: u8 = 0;
const BELOW: u8 = 1;
const ZERO: u8 = 2;
const ABOVE: u8 = 3;
const INFINITE: u8 = 4;

/// The most bytes of a text that documents are ordered by, as of an id.
const MAX_TEXT: usize = archive::MAX_ID_BYTES;

/// The key of a text; a text that is a number or a time gets the key of the number, or of the time.
fn text_key(text: &[u8]) -> Vec<u8> {
    let trimmed = std::str::from_utf8(text).unwrap_or_default().trim();
    let number = number_key(trimmed).or_else(|| time(trimmed).map(integer_key));
    number.unwrap_or_else(|| [&[TEXT], text].concat())
}

/// The time in `text`, by ISO 8601 with or without seconds, in nanoseconds since 1970; without an offset, in UTC.
fn time(text: &str) -> Option<i128> {
    if text.as_bytes().get(4) != Some(&b'-') {
        return None;
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
    let time = with_offset().or_else(without).or_else(day)?;
    let seconds = i128::from(time.timestamp()) * 1_000_000_000;
    Some(seconds + i128::from(time.timestamp_subsec_nanos()))
}

fn integer_key(number: i128) -> Vec<u8> {
    number_key(&number.to_string()).unwrap_or_default()
}

/// The key of a decimal number with any digits, a point and an exponent, or none of these; `None` for other texts.
fn number_key(text: &str) -> Option<Vec<u8>> {
    let (is_negative, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(unsigned) => (text.starts_with('-'), unsigned),
        None => (false, text),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let exponent: i64 = exponent.parse().ok()?;
    digits.truncate(digits.trim_end_matches('0').len());
    let leading = digits.len() - digits.trim_start_matches('0').len();
    digits.drain(..leading);
    if digits.is_empty() {
        return Some(vec![NUMBER, ZERO]);
    }
    // The number is 0.DIGITS × 10^exponent.
    let exponent = exponent.saturating_add(whole.len() as i64 - leading as i64);
    let ordered = exponent.cast_unsigned() ^ 1 << 63;
    // The end sorts before any digit: 0.7 before 0.71.
    let mut magnitude = [&ordered.to_be_bytes()[..], digits.as_bytes(), &[0]].concat();
    if is_negative {
        magnitude.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let sign = if is_negative { BELOW } else { ABOVE };
    Some([&[NUMBER, sign], &magnitude[..]].concat())
}

/// The key itself or, if `descending`, one that reverses the order among numbers and among texts.
fn directed(mut key: Vec<u8>, descending: bool) -> Vec<u8> {
    if descending {
        key[1..].iter_mut().for_each(|byte| *byte = !*byte);
        // In reverse, "ab" comes before "a".
        key.push(0xff);
    }
    key
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
        TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
    };

    use arrow::datatypes::i256;
    use proptest::prelude::*;

    use super::*;

    /// The rows of `column` in the order of their keys, those without a key last.
    fn order(column: ArrayRef, descending: bool) -> Vec<usize> {
        let keys = keys(&column, descending).unwrap();
        let mut rows: Vec<usize> = (0..keys.len()).collect();
        rows.sort_by_key(|&row| (keys.is_null(row), keys.value(row).to_vec()));
        rows
    }

    #[test]
    fn keys_are_exact() {
        let texts = [
            "0.10000000000000000002",
            "0.1",
            "18446744073709551615",
            "18446744073709551614",
            "0.10000000000000000001",
        ];
        assert_eq!(
            order(Arc::new(StringArray::from(texts.to_vec())), false),
            [1, 4, 0, 3, 2]
        );
        let digits = [
            10_000_000_000_000_000_002i128,
            10_000_000_000_000_000_000,
            -1,
            10_000_000_000_000_000_001,
        ];
        for scale in [0, 5, 20, 37, -3] {
            let decimals = Decimal128Array::from(digits.to_vec())
                .with_precision_and_scale(38, scale)
                .unwrap();
            assert_eq!(order(Arc::new(decimals), false), [2, 1, 3, 0], "{scale}");
        }
        let nanoseconds = TimestampNanosecondArray::from(vec![
            1_700_000_000_000_000_001,
            1_700_000_000_000_000_000,
        ]);
        assert_eq!(order(Arc::new(nanoseconds), false), [1, 0]);
        let seconds = TimestampSecondArray::from(vec![i64::MAX, i64::MAX - 1]);
        assert_eq!(order(Arc::new(seconds), false), [1, 0]);
        let times = [
            "2024-01-02T12:00:00+02:00",
            "2024-01-02T11:00:00Z",
            "2024-01-02 09:30:00.5",
            "2024-01-02",
            "2024-01-02T11:00:00.000000001Z",
            "2024-01-02T14:00+0200",
            "2024-01-02 12:30:00 +00:00",
            "2024-01-02T13:00Z",
            "2024-01",
        ];
        let sorted = order(Arc::new(StringArray::from(times.to_vec())), false);
        assert_eq!(sorted, [8, 3, 2, 0, 1, 4, 5, 6, 7]);
        // Of equal values, the first row comes first here.
        let equal = [
            "0.7",
            "0.70000000000000000000",
            "0.69999999999999999999",
            "7e-1",
        ];
        let sorted = order(Arc::new(StringArray::from(equal.to_vec())), false);
        assert_eq!(sorted, [2, 0, 1, 3]);
        let floats = [
            f64::INFINITY,
            1e300,
            -1e-300,
            f64::NEG_INFINITY,
            f64::NAN,
            0.1,
        ];
        let sorted = order(Arc::new(Float64Array::from(floats.to_vec())), false);
        assert_eq!(sorted, [3, 2, 5, 1, 0, 4]);
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(
            keys(
                &(Arc::new(StringArray::from(vec![long])) as ArrayRef),
                false
            )
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn keys_of_decimals_have_their_order(
            numbers in proptest::collection::vec((any::<i64>(), 0u32..30, -4i64..20), 2..20),
        ) {
            // Digits, zeros behind them, and a scale: all have the same value as integers of a common scale.
            let exact = |&(digits, _, scale): &(i64, u32, i64)| {
                let power = u32::try_from(20 - scale).unwrap();
                i256::from(digits).checked_mul(i256::from(10).checked_pow(power).unwrap()).unwrap()
            };
            let text = |&(digits, zeros, scale): &(i64, u32, i64)| {
                format!("{digits}{}e{}", "0".repeat(zeros as usize), -scale - i64::from(zeros))
            };
            let texts: Vec<String> = numbers.iter().map(text).collect();
            for (a, x) in numbers.iter().zip(&texts) {
                for (b, y) in numbers.iter().zip(&texts) {
                    let [x, y] = [x, y].map(|text| number_key(text).unwrap());
                    prop_assert_eq!(x.cmp(&y), exact(a).cmp(&exact(b)));
                }
            }
        }
    }

    #[test]
    fn keys_have_the_order_of_the_values() {
        let texts = [
            "b",
            "10",
            "-3",
            "9.5",
            "2024-01-02",
            "a",
            " 7 ",
            "-0",
            "1e3",
            "inf",
            "ab",
        ];
        let texts: Vec<Option<&str>> = texts.map(Some).into_iter().chain([None]).collect();
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        assert_eq!(
            order(Arc::clone(&texts), false),
            [2, 7, 6, 3, 1, 8, 4, 5, 10, 0, 9, 11]
        );
        // Dates are times, so numbers.
        assert_eq!(order(texts, true), [4, 8, 1, 3, 6, 7, 2, 9, 0, 10, 5, 11]);
        let numbers = [
            Some(3),
            None,
            Some(i64::MIN),
            Some(-1),
            Some(i64::MAX),
            Some(i64::MAX - 1),
        ];
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        assert_eq!(order(Arc::clone(&numbers), false), [2, 3, 0, 5, 4, 1]);
        assert_eq!(order(numbers, true), [4, 5, 0, 3, 2, 1]);
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 0, u64::MAX - 1]));
        assert_eq!(order(large, false), [1, 2, 0]);
        let floats: ArrayRef =
            Arc::new(Float64Array::from(vec![f64::NAN, 0.5, f64::INFINITY, -0.0]));
        assert_eq!(order(Arc::clone(&floats), false), [3, 1, 2, 0]);
        assert_eq!(order(floats, true), [2, 1, 3, 0]);
        let days = Date32Array::from(vec![20_000, -5, 0]);
        assert_eq!(order(Arc::new(days), false), [1, 2, 0]);
        let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
        assert_eq!(order(Arc::new(flags), false), [2, 0, 1]);
    }

    #[test]
    fn times_have_one_unit() {
        let key = |column: ArrayRef| keys(&column, false).unwrap().value(0).to_vec();
        let millis = key(Arc::new(TimestampMillisecondArray::from(vec![86_400_000])));
        assert_eq!(
            key(Arc::new(TimestampNanosecondArray::from(vec![
                86_400_000_000_000
            ]))),
            millis
        );
        assert_eq!(key(Arc::new(Date32Array::from(vec![1]))), millis);
    }

    #[test]
    fn a_column_may_have_a_direction() {
        let column = |name: &str, descending| {
            let name = name.to_owned();
            Ok(Prefer::Column { name, descending })
        };
        assert_eq!("score".parse(), column("score", false));
        assert_eq!("score:asc".parse(), column("score", false));
        assert_eq!("score:desc".parse(), column("score", true));
        assert_eq!("dc:title".parse(), column("dc:title", false));
        assert_eq!("dc:title:desc".parse(), column("dc:title", true));
        for bad in ["", ":desc"] {
            bad.parse::<Prefer>().unwrap_err();
        }
    }
}
