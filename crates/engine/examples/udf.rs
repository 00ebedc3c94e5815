//! Registers the SQL functions `simhash` and `hamming_distance` with DataFusion, and prints the
//! distances of three documents.
//!
//! ```console
//! cargo run --release -p engine --example udf
//! ```

use std::error::Error;

use datafusion::prelude::SessionContext;
use engine::udf;
use simhash::{Model, Spec};

const QUERY: &str = "
    WITH fingerprints AS (
        SELECT id, simhash(text) AS fp
        FROM (VALUES
            ('a', 'the quick brown fox jumps over the lazy dog'),
            ('b', 'The QUICK brown fox, jumps over the lazy dog!'),
            ('c', 'pack my box with five dozen liquor jugs')) AS documents (id, text))
    SELECT x.id AS one, y.id AS other, hamming_distance(x.fp, y.fp) AS distance
    FROM fingerprints AS x JOIN fingerprints AS y ON x.id < y.id
    ORDER BY distance, one, other";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let context = SessionContext::new();
    let model = Model::plain(Spec::default())?;
    context.register_udf(udf::simhash(model));
    context.register_udf(udf::hamming_distance());
    context.sql(QUERY).await?.show().await?;
    Ok(())
}
