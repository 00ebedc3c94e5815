//! The versions of an index: each is a manifest, a file that names segments.
//!
//! One conditional create publishes a manifest; after that it never changes. A reader opens the latest one. The one
//! before stays, for readers that have just opened it.

use archive::{IdType, RunDefaults};
use serde::{Deserialize, Serialize};
use simhash::Spec;
use storage::{Location, StorageError};
use twox_hash::XxHash3_64;

use crate::error::{LookupError, Result};
use crate::segment::SegmentFacts;

/// The format of manifests that this release writes.
const FORMAT: u32 = 2;
const PREFIX: &str = "manifest-";
const ENDING: &str = ".json";
/// The beginning of the names of segments.
pub(crate) const SEGMENT_PREFIX: &str = "segment-";

/// A version of an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    pub(crate) version: u64,
    pub(crate) archive: ArchiveFacts,
    /// The spec of its fingerprints, as canonical JSON.
    spec: String,
    /// The largest distance that it answers.
    max_distance: u32,
    pub(crate) segments: Vec<SegmentEntry>,
    /// XXH3-64 of the manifest with an empty sum, as compact JSON, in hexadecimal digits.
    sum: String,
}

/// The archive that a version covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArchiveFacts {
    /// The path or URL with which the index was built.
    pub(crate) location: String,
    /// The id of its Delta table.
    pub(crate) table: String,
    pub(crate) version: u64,
    /// `string` or `bigint`.
    pub(crate) id_type: String,
    /// The settings of runs that it records.
    #[serde(default)]
    pub(crate) runs: Option<RunDefaults>,
    /// The version of what it remembers of templates.
    #[serde(default)]
    pub(crate) templates: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentEntry {
    /// Its files are `<name>.tables` and `<name>.rows`.
    pub(crate) name: String,
    pub(crate) tables: FileEntry,
    pub(crate) rows_file: FileEntry,
    #[serde(flatten)]
    pub(crate) facts: SegmentFacts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// XXH3-64 of its page checksums and its footer, in hexadecimal digits.
    pub(crate) sum: String,
}

impl FileEntry {
    pub(crate) fn new((bytes, sum): (u64, u64)) -> Self {
        Self {
            bytes,
            sum: format!("{sum:016x}"),
        }
    }
}

impl Manifest {
    /// The version after `previous`, or the first.
    pub(crate) fn next(
        previous: Option<&Self>,
        archive: ArchiveFacts,
        spec: &Spec,
        segments: Vec<SegmentEntry>,
    ) -> Self {
        let mut manifest = Self {
            format: FORMAT,
            version: previous.map_or(1, |previous| previous.version + 1),
            archive,
            spec: spec.to_json(),
            max_distance: crate::MAX_DISTANCE,
            segments,
            sum: String::new(),
        };
        manifest.sum = manifest.computed_sum();
        manifest
    }

    fn computed_sum(&self) -> String {
        let unsummed = Self {
            sum: String::new(),
            ..self.clone()
        };
        let json = serde_json::to_vec(&unsummed).unwrap_or_default();
        format!("{:016x}", XxHash3_64::oneshot(&json))
    }

    pub(crate) fn spec(&self, object: &str) -> Result<Spec> {
        Spec::from_json(&self.spec).map_err(|error| LookupError::damaged(object, error))
    }

    pub(crate) fn id_type(&self, object: &str) -> Result<IdType> {
        let parsed = self.archive.id_type.parse();
        parsed.map_err(|reason: String| LookupError::damaged(object, reason))
    }

    /// Creates the manifest.
    ///
    /// # Errors
    /// [`LookupError::Overtaken`] when another build has created this version or a later one.
    pub(crate) async fn create(&self, index: &Location) -> Result<()> {
        let object = index.child(&name(self.version))?;
        let json = serde_json::to_vec_pretty(self);
        let json = json.map_err(|error| LookupError::damaged(object.given(), error))?;
        let mut version = self.version;
        if object.create(json.into()).await? {
            version = versions(index).await?.pop().unwrap_or(version);
            if version <= self.version {
                return Ok(());
            }
            // Other builds have published later versions, and removed their manifest of this one.
            let _ = object.remove().await;
        }
        Err(LookupError::Overtaken {
            path: index.to_string(),
            version,
        })
    }

