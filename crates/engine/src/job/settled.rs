//! The settled batch: what the fingerprints of a job's parts became, so that each later command need not sort them again.

use serde::{Deserialize, Serialize};

use super::{Job, SharedFile, read_json, to_json};
use crate::error::Result;
use crate::fingerprint::FingerprintedBatch;

const NAME: &str = "batch.json";

/// A settled batch. Its files are in the job.
#[derive(Debug, Serialize, Deserialize)]
struct Settled {
    batch: FingerprintedBatch,
    fingerprints: SharedFile,
    keys: Option<SharedFile>,
    /// Files that were cut where they must not be, and the offsets, in the order in which this was found.
    wrong_cuts: Vec<(String, u64)>,
}

impl Job {
    /// Keeps the batch that this `split` settled.
    pub(crate) async fn settle(
        &self,
        batch: &FingerprintedBatch,
        wrong_cuts: Vec<(String, u64)>,
    ) -> Result<()> {
        if !self.splits {
            return Ok(());
        }
        let keys = match &batch.keys {
            Some(keys) => Some(self.share(&keys.path).await?),
            None => None,
        };
        let settled = Settled {
            batch: batch.clone(),
            fingerprints: self.share(&batch.file.path).await?,
            keys,
            wrong_cuts,
        };
        let object = self.location.child(NAME)?;
        Ok(object.write(to_json(&object, &settled)?).await?)
    }

    /// The batch that an earlier `split` settled, and the wrong cuts that it met; `None` if none did.
    pub(crate) async fn settled(&self) -> Result<Option<(FingerprintedBatch, Vec<(String, u64)>)>> {
        let object = self.location.child(NAME)?;
        let Some(settled) = read_json::<Settled>(&object).await? else {
            return Ok(None);
        };
        let mut batch = settled.batch;
        if let (Some(keys), Some(file)) = (&mut batch.keys, &settled.keys) {
            keys.path = self.fetch(file).await?;
        }
        batch.file.path = self.fetch(&settled.fingerprints).await?;
        Ok(Some((batch, settled.wrong_cuts)))
    }
}
