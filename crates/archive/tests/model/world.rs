//! The archive and its model, side by side.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use archive::fingerprint_file::FingerprintWriter;
use archive::{
    Append, Archive, ArchiveError, BatchName, DayBatch, DecisionSettings, DecodedStep, Existing,
    FingerprintFile, IdSet, IdType, ReadRows, RowColumns, RowDecisions, RunDefaults, Scope,
    Snapshot, SpecFiles, Vacuum,
};
use arrow::array::{AsArray as _, BinaryArray, Int64Array, RecordBatch, StringArray};
use chrono::NaiveDate;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use simhash::{SketchBits, Spec};
use storage::{ErrorKind, Location, StoreOptions, Stores};
use url::Url;

use super::other_program::{self, OtherProgram, ROOT, Row};
use super::step::{Batch, INPUTS, Lie, Step};
use super::store::{Fault, Faulty};

fn date(day: usize) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1 + day as u32).unwrap()
}

fn day_batch((day, batch): Batch) -> DayBatch {
    let name: Option<BatchName> = batch.map(|number| format!("batch-{number}").parse().unwrap());
    DayBatch {
        day: date(day),
        name: name.unwrap_or_default(),
    }
}

/// An input: its file, as the map writes it, and the rows of the file.
struct Input {
    file: FingerprintFile,
    rows: Vec<(i64, String)>,
}

/// The spec of the archive, with sketches.
fn spec() -> Spec {
    Spec {
        sketch: SketchBits::Bits64,
        ..Spec::default()
    }
}

/// The sketch of a row. It depends on the fingerprint, so that a test notices another row's sketch.
pub fn sketch_of(fingerprint: i64) -> [u8; 8] {
    (!fingerprint.rotate_left(9)).to_be_bytes()
}

/// Whether a row is kept. It depends on the fingerprint, so that a test notices another row's
/// decision.
fn is_kept(fingerprint: i64) -> bool {
    fingerprint.count_ones().is_multiple_of(2)
}

/// Every input has five documents, except input 0, which has none.
static INPUT: LazyLock<Vec<Input>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap().keep();
    let input = |number: usize| {
        let count = if number == 0 { 0 } else { 5 };
        let mut rows: Vec<(i64, String)> = (0..count)
            .map(|row| {
                let mixed = (number * 8 + row) as u64 * 0x9e37_79b9_7f4a_7c15;
                (mixed.cast_signed(), format!("{number}-{row}"))
            })
            .collect();
        rows.sort();
        let path = directory.join(format!("{number}.parquet"));
        let spec = spec();
        let mut writer = FingerprintWriter::create(&path, IdType::String, &spec).unwrap();
        let fingerprints: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
        let ids: StringArray = rows.iter().map(|row| Some(&row.1)).collect();
        let sketches: BinaryArray = rows.iter().map(|row| Some(sketch_of(row.0))).collect();
        let batch = RecordBatch::try_new(
            archive::schema::fingerprint_schema(IdType::String, spec.sketch, true),
            vec![Arc::new(fingerprints), Arc::new(ids), Arc::new(sketches)],
        );
        writer.write(batch.unwrap()).unwrap();
        Input {
            file: writer.finish().unwrap(),
            rows,
        }
    };
    (0..INPUTS).map(input).collect()
});

/// The settings of the decisions of each day, as the archive records them.
fn decisions() -> DecisionSettings {
    DecisionSettings {
        only_kept: false,
        settings: "k=3".into(),
    }
}

impl Input {
    fn decisions(&self) -> RowDecisions {
        RowDecisions {
            kept: self.rows.iter().map(|row| is_kept(row.0)).collect(),
            settings: decisions(),
        }
    }
}

/// A document in the model: its number in the order of arrival, its row, and the batch that brought it, unless another
/// program did.
#[derive(Debug, Clone)]
struct Document {
    number: u64,
    batch: Option<Batch>,
    row: Row,
}

/// A committed batch in the model.
#[derive(Debug, Clone)]
struct Committed {
    /// The version of the table before the step that committed it: the commits of a batch have different ones.
    base: u64,
    input: usize,
    /// Whether the archive has decisions about it: a run makes some, `archive append` none.
    decided: bool,
    compared_with: HashSet<u64>,
    /// Whether another program put other rows in the place of those of its day.
    is_overwritten: bool,
}

