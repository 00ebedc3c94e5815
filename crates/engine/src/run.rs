//! The nightly job, from documents to hits, and the commit of the day.
//!
//! The order matters: hits are complete on the disk before the day is committed, and get their name after it.
//! A run that fails anywhere leaves the archive and an earlier output as they were; a run that dies between
//! commit and name is made good by the next, which finds the day committed, computes the same hits against
//! the archive as it was before the day, and names them.
//!
//! A day is committed behind the days that it was compared with. If others come first, it is compared again, with them
//! too, so that of two days that run at the same time one is compared with the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use archive::{Append, Archive, Base, BaseColumns, IdType, Location, Scope, Stores};
use chrono::NaiveDate;
use datafusion::prelude::SessionContext;
use hamming::{Kernel, Plan};
use serde::Serialize;
use simhash::{Measure, Model, Spec};

use crate::cluster::{Cluster, ClusterSummary, Fingerprinting};
use crate::day::{self, Day};
use crate::documents::{Columns, Documents};
use crate::draft::Draft;
use crate::error::{EngineError, Result};
use crate::output;
use crate::probe::{BatchName, Probe, ProbeNode, hits_schema};
use crate::progress::Stage;
use crate::recipe::{Recipe, Wanted};
use crate::reduce::reduce;
use crate::resources::{Resources, free};
use crate::stream;
use crate::verify::{self, Origin, Verified, Verifier, Verify, verified_schema};
use crate::work;

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// Files, directories or patterns of the new day.
    pub new: Vec<String>,
    /// The archive, or plain Parquet files of fingerprints.
    pub base: String,
    /// Where the hits go.
    pub output: Location,
    /// Pairs up to this many bits apart are hits.
    pub max_distance: u32,
    /// Whether pairs inside the new day are hits too.
    pub within: bool,
    /// Whether to commit the day.
    pub append: bool,
    /// Rows of a data file of the archive at most, where that is asked for.
    pub rows_per_file: Option<u64>,
    /// The day.
    pub day: Option<NaiveDate>,
    /// Where to keep the day's fingerprints.
    pub fingerprints: Option<Location>,
    /// Columns of the new day, and of plain base files.
    pub columns: Columns,
    /// Design of the tables; chosen by cost where there is none.
    pub design: Option<String>,
    /// Hits of a new document, at most: the nearest ones.
    pub max_hits: Option<u32>,
    /// How hits are verified against the texts, if they are.
    pub verify: Option<Verify>,
    /// What is asked for of the fingerprints.
    pub wanted: Wanted,
    /// Directory for files in between; it must exist.
    pub scratch: PathBuf,
    /// The cluster that does the maps; without one this process does.
    pub cluster: Option<Arc<dyn Cluster>>,
}

/// What a run did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The new day.
    pub new: NewSummary,
    /// The history.
    pub base: BaseSummary,
    /// Pairs within this distance were found.
    pub max_distance: u32,
    /// Design of the tables.
    pub design: String,
    /// Parts that the new day was cut into, and passes over the history.
    pub passes: u32,
    /// Instructions that the probe used.
    pub kernel: &'static str,
    /// Digest of the fingerprint spec.
    pub spec_digest: String,
    /// What verification did, where that was asked for.
    pub verified: Option<Verified>,
    /// Rows of the output.
    pub hits: u64,
    /// Hits left out because their document has nearer ones; none unless that was asked for.
    pub hits_left_out: u64,
    /// The output file.
    pub output: String,
    /// Its bytes.
    pub output_bytes: u64,
    /// What became of the day.
    pub commit: Commit,
    /// Version of the archive before the run; `None` for plain files.
    pub archive_version_before: Option<u64>,
    /// And after it.
    pub archive_version_after: Option<u64>,
    /// How often the day was compared with the history: once more each time that other days were committed first.
    pub comparisons: u32,
    /// What went over the network, of this process.
    pub network: Network,
    /// What the cluster did, where there is one.
    pub cluster: Option<ClusterSummary>,
    /// Seconds of each stage.
    pub seconds: Seconds,
}

/// The new day, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct NewSummary {
    /// Documents read.
    pub documents: u64,
    /// Those with too few features for a fingerprint, or without a text; they are never matched.
    pub without_fingerprint: u64,
    /// Those whose id another has too.
    pub duplicate_ids: u64,
    /// Those whose text is not UTF-8.
    pub invalid_utf8: u64,
    /// Fingerprints that differ from each other.
    pub distinct_fingerprints: u64,
    /// Digest of the day's rows.
    pub digest: String,
}