    pub(crate) async fn read(index: &Location, version: u64) -> Result<Self> {
        let object = index.child(&name(version))?;
        let bytes = object.read().await?;
        let damaged = |error: serde_json::Error| LookupError::damaged(object.given(), error);
        /// The field that manifests of all formats have.
        #[derive(Deserialize)]
        struct AnyFormat {
            format: u32,
        }
        let any: AnyFormat = serde_json::from_slice(&bytes).map_err(damaged)?;
        if any.format != FORMAT {
            return Err(LookupError::Format {
                object: object.to_string(),
                found: any.format,
                known: FORMAT,
            });
        }
        let read: Self = serde_json::from_slice(&bytes).map_err(damaged)?;
        if read.sum != read.computed_sum() {
            return Err(LookupError::damaged(
                object.given(),
                "damaged: its content does not match its checksum; build the index again",
            ));
        }
        if read.version != version {
            return Err(LookupError::damaged(
                object.given(),
                "it is the manifest of another version",
            ));
        }
        // The name becomes the path of a local file.
        match read
            .segments
            .iter()
            .find(|entry| !is_segment_name(&entry.name))
        {
            None => Ok(read),
            Some(entry) => Err(LookupError::damaged(
                object.given(),
                format!("{:?} is no name of a segment", entry.name),
            )),
        }
    }

    /// Reads the latest manifest. Returns `None` if the index has no manifest yet.
    pub(crate) async fn latest(index: &Location) -> Result<Option<Self>> {
        // A build may remove old manifests between the two requests.
        for _ in 0..3 {
            let Some(mut version) = versions(index).await?.pop() else {
                return Ok(None);
            };
            // A list may leave out the last ones.
            while index.local().is_none() && index.child(&name(version + 1))?.exists().await? {
                version += 1;
            }
            match Self::read(index, version).await {
                Err(LookupError::Storage(StorageError::NotFound { .. })) => {}
                read => return read.map(Some),
            }
        }
        Err(LookupError::damaged(
            index,
            "its manifests disappear while they are read",
        ))
    }
}

/// Whether a name is that of a segment: `segment-` and 32 hexadecimal digits.
pub(crate) fn is_segment_name(name: &str) -> bool {
    let digits = name.strip_prefix(SEGMENT_PREFIX).unwrap_or_default();
    digits.len() == 32
        && digits
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

pub(crate) fn name(version: u64) -> String {
    format!("{PREFIX}{version:020}{ENDING}")
}

/// The versions that have a manifest, ascending.
pub(crate) async fn versions(index: &Location) -> Result<Vec<u64>> {
    let mut versions: Vec<u64> = names(index)
        .await?
        .iter()
        .filter_map(|name| version(name))
        .collect();
    versions.sort_unstable();
    Ok(versions)
}

fn version(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.strip_suffix(ENDING)?;
    (number.len() == 20).then(|| number.parse().ok())?
}

/// Paths of all files in the directory of an index, relative to it.
pub(crate) async fn names(index: &Location) -> Result<Vec<String>> {
    if index.local().is_some_and(|local| !local.exists()) {
        return Ok(Vec::new());
    }
    let listed = index.list().await?;
    let below = |path: &object_store::path::Path| {
        let parts = path.prefix_match(index.path())?;
        let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
        Some(parts.join("/"))
    };
    Ok(listed
        .iter()
        .filter_map(|object| below(&object.location))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_named_by_its_digest() {
        assert!(is_segment_name("segment-0123456789abcdef0123456789abcdef"));
        for other in [
            "segment-0123456789ABCDEF0123456789abcdef",
            "segment-0123456789abcdef0123456789abcde",
            "../segment-0123456789abcdef0123456789abcdef",
            "segment-../456789abcdef0123456789abcdef0",
            "../victim/keep",
            "",
        ] {
            assert!(!is_segment_name(other), "{other}");
        }
    }

    #[test]
    fn only_manifests_have_versions() {
        assert_eq!(version(&name(12)), Some(12));
        for other in [
            "manifest-12.json",
            "manifest-00000000000000000012.tmp",
            "segment.tables",
        ] {
            assert_eq!(version(other), None);
        }
    }
}