/// What the model was after a step.
#[derive(Debug, Clone)]
struct Past {
    version: u64,
    documents: Vec<Document>,
    committed: BTreeMap<Batch, Committed>,
    unclear: BTreeSet<Batch>,
}

/// What other programs left of a batch, which says what the archive may refuse.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// RESTORE took its files away or brought others back; or neither its files nor the log say which commit they are of.
    is_unclear: bool,
    /// The files of its day have rows of another program alone.
    is_overwritten: bool,
    /// A file of its day does not say which commit its rows are of.
    is_untagged: bool,
    /// The log may no longer say which rows it was compared with.
    is_mixed: bool,
    /// Its day has other batches, or it is committed and has a name.
    is_one_of_several: bool,
}

impl Standing {
    /// Whether nothing says which rows of its day are of the batch.
    fn may_be_mixed(&self) -> bool {
        self.is_untagged && self.is_one_of_several
    }
}

/// A run or an append, for what it may end with.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    batch: Batch,
    input: usize,
    decided: bool,
    replace: bool,
}

/// An archive in memory, and the model of it.
pub struct World {
    store: Arc<InMemory>,
    documents: Vec<Document>,
    committed: BTreeMap<Batch, Committed>,
    /// Batches whose files are not those of their last commit, or removal: another program restored an earlier version.
    unclear: BTreeSet<Batch>,
    count: u64,
    /// Whether another program may have put rows of different commits into one file.
    is_mixed: bool,
    /// The version after the last step.
    version: u64,
    /// The version of the checkpoint that the log begins with, once it was cleaned.
    first: u64,
    past: Vec<Past>,
    foreign: Vec<Path>,
}

type Done<T = ()> = Result<T, String>;

/// An unfinished run: the archive as the run opened it, and the rows that it compared its batch with.
struct Run {
    archive: Archive,
    compared: Vec<Row>,
    /// Whether the run found its batch already committed.
    is_committed: bool,
    scope: Scope,
}

impl World {
    /// A new archive, with two files of somebody else below it.
    pub async fn new() -> Self {
        let mut world = Self {
            store: Arc::new(InMemory::new()),
            documents: Vec::new(),
            committed: BTreeMap::new(),
            unclear: BTreeSet::new(),
            count: 0,
            is_mixed: false,
            version: 0,
            first: 0,
            past: Vec::new(),
            foreign: vec![
                Path::from(format!("{ROOT}/pages/day.parquet")),
                Path::from(format!("{ROOT}/day=2026-01-01/notes.parquet")),
            ],
        };
        let location = world.location(Fault::None).0;
        let (spec, spec_files) = (spec(), SpecFiles::default());
        let defaults = RunDefaults::new(3, None);
        let created = Archive::create(
            &location,
            IdType::String,
            true,
            &spec,
            &spec_files,
            &defaults,
        );
        created.await.unwrap();
        for path in &world.foreign {
            world.store.put(path, "foreign".into()).await.unwrap();
        }
        world.remember().await;
        world
    }

    /// The archive as a new process sees it.
    fn location(&self, fault: Fault) -> (Location, Arc<tokio::sync::Notify>) {
        let faulty = Faulty::new(Arc::clone(&self.store), fault);
        let died = Arc::clone(&faulty.died);
        let stores = Stores::new(StoreOptions {
            deadline: Duration::from_secs(2),
            ..StoreOptions::default()
        });
        stores.register(&Url::parse("s3://model").unwrap(), Arc::new(faulty));
        (stores.locate(&format!("s3://model/{ROOT}")).unwrap(), died)
    }

    async fn open(&self) -> Archive {
        Archive::open(&self.location(Fault::None).0).await.unwrap()
    }

    /// Does `work` in a process with `fault`, and again in a new process without faults if the first died or failed.
    async fn with_fault<T>(
        &self,
        fault: Fault,
        work: impl AsyncFn(Location) -> Result<T, ArchiveError>,
    ) -> Done<T> {
        let (location, died) = self.location(fault);
        let first = tokio::select! {
            done = work(location) => Some(done),
            () = died.notified() => None,
        };
        if let Some(Ok(done)) = first {
            return Ok(done);
        }
        if let (Some(Err(error)), Fault::None) = (&first, fault) {
            return Err(error.to_string());
        }
        // The same command again.
        let done = work(self.location(Fault::None).0).await;
        done.map_err(|error| format!("again: {error}"))
    }

