//! Jobs: a run whose maps are done in parts, by any machine, at any time, any number of times.
//!
//! ```text
//! split ─▶ round 1 ─▶ map, part by part ─▶ split ─▶ round 2 ─▶ map ─▶ … ─▶ split: ready ─▶ reduce
//! ```
//!
//! `split` and `reduce` are the run itself: they do what [`run`](crate::run()) does, from its start. Where the run would do a
//! map, they take the answers of its parts from the job. If the map has no parts yet, `split` plans them as the next round, and
//! ends. So there is one order of work, that of the run, and a job only remembers what its maps answered.
//!
//! A job is a directory, or a prefix in a store. Nothing else connects the machines. Its objects, all but the first and the last
//! below `work-ID/`, where nobody else writes:
//!
//! | object | content |
//! |---|---|
//! | `job.json` | version of the program, options of the run, and what the first `split` saw: archive version, spec, inputs |
//! | `round-R/plan.json` | the maps of a round, and the items of each part ([`plan`]) |
//! | `round-R/part-NNNNN` | the answer of a part, with its receipt ([`answer`]) |
//! | `objects/SHA256` | files that parts read: the batch, sets of rows, pairs to verify |
//! | `copies/…` | copies of kept documents |
//! | `_dedup-job/…` | document frequencies and stop words that the options name |
//! | `batch.json` | the settled batch: what the fingerprints of the first round became |
//! | `done.json` | left by `reduce` alone |

mod answer;
mod beside;
mod copies;
mod cut;
mod forecast;
mod json_objects;
mod left;
mod left_out;
mod map_documents;
mod map_probe;
mod map_verify;
mod parts;
mod plan;
mod settled;
mod shared;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use chrono::NaiveDate;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use storage::{Location, StorageError, Stores};

use crate::error::{EngineError, Result};
use crate::probe::Probe;
use documents::{FileCuts, FileVersion};
use streams::locked;

pub(crate) use answer::{Answer, AnswerWriter, Answers, Receipt, read_receipt};
pub use beside::PartDone;
pub use forecast::{Forecast, ForecastRound, Sizes};
pub use left::{LeftJob, left_behind};
pub(crate) use map_documents::{ModelPlan, add_digests, digest_schema, text_digest};
pub(crate) use map_probe::ProbeMap;
pub(crate) use map_verify::VerifyMap;
pub use parts::do_parts;
pub(crate) use plan::{Item, Map, Planning};
pub use plan::{PlannedMapSummary, Split};
pub(crate) use shared::SharedFile;

use json_objects::{ANEW, PLAN, create_json, read_json, to_json};
use map_documents::DocumentsMap;
use plan::{PlannedMap, Round};

/// Version of the layout of jobs. Another one is refused.
const FORMAT: u32 = 3;
/// Objects of a job that are read at the same time.
const AT_ONCE: usize = 64;
const RECORD: &str = "job.json";
const DONE: &str = "done.json";

/// What a job's first `split` wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    format: u32,
    version: String,
    /// Tells this job from others at the same place.
    id: String,
    /// The options of the run, as arguments.
    pub options: Vec<String>,
    /// How many parts each map is cut into; `None` for parts of about a minute.
    pub parts: Option<u64>,
    /// What the first `split` saw.
    pins: Option<Pins>,
    /// In the marker of a job that is done: whether all else was kept on purpose.
    #[serde(default)]
    kept: Option<bool>,
}

/// What the first `split` saw, and all commands of the job must see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pins {
    /// Version of the archive; `None` for plain files.
    pub(crate) archive_version: Option<u64>,
    pub(crate) day: Option<NaiveDate>,
    /// Digest of the spec of the fingerprints.
    pub(crate) spec: String,
    /// The batch's files, then those of `--base`, if it is plain files, or the archive's log entry, then those of `--base-text`.
    pub(crate) inputs: Vec<FileVersion>,
    /// The rules of `--prefer`, with the names from a file of sources.
    pub(crate) prefer: String,
    /// A digest of the pins of `--pins`.
    pub(crate) pins: String,
    /// Where the batch's files are cut.
    pub(crate) cuts: FileCuts,
}

