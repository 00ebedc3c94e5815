//! An index, open at one version.

use std::sync::Arc;

use archive::IdType;
use serde::Serialize;
use simhash::Spec;
use storage::{Location, StorageError};

use crate::error::{LookupError, Result};
use crate::files::IndexFiles;
use crate::manifest::{self, Manifest, SegmentEntry};
use crate::search::Searcher;
use crate::segment::{Document, Part, Segment};
use crate::text_model::TextModel;

/// An index at one version. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Index {
    location: Location,
    manifest: Arc<Manifest>,
    spec: Arc<Spec>,
    id_type: IdType,
    segments: Arc<[Arc<Segment>]>,
}

/// What an index holds.
#[derive(Debug, Clone, Serialize)]
pub struct IndexInfo {
    /// Its version, counted from 1.
    pub version: u64,
    /// Path or URL of its archive.
    pub archive: String,
    pub archive_version: u64,
    /// The largest distance that it answers.
    pub max_distance: u32,
    /// Distinct fingerprints, summed over the segments.
    pub fingerprints: u64,
    /// Documents with a fingerprint.
    pub rows: u64,
    /// Days that have documents.
    pub days: u64,
    /// Bytes of the tables on disk.
    pub table_bytes: u64,
    /// Bytes of ids, days and sketches on disk.
    pub row_bytes: u64,
    /// Bytes of the directories, which are held in memory.
    pub directory_bytes: u64,
    pub segments: Vec<SegmentInfo>,
}

/// What a segment holds.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentInfo {
    pub name: String,
    /// Distinct fingerprints.
    pub fingerprints: u64,
    pub rows: u64,
    /// Bytes of its tables on disk.
    pub table_bytes: u64,
    /// Bytes of ids, days and sketches on disk.
    pub row_bytes: u64,
    /// The files of the archive that it covers, by day.
    pub parts: Vec<Part>,
}

impl Index {
    /// Opens the latest version.
    pub async fn open(files: &IndexFiles) -> Result<Self> {
        let location = files.location();
        for attempt in 0.. {
            let manifest = Manifest::latest(location).await?;
            let manifest = manifest.ok_or_else(|| LookupError::NotAnIndex {
                path: location.to_string(),
            })?;
            match Self::open_at(files, manifest, &[]).await {
                // A build may have published newer versions meanwhile, and removed these segments.
                Err(LookupError::Storage(StorageError::NotFound { .. })) if attempt < 3 => {}
                Err(LookupError::Storage(StorageError::NotFound { path })) => {
                    let reason = "the index's manifest names this file, but it is missing";
                    return Err(LookupError::damaged(path, reason));
                }
                opened => return opened,
            }
        }
        unreachable!("the loop returns")
    }

    /// Opens the latest version if it is newer than this one; reuses the open segments that both have.
    ///
    /// # Errors
    /// As [`Self::open`], also when the index is gone.
    pub async fn newer(&self, files: &IndexFiles) -> Result<Option<Self>> {
        let latest = Manifest::latest(files.location()).await?;
        let latest = latest.ok_or_else(|| LookupError::NotAnIndex {
            path: files.location().to_string(),
        })?;
        let own = files
            .location()
            .child(&manifest::name(self.manifest.version))?;
        // A list may leave out the last ones.
        if latest.version < self.manifest.version && own.exists().await? {
            return Ok(None);
        }
        // A lower version belongs to an index that was made again.
        if latest == *self.manifest {
            return Ok(None);
        }
        let open = self.named_segments();
        Self::open_at(files, latest, &open).await.map(Some)
    }

    /// Removes from the cache the segments that `next` no longer has.
    pub(crate) fn drop_copies(&self, files: &IndexFiles, next: &Self) {
        let stay = &next.manifest.segments;
        for entry in &self.manifest.segments {
            if !stay.iter().any(|other| other.name == entry.name) {
                files.drop_copies(&entry.name);
            }
        }
    }

    fn named_segments(&self) -> Vec<(String, Arc<Segment>)> {
        let entries = self.manifest.segments.iter().zip(self.segments.iter());
        let named = entries.map(|(entry, segment)| (entry.name.clone(), Arc::clone(segment)));
        named.collect()
    }

    async fn open_at(
        files: &IndexFiles,
        manifest: Manifest,
        open: &[(String, Arc<Segment>)],
    ) -> Result<Self> {
        let given = files.location().given();
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for entry in &manifest.segments {
            let known = open.iter().find(|(name, _)| *name == entry.name);
            segments.push(match known {
                Some((_, segment)) => Arc::clone(segment),
                None => files.open(entry).await?,
            });
        }
        Ok(Self {
            location: files.location().clone(),
            spec: Arc::new(manifest.spec(given)?),
            id_type: manifest.id_type(given)?,
            manifest: Arc::new(manifest),
            segments: segments.into(),
        })
    }

    /// How its fingerprints were made.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Its version, counted from 1.
    pub fn version(&self) -> u64 {
        self.manifest.version
    }

    /// The k and the least similarity of a look-up that asks for none: those of runs with the archive.
    pub fn default_nearness(&self) -> (u32, f64) {
        let runs = self.manifest.archive.runs.as_ref();
        runs.map_or((3, 0.0), |runs| {
            let k = runs.max_distance.min(crate::MAX_DISTANCE);
            (k, runs.min_similarity.unwrap_or(0.0))
        })
    }

