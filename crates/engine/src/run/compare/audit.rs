//! An audit of decisions: compares dropped documents, drawn at random, with those that they repeat, by their texts.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::Float64Type;
use futures::StreamExt as _;
use parquet::arrow::ArrowWriter;
use serde::Serialize;
use simhash::Measure;

use super::Comparison;
use crate::decide::{DUPLICATE_DAY, DUPLICATE_OF};
use crate::error::{EngineError, Result};
use crate::pairs::{self, BASE_DAY, BASE_ID, NEW_ID, SIMILARITY, Similarities};
use crate::progress::Stage;
use crate::run::Run;
use crate::verify::{self, Verifier};

/// The least similarity where the run has none by this measure.
const LEAST: f64 = 0.8;
/// The confidence of the bound.
const CONFIDENCE: f64 = 0.95;

/// What an audit found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Audit {
    /// Dropped documents that were compared with the ones that they repeat.
    pub compared: u64,
    /// Those that were not, because a text was not at hand.
    pub without_text: u64,
    /// The least similarity: of three-word shingles, by the texts.
    pub min_similarity: f64,
    /// Compared documents whose similarity is smaller.
    pub below: u64,
    /// With 95 % confidence, the share of such documents among all dropped ones is at most this.
    pub bound: f64,
}

impl Comparison<'_> {
    /// Compares the texts of `dropped` documents, given as decisions, with those of the documents that they repeat.
    pub(super) async fn audit(&self, auditor: &Verifier, dropped: &RecordBatch) -> Result<Audit> {
        let Run {
            context, settings, ..
        } = self.run;
        self.run.enter(Stage::Verify);
        let schema = pairs::schema(self.id_type, Similarities::Unknown);
        let column = |name: &str| dropped.column_by_name(name).cloned();
        let made = [
            (NEW_ID, column(archive::schema::ID)),
            (BASE_ID, column(DUPLICATE_OF)),
            (BASE_DAY, column(DUPLICATE_DAY)),
        ];
        let made: Vec<_> = made
            .into_iter()
            .filter_map(|(name, column)| Some((name, column?)))
            .collect();
        let rows = pairs::record_batch(&schema, &made, Some(dropped));
        let rows = rows.map_err(|error| EngineError::Internal(error.to_string()))?;
        let path = settings.scratch.join("audit.parquet");
        let file = File::create(&path).map_err(|source| EngineError::Io {
            path: path.display().to_string(),
            source,
        })?;
        let parquet = |source| archive::ArchiveError::Parquet {
            object: path.display().to_string(),
            source,
        };
        let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), None).map_err(parquet)?;
        writer.write(&rows).map_err(parquet)?;
        writer.close().map_err(parquet)?;

        let all = 0..rows.num_rows() as u64;
        let origin = self.origin();
        let verified = verify::verify(context, &path, all, auditor, origin, &settings.scratch);
        let (mut verified, _) = verified.await?;
        // Those of other measures mean something else.
        let verify = self.settings.verify.as_ref();
        let verify =
            verify.filter(|verify| matches!(verify.measure, Measure::Jaccard | Measure::Sketch));
        let least = verify.map(|verify| verify.min_similarity);
        let mut audit = Audit {
            compared: 0,
            without_text: 0,
            min_similarity: least.unwrap_or(LEAST),
            below: 0,
            bound: 1.0,
        };
        while let Some(batch) = verified.next().await {
            let batch = batch.map_err(EngineError::query("comparing dropped documents"))?;
            let similarities = batch.column_by_name(SIMILARITY);
            let similarities =
                similarities.and_then(|column| column.as_primitive_opt::<Float64Type>());
            let similarities =
                similarities.ok_or_else(|| EngineError::Internal("no similarities".into()))?;
            audit.without_text += similarities.null_count() as u64;
            for similarity in similarities.iter().flatten() {
                audit.compared += 1;
                audit.below += u64::from(similarity < audit.min_similarity);
            }
        }
        audit.bound = upper_bound(audit.below, audit.compared);
        Ok(audit)
    }
}

/// The greatest share at which `found` or fewer of `drawn` are as likely as 1 - [`CONFIDENCE`] (Clopper and Pearson 1934).
fn upper_bound(found: u64, drawn: u64) -> f64 {
    if found >= drawn {
        return 1.0;
    }
    let (mut low, mut high) = (found as f64 / drawn as f64, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match at_most(found, drawn, middle) > 1.0 - CONFIDENCE {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The probability of at most `found` of `drawn`, each with the probability `share`, which is between 0 and 1.
fn at_most(found: u64, drawn: u64, share: f64) -> f64 {
    let drawn = drawn as f64;
    let odds = (share / (1.0 - share)).ln();
    let mut log = drawn * (1.0 - share).ln();
    let mut sum = log.exp();
    for k in 1..=found {
        let k = k as f64;
        log += ((drawn - k + 1.0) / k).ln() + odds;
        sum += log.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_tables() {
        // From tables of one-sided 95 % limits.
        for (found, drawn, expected) in [
            (0, 100, 0.0295),
            (1, 20, 0.2161),
            (3, 100, 0.0757),
            (0, 1, 0.95),
        ] {
            let bound = upper_bound(found, drawn);
            assert!(
                (bound - expected).abs() < 1e-4,
                "{found} of {drawn}: {bound}"
            );
        }
        assert_eq!(upper_bound(5, 5), 1.0);
        assert_eq!(upper_bound(0, 0), 1.0);
        assert!(upper_bound(100, 100_000) < 0.0013);
    }
}
