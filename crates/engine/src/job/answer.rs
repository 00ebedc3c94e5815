//! The answer of a part: its rows as an Arrow IPC stream, then a receipt, in one object.
//!
//! ```text
//! rows: Arrow IPC stream | receipt: JSON | length of the receipt: u64, little endian | SHA-256 of all before | "DJPART01"
//! ```
//!
//! An object appears whole or not at all. The receipt names the job, the map and the part.
//! Whatever is wrong with an answer, the part is not answered: `split` and `reduce` name it, and `map` does it again. A run with
//! `--resume` keeps the fingerprints of its chunks in the same way.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use storage::{Location, StorageError};

use super::plan::PlannedMap;
use super::{AT_ONCE, Job};
use crate::error::{EngineError, Result, map_command};
use crate::progress::Counts;
use crate::text_counts::TextCounts;
use documents::DocumentsError;
use documents::read_counts::ReadCounts;
use streams::blocking;

/// The last bytes of an answer.
const MAGIC: &[u8; 8] = b"DJPART01";
/// Larger answers are uploaded in parts, and replace another attempt's.
const CREATED_BYTES: u64 = 32 << 20;

/// What ends the answer of a part.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) version: String,
    pub(crate) job: String,
    /// [`PlannedMap::digest`]: of the settings, of the inputs as `split` saw them, and of the items.
    pub(crate) map: String,
    /// Number of the part in its map.
    pub(crate) part: usize,
    pub(crate) rows: u64,
    /// Bytes of the rows.
    pub(crate) bytes: u64,
    /// Seconds that the part took.
    pub(crate) seconds: f64,
    pub(crate) counts: Counts,
    /// Counts of the texts that were fingerprinted.
    pub(crate) texts: TextCounts,
    /// What was counted while the files were read.
    pub(crate) read: ReadCounts,
    /// Pairs that a verification dropped.
    pub(crate) dropped: u64,
    /// Pairs that passed a verification without a similarity.
    pub(crate) without_text: u64,
    /// A file that was cut where it must not be, and the offset. The answer then has no rows.
    pub(crate) wrong_cut: Option<(String, u64)>,
    pub(crate) copies: Vec<Copied>,
}

/// What a part made of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Copied {
    pub(super) file: usize,
    /// Its copy in the job; `None` if the file is one document that is not kept.
    pub(super) copy: Option<Copy>,
}

/// A copy in the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Copy {
    pub(super) object: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    /// [`Location::version`] of the object; `None` for a file of this machine, whose bytes are digested when it is taken.
    pub(super) version: Option<String>,
}

/// The answers of a map, all whole, in files of this machine.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) answers: Vec<Answer>,
    /// The job, or the directory of chunks, for errors.
    pub(crate) job: String,
}

/// An answer that was checked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) path: PathBuf,
    pub(crate) receipt: Receipt,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    Missing,
    Damaged,
    Failed(EngineError),
}

impl From<EngineError> for NoAnswer {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

impl Job {
    /// `round` is from 1 on, `part` the number in the round.
    pub(super) fn answer_location(&self, round: u32, part: u32) -> Result<Location> {
        Ok(self
            .location
            .child(&format!("round-{round}/part-{part:05}"))?)
    }

    /// Reads and checks all answers of a map.
    pub(super) async fn read_answers(
        &self,
        round: u32,
        first: u32,
        map: &PlannedMap,
    ) -> Result<Answers> {
        let reading = (0..map.parts.len()).map(async |number| {
            let part = first + number as u32;
            (part, self.answer(round, part, map, number).await)
        });
        let read = futures::stream::iter(reading).buffered(AT_ONCE);
        let read: Vec<(u32, Result<Answer, NoAnswer>)> = read.collect().await;
        let mut answers = Vec::with_capacity(read.len());
        let (mut missing, mut damaged) = (Vec::new(), Vec::new());
        for (part, answer) in read {
            match answer {
                Ok(answer) => answers.push(answer),
                Err(NoAnswer::Missing) => missing.push(part),
                Err(NoAnswer::Damaged) => damaged.push(part),
                Err(NoAnswer::Failed(error)) => return Err(error),
            }
        }
        self.check_answered(round, missing, damaged)?;
        Ok(Answers {
            answers,
            job: self.name().to_owned(),
        })
    }

