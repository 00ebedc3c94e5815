//! Which of several near-duplicates is preferred: the order of documents by a column, or by the length of their texts.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray};
use arrow::datatypes::{
    DataType, Decimal256Type, Float64Type, Int64Type, TimeUnit, UInt64Type, i256,
};

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
    let times = |column: &ArrayRef, nanoseconds: i128| {
        let times = arrow::compute::cast(column, &DataType::Int64);
        let times = times.map_err(|error| error.to_string())?;
        let times = times.as_primitive::<Int64Type>().iter();
        let key = |time: i64| directed(integer_key(i128::from(time) * nanoseconds), descending);
        Ok(times.map(|time| time.map(key)).collect())
    };
    let as_type = |column: &ArrayRef, data_type: &DataType| {
        arrow::compute::cast(column, data_type).map_err(|error| error.to_string())
    };
    let integers = match column.data_type() {
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
        // Files may have different units of time; keys have one.
        DataType::Date32 => return times(column, 86_400_000_000_000),
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => {
            return times(column, 1_000_000);
        }
        DataType::Timestamp(TimeUnit::Second, _) => return times(column, 1_000_000_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => return times(column, 1000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => return times(column, 1),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => {
            let wide = as_type(column, &DataType::Decimal256(76, *scale))?;
            let numbers = wide.as_primitive::<Decimal256Type>().iter();
            let key = |number: i256| directed(decimal_key(number, *scale), descending);
            return Ok(numbers.map(|number| number.map(key)).collect());
        }
        DataType::Boolean => as_type(column, &DataType::Int64)?,
        DataType::UInt64 => {
            let numbers = column.as_primitive::<UInt64Type>().iter();
            let key = |number: u64| directed(integer_key(number.into()), descending);
            return Ok(numbers.map(|number| number.map(key)).collect());
        }
        kind if kind.is_integer() => as_type(column, &DataType::Int64)?,
        kind if kind.is_floating() => {
            let numbers = as_type(column, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>().iter();
            let numbers = numbers.map(|number| number.filter(|number| !number.is_nan()));
            let key = |number: f64| directed(float_key(number, i256::ZERO), descending);
            return Ok(numbers.map(|number| number.map(key)).collect());
        }
        other => return Err(format!("documents cannot be ordered by values of {other}")),
    };
    let integers = integers.as_primitive::<Int64Type>().iter();
    let key = |number: i64| directed(integer_key(number.into()), descending);
    Ok(integers.map(|number| number.map(key)).collect())
}

/// The first byte of a key. Numbers sort before other texts in either direction.
const NUMBER: u8 = 1;
const TEXT: u8 = 2;

/// The most bytes of a text that documents are ordered by, as of an id.
const MAX_TEXT: usize = archive::MAX_ID_BYTES;

/// The key of a text; a text that is a number or a time gets the key of the number, or of the time.
fn text_key(text: &[u8]) -> Vec<u8> {
    let number = std::str::from_utf8(text).unwrap_or_default().trim();
    if let Some(time) = time(number) {
        return integer_key(time);
    }
    if let Some((digits, scale)) = decimal(number) {
        return decimal_key(digits.into(), scale);
    }
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() => float_key(number, i256::ZERO),
        _ => [&[TEXT], text].concat(),
    }
}

/// The time in `text`, by ISO 8601, in nanoseconds since 1970; without an offset, in UTC.
fn time(text: &str) -> Option<i128> {
    if text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    let with_offset = || DateTime::parse_from_rfc3339(text).map(|time| time.to_utc());
    let without =
        || NaiveDateTime::from_str(&text.replacen(' ', "T", 1)).map(|time| time.and_utc());
    let day = || NaiveDate::from_str(text).map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let time = with_offset()
        .or_else(|_| without())
        .or_else(|_| day())
        .ok()?;
    let seconds = i128::from(time.timestamp()) * 1_000_000_000;
    Some(seconds + i128::from(time.timestamp_subsec_nanos()))
}

/// The digits of a decimal number in `text`, and how many of them are behind the point; `None` if there are too many, or an exponent.
fn decimal(text: &str) -> Option<(i128, i8)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let is_number = fraction.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && fraction.len() < 38).then_some((digits, fraction.len() as i8))
}

fn integer_key(number: i128) -> Vec<u8> {
    decimal_key(number.into(), 0)
}

/// The key of `digits` / 10^`scale`.
fn decimal_key(digits: i256, scale: i8) -> Vec<u8> {
    const EXACT: i128 = 1 << 53;
    if let Some(digits) = digits
        .to_i128()
        .filter(|digits| (-EXACT..EXACT).contains(digits))
        && (0..=22).contains(&scale)
    {
        // Both are floats without rounding, so their quotient is the nearest one.
        return float_key(digits as f64 / 10f64.powi(scale.into()), i256::ZERO);
    }
    let rounded = format!("{digits}e{}", -i32::from(scale))
        .parse()
        .unwrap_or(f64::NAN);
    // A float has 53 bits. The difference that rounding took away tells neighbours apart. It is in units of the 38th decimal, so
    // that columns of different scales have the same keys.
    let power = |exponent: u32| i256::from(10).checked_pow(exponent).unwrap_or(i256::MAX);
    let nearest = format!("{:.0}", rounded * 10f64.powi(scale.into()));
    let nearest = i256::from_string(&nearest).unwrap_or(digits);
    let unit = power(u32::try_from(38 - i32::from(scale)).unwrap_or(0));
    float_key(
        rounded,
        digits
            .wrapping_sub(nearest)
            .checked_mul(unit)
            .unwrap_or(i256::ZERO),
    )
}

/// The key of `number` and a small rest.
fn float_key(number: f64, rest: i256) -> Vec<u8> {
    // Adding 0.0 makes both zeros equal. The bits of negative floats sort in reverse, so invert
    // them.
    let bits = (number + 0.0).to_bits();
    let ordered = match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    };
    // The rest is nearly always 0, and then takes one byte.
    let rest = match rest.cmp(&i256::ZERO) {
        Ordering::Less => [&[0], &rest.to_be_bytes()[..]].concat(),
        Ordering::Equal => vec![1],
        Ordering::Greater => [&[2], &rest.to_be_bytes()[..]].concat(),
    };
    [&[NUMBER], &ordered.to_be_bytes()[..], &rest].concat()
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
        ];
        assert_eq!(
            order(Arc::new(StringArray::from(times.to_vec())), false),
            [3, 2, 0, 1, 4]
        );
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(
            keys(
                &(Arc::new(StringArray::from(vec![long])) as ArrayRef),
                false
            )
            .is_err()
        );
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
        assert_eq!(order(texts, true), [8, 1, 3, 6, 7, 2, 9, 0, 10, 5, 4, 11]);
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
