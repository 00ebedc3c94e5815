//! Sort keys: bytes whose order is that of values. No key is the beginning of another one, so keys of several values can be
//! joined.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use super::time;

/// The sort key by which the text with the most features comes first.
pub fn length_key(features: usize) -> Vec<u8> {
    directed(integer_key(features as i128), true)
}

/// The key of each row of a column; `None` for a row without one, which comes last.
pub(super) type Keys = Vec<Option<Vec<u8>>>;

/// Sort keys of a column's values: in the order of their bytes, the most preferred value comes first.
pub(super) fn of_values(column: &ArrayRef, descending: bool) -> Result<Keys, String> {
    let as_type = |column: &ArrayRef, data_type: &DataType| {
        arrow::compute::cast(column, data_type).map_err(|error| error.to_string())
    };
    // Files may have different units of time; keys have nanoseconds.
    let unit: i128 = match column.data_type() {
        DataType::Null => return Ok(vec![None; column.len()]),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => {
            let texts = as_type(column, &DataType::Binary)?;
            let texts = texts.as_binary::<i32>().iter();
            let key = |text: &[u8]| {
                if text.len() > MAX_TEXT {
                    Err(format!(
                        "a value of {} bytes; documents are not ordered by values of more than {MAX_TEXT}",
                        text.len()
                    ))
                } else {
                    Ok(directed(text_key(text), descending))
                }
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

/// Sort keys of a column's times; what is no time has none.
pub(super) fn of_times(column: &ArrayRef, latest_first: bool) -> Result<Keys, String> {
    let kind = column.data_type();
    if kind.is_temporal() {
        return of_values(column, latest_first);
    }
    let texts = arrow::compute::cast(column, &DataType::Utf8);
    let texts = texts.map_err(|_| format!("values of {kind} are no times"))?;
    let key = |text: &str| {
        let time = time::of_text_or_number(text.trim())?;
        Some(directed(integer_key(time), latest_first))
    };
    let texts = texts.as_string::<i32>().iter();
    Ok(texts.map(|text| text.and_then(key)).collect())
}

/// The sort key of a place in a list.
pub(super) fn of_place(place: u64) -> Vec<u8> {
    place.to_be_bytes().to_vec()
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
    let number = number_key(trimmed).or_else(|| time::of_text(trimmed).map(integer_key));
    number.unwrap_or_else(|| {
        let mut key = vec![TEXT];
        for &byte in text {
            key.push(byte);
            // Two zeros are the end of the text.
            key.extend((byte == 0).then_some(u8::MAX));
        }
        key.extend([0, 0]);
        key
    })
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
        let keys = of_values(&column, descending).unwrap();
        let mut rows: Vec<usize> = (0..keys.len()).collect();
        rows.sort_by_key(|&row| (keys[row].is_none(), keys[row].clone()));
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
            of_values(
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
        let key = |column: ArrayRef| of_values(&column, false).unwrap().remove(0);
        let millis = key(Arc::new(TimestampMillisecondArray::from(vec![86_400_000])));
        assert_eq!(
            key(Arc::new(TimestampNanosecondArray::from(vec![
                86_400_000_000_000
            ]))),
            millis
        );
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
                .map(|text| directed(text_key(text.as_bytes()), descending))
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