    /// Fails if some parts of a round are missing or damaged.
    fn check_answered(&self, round: u32, missing: Vec<u32>, damaged: Vec<u32>) -> Result<()> {
        if missing.is_empty() && damaged.is_empty() {
            return Ok(());
        }
        Err(EngineError::Unanswered {
            job: self.name().to_owned(),
            round,
            is_current: round == self.current_round(),
            missing,
            damaged,
        })
    }

    /// Checks that all parts of the current round have whole answers, so that `split` can go on.
    ///
    /// # Errors
    /// [`EngineError::Unanswered`] naming those that have none.
    pub async fn check(&self) -> Result<()> {
        let number = self.current_round();
        let Some(round) = self.planned_round(number) else {
            return Ok(());
        };
        let (mut all_missing, mut all_damaged) = (Vec::new(), Vec::new());
        for (first, map) in round.numbered_maps() {
            match self.read_answers(number, first, map).await {
                Ok(_) => {}
                Err(EngineError::Unanswered {
                    missing, damaged, ..
                }) => {
                    all_missing.extend(missing);
                    all_damaged.extend(damaged);
                }
                Err(error) => return Err(error),
            }
        }
        self.check_answered(number, all_missing, all_damaged)
    }

    /// Reads and checks the answer of a part.
    pub(super) async fn answer(
        &self,
        round: u32,
        part: u32,
        map: &PlannedMap,
        number: usize,
    ) -> Result<Answer, NoAnswer> {
        let location = self.answer_location(round, part)?;
        let path = match location.local() {
            Some(local) => local.to_owned(),
            None => {
                let name = format!("answer-{round}-{part}");
                let path = self.download(&location, &name).await?;
                path.ok_or(NoAnswer::Missing)?
            }
        };
        let of_file = path.clone();
        let read =
            move || Ok::<_, EngineError>(File::open(of_file).and_then(|file| read_receipt(&file)));
        let receipt = match blocking(read).await? {
            Ok(Some(receipt)) => receipt,
            Ok(None) => {
                if location.local().is_none() {
                    // Another attempt may replace it.
                    let _ = std::fs::remove_file(&path);
                }
                return Err(NoAnswer::Damaged);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(NoAnswer::Missing);
            }
            Err(error) => return Err(NoAnswer::Failed(self.io(error))),
        };
        let command = map_command(self.name(), round, round == self.current_round());
        let wrong = |what: String| {
            NoAnswer::Failed(EngineError::Configuration(format!(
                "{location}: {what}; remove it, and do the part again: {command} --part {part}"
            )))
        };
        let own = env!("CARGO_PKG_VERSION");
        if receipt.version != own {
            return Err(wrong(format!(
                "version {} of dedup-job answered this part, and this is version {own}",
                receipt.version
            )));
        }
        if receipt.job != self.record.id {
            return Err(wrong("it is the answer of a part of another job".into()));
        }
        if receipt.map != map.digest || receipt.part != number {
            return Err(wrong(
                "it answers another part, or other settings or inputs than those of the plan"
                    .into(),
            ));
        }
        let copies = receipt.copies.iter().filter_map(|file| file.copy.as_ref());
        let checked = copies.map(async |copy| match self.is_whole(copy).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(NoAnswer::Damaged),
            Err(error) => Err(NoAnswer::Failed(error)),
        });
        let checked: Vec<_> = checked.collect();
        futures::stream::iter(checked)
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        Ok(Answer { path, receipt })
    }

    /// Whether a copy is the one that a part made, or has the same bytes: another attempt may have put it there again.
    async fn is_whole(&self, copy: &Copy) -> Result<bool> {
        let location = self.copy_location(&copy.object)?;
        let is_whole = match &copy.version {
            None => location.current_size().await.map(|size| size == copy.bytes),
            Some(made) => match location.version().await {
                Ok(version) if version == *made => Ok(true),
                Ok(_) => Ok(location.digest().await? == (copy.bytes, copy.sha256.clone())),
                Err(error) => Err(error),
            },
        };
        match is_whole {
            Err(StorageError::NotFound { .. }) => Ok(false),
            found => Ok(found?),
        }
    }

