//! The files of an index: written, published, removed, and copied to a cache on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStoreExt as _;
use storage::{Draft, Location, StorageError, create_dir_all_synced};

use crate::error::{LookupError, Result};
use crate::manifest::{self, FileEntry, Manifest, SegmentEntry};
use crate::segment::{ROWS, Segment, SegmentFacts, TABLES, WrittenFiles};

/// Where an index is, and the directory from which its segments are mapped: the index itself if it is local, else a
/// cache.
#[derive(Debug, Clone)]
pub struct IndexFiles {
    location: Location,
    directory: PathBuf,
    scratch: PathBuf,
}

/// The two files of a segment, while they are written.
pub(crate) struct Drafts {
    tables: Draft,
    rows: Draft,
}

impl Drafts {
    /// Opens both files for writing.
    pub(crate) fn open(&self) -> Result<(std::fs::File, std::fs::File)> {
        Ok((self.tables.open()?, self.rows.open()?))
    }
}

impl IndexFiles {
    /// The index at `location`. If it is in a store, its segments are copied to `cache`. Temporary files go to
    /// `scratch`.
    ///
    /// # Errors
    /// When the cache cannot be created.
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

    /// Location of the index.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Creates the directory of a local index.
    pub(crate) fn create_directory(&self) -> Result<()> {
        let Some(local) = self.location.local() else {
            return Ok(());
        };
        create_dir_all_synced(local).map_err(LookupError::io(local.display()))
    }

    /// Begins a segment.
    pub(crate) fn draft(&self, name: &str) -> Result<Drafts> {
        let draft = |ending| -> Result<Draft> {
            let target = self.location.child(&format!("{name}.{ending}"))?;
            Ok(Draft::new(&target, &self.scratch)?)
        };
        Ok(Drafts {
            tables: draft(TABLES)?,
            rows: draft(ROWS)?,
        })
    }

    /// Publishes a segment that was written.
    pub(crate) async fn publish(
        &self,
        name: &str,
        drafts: Drafts,
        written: WrittenFiles,
        facts: SegmentFacts,
    ) -> Result<SegmentEntry> {
        if self.location.local().is_none() {
            // Link both files into the cache, so that nobody on this machine fetches them. If this fails, they are
            // fetched.
            for (ending, draft) in [(TABLES, &drafts.tables), (ROWS, &drafts.rows)] {
                let _ = std::fs::hard_link(draft.path(), self.path(name, ending));
            }
        }
        // Publish the rows first: a segment that has tables has rows.
        drafts.rows.publish().await?;
        drafts.tables.publish().await?;
        Ok(SegmentEntry {
            name: name.to_owned(),
            tables: FileEntry::new(written.tables),
            rows_file: FileEntry::new(written.rows),
            facts,
        })
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.directory.join(format!("{name}.{ending}"))
    }

    /// Finds a segment that a stopped build has left: its entry for a manifest; `None` if a file is missing or damaged.
    pub(crate) async fn unlisted(&self, name: &str) -> Result<Option<SegmentEntry>> {
        for ending in [TABLES, ROWS] {
            if !self
                .location
                .child(&format!("{name}.{ending}"))?
                .exists()
                .await?
            {
                return Ok(None);
            }
            self.fetch(name, ending, None).await?;
        }
        let Ok(segment) = Segment::open(&self.directory, name) else {
            return Ok(None);
        };
        let ((tables, rows), (tables_sum, rows_sum)) = (segment.bytes(), segment.sums());
        Ok(Some(SegmentEntry {
            name: name.to_owned(),
            tables: FileEntry::new((tables, tables_sum)),
            rows_file: FileEntry::new((rows, rows_sum)),
            facts: segment.facts.clone(),
        }))
    }

    /// Opens a segment of a manifest; if the index is in a store, copies the segment to the cache first.
    pub(crate) async fn open(&self, entry: &SegmentEntry) -> Result<Arc<Segment>> {
        self.fetch(&entry.name, TABLES, Some(&entry.tables)).await?;
        self.fetch(&entry.name, ROWS, Some(&entry.rows_file))
            .await?;
        let segment = Segment::open(&self.directory, &entry.name);
        let segment = segment.map_err(|error| match error {
            LookupError::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
                StorageError::NotFound { path }.into()
            }
            error => error,
        })?;
        let ((tables, rows), (tables_sum, rows_sum)) = (segment.bytes(), segment.sums());
        let found = (
            FileEntry::new((tables, tables_sum)),
            FileEntry::new((rows, rows_sum)),
        );
        if (&found.0, &found.1) != (&entry.tables, &entry.rows_file) || segment.facts != entry.facts
        {
            let name = self.location.child_name(&entry.name);
            return Err(LookupError::damaged(
                name,
                "the segment differs from its entry in the manifest",
            ));
        }
        Ok(Arc::new(segment))
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

    /// Removes the manifests before the last two, and the segments that only they name.
    pub(crate) async fn remove_old(&self, latest: &Manifest) -> Result<()> {
        let mut versions = manifest::versions(&self.location).await?;
        versions.retain(|version| *version <= latest.version);
        let old: Vec<u64> = versions.iter().rev().skip(2).copied().collect();
        let mut needed: BTreeSet<String> = latest
            .segments
            .iter()
            .map(|entry| entry.name.clone())
            .collect();
        if let Some(before) = versions.iter().rev().nth(1) {
            let before = Manifest::read(&self.location, *before).await?;
            needed.extend(before.segments.into_iter().map(|entry| entry.name));
        }
        for version in old {
            let manifest = Manifest::read(&self.location, version).await?;
            for entry in manifest
                .segments
                .iter()
                .filter(|entry| !needed.contains(&entry.name))
            {
                for ending in [TABLES, ROWS] {
                    self.delete(&format!("{}.{ending}", entry.name)).await?;
                }
                self.drop_copies(&entry.name);
            }
            // Delete the manifest last: after an interruption, the next build finds its segments through it.
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
        let object = self.location.child(name)?;
        match object.store().delete(object.path()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StorageError::store(&object)(error).into()),
        }
    }
}

/// Whether a path below an index's directory is one of its own files.
fn is_own(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("_dedup-job/")
        || file.starts_with("manifest-")
        || file.starts_with("segment-")
        // Temporary files of builds.
        || file.starts_with('.')
}
