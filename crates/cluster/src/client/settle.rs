//! Checks that an answer is whole, settles its work items, and adds up what each executor did.
//!
//! Ballista runs each task at least once, so an answer may come twice. Map 2 may repeat rows,
//! because the reduce removes repeated pairs; map 1 must not.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use engine::cluster::ExecutorSummary;

use crate::error::{ClusterError, Result};
use crate::wire::answer;
use crate::wire::receipt::Receipt;

/// Checks an answer while its record batches arrive: rows first, then one receipt with the number
/// of rows.
#[derive(Debug, Default)]
pub(crate) struct AnswerCheck {
    rows: u64,
    receipt: Option<Receipt>,
}

impl AnswerCheck {
    /// Takes the next record batch, and returns its rows, if it has any.
    pub(crate) fn add(
        &mut self,
        batch: &RecordBatch,
        schema: &SchemaRef,
    ) -> Result<Option<RecordBatch>, String> {
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        if self.receipt.is_some() {
            return Err("an answer goes on after its receipt".into());
        }
        let (rows, receipt) = answer::split(batch, schema)?;
        self.receipt = receipt;
        self.rows += rows.as_ref().map_or(0, |rows| rows.num_rows() as u64);
        Ok(rows)
    }

    /// Returns the receipt, if the answer is whole.
    pub(crate) fn finish(self) -> Result<Receipt, String> {
        let receipt = self.receipt.ok_or("an answer without a receipt")?;
        match receipt.rows == self.rows {
            true => Ok(receipt),
            false => Err(format!(
                "an answer has {} rows, but its receipt says {}",
                self.rows, receipt.rows
            )),
        }
    }
}

/// Removes the items of a receipt from `open`, and returns whether any of them was open.
///
/// # Errors
/// With `exactly_once`, when some of its items were open and some were not.
pub(crate) fn settle(
    receipt: &Receipt,
    open: &mut BTreeSet<u32>,
    exactly_once: bool,
) -> Result<bool> {
    let new = receipt
        .items
        .iter()
        .filter(|item| open.contains(item))
        .count();
    if new == 0 {
        return Ok(false);
    }
    if exactly_once && new < receipt.items.len() {
        return Err(ClusterError::Internal(
            "an answer to some items that were answered before, and some that were not".into(),
        ));
    }
    for item in &receipt.items {
        open.remove(item);
    }
    Ok(true)
}

/// Adds what an executor did for one slice to the total of that executor.
pub(super) fn add_to_totals(totals: &mut Vec<ExecutorSummary>, more: ExecutorSummary) {
    let Some(total) = totals.iter_mut().find(|total| total.id == more.id) else {
        totals.push(more);
        return;
    };
    // Saturating, because a foreign executor can claim any number.
    total.slices = total.slices.saturating_add(more.slices);
    total.probed = total.probed.saturating_add(more.probed);
    total.documents = total.documents.saturating_add(more.documents);
    total.seconds += more.seconds;
    // Tasks that wait for the same tables each report the whole time.
    total.prepare_seconds = total.prepare_seconds.max(more.prepare_seconds);
    total.bytes_read = total.bytes_read.saturating_add(more.bytes_read);
    // Executors report the number of requests since the run began.
    total.requests = total.requests.max(more.requests);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn receipt(items: &[u32], rows: u64) -> Receipt {
        Receipt {
            items: items.to_vec(),
            rows,
            ..Receipt::default()
        }
    }

    #[test]
    fn items_are_settled_once() {
        let mut open: BTreeSet<u32> = (0..6).collect();
        assert!(settle(&receipt(&[0, 1], 0), &mut open, true).unwrap());
        assert_eq!(open, BTreeSet::from([2, 3, 4, 5]));
        // Answered before, no items, an item that nobody asked for.
        for items in [&[0, 1][..], &[], &[77]] {
            assert!(!settle(&receipt(items, 0), &mut open, true).unwrap());
        }
        assert_eq!(open.len(), 4);
        // Item 1 was answered before, item 2 was not: repeated documents do harm, repeated pairs do
        // not.
        assert!(settle(&receipt(&[1, 2], 0), &mut open, true).is_err());
        assert_eq!(open.len(), 4);
        assert!(settle(&receipt(&[1, 2], 0), &mut open, false).unwrap());
        assert_eq!(open, BTreeSet::from([3, 4, 5]));
    }

    fn batch(numbers: Vec<Option<i32>>, receipts: Vec<Option<String>>) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int32, true),
            Field::new("receipt", DataType::Utf8, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(numbers)),
            Arc::new(StringArray::from(receipts)),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    /// Reads an answer of these record batches.
    fn read(batches: &[RecordBatch]) -> Result<(u64, Receipt), String> {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
        let mut check = AnswerCheck::default();
        let mut rows = 0;
        for batch in batches {
            let part = check.add(batch, &schema)?;
            rows += part.map_or(0, |part| part.num_rows() as u64);
        }
        Ok((rows, check.finish()?))
    }

    #[test]
    fn broken_answers_are_no_answers() {
        let text = |receipt: &Receipt| Some(serde_json::to_string(receipt).unwrap());
        let rows = batch(vec![Some(1), Some(2)], vec![None, None]);
        let none = batch(vec![], vec![]);
        let end = batch(vec![None], vec![text(&receipt(&[3], 2))]);
        let whole = [rows.clone(), none, end.clone()];
        assert_eq!(read(&whole).unwrap(), (2, receipt(&[3], 2)));
        for broken in [
            // Cut off, repeated, out of order, of another length.
            vec![rows.clone()],
            vec![],
            vec![rows.clone(), rows.clone(), end.clone()],
            vec![end.clone()],
            vec![rows.clone(), end.clone(), rows.clone()],
            vec![rows.clone(), end.clone(), end.clone()],
            // Invalid receipts.
            vec![rows.clone(), batch(vec![None], vec![Some("{".into())])],
            vec![batch(
                vec![Some(1), None],
                vec![None, text(&receipt(&[3], 1))],
            )],
            // Rows that are null.
            vec![
                batch(vec![None], vec![None]),
                batch(vec![None], vec![text(&receipt(&[3], 1))]),
            ],
        ] {
            assert!(read(&broken).is_err(), "{broken:?}");
        }
    }
}
