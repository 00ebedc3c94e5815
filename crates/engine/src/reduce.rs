//! The reduce: drops repeated pairs and sorts the others. Stock DataFusion operators do it, and
//! spill to the disk when memory is full.

use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::prelude::{Expr, ident};

use crate::pairs::{BASE_DAY, BASE_ID, COLUMNS, DISTANCE, NEW_ID, ORDER, SIMILARITY};

/// Keeps one row for each pair of ids and base day; sorts by new id, distance, base id and base day.
///
/// A pair of ids repeats when several documents of one day share an id, and when a work item is
/// done twice. The kept row gets the smallest distance and the greatest similarity of the repeated
/// rows. Two documents of the batch that share an id are a pair of that id with itself. The probe
/// treats documents that share id and fingerprint as one, if they cannot differ in what is compared.
///
/// # Errors
/// When `found` lacks a column of [`schema`](crate::pairs::schema).
pub fn reduce(found: DataFrame) -> Result<DataFrame> {
    let has = |name: &&str| found.schema().has_column_with_unqualified_name(name);
    let columns: Vec<Expr> = COLUMNS.into_iter().filter(has).map(ident).collect();
    let mut kept = vec![min(ident(DISTANCE)).alias(DISTANCE)];
    if has(&SIMILARITY) {
        kept.push(max(ident(SIMILARITY)).alias(SIMILARITY));
    }
    let keys = [NEW_ID, BASE_ID, BASE_DAY].map(ident).to_vec();
    let order = ORDER.map(|column| ident(column).sort(true, true)).to_vec();
    found.aggregate(keys, kept)?.select(columns)?.sort(order)
}
