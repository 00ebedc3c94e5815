//! Removing files that no version needs any more: those of runs that died, and those that were merged.

use std::path::{Path as FsPath, PathBuf};
use std::time::{Duration, SystemTime};

use deltalake_core::operations::vacuum::VacuumMode;

use crate::error::{ArchiveError, Result};
use crate::store::STAGED;
use crate::table::Archive;

/// A run that is going on has files that the log does not name yet; younger ones are never removed while it may be there.
const LEAST_AGE: Duration = Duration::from_secs(24 * 3600);

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacuum {
    /// Only files that have not been needed for so long are removed.
    pub older_than: Duration,
    /// Whether only to say what would be removed.
    pub dry_run: bool,
    /// Whether no run is going on, so that younger files than those of a day can be removed.
    pub nothing_runs: bool,
}

/// What was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vacuumed {
    /// Paths below the archive's directory, sorted.
    pub files: Vec<String>,
}

impl Archive {
    /// Removes what no version of the last `older_than` needs. The log notes it.
    ///
    /// # Errors
    /// [`ArchiveError::TooYoung`] when files of a run could be removed, or a store's error.
    pub async fn vacuum(&mut self, vacuum: Vacuum) -> Result<Vacuumed> {
        if !vacuum.dry_run {
            if vacuum.older_than < LEAST_AGE && !vacuum.nothing_runs {
                return Err(ArchiveError::TooYoung {
                    path: self.location().to_string(),
                });
            }
            self.preflight().await?;
        }
        let given = self.location().given().to_owned();
        let failed = || ArchiveError::delta(given.clone());
        let age = chrono::Duration::from_std(vacuum.older_than).map_err(|error| {
            ArchiveError::BadPath {
                path: given.clone(),
                reason: error.to_string(),
            }
        })?;
        let (_, metrics) = self
            .table()
            .clone()
            .vacuum()
            .with_mode(VacuumMode::Full)
            .with_retention_period(age)
            // The table's own period is a week; this command's is what was asked for.
            .with_enforce_retention_duration(false)
            .with_dry_run(vacuum.dry_run)
            .await
            .map_err(failed())?;
        let mut files = metrics.files_deleted;
        if let Some(local) = self.location().local() {
            // The listing leaves them out.
            for staged in staged(local, vacuum.older_than)? {
                if !vacuum.dry_run {
                    std::fs::remove_file(&staged).map_err(|source| ArchiveError::Io {
                        path: staged.display().to_string(),
                        source,
                    })?;
                }
                let below = staged.strip_prefix(local).unwrap_or(&staged);
                files.push(below.display().to_string());
            }
        }
        files.sort();
        files.dedup();
        Ok(Vacuumed { files })
    }
}

/// Local files that were being written when their writer died.
fn staged(directory: &FsPath, older_than: Duration) -> Result<Vec<PathBuf>> {
    let failed = |source| ArchiveError::Io {
        path: directory.display().to_string(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let metadata = match entry.metadata() {
            // A run has just given it its name.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(failed)?,
        };
        if metadata.is_dir() {
            found.extend(staged(&path, older_than)?);
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_staged = name.rsplit_once(STAGED).is_some_and(|(_, number)| {
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        });
        let modified = metadata.modified().map_err(failed)?;
        let age = SystemTime::now()
            .duration_since(modified)
            .unwrap_or_default();
        if is_staged && age >= older_than {
            found.push(path);
        }
    }
    Ok(found)
}