/// The history, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct BaseSummary {
    /// Version of the archive that was read.
    pub version: Option<u64>,
    /// Files.
    pub files: u64,
    /// Fingerprints.
    pub fingerprints: u64,
    /// Encoded bytes of fingerprints that were read.
    pub bytes_read: u64,
}

/// What became of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// It was not to be committed.
    NotAsked,
    /// It was committed as this version of the archive.
    Committed(u64),
    /// It was there already, with the same rows.
    AlreadyThere,
}

/// Requests to object stores, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Requests, those sent again included.
    pub requests: u64,
    /// Requests that failed for the moment, and were sent again or given up.
    pub retries: u64,
    /// Bytes of bodies sent.
    pub bytes_sent: u64,
    /// Bytes of bodies received.
    pub bytes_received: u64,
}

impl Network {
    /// What went through `stores` so far.
    #[must_use]
    pub fn of(stores: &Stores) -> Self {
        let traffic = stores.traffic();
        Self {
            requests: traffic.requests(),
            retries: traffic.retries(),
            bytes_sent: traffic.bytes_sent(),
            bytes_received: traffic.bytes_received(),
        }
    }
}

/// Seconds of each stage.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// Opening inputs and base.
    pub open: f64,
    /// Documents to fingerprints.
    pub fingerprint: f64,
    /// Building the tables.
    pub build: f64,
    /// Probing, reducing and writing the hits.
    pub probe: f64,
    /// Looking up the texts of hits and comparing them.
    pub verify: f64,
    /// Committing the day and naming the output.
    pub commit: f64,
    /// All of it.
    pub total: f64,
    /// Where the time of the probe went.
    pub of_probe: ProbeSeconds,
}

/// Seconds of the probe's own stages. The first six are summed over all threads, which work at the same time.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ProbeSeconds {
    /// Fetching encoded fingerprints of the history.
    pub read: f64,
    /// Decoding them.
    pub decode: f64,
    /// Bringing them into the order of a table, in designs that do.
    pub partition: f64,
    /// Picking those that are worth a lookup.
    pub filter: f64,
    /// Looking them up and comparing.
    pub verify: f64,
    /// Reading the ids of hits.
    pub ids: f64,
    /// Dropping repeated pairs and sorting, after the last fingerprint was probed.
    pub reduce: f64,
    /// Encoding and writing the hits.
    pub write: f64,
}

/// The base as far as it can be known before the day's rows are.
#[derive(Debug, Clone)]
pub enum Opened {
    /// An archive, at its latest version.
    Archive(Box<Archive>),
    /// Plain files.
    Plain(Base),
}

impl Opened {
    /// Opens what is at `given`.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be read.
    pub async fn base(stores: &Stores, given: &str, columns: &Columns) -> Result<Self> {
        // A pattern is no archive.
        if !given.contains(['*', '?', '[']) {
            let location = stores.locate(given)?;
            if Archive::is_at(&location).await? {
                return Ok(Self::Archive(Box::new(Archive::open(&location).await?)));
            }
        }
        Ok(Self::Plain(
            Base::plain(stores, given, &base_columns(columns)).await?,
        ))
    }

    /// The spec of its fingerprints, where it has one.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        match self {
            Self::Archive(archive) => Some(archive.spec()),
            Self::Plain(base) => base.spec.as_ref(),
        }
    }

    /// The version of the archive.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Archive(archive) => Some(archive.version()),
            Self::Plain(_) => None,
        }
    }

    /// What errors call it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Archive(archive) => archive.location().to_string(),
            Self::Plain(base) => base.name.clone(),
        }
    }

    /// The type of its ids, where it has any.
    #[must_use]
    pub fn id_type(&self) -> Option<IdType> {
        match self {
            Self::Archive(archive) => Some(archive.id_type()),
            Self::Plain(base) => base.id_type,
        }
    }
}

