//! Sort keys: bytes whose order is that of values. No key is the beginning of another one, so keys of several values can be
//! joined.

use std::io::Write as _;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray, BinaryBuilder};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use super::{NO_PREFERENCE, time};

/// The sort key by which the text with the most features comes first.
pub fn length_key(features: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY);
    integer_key(features as i128, &mut key);
    reverse(&mut key);
    key
}

/// The key of each row of a column; null for a row without one, which comes last.
pub(super) type Keys = BinaryArray;

/// Sort keys of a column's values: in the order of their bytes, the most preferred value comes first.
pub(super) fn of_values(column: &ArrayRef, descending: bool) -> Result<Keys, String> {
    let as_type = |column: &ArrayRef, data_type: &DataType| {
        arrow::compute::cast(column, data_type).map_err(|error| error.to_string())
    };
    // Files may have different units of time; keys have nanoseconds.
    let unit: i128 = match column.data_type() {
        DataType::Null => return Ok(Keys::new_null(column.len())),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => {
            let texts = as_type(column, &DataType::Binary)?;
            let texts = texts.as_binary::<i32>().iter();
            return of_each(texts, descending, |text, key| {
                if text.len() > MAX_TEXT {
                    return Err(format!(
                        "a value of {} bytes; documents are not ordered by values of more than {MAX_TEXT}",
                        text.len()
                    ));
                }
                text_key(text, key);
                Ok(true)
            });
        }
        // Their texts have all their digits, and floats as few as tell them apart.
        kind if kind.is_decimal() || kind.is_floating() || *kind == DataType::UInt64 => {
            let texts = as_type(column, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter();
            return of_each(texts, descending, |text, key| {
                match text {
                    "inf" => key.push(INFINITE),
                    "-inf" => key.push(MINUS_INFINITE),
                    text => return Ok(number_key(text, key)),
                }
                Ok(true)
            });
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
    of_each(integers, descending, |number, key| {
        Ok(integer_key(i128::from(number) * unit, key))
    })
}

/// Sort keys of a column's times; what is no time has none.
pub(super) fn of_times(column: &ArrayRef, latest_first: bool) -> Result<Keys, String> {
    let kind = column.data_type();
    if kind.is_temporal() {
        return of_values(column, latest_first);
    }
    let texts = arrow::compute::cast(column, &DataType::Utf8);
    let texts = texts.map_err(|_| format!("values of {kind} are no times"))?;
    let texts = texts.as_string::<i32>().iter();
    of_each(texts, latest_first, |text, key| {
        let time = time::of_text_or_number(text.trim());
        Ok(time.is_some_and(|time| integer_key(time, key)))
    })
}

/// Sort keys of places in a list.
pub(super) fn of_places(places: impl ExactSizeIterator<Item = Option<u64>>) -> Keys {
    let places: Vec<Option<[u8; 8]>> = places.map(|place| place.map(u64::to_be_bytes)).collect();
    places.iter().map(Option::as_ref).collect()
}

/// The keys of documents by several rules, one behind the other.
pub(super) fn joined(rules: &[Keys], rows: usize) -> Keys {
    let bytes = rules.iter().map(|keys| keys.values().len() + rows).sum();
    let mut joined = BinaryBuilder::with_capacity(rows, bytes);
    let mut key = Vec::new();
    for row in 0..rows {
        key.clear();
        for keys in rules {
            if keys.is_valid(row) {
                key.extend_from_slice(keys.value(row));
            } else {
                key.push(NO_PREFERENCE);
            }
        }
        joined.append_value(&key);
    }
    joined.finish()
}

/// Builds the keys of a column. For each value, `write` appends the key to an empty buffer and returns `true`; or it returns `false`
/// for a value that has no key.
fn of_each<T: Copy>(
    values: impl ExactSizeIterator<Item = Option<T>>,
    descending: bool,
    write: impl Fn(T, &mut Vec<u8>) -> Result<bool, String>,
) -> Result<Keys, String> {
    let mut keys = BinaryBuilder::with_capacity(values.len(), values.len() * KEY);
    let mut key = Vec::with_capacity(KEY);
    for value in values {
        key.clear();
        match value {
            Some(value) if write(value, &mut key)? => {
                if descending {
                    reverse(&mut key);
                }
                keys.append_value(&key);
            }
            _ => keys.append_null(),
        }
    }
    Ok(keys.finish())
}

/// The bytes of most keys of numbers.
const KEY: usize = 16;
/// The first byte of a key of a number: its sign.
const MINUS_INFINITE: u8 = 1;
const BELOW: u8 = 2;
const ZERO: u8 = 3;
const ABOVE: u8 = 4;
const INFINITE: u8 = 5;
/// The first byte of a key of a text. Numbers sort before other texts in either direction.
const TEXT: u8 = 6;

/// The most bytes of a text that documents are ordered by, as of an id.
const MAX_TEXT: usize = archive::MAX_ID_BYTES;

/// Writes the key of a text; a text that is a number or a time gets the key of the number, or of the time.
fn text_key(text: &[u8], key: &mut Vec<u8>) {
    let trimmed = std::str::from_utf8(text).unwrap_or_default().trim();
    if number_key(trimmed, key) || time::of_text(trimmed).is_some_and(|time| integer_key(time, key))
    {
        return;
    }
    key.push(TEXT);
    for &byte in text {
        key.push(byte);
        // Two zeros are the end of the text.
        key.extend((byte == 0).then_some(u8::MAX));
    }
    key.extend([0, 0]);
}

fn integer_key(number: i128, key: &mut Vec<u8>) -> bool {
    let mut text = [0; 40];
    let mut rest = &mut text[..];
    // It has 39 digits at most.
    let _ = write!(rest, "{number}");
    let written = 40 - rest.len();
    std::str::from_utf8(&text[..written]).is_ok_and(|text| number_key(text, key))
}

/// Writes the key of a decimal number with any digits, a point and an exponent, or none of these; `false` for other texts.
fn number_key(text: &str, key: &mut Vec<u8>) -> bool {
    let (is_negative, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(unsigned) => (text.starts_with('-'), unsigned),
        None => (false, text),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let count = whole.len() + fraction.len();
    if count == 0 || !digits().all(|digit| digit.is_ascii_digit()) {
        return false;
    }
    let Ok(exponent) = exponent.parse::<i64>() else {
        return false;
    };
    let counts = |digit| digit != b'0';
    let (Some(leading), Some(trailing)) =
        (digits().position(counts), digits().rev().position(counts))
    else {
        key.push(ZERO);
        return true;
    };
    key.push(if is_negative { BELOW } else { ABOVE });
    let start = key.len();
    // The number is 0.DIGITS × 10^exponent. Most exponents take one byte.
    let exponent = exponent.saturating_add(whole.len() as i64 - leading as i64);
    match exponent {
        ..-119 => key.push(0),
        -119..=119 => key.push((exponent + 120) as u8),
        120.. => key.push(240),
    }
    if !(-119..=119).contains(&exponent) {
        key.extend((exponent.cast_unsigned() ^ 1 << 63).to_be_bytes());
    }
    // Two digits a byte, from 1 to 10. The end sorts before any digit: 0.7 before 0.71.
    let mut digits = digits()
        .skip(leading)
        .take(count - leading - trailing)
        .map(|digit| digit - b'0' + 1);
    loop {
        let mut next = || digits.next().unwrap_or(0);
        let (high, low) = (next(), next());
        key.push(high << 4 | low);
        if low == 0 {
            break;
        }
    }
    if is_negative {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    true
}

/// Reverses the order among numbers and among texts.
fn reverse(key: &mut [u8]) {
    if let [kind, rest @ ..] = key {
        if *kind != TEXT {
            *kind = MINUS_INFINITE + INFINITE - *kind;
        }
        rest.iter_mut().for_each(|byte| *byte = !*byte);
    }
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
        let keys = of_values(&column, descending).unwrap();
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
        let order_of = |texts: &[&str]| order(Arc::new(StringArray::from(texts.to_vec())), false);
        assert_eq!(order_of(&texts), [1, 4, 0, 3, 2]);
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
        assert_eq!(order_of(&times), [8, 3, 2, 0, 1, 4, 5, 6, 7]);
        // Of equal values, the first row comes first here.
        let equal = [
            "0.7",
            "0.70000000000000000000",
            "0.69999999999999999999",
            "7e-1",
        ];
        assert_eq!(order_of(&equal), [2, 0, 1, 3]);
        let extremes = [
            "1e9223372036854775807",
            "1e-6917529027641081000",
            "-.1e-9223372036854775808",
            ".1e-9223372036854775808",
            "1e-120",
            "1e-119",
            "-1e300",
        ];
        assert_eq!(order_of(&extremes), [6, 2, 3, 1, 4, 5, 0]);
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
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(MAX_TEXT + 1)]));
        assert!(of_values(&long, false).is_err());
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
                    let [x, y] = [x, y].map(|text| {
                        let mut key = Vec::new();
                        assert!(number_key(text, &mut key), "{text}");
                        key
                    });
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
        let ascending = order(Arc::clone(&texts), false);
        assert_eq!(ascending, [2, 7, 6, 3, 1, 8, 4, 5, 10, 0, 9, 11]);
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
        let key = |column: ArrayRef| of_values(&column, false).unwrap().value(0).to_vec();
        let millis = key(Arc::new(TimestampMillisecondArray::from(vec![86_400_000])));
        let nanos = TimestampNanosecondArray::from(vec![86_400_000_000_000]);
        assert_eq!(key(Arc::new(nanos)), millis);
        assert_eq!(key(Arc::new(Date32Array::from(vec![1]))), millis);
    }

    proptest! {
        /// Texts with zeros, numbers and times, in both directions: no key is the beginning of another one.
        #[test]
        fn no_key_begins_another_one(
            texts in proptest::collection::vec("[\u{0}a1.é-]{0,4}|[0-9]{1,4}", 2..20),
            descending: bool,
        ) {
            let keys: Vec<Vec<u8>> = texts
                .iter()
                .map(|text| {
                    let mut key = Vec::new();
                    text_key(text.as_bytes(), &mut key);
                    if descending {
                        reverse(&mut key);
                    }
                    key
                })
                .collect();
            for (a, x) in texts.iter().zip(&keys) {
                for (b, y) in texts.iter().zip(&keys) {
                    prop_assert!(x == y || !y.starts_with(x), "{a:?} {b:?}");
                    if x[0] == TEXT && y[0] == TEXT {
                        let order = a.as_bytes().cmp(b.as_bytes());
                        prop_assert_eq!(x.cmp(y), if descending { order.reverse() } else { order });
                    }
                }
            }
        }
    }
}
