//! The archive and its model, side by side.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use archive::fingerprint_file::FingerprintWriter;
use archive::{
    Append, Archive, ArchiveError, DecisionSettings, DecodedStep, Existing, FingerprintFile, IdSet,
    IdType, ReadRows, RowColumns, RowDecisions, RunDefaults, Scope, Snapshot, SpecFiles, Vacuum,
};
use arrow::array::{AsArray as _, BinaryArray, Int64Array, RecordBatch, StringArray};
use chrono::NaiveDate;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use simhash::{SketchBits, Spec};
use storage::{Location, StoreOptions, Stores};
use url::Url;

use super::other_program::{self, OtherProgram, ROOT, Row};
use super::step::{INPUTS, Step};
use super::store::{Fault, Faulty};

/// The date of a day.
fn date(day: usize) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1 + day as u32).unwrap()
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
    /// The decisions about its rows.
    fn decisions(&self) -> RowDecisions {
        RowDecisions {
            kept: self.rows.iter().map(|row| is_kept(row.0)).collect(),
            settings: decisions(),
        }
    }
}

/// A document in the model: its number in the order of arrival, and its row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Document {
    number: u64,
    row: Row,
}

/// A committed day in the model.
#[derive(Debug, Clone)]
struct Committed {
    input: usize,
    /// Whether the archive has decisions about it: a run makes some, `archive append` none.
    decided: bool,
    compared_with: HashSet<u64>,
}

/// An archive in memory, and the model of it.
pub struct World {
    store: Arc<InMemory>,
    documents: Vec<Document>,
    committed: BTreeMap<usize, Committed>,
    count: u64,
    /// Whether another program may have put rows of different commits into one file.
    is_mixed: bool,
    foreign: Vec<Path>,
}

type Done<T = ()> = Result<T, String>;

/// An unfinished run: the archive as the run opened it, and the rows that it compared its day with.
struct Run {
    archive: Archive,
    compared: Vec<Row>,
    /// Whether the run found its day already committed.
    is_committed: bool,
    scope: Scope,
}

impl World {
    /// A new archive, with two files of somebody else below it.
    pub async fn new() -> Self {
        let world = Self {
            store: Arc::new(InMemory::new()),
            documents: Vec::new(),
            committed: BTreeMap::new(),
            count: 0,
            is_mixed: false,
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
        match step.clone() {
            Step::Run {
                day,
                input,
                replace,
                fault,
            } => self.run(day, input, replace, fault).await?,
            Step::Append { day, input, fault } => self.append(day, input, fault).await?,
            Step::Rerun { day } => self.rerun(day, Some(date(day))).await?,
            Step::RerunWithoutDay { day } => self.rerun(day, None).await?,
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
                self.committed.remove(&day);
            }
            Step::RemoveIds { input, fault } => {
                let ids: Vec<&String> = INPUT[input].rows.iter().map(|row| &row.1).collect();
                let two: BTreeSet<String> = ids.into_iter().take(2).cloned().collect();
                let set = IdSet::Strings(two.iter().cloned().collect());
                let work = async |location: Location| {
                    Archive::open(&location).await?.remove_ids(&set).await
                };
                self.with_fault(fault, work).await?;
                self.documents
                    .retain(|document| !two.contains(&document.row.1));
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
                self.is_mixed |= self.has_foreign_rows(day);
                let day = date(day).to_string();
                OtherProgram(&self.store).optimize(&day).await;
            }
            Step::OtherDelete { input } => {
                if let Some(row) = INPUT[input].rows.first() {
                    OtherProgram(&self.store).delete(&row.1).await;
                    self.documents.retain(|document| document.row.1 != row.1);
                }
            }
            Step::OtherDeletesByVector { input } => self.delete_by_vector(input).await?,
            Step::OtherAppend { day, input } => self.other_append(day, input).await,
            Step::RunWhileOtherAppends { day, input, to } => {
                let run = self
                    .begin(Some(date(day)), input, Some(Existing::Keep))
                    .await;
                let Ok(run) = run else { return Ok(()) };
                self.other_append(to, input).await;
                self.end(run, day, input, Existing::Keep).await?;
            }
        }
        self.compare().await
    }

