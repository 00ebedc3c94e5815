//! A path or URL, resolved to an object store and a path in it.

mod list;
mod names;
mod parse;
mod pattern;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod walk;
mod write;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

use crate::error::{Result, StorageError};

pub use list::{Expansion, endings_in_words};
pub use names::has_ending;
pub use names::{Others, Skipped};

/// A resolved path or URL. Errors show it as it was given.
#[derive(Debug, Clone)]
pub struct Location {
    given: String,
    /// The path in the local file system; `None` in a remote store.
    local: Option<PathBuf>,
    /// Scheme and authority of the store, without a path.
    root: Url,
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Size in bytes, if a listing or `with_table_facts` gave it.
    size: Option<u64>,
    /// Whether a list, a log or a plan named it: if it is missing, it was removed since, and the user made no mistake.
    is_found: bool,
    /// The fingerprint spec of the Delta table whose log lists this file, as JSON.
    table_spec: Option<Arc<str>>,
}

/// Identifies a file or object, under whichever name it was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The device and the inode of a local file, which links may give several names.
    Local(u64, u64),
    /// The store and the path of an object, or of a local path without a file.
    Object(Url, Path),
}

impl Location {
    /// The path as it was given.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The path in the local file system; `None` in a remote store.
    pub fn local(&self) -> Option<&FsPath> {
        self.local.as_deref()
    }

    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The URL of the store, without a path.
    pub fn root(&self) -> &Url {
        &self.root
    }

    /// The whole URL.
    pub fn url(&self) -> Url {
        match &self.local {
            Some(local) => Url::from_file_path(local).unwrap_or_else(|()| self.root.clone()),
            None => {
                let mut url = self.root.clone();
                // `set_path` does not encode a `%`, so a reader that decodes the URL would get
                // another name.
                if let Ok(mut segments) = url.path_segments_mut() {
                    segments.extend(self.path.parts());
                }
                url
            }
        }
    }

    /// The last component of the path.
    pub fn file_name(&self) -> String {
        match &self.local {
            Some(local) => local
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            None => self.path.filename().unwrap_or_default().to_owned(),
        }
    }

    /// The identity of the file or object: equal for all symlinks and hard links to one file.
    pub fn identity(&self) -> Identity {
        let metadata = self.local.as_ref().and_then(|local| local.metadata().ok());
        match metadata {
            Some(metadata) => Identity::Local(metadata.dev(), metadata.ino()),
            None => Identity::Object(self.root.clone(), self.path.clone()),
        }
    }

    /// Its size in bytes, if a list or a log said it.
    pub fn known_size(&self) -> Option<u64> {
        self.size
    }

    /// Adds what is known of a table's data file: its size in bytes, and the spec of the table's
    /// fingerprints.
    pub fn with_table_facts(mut self, size: u64, spec: Option<Arc<str>>) -> Self {
        self.size = Some(size);
        self.table_spec = spec;
        self.found()
    }

    pub fn is_found(&self) -> bool {
        self.is_found
    }

    /// The same location, at which a list, a log or a plan has named a file: if it is missing now, it was removed meanwhile.
    pub fn found(mut self) -> Self {
        self.is_found = true;
        self
    }

    /// The spec of the table that listed this data file, as JSON that this crate does not parse.
    pub fn table_spec(&self) -> Option<&str> {
        self.table_spec.as_deref()
    }

    /// Whether both are the same path in the same store.
    pub fn is(&self, other: &Self) -> bool {
        self.root == other.root && self.path == other.path
    }

    /// Whether this location is `other`, or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.root == other.root && self.path.prefix_matches(&other.path)
    }

    /// Whether this path, as a file, directory or pattern, stands for `other`, or would if `other` existed.
    pub fn covers(&self, other: &Self) -> bool {
        if self.root != other.root {
            return false;
        }
        // An object whose name looks like a pattern stands for itself.
        other.is_within(self)
            || pattern::matches_at_or_above(self.path.as_ref(), other.path.as_ref())
    }

    /// The location of `relative` below this directory.
    ///
    /// # Errors
    /// [`StorageError::BadPath`] when `relative` is not a relative path.
    pub fn child(&self, relative: &str) -> Result<Self> {
        let given = self.child_name(relative);
        let bad = |reason: String| StorageError::bad_path(&given, reason);
        if relative.starts_with('/') {
            return Err(bad(format!("{relative} is not a relative path")));
        }
        let parsed = Path::parse(relative).map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            local: self.local.as_ref().map(|local| local.join(relative)),
            path: self.path.parts().chain(parsed.parts()).collect(),
            given,
            size: None,
            is_found: false,
            ..self.clone()
        })
    }

    /// The name of `relative` below this directory, for errors.
    pub fn child_name(&self, relative: &str) -> String {
        format!("{}/{relative}", self.given.trim_end_matches('/'))
    }

    /// A name that other processes resolve to this location, whatever their working directory.
    pub fn absolute_name(&self) -> String {
        match &self.local {
            Some(local) => local.to_string_lossy().into_owned(),
            None => self.given.clone(),
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.given)
    }
}