    /// Takes a step, and compares the table with the model.
    pub async fn step(&mut self, step: &Step) -> Done {
        self.take_step(step).await?;
        self.compare().await?;
        self.remember().await;
        Ok(())
    }

    async fn remember(&mut self) {
        self.version = other_program::version(&self.store).await;
        self.past.push(Past {
            version: self.version,
            documents: self.documents.clone(),
            committed: self.committed.clone(),
            unclear: self.unclear.clone(),
        });
    }

    async fn take_step(&mut self, step: &Step) -> Done {
        match step.clone() {
            Step::Run {
                batch,
                input,
                replace,
                fault,
            } => self.run(batch, input, replace, fault).await?,
            Step::Append { day, input, fault } => self.append(day, input, fault).await?,
            Step::Rerun { batch } => self.rerun(batch, true).await?,
            Step::RerunWithoutDay { day } => self.rerun((day, None), false).await?,
            Step::Race { one, other } => self.race(one, other).await?,
            Step::RemoveDay { day, fault } => {
                let work = async |location: Location| {
                    Archive::open(&location)
                        .await?
                        .remove_day(date(day), None)
                        .await
                };
                self.with_fault(fault, work).await?;
                let name = date(day).to_string();
                self.documents
                    .retain(|document| document.row.2.as_ref() != Some(&name));
                self.committed.retain(|batch, _| batch.0 != day);
                self.unclear.retain(|batch| batch.0 != day);
            }
            Step::RemoveBatch { batch, fault } => self.remove_batch(batch, fault).await?,
            Step::RemoveIds { input, fault } => {
                let ids: Vec<&String> = INPUT[input].rows.iter().map(|row| &row.1).collect();
                let two: BTreeSet<String> = ids.into_iter().take(2).cloned().collect();
                let set = IdSet::Strings(two.iter().cloned().collect());
                let work = async |location: Location| {
                    Archive::open(&location).await?.remove_ids(&set).await
                };
                self.with_fault(fault, work).await?;
                self.delete(&two);
            }
            Step::Compact { fault } => {
                let work =
                    async |location: Location| Archive::open(&location).await?.compact(None).await;
                self.with_fault(fault, work).await?;
            }
            Step::RacingCompactions => {
                let (mut one, mut other) = (self.open().await, self.open().await);
                let (one, other) = tokio::join!(one.compact(None), other.compact(None));
                for done in [one, other] {
                    match done {
                        Ok(_) | Err(ArchiveError::Busy { .. }) => {}
                        // The other compaction merged the same files.
                        Err(ArchiveError::CompactionOvertaken {
                            operation: Some(operation),
                            attempts: 1,
                            ..
                        }) if operation == "OPTIMIZE" => {}
                        Err(error) => return Err(error.to_string()),
                    }
                }
            }
            Step::Vacuum => {
                let vacuum = Vacuum {
                    older_than: Duration::ZERO,
                    dry_run: false,
                    nothing_runs: true,
                };
                let vacuumed = self.open().await.vacuum(vacuum).await;
                vacuumed.map_err(|error| error.to_string())?;
            }
            Step::OtherOptimize { day } => {
                self.is_mixed |= self.has_several_commits(day);
                let day = date(day).to_string();
                OtherProgram(&self.store).optimize(&day).await;
            }
            Step::OtherDelete { input } => {
                if let Some(row) = INPUT[input].rows.first() {
                    OtherProgram(&self.store).delete(&row.1).await;
                    self.delete(&BTreeSet::from([row.1.clone()]));
                }
            }
            Step::OtherDeletesByVector { input } => self.delete_by_vector(input).await?,
            Step::OtherAppend { day, input } => self.other_append(day, input).await,
            Step::RunWhileOtherAppends { day, input, to } => {
                let run = self
                    .begin(Some((day, None)), input, Some(Existing::Keep))
                    .await;
                let Ok(run) = run else { return Ok(()) };
                self.other_append(to, input).await;
                self.end(run, day, input, Existing::Keep).await?;
            }
            Step::OtherRestores { back } => self.restore(back).await,
            Step::OtherOverwritesDay { day, input } => self.overwrite(day, input).await,
            Step::OtherCheckpoints => other_program::checkpoint(&self.store).await,
            Step::LastCheckpointLies { lie } => self.lie(lie).await?,
            Step::OtherCleansLog => {
                if let Some(first) = other_program::clean_log(&self.store).await {
                    self.first = first;
                    self.past.retain(|past| past.version >= first);
                }
            }
        }
        Ok(())
    }