    pub fn id_type(&self) -> IdType {
        self.id_type
    }

    /// How texts become fingerprints: the spec with the files that it names (such as document frequencies), and the templates of
    /// sources.
    ///
    /// # Errors
    /// [`LookupError::Archive`] when they are missing or damaged.
    pub async fn model(&self) -> Result<TextModel> {
        let templates = self.manifest.archive.templates;
        TextModel::read(&self.location, &self.spec, templates).await
    }

    /// A searcher, for one thread.
    pub fn searcher(&self) -> Searcher {
        Searcher::new(Arc::clone(&self.segments))
    }

    /// Reads the document of one of the rows in a [`Found`](crate::Found).
    ///
    /// # Errors
    /// [`LookupError::Damaged`] when its page is damaged.
    pub fn document(&self, segment: u32, row: u32) -> Result<Document> {
        let opened = self.segments.get(segment as usize);
        let opened = opened.ok_or_else(|| {
            LookupError::damaged(&self.location, format!("it has no segment {segment}"))
        })?;
        opened.document(row)
    }

    /// Reads the tables into the system's page cache, then the rows, up to `bytes` bytes, so that the first lookups do not
    /// wait for the disk. Returns early when `stop` returns true.
    pub fn read_ahead(&self, bytes: u64, stop: impl Fn() -> bool) {
        let mut left = bytes;
        for number in [0, 1] {
            for segment in self.segments.iter() {
                let file = segment.files()[number];
                let size = left.min(file.size());
                file.read_ahead(usize::try_from(size).unwrap_or(usize::MAX), &stop);
                if stop() {
                    return;
                }
                left -= size;
            }
        }
    }

    pub fn info(&self) -> IndexInfo {
        let segments: Vec<SegmentInfo> = self.manifest.segments.iter().map(segment_info).collect();
        let sum = |each: fn(&SegmentInfo) -> u64| segments.iter().map(each).sum();
        let days: std::collections::BTreeSet<_> = segments
            .iter()
            .flat_map(|segment| segment.parts.iter().map(|part| part.day))
            .collect();
        let tables = self.segments.iter().flat_map(|segment| &segment.tables);
        IndexInfo {
            version: self.manifest.version,
            archive: self.manifest.archive.location.clone(),
            archive_version: self.manifest.archive.version,
            max_distance: crate::MAX_DISTANCE,
            fingerprints: sum(|segment| segment.fingerprints),
            rows: sum(|segment| segment.rows),
            days: days.len() as u64,
            table_bytes: sum(|segment| segment.table_bytes),
            row_bytes: sum(|segment| segment.row_bytes),
            directory_bytes: tables.map(|table| table.directory_bytes()).sum(),
            segments,
        }
    }

    /// The nearness of a look-up that asks for `k` and `min_similarity`, or for what runs with the archive take.
    ///
    /// # Errors
    /// [`LookupError::Distance`] and [`LookupError::Similarity`] for what the index cannot answer.
    pub fn nearness(&self, k: Option<u32>, min_similarity: Option<f64>) -> Result<(u32, f64)> {
        let (default_k, default_similarity) = self.default_nearness();
        let k = k.unwrap_or(default_k);
        if k > crate::MAX_DISTANCE {
            return Err(LookupError::Distance { k });
        }
        let least = min_similarity.unwrap_or(default_similarity);
        let wrong = |reason: &str| {
            Err(LookupError::Similarity {
                least,
                reason: reason.to_owned(),
            })
        };
        match least {
            _ if !(0.0..=1.0).contains(&least) => wrong("it must be from 0 to 1"),
            // Without an estimate, every hit would stay.
            _ if min_similarity > Some(0.0) && self.spec.sketch.is_none() => wrong(
                "the index has no sketches, by which similarities are estimated, and neither has its archive",
            ),
            _ => Ok((k, least)),
        }
    }

    /// Finds damage in the copies of segments in the cache, removes these copies, and opens the index with new ones; `None` if no copy
    /// is damaged, or if the index is no copy.
    pub async fn repaired(&self, files: &IndexFiles) -> Result<Option<Self>> {
        if self.location.local().is_some() {
            return Ok(None);
        }
        let segments = self.named_segments();
        let damaged = tokio::task::spawn_blocking(move || {
            let damaged = segments
                .iter()
                .filter(|(_, segment)| segment.verify().is_err());
            damaged.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        });
        let damaged = damaged.await.unwrap_or_default();
        if damaged.is_empty() {
            return Ok(None);
        }
        for name in damaged {
            tracing::warn!(
                "{}: the copy of {name} in the cache is damaged: it is copied again",
                self.location
            );
            files.drop_copies(&name);
        }
        Self::open(files).await.map(Some)
    }

    /// Reads and checks every byte of every segment.
    ///
    /// # Errors
    /// [`LookupError::Damaged`] at the first damaged page.
    pub fn verify(&self) -> Result<()> {
        self.segments
            .iter()
            .try_for_each(|segment| segment.verify())
    }
}

fn segment_info(entry: &SegmentEntry) -> SegmentInfo {
    SegmentInfo {
        name: entry.name.clone(),
        fingerprints: entry.facts.fingerprints,
        rows: entry.facts.rows,
        table_bytes: entry.tables.bytes,
        row_bytes: entry.rows_file.bytes,
        parts: entry.facts.parts.clone(),
    }
}
