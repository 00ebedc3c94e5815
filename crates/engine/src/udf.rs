//! SQL functions: `simhash(text)` and `hamming_distance(a, b)`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archive::schema::{FINGERPRINT, SKETCH};
use arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryBuilder, Int32Array, Int64Builder, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields, Int64Type};
use datafusion::common::utils::take_function_args;
use datafusion::common::{internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SimpleScalarUDF,
    Volatility,
};
use simhash::{Fingerprinter, Model};

use crate::text_counts::{TextCounters, TextCounts};
use crate::verify::BITMAP;
use documents::{NO_PREFERENCE, PREFERENCE, length_key};

/// `simhash(text)`: the fingerprint of a text as BIGINT; NULL for a text without a fingerprint.
///
/// Takes text or bytes. Replaces bytes that are not UTF-8 by replacement characters.
pub fn simhash(model: Model) -> ScalarUDF {
    let make = TextFunction::fingerprints;
    TextFunction::udf("simhash", DataType::Int64, make, model, Arc::default())
}

/// `made_of_text(text)`: what a run makes of a text, as a structure whose fields [`part`] reads. The fingerprint and the sketch
/// are NULL for a text without a fingerprint, the bitmap without `bitmaps`. Takes what [`simhash()`] takes. Counts texts in
/// `counters`.
pub(crate) fn made_of_text(model: Model, counters: Arc<TextCounters>, bitmaps: bool) -> ScalarUDF {
    let returns = DataType::Struct(parts());
    // Two names, because functions of one name and model are equal.
    let (name, make): (_, Make) = if bitmaps {
        (
            "made_of_text_with_bitmap",
            TextFunction::made_of_text::<true>,
        )
    } else {
        ("made_of_text", TextFunction::made_of_text::<false>)
    };
    TextFunction::udf(name, returns, make, model, counters)
}

/// A function of a text for one model.
#[derive(Debug)]
struct TextFunction {
    name: &'static str,
    returns: DataType,
    make: Make,
    model: Model,
    counters: Arc<TextCounters>,
    signature: Signature,
}

type Make = fn(&TextFunction, ScalarFunctionArgs) -> Result<ArrayRef>;

impl TextFunction {
    fn udf(
        name: &'static str,
        returns: DataType,
        make: Make,
        model: Model,
        counters: Arc<TextCounters>,
    ) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            name,
            returns,
            make,
            model,
            counters,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }

    fn fingerprints(&self, args: ScalarFunctionArgs) -> Result<ArrayRef> {
        let mut fingerprints = Int64Builder::with_capacity(args.number_rows);
        self.for_each_text(args, |maker, text| {
            let fingerprint = text.and_then(|text| maker.fingerprint(text));
            fingerprints.append_option(fingerprint.map(u64::cast_signed));
        })?;
        Ok(Arc::new(fingerprints.finish()))
    }

    fn made_of_text<const BITMAPS: bool>(&self, args: ScalarFunctionArgs) -> Result<ArrayRef> {
        let rows = args.number_rows;
        let mut fingerprints = Int64Builder::with_capacity(rows);
        let bytes = self.model.spec().sketch.bytes();
        let mut sketches = BinaryBuilder::with_capacity(rows, rows * bytes);
        let mut lengths = BinaryBuilder::with_capacity(rows, rows * length_key(1).len());
        let mut bitmaps = BinaryBuilder::with_capacity(rows, 0);
        let (mut sketch, mut bitmap) = (Vec::new(), Vec::new());
        self.for_each_text(args, |maker, text| {
            sketch.clear();
            bitmap.clear();
            let made = text.and_then(|text| maker.fingerprint_and_sketch(text, &mut sketch));
            fingerprints.append_option(made.map(u64::cast_signed));
            sketches.append_option(made.filter(|_| bytes > 0).map(|_| &sketch));
            lengths.append_option(text.map(|_| length_key(maker.feature_count())));
            if BITMAPS && text.is_some() {
                maker.append_bitmap(&mut bitmap);
            }
            bitmaps.append_option(BITMAPS.then_some(&bitmap));
        })?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(fingerprints.finish()),
            Arc::new(sketches.finish()),
            Arc::new(lengths.finish()),
            Arc::new(bitmaps.finish()),
        ];
        let made = StructArray::try_new(parts(), columns, None)?;
        Ok(Arc::new(made))
    }

    /// Calls `each`, which fingerprints a text, with a fingerprinter and every text that the function is given. Counts the
    /// texts.
    fn for_each_text(
        &self,
        args: ScalarFunctionArgs,
        mut each: impl FnMut(&mut Fingerprinter, Option<&str>),
    ) -> Result<()> {
        let rows = args.number_rows;
        let [texts] = take_function_args(self.name, args.args)?;
        let mut fingerprinter = Fingerprinter::new(self.model.clone());
        let mut counts = TextCounts::default();
        let invalid_utf8 = for_each_text(&texts.into_array(rows)?, |text| {
            each(&mut fingerprinter, text);
            if let (Some(text), Some(features)) = (text, fingerprinter.last_features()) {
                counts.shorter.add(features);
                counts.add_kind(text);
            }
        })?;
        self.counters.add(&TextCounts {
            invalid_utf8,
            ..counts
        });
        Ok(())
    }
}

