//! Fingerprints of chunks of a batch, kept between the attempts of a run, so that one that was stopped can go on.
//!
//! Each chunk has a file in Arrow's IPC format, whose name is the digest of all that its rows depend on: the state of the input
//! files, the columns, the fingerprint specification, and this program's version. A file appears when it is complete. So a file
//! that is there can be used, and a file of other inputs is not mistaken for one of these.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::{ArchiveError, IdType};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};

use crate::documents::{Chunk, Columns, Documents};
use crate::error::{EngineError, Result};
use crate::fingerprint::{UnsortedRows, with_fingerprints};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::stream;

/// The start and the end of the names of files of chunks.
const PREFIX: &str = "fingerprints-";
const SUFFIX: &str = ".arrow";
/// The name of the file that a run locks.
const LOCK: &str = "lock";
/// Key of the number of texts that are not UTF-8, in a file of a chunk.
const INVALID_UTF8: &str = "invalid-utf8";

/// The directory that keeps the finished work of a run. One run at a time uses it.
#[derive(Debug)]
pub(crate) struct ResumeDirectory {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// What the fingerprints of a batch are made of.
pub(crate) struct Made<'a> {
    pub(crate) context: &'a SessionContext,
    pub(crate) documents: &'a Documents,
    pub(crate) columns: &'a Columns,
    pub(crate) recipe: &'a Recipe,
    pub(crate) id_type: IdType,
    /// Whether the rows have what decisions need.
    pub(crate) keys: bool,
    pub(crate) progress: &'a Progress,
}

/// The finished fingerprints of a chunk.
struct Part {
    path: PathBuf,
    schema: SchemaRef,
    rows: u64,
    invalid_utf8: u64,
}

impl ResumeDirectory {
    /// Opens the directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`EngineError::Usage`] when another run uses it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(failed(path))?;
        let lock = path.join(LOCK);
        let file = File::create(&lock).map_err(failed(&lock))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: file,
            }),
            Err(std::fs::TryLockError::WouldBlock) => Err(EngineError::Usage(format!(
                "--resume {}: another run uses this directory",
                path.display()
            ))),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(&lock)(error)),
        }
    }

    /// The fingerprints of a batch: those of finished chunks are read, the others are made, chunk by chunk.
    ///
    /// # Errors
    /// [`EngineError`] when documents cannot be read, or a file of a chunk cannot be written.
    pub(crate) async fn rows(&self, made: Made<'_>) -> Result<UnsortedRows> {
        let total = made.documents.known_rows().unwrap_or(0);
        made.progress
            .documents_total
            .store(total, Ordering::Relaxed);
        let mut parts = Vec::new();
        let mut found = 0;
        for chunk in made.documents.chunks().await? {
            let path = self.path.join(file_name(&made, &chunk));
            let part = match Part::open(&path)? {
                Some(part) => {
                    found += 1;
                    made.progress
                        .documents
                        .fetch_add(part.rows, Ordering::Relaxed);
                    part
                }
                None => self.make(&made, &chunk, path).await?,
            };
            parts.push(part);
        }
        if found > 0 {
            tracing::warn!(
                "{}: {found} of {} chunks are fingerprinted already",
                self.path.display(),
                parts.len()
            );
        }
        let invalid_utf8 = parts.iter().map(|part| part.invalid_utf8).sum();
        table(made.context, parts, invalid_utf8)
    }

    /// Fingerprints a chunk.
    async fn make(&self, made: &Made<'_>, chunk: &Chunk, path: PathBuf) -> Result<Part> {
        let Made {
            context,
            documents,
            id_type,
            keys,
            ..
        } = *made;
        let query = || EngineError::query(documents.given());
        let invalid_utf8 = Arc::new(AtomicU64::new(0));
        let partitions = context.state().config().target_partitions();
        let table = documents.table_of_chunk(context, id_type, partitions, keys, chunk)?;
        let rows = with_fingerprints(table, made.recipe, &invalid_utf8).map_err(query())?;
        let mut rows = rows.execute_stream().await.map_err(query())?;
        let schema = rows.schema();
        let draft = tempfile::NamedTempFile::new_in(&self.path).map_err(failed(&self.path))?;
        let file = BufWriter::with_capacity(1 << 20, draft.reopen().map_err(failed(&path))?);
        let mut writer = FileWriter::try_new(file, &schema).map_err(not_written(&path))?;
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(query())?;
            count += batch.num_rows() as u64;
            writer.write(&batch).map_err(not_written(&path))?;
        }
        let invalid_utf8 = invalid_utf8.load(Ordering::Relaxed);
        writer.write_metadata(INVALID_UTF8, invalid_utf8.to_string());
        writer.finish().map_err(not_written(&path))?;
        draft.as_file().sync_data().map_err(failed(&path))?;
        draft
            .persist(&path)
            .map_err(|error| failed(&path)(error.error))?;
        Ok(Part {
            path,
            schema,
            rows: count,
            invalid_utf8,
        })
    }

    /// Removes the files of chunks, after a run that succeeded.
    pub(crate) fn remove(self) {
        let Ok(entries) = std::fs::read_dir(&self.path) else {
            return;
        };
        let names = entries.flatten().map(|entry| entry.path());
        let is_own = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == LOCK || (name.starts_with(PREFIX) && name.ends_with(SUFFIX))
        };
        for path in names.filter(is_own) {
            // What remains does no harm: the next run uses or replaces it.
            let _ = std::fs::remove_file(path);
        }
        // Fails if other files are in it.
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// The name of a chunk's file.
fn file_name(made: &Made<'_>, chunk: &Chunk) -> String {
    let mut digest = Sha256::new();
    for part in [
        env!("CARGO_PKG_VERSION"),
        &made.recipe.spec().digest(),
        &made.id_type.to_string(),
        &made.keys.to_string(),
        &format!("{:?}", made.columns),
        &chunk.name,
    ] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    format!("{PREFIX}{}{SUFFIX}", storage::hex(&digest.finalize()))
}