/// Opens the day and decides how it gets its fingerprints, and the type of its ids: as the base has it, where it says.
///
/// # Errors
/// [`EngineError`] when the day cannot be read or is of another spec.
pub async fn open_day(
    context: &SessionContext,
    new: &[String],
    columns: &Columns,
    base: Option<&Opened>,
    wanted: &Wanted,
) -> Result<(Documents, Recipe, IdType)> {
    let documents = Documents::open(context, new, columns).await?;
    let own = documents.spec()?;
    let name = base.map(Opened::name).unwrap_or_default();
    let ready = documents.has_fingerprints();
    let recipe = match (base.and_then(Opened::spec), own) {
        (Some(spec), Some((file, own))) if *spec != own => {
            return Err(archive::ArchiveError::SpecMismatch {
                left: name,
                right: file,
                differences: spec.differences(&own),
            }
            .into());
        }
        (Some(spec), _) if ready => {
            wanted.check(&name, spec)?;
            Recipe::Ready(spec.clone())
        }
        (Some(spec), _) => match base {
            Some(Opened::Archive(archive)) => Recipe::Texts(wanted.model_of(archive).await?),
            _ => Recipe::Texts(wanted.model_for(&name, spec)?),
        },
        (None, Some((file, own))) => {
            wanted.check(&file, &own)?;
            Recipe::Ready(own)
        }
        (None, None) if ready => Recipe::Ready(wanted.model()?.spec().clone()),
        (None, None) => {
            if base.is_some_and(|base| base.id_type().is_some()) {
                tracing::warn!(
                    "the base does not say under which spec its fingerprints were made; they are taken to be of the spec shown by --json"
                );
            }
            Recipe::Texts(wanted.model()?)
        }
    };
    let id_type = base
        .and_then(Opened::id_type)
        .or(documents.id_type())
        .unwrap_or(IdType::String);
    Ok((documents, recipe, id_type))
}

