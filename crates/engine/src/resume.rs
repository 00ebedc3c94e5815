//! Keeps the fingerprints of finished chunks, so that a run with `--resume` can go on after a stop.
//!
//! Each batch has its own directory inside the given one, with a file for each chunk, in the format of a part's answer. The name of
//! the file is the digest of everything that its rows depend on: the splits and the versions of the input files, the columns, the
//! fingerprint spec, and the version of this program. A file appears only when it is complete, so a run can use each file that has
//! the name of one of its chunks, if its bytes have the checksum at its end. A run that succeeds deletes the batch's directory.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use archive::IdType;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use storage::StorageError;

use crate::error::{EngineError, Result};
use crate::fingerprint::{MapCounters, UnsortedRows, rows_schema, with_fingerprints};
use crate::job::{Answer, AnswerWriter, Answers, Receipt, read_receipt};
use crate::progress::Progress;
use crate::recipe::Recipe;
use documents::{Columns, Documents, ResumeChunk};

/// The start of the names of batches' directories.
const PREFIX: &str = "dedup-job-resume-";
/// The name of the file that a run locks.
const LOCK: &str = "lock";
/// The start of the names of files that are not complete.
const DRAFT: &str = ".tmp";
/// Version of the format of chunks. Raise it when the same documents under the same spec give other
/// rows or counts.
const FORMAT: &str = "6";

/// The directory that keeps the finished work of a batch. One run at a time uses it.
#[derive(Debug)]
pub(crate) struct ResumeDirectory {
    path: PathBuf,
    /// The lock file. The lock ends when the file is closed.
    _lock: File,
}

/// What is fingerprinted, and how.
pub(crate) struct Work<'a> {
    pub(crate) context: &'a SessionContext,
    pub(crate) documents: &'a Documents,
    pub(crate) recipe: &'a Recipe,
    pub(crate) id_type: IdType,
    /// Whether the rows have the decision columns.
    pub(crate) decision_columns: bool,
    pub(crate) progress: &'a Progress,
    /// SHA-256 of the templates that are left out of the texts.
    pub(crate) templates: &'a str,
}