// Functions of one model are equal, whatever their counters.
impl PartialEq for TextFunction {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.model) == (other.name, &other.model)
    }
}

impl Eq for TextFunction {}

impl Hash for TextFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.model.hash(state);
    }
}

/// Calls `each` with every text of an array, in order; `None` for a null. Replaces bytes that are
/// not UTF-8 by replacement characters, and returns the number of such texts.
fn for_each_text(texts: &ArrayRef, mut each: impl FnMut(Option<&str>)) -> Result<u64> {
    let mut invalid_utf8 = 0;
    // Validation is several times as fast as the lossy conversion.
    let mut each_bytes = |bytes: Option<&[u8]>| match bytes.map(simdutf8::basic::from_utf8) {
        None => each(None),
        Some(Ok(text)) => each(Some(text)),
        Some(Err(_)) => {
            invalid_utf8 += 1;
            each(bytes.map(String::from_utf8_lossy).as_deref());
        }
    };
    match texts.data_type() {
        DataType::Utf8 => texts.as_string::<i32>().iter().for_each(each),
        DataType::LargeUtf8 => texts.as_string::<i64>().iter().for_each(each),
        DataType::Utf8View => texts.as_string_view().iter().for_each(each),
        DataType::Binary => texts.as_binary::<i32>().iter().for_each(each_bytes),
        DataType::LargeBinary => texts.as_binary::<i64>().iter().for_each(each_bytes),
        DataType::BinaryView => texts.as_binary_view().iter().for_each(&mut each_bytes),
        other => return internal_err!("a fingerprint of {other}"),
    }
    Ok(invalid_utf8)
}

/// The types that a function of one text takes.
fn coerce_text(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    match types {
        [text @ (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)] => {
            Ok(vec![text.clone()])
        }
        [Null] => Ok(vec![Utf8]),
        [Dictionary(_, values)] => coerce_text(name, &[values.as_ref().clone()]),
        _ => plan_err!("{name} takes one text, not {types:?}"),
    }
}

/// `joined_keys(a, b, c)`: the keys of documents by several rules of preference, as one key.
pub(crate) fn joined_keys() -> ScalarUDF {
    let three = Signature::exact(vec![DataType::Binary; 3], Volatility::Immutable);
    column_function("joined_keys", three, DataType::Binary, |keys| {
        let rows = keys[0].len();
        let mut joined = BinaryBuilder::with_capacity(rows, 0);
        for row in 0..rows {
            let parts = keys.iter().map(|keys| {
                let keys = keys.as_binary::<i32>();
                let key = keys.is_valid(row).then(|| keys.value(row));
                key.unwrap_or(&[NO_PREFERENCE])
            });
            joined.append_value(parts.collect::<Vec<_>>().concat());
        }
        Ok(Arc::new(joined.finish()))
    })
}

/// A function of columns.
pub(crate) fn column_function(
    name: &'static str,
    signature: Signature,
    returns: DataType,
    of: impl Fn(Vec<ArrayRef>) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let on_columns = move |args: &[ColumnarValue]| {
        let found = of(ColumnarValue::values_to_arrays(args)?)?;
        Ok(ColumnarValue::Array(found))
    };
    let on_columns = Arc::new(on_columns);
    SimpleScalarUDF::new_with_signature(name, signature, returns, on_columns).into()
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        coerce_text(self.name, types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array((self.make)(self, args)?))
    }
}

/// The fields of what [`made_of_text`] returns: the fingerprint; the sketch; the key by which the text with the most features is
/// preferred; and the [bitmap](simhash::bitmap) of the text's shingles, empty if it has none.
fn parts() -> Fields {
    let field = |name| Field::new(name, part_type(name), true);
    let names = [FINGERPRINT, SKETCH, PREFERENCE, BITMAP];
    names.into_iter().map(field).collect()
}

fn part_type(name: &str) -> DataType {
    match name {
        FINGERPRINT => DataType::Int64,
        _ => DataType::Binary,
    }
}

/// The function that reads the field `name` of what [`made_of_text`] returns. DataFusion would move its own `get_field` into the
/// projection below, which would then make the structure once for each field.
pub(crate) fn part(name: &'static str) -> ScalarUDF {
    let one = Signature::any(1, Volatility::Immutable);
    column_function(name, one, part_type(name), move |made| {
        let structure = made[0].as_struct_opt();
        match structure.and_then(|made| made.column_by_name(name)) {
            Some(part) => Ok(Arc::clone(part)),
            None => internal_err!("{name} of {}", made[0].data_type()),
        }
    })
}

/// `hamming_distance(a, b)`: the number of bits in which two fingerprints differ.
pub fn hamming_distance() -> ScalarUDF {
    let two = Signature::exact(vec![DataType::Int64; 2], Volatility::Immutable);
    column_function("hamming_distance", two, DataType::Int32, |fingerprints| {
        let [a, b] = [0, 1].map(|at: usize| fingerprints[at].as_primitive::<Int64Type>());
        let distances: Int32Array =
            arrow::compute::binary(a, b, |a, b| (a ^ b).count_ones().cast_signed())?;
        Ok(Arc::new(distances))
    })
}
