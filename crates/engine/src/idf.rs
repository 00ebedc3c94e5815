//! Document frequencies: the number of documents that contain each feature.
//!
//! A stock DataFusion aggregate counts the distinct features of each document. It spills to the disk, so counts are exact
//! whatever the memory. Only the most frequent features are kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::IdType;
use arrow::array::{ArrayRef, AsArray as _, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::exec_err;
use datafusion::common::utils::take_function_args;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::{SessionContext, ident, lit};
use futures::StreamExt as _;
use simhash::{DocumentFrequencies, Fingerprinter, Model};

use crate::documents::{Documents, TEXT};
use crate::error::{EngineError, Result};
use crate::progress::Progress;

/// The document frequencies of a set of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The frequencies of the features that are kept.
    pub frequencies: DocumentFrequencies,
    /// Distinct features in all documents.
    pub distinct: u64,
}

/// Counts the documents that contain each feature under `model`, and keeps the `terms` most frequent features.
///
/// # Errors
/// [`EngineError`] naming the input file when a document cannot be read.
pub async fn learn(
    context: &SessionContext,
    documents: &Documents,
    model: &Model,
    terms: usize,
    progress: &Progress,
) -> Result<Learnt> {
    if documents.has_fingerprints() {
        return Err(EngineError::Usage(format!(
            "{}: document frequencies are learnt from texts, and these are ready fingerprints; name the texts by --text-column",
            documents.given()
        )));
    }
    let total = documents.known_rows().unwrap_or(0);
    progress.documents_total.store(total, Ordering::Relaxed);
    let failed = || EngineError::query(documents.given());
    let partitions = context.state().config().target_partitions();
    let features = Features::udf(model.clone());
    let counted = documents
        .table(context, IdType::String, partitions)?
        .select(vec![features.call(vec![ident(TEXT)]).alias(FEATURE)])
        .and_then(|rows| rows.unnest_columns(&[FEATURE]))
        .and_then(|rows| rows.aggregate(vec![ident(FEATURE)], vec![count(lit(1)).alias("n")]))
        .map_err(failed())?;
    let mut rows = counted.execute_stream().await.map_err(failed())?;
    // The top of the heap is the least frequent feature kept.
    let mut kept: BinaryHeap<Reverse<(u64, Reverse<String>)>> = BinaryHeap::new();
    let (mut distinct, mut occurrences) = (0u64, 0u64);
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let names = batch.column(0).as_string::<i32>();
        let counts = batch.column(1).as_primitive::<Int64Type>();
        for (feature, &count) in names.iter().zip(counts.values()) {
            let (Some(feature), count) = (feature, count.cast_unsigned()) else {
                continue;
            };
            distinct += 1;
            occurrences += count;
            let is_full = kept.len() >= terms;
            let beats_least = kept.peek().is_none_or(|Reverse((least, Reverse(name)))| {
                count > *least || (count == *least && feature < name.as_str())
            });
            if is_full && beats_least {
                kept.pop();
            }
            if (!is_full || beats_least) && terms > 0 {
                kept.push(Reverse((count, Reverse(feature.to_owned()))));
            }
        }
    }
    let counted = progress.documents.load(Ordering::Relaxed);
    if counted == 0 {
        return Err(EngineError::BadData {
            object: documents.given().to_owned(),
            reason: "no documents to learn frequencies from".into(),
        });
    }
    let features: Vec<(String, u64)> = kept
        .into_sorted_vec()
        .into_iter()
        .map(|Reverse((count, Reverse(feature)))| (feature, count))
        .collect();
    let listed: u64 = features.iter().map(|(_, count)| count).sum();
    let others = distinct - features.len() as u64;
    Ok(Learnt {
        frequencies: DocumentFrequencies {
            documents: counted,
            // Every feature that is not kept, and every unseen one, gets the mean of those not kept.
            rest: (occurrences - listed)
                .checked_div(others)
                .unwrap_or(1)
                .max(1),
            features,
        },
        distinct,
    })
}

/// Name of the column of features.
const FEATURE: &str = "feature";

/// `features(text)`: the distinct features of a text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Features {
    model: Model,
    signature: Signature,
}

impl Features {
    fn udf(model: Model) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            model,
            signature: Signature::exact(vec![DataType::BinaryView], Volatility::Immutable),
        })
    }
}

fn list_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Utf8, true))
}

impl ScalarUDFImpl for Features {
    fn name(&self) -> &str {
        "features"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::error::Result<DataType> {
        Ok(DataType::List(list_item()))
    }

    fn invoke_with_args(
        &self,
        args: ScalarFunctionArgs,
    ) -> datafusion::error::Result<ColumnarValue> {
        let rows = args.number_rows;
        let [texts] = take_function_args(self.name(), args.args)?;
        let texts = texts.into_array(rows)?;
        let mut fingerprinter = Fingerprinter::new(self.model.clone());
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(list_item());
        let mut bytes = 0;
        for text in texts.as_binary_view() {
            let text = String::from_utf8_lossy(text.unwrap_or_default());
            for feature in fingerprinter.features(&text) {
                bytes += feature.feature.len();
                if bytes > i32::MAX as usize {
                    return exec_err!("the features of {rows} documents are more than 2 GiB");
                }
                lists.values().append_value(feature.feature);
            }
            lists.append(true);
        }
        Ok(ColumnarValue::Array(Arc::new(lists.finish()) as ArrayRef))
    }
}