    /// Checks that the table has the model's rows, and that the files of somebody else are still there.
    async fn compare(&self) -> Done {
        let mut expected: Vec<Row> = self
            .documents
            .iter()
            .map(|document| document.row.clone())
            .collect();
        expected.sort();
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
            Ok(found)
                if found == sorted(self.documents.iter().map(|document| document.row.clone())) => {}
            Ok(found) => return Err(format!("deleted documents were read: {found:?}")),
            Err(error) => expect(&error.to_string(), "deletionVectors")?,
        }
        self.compare().await?;
        other.purge().await;
        Ok(())
    }

    /// Whether the day has rows that its commit did not write.
    fn has_foreign_rows(&self, day: usize) -> bool {
        let name = date(day).to_string();
        let rows = self
            .documents
            .iter()
            .filter(|document| document.row.2.as_ref() == Some(&name));
        let input = self.committed.get(&day).map(|committed| committed.input);
        let own = input.map(|input| &INPUT[input].rows);
        let count = rows.clone().count();
        own.is_none_or(|own| count > own.len())
            || rows.into_iter().any(|document| {
                own.is_some_and(|own| {
                    !own.iter()
                        .any(|row| row.0 == document.row.0 && row.1 == document.row.1)
                })
            })
            || has_repeated_rows(&self.documents, &name)
    }

    fn add(&mut self, day: Option<usize>, rows: &[(i64, String)]) {
        for (fingerprint, id) in rows {
            self.count += 1;
            self.documents.push(Document {
                number: self.count,
                row: (
                    *fingerprint,
                    id.clone(),
                    day.map(|day| date(day).to_string()),
                ),
            });
        }
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
        self.add(day, &rows);
    }

    /// Opens the archive, and reads what a run of the input would be compared with.
    async fn begin(
        &self,
        day: Option<NaiveDate>,
        input: usize,
        commit: Option<Existing>,
    ) -> Result<Run, ArchiveError> {
        let archive = self.open().await;
        compared_with(archive, day, input, commit).await
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
                    let again = compared_with(run.archive, Some(date(day)), input, Some(existing));
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
        let name = date(day).to_string();
        if let Scope::Without(_) = run.scope {
            self.documents
                .retain(|document| document.row.2.as_ref() != Some(&name));
        }
        self.record(day, input, true, &run.compared)
    }

    /// Records a committed day in the model; the day must have been compared with all of the model's rows.
    fn record(&mut self, day: usize, input: usize, decided: bool, compared: &[Row]) -> Done {
        let expected: Vec<Row> = sorted(self.documents.iter().map(|document| document.row.clone()));
        if *compared != expected {
            return Err(format!(
                "day {day} was compared with {compared:?} of {expected:?}"
            ));
        }
        let compared_with = self
            .documents
            .iter()
            .map(|document| document.number)
            .collect();
        self.add(Some(day), &INPUT[input].rows);
        let committed = Committed {
            input,
            decided,
            compared_with,
        };
        self.committed.insert(day, committed);
        Ok(())
    }

    /// A run with `--append`, from open to commit: in one process, or in one that dies and one that starts again.
    async fn run(&mut self, day: usize, input: usize, replace: bool, fault: Fault) -> Done {
        let existing = if replace {
            Existing::Replace
        } else {
            Existing::Keep
        };
        let work = async |location: Location| {
            let archive = Archive::open(&location).await?;
            let mut run = compared_with(archive, Some(date(day)), input, Some(existing)).await?;
            if run.is_committed {
                return Ok(None);
            }
            run.archive.preflight().await?;
            let staged = run
                .archive
                .stage(
                    date(day),
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
        let before = self.committed.get(&day);
        let before = before.map(|committed| (committed.input, committed.decided));
        let is_unknown = before.is_none() && self.has_rows(day);
        let done = self.with_fault(fault, work).await;
        let same = (input, true);
        match (before, done) {
            (Some(before), Ok(_)) if before == same => Ok(()),
            // Another program put rows of different commits into one file: the run fails and changes nothing.
            (Some(before), Err(error)) if before == same && self.is_mixed => {
                expect(&error, "no longer says which rows")
            }
            (Some((before, false)), Err(error)) if before == input && !replace => {
                expect(&error, "without decisions")
            }
            (Some(_), Err(error)) if !replace => expect(&error, "with other content"),
            (None, Err(error)) if is_unknown && !replace => expect(&error, "another program wrote"),
            (_, Err(error)) => Err(error),
            (Some(_), Ok(_)) if !replace => Err("another day of that date was committed".into()),
            (None, Ok(_)) if is_unknown && !replace => {
                Err("a day with rows of another program was committed".into())
            }
            (_, Ok(compared)) => {
                let name = date(day).to_string();
                self.documents
                    .retain(|document| document.row.2.as_ref() != Some(&name));
                let all = sorted(self.documents.iter().map(|document| document.row.clone()));
                // A process that died after its commit returns nothing; it was compared with the same rows.
                self.record(day, input, true, &compared.unwrap_or(all))
            }
        }
    }

    fn has_rows(&self, day: usize) -> bool {
        let name = date(day).to_string();
        self.documents
            .iter()
            .any(|document| document.row.2.as_ref() == Some(&name))
    }

    async fn append(&mut self, day: usize, input: usize, fault: Fault) -> Done {
        let file = &INPUT[input].file;
        let work = async |location: Location| {
            let mut archive = Archive::open(&location).await?;
            archive.append(date(day), file, Existing::Keep).await
        };
        let before = self.committed.get(&day).map(|committed| committed.input);
        let is_unknown = before.is_none() && self.has_rows(day);
        match (before, self.with_fault(fault, work).await) {
            (Some(before), Ok(_)) if before == input => Ok(()),
            (Some(_), Err(error)) => expect(&error, "with other content"),
            (None, Err(error)) if is_unknown => expect(&error, "another program wrote"),
            (None, Ok(_)) if !is_unknown => {
                let all = sorted(self.documents.iter().map(|document| document.row.clone()));
                self.record(day, input, false, &all)
            }
            (_, done) => Err(format!("{done:?}")),
        }
    }

    /// Runs a committed day's input again: the run must find it committed, and compare it with the same rows, less
    /// those that were removed since.
    async fn rerun(&mut self, day: usize, asked: Option<NaiveDate>) -> Done {
        let Some(committed) = self.committed.get(&day) else {
            return Ok(());
        };
        if asked.is_none() {
            // The digest names no single day if the input has no documents, or if several days have it.
            let same = self
                .committed
                .values()
                .filter(|day| day.input == committed.input);
            if committed.input == 0 || same.count() > 1 {
                return Ok(());
            }
        }
        let run = self.begin(asked, committed.input, None).await;
        let run = match run {
            Err(ArchiveError::Rewritten { .. }) if self.is_mixed => return Ok(()),
            run => run.map_err(|error| error.to_string())?,
        };
        if !run.is_committed {
            return Err("it is not recognised as committed".into());
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
                .begin(Some(date(day)), input, Some(Existing::Keep))
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

/// Whether the day has a row twice.
fn has_repeated_rows(documents: &[Document], day: &str) -> bool {
    let rows = documents
        .iter()
        .filter(|document| document.row.2.as_deref() == Some(day));
    let all: Vec<&Row> = rows.map(|document| &document.row).collect();
    let different: BTreeSet<&Row> = all.iter().copied().collect();
    different.len() < all.len()
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
    day: Option<NaiveDate>,
    input: usize,
    commit: Option<Existing>,
) -> Result<Run, ArchiveError> {
    let (scope, committed) = archive
        .scope_for(
            day.map(Into::into),
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