/// A job, as one command sees it.
#[derive(Debug)]
pub struct Job {
    root: Location,
    /// Where all is but its record.
    location: Location,
    stores: Stores,
    scratch: PathBuf,
    record: Record,
    /// Shared files that this process has checked.
    checked: Mutex<HashSet<SharedFile>>,
    rounds: Vec<Round>,
    /// Whether this command plans rounds, and does nothing behind the last map.
    pub(crate) splits: bool,
    state: Mutex<State>,
    /// Set when another day was committed meanwhile: the run then compares again, in this process.
    alone: AtomicBool,
}

/// What changes while a command runs.
#[derive(Debug, Default)]
struct State {
    pins: Option<Pins>,
    /// The maps that this `split` plans.
    planned: Vec<PlannedMap>,
}

/// What is at the place of a job.
#[derive(Debug)]
pub enum Found {
    Nothing,
    /// A job that is not reduced yet.
    Job(Box<Record>),
    /// The marker of a job that is reduced, with the options of its run.
    Done(Box<Record>),
}

/// Reads what is at the place of a job.
///
/// # Errors
/// [`EngineError::Configuration`] when another version of the program made it; another one when it cannot be read.
pub async fn find(stores: &Stores, job: &str) -> Result<Found> {
    let location = stores.locate(job)?;
    if location.local().is_some_and(Path::is_file) {
        return Err(EngineError::Usage(format!(
            "{job} is a file: the first name is the place of the job, a directory or a prefix"
        )));
    }
    for name in [DONE, RECORD] {
        if let Some(record) = read_json::<Record>(&location.child(name)?).await? {
            check_version(&location, &record)?;
            let record = Box::new(record);
            return Ok(match name {
                DONE => Found::Done(record),
                _ => Found::Job(record),
            });
        }
    }
    Ok(Found::Nothing)
}

/// The part of a record that all versions have.
#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Removes the job at a place, whatever version of the program made it. Nothing else is touched.
pub async fn remove(stores: &Stores, job: &str) -> Result<()> {
    let root = stores.locate(job)?;
    // The record last: without it, nothing names the rest.
    for name in [DONE, RECORD] {
        let record = root.child(name)?;
        match read_json(&record).await {
            Ok(Some(Named { id })) => work(&root, &id)?.remove_all().await?,
            Ok(None) => continue,
            Err(EngineError::BadData { .. }) => remove_works(&root).await?,
            Err(error) => return Err(error),
        }
        record.remove().await?;
    }
    Ok(())
}

/// Removes what jobs at a place have beside a record that is damaged.
async fn remove_works(root: &Location) -> Result<()> {
    let listed = root.store().list_with_delimiter(Some(root.path())).await;
    let listed = listed.map_err(|error| root.store_error(error))?;
    for directory in listed.common_prefixes {
        let name = directory.filename().unwrap_or_default();
        if let Some(id) = name.strip_prefix("work-").filter(|id| id.len() == 32) {
            work(root, id)?.remove_all().await?;
        }
    }
    Ok(())
}

/// Where a job has all but its record.
fn work(root: &Location, id: &str) -> Result<Location> {
    let is_own = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_own {
        return Err(EngineError::bad_data(
            root,
            format!("{id:?} is no id of a job"),
        ));
    }
    Ok(root.child(&format!("work-{id}"))?)
}

impl Record {
    /// The record of a new job of a run with these `options`.
    pub fn new(options: Vec<String>, parts: Option<u64>) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            id: uuid::Uuid::new_v4().simple().to_string(),
            options,
            parts,
            pins: None,
            kept: None,
        }
    }
}

impl Job {
    /// The job of `record` at a place. If it `splits`, a map without answers is planned; otherwise that is an error.
    pub async fn open(
        stores: &Stores,
        job: &str,
        record: Record,
        scratch: &Path,
        splits: bool,
    ) -> Result<Self> {
        let root = stores.locate(job)?;
        let location = work(&root, &record.id)?;
        let mut rounds = Vec::new();
        loop {
            let path = location.child(&format!("round-{}/{PLAN}", rounds.len() + 1))?;
            match read_json::<Round>(&path).await? {
                Some(round) => rounds.push(round),
                None => break,
            }
        }
        Ok(Self {
            root,
            location,
            stores: stores.clone(),
            scratch: scratch.to_owned(),
            state: Mutex::new(State {
                pins: record.pins.clone(),
                ..State::default()
            }),
            record,
            checked: Mutex::default(),
            rounds,
            splits,
            alone: AtomicBool::new(false),
        })
    }

