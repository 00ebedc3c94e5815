//! Creating an archive.

use deltalake_core::kernel::transaction::CommitProperties;
use deltalake_core::kernel::{DataType, StructField};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::SaveMode;
use futures::StreamExt as _;
use simhash::Spec;
use storage::{
    LOG_DIRECTORY, Location, StorageError, create_dir_all_synced, require_conditional_create,
};

use super::Archive;
use crate::delta::log_store;
use crate::error::{ArchiveError, Result};
use crate::remembered_log::LogBy;
use crate::run_defaults::{self, RunDefaults};
use crate::schema::{DAY, FINGERPRINT, ID, IdType, KEPT, SKETCH, SPEC_KEY};
use crate::spec_files::{self, SpecFiles};
use crate::vacuum::LOST_AND_FOUND;

impl Archive {
    /// Creates an empty archive, with the files that its spec names, the settings of runs that it records and, if `kept` is true,
    /// the column [`KEPT`]. The directory
    /// need not exist; if it does, it must be empty, because an archive needs a directory of its own.
    ///
    /// # Errors
    /// [`ArchiveError::Exists`] when the directory has a table, [`ArchiveError::NotEmpty`] when it has anything else, or a
    /// store's error.
    pub async fn create(
        location: &Location,
        id_type: IdType,
        kept: bool,
        spec: &Spec,
        spec_files: &SpecFiles,
        defaults: &RunDefaults,
    ) -> Result<Self> {
        let given = location.given();
        Self::require_free(location).await?;
        if let Some(local) = location.local() {
            create_dir_all_synced(local).map_err(StorageError::io(given))?;
        }
        require_conditional_create(location).await?;
        spec_files::write(location, spec, spec_files).await?;
        let store = log_store(location, LogBy::Checkpoint)?;
        let id = match id_type {
            IdType::String => DataType::STRING,
            IdType::Bigint => DataType::LONG,
        };
        let mut columns = vec![
            StructField::not_null(FINGERPRINT, DataType::LONG),
            StructField::not_null(ID, id),
            StructField::nullable(DAY, DataType::DATE),
        ];
        if !spec.sketch.is_none() {
            columns.push(StructField::nullable(SKETCH, DataType::BINARY));
        }
        if kept {
            columns.push(StructField::nullable(KEPT, DataType::BOOLEAN));
        }
        let properties = CommitProperties::default().with_max_retries(0);
        CreateBuilder::new()
            .with_log_store(store)
            .with_table_name("fingerprints")
            .with_comment("64-bit simhash fingerprints of documents, by day")
            .with_columns(columns)
            .with_partition_columns([DAY])
            // Without this, Delta refuses a key that it does not define.
            .with_raise_if_key_not_exists(false)
            .with_configuration([(SPEC_KEY, Some(spec.to_json()))])
            .with_configuration(run_defaults::properties(defaults))
            .with_save_mode(SaveMode::ErrorIfExists)
            // A retry would overwrite the metadata of a table that another process created in between.
            .with_commit_properties(properties)
            .await
            .map_err(ArchiveError::delta(given))?;
        Self::open(location).await
    }

    /// Requires that an archive can be created at `location`: nothing is there but the files of a
    /// killed `create`.
    ///
    /// # Errors
    /// [`ArchiveError::Exists`] when the directory has a table, [`ArchiveError::NotEmpty`] when it
    /// has anything else, or a store's error.
    pub async fn require_free(location: &Location) -> Result<()> {
        if Self::is_at(location).await? {
            return Err(ArchiveError::Exists {
                path: location.given().to_owned(),
            });
        }
        require_empty(location).await
    }
}

/// Refuses a directory that holds anything except the files of a killed `create`.
async fn require_empty(location: &Location) -> Result<()> {
    // `lost+found` is in the root of a volume; often only its owner may read it.
    let is_allowed = |name: &str| [LOG_DIRECTORY, "_dedup-job", LOST_AND_FOUND].contains(&name);
    let not_empty = |found: String| ArchiveError::NotEmpty {
        path: location.to_string(),
        found,
    };
    let Some(local) = location.local() else {
        let below = location.path();
        let prefix = Some(below).filter(|path| !path.as_ref().is_empty());
        let mut objects = location.store().list(prefix);
        while let Some(object) = objects.next().await {
            let object = object.map_err(StorageError::store(location))?;
            let mut parts = object.location.parts().skip(below.parts().count());
            if !parts.next().is_none_or(|first| is_allowed(first.as_ref())) {
                return Err(not_empty(object.location.to_string()));
            }
        }
        return Ok(());
    };
    let failed = StorageError::io(location);
    let entries = match std::fs::read_dir(local) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(&failed)?,
    };
    for entry in entries {
        let name = entry.map_err(&failed)?.file_name();
        if !is_allowed(&name.to_string_lossy()) {
            return Err(not_empty(name.to_string_lossy().into_owned()));
        }
    }
    Ok(())
}