impl ResumeDirectory {
    /// Opens the directory of the batch `new` inside the directory `given`; creates both if they
    /// are missing.
    ///
    /// # Errors
    /// [`EngineError::Usage`] when another run of this batch uses it.
    pub(crate) fn open(given: &Path, new: &[String]) -> Result<Self> {
        let digest = storage::hex(&digest(new.iter().map(String::as_str)));
        let path = given.join(format!("{PREFIX}{}", &digest[..16]));
        let lock = path.join(LOCK);
        loop {
            std::fs::create_dir_all(&path).map_err(failed(&path))?;
            let file = File::create(&lock).map_err(failed(&lock))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(EngineError::Usage(format!(
                        "--resume {}: another run of these documents uses it",
                        given.display()
                    )));
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(failed(&lock)(error).into()),
            }
            // A run that ended meanwhile may have deleted the file that is locked now.
            let own = file.metadata().map_err(failed(&lock))?;
            let is_there =
                |found: std::fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
            if std::fs::metadata(&lock).is_ok_and(is_there) {
                let directory = Self { path, _lock: file };
                directory.remove_drafts()?;
                return Ok(directory);
            }
        }
    }

    /// Removes files that a killed run did not complete.
    fn remove_drafts(&self) -> Result<()> {
        for entry in std::fs::read_dir(&self.path).map_err(failed(&self.path))? {
            let entry = entry.map_err(failed(&self.path))?;
            if entry.file_name().to_string_lossy().starts_with(DRAFT) {
                std::fs::remove_file(entry.path()).map_err(failed(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// The fingerprints of a batch: reads those of finished chunks, and makes the others, chunk by
    /// chunk.
    pub(crate) async fn rows(&self, work: Work<'_>) -> Result<UnsortedRows> {
        let (progress, total) = (work.progress, work.documents.known_rows().unwrap_or(0));
        progress.documents_total.store(total, Ordering::Relaxed);
        let mut finished = Vec::new();
        let mut found = 0;
        let threads = work.context.state().config().target_partitions();
        for chunk in work.documents.chunks(threads).await? {
            let name = file_name(&work, &chunk);
            let path = self.path.join(&name);
            finished.push(match finished_chunk(&path, &name)? {
                Some(chunk) => {
                    found += 1;
                    let rows = chunk.receipt.rows;
                    progress.documents.fetch_add(rows, Ordering::Relaxed);
                    chunk
                }
                None => self.make(&work, &chunk, path, name).await?,
            });
        }
        if found > 0 {
            tracing::warn!(
                "{}: {found} of {} chunks are fingerprinted already",
                self.path.display(),
                finished.len()
            );
        }
        let schema = rows_schema(work.id_type, work.recipe.spec(), work.decision_columns);
        let finished = Answers {
            answers: finished,
            job: self.path.display().to_string(),
        };
        let counters = MapCounters::default();
        for receipt in finished.receipts() {
            counters.texts.add(&receipt.texts);
            counters.read.add(&receipt.read);
        }
        let rows = finished.table(work.context, &schema)?;
        Ok(UnsortedRows { rows, counters })
    }

    async fn make(
        &self,
        work: &Work<'_>,
        chunk: &ResumeChunk,
        path: PathBuf,
        name: String,
    ) -> Result<Answer> {
        let (context, documents, id_type) = (work.context, work.documents, work.id_type);
        let query = || EngineError::query(documents.given());
        let counters = MapCounters::default();
        let partitions = context.state().config().target_partitions();
        let (decides, read) = (work.decision_columns, &counters.read);
        let table = documents.table_of_chunk(context, id_type, partitions, decides, chunk, read)?;
        let rows = with_fingerprints(table, work.recipe, &counters.texts, false).map_err(query())?;
        let mut rows = rows.execute_stream().await.map_err(query())?;
        let draft = tempfile::Builder::new()
            .prefix(DRAFT)
            .tempfile_in(&self.path)
            .map_err(failed(&self.path))?;
        let file = draft.reopen().map_err(failed(&path))?;
        let mut writer = AnswerWriter::new(file, &path, &rows.schema())?;
        while let Some(batch) = rows.next().await {
            writer.write(&batch.map_err(query())?)?;
        }
        let receipt = writer.finish(Receipt {
            map: name,
            texts: counters.texts.counts(),
            read: counters.read.counts(),
            ..Receipt::default()
        })?;
        draft.as_file().sync_data().map_err(failed(&path))?;
        let persisted = draft.persist(&path);
        persisted.map_err(|error| failed(&path)(error.error))?;
        Ok(Answer { path, receipt })
    }

    /// Deletes the batch's directory after a run that succeeded, then its parent directory if that
    /// is empty.
    pub(crate) fn remove(self) {
        // What remains does no harm: the next run of the batch uses it.
        if std::fs::remove_dir_all(&self.path).is_ok()
            && let Some(given) = self.path.parent()
        {
            let _ = std::fs::remove_dir(given);
        }
    }
}

/// The name of a chunk's file.
fn file_name(work: &Work<'_>, chunk: &ResumeChunk) -> String {
    // Each run has a scratch directory of its own.
    let columns = Columns {
        spooled: None,
        ..work.documents.columns().clone()
    };
    let name = digest([
        env!("CARGO_PKG_VERSION"),
        FORMAT,
        &work.recipe.spec().digest(),
        &work.id_type.to_string(),
        &work.decision_columns.to_string(),
        &format!("{columns:?}"),
        work.templates,
        &chunk.name,
    ]);
    format!("{}.arrow", storage::hex(&name))
}

/// The SHA-256 of several texts. The length of each is part of it, so that moving text from one to the next changes it.
fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    digest.finalize().into()
}

/// The finished chunk in the file at `path`, which was written as `name`; `None` if that is missing, damaged or another chunk's, so
/// that the chunk is fingerprinted again.
fn finished_chunk(path: &Path, name: &str) -> Result<Option<Answer>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path)(error).into()),
    };
    // Whatever is wrong with a file, it is made again.
    let receipt = read_receipt(&file).ok().flatten();
    let receipt = receipt.filter(|receipt| receipt.map == name);
    Ok(receipt.map(|receipt| Answer {
        path: path.to_owned(),
        receipt,
    }))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> StorageError {
    StorageError::io(path.display())
}