    /// Writes the answer of a part: the rows in the file at `path`, which has a receipt.
    pub(super) async fn put_answer(
        &self,
        location: &Location,
        path: &Path,
        replace: bool,
    ) -> Result<()> {
        let size = path.metadata().map_err(|source| self.io(source))?.len();
        if !replace && size <= CREATED_BYTES {
            let bytes = std::fs::read(path).map_err(|source| self.io(source))?;
            // Another attempt may have been faster; its answer counts.
            location.create(bytes.into()).await?;
            return Ok(());
        }
        self.put(location, path).await
    }
}

/// Bytes behind the length of the receipt: the digest, and [`MAGIC`].
const TAIL: u64 = 32 + MAGIC.len() as u64;

/// Reads the receipt of an answer, and checks all its bytes; `None` if something is wrong.
pub(crate) fn read_receipt(file: &File) -> std::io::Result<Option<Receipt>> {
    let size = file.metadata()?.len();
    let Some(digested) = size.checked_sub(TAIL) else {
        return Ok(None);
    };
    let mut tail = [0; TAIL as usize];
    file.read_exact_at(&mut tail, digested)?;
    let (expected, magic) = tail.split_at(32);
    let mut digest = Sha256::new();
    let copied = std::io::copy(&mut file.take(digested), &mut digest)?;
    if magic != MAGIC || copied != digested || digest.finalize()[..] != *expected {
        return Ok(None);
    }
    let mut length = [0; 8];
    let Some(end) = digested.checked_sub(length.len() as u64) else {
        return Ok(None);
    };
    file.read_exact_at(&mut length, end)?;
    let Some(start) = end.checked_sub(u64::from_le_bytes(length)) else {
        return Ok(None);
    };
    let mut receipt = vec![0; (end - start) as usize];
    file.read_exact_at(&mut receipt, start)?;
    let receipt = serde_json::from_slice::<Receipt>(&receipt).ok();
    Ok(receipt.filter(|receipt| receipt.bytes == start))
}

pub(crate) struct AnswerWriter {
    writer: StreamWriter<BufWriter<File>>,
    path: PathBuf,
    rows: u64,
}

impl AnswerWriter {
    pub(super) fn create(path: &Path, schema: &SchemaRef) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path);
        let file = file.map_err(StorageError::io(path.display()))?;
        Self::new(file, path, schema)
    }

    /// Writes to `file`, which can also be read. Errors name it `path`.
    pub(crate) fn new(file: File, path: &Path, schema: &SchemaRef) -> Result<Self> {
        let writer = StreamWriter::try_new(BufWriter::with_capacity(1 << 20, file), schema);
        Ok(Self {
            writer: writer.map_err(|error| EngineError::arrow(path, error))?,
            path: path.to_owned(),
            rows: 0,
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let written = self.writer.write(batch);
        written.map_err(|error| EngineError::arrow(&self.path, error))
    }

    /// Completes the answer: appends `receipt`, with the size of the rows, and returns it.
    pub(crate) fn finish(self, receipt: Receipt) -> Result<Receipt> {
        let Self {
            mut writer,
            path,
            rows,
        } = self;
        writer
            .finish()
            .map_err(|error| EngineError::arrow(&path, error))?;
        let file = writer
            .into_inner()
            .map_err(|error| EngineError::arrow(&path, error))?
            .into_inner()
            .map_err(|error| StorageError::io(path.display())(error.into_error()))?;
        Ok(append(file, receipt, rows).map_err(StorageError::io(path.display()))?)
    }
}

fn append(mut file: File, receipt: Receipt, rows: u64) -> std::io::Result<Receipt> {
    file.seek(SeekFrom::Start(0))?;
    let mut digest = Sha256::new();
    let bytes = std::io::copy(&mut file, &mut digest)?;
    let receipt = Receipt {
        rows,
        bytes,
        ..receipt
    };
    let mut end = serde_json::to_vec(&receipt)?;
    end.extend((end.len() as u64).to_le_bytes());
    digest.update(&end);
    end.extend(digest.finalize());
    end.extend(MAGIC);
    file.write_all(&end)?;
    file.flush()?;
    Ok(receipt)
}

impl Answers {
    /// The receipts, in the order of the parts.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.answers.iter().map(|answer| &answer.receipt)
    }

    /// Fails if a part found that a file is cut where it must not be.
    pub(crate) fn check_cuts(&self) -> Result<()> {
        let mut cuts = self
            .receipts()
            .filter_map(|receipt| receipt.wrong_cut.as_ref());
        match cuts.next() {
            Some((file, offset)) => Err(DocumentsError::WrongCut {
                file: file.clone(),
                offset: *offset,
            }
            .into()),
            None => Ok(()),
        }
    }

    /// The rows of all parts, dealt to the partitions of the session.
    pub(crate) fn table(&self, context: &SessionContext, schema: &SchemaRef) -> Result<DataFrame> {
        let partitions = context.state().config().target_partitions().max(1);
        let of_partition = |first| self.answers.iter().skip(first).step_by(partitions);
        let streams = (0..partitions).map(|first| rows(of_partition(first), schema));
        let table = streams::table(context, Arc::clone(schema), streams.collect());
        table.map_err(EngineError::query(&self.job))
    }

    /// The rows of all parts, in their order.
    pub(crate) fn rows(&self, schema: &SchemaRef) -> SendableRecordBatchStream {
        rows(self.answers.iter(), schema)
    }
}

