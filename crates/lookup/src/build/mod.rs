//! Brings an index up to date with its archive.
//!
//! The data files of a day are read from the archive once, and become a segment (several, if they are many). At least
//! four segments of like size are merged into one, so that a lookup searches few. A segment with rows of files that the
//! archive no longer has is written again without them. One version is published for all that was added or removed, and
//! one for each merge.

mod merge;
mod parts;
mod rows;
mod tiers;

use std::sync::Arc;

use archive::{Archive, spec_files, template_memory};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use storage::{hex, require_conditional_create};

use crate::error::{LookupError, Result};
use crate::files::IndexFiles;
use crate::manifest::{ArchiveFacts, Manifest, SEGMENT_PREFIX, SegmentEntry};
use crate::rows::RowShape;
use crate::segment::{Part, Scan};
use merge::{Input, Merge};
use parts::ArchivePart;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Threads that sort and encode the table `rotated`.
    pub threads: usize,
    /// Merge all segments into one: fewer bytes to search, more to write.
    pub merge_all: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BuildReport {
    pub version: u64,
    /// The version of the archive that it covers.
    pub archive_version: u64,
    /// Rows that were read from the archive.
    pub added_rows: u64,
    /// Rows that were in the index, and are no longer in the archive.
    pub removed_rows: u64,
    /// Segments that were merged into others.
    pub merged: u64,
    /// Segments now.
    pub segments: u64,
    /// Documents with a fingerprint.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Builds an index of `archive`, or brings it up to date. Calls `rows_done` with the rows written since the last call.
/// If a build is stopped, the next one continues it.
///
/// # Errors
/// [`LookupError`]; the versions that were published stay.
pub async fn build(
    archive: &Archive,
    files: &IndexFiles,
    settings: Settings,
    rows_done: Arc<dyn Fn(u64) + Send + Sync>,
) -> Result<BuildReport> {
    let location = files.location();
    require_conditional_create(location).await?;
    let previous = Manifest::latest(location).await?;
    // The archive may have been opened before another build indexed a later commit.
    let reopened = match &previous {
        Some(previous) if previous.archive.version > archive.version() => {
            Some(Archive::open(archive.location()).await?)
        }
        _ => None,
    };
    let archive = reopened.as_ref().unwrap_or(archive);
    match &previous {
        Some(previous) => require_same(previous, archive, location.given())?,
        None => {
            files.require_own().await?;
            files.create_directory()?;
        }
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build();
    let pool =
        pool.map_err(|error| LookupError::io("starting threads")(std::io::Error::other(error)))?;
    let mut build = Build {
        archive,
        files,
        pool: Arc::new(pool),
        rows_done,
        templates: previous
            .as_ref()
            .and_then(|previous| previous.archive.templates),
        manifest: previous,
        built: BuildReport::default(),
    };
    let parts = parts::from_archive(archive)?;
    let done = match build.follow(&parts).await {
        Ok(()) => build.merge(settings.merge_all).await,
        failed => failed,
    };
    match done {
        Ok(()) => Ok(build.finish()),
        Err(error) => Err(build.why(error).await),
    }
}

/// Refuses an archive with another spec, another table id, or a lower version than the index covers.
fn require_same(manifest: &Manifest, archive: &Archive, index: &str) -> Result<()> {
    let spec = manifest.spec(index)?;
    let differences = spec.differences(archive.spec());
    if !differences.is_empty() {
        return Err(archive::ArchiveError::SpecMismatch {
            left: index.to_owned(),
            right: archive.location().to_string(),
            differences,
        }
        .into());
    }
    let table = archive.table_id();
    if manifest.archive.table != table {
        return Err(LookupError::OtherArchive {
            index: index.to_owned(),
            reason: format!(
                "it is an index of another archive, {}",
                manifest.archive.location
            ),
        });
    }
    if manifest.archive.version > archive.version() {
        return Err(LookupError::OtherArchive {
            index: index.to_owned(),
            reason: format!(
                "it covers version {} of the archive, which is now at version {}",
                manifest.archive.version,
                archive.version()
            ),
        });
    }
    Ok(())
}

struct Build<'a> {
    archive: &'a Archive,
    files: &'a IndexFiles,
    pool: Arc<rayon::ThreadPool>,
    rows_done: Arc<dyn Fn(u64) + Send + Sync>,
    /// The latest version that was published.
    manifest: Option<Manifest>,
    /// The version of what the archive remembers of templates; the index has a copy of this file.
    templates: Option<i64>,
    built: BuildReport,
}

impl Build<'_> {
    fn segments(&self) -> Vec<SegmentEntry> {
        self.manifest
            .as_ref()
            .map_or_else(Vec::new, |manifest| manifest.segments.clone())
    }

    /// Adds the parts that the index lacks, removes those that the archive no longer has, and publishes a version.
    async fn follow(&mut self, parts: &[ArchivePart]) -> Result<()> {
        let is_there = |part: &Part| parts.iter().any(|there| there.part == *part);
        let mut segments = Vec::new();
        for entry in self.segments() {
            let stays: Vec<bool> = entry.facts.parts.iter().map(is_there).collect();
            if stays.iter().all(|stays| *stays) {
                segments.push(entry);
                continue;
            }
            self.built.removed_rows += entry.facts.rows;
            if stays.iter().any(|stays| *stays) {
                let rewritten = self.merged(&[entry], &is_there).await?;
                self.built.removed_rows -= rewritten.facts.rows;
                segments.push(rewritten);
            }
        }
        let covered: Vec<Part> = segments
            .iter()
            .flat_map(|entry| entry.facts.parts.clone())
            .collect();
        for part in parts.iter().filter(|part| !covered.contains(&part.part)) {
            let added = self.added(part).await?;
            self.built.added_rows += added.facts.rows;
            segments.push(added);
        }
        let is_first = self.manifest.is_none();
        let covers = self
            .manifest
            .as_ref()
            .map(|manifest| manifest.archive.version);
        if segments != self.segments() || covers != Some(self.archive.version()) {
            if is_first {
                spec_files::copy(
                    self.archive.location(),
                    self.files.location(),
                    self.archive.spec(),
                )
                .await?;
            }
            self.templates = self.archive.template_memory().await?;
            self.copy_templates().await?;
            self.publish(segments).await?;
        }
        // Whoever deleted the copy that the latest version names.
        self.copy_templates().await
    }

    /// Copies what the archive remembers of templates to the index.
    async fn copy_templates(&self) -> Result<()> {
        if let Some(version) = self.templates {
            let (from, to) = (self.archive.location(), self.files.location());
            template_memory::copy(from, to, version).await?;
        }
        Ok(())
    }

    /// Merges segments, and publishes after each merge.
    async fn merge(&mut self, all: bool) -> Result<()> {
        while let Some(chosen) = tiers::next_merge(&self.segments(), all) {
            let (merging, mut segments): (Vec<_>, Vec<_>) = self
                .segments()
                .into_iter()
                .partition(|entry| chosen.contains(&entry.name));
            let merged = self.merged(&merging, &|_| true).await?;
            self.built.merged += merging.len() as u64;
            segments.push(merged);
            self.publish(segments).await?;
        }
        Ok(())
    }

    async fn publish(&mut self, segments: Vec<SegmentEntry>) -> Result<()> {
        let facts = ArchiveFacts {
            location: self.archive.location().absolute_name(),
            table: self.archive.table_id().to_owned(),
            version: self.archive.version(),
            id_type: self.archive.id_type().to_string(),
            runs: Some(self.archive.run_defaults().clone()),
            templates: self.templates,
        };
        let manifest = Manifest::next(self.manifest.as_ref(), facts, self.archive.spec(), segments);
        manifest.create(self.files.location()).await?;
        self.files.remove_old(&manifest).await;
        self.manifest = Some(manifest);
        Ok(())
    }

    /// The error to report for `error`: that other builds came first, if they have removed a file that this one reads or
    /// writes.
    async fn why(&self, error: LookupError) -> LookupError {
        if !error.is_missing_file() {
            return error;
        }
        let own = self.manifest.as_ref().map_or(0, |own| own.version);
        let location = self.files.location();
        match Manifest::latest(location).await {
            Ok(Some(latest)) if latest.version > own => LookupError::Overtaken {
                path: location.to_string(),
                version: latest.version,
            },
            _ => error,
        }
    }

    fn finish(mut self) -> BuildReport {
        if let Some(manifest) = &self.manifest {
            self.built.version = manifest.version;
            self.built.archive_version = manifest.archive.version;
            self.built.segments = manifest.segments.len() as u64;
            self.built.rows = manifest.segments.iter().map(|entry| entry.facts.rows).sum();
            let bytes = manifest
                .segments
                .iter()
                .map(|entry| entry.tables.bytes + entry.rows_file.bytes);
            self.built.bytes = bytes.sum();
        }
        self.built
    }

    /// Writes the segment of a part of the archive.
    async fn added(&self, part: &ArchivePart) -> Result<SegmentEntry> {
        let parts = vec![part.part.clone()];
        self.segment(parts, part.rows, async || {
            let (mut inputs, mut rows) = (Vec::new(), 0);
            for file in &part.files {
                let opened = self.archive.open_file(file).await?;
                rows += opened.reader.row_groups().sum::<u64>();
                inputs.push(Input::File {
                    pieces: rows::pieces(opened, self.archive.spec().sketch),
                    piece: None,
                    at: 0,
                });
            }
            Ok((inputs, rows))
        })
        .await
    }

    /// Merges segments into one, which keeps the rows of the parts for which `stays` is true.
    async fn merged(
        &self,
        entries: &[SegmentEntry],
        stays: &dyn Fn(&Part) -> bool,
    ) -> Result<SegmentEntry> {
        let parts = entries.iter().flat_map(|entry| entry.facts.parts.iter());
        let parts: Vec<Part> = parts.filter(|part| stays(part)).cloned().collect();
        let rows = entries.iter().map(|entry| entry.facts.rows).sum();
        self.segment(parts.clone(), rows, async || {
            let mut inputs = Vec::new();
            for entry in entries {
                let segment = self.files.open(entry).await?;
                let numbers = entry.facts.parts.iter().map(|part| {
                    let number = parts.iter().position(|other| other == part);
                    number.and_then(|number| u16::try_from(number).ok())
                });
                inputs.push(Input::segment(Scan::new(segment), numbers.collect()));
            }
            Ok((inputs, rows))
        })
        .await
    }

    /// Writes a segment of `parts` from inputs of at most `rows` rows, unless a stopped build has left it.
    async fn segment(
        &self,
        parts: Vec<Part>,
        rows: u64,
        inputs: impl AsyncFnOnce() -> Result<(Vec<Input>, u64)>,
    ) -> Result<SegmentEntry> {
        let shape = RowShape {
            bigint: self.archive.id_type() == archive::IdType::Bigint,
            days: parts.len() > 1,
            sketch: self.archive.spec().sketch.bytes(),
        };
        let name = segment_name(&parts, rows, shape);
        if let Some(entry) = self.files.unlisted(&name).await? {
            return Ok(entry);
        }
        let drafts = self.files.drafts(&name)?;
        let (inputs, rows) = inputs().await?;
        let merge = Merge {
            name: name.clone(),
            files: (drafts[0].open()?, drafts[1].open()?),
            shape,
            parts,
            rows,
            inputs,
            scratch: self.files.scratch.clone(),
            pool: Arc::clone(&self.pool),
            rows_done: Arc::clone(&self.rows_done),
        };
        let merging = tokio::task::spawn_blocking(move || merge.run());
        let (facts, written) = LookupError::joined(merging, "building a segment").await?;
        self.files.publish(&name, drafts, written, facts).await
    }
}

/// The name is a digest of what goes into the segment, so that a restarted build finds the segment.
fn segment_name(parts: &[Part], rows: u64, shape: RowShape) -> String {
    let json = serde_json::json!({ "format": 1, "parts": parts, "rows": rows, "shape": shape });
    format!(
        "{SEGMENT_PREFIX}{}",
        &hex(&Sha256::digest(json.to_string()))[..32]
    )
}