    pub fn name(&self) -> &str {
        self.root.given()
    }

    /// Number of the current round, from 1 on: the last one that has maps; 0 before the first.
    pub fn current_round(&self) -> u32 {
        let rounds = self.rounds.iter();
        rounds.filter(|round| !round.is_last()).count() as u32
    }

    fn planned_round(&self, number: u32) -> Option<&Round> {
        self.rounds.get(number.checked_sub(1)? as usize)
    }

    /// The error for a round that is not planned: the next one may be later, or the store may not have found its plan.
    fn no_round(&self, number: u32) -> EngineError {
        let name = self.name();
        if !self.is_ready() && number.max(1) as usize == self.rounds.len() + 1 {
            let what = format!("{name}: round {} is not planned", number.max(1));
            EngineError::TryAgain(format!("{what}; run: dedup-job split {name}"))
        } else {
            EngineError::Usage(format!("{name}: it has no round {number}"))
        }
    }

    /// The current round, as `split` described it when it planned it.
    pub fn current_split(&self) -> Option<Split> {
        let number = self.current_round();
        let round = self.planned_round(number)?;
        Some(Split::new(self.name(), number, round))
    }

    /// Whether `split` found all rounds answered and no further round.
    pub fn is_ready(&self) -> bool {
        self.rounds.last().is_some_and(|round| round.is_last())
    }

