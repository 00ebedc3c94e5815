//! Ready fingerprints, as files have them: signed, unsigned, decimal numbers, or text.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};

/// The type to which numbers of a type are cast for [`fingerprint_bits`].
///
/// # Errors
/// A message for a type that has no fingerprints.
fn fingerprint_type(numbers: &DataType) -> Result<DataType, String> {
    use DataType::{Decimal128, Int64, LargeUtf8, UInt64, Utf8, Utf8View};
    match numbers {
        Int64 | UInt64 | Decimal128(_, 0) => Ok(numbers.clone()),
        Utf8 | LargeUtf8 | Utf8View => Ok(Utf8),
        other => Err(format!("a fingerprint is a 64-bit integer, not {other}")),
    }
}

/// The 64 bits of fingerprints, as `BIGINT`.
///
/// # Errors
/// A message for a number that fits neither `i64` nor `u64`, and for other types than those of [`fingerprint_type`].
pub fn fingerprint_bits(numbers: &ArrayRef) -> Result<ArrayRef, String> {
    let numbers = arrow::compute::cast(numbers, &fingerprint_type(numbers.data_type())?);
    let numbers = numbers.map_err(|error| error.to_string())?;
    let bits: Int64Array = match numbers.data_type() {
        DataType::UInt64 => {
            let values = numbers.as_primitive::<UInt64Type>();
            values.unary(u64::cast_signed)
        }
        DataType::Decimal128(..) => {
            let values = numbers.as_primitive::<Decimal128Type>();
            values.try_unary::<_, Int64Type, String>(to_bits)?
        }
        DataType::Utf8 => {
            let parse = |text: &str| match text.trim().parse() {
                Ok(number) => to_bits(number),
                Err(_) => Err(format!("{text:?} is no 64-bit fingerprint")),
            };
            let values = numbers.as_string::<i32>().iter();
            let bits = values.map(|text| text.map(parse).transpose());
            bits.collect::<Result<_, _>>()?
        }
        _ => return Ok(numbers),
    };
    Ok(Arc::new(bits))
}

/// The `i64` with the bits of a number; an error if the number fits neither `i64` nor `u64`.
fn to_bits(number: i128) -> Result<i64, String> {
    i64::try_from(number)
        .or_else(|_| u64::try_from(number).map(u64::cast_signed))
        .map_err(|_| format!("{number} is no 64-bit fingerprint"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_and_unsigned_numbers_keep_their_bits() {
        assert_eq!(to_bits(-1).unwrap(), -1);
        assert_eq!(to_bits(i128::from(u64::MAX)).unwrap(), -1);
        assert_eq!(to_bits(1 << 63).unwrap(), i64::MIN);
        assert!(to_bits(1 << 64).is_err());
        assert!(to_bits(-(1 << 63) - 1).is_err());
    }
}
