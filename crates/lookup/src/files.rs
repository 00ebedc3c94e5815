//! The files of an index: written, published, removed, and copied to a cache on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::template_memory;
use storage::{Draft, Location, StorageError, create_dir_all_synced};

use crate::error::{LookupError, Result};
use crate::manifest::{self, FileEntry, Manifest, SEGMENT_PREFIX, SegmentEntry};
use crate::segment::{ROWS, Segment, SegmentFacts, TABLES};

/// After this time, what a stopped build has left is removed.
const STALE: chrono::Duration = chrono::Duration::days(1);

/// Where an index is, and the directory from which its segments are mapped: the index itself if it is local, else a
/// cache.
#[derive(Debug, Clone)]
pub struct IndexFiles {
    location: Location,
    directory: PathBuf,
    pub(crate) scratch: PathBuf,
}

impl IndexFiles {
    /// The index at `location`. If it is in a store, its segments are copied to `cache`. Temporary files go to
    /// `scratch`.
    pub fn new(location: &Location, cache: &Path, scratch: &Path) -> Result<Self> {
        let directory = location.local().unwrap_or(cache).to_owned();
        if location.local().is_none() {
            std::fs::create_dir_all(&directory).map_err(LookupError::io(directory.display()))?;
        }
        Ok(Self {
            location: location.clone(),
            directory,
            scratch: scratch.to_owned(),
        })
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Creates the directory of a local index.
    pub(crate) fn create_directory(&self) -> Result<()> {
        let Some(local) = self.location.local() else {
            return Ok(());
        };
        create_dir_all_synced(local).map_err(LookupError::io(local.display()))
    }

    /// Begins the files of a segment: the tables, and the rows.
    pub(crate) fn drafts(&self, name: &str) -> Result<[Draft; 2]> {
        let draft = |ending| -> Result<Draft> {
            let target = self.location.child(&format!("{name}.{ending}"))?;
            Ok(Draft::new(&target, &self.scratch)?)
        };
        Ok([draft(TABLES)?, draft(ROWS)?])
    }

    /// Publishes a segment that was written; `written` has the size in bytes and the checksum of each file.
    pub(crate) async fn publish(
        &self,
        name: &str,
        [tables, rows]: [Draft; 2],
        written: [(u64, u64); 2],
        facts: SegmentFacts,
    ) -> Result<SegmentEntry> {
        if self.location.local().is_none() {
            // Link both files into the cache, so that nobody on this machine fetches them. If this fails, they are
            // fetched.
            for (ending, draft) in [(TABLES, &tables), (ROWS, &rows)] {
                let _ = std::fs::hard_link(draft.path(), self.path(name, ending));
            }
        }
        // Publish the rows first: a segment that has tables has rows.
        rows.publish().await?;
        tables.publish().await?;
        let [tables, rows_file] = written.map(FileEntry::new);
        Ok(SegmentEntry {
            name: name.to_owned(),
            tables,
            rows_file,
            facts,
        })
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.directory.join(format!("{name}.{ending}"))
    }

    /// Finds a segment that a stopped build has left: its entry for a manifest; `None` if a file is missing, damaged, or so
    /// old that another build may be about to remove it.
    pub(crate) async fn unlisted(&self, name: &str) -> Result<Option<SegmentEntry>> {
        for ending in [TABLES, ROWS] {
            let object = self.location.child(&format!("{name}.{ending}"))?;
            let modified = object.last_modified().await?;
            let modified = modified.map(chrono::DateTime::<chrono::Utc>::from);
            if modified.is_none_or(|modified| modified < chrono::Utc::now() - STALE / 2) {
                return Ok(None);
            }
            self.fetch(name, ending, None).await?;
        }
        let Ok(segment) = Segment::open(&self.directory, name) else {
            return Ok(None);
        };
        let [tables, rows_file] = file_entries(&segment);
        Ok(Some(SegmentEntry {
            name: name.to_owned(),
            tables,
            rows_file,
            facts: segment.facts,
        }))
    }

    /// Opens a segment of a manifest; if the index is in a store, copies the segment to the cache first. Copies a damaged
    /// segment again.
    pub(crate) async fn open(&self, entry: &SegmentEntry) -> Result<Arc<Segment>> {
        match self.fetch_and_open(entry).await {
            Err(LookupError::Damaged { .. }) if self.location.local().is_none() => {
                self.drop_copies(&entry.name);
                self.fetch_and_open(entry).await
            }
            opened => opened,
        }
    }

    async fn fetch_and_open(&self, entry: &SegmentEntry) -> Result<Arc<Segment>> {
        self.fetch(&entry.name, TABLES, Some(&entry.tables)).await?;
        self.fetch(&entry.name, ROWS, Some(&entry.rows_file))
            .await?;
        let (directory, entry) = (self.directory.clone(), entry.clone());
        let object = self.location.child_name(&entry.name);
        let opening = tokio::task::spawn_blocking(move || open_entry(&directory, &entry, &object));
        LookupError::joined(opening, "opening a segment").await
    }

    /// Copies a segment's file from the store to the cache, unless a file of the expected size is there.
    async fn fetch(&self, name: &str, ending: &str, expected: Option<&FileEntry>) -> Result<()> {
        if self.location.local().is_some() {
            return Ok(());
        }
        let path = self.path(name, ending);
        let size = path.metadata().ok().map(|metadata| metadata.len());
        if size.is_some_and(|size| expected.is_none_or(|expected| expected.bytes == size)) {
            return Ok(());
        }
        let object = self.location.child(&format!("{name}.{ending}"))?;
        let io = || LookupError::io(path.display());
        let copy = tempfile::NamedTempFile::new_in(&self.directory).map_err(io())?;
        object.copy_to(copy.reopen().map_err(io())?).await?;
        copy.as_file().sync_all().map_err(io())?;
        copy.persist(&path).map_err(|error| io()(error.error))?;
        Ok(())
    }

    /// Refuses a directory, or a prefix, that has other files than those of an index.
    pub(crate) async fn require_own(&self) -> Result<()> {
        let names = manifest::names(&self.location).await?;
        match names.into_iter().find(|name| !is_own(name)) {
            None => Ok(()),
            Some(found) => Err(LookupError::NotEmpty {
                path: self.location.to_string(),
                found,
            }),
        }
    }

    /// Removes the manifests before the last two, the segments that only they name, and what stopped builds left a day ago.
    /// What cannot be removed stays for the next build.
    pub(crate) async fn remove_old(&self, latest: &Manifest) {
        if let Err(error) = self.try_remove_old(latest).await {
            let error = storage::scrub(&error.to_string());
            tracing::warn!("removing old files of the index: {error}");
        }
    }

    async fn try_remove_old(&self, latest: &Manifest) -> Result<()> {
        let names = |manifest: &Manifest| -> Vec<String> {
            let segments = manifest.segments.iter();
            segments.map(|entry| entry.name.clone()).collect()
        };
        let mut versions = manifest::versions(&self.location).await?;
        versions.retain(|version| *version < latest.version);
        let before = versions.pop();
        let mut needed = BTreeSet::from_iter(names(latest));
        let mut memories: Vec<i64> = latest.archive.templates.into_iter().collect();
        if let Some(before) = before {
            let before = Manifest::read(&self.location, before).await?;
            needed.extend(names(&before));
            memories.extend(before.archive.templates);
        }
        let mut replaced = BTreeSet::new();
        for version in &versions {
            // Another build may have removed it.
            if let Ok(manifest) = Manifest::read(&self.location, *version).await {
                replaced.extend(names(&manifest));
            }
        }
        let long_ago = chrono::Utc::now() - STALE;
        for object in self.location.list().await? {
            let file = object.location.filename().unwrap_or_default();
            let Some((name, _)) = file.trim_start_matches('.').split_once('.') else {
                continue;
            };
            // The segments of a build in progress are named by no manifest yet.
            let is_left = replaced.contains(name) || object.last_modified < long_ago;
            if manifest::is_segment_name(name) && !needed.contains(name) && is_left {
                self.delete(file).await?;
                self.drop_copies(name);
            }
        }
        template_memory::remove_old(&self.location, &memories, long_ago).await?;
        // Last: after an interruption, the next build knows by them what was replaced.
        for version in versions {
            self.delete(&manifest::name(version)).await?;
        }
        Ok(())
    }

    /// Removes a segment from the cache, if the index is in a store.
    pub(crate) fn drop_copies(&self, name: &str) {
        if self.location.local().is_none() {
            for ending in [TABLES, ROWS] {
                // If this fails, the file stays until somebody empties the cache.
                let _ = std::fs::remove_file(self.path(name, ending));
            }
        }
    }

    async fn delete(&self, name: &str) -> Result<()> {
        Ok(self.location.child(name)?.remove().await?)
    }
}

/// Opens the segment of an entry, whose files are in `directory`. Errors call it `object`.
fn open_entry(directory: &Path, entry: &SegmentEntry, object: &str) -> Result<Arc<Segment>> {
    let segment = Segment::open(directory, &entry.name).map_err(|error| match error {
        LookupError::Storage(StorageError::Io { path, source })
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            StorageError::NotFound { path }.into()
        }
        error => error,
    })?;
    let [tables, rows] = file_entries(&segment);
    if tables != entry.tables || rows != entry.rows_file || segment.facts != entry.facts {
        let reason = "the segment differs from its entry in the manifest";
        return Err(LookupError::damaged(object, reason));
    }
    Ok(Arc::new(segment))
}

/// The entries of a segment's files: the tables, and the rows.
fn file_entries(segment: &Segment) -> [FileEntry; 2] {
    let files = segment.files();
    files.map(|file| FileEntry::new((file.size(), file.sum)))
}

/// Whether a path below an index's directory is one of its own files.
fn is_own(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("_dedup-job/")
        || file.starts_with("manifest-")
        || file.starts_with(SEGMENT_PREFIX)
        // Temporary files of builds.
        || file.starts_with('.')
}
