//! Jobs that were left behind: begun, and never reduced.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt as _;
use serde::Serialize;
use storage::Stores;

use super::{RECORD, Record, read_json};
use crate::error::Result;

/// A job that was left behind.
#[derive(Debug, Clone, Serialize)]
pub struct LeftJob {
    /// Where it is.
    pub job: String,
    /// Its objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Seconds since one of them was written.
    pub idle_seconds: u64,
}

/// The jobs below `prefix` of which nothing was written for `older_than`.
///
/// # Errors
/// When the store cannot be listed.
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
    for meta in &listed {
        let Some(directory) = below(&meta.location)
            .and_then(|path| Some(path.strip_suffix(RECORD)?.trim_end_matches('/').to_owned()))
        else {
            continue;
        };
        let job = match directory.as_str() {
            "" => root.clone(),
            directory => root.child(directory)?,
        };
        // Other programs have files of this name.
        if matches!(read_json::<Record>(&job.child(RECORD)?).await, Ok(Some(_))) {
            let job = job.given().to_owned();
            let found = LeftJob {
                job,
                objects: 0,
                bytes: 0,
                idle_seconds: u64::MAX,
            };
            jobs.insert(directory, found);
        }
    }
    let now = SystemTime::now();
    for meta in &listed {
        let Some(path) = below(&meta.location) else {
            continue;
        };
        let owner = jobs.iter_mut().find(|(directory, _)| {
            directory.is_empty() || path.starts_with(&format!("{directory}/"))
        });
        if let Some((_, job)) = owner {
            let idle = now.duration_since(meta.last_modified.into());
            job.objects += 1;
            job.bytes += meta.size;
            job.idle_seconds = job.idle_seconds.min(idle.unwrap_or_default().as_secs());
        }
    }
    let is_old = |job: &LeftJob| job.idle_seconds >= older_than.as_secs();
    Ok(jobs.into_values().filter(is_old).collect())
}