    /// All rows of the model, sorted.
    fn rows(&self) -> Vec<Row> {
        sorted(self.documents.iter().map(|document| document.row.clone()))
    }

    /// Checks that the table has the model's rows, and that the files of somebody else are still there.
    async fn compare(&self) -> Done {
        let expected = self.rows();
        let found = other_program::rows(&self.store).await;
        if found != expected {
            return Err(format!("the table has {found:?}, the model {expected:?}"));
        }
        for path in &self.foreign {
            if self.store.head(path).await.is_err() {
                return Err(format!("{path} is gone"));
            }
        }
        Ok(())
    }

    /// Deletes a document by a deletion vector, and then purges it. Before the purge, the archive
    /// must either refuse the table, or read it without the document; then a compaction must not
    /// bring the document back.
    async fn delete_by_vector(&mut self, input: usize) -> Done {
        let Some((_, id)) = INPUT[input].rows.first() else {
            return Ok(());
        };
        let other = OtherProgram(&self.store);
        other.delete_by_vector(id).await;
        self.documents.retain(|document| document.row.1 != *id);
        let read = async {
            let archive = Archive::open(&self.location(Fault::None).0).await?;
            let mut run = compared_with(archive, None, 0, None).await?;
            run.archive.compact(None).await?;
            Ok::<_, ArchiveError>(run.compared)
        };
        match read.await {
            Ok(found) if found == self.rows() => {}
            Ok(found) => return Err(format!("deleted documents were read: {found:?}")),
            Err(error) => expect(&error.to_string(), "deletionVectors")?,
        }
        self.compare().await?;
        other.purge().await;
        Ok(())
    }

    /// Takes documents out of the model that were deleted in one commit.
    fn delete(&mut self, ids: &BTreeSet<String>) {
        let mut rewritten: BTreeMap<Option<String>, BTreeSet<Option<Batch>>> = BTreeMap::new();
        for document in &self.documents {
            if ids.contains(&document.row.1) {
                let of_day = rewritten.entry(document.row.2.clone()).or_default();
                of_day.insert(document.batch);
            }
        }
        // The log no longer says which new file of the day has the rest of which old one.
        self.is_mixed |= rewritten.values().any(|batches| batches.len() > 1);
        self.documents
            .retain(|document| !ids.contains(&document.row.1));
    }

    /// Whether a rewrite of the day's files puts rows of several commits into one.
    fn has_several_commits(&self, day: usize) -> bool {
        let name = date(day).to_string();
        let rows = self.documents.iter();
        let rows = rows.filter(|document| document.row.2.as_ref() == Some(&name));
        let mut commits: BTreeSet<Option<Batch>> = rows.map(|document| document.batch).collect();
        let committed = self.committed.keys().filter(|batch| batch.0 == day);
        commits.extend(committed.copied().map(Some));
        commits.len() > 1 || commits.contains(&None)
    }

    fn add(&mut self, day: Option<usize>, batch: Option<Batch>, rows: &[(i64, String)]) {
        for (fingerprint, id) in rows {
            self.count += 1;
            self.documents.push(Document {
                number: self.count,
                batch,
                row: (
                    *fingerprint,
                    id.clone(),
                    day.map(|day| date(day).to_string()),
                ),
            });
        }
    }

    /// Takes a batch out of the model, in whose place the archive has the rows `new`. Of the rows on its day that are of no
    /// batch, those go that the archive removed, too.
    async fn take(&mut self, batch: Batch, new: &[(i64, String)]) {
        let day = Some(date(batch.0).to_string());
        let is_of_none = |document: &Document| {
            let of = document.batch;
            document.row.2 == day && of.is_none_or(|of| !self.committed.contains_key(&of))
        };
        let others = self.documents.iter().cloned();
        let others = others.filter(|document| document.batch != Some(batch));
        let (of_none, mut documents): (Vec<_>, Vec<_>) = others.partition(is_of_none);
        let mut found = other_program::rows(&self.store).await;
        for document in &documents {
            take_row(&mut found, &document.row);
        }
        for (fingerprint, id) in new {
            take_row(&mut found, &(*fingerprint, id.clone(), day.clone()));
        }
        let still = of_none.into_iter();
        documents.extend(still.filter(|document| take_row(&mut found, &document.row)));
        self.documents = documents;
    }

