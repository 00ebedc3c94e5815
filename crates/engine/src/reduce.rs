//! The reduce: repeated pairs dropped, hits in order. Stock DataFusion, which spills where memory ends.

use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::prelude::ident;

use crate::probe::columns::{BASE_DAY, BASE_ID, DISTANCE, NEW_ID};

/// One row per pair and day, sorted by new id, distance, base id and day.
///
/// A pair can come up more than once: when a work item is done twice, or when several documents of a day have
/// one id; the smallest distance stands.
///
/// # Errors
/// When `hits` lacks a column of hits.
pub fn reduce(hits: DataFrame) -> Result<DataFrame> {
    hits.aggregate(
        vec![ident(NEW_ID), ident(BASE_ID), ident(BASE_DAY)],
        vec![min(ident(DISTANCE)).alias(DISTANCE)],
    )?
    .select(vec![
        ident(NEW_ID),
        ident(BASE_ID),
        ident(DISTANCE),
        ident(BASE_DAY),
    ])?
    .sort(
        [NEW_ID, DISTANCE, BASE_ID, BASE_DAY]
            .map(|column| ident(column).sort(true, true))
            .to_vec(),
    )
}
