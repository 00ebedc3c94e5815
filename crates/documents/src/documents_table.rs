//! The table of documents. Each plan that reads it has partitions of its own.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::partition_reader::PartitionReader;
use super::shared_reader;
use super::splits::Split;

/// Splits as they are dealt to partitions.
#[derive(Debug)]
pub(super) struct DocumentsTable {
    pub(super) dealt: Vec<Vec<Split>>,
    pub(super) partitions: usize,
    /// A reader without splits.
    pub(super) reader: PartitionReader,
}

#[async_trait]
impl TableProvider for DocumentsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.reader.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = shared_reader::partitions(&self.dealt, self.partitions, &self.reader);
        let table = StreamingTable::try_new(self.schema(), partitions)?;
        table.scan(state, projection, filters, limit).await
    }
}