    async fn remove_batch(&mut self, batch: Batch, fault: Fault) -> Done {
        let DayBatch { day, name } = day_batch(batch);
        let work = async |location: Location| {
            let mut archive = Archive::open(&location).await?;
            archive.remove_day(day, Some(name)).await
        };
        let standing = self.standing(batch).await;
        match self.with_fault(fault, work).await {
            Err(error) if standing.may_be_mixed() => {
                return expect(&error, "wrote files of day");
            }
            removed => removed?,
        };
        self.take(batch, &[]).await;
        self.committed.remove(&batch);
        self.unclear.remove(&batch);
        Ok(())
    }

    /// What other programs left of the batch.
    async fn standing(&self, batch: Batch) -> Standing {
        let committed = self.committed.get(&batch);
        let untagged = other_program::untagged(&self.store).await;
        let is_untagged = untagged.contains(&Some(date(batch.0).to_string()));
        let is_overwritten = committed.is_some_and(|committed| committed.is_overwritten);
        let is_forgotten = committed.is_some_and(|committed| committed.base < self.first);
        let is_unclear =
            self.unclear.contains(&batch) || (is_forgotten && is_untagged && !is_overwritten);
        Standing {
            is_unclear,
            is_overwritten: is_overwritten && !is_unclear,
            is_untagged,
            is_mixed: is_unclear || self.is_mixed || (is_forgotten && !untagged.is_empty()),
            is_one_of_several: self
                .committed
                .keys()
                .any(|other| other.0 == batch.0 && (*other != batch || batch.1.is_some())),
        }
    }

    /// Another program makes the table what it was `back` steps ago. It does not bring back what Delta remembers of commits
    /// (`txn`): a batch that was committed or removed since is not what its files say.
    async fn restore(&mut self, back: usize) {
        let Some(past) = self.past.iter().rev().nth(back).cloned() else {
            return;
        };
        if !OtherProgram(&self.store).restore(past.version).await {
            return;
        }
        let mut unclear = past.unclear;
        let batches: BTreeSet<Batch> = past
            .committed
            .keys()
            .chain(self.committed.keys())
            .copied()
            .collect();
        for batch in batches {
            match (past.committed.get(&batch), self.committed.get_mut(&batch)) {
                (Some(then), Some(now)) if then.base == now.base => {
                    now.is_overwritten = then.is_overwritten;
                }
                _ => {
                    unclear.insert(batch);
                }
            }
        }
        self.unclear = unclear;
        self.documents = past.documents;
    }

    async fn overwrite(&mut self, day: usize, input: usize) {
        // As many as a run commits, but others.
        let rows = INPUT[input].rows.iter();
        let rows: Vec<(i64, String)> = rows
            .map(|row| (row.0 ^ 2, format!("over-{}", row.1)))
            .collect();
        if rows.is_empty() {
            return;
        }
        let name = date(day).to_string();
        OtherProgram(&self.store).overwrite(&name, &rows).await;
        let before = self.documents.len();
        self.documents
            .retain(|document| document.row.2.as_ref() != Some(&name));
        self.unclear.retain(|batch| batch.0 != day);
        self.is_mixed |= self.documents.len() < before;
        for (batch, committed) in &mut self.committed {
            if batch.0 == day {
                committed.is_overwritten = true;
                self.is_mixed = true;
            }
        }
        self.add(Some(day), None, &rows);
    }