    /// Lets the rest of the run do its maps itself: another day was committed meanwhile.
    pub(crate) fn leave(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::leave`] was called.
    pub(crate) fn is_left(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// How many parts the batch's large files should be cut for.
    pub(crate) fn readers(&self) -> usize {
        /// Parts of a file, where the options name no number.
        const READERS: u64 = 64;
        usize::try_from(self.record.parts.unwrap_or(READERS)).unwrap_or(usize::MAX)
    }

    /// The archive's version that the job was planned for; `None` before it is.
    pub(crate) fn archive_version(&self) -> Option<u64> {
        self.state().pins.as_ref()?.archive_version
    }

    /// The day of the batch, if the first `split` found it.
    pub(crate) fn day(&self) -> Option<NaiveDate> {
        self.state().pins.as_ref()?.day
    }

    /// Where the first `split` cut the batch's files.
    pub(crate) fn cuts(&self) -> Option<FileCuts> {
        self.state().pins.as_ref().map(|pins| pins.cuts.clone())
    }

    /// Notes what the first `split` sees, and creates the record; refuses another spec and other inputs afterwards.
    ///
    /// # Errors
    /// [`EngineError::Configuration`] naming what changed.
    pub(crate) async fn pin(&self, pins: Pins) -> Result<()> {
        let before = self.state().pins.clone();
        let Some(before) = before else {
            self.state().pins = Some(pins.clone());
            let record = Record {
                pins: Some(pins),
                ..self.record.clone()
            };
            return create_json(&self.root.child(RECORD)?, &record).await;
        };
        if before.spec != pins.spec {
            return Err(
                self.changed("the specification of fingerprints (the files of its options)")
            );
        }
        if before.pins != pins.pins {
            return Err(self.changed("the file of --pins"));
        }
        if before.prefer != pins.prefer {
            return Err(self.changed("the file of --prefer source=@FILE"));
        }
        let (before, now) = (versions(&before.inputs), versions(&pins.inputs));
        let changed = now
            .iter()
            .find(|(path, version)| before.get(*path) != Some(version))
            .map(|(path, _)| path);
        let gone = before.keys().find(|path| !now.contains_key(*path));
        match changed.or(gone) {
            Some(path) => Err(self.changed(path)),
            None => Ok(()),
        }
    }

    /// The error when the inputs cannot be opened: if one of them changed since the first `split`, that it did; otherwise `error`.
    pub(crate) async fn changed_input(&self, error: EngineError) -> EngineError {
        let pins = self.state().pins.clone();
        let inputs = pins.map(|pins| pins.inputs).unwrap_or_default();
        let looking = inputs.iter().map(async |input| {
            let version = match self.stores.locate(&input.path) {
                Ok(location) => location.version().await,
                Err(error) => Err(error),
            };
            let is_changed = match version {
                Ok(version) => version != input.version,
                Err(StorageError::NotFound { .. } | StorageError::Gone { .. }) => true,
                Err(_) => false,
            };
            is_changed.then(|| self.changed(&input.path))
        });
        let looking = futures::stream::iter(looking).buffered(AT_ONCE);
        let mut changed = std::pin::pin!(looking.filter_map(std::future::ready));
        changed.next().await.unwrap_or(error)
    }

    /// The error for an input that changed since the first `split`.
    fn changed(&self, path: &str) -> EngineError {
        EngineError::Configuration(format!(
            "{path} changed since the job was split, or is another file here: begin anew by `dedup-job split {} --restart` with the options of the run",
            self.name()
        ))
    }

    /// The answers of the map called `name`; `None` if this `split` plans it, by `plan`. A map without work has no parts.
    ///
    /// # Errors
    /// [`EngineError::Unanswered`], or an error of `plan`.
    pub(crate) async fn answers(
        &self,
        name: &str,
        plan: impl AsyncFnOnce() -> Result<Planning>,
    ) -> Result<Option<Answers>> {
        for (number, round) in (1..).zip(&self.rounds) {
            if let Some((first, map)) = round.map(name) {
                return self.read_answers(number, first, map).await.map(Some);
            }
        }
        if self.state().planned.iter().any(|map| map.name == name) {
            return Ok(None);
        }
        let planned = plan().await?.cut(name, self.record.parts)?;
        if planned.parts.is_empty() {
            return Ok(Some(Answers {
                answers: Vec::new(),
                job: self.name().to_owned(),
            }));
        }
        if !self.splits {
            return Err(EngineError::TryAgain(format!(
                "{}: not all rounds are planned; run: dedup-job split {}",
                self.name(),
                self.name()
            )));
        }
        self.state().planned.push(planned);
        Ok(None)
    }

    /// The request of a probe that an earlier `split` planned, and the distinct fingerprints of its batch; `None` if none did.
    pub(crate) fn planned_probe(&self) -> Option<(&Probe, usize)> {
        let mut maps = self.rounds.iter().flat_map(|round| &round.maps);
        maps.find_map(|map| match &map.map {
            Map::Probe(probe) => Some((&probe.probe, probe.distinct)),
            _ => None,
        })
    }

    /// Ends a `split`: writes the round that it planned, or that there is no further one. It is an error if another `split` wrote
    /// something else meanwhile.
    pub async fn finish_split(&self) -> Result<Split> {
        let maps = std::mem::take(&mut self.state().planned);
        let round = Round { maps };
        let number = self.current_round() + 1;
        if !self.is_ready() {
            let plan = self.location.child(&format!("round-{number}/{PLAN}"))?;
            create_json(&plan, &round).await?;
        }
        Ok(Split::new(self.name(), number, &round))
    }

    /// Leaves the marker of a job that is done; it says whether all else is kept on purpose.
    pub async fn mark_done(&self, keep: bool) -> Result<()> {
        let done = self.root.child(DONE)?;
        let record = Record {
            kept: Some(keep),
            ..self.record.clone()
        };
        Ok(done.write(to_json(&done, &record)?).await?)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// Removes what a job that is done has beside its marker.
pub async fn clean(stores: &Stores, job: &str) -> Result<()> {
    let root = stores.locate(job)?;
    let record = root.child(RECORD)?;
    if let Some(Named { id }) = read_json(&record).await? {
        work(&root, &id)?.remove_all().await?;
        record.remove().await?;
    }
    Ok(())
}

fn versions(files: &[FileVersion]) -> BTreeMap<&str, &str> {
    let pairs = files.iter();
    pairs
        .map(|file| (file.path.as_str(), file.version.as_str()))
        .collect()
}

fn check_version(location: &Location, record: &Record) -> Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    if record.version == own && record.format == FORMAT {
        return Ok(());
    }
    Err(EngineError::Configuration(format!(
        "{location}: version {} of dedup-job made this job (format {}), and this is version {own} (format {FORMAT}): use one version for all of a job, or begin anew by `dedup-job split {location} --restart` with the options of the run",
        record.version, record.format
    )))
}
