//! Jobs that were left behind: begun, and never reduced, or by a `reduce` that was killed before it had removed them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use storage::{Location, Stores};

use super::{AT_ONCE, DONE, Job, PLAN, RECORD, Record, clean, read_json, remove};
use crate::error::{EngineError, Result};

/// A job that was left behind.
#[derive(Debug, Clone, Serialize)]
pub struct LeftJob {
    pub job: String,
    pub objects: u64,
    pub bytes: u64,
    /// Seconds since one of them was written.
    pub idle_seconds: u64,
    /// Whether it is reduced: then its marker stays.
    #[serde(skip)]
    is_done: bool,
}

impl LeftJob {
    /// Removes it.
    pub async fn remove(&self, stores: &Stores) -> Result<()> {
        if self.is_done {
            clean(stores, &self.job).await
        } else {
            remove(stores, &self.job).await
        }
    }
}

/// The jobs below `prefix` whose newest object is older than `older_than`.
pub async fn left_behind(
    stores: &Stores,
    prefix: &str,
    older_than: Duration,
) -> Result<Vec<LeftJob>> {
    let root = stores.locate(prefix)?;
    let listed: Vec<_> = root
        .store()
        .list(Some(root.path()))
        .try_collect()
        .await
        .map_err(|error| root.store_error(error))?;
    let below = |path: &object_store::path::Path| -> Option<String> {
        let parts: Vec<_> = path.prefix_match(root.path())?.collect();
        let parts: Vec<&str> = parts.iter().map(|part| part.as_ref()).collect();
        Some(parts.join("/"))
    };
    let mut jobs: BTreeMap<String, (LeftJob, Record)> = BTreeMap::new();
    let directory_of = |path: &str, name: &str| -> Option<String> {
        let directory = path.strip_suffix(name)?;
        (directory.is_empty() || directory.ends_with('/'))
            .then(|| directory.trim_end_matches('/').to_owned())
    };
    let paths: Vec<(String, &object_store::ObjectMeta)> = listed
        .iter()
        .filter_map(|meta| Some((below(&meta.location)?, meta)))
        .collect();
    for (path, _) in &paths {
        let Some(directory) = directory_of(path, RECORD) else {
            continue;
        };
        let job = match directory.as_str() {
            "" => root.clone(),
            directory => root.child(directory)?,
        };
        // The list may leave out the marker, so it is asked for by name.
        let (record, is_done) = match read_json::<Record>(&job.child(DONE)?).await {
            Ok(Some(done)) => (done, true),
            Ok(None) => match read_json::<Record>(&job.child(RECORD)?).await {
                Ok(Some(record)) => (record, false),
                // Other programs have files of this name.
                _ => continue,
            },
            Err(_) => continue,
        };
        // A job that was reduced may have been kept on purpose.
        if !is_done || record.kept == Some(false) {
            let found = LeftJob {
                job: job.given().to_owned(),
                objects: 0,
                bytes: 0,
                idle_seconds: u64::MAX,
                is_done,
            };
            jobs.insert(directory, (found, record));
        }
    }
    let now = SystemTime::now();
    let idle_since = |written: SystemTime| {
        let idle = now.duration_since(written);
        idle.unwrap_or_default().as_secs()
    };
    for (path, meta) in &paths {
        // The nearest directory above that is a job owns the object.
        let mut directory = path.as_str();
        while let Some((above, _)) = directory
            .rsplit_once('/')
            .or((!directory.is_empty()).then_some(("", "")))
        {
            directory = above;
            if let Some((job, _)) = jobs.get_mut(directory) {
                job.objects += 1;
                job.bytes += meta.size;
                let idle = idle_since(meta.last_modified.into());
                job.idle_seconds = job.idle_seconds.min(idle);
                break;
            }
        }
    }
    let is_old = |job: &LeftJob| job.idle_seconds >= older_than.as_secs();
    let mut left = Vec::new();
    for (mut job, record) in jobs.into_values().filter(|(job, _)| is_old(job)) {
        if let Some(written) = last_written(stores, &job.job, record).await? {
            job.idle_seconds = job.idle_seconds.min(idle_since(written));
        }
        if is_old(&job) {
            left.push(job);
        }
    }
    Ok(left)
}

/// When an object of a job was written last, of those that can be asked for by name: a store's list may leave out the newest.
async fn last_written(stores: &Stores, job: &str, record: Record) -> Result<Option<SystemTime>> {
    let job = match Job::open(stores, job, record, Path::new(""), false).await {
        // Nothing goes on with a damaged job.
        Err(EngineError::BadData { .. }) => return Ok(None),
        job => job?,
    };
    let mut objects = vec![job.root.child(RECORD)?, job.root.child(DONE)?];
    for number in 1..=job.rounds.len() {
        let plan = job.location.child(&format!("round-{number}/{PLAN}"))?;
        objects.push(plan);
    }
    let round = job.current_round();
    let parts = job.planned_round(round).map_or(0, |round| round.parts());
    for part in 0..parts {
        objects.push(job.answer_location(round, part)?);
    }
    let times: Vec<Option<SystemTime>> =
        futures::stream::iter(objects.iter().map(Location::last_modified))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
    Ok(times.into_iter().flatten().max())
}