/// Runs the job.
///
/// # Errors
/// [`EngineError`]; the archive and an earlier output are then as they were, but for [`EngineError::Unpublished`].
pub async fn run(
    context: &SessionContext,
    resources: &Arc<Resources>,
    settings: &RunSettings,
) -> Result<Summary> {
    let progress = &resources.progress;
    let begin = Instant::now();
    let mut clock = Clock(begin);
    let mut seconds = Seconds::default();

    progress.enter(Stage::Open);
    let mut opened = Opened::base(&resources.stores, &settings.base, &settings.columns).await?;
    if settings.append {
        let Opened::Archive(archive) = &opened else {
            return Err(EngineError::Usage(format!(
                "--append needs an archive, and {} is plain files; make one with `dedup-job archive create`",
                settings.base
            )));
        };
        archive.preflight().await?;
    }
    let version_before = opened.version();
    let (documents, recipe, id_type) = open_day(
        context,
        &settings.new,
        &settings.columns,
        Some(&opened),
        &settings.wanted,
    )
    .await?;
    seconds.open = clock.lap();

    progress.enter(Stage::Fingerprint);
    let verifier = match &settings.verify {
        Some(verify) => {
            let model = model_to_verify(settings, &opened, &recipe).await?;
            let (new, columns) = (&settings.new, &settings.columns);
            Some(Verifier::open(context, verify, model, new, columns).await?)
        }
        None => None,
    };
    let kept = match &settings.fingerprints {
        Some(target) => Some(Draft::new(target, &settings.scratch)?),
        None => None,
    };
    let path = kept.as_ref().map_or_else(
        || settings.scratch.join("fingerprints.parquet"),
        |draft| draft.path().to_owned(),
    );
    let elsewhere = match (&settings.cluster, &recipe) {
        (Some(cluster), Recipe::Texts(model)) => {
            let task = Fingerprinting {
                documents: &documents,
                columns: &settings.columns,
                id_type,
                spec: model.spec(),
                archive: match &opened {
                    Opened::Archive(archive) => Some(archive),
                    Opened::Plain(_) => None,
                },
                wanted: &settings.wanted,
            };
            cluster.fingerprint(task).await?
        }
        _ => None,
    };
    let rows = match elsewhere {
        Some(rows) => day::of_cluster(context, rows)?,
        None => day::rows(context, &documents, &recipe, id_type, progress)?,
    };
    let given = documents.given();
    let day = day::write(rows, given, recipe.spec(), id_type, &path).await?;
    if let Some(rows) = documents.known_rows().filter(|&rows| rows != day.file.rows) {
        return Err(EngineError::Cluster {
            kind: archive::ErrorKind::TryAgain,
            message: format!(
                "{given}: {} documents were read of {rows} that were there when the run began; run it again",
                day.file.rows
            ),
        });
    }
    seconds.fingerprint = clock.lap();

    let mut comparisons = 0;
    let mut uploaded = None;
    let (compared, commit, version_after) = loop {
        comparisons += 1;
        progress.enter(Stage::Open);
        let (archive, base, already) = base_of_run(opened, settings, &day).await?;
        seconds.open += clock.lap();
        let comparison = Comparison {
            context,
            resources,
            settings,
            day: &day,
            base: &base,
            verifier: verifier.as_ref(),
            id_type,
            is_archive: archive.is_some(),
        };
        let compared = comparison.run(&mut clock, &mut seconds).await?;

        progress.enter(Stage::Commit);
        let Some(mut archive) = archive else {
            break (compared, Commit::NotAsked, None);
        };
        if !settings.append || already {
            let commit = match settings.append {
                true => Commit::AlreadyThere,
                false => Commit::NotAsked,
            };
            break (compared, commit, Some(archive.version()));
        }
        let date = settings
            .day
            .ok_or_else(|| EngineError::Usage("--append needs --day".into()))?;
        if let Some(rows) = settings.rows_per_file {
            archive = archive.with_file_rows(rows);
        }
        let staged = match uploaded.take() {
            Some(staged) => staged,
            None => archive.stage(date, &day.file).await?,
        };
        match archive.commit(&staged).await? {
            Append::Committed(version) => {
                break (compared, Commit::Committed(version), Some(version));
            }
            // By another run of the same day, which may have compared it with fewer days.
            Append::AlreadyThere => {}
            Append::Overtaken => {
                tracing::warn!(
                    "other days were committed meanwhile: the day is compared with them too"
                );
                uploaded = Some(staged);
            }
        }
        opened = Opened::Archive(Box::new(archive));
        seconds.commit += clock.lap();
        progress.compare_again();
    };
    let Compared {
        output,
        plan,
        passes,
        distinct,
        verified,
        base,
    } = compared;
    let hits_left_out = progress.left_out.load(Ordering::Relaxed) + output.left_out;
    let (hits, output_bytes) = (output.rows, output.bytes);
    let published = async {
        output.publish().await?;
        match kept {
            Some(draft) => draft.publish().await,
            None => Ok(()),
        }
    };
    published
        .await
        .map_err(|error| match (commit, settings.day) {
            (Commit::Committed(_), Some(day)) => EngineError::Unpublished {
                day: day.to_string(),
                source: Box::new(error),
            },
            _ => error,
        })?;
    let file = day.file;
    seconds.commit += clock.lap();
    seconds.total = begin.elapsed().as_secs_f64();

    Ok(Summary {
        new: NewSummary {
            documents: file.rows,
            without_fingerprint: file.without_fingerprint,
            duplicate_ids: day.duplicate_ids,
            invalid_utf8: day.invalid_utf8,
            distinct_fingerprints: distinct as u64,
            digest: file.digest,
        },
        base,
        max_distance: settings.max_distance,
        design: plan.design.name(),
        passes,
        kernel: Kernel::detect().name(),
        spec_digest: recipe.spec().digest(),
        hits,
        hits_left_out,
        verified,
        output: settings.output.to_string(),
        output_bytes,
        commit,
        archive_version_before: version_before,
        archive_version_after: version_after,
        comparisons,
        network: Network::of(&resources.stores),
        cluster: settings.cluster.as_ref().map(|cluster| cluster.summary()),
        seconds,
    })
}

/// What is needed to compare the day with a base.
struct Comparison<'a> {
    context: &'a SessionContext,
    resources: &'a Arc<Resources>,
    settings: &'a RunSettings,
    day: &'a Day,
    base: &'a Base,
    verifier: Option<&'a Verifier<'a>>,
    id_type: IdType,
    is_archive: bool,
}

/// What came of a comparison.
struct Compared {
    output: output::StagedOutput,
    plan: Plan,
    passes: u32,
    distinct: usize,
    verified: Option<Verified>,
    base: BaseSummary,
}

