//! The fingerprints of a batch as one local Parquet file: the map writes it, the probe and the archive read it.
//!
//! The columns are `fp` (BIGINT, null if the document has no fingerprint), `id` and, if the spec has sketches, `sketch`;
//! rows are sorted by `fp` ascending with nulls last, then by `id`, then by `sketch`; the footer has the spec. Sorted rows
//! make equal batches equal files, and the archive needs them in this order.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use arrow::array::{Array as _, AsArray as _, BinaryArray, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{Int64Type, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use simhash::Spec;
use storage::{StorageError, hex};

use crate::error::{ArchiveError, Result};
use crate::parquet_properties::{Lifetime, PAGE_ROWS, writer_properties};
use crate::schema::{self, IdType};
use crate::validated_pages::{ValidatedRowGroups, WholeFile};

/// Rows of the record batches that the Parquet writer gets, and of those that a reader gets. This
/// fixed size fixes the pages, too, so the file's bytes do not depend on how callers of
/// [`FingerprintWriter::write`] split the rows.
const RECORD_BATCH_ROWS: usize = 4 * PAGE_ROWS;

/// Bytes to write at once: several pages.
const WRITTEN_BYTES: usize = 256 << 10;

/// SHA-256 over the rows of a batch that have a fingerprint, independent of files and row groups.
///
/// It hashes the spec's digest, then for each row, in the file's order, the fingerprint, the id
/// and, if the spec has sketches, the sketch. Numbers are 8 bytes, little-endian; before a text id
/// comes its length in bytes.
#[derive(Debug, Clone)]
struct RowDigest(Sha256);

impl RowDigest {
    fn new(spec: &Spec) -> Self {
        Self(Sha256::new_with_prefix(spec.digest()))
    }

    /// Adds the rows of a record batch with the schema [`schema::fingerprint_schema`].
    fn update(&mut self, batch: &RecordBatch) {
        let fingerprints = batch.column(0).as_primitive::<Int64Type>();
        let text = batch.column(1).as_string_opt::<i32>();
        let numbers = batch.column(1).as_primitive_opt::<Int64Type>();
        let sketches = schema::sketches(batch);
        for row in (0..batch.num_rows()).filter(|&row| fingerprints.is_valid(row)) {
            self.0.update(fingerprints.value(row).to_le_bytes());
            if let Some(text) = text {
                let id = text.value(row).as_bytes();
                self.0.update((id.len() as u64).to_le_bytes());
                self.0.update(id);
            } else if let Some(numbers) = numbers {
                self.0.update(numbers.value(row).to_le_bytes());
            }
            if let Some(sketches) = sketches {
                self.0.update(sketches.value(row));
            }
        }
    }

    /// The digest in hexadecimal.
    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// A finished file of fingerprints on the local disk. What is serialized of it says what the file contains; a process that reads that
/// sets the path of its own copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FingerprintFile {
    /// The file's path in this process.
    #[serde(skip)]
    pub path: PathBuf,
    /// The file's size in bytes.
    pub bytes: u64,
    /// Rows, with and without a fingerprint.
    pub rows: u64,
    /// Rows without a fingerprint.
    pub without_fingerprint: u64,
    /// [`RowDigest`] of the rows with a fingerprint.
    pub digest: String,
    /// The digest by which an archive knows the rows as a day: that of the rows, unless something else says which documents they
    /// are of.
    pub day_digest: String,
    pub id_type: IdType,
    pub spec: Spec,
}

impl FingerprintFile {
    /// Reads its rows, as record batches with the schema [`schema::fingerprint_schema`].
    pub fn read(&self) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let name = self.path.display().to_string();
        let file = File::open(&self.path).map_err(StorageError::io(&name))?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
        let reader = metadata
            .map(|metadata| {
                let groups = 0..metadata.num_row_groups();
                ValidatedRowGroups::new(WholeFile(file), Arc::new(metadata), groups)
            })
            .and_then(|groups| groups.read(ProjectionMask::all(), RECORD_BATCH_ROWS, None))
            .map_err(ArchiveError::parquet(name.clone()))?;
        Ok(reader.map(move |batch| batch.map_err(ArchiveError::arrow(&name))))
    }
}

pub struct FingerprintWriter {
    path: PathBuf,
    encoder: Encoder,
    coalescer: BatchCoalescer,
    digest: RowDigest,
    rows: u64,
    without_fingerprint: u64,
    /// The last fingerprint written, which the next must not precede.
    last: Option<i64>,
    id_type: IdType,
    spec: Spec,
}

impl FingerprintWriter {
    /// Creates the file at `path`.
    pub fn create(path: &Path, id_type: IdType, spec: &Spec) -> Result<Self> {
        Self::create_for(Lifetime::Kept, path, id_type, spec)
    }

    /// As [`Self::create`], for a file that is deleted at the end of the run: it is larger, and
    /// written and read faster.
    pub fn create_scratch(path: &Path, id_type: IdType, spec: &Spec) -> Result<Self> {
        Self::create_for(Lifetime::Scratch, path, id_type, spec)
    }

    fn create_for(lifetime: Lifetime, path: &Path, id_type: IdType, spec: &Spec) -> Result<Self> {
        let name = path.display().to_string();
        // Only the owner may read it, whatever directory it is in.
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(StorageError::io(&name))?;
        let schema = schema::fingerprint_schema(id_type, spec.sketch, true);
        let options = ArrowWriterOptions::new()
            .with_properties(writer_properties(spec, id_type, lifetime))
            .with_skip_arrow_metadata(true);
        let file = BufWriter::with_capacity(WRITTEN_BYTES, file);
        let writer = ArrowWriter::try_new_with_options(file, schema.clone(), options)
            .map_err(ArchiveError::parquet(name.clone()))?;
        let encoder = Encoder::start(writer).map_err(StorageError::io(name))?;
        Ok(Self {
            path: path.to_owned(),
            encoder,
            coalescer: BatchCoalescer::new(schema, RECORD_BATCH_ROWS),
            digest: RowDigest::new(spec),
            rows: 0,
            without_fingerprint: 0,
            last: None,
            id_type,
            spec: spec.clone(),
        })
    }

