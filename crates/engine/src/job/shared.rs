//! Files that the parts of a job share.

use std::path::{Path, PathBuf};

use archive::spec_files;
use serde::{Deserialize, Serialize};
use simhash::Spec;
use storage::{Draft, Location, StorageError, UnchangedFile};

use super::map_documents::ModelPlan;
use super::{ANEW, Job};
use crate::error::{EngineError, Result};
use crate::recipe::SpecOptions;
use streams::locked;

/// A file in a job, named by its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct SharedFile {
    /// SHA-256 of its bytes.
    sha256: String,
    bytes: u64,
}

impl Job {
    /// Puts a copy of the file at `path` into the job, unless it is there.
    pub(crate) async fn share(&self, path: &Path) -> Result<SharedFile> {
        let (bytes, sha256) = UnchangedFile::at(path)?.digest().await?;
        let shared = SharedFile { sha256, bytes };
        let target = self.shared_location(&shared)?;
        if !target.exists().await? {
            self.put(&target, path).await?;
        }
        Ok(shared)
    }

    pub(crate) async fn share_bytes(&self, bytes: &[u8]) -> Result<SharedFile> {
        let mut file =
            tempfile::NamedTempFile::new_in(&self.scratch).map_err(|source| self.io(source))?;
        std::io::Write::write_all(&mut file, bytes).map_err(|source| self.io(source))?;
        self.share(file.path()).await
    }

    /// A checked copy of a shared file in the scratch directory, or the file itself if the job is on this machine.
    pub(crate) async fn fetch(&self, shared: &SharedFile) -> Result<PathBuf> {
        let path = self.copy_of(shared).await?;
        self.check_copy(shared, &path).await?;
        Ok(path)
    }

    /// As [`Self::fetch`], not checked yet.
    pub(super) async fn copy_of(&self, shared: &SharedFile) -> Result<PathBuf> {
        let source = self.shared_location(shared)?;
        let path = match source.local() {
            Some(local) => local.exists().then(|| local.to_owned()),
            None => {
                let name = format!("shared-{}", shared.sha256);
                self.download(&source, &name).await?
            }
        };
        path.ok_or_else(|| EngineError::bad_data(&source, format!("it is missing; {ANEW}")))
    }

    /// Copies an object to the file `name` in the scratch directory, unless that is there; `None` if there is no such object.
    pub(super) async fn download(&self, object: &Location, name: &str) -> Result<Option<PathBuf>> {
        let path = self.scratch.join(name);
        if !path.exists() {
            let draft = self.scratch.join(format!("{name}.tmp"));
            let file = std::fs::File::create(&draft).map_err(|source| self.io(source))?;
            match object.copy_to(file).await {
                Ok(_) => {}
                Err(StorageError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            std::fs::rename(&draft, &path).map_err(|source| self.io(source))?;
        }
        Ok(Some(path))
    }

    /// Fails unless the bytes at `path` are those of the shared file. A process checks a file once.
    pub(super) async fn check_copy(&self, shared: &SharedFile, path: &Path) -> Result<()> {
        if locked(&self.checked).contains(shared) {
            return Ok(());
        }
        if UnchangedFile::at(path)?.digest().await? != (shared.bytes, shared.sha256.clone()) {
            return Err(EngineError::bad_data(
                self.shared_location(shared)?.to_string(),
                format!("its bytes are not those that `split` wrote; {ANEW}"),
            ));
        }
        locked(&self.checked).insert(shared.clone());
        Ok(())
    }

    pub(crate) fn shared_location(&self, shared: &SharedFile) -> Result<storage::Location> {
        Ok(self.location.child(&format!("objects/{}", shared.sha256))?)
    }

    /// Puts a copy of the file at `path` to `target`, whole or not at all.
    pub(super) async fn put(&self, target: &storage::Location, path: &Path) -> Result<()> {
        if let Some(directory) = target.local().and_then(Path::parent) {
            storage::create_dir_all_synced(directory).map_err(|source| self.io(source))?;
        }
        let draft = Draft::new(target, &self.scratch)?;
        draft.fill_from(path)?;
        Ok(draft.publish().await?)
    }

    /// The model of `spec`, for parts: its files are those of the archive, or those that the options name, which are put into the
    /// job.
    pub(crate) async fn model_plan(
        &self,
        spec: &Spec,
        archive: Option<&Location>,
        options: &SpecOptions,
    ) -> Result<ModelPlan> {
        let files = match archive {
            Some(archive) => archive.absolute_name(),
            None => {
                if spec.idf.is_some() || spec.stop_words.is_some() {
                    let files = options.files(spec)?;
                    spec_files::write(&self.location, spec, &files).await?;
                }
                self.location.absolute_name()
            }
        };
        Ok(ModelPlan {
            spec: spec.clone(),
            files,
        })
    }

    pub(super) fn io(&self, source: std::io::Error) -> EngineError {
        StorageError::io(self.name())(source).into()
    }
}
