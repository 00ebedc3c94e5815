//! Recording settings of runs in an archive, and finding those of a version.

use deltalake_core::kernel::{Action, Metadata, MetadataExt as _};
use deltalake_core::protocol::DeltaOperation;
use storage::ErrorKind;

use crate::commit::COMMIT_ATTEMPTS;
use crate::error::{ArchiveError, Result};
use crate::run_defaults::{Recorded, RunDefaults, as_json};
use crate::schema::RUN_DEFAULTS_KEY;
use crate::table::Archive;

impl Archive {
    /// The settings of runs that count now.
    pub fn run_defaults(&self) -> &RunDefaults {
        self.run_defaults_at(u64::MAX)
    }

    /// The settings of runs that counted at `version`.
    pub fn run_defaults_at(&self, version: u64) -> &RunDefaults {
        let recorded = &self.recorded;
        let since = recorded.partition_point(|one| one.since <= version);
        // The first counts from version 0 on.
        &recorded[since.saturating_sub(1)].settings
    }

    /// Records the settings of runs that `change` makes of those that count now. Returns the version that records them, or
    /// `None` if nothing changes.
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
            let mut recorded = self.recorded.to_vec();
            recorded.push(Recorded {
                since: before + 1,
                settings,
            });
            let json = as_json(&recorded);
            let metadata = self.metadata_with(&json)?;
            let operation = DeltaOperation::SetTableProperties {
                properties: [(RUN_DEFAULTS_KEY.to_owned(), json)].into(),
            };
            let actions = vec![Action::Metadata(metadata)];
            let committed = self
                .commit_next(actions, operation, Vec::new(), Vec::new())
                .await;
            let Err(error) = committed else {
                self.reopen().await?;
                return Ok(Some(before + 1));
            };
            // Only the log tells the outcome.
            self.reopen().await?;
            if self.recorded.starts_with(&recorded) {
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
        let state = self.table.snapshot().map_err(failed())?;
        let metadata = state.metadata().clone();
        metadata
            .add_config_key(RUN_DEFAULTS_KEY.to_owned(), recorded.to_owned())
            .map_err(|error| failed()(error.into()))
    }
}
