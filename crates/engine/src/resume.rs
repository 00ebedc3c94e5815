//! Keeps the fingerprints of finished chunks, so that a run with `--resume` can go on after a stop.
//!
//! Each batch has its own directory inside the given one, and each chunk a file there, in Arrow's
//! IPC format. The name of the file is the digest of everything that its rows depend on: the splits
//! and the versions of the input files, the columns, the fingerprint spec, and the version of this
//! program. A file appears only when it is complete, so a run can use each file that has the name
//! of one of its chunks, if its bytes have the checksum in the file beside it. A run that succeeds deletes the batch's
//! directory.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::{ArchiveError, IdType};
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use storage::StorageError;

use crate::error::{EngineError, Result};
use crate::fingerprint::{MapCounters, UnsortedRows, rows_schema, with_fingerprints};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::text_counts::TextCounts;
use documents::read_counts::ReadCounts;
use documents::{Columns, Documents, ResumeChunk};

/// The start of the names of batches' directories.
const PREFIX: &str = "dedup-job-resume-";
/// The name of the file that a run locks.
const LOCK: &str = "lock";
/// The start of the names of files that are not complete.
const DRAFT: &str = ".tmp";
/// Version of the format of chunks. Raise it when the same documents under the same spec give other
/// rows or counts.
const FORMAT: &str = "5";
/// Metadata key of a chunk's file: the [`TextCounts`], as JSON.
const TEXTS: &str = "texts";
/// Metadata key of a chunk's file: the [`ReadCounts`], as JSON.
const READ: &str = "read";
/// Metadata key of a chunk's file: the number of rows.
const ROWS: &str = "rows";

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
    pub(crate) columns: &'a Columns,
    pub(crate) recipe: &'a Recipe,
    pub(crate) id_type: IdType,
    /// Whether the rows have the decision columns.
    pub(crate) decision_columns: bool,
    pub(crate) progress: &'a Progress,
    /// SHA-256 of the templates that are left out of the texts.
    pub(crate) templates: &'a str,
}

/// The finished fingerprints of a chunk.
struct FinishedChunk {
    path: PathBuf,
    rows: u64,
    texts: TextCounts,
    read: ReadCounts,
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
            let path = self.path.join(file_name(&work, &chunk));
            let finished_chunk = match FinishedChunk::open(&path)? {
                Some(finished_chunk) => {
                    found += 1;
                    let rows = finished_chunk.rows;
                    progress.documents.fetch_add(rows, Ordering::Relaxed);
                    finished_chunk
                }
                None => self.make(&work, &chunk, path).await?,
            };
            finished.push(finished_chunk);
        }
        if found > 0 {
            tracing::warn!(
                "{}: {found} of {} chunks are fingerprinted already",
                self.path.display(),
                finished.len()
            );
        }
        let schema = rows_schema(work.id_type, work.recipe.spec(), work.decision_columns);
        let mut dealt: Vec<Vec<FinishedChunk>> = (0..threads.max(1)).map(|_| Vec::new()).collect();
        let counters = MapCounters::default();
        for (number, chunk) in finished.into_iter().enumerate() {
            counters.texts.add(&chunk.texts);
            counters.read.add(&chunk.read);
            dealt[number % threads.max(1)].push(chunk);
        }
        let streams = dealt
            .into_iter()
            .map(|chunks| -> SendableRecordBatchStream {
                let batches = futures::stream::iter(chunks)
                    .map(|chunk| Ok::<_, EngineError>(futures::stream::iter(chunk.read()?)))
                    .try_flatten()
                    .map_err(Into::into);
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), batches))
            });
        let rows = streams::table(work.context, Arc::clone(&schema), streams.collect());
        let rows = rows.map_err(EngineError::query("planning the batch"))?;
        Ok(UnsortedRows { rows, counters })
    }

    async fn make(
        &self,
        work: &Work<'_>,
        chunk: &ResumeChunk,
        path: PathBuf,
    ) -> Result<FinishedChunk> {
        let (context, documents, id_type) = (work.context, work.documents, work.id_type);
        let query = || EngineError::query(documents.given());
        let counters = MapCounters::default();
        let partitions = context.state().config().target_partitions();
        let (decides, read) = (work.decision_columns, &counters.read);
        let table = documents.table_of_chunk(context, id_type, partitions, decides, chunk, read)?;
        let rows = with_fingerprints(table, work.recipe, &counters.texts, false).map_err(query())?;
        let mut rows = rows.execute_stream().await.map_err(query())?;
        let schema = rows.schema();
        let new_draft = || {
            let mut builder = tempfile::Builder::new();
            let draft = builder.prefix(DRAFT).tempfile_in(&self.path);
            draft.map_err(failed(&self.path))
        };
        let draft = new_draft()?;
        let file = BufWriter::with_capacity(1 << 20, draft.reopen().map_err(failed(&path))?);
        let mut writer = FileWriter::try_new(file, &schema).map_err(arrow_error(&path))?;
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(query())?;
            count += batch.num_rows() as u64;
            writer.write(&batch).map_err(arrow_error(&path))?;
        }
        let texts = counters.texts.counts();
        let read = counters.read.counts();
        writer.write_metadata(TEXTS, json(&texts)?);
        writer.write_metadata(READ, json(&read)?);
        writer.write_metadata(ROWS, count.to_string());
        writer.finish().map_err(arrow_error(&path))?;
        draft.as_file().sync_data().map_err(failed(&path))?;
        // The checksum first: without one, a chunk is not finished.
        let sum = checksum(draft.path())?;
        let sum_path = sum_path(&path);
        let mut sum_draft = new_draft()?;
        sum_draft
            .write_all(sum.as_bytes())
            .and_then(|()| sum_draft.as_file().sync_data())
            .map_err(failed(&sum_path))?;
        for (draft, path) in [(sum_draft, &sum_path), (draft, &path)] {
            let persisted = draft.persist(path);
            persisted.map_err(|error| failed(path)(error.error))?;
        }
        Ok(FinishedChunk {
            path,
            rows: count,
            texts,
            read,
        })
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
        ..work.columns.clone()
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