impl Part {
    /// The part in the file at `path`; `None` if there is none.
    fn open(path: &Path) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path)(error)),
        };
        // A file that cannot be read is made again.
        let Ok(reader) = FileReader::try_new(BufReader::new(file), None) else {
            return Ok(None);
        };
        let invalid_utf8 = reader.custom_metadata().get(INVALID_UTF8);
        let Some(invalid_utf8) = invalid_utf8.and_then(|number| number.parse().ok()) else {
            return Ok(None);
        };
        let schema = reader.schema();
        let mut rows = 0;
        for batch in reader {
            match batch {
                Ok(batch) => rows += batch.num_rows() as u64,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(Self {
            path: path.to_owned(),
            schema,
            rows,
            invalid_utf8,
        }))
    }

    /// Its rows, in record batches.
    fn read(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let file = File::open(&self.path).map_err(failed(&self.path))?;
        let reader = FileReader::try_new(BufReader::with_capacity(1 << 20, file), None);
        let path = self.path.clone();
        let reader = reader.map_err(not_written(&path))?;
        Ok(reader.map(move |batch| batch.map_err(not_written(&path))))
    }
}

/// The rows of all parts.
fn table(context: &SessionContext, parts: Vec<Part>, invalid_utf8: u64) -> Result<UnsortedRows> {
    let schema = parts.first().map(|part| Arc::clone(&part.schema));
    let schema = schema.ok_or_else(|| EngineError::Internal("a batch has no chunks".into()))?;
    let partitions = context.state().config().target_partitions().max(1);
    let mut dealt: Vec<Vec<Part>> = (0..partitions).map(|_| Vec::new()).collect();
    for (number, part) in parts.into_iter().enumerate() {
        dealt[number % partitions].push(part);
    }
    let streams = dealt.into_iter().map(|parts| -> SendableRecordBatchStream {
        let batches = futures::stream::iter(parts)
            .map(|part| Ok::<_, EngineError>(futures::stream::iter(part.read()?)))
            .try_flatten()
            .map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), batches))
    });
    let table = stream::table(context, Arc::clone(&schema), streams.collect());
    Ok(UnsortedRows::new(
        table.map_err(EngineError::query("planning the batch"))?,
        Arc::new(AtomicU64::new(invalid_utf8)),
    ))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> EngineError {
    move |source| EngineError::Io {
        path: path.display().to_string(),
        source,
    }
}

/// Makes errors of Arrow errors about the file of a chunk.
fn not_written(path: &Path) -> impl Fn(ArrowError) -> EngineError {
    move |source| {
        ArchiveError::Arrow {
            object: path.display().to_string(),
            source,
        }
        .into()
    }
}
