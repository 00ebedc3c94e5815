//! Data files that are written but not yet in the log, and their log actions.

use std::collections::HashMap;

use chrono::NaiveDate;
use deltalake_core::kernel::{Action, Add};

use crate::day_batch::BatchName;
use crate::decision_settings::DecisionSettings;
use crate::file_checksums::Tail;
use crate::schema::{
    BASE_VERSION_TAG, BATCH_TAG, COMMIT_TAG, DAY, DAY_DIGEST_TAG, DECISIONS_TAG, FINGERPRINT, ID,
    SHA256_TAG, TAIL_TAG,
};
use crate::table::DataFile;

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

/// Tags of the data files of a day: how the day was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DayTags {
    pub(crate) name: BatchName,
    /// Names the commit in rulings.
    pub(crate) commit: Option<String>,
    /// Digest of its rows.
    pub(crate) digest: String,
    /// The table version that the day was compared with.
    pub(crate) base_version: u64,
    /// The decisions about the day, if there are any.
    pub(crate) decisions: Option<DecisionSettings>,
}

impl DayTags {
    /// The day's tags of a file in the log; `None` if another program wrote the file.
    pub(crate) fn from_file(file: &DataFile) -> Option<Self> {
        Some(Self {
            name: file.batch_name,
            commit: file.commit.clone(),
            digest: file.day_digest.clone()?,
            base_version: file.base_version?,
            decisions: file.decisions.clone(),
        })
    }
}

impl WrittenFile {
    /// The log action that adds it to the table, at the time `now` in milliseconds.
    pub(crate) fn add_action(
        &self,
        day: Option<NaiveDate>,
        tags: Option<&DayTags>,
        now: i64,
        data_change: bool,
    ) -> Action {
        let tag = |name: &str, value: String| (name.to_owned(), Some(value));
        let tail = self.tail.map(|tail| tag(TAIL_TAG, tail.to_string()));
        let day_tags = tags.map(|tags| {
            let decisions = tags.decisions.as_ref();
            let decisions = decisions.map(|decisions| tag(DECISIONS_TAG, decisions.to_string()));
            [
                tag(DAY_DIGEST_TAG, tags.digest.clone()),
                tag(BASE_VERSION_TAG, tags.base_version.to_string()),
            ]
            .into_iter()
            .chain(tags.commit.clone().map(|commit| tag(COMMIT_TAG, commit)))
            .chain((!tags.name.is_empty()).then(|| tag(BATCH_TAG, tags.name.to_string())))
            .chain(decisions)
        });
        Action::Add(Add {
            path: self.path.clone(),
            partition_values: HashMap::from([(DAY.to_owned(), day.map(|day| day.to_string()))]),
            size: self.size.cast_signed(),
            modification_time: now,
            data_change,
            stats: Some(self.stats()),
            tags: Some(
                [tag(SHA256_TAG, self.sha256.clone())]
                    .into_iter()
                    .chain(tail)
                    .chain(day_tags.into_iter().flatten())
                    .collect(),
            ),
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