/// The path of the file with the checksum of the chunk at `path`.
fn sum_path(path: &Path) -> PathBuf {
    path.with_extension("sha256")
}

/// The SHA-256 of a file, in hexadecimal digits.
fn checksum(path: &Path) -> Result<String> {
    let mut file = File::open(path).map_err(failed(path))?;
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).map_err(failed(path))?;
    Ok(storage::hex(&digest.finalize()))
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

impl FinishedChunk {
    /// Opens the file of a finished chunk; `None` if the file is missing or damaged, so that the chunk is fingerprinted again.
    fn open(path: &Path) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path)(error).into()),
        };
        // Whatever is wrong with a file, it is made again.
        let expected = std::fs::read_to_string(sum_path(path)).ok();
        if expected.is_none() || checksum(path).ok() != expected {
            return Ok(None);
        }
        let Ok(reader) = FileReader::try_new(BufReader::new(file), None) else {
            return Ok(None);
        };
        let metadata = reader.custom_metadata();
        let read_all = || {
            Some(Self {
                path: path.to_owned(),
                rows: metadata.get(ROWS)?.parse().ok()?,
                texts: serde_json::from_str(metadata.get(TEXTS)?).ok()?,
                read: serde_json::from_str(metadata.get(READ)?).ok()?,
            })
        };
        Ok(read_all())
    }

    /// Its rows, in record batches.
    fn read(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let file = File::open(&self.path).map_err(failed(&self.path))?;
        let reader = FileReader::try_new(BufReader::with_capacity(1 << 20, file), None);
        let path = self.path.clone();
        let reader = reader.map_err(arrow_error(&path))?;
        Ok(reader.map(move |batch| Ok(batch.map_err(arrow_error(&path))?)))
    }
}

fn json(counts: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string(counts);
    json.map_err(|error| EngineError::Internal(error.to_string()))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> StorageError {
    StorageError::io(path.display())
}

/// Turns Arrow errors into errors about the file of a chunk.
fn arrow_error(path: &Path) -> impl Fn(ArrowError) -> ArchiveError {
    ArchiveError::arrow(path.display())
}
