//! Data files that are written but not yet in the log, and their log actions.

use std::collections::HashMap;

use deltalake_core::kernel::{Action, Add};

use crate::day_batch::DayBatch;
use crate::day_records::CommittedDay;
use crate::file_checksums::Tail;
use crate::schema::{
    BASE_VERSION_TAG, BATCH_TAG, COMMIT_TAG, DAY, DAY_DIGEST_TAG, DECISIONS_TAG, FINGERPRINT, ID,
    SHA256_TAG, TAIL_TAG,
};

/// A data file that is complete, but not yet in the log.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// Path below the archive's directory.
    pub(crate) path: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Rows, each with a fingerprint.
    pub(super) rows: u64,
    /// SHA-256 in hexadecimal.
    pub(super) sha256: String,
    pub(super) tail: Option<Tail>,
    /// The least and the greatest fingerprint.
    pub(super) bounds: Option<(i64, i64)>,
}

impl WrittenFile {
    /// The log action that adds it to the table at the time `now` in milliseconds, as a file of `batch`. Its tags say how the batch was
    /// `committed`, if anything says it.
    pub(crate) fn add_action(
        &self,
        batch: Option<DayBatch>,
        committed: Option<&CommittedDay>,
        now: i64,
        data_change: bool,
    ) -> Action {
        let tag = |name: &str, value: String| (name.to_owned(), Some(value));
        let of_file = [
            Some(tag(SHA256_TAG, self.sha256.clone())),
            self.tail.map(|tail| tag(TAIL_TAG, tail.to_string())),
        ];
        let of_commit = committed.map(|committed| {
            let name = batch.map(|batch| batch.name);
            let name = name.filter(|name| !name.is_empty());
            let (commit, decisions) = (committed.commit.clone(), committed.decisions.as_ref());
            [
                Some(tag(DAY_DIGEST_TAG, committed.digest.clone())),
                Some(tag(BASE_VERSION_TAG, committed.base_version.to_string())),
                commit.map(|commit| tag(COMMIT_TAG, commit)),
                name.map(|name| tag(BATCH_TAG, name.to_string())),
                decisions.map(|decisions| tag(DECISIONS_TAG, decisions.to_string())),
            ]
        });
        let tags = of_file.into_iter().chain(of_commit.into_iter().flatten());
        let day = batch.map(|batch| batch.day.to_string());
        Action::Add(Add {
            path: self.path.clone(),
            partition_values: HashMap::from([(DAY.to_owned(), day)]),
            size: self.size.cast_signed(),
            modification_time: now,
            data_change,
            stats: Some(self.stats()),
            tags: Some(tags.flatten().collect()),
            ..Default::default()
        })
    }

    /// Delta's statistics as JSON: row count and the range of fingerprints.
    fn stats(&self) -> String {
        let mut stats = serde_json::json!({
            "numRecords": self.rows,
            "nullCount": { FINGERPRINT: 0, ID: 0 },
        });
        if let Some((least, greatest)) = self.bounds {
            stats["minValues"] = serde_json::json!({ FINGERPRINT: least });
            stats["maxValues"] = serde_json::json!({ FINGERPRINT: greatest });
        }
        stats.to_string()
    }
}
