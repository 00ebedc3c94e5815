//! Jobs that were left behind: begun, and never reduced, or by a `reduce` that was killed before it had removed them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use futures::TryStreamExt as _;
use serde::Serialize;
use storage::Stores;

use super::{DONE, RECORD, Record, clean, read_json, remove};
use crate::error::Result;

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
    let mut jobs: BTreeMap<String, LeftJob> = BTreeMap::new();
    let directory_of = |path: &str, name: &str| -> Option<String> {
        let directory = path.strip_suffix(name)?;
        (directory.is_empty() || directory.ends_with('/'))
            .then(|| directory.trim_end_matches('/').to_owned())
    };
    let paths: Vec<(String, &object_store::ObjectMeta)> = listed
        .iter()
        .filter_map(|meta| Some((below(&meta.location)?, meta)))
        .collect();
    let done: BTreeSet<String> = paths
        .iter()
        .filter_map(|(path, _)| directory_of(path, DONE))
        .collect();
    for (path, _) in &paths {
        let Some(directory) = directory_of(path, RECORD) else {
            continue;
        };
        let job = match directory.as_str() {
            "" => root.clone(),
            directory => root.child(directory)?,
        };
        let is_done = done.contains(&directory);
        let record = job.child(if is_done { DONE } else { RECORD })?;
        // Other programs have files of this name; and a job that was reduced may have been kept on purpose.
        if let Ok(Some(record)) = read_json::<Record>(&record).await
            && (!is_done || record.kept == Some(false))
        {
            let found = LeftJob {
                job: job.given().to_owned(),
                objects: 0,
                bytes: 0,
                idle_seconds: u64::MAX,
                is_done,
            };
            jobs.insert(directory, found);
        }
    }
    let now = SystemTime::now();
    for (path, meta) in &paths {
        // The nearest directory above that is a job owns the object.
        let mut directory = path.as_str();
        while let Some((above, _)) = directory
            .rsplit_once('/')
            .or((!directory.is_empty()).then_some(("", "")))
        {
            directory = above;
            if let Some(job) = jobs.get_mut(directory) {
                let idle = now.duration_since(meta.last_modified.into());
                job.objects += 1;
                job.bytes += meta.size;
                job.idle_seconds = job.idle_seconds.min(idle.unwrap_or_default().as_secs());
                break;
            }
        }
    }
    let is_old = |job: &LeftJob| job.idle_seconds >= older_than.as_secs();
    Ok(jobs.into_values().filter(is_old).collect())
}
