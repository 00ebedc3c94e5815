//! [`RunDefaults`]: the settings of runs that an archive records, for what the options of a run leave open.
//!
//! The table keeps all that it ever recorded, each with the version that recorded it. So a rerun of a committed day finds the
//! settings of that day, also when the log no longer has its version.

use deltalake_core::kernel::transaction::CommitProperties;
use deltalake_core::kernel::{Action, Metadata, MetadataExt as _};
use deltalake_core::protocol::DeltaOperation;
use serde::{Deserialize, Serialize};
use storage::ErrorKind;

use crate::commit::COMMIT_ATTEMPTS;
use crate::error::{ArchiveError, Result};
use crate::schema::{FORMAT, FORMAT_KEY, RUN_DEFAULTS_KEY};
use crate::table::Archive;

/// The settings of runs that an archive records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDefaults {
    /// Fingerprints that differ in at most this many bits are a pair.
    #[serde(rename = "k")]
    pub max_distance: u32,
    /// Pairs whose sketches estimate a smaller similarity are dropped; `None` if pairs are not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f64>,
    /// The column of document ids; `None` if it is found by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_column: Option<String>,
    /// The column of texts; `None` if it is found by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_column: Option<String>,
}

impl RunDefaults {
    /// Pairs within `max_distance` bits, verified if there is a least similarity by sketches.
    #[must_use]
    pub fn new(max_distance: u32, min_similarity: Option<f64>) -> Self {
        Self {
            max_distance,
            min_similarity,
            id_column: None,
            text_column: None,
        }
    }
}

/// Settings, from a version of the table on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    since: u64,
    settings: RunDefaults,
}

/// The table's properties of a new archive.
pub(crate) fn properties(defaults: &RunDefaults) -> [(&'static str, Option<String>); 2] {
    let recorded = [Recorded {
        since: 0,
        settings: defaults.clone(),
    }];
    [
        (FORMAT_KEY, Some(FORMAT.to_owned())),
        (RUN_DEFAULTS_KEY, Some(as_json(&recorded))),
    ]
}

fn as_json(recorded: &[Recorded]) -> String {
    serde_json::json!(recorded).to_string()
}

/// Reads what the table's properties record.
pub(crate) fn read<'a>(
    given: &str,
    property: impl Fn(&str) -> Option<&'a String>,
) -> Result<Vec<Recorded>> {
    let format = property(FORMAT_KEY).map_or("1", String::as_str);
    if format != FORMAT {
        return Err(ArchiveError::OtherFormat {
            path: given.to_owned(),
            format: format.to_owned(),
        });
    }
    let bad = |reason: String| ArchiveError::ForeignTable {
        path: given.to_owned(),
        reason: format!("its property {RUN_DEFAULTS_KEY} is damaged: {reason}"),
    };
    let text = property(RUN_DEFAULTS_KEY).ok_or_else(|| bad("it is missing".into()))?;
    let recorded: Vec<Recorded> =
        serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    match recorded.first() {
        Some(first) if first.since == 0 => Ok(recorded),
        _ => Err(bad("it does not begin at version 0".into())),
    }
}

impl Archive {
    /// The settings of runs that count now.
    #[must_use]
    pub fn run_defaults(&self) -> &RunDefaults {
        self.run_defaults_at(u64::MAX)
    }

    /// The settings of runs that counted at `version`.
    #[must_use]
    pub fn run_defaults_at(&self, version: u64) -> &RunDefaults {
        let recorded = self.recorded();
        let since = recorded.partition_point(|one| one.since <= version);
        // The first counts from version 0 on.
        &recorded[since.saturating_sub(1)].settings
    }

    /// Records the settings of runs that `change` makes of those that count now. Returns the version that records them, or
    /// `None` if nothing changes.
    ///
    /// # Errors
    /// [`ArchiveError`] when the commit fails.
    pub async fn set_run_defaults(
        &mut self,
        change: impl Fn(&mut RunDefaults),
    ) -> Result<Option<u64>> {
        self.preflight().await?;
        for _ in 0..COMMIT_ATTEMPTS {
            let mut settings = self.run_defaults().clone();
            change(&mut settings);
            if settings == *self.run_defaults() {
                return Ok(None);
            }
            let before = self.version();
            let mut recorded = self.recorded().to_vec();
            recorded.push(Recorded {
                since: before + 1,
                settings,
            });
            let metadata = self.metadata_with(&as_json(&recorded))?;
            let operation = DeltaOperation::SetTableProperties {
                properties: [(RUN_DEFAULTS_KEY.to_owned(), as_json(&recorded))].into(),
            };
            let actions = vec![Action::Metadata(metadata)];
            let committed = self
                .commit_next(actions, operation, CommitProperties::default())
                .await;
            let Err(error) = committed else {
                self.reopen().await?;
                return Ok(Some(before + 1));
            };
            let error = ArchiveError::delta(self.location().given())(error);
            // Only the log tells the outcome.
            self.reopen().await?;
            if self.recorded().starts_with(&recorded) {
                return Ok(Some(before + 1));
            }
            if error.kind() != ErrorKind::TryAgain || self.version() == before {
                return Err(error);
            }
        }
        Err(self.busy_error())
    }

    /// The table's metadata, with other settings of runs.
    fn metadata_with(&self, recorded: &str) -> Result<Metadata> {
        let failed = || ArchiveError::delta(self.location().given());
        let state = self.table().snapshot().map_err(failed())?;
        let metadata = state.metadata().clone();
        metadata
            .add_config_key(RUN_DEFAULTS_KEY.to_owned(), recorded.to_owned())
            .map_err(|error| failed()(error.into()))
    }
}
