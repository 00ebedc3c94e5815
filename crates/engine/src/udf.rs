//! SQL functions: `simhash(text)`, `fingerprint_bits(number)` and `hamming_distance(a, b)`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray as _, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::common::utils::take_function_args;
use datafusion::common::{exec_err, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use simhash::{Fingerprinter, Model};

/// `simhash(text)`: the fingerprint of a text as BIGINT; NULL for a text without a fingerprint.
///
/// Takes text or bytes. Replaces bytes that are not UTF-8 by replacement characters, and counts such texts.
#[derive(Debug)]
pub struct Simhash {
    model: Model,
    invalid_utf8: Arc<AtomicU64>,
    signature: Signature,
}

impl Simhash {
    /// The function for one model; it counts texts that are not UTF-8 in `invalid_utf8`.
    #[must_use]
    pub fn udf(model: Model, invalid_utf8: Arc<AtomicU64>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            model,
            invalid_utf8,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }

    fn fingerprint_texts<'a>(&self, texts: impl Iterator<Item = Option<&'a str>>) -> Int64Array {
        let mut fingerprinter = Fingerprinter::new(self.model.clone());
        texts
            .map(|text| fingerprinter.fingerprint(text?).map(u64::cast_signed))
            .collect()
    }

    fn fingerprint_bytes<'a>(&self, texts: impl Iterator<Item = Option<&'a [u8]>>) -> Int64Array {
        let mut fingerprinter = Fingerprinter::new(self.model.clone());
        texts
            .map(|bytes| {
                let bytes = bytes?;
                // Validation is several times as fast as the lossy conversion.
                let fingerprint = match simdutf8::basic::from_utf8(bytes) {
                    Ok(text) => fingerprinter.fingerprint(text),
                    Err(_) => {
                        self.invalid_utf8.fetch_add(1, Ordering::Relaxed);
                        fingerprinter.fingerprint(&String::from_utf8_lossy(bytes))
                    }
                };
                fingerprint.map(u64::cast_signed)
            })
            .collect()
    }
}

// Functions of one model are equal, whatever their counters.
impl PartialEq for Simhash {
    fn eq(&self, other: &Self) -> bool {
        self.model == other.model
    }
}

impl Eq for Simhash {}

impl Hash for Simhash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.model.hash(state);
    }
}

impl ScalarUDFImpl for Simhash {
    fn name(&self) -> &str {
        "simhash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{
            Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Null, Utf8, Utf8View,
        };
        match types {
            [text @ (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)] => {
                Ok(vec![text.clone()])
            }
            [Null] => Ok(vec![Utf8]),
            [Dictionary(_, values)] => self.coerce_types(&[values.as_ref().clone()]),
            _ => plan_err!("simhash takes one text, not {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [texts] = take_function_args(self.name(), args.args)?;
        let texts = texts.into_array(rows)?;
        let fingerprints = match texts.data_type() {
            DataType::Utf8 => self.fingerprint_texts(texts.as_string::<i32>().iter()),
            DataType::LargeUtf8 => self.fingerprint_texts(texts.as_string::<i64>().iter()),
            DataType::Utf8View => self.fingerprint_texts(texts.as_string_view().iter()),
            DataType::Binary => self.fingerprint_bytes(texts.as_binary::<i32>().iter()),
            DataType::LargeBinary => self.fingerprint_bytes(texts.as_binary::<i64>().iter()),
            DataType::BinaryView => self.fingerprint_bytes(texts.as_binary_view().iter()),
            other => return internal_err!("simhash of {other}"),
        };
        Ok(ColumnarValue::Array(Arc::new(fingerprints)))
    }
}

/// `fingerprint_bits(number)`: converts a ready fingerprint (signed, unsigned, or decimal text) to the BIGINT with the same
/// 64 bits.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FingerprintBits {
    signature: Signature,
}

impl FingerprintBits {
    /// Creates the function.
    #[must_use]
    pub fn udf() -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }
}

/// The `i64` with the bits of a number; an error if the number fits neither `i64` nor `u64`.
fn to_bits(number: i128) -> Result<i64> {
    i64::try_from(number)
        .or_else(|_| u64::try_from(number).map(u64::cast_signed))
        .or_else(|_| exec_err!("{number} is no 64-bit fingerprint"))
}

impl ScalarUDFImpl for FingerprintBits {
    fn name(&self) -> &str {
        "fingerprint_bits"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{Decimal128, Int64, LargeUtf8, UInt64, Utf8, Utf8View};
        match types {
            [number @ (Int64 | UInt64 | Decimal128(_, 0))] => Ok(vec![number.clone()]),
            [Utf8 | LargeUtf8 | Utf8View] => Ok(vec![Utf8]),
            [other] => plan_err!("a fingerprint is a 64-bit integer, not {other}"),
            _ => plan_err!("fingerprint_bits takes one number, not {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [numbers] = take_function_args(self.name(), args.args)?;
        let numbers = numbers.into_array(rows)?;
        let fingerprints: ArrayRef = match numbers.data_type() {
            DataType::Int64 => numbers,
            DataType::UInt64 => {
                let values = numbers.as_primitive::<UInt64Type>();
                Arc::new(values.unary::<_, Int64Type>(u64::cast_signed))
            }
            DataType::Decimal128(_, 0) => {
                let values = numbers.as_primitive::<Decimal128Type>();
                Arc::new(
                    values
                        .try_unary::<_, Int64Type, datafusion::error::DataFusionError>(to_bits)?,
                )
            }
            DataType::Utf8 => {
                let parse = |text: &str| match text.trim().parse() {
                    Ok(number) => to_bits(number),
                    Err(_) => exec_err!("{text:?} is no 64-bit fingerprint"),
                };
                let values = numbers
                    .as_string::<i32>()
                    .iter()
                    .map(|text| text.map(parse).transpose());
                Arc::new(values.collect::<Result<Int64Array>>()?)
            }
            other => return internal_err!("fingerprint_bits of {other}"),
        };
        Ok(ColumnarValue::Array(fingerprints))
    }
}

/// `hamming_distance(a, b)`: the number of bits in which two fingerprints differ.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct HammingDistance {
    signature: Signature,
}

impl HammingDistance {
    /// Creates the function.
    #[must_use]
    pub fn udf() -> ScalarUDF {
        let signature = Signature::exact(
            vec![DataType::Int64, DataType::Int64],
            Volatility::Immutable,
        );
        ScalarUDF::new_from_impl(Self { signature })
    }
}

impl ScalarUDFImpl for HammingDistance {
    fn name(&self) -> &str {
        "hamming_distance"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [a, b] = take_function_args(self.name(), args.args)?;
        let (a, b) = (a.into_array(rows)?, b.into_array(rows)?);
        let (a, b) = (a.as_primitive::<Int64Type>(), b.as_primitive::<Int64Type>());
        let distances: Int32Array =
            arrow::compute::binary(a, b, |a, b| (a ^ b).count_ones().cast_signed())?;
        Ok(ColumnarValue::Array(Arc::new(distances)))
    }
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
