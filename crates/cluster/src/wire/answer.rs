//! Answers on the wire: rows of a map followed by one receipt, as an Arrow IPC stream.
//!
//! ```text
//! columns of the map … | receipt
//! ---------------------+--------
//! values               | null       any number of record batches
//! nulls                | JSON       one record batch of one row, the last
//! ```
//!
//! Ballista 55 buffers whatever an executor sends after the schema, without a limit. Its decoder
//! can panic on damaged bytes. Its feature `arrow-ipc-optimizations`, which `ballista-scheduler`
//! and `ballista-executor` switch on, also asks Arrow not to validate arrays. An executor may be a
//! foreign one, so [`decode`] checks the bytes first and the arrays afterwards.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use ballista_core::client::BlockDataStream;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt as _, Stream, StreamExt as _};
use prost::bytes::Bytes;

use super::ipc_check::Checker;
use super::receipt::Receipt;

/// Name of the receipt column.
const RECEIPT: &str = "receipt";
/// Error for an answer that cannot be decoded.
const DAMAGED: &str = "an answer that is not valid Arrow data";

/// Returns the schema of an answer: the columns of the map, nullable, and the receipt.
pub(crate) fn answer_schema(rows: &Schema) -> SchemaRef {
    let fields = rows.fields().iter().map(|field| {
        let field = Field::clone(field).with_nullable(true);
        Arc::new(field)
    });
    let receipt = Field::new(RECEIPT, DataType::Utf8, true);
    Arc::new(Schema::new(
        fields.chain([Arc::new(receipt)]).collect::<Vec<_>>(),
    ))
}

/// Returns a receipt as the last record batch of an answer with this schema.
pub(crate) fn receipt_batch(schema: &SchemaRef, receipt: &Receipt) -> Result<RecordBatch> {
    let text = serde_json::to_string(receipt)
        .map_err(|error| DataFusionError::Internal(error.to_string()))?;
    let rows = schema.fields().len() - 1;
    let nulls = schema.fields()[..rows]
        .iter()
        .map(|field| new_null_array(field.data_type(), 1));
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let columns: Vec<ArrayRef> = nulls.chain([text]).collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// Returns what a record batch of an answer contains: rows of the map, which have `schema`, or the receipt.
pub(crate) fn split(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> std::result::Result<(Option<RecordBatch>, Option<Receipt>), String> {
    let width = schema.fields().len();
    if batch.num_columns() != width + 1 {
        return Err(format!(
            "an answer of {} columns, not {}",
            batch.num_columns(),
            width + 1
        ));
    }
    let column = batch.column(width);
    if column.null_count() == batch.num_rows() {
        let columns = batch.columns()[..width].to_vec();
        return RecordBatch::try_new(Arc::clone(schema), columns)
            .map(|rows| (Some(rows), None))
            .map_err(|error| error.to_string());
    }
    let receipts = column.as_any().downcast_ref::<StringArray>();
    let receipt = receipts
        .filter(|receipts| receipts.len() == 1)
        .ok_or("an answer with rows and receipt in one record batch")?;
    let receipt = serde_json::from_str(receipt.value(0)).map_err(|error| error.to_string())?;
    Ok((None, Some(receipt)))
}

/// Decodes an answer from the blocks that an executor sends. Bad lengths, offsets and texts become errors of the
/// stream, and so do panics of the decoder.
pub(crate) async fn decode<E: fmt::Display + Send + 'static>(
    blocks: impl Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin + 'static,
) -> std::result::Result<SendableRecordBatchStream, String> {
    let opening = BlockDataStream::try_new(checked_blocks(blocks));
    let opened = AssertUnwindSafe(opening).catch_unwind().await;
    let answer = opened
        .map_err(|_| DAMAGED.to_owned())?
        .map_err(|error| error.to_string())?;
    let schema = Arc::clone(&answer.schema);
    let batches = answer.map(|batch| batch.and_then(validated));
    let batches = AssertUnwindSafe(batches).catch_unwind();
    let batches = batches.map(|batch| batch.unwrap_or_else(|_| Err(damaged(DAMAGED))));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

/// Passes blocks on until one fails the check; its error ends the stream.
fn checked_blocks<E: fmt::Display + Send + 'static>(
    blocks: impl Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin + 'static,
) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static {
    blocks.scan(Some(Checker::default()), |checker, block| {
        // An error leaves no checker behind, which ends the stream.
        let checked = checker.take().map(|mut current| -> Result<Bytes> {
            let block = block.map_err(|error| damaged(error.to_string()))?;
            let checked = current.check(&block);
            checked.map_err(|reason| damaged(format!("{DAMAGED}: {reason}")))?;
            *checker = Some(current);
            Ok(block)
        });
        std::future::ready(checked)
    })
}

fn damaged(reason: impl Into<String>) -> DataFusionError {
    DataFusionError::Execution(reason.into())
}

/// Returns the record batch if its arrays are valid and have its length.
///
/// Arrow 59.3.2 validates record batches even when Ballista asks it not to, but its documentation
/// says the opposite, so this function does not rely on it.
fn validated(batch: RecordBatch) -> Result<RecordBatch> {
    for column in batch.columns() {
        let sound = column.to_data().validate_full();
        sound.map_err(|error| damaged(format!("{DAMAGED}: {error}")))?;
        if column.len() != batch.num_rows() {
            return Err(damaged(DAMAGED));
        }
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::ipc::writer::StreamWriter;
    use futures::TryStreamExt as _;

    use super::*;
    use crate::wire::ipc_check::tests::with_body_length;

    /// Decodes the bytes that an executor sends.
    async fn read(bytes: Vec<u8>) -> std::result::Result<Vec<RecordBatch>, String> {
        let blocks = futures::stream::iter([Ok::<_, String>(Bytes::from(bytes))]);
        let batches: Result<Vec<RecordBatch>> = decode(blocks).await?.try_collect().await;
        batches.map_err(|error| error.to_string())
    }

    /// Fault 47 (docs/faults.md), a process that is not ours: an executor can send arrays that violate their types.
    #[tokio::test]
    async fn an_answer_is_checked() {
        let ids: ArrayRef = Arc::new(StringArray::from(vec!["abcd"]));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let sound = writer.into_inner().unwrap();
        assert_eq!(read(sound.clone()).await.unwrap(), [batch]);
        let text = sound.windows(4).position(|bytes| bytes == b"abcd").unwrap();
        let mut damaged = sound.clone();
        damaged[text] = 0xff;
        let error = read(damaged).await.unwrap_err();
        // The error comes from Arrow's decoder or, if that skips validation, from `validated`.
        let by_decoder = error.contains("invalid utf-8");
        assert!(by_decoder || error.contains(DAMAGED), "{error}");
        let error = read(with_body_length(&sound, 1 << 45)).await.unwrap_err();
        assert!(error.contains("35184372088832"), "{error}");
        // Whichever byte changes, `decode` returns valid rows or an error.
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x55;
            for batch in read(damaged).await.into_iter().flatten() {
                for column in batch.columns() {
                    column.to_data().validate_full().unwrap();
                }
            }
        }
    }
}
