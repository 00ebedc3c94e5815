//! The order in which classes of the batch are decided.

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::UInt32Type;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use super::keys::{Keys, ROW};
use crate::batch::Classes;
use crate::error::{EngineError, Result};

/// A class that has no rank yet.
const NONE: u32 = u32::MAX;

/// The classes in the order in which they are decided: that of their most preferred documents.
#[derive(Debug)]
pub(super) struct Order {
    /// The rank of each class.
    ranks: Vec<u32>,
    /// The most preferred document of the class with each rank, as a row of the batch's file.
    rows: Vec<u32>,
}

impl Order {
    /// Orders the classes by the preferences of their documents.
    pub(super) async fn new(
        context: &SessionContext,
        keys: &Keys,
        classes: &Classes,
    ) -> Result<Self> {
        let failed = || EngineError::query("ordering the documents");
        let sorted = keys.by_preference(context)?;
        let mut sorted = sorted.execute_stream().await.map_err(failed())?;
        let mut order = Self {
            ranks: vec![NONE; classes.count()],
            rows: Vec::with_capacity(classes.count()),
        };
        while let Some(batch) = sorted.next().await {
            for row in rows(&batch.map_err(failed())?)? {
                if let Some(class) = classes.of_row(row)
                    && order.ranks[class as usize] == NONE
                {
                    order.ranks[class as usize] = order.rows.len() as u32;
                    order.rows.push(row);
                }
            }
        }
        Ok(order)
    }

    /// The rank of a class.
    pub(super) fn rank(&self, class: u32) -> u32 {
        self.ranks[class as usize]
    }

    /// The most preferred document of the class with a rank, as a row of the batch's file.
    pub(super) fn row(&self, rank: u32) -> u32 {
        self.rows[rank as usize]
    }

    /// Heap bytes of the order of `count` classes.
    pub(super) fn bytes_for(count: usize) -> usize {
        8 * count
    }
}

/// The rows of the batch's file that a batch of keys has.
pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<u32>> {
    let column = batch.column_by_name(ROW);
    let rows = column.and_then(|rows| rows.as_primitive_opt::<UInt32Type>());
    let rows = rows.ok_or_else(|| EngineError::Internal("keys have no rows".into()))?;
    Ok(rows.values().to_vec())
}
