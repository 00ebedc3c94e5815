//! The reduce: drops repeated pairs and sorts the others. Stock DataFusion operators do it, and
//! spill to the disk when memory is full.

use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::prelude::ident;

use crate::pairs::{self, Maker};

/// Keeps one row for each pair of ids and base day; sorts by new id, distance, base id and base day.
///
/// A pair of ids repeats when several documents of one day share an id, and when a work item is
/// done twice. The kept row gets the smallest distance and the greatest similarity of the repeated
/// rows. Two documents of the batch that share an id are a pair of that id with itself. The probe
/// treats documents that share id and fingerprint as one, if they cannot differ in what is compared.
///
/// # Errors
/// When `found` lacks a column of [`pairs::schema`].
pub fn reduce(found: DataFrame) -> Result<DataFrame> {
    let is_found = |name: &str| found.schema().has_column_with_unqualified_name(name);
    let keys = pairs::columns_of(Maker::Key).map(|column| ident(column.name));
    let least = pairs::columns_of(Maker::Least);
    let least = least.map(|column| min(ident(column.name)).alias(column.name));
    let greatest = pairs::columns_of(Maker::Greatest).filter(|column| is_found(column.name));
    let greatest = greatest.map(|column| max(ident(column.name)).alias(column.name));
    let kept = least.chain(greatest).collect();
    let order = pairs::COLUMNS.iter().filter(|column| is_found(column.name));
    let order: Vec<_> = order.map(|column| ident(column.name)).collect();
    found.aggregate(keys.collect(), kept)?.select(order)?.sort(
        pairs::ORDER
            .map(|column| ident(column).sort(true, true))
            .to_vec(),
    )
}