    pub fn schema(&self) -> SchemaRef {
        schema::fingerprint_schema(self.id_type, self.spec.sketch, true)
    }

    /// Appends the rows of a record batch, which must continue the sort order.
    pub fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let fingerprints = batch.column(0).as_primitive::<Int64Type>();
        let present = fingerprints.len() - fingerprints.null_count();
        let sorted = fingerprints.iter().take(present).all(|value| {
            let is_next = value.is_some() && self.last <= value;
            self.last = value;
            is_next
        });
        if !sorted || (present > 0 && self.without_fingerprint > 0) {
            return Err(self.bad_data("the rows are not sorted by fingerprint"));
        }
        self.check_sketches(&batch, present)?;
        self.rows += batch.num_rows() as u64;
        self.without_fingerprint += fingerprints.null_count() as u64;
        self.digest.update(&batch);
        let pushed = self.coalescer.push_batch(batch);
        pushed.map_err(ArchiveError::arrow(self.path.display()))?;
        self.write_completed()
    }

    /// Checks the sketches of the first `present` rows, which have fingerprints: each must be there, and have the length that
    /// the spec asks for.
    fn check_sketches(&self, batch: &RecordBatch, present: usize) -> Result<()> {
        let size = self.spec.sketch;
        if size.is_none() {
            return Ok(());
        }
        let is_whole = |sketches: &BinaryArray| {
            let present = sketches.slice(0, present);
            present.null_count() == 0 && schema::check_sketches(&present, size).is_ok()
        };
        if schema::sketches(batch).is_some_and(is_whole) {
            Ok(())
        } else {
            Err(self.bad_data(&format!(
                "a fingerprint has no sketch of {size} bits, which its spec asks for"
            )))
        }
    }

    /// Completes the file and returns what it holds.
    pub fn finish(mut self) -> Result<FingerprintFile> {
        let name = self.path.display().to_string();
        let finished = self.coalescer.finish_buffered_batch();
        finished.map_err(ArchiveError::arrow(&name))?;
        self.write_completed()?;
        let file = self.encoder.finish();
        let file = file.map_err(ArchiveError::parquet(name.clone()))?;
        let file = file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error);
        let size = file.and_then(|file| Ok(file.metadata()?.len()));
        let digest = self.digest.finish();
        Ok(FingerprintFile {
            bytes: size.map_err(StorageError::io(name))?,
            path: self.path,
            rows: self.rows,
            without_fingerprint: self.without_fingerprint,
            day_digest: digest.clone(),
            digest,
            id_type: self.id_type,
            spec: self.spec,
        })
    }

    fn write_completed(&mut self) -> Result<()> {
        while let Some(batch) = self.coalescer.next_completed_batch() {
            let name = self.path.display().to_string();
            let sent = self.encoder.write(batch);
            sent.map_err(ArchiveError::parquet(name))?;
        }
        Ok(())
    }

    fn bad_data(&self, reason: &str) -> ArchiveError {
        ArchiveError::bad_data(self.path.display(), reason)
    }
}

/// Record batches that wait for the encoder.
const WAITING: usize = 2;

/// Encodes record batches as Parquet on a thread of its own, while the caller makes the next.
struct Encoder {
    /// `None` after the last record batch.
    sender: Option<SyncSender<RecordBatch>>,
    thread: Option<JoinHandle<Encoded>>,
    is_abandoned: Arc<AtomicBool>,
}

/// The file that the encoder wrote.
type Encoded = Result<BufWriter<File>, ParquetError>;

impl Encoder {
    fn start(mut writer: ArrowWriter<BufWriter<File>>) -> std::io::Result<Self> {
        let (sender, batches) = std::sync::mpsc::sync_channel::<RecordBatch>(WAITING);
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let abandoned = Arc::clone(&is_abandoned);
        let encode = move || {
            let check = || {
                if abandoned.load(Ordering::Relaxed) {
                    Err(ParquetError::General("the file is abandoned".into()))
                } else {
                    Ok(())
                }
            };
            for batch in batches {
                check()?;
                writer.write(&batch)?;
            }
            check()?;
            // Unlike `into_inner`, these keep the system's error.
            writer.flush()?;
            writer.sync()?;
            writer.into_inner()
        };
        let name = "fingerprint file".to_owned();
        Ok(Self {
            sender: Some(sender),
            thread: Some(std::thread::Builder::new().name(name).spawn(encode)?),
            is_abandoned,
        })
    }

    fn write(&mut self, batch: RecordBatch) -> Result<(), ParquetError> {
        let is_sent = |sender: &SyncSender<_>| sender.send(batch).is_ok();
        if self.sender.as_ref().is_some_and(is_sent) {
            Ok(())
        } else {
            // The thread ended, because it failed.
            self.end().map(drop)
        }
    }

    fn finish(mut self) -> Encoded {
        self.end()
    }

    /// Waits until all record batches are encoded.
    fn end(&mut self) -> Encoded {
        self.sender = None;
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| {
            let message = "the encoder of fingerprints ended early";
            Err(ParquetError::General(message.into()))
        })
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        // Nothing writes to the file after this, so its directory can be deleted.
        let _ = self.end();
    }
}