    async fn lie(&self, lie: Lie) -> Done {
        let hint = other_program::hint();
        let text = match lie {
            Lie::Missing => {
                let _ = self.store.delete(&hint).await;
                return Ok(());
            }
            Lie::Garbage => "PAR1{".to_owned(),
            Lie::NoCheckpoint => format!(r#"{{"version":{},"size":1}}"#, self.version + 1),
        };
        self.store.put(&hint, text.into()).await.unwrap();
        if lie == Lie::NoCheckpoint && self.first > 0 {
            // Not all entries are there: the archive may be refused as damaged, until somebody mends the hint.
            let opened = Archive::open(&self.location(Fault::None).0).await;
            self.store.delete(&hint).await.unwrap();
            if let Err(error) = opened
                && error.kind() != ErrorKind::Data
            {
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    async fn other_append(&mut self, day: Option<usize>, input: usize) {
        // None of the input's own documents.
        let rows: Vec<(i64, String)> = INPUT[input]
            .rows
            .iter()
            .take(2)
            .map(|row| (row.0 ^ 1, format!("other-{}", row.1)))
            .collect();
        if rows.is_empty() {
            return;
        }
        let name = day.map(|day| date(day).to_string());
        OtherProgram(&self.store)
            .append(name.as_deref(), &rows)
            .await;
        self.add(day, None, &rows);
    }

    /// Opens the archive, and reads what a run of the input would be compared with.
    async fn begin(
        &self,
        batch: Option<Batch>,
        input: usize,
        commit: Option<Existing>,
    ) -> Result<Run, ArchiveError> {
        let archive = self.open().await;
        compared_with(archive, batch, input, commit).await
    }

    /// Commits a run, and records it in the model. Compares its day again each time that another
    /// commit comes first.
    async fn end(&mut self, run: Run, day: usize, input: usize, existing: Existing) -> Done {
        let text = |error: ArchiveError| error.to_string();
        let file = &INPUT[input].file;
        let mut run = run;
        if run.is_committed {
            return Ok(());
        }
        let staged = run
            .archive
            .stage(date(day), file, Some(&INPUT[input].decisions()))
            .await
            .map_err(text)?;
        loop {
            match run.archive.commit(&staged, existing).await {
                Ok(Append::Committed(_)) => break,
                Ok(Append::AlreadyThere) => return Ok(()),
                Ok(Append::Overtaken) => {
                    let again =
                        compared_with(run.archive, Some((day, None)), input, Some(existing));
                    run = match again.await {
                        Ok(run) => run,
                        Err(
                            ArchiveError::DayDiffers { .. } | ArchiveError::DecisionsDiffer { .. },
                        ) => return Ok(()),
                        Err(error) => return Err(text(error)),
                    };
                    if run.is_committed {
                        return Ok(());
                    }
                }
                Err(
                    ArchiveError::DayDiffers { .. }
                    | ArchiveError::DecisionsDiffer { .. }
                    | ArchiveError::ForeignRows { .. },
                ) => {
                    return Ok(());
                }
                Err(error) => return Err(text(error)),
            }
        }
        if let Scope::Without(_) = run.scope {
            self.take((day, None), &INPUT[input].rows).await;
        }
        self.record((day, None), input, true, &run.compared)
    }

    /// Records a committed batch in the model; it must have been compared with all of the model's rows.
    fn record(&mut self, batch: Batch, input: usize, decided: bool, compared: &[Row]) -> Done {
        let expected = self.rows();
        if *compared != expected {
            return Err(format!(
                "{batch:?} was compared with {compared:?} of {expected:?}"
            ));
        }
        let compared_with = self
            .documents
            .iter()
            .map(|document| document.number)
            .collect();
        self.add(Some(batch.0), Some(batch), &INPUT[input].rows);
        let committed = Committed {
            base: self.version,
            input,
            decided,
            compared_with,
            is_overwritten: false,
        };
        self.committed.insert(batch, committed);
        self.unclear.remove(&batch);
        Ok(())
    }

    /// A run with `--append`, from open to commit: in one process, or in one that dies and one that starts again.
    async fn run(&mut self, batch: Batch, input: usize, replace: bool, fault: Fault) -> Done {
        let existing = if replace {
            Existing::Replace
        } else {
            Existing::Keep
        };
        let work = async |location: Location| {
            // So that a batch has several files, which a compaction merges.
            let archive = Archive::open(&location).await?.with_file_rows(2);
            let mut run = compared_with(archive, Some(batch), input, Some(existing)).await?;
            if run.is_committed {
                return Ok(None);
            }
            run.archive.preflight().await?;
            let staged = run
                .archive
                .stage(
                    day_batch(batch),
                    &INPUT[input].file,
                    Some(&INPUT[input].decisions()),
                )
                .await?;
            match run.archive.commit(&staged, existing).await? {
                Append::Committed(_) => Ok(Some(run.compared)),
                Append::AlreadyThere => Ok(None),
                Append::Overtaken => unreachable!("nobody else commits"),
            }
        };
        let standing = self.standing(batch).await;
        let done = self.with_fault(fault, work).await;
        let attempt = Attempt {
            batch,
            input,
            decided: true,
            replace,
        };
        self.settle(attempt, standing, done).await
    }

    async fn append(&mut self, day: usize, input: usize, fault: Fault) -> Done {
        let file = &INPUT[input].file;
        let work = async |location: Location| {
            let mut archive = Archive::open(&location).await?;
            archive.append(date(day), file, Existing::Keep).await
        };
        let standing = self.standing((day, None)).await;
        let done = self.with_fault(fault, work).await;
        let attempt = Attempt {
            batch: (day, None),
            input,
            decided: false,
            replace: false,
        };
        self.settle(attempt, standing, done.map(|_| None)).await
    }

    /// Checks what a run or an append ended with, and records what it committed. `done` has the rows with which it compared
    /// its batch, if it says them.
    async fn settle(
        &mut self,
        attempt: Attempt,
        standing: Standing,
        done: Done<Option<Vec<Row>>>,
    ) -> Done {
        let Attempt {
            batch,
            input,
            decided,
            replace,
        } = attempt;
        let before = self.committed.get(&batch);
        let is_same = before.is_some_and(|before| {
            before.input == input && (before.decided || !decided) && !standing.is_overwritten
        });
        // Files of other programs count as the batch without a name.
        let is_foreign = before.is_none() && batch.1.is_none() && standing.is_untagged;
        let compared = match done {
            Ok(compared) => compared,
            Err(error) => {
                let differs = !replace && !standing.is_overwritten;
                let refusals = [
                    (
                        "with other content",
                        differs && before.is_some_and(|before| before.input != input),
                    ),
                    (
                        "without decisions",
                        differs && before.is_some_and(|before| !before.decided) && decided,
                    ),
                    (
                        "another program wrote",
                        !replace && (is_foreign || standing.is_overwritten || standing.is_unclear),
                    ),
                    ("no longer says which rows", is_same && standing.is_mixed),
                    // The remedy that the message names must be one.
                    (
                        "(RESTORE)",
                        standing.is_unclear && !(replace && error.contains("--replace-day")),
                    ),
                    ("wrote files of day", replace && standing.may_be_mixed()),
                ];
                let is_expected = |(part, may): &(&str, bool)| *may && error.contains(*part);
                return if refusals.iter().any(is_expected) {
                    Ok(())
                } else {
                    Err(error)
                };
            }
        };
        if other_program::version(&self.store).await == self.version {
            return if is_same {
                Ok(())
            } else {
                Err(format!("{batch:?} was found committed"))
            };
        }
        let has_rows = self
            .documents
            .iter()
            .any(|document| document.batch == Some(batch));
        let may_commit = if replace {
            standing.is_unclear || !is_same
        } else {
            before.is_none() && !is_foreign && !has_rows
        };
        if !may_commit {
            return Err(format!("{batch:?} was committed over other rows"));
        }
        if replace {
            self.take(batch, &INPUT[input].rows).await;
        }
        // A process that died after its commit returns nothing; it was compared with the same rows.
        let compared = compared.unwrap_or_else(|| self.rows());
        self.record(batch, input, decided, &compared)
    }

    /// Runs a committed batch's input again, with or without its name: the run must find it committed, and compare it with
    /// the same rows, less those that were removed since.
    async fn rerun(&mut self, batch: Batch, is_named: bool) -> Done {
        let Some(committed) = self.committed.get(&batch) else {
            return Ok(());
        };
        if !is_named {
            // The digest names no single batch if the input has no documents, or if several batches have it.
            let same = self
                .committed
                .values()
                .filter(|other| other.input == committed.input);
            if committed.input == 0 || same.count() > 1 {
                return Ok(());
            }
        }
        let standing = self.standing(batch).await;
        let may_refuse = standing.is_unclear || standing.is_overwritten;
        let run = self
            .begin(is_named.then_some(batch), committed.input, None)
            .await;
        let run = match run {
            Err(ArchiveError::Rewritten { .. }) if standing.is_mixed => return Ok(()),
            Err(ArchiveError::ForeignTable { .. } | ArchiveError::ForeignRows { .. })
                if may_refuse || (!is_named && !self.unclear.is_empty()) =>
            {
                return Ok(());
            }
            run => run.map_err(|error| error.to_string())?,
        };
        if !run.is_committed && !is_named && may_refuse {
            return Ok(());
        }
        if run.is_committed && standing.is_overwritten {
            return Err("rows of another program count as committed".into());
        }
        if !run.is_committed {
            return Err("it is not recognised as committed".into());
        }
        if committed.input == 0 && standing.is_unclear {
            // Nothing is compared.
            return Ok(());
        }
        let there = self.documents.iter();
        let same = there.filter(|document| committed.compared_with.contains(&document.number));
        let expected = sorted(same.map(|document| document.row.clone()));
        if run.compared == expected {
            Ok(())
        } else {
            Err(format!(
                "the rerun was compared with {:?}, the day with {expected:?}",
                run.compared
            ))
        }
    }

    /// Two runs that open the archive at the same version, and then commit one after the other.
    async fn race(&mut self, one: (usize, usize), other: (usize, usize)) -> Done {
        let begin = async |world: &Self, (day, input): (usize, usize)| {
            world
                .begin(Some((day, None)), input, Some(Existing::Keep))
                .await
                .ok()
        };
        let runs = (begin(self, one).await, begin(self, other).await);
        if let Some(run) = runs.0 {
            self.end(run, one.0, one.1, Existing::Keep).await?;
        }
        if let Some(run) = runs.1 {
            self.end(run, other.0, other.1, Existing::Keep).await?;
        }
        Ok(())
    }
}

/// Takes one row that is equal to `row` out of the rows, and says whether there was one.
fn take_row(rows: &mut Vec<Row>, row: &Row) -> bool {
    match rows.iter().position(|other| other == row) {
        Some(at) => {
            rows.swap_remove(at);
            true
        }
        None => false,
    }
}

/// Fails unless the error contains `part`.
fn expect(error: &str, part: &str) -> Done {
    if error.contains(part) {
        Ok(())
    } else {
        Err(error.to_owned())
    }
}

fn sorted(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.collect();
    rows.sort();
    rows
}

/// Opens the archive for a run of the input, and reads the rows that the probe would compare it with.
async fn compared_with(
    archive: Archive,
    batch: Option<Batch>,
    input: usize,
    commit: Option<Existing>,
) -> Result<Run, ArchiveError> {
    let (scope, committed) = archive
        .scope_for(
            batch.map(day_batch),
            &INPUT[input].file,
            commit,
            Some(&decisions()),
        )
        .await?;
    let snapshot = Snapshot::open_archive(&archive, scope).await?;
    let mut rows = Vec::new();
    for file in &snapshot.files {
        let pages = file.reader.row_pages().await?;
        for group in 0..file.reader.row_groups().len() {
            let mut fingerprints = Vec::new();
            let encoded = file.reader.fetch(group).await?;
            let mut step = DecodedStep::default();
            file.reader.decode(group, encoded, &mut step, |step| {
                fingerprints.extend_from_slice(step.values());
                true
            })?;
            let all: Vec<u32> = (0..fingerprints.len() as u32).collect();
            if all.is_empty() {
                continue;
            }
            let columns = RowColumns {
                sketch: spec().sketch,
                kept: true,
            };
            let read = file.reader.rows(&pages, group, &all, columns);
            let ReadRows {
                ids,
                sketches,
                kept,
            } = read.await?;
            for (fingerprint, kept) in fingerprints.iter().zip(&kept) {
                let expected = is_kept(fingerprint.cast_signed());
                assert!(
                    kept.is_none_or(|kept| kept == expected),
                    "the decision on another row"
                );
            }
            for (fingerprint, sketch) in fingerprints.iter().zip(&sketches) {
                let expected = sketch_of(fingerprint.cast_signed());
                assert_eq!(
                    sketch,
                    Some(expected.as_slice()),
                    "the sketch of another row"
                );
            }
            let ids = ids
                .as_string::<i32>()
                .iter()
                .map(|id| id.unwrap().to_owned());
            let day = file.day.map(|day| day.to_string());
            rows.extend(
                fingerprints
                    .into_iter()
                    .zip(ids)
                    .map(|(fp, id)| (fp.cast_signed(), id, day.clone())),
            );
        }
    }
    Ok(Run {
        archive,
        compared: sorted(rows.into_iter()),
        is_committed: committed.is_some(),
        scope,
    })
}