/// The rows of `answers`, one after the other.
fn rows<'a>(
    answers: impl Iterator<Item = &'a Answer>,
    schema: &SchemaRef,
) -> SendableRecordBatchStream {
    let expected = Arc::clone(schema);
    let files = answers.map(|Answer { path, receipt }| (path.clone(), receipt.bytes, receipt.rows));
    let files: Vec<(PathBuf, u64, u64)> = files.collect();
    let batches = futures::stream::iter(files)
        .map(move |(path, bytes, rows)| {
            let file = File::open(&path).map_err(StorageError::io(path.display()))?;
            let file = BufReader::with_capacity(1 << 20, file.take(bytes));
            let arrow = |error| EngineError::arrow(&path, error);
            let reader = StreamReader::try_new(file, None).map_err(arrow)?;
            let schema = Arc::clone(&expected);
            let found = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&found);
            let object = path.display().to_string();
            let batches = reader.map(move |batch| {
                let batch = batch.and_then(|batch| {
                    RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())
                });
                let batch = batch.map_err(|error| EngineError::arrow(&path, error))?;
                counted.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                Ok(batch)
            });
            // Another attempt may have put its answer in the place of the one that was checked.
            let end = futures::stream::once(async move {
                if found.load(Ordering::Relaxed) == rows {
                    None
                } else {
                    Some(Err(EngineError::TryAgain(format!(
                        "{object}: it was replaced while it was read; run the same command again"
                    ))))
                }
            });
            let end = end.filter_map(std::future::ready);
            Ok::<_, EngineError>(futures::stream::iter(batches).chain(end))
        })
        .try_flatten()
        .map_err(Into::into);
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), batches))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    /// Whichever byte of an answer is changed or cut off, it is no answer.
    #[test]
    fn damaged_answers_are_no_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part");
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let mut writer = AnswerWriter::create(&path, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let receipt = Receipt {
            version: "1".into(),
            ..Receipt::default()
        };
        assert_eq!(writer.finish(receipt).unwrap().rows, 3);
        let receipt = || read_receipt(&File::open(&path).unwrap()).unwrap();
        assert_eq!(receipt().unwrap().rows, 3);
        let sound = std::fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert!(receipt().is_none(), "byte {at}");
        }
        for length in 0..sound.len() {
            std::fs::write(&path, &sound[..length]).unwrap();
            assert!(receipt().is_none(), "{length} bytes");
        }
    }
}