impl Comparison<'_> {
    /// Builds the tables, probes the base, reduces and verifies the hits.
    async fn run(&self, clock: &mut Clock, seconds: &mut Seconds) -> Result<Compared> {
        let Self {
            context,
            resources,
            settings,
            day,
            base,
            ..
        } = *self;
        let progress = &resources.progress;
        progress.enter(Stage::Build);
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        let own = BatchName::of(&day.file, day.file.path.to_string_lossy().into_owned());
        let batch = resources.batch(&own, &pool).await?;
        let distinct = batch.distinct.values().len();
        let queries = base.rows() + if settings.within { day.file.rows } else { 0 };
        let design = settings.design.as_deref();
        let k = settings.max_distance;
        let plan;
        let mut probe;
        match &settings.cluster {
            None => {
                plan = batch.plan(k, design, queries, free(&pool))?;
                probe = self::probe(settings, own, base, &plan);
                let threads = context.state().config().target_partitions();
                // Built here, so that they are measured apart; the tasks find them there.
                drop(batch.tables(&probe, 0, &pool, threads).await?);
            }
            Some(cluster) => {
                // Each executor builds the tables, and probes its share.
                let capacity = cluster.capacity().await?;
                let memory = capacity.memory.saturating_sub(batch.bytes());
                let share = queries.div_ceil(capacity.executors.max(1) as u64);
                plan = batch
                    .plan(k, design, share, memory)
                    .map_err(too_little_memory)?;
                probe = self::probe(settings, cluster.share(&day.file).await?, base, &plan);
                // It was wanted for the plan alone.
                resources.release_batches();
            }
        }
        drop(batch);
        let passes = probe.parts;
        if passes > 1 {
            tracing::warn!(
                "the tables do not fit the memory limit at once: the history is read {passes} times"
            );
        }
        seconds.build += clock.lap();

        progress.enter(Stage::Probe);
        progress
            .probe_total
            .store(base.rows() * u64::from(passes), Ordering::Relaxed);
        progress.take_answered();
        for file in &base.files {
            resources.keep(file.reader.clone(), file.location.given());
        }
        let items = work::items(base, settings.within, distinct, passes);
        let unverified = settings.scratch.join("hits.parquet");
        let unverified = resources.stores.locate(&unverified.to_string_lossy())?;
        let output = match self.verifier {
            // The nearest are those that are left when the texts have decided.
            Some(_) => {
                probe.max_hits = None;
                &unverified
            }
            None => &settings.output,
        };
        let mut output = self.find(items, probe, output).await?;
        seconds.probe += clock.lap();
        let stages = &progress.stages;
        seconds.of_probe = ProbeSeconds {
            read: stages.read.seconds(),
            decode: stages.decode.seconds(),
            partition: stages.partition.seconds(),
            filter: stages.filter.seconds(),
            verify: stages.verify.seconds(),
            ids: stages.ids.seconds(),
            reduce: (progress.seconds_since_probe() - output.seconds).max(0.0),
            write: output.seconds,
        };
        let mut verified = None;
        if let (Some(verifier), Some(verify)) = (self.verifier, &settings.verify) {
            progress.enter(Stage::Verify);
            let origin = Origin {
                id_type: self.id_type,
                day: settings.day.map(work::chrono_days),
                within: settings.within,
                archive: self.is_archive,
            };
            let (scratch, checked) = (&settings.scratch, output.rows);
            let (kept, counts) =
                verify::verify(context, &output, verifier, origin, scratch).await?;
            let schema = verified_schema(self.id_type);
            let (target, max_hits) = (&settings.output, settings.max_hits);
            output = output::stage(kept, &schema, target, scratch, max_hits).await?;
            verified = Some(counts.verified(verify, checked));
            seconds.verify += clock.lap();
        }
        Ok(Compared {
            output,
            passes,
            distinct,
            verified,
            base: BaseSummary {
                version: base.version,
                files: base.files.len() as u64,
                fingerprints: base.rows(),
                bytes_read: progress.bytes_read.load(Ordering::Relaxed),
            },
            plan,
        })
    }

    /// Probes the work items and writes the reduced hits as a draft of `output`.
    async fn find(
        &self,
        items: Vec<work::WorkItem>,
        probe: Probe,
        output: &Location,
    ) -> Result<output::StagedOutput> {
        let planning = || EngineError::query("planning the probe");
        let context = self.context;
        let partitions = context.state().config().target_partitions();
        let (max_hits, asked) = (probe.max_hits, items.len());
        let hits = match &self.settings.cluster {
            None => work::table(items, partitions)
                .and_then(|table| context.read_table(Arc::new(table)))
                .and_then(|items| ProbeNode::over(items, probe)),
            Some(cluster) => {
                let hits = cluster.probe(work::numbered(items), probe).await?;
                stream::table(context, hits.schema(), vec![hits])
            }
        };
        let hits = hits.and_then(reduce).map_err(planning())?;
        let stream = hits.execute_stream().await.map_err(planning())?;
        let schema = hits_schema(self.id_type);
        let scratch = &self.settings.scratch;
        let staged = output::stage(stream, &schema, output, scratch, max_hits).await?;
        // Whatever happened on the way, a slice of the history that nobody looked at is not passed over in silence.
        let answered = self.resources.progress.take_answered().len();
        if answered != asked {
            return Err(EngineError::Internal(format!(
                "{answered} of {asked} work items were answered"
            )));
        }
        Ok(staged)
    }
}

