//! The days on which the records of crawls were fetched.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::AsArray as _;
use arrow::datatypes::{DataType, Field};
use chrono::NaiveDate;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use super::Documents;
use super::carried::carried_columns_table;
use super::columns::CarriedColumn;
use super::file::InputFile;
use super::splits::numbered_splits;
use crate::error::{DocumentsError, Result};

/// The column of the times at which records were fetched.
const DATE: &str = "date";
/// Characters of a time that are its day.
const DAY_CHARS: usize = "2026-01-31".len();

/// Numbers of documents, by their days; `None` for those without one.
type Days = BTreeMap<Option<NaiveDate>, u64>;

impl Documents {
    /// How many documents were fetched on each day (UTC), as their records say it; `None` among the days stands for documents
    /// whose records do not say it. `None` if the files are of formats without such dates. Reads all files; those that were cut
    /// within a record are whole then.
    pub async fn record_days(&mut self, context: &SessionContext) -> Result<Option<Days>> {
        if !self.files.is_empty() && !self.known_columns().contains(&DATE) {
            return Ok(None);
        }
        loop {
            match self.count_days(context).await {
                Ok(days) => return Ok(Some(days)),
                Err(error) if self.uncut(error.wrong_cut()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn count_days(&self, context: &SessionContext) -> Result<Days> {
        let failed = || DocumentsError::query(self.given());
        let partitions = context.state().config().target_partitions();
        let column = CarriedColumn {
            name: DATE.to_owned(),
            data_type: DataType::Utf8,
        };
        let only = |file: &Arc<InputFile>| Arc::new(file.only(std::slice::from_ref(&column)));
        let files: Vec<Arc<InputFile>> = self.files.iter().map(only).collect();
        let field = Field::new(DATE, DataType::Utf8, true);
        let splits = numbered_splits(&files);
        let table = carried_columns_table(context, partitions, splits, vec![field])?;
        let mut rows = table.execute_stream().await.map_err(failed())?;
        let mut days = Days::new();
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            let dates = batch.column(1).as_string_opt::<i32>();
            let dates =
                dates.ok_or_else(|| DocumentsError::Internal("dates are no text".into()))?;
            for date in dates {
                let day = date.and_then(|date| date.get(..DAY_CHARS)?.parse().ok());
                *days.entry(day).or_default() += 1;
            }
        }
        Ok(days)
    }
}
