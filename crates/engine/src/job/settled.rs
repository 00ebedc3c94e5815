//! The settled batch: what the fingerprints of a job's parts became, so that each later command need not sort them again.

use archive::FingerprintFile;
use serde::{Deserialize, Serialize};

use super::{Job, SharedFile, read_json, to_json};
use crate::decide::Keys;
use crate::error::Result;
use crate::fingerprint::FingerprintedBatch;
use crate::text_counts::TextCounts;
use documents::read_counts::ReadCounts;

const NAME: &str = "batch.json";

/// A settled batch. Its files are in the job.
#[derive(Debug, Serialize, Deserialize)]
struct Settled {
    file: FingerprintFile,
    fingerprints: SharedFile,
    keys: Option<(SharedFile, u64)>,
    texts: TextCounts,
    read: ReadCounts,
    duplicate_ids: u64,
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
            Some(keys) => Some((self.share(&keys.path).await?, keys.rows)),
            None => None,
        };
        let settled = Settled {
            file: batch.file.clone(),
            fingerprints: self.share(&batch.file.path).await?,
            keys,
            texts: batch.texts,
            read: batch.read.clone(),
            duplicate_ids: batch.duplicate_ids,
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
        let keys = match settled.keys {
            Some((file, rows)) => {
                let path = self.fetch(&file).await?;
                Some(Keys { path, rows })
            }
            None => None,
        };
        let batch = FingerprintedBatch {
            file: FingerprintFile {
                path: self.fetch(&settled.fingerprints).await?,
                ..settled.file
            },
            texts: settled.texts,
            read: settled.read,
            duplicate_ids: settled.duplicate_ids,
            keys,
            bitmaps: None,
        };
        Ok(Some((batch, settled.wrong_cuts)))
    }
}