/// The archive, the base to compare with, and whether the day is committed already. A day is never compared
/// with its own earlier commit, but with the archive as it was before.
async fn base_of_run(
    opened: Opened,
    settings: &RunSettings,
    day: &Day,
) -> Result<(Option<Archive>, Base, bool)> {
    let archive = match opened {
        Opened::Plain(base) => return Ok((None, base, false)),
        Opened::Archive(archive) => *archive,
    };
    let committed = match settings.day {
        Some(date) => archive
            .committed(date)
            .await?
            .map(|committed| (date, committed)),
        None => None,
    };
    let Some((date, committed)) = committed else {
        let base = Base::of_archive(&archive, Scope::All).await?;
        return Ok((Some(archive), base, false));
    };
    if settings.append && committed.digest != day.file.digest {
        return Err(archive::ArchiveError::DayDiffers {
            path: archive.location().to_string(),
            day: date.to_string(),
            committed: committed.digest,
            new: day.file.digest.clone(),
        }
        .into());
    }
    let base_version = committed.base_version;
    let scope = Scope::Before {
        day: date,
        base_version,
    };
    let base = Base {
        version: Some(base_version),
        ..Base::of_archive(&archive, scope).await?
    };
    Ok((Some(archive), base, true))
}

/// That executors have too little memory, where that is it.
fn too_little_memory(error: EngineError) -> EngineError {
    match error {
        EngineError::Plan(error @ hamming::PlanError::OutOfMemory { .. }) => EngineError::Cluster {
            kind: archive::ErrorKind::TryAgain,
            message: format!(
                "the executors have too little memory: {error}; start them with a larger --memory-limit"
            ),
        },
        error => error,
    }
}

fn probe(settings: &RunSettings, batch: BatchName, base: &Base, plan: &Plan) -> Probe {
    Probe {
        batch,
        max_distance: settings.max_distance,
        design: plan.design.name(),
        parts: plan.parts as u32,
        max_hits: settings.max_hits,
        day: settings.day.map(work::chrono_days),
        columns: match base.version {
            // An archive's columns have fixed names.
            Some(_) => BaseColumns::standard_or(None, None),
            None => base_columns(&settings.columns),
        },
    }
}

/// Columns of plain base files: those asked for of the new day, or else the standard ones.
fn base_columns(columns: &Columns) -> BaseColumns {
    BaseColumns::standard_or(columns.fingerprint.as_deref(), columns.id.as_deref())
}

/// What texts are folded, and for the cosine weighed, by.
async fn model_to_verify(
    settings: &RunSettings,
    opened: &Opened,
    recipe: &Recipe,
) -> Result<Model> {
    let measure = settings.verify.as_ref().map(|verify| verify.measure);
    match (recipe, opened) {
        (Recipe::Texts(model), _) => Ok(model.clone()),
        // The others do not weigh.
        (Recipe::Ready(spec), _) if measure != Some(Measure::Cosine) => {
            let folding = Spec {
                idf: None,
                stop_words: None,
                ..spec.clone()
            };
            Model::plain(folding).map_err(|error| EngineError::Internal(error.to_string()))
        }
        (Recipe::Ready(_), Opened::Archive(archive)) => Ok(archive.model().await?),
        (Recipe::Ready(spec), Opened::Plain(base)) => settings.wanted.model_for(&base.name, spec),
    }
}

/// Measures stages.
struct Clock(Instant);

impl Clock {
    fn lap(&mut self) -> f64 {
        let seconds = self.0.elapsed().as_secs_f64();
        self.0 = Instant::now();
        seconds
    }
}
