//! Where things are: a path or URL, resolved to an object store and a path in it.

use std::path::{Component, Path as FsPath, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use url::Url;

use crate::error::{ArchiveError, Result};

/// A resolved path. What it was given as is what errors show.
#[derive(Debug, Clone)]
pub struct Location {
    given: String,
    local: PathBuf,
    store: Arc<dyn ObjectStore>,
    path: Path,
}

impl Location {
    /// Resolves a local path, or a `file://` URL. Nothing needs to be there.
    ///
    /// # Errors
    /// [`ArchiveError::BadPath`] for a URL of another scheme, or a path that has no place in a store.
    pub fn parse(given: &str) -> Result<Self> {
        let bad = |reason: &str| ArchiveError::BadPath {
            path: given.to_owned(),
            reason: reason.to_owned(),
        };
        if given.is_empty() {
            return Err(bad("an empty path"));
        }
        let local = match given.split_once("://") {
            Some(("file", _)) => Url::parse(given)
                .ok()
                .and_then(|url| url.to_file_path().ok())
                .ok_or_else(|| bad("not a file URL with an absolute path"))?,
            Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                return Err(bad("only local paths are supported by this version"));
            }
            _ => std::path::absolute(given).map_err(|source| ArchiveError::Io {
                path: given.to_owned(),
                source,
            })?,
        };
        let local = without_dots(local);
        let path = Path::from_absolute_path(&local).map_err(|error| bad(&error.to_string()))?;
        Ok(Self {
            given: given.to_owned(),
            local,
            store: Arc::new(LocalFileSystem::new()),
            path,
        })
    }

    /// The path as it was given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The path in the local file system.
    #[must_use]
    pub fn local(&self) -> &FsPath {
        &self.local
    }

    /// The store that holds it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// The path in its store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.local.is_dir()
    }

    /// The location of a file found below this one, or matched by its pattern.
    pub(crate) fn file(&self, local: PathBuf) -> Result<Self> {
        Self::parse(&local.to_string_lossy())
    }

    /// Size of the file in bytes.
    ///
    /// # Errors
    /// [`ArchiveError`] when it cannot be had.
    pub async fn size(&self) -> Result<u64> {
        let meta = self
            .store
            .head(&self.path)
            .await
            .map_err(|source| match source {
                object_store::Error::NotFound { .. } => ArchiveError::NotFound {
                    path: self.given.clone(),
                },
                source => ArchiveError::Store {
                    object: self.given.clone(),
                    source,
                },
            })?;
        Ok(meta.size)
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.given)
    }
}

/// The path without `..`, which stores do not know; links on the way are followed first, as the system does.
fn without_dots(path: PathBuf) -> PathBuf {
    let mut real = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                real = real.canonicalize().unwrap_or(real);
                real.pop();
            }
            other => real.push(other),
        }
    }
    real
}

/// The files that a path stands for: itself, the files below it, or those that match it as a pattern;
/// sorted by path, without those whose name begins with `_` or `.`.
///
/// # Errors
/// [`ArchiveError::NotFound`] when there is nothing, [`ArchiveError::BadPath`] for a malformed pattern, and for a
/// directory with files of which none has one of the `extensions`.
pub fn expand(given: &str, extensions: &[&str]) -> Result<Vec<Location>> {
    let location = Location::parse(given)?;
    let not_found = || ArchiveError::NotFound {
        path: given.to_owned(),
    };
    let mut files = Vec::new();
    if location.local.is_file() {
        return Ok(vec![location]);
    } else if location.local.is_dir() {
        let others = walk(&location.local, extensions, &mut files)?;
        if files.is_empty() && others > 0 {
            return Err(ArchiveError::BadPath {
                path: given.to_owned(),
                reason: format!(
                    "none of its {others} files ends in {}",
                    extensions.join(", ")
                ),
            });
        }
    } else if given.contains(['*', '?', '[']) {
        let pattern = location.local.to_string_lossy();
        let matches = glob::glob(&pattern).map_err(|error| ArchiveError::BadPath {
            path: given.to_owned(),
            reason: error.to_string(),
        })?;
        for found in matches {
            let found = found.map_err(|error| ArchiveError::Io {
                path: error.path().display().to_string(),
                source: error.into(),
            })?;
            if found.is_dir() {
                walk(&found, extensions, &mut files)?;
            } else {
                files.push(found);
            }
        }
        if files.is_empty() {
            return Err(not_found());
        }
    } else {
        return Err(not_found());
    }
    files.sort();
    files.dedup();
    files.into_iter().map(|file| location.file(file)).collect()
}

/// Adds the files below `directory` whose names end in one of `extensions`; gives the number of others.
fn walk(directory: &FsPath, extensions: &[&str], files: &mut Vec<PathBuf>) -> Result<usize> {
    let mut others = 0;
    let failed = |source| ArchiveError::Io {
        path: directory.display().to_string(),
        source,
    };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with(['_', '.']) {
            continue;
        }
        if path.is_dir() {
            others += walk(&path, extensions, files)?;
        } else if extensions.iter().any(|extension| name.ends_with(extension)) {
            files.push(path);
        } else {
            others += 1;
        }
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_behind_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        let local = |path: &str| {
            Location::parse(&format!("{}/{path}", root.display()))
                .unwrap()
                .local()
                .to_owned()
        };
        assert_eq!(local("a/../new.parquet"), root.join("new.parquet"));
        assert_eq!(local("link/../new.parquet"), root.join("a/new.parquet"));
        assert_eq!(local("missing/../x"), root.join("x"));
    }

    #[test]
    fn resolves_paths_and_refuses_other_schemes() {
        assert_eq!(
            Location::parse("/a b/c.parquet").unwrap().local(),
            FsPath::new("/a b/c.parquet")
        );
        assert_eq!(
            Location::parse("file:///a%20b").unwrap().local(),
            FsPath::new("/a b")
        );
        assert!(matches!(
            Location::parse("s3://bucket/x"),
            Err(ArchiveError::BadPath { .. })
        ));
        assert!(Location::parse("").is_err());
    }

    #[test]
    fn expands_files_directories_and_patterns() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "b.parquet",
            "a.parquet",
            "_log.parquet",
            "c.txt",
            "day=2026-01-01/d.parquet",
        ] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = directory.path().to_str().unwrap();
        let names = |given: &str| -> Vec<String> {
            let files = expand(given, &[".parquet"]).unwrap();
            files
                .iter()
                .map(|f| f.local().strip_prefix(root).unwrap().display().to_string())
                .collect()
        };
        assert_eq!(
            names(root),
            ["a.parquet", "b.parquet", "day=2026-01-01/d.parquet"]
        );
        assert_eq!(
            names(&format!("{root}/[ab].parquet")),
            ["a.parquet", "b.parquet"]
        );
        assert_eq!(names(&format!("{root}/c.txt")), ["c.txt"]);
        assert!(matches!(
            expand(&format!("{root}/x*"), &[".parquet"]),
            Err(ArchiveError::NotFound { .. })
        ));
    }
}
