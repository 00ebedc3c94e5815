//! Where things are: a path or URL, resolved to an object store and a path in it.

use std::io::Write as _;
use std::path::{Component, Path as FsPath, PathBuf};
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use url::Url;

use crate::error::{ArchiveError, ErrorKind, Result};
use crate::store::Stores;
use crate::upload::Digested;

/// A resolved path. What it was given as is what errors show.
#[derive(Debug, Clone)]
pub struct Location {
    given: String,
    /// The path in the local file system, where it is there.
    local: Option<PathBuf>,
    /// Scheme and authority of the store, and no path.
    root: Url,
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Known where it was listed.
    size: Option<u64>,
}

impl Stores {
    /// Resolves a local path, or a URL of one of the stores. Nothing needs to be there, and nothing is sent.
    ///
    /// # Errors
    /// [`ArchiveError::BadPath`] for a URL of another scheme, or a path that has no place in a store; and what is
    /// missing to reach the store.
    pub fn locate(&self, given: &str) -> Result<Location> {
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
            Some((scheme, _)) if is_scheme(scheme) => return self.locate_remote(given),
            _ => std::path::absolute(given).map_err(|source| ArchiveError::Io {
                path: given.to_owned(),
                source,
            })?,
        };
        let local = without_dots(local);
        let path = Path::from_absolute_path(&local).map_err(|error| bad(&error.to_string()))?;
        let root = Url::parse("file:///").map_err(|error| bad(&error.to_string()))?;
        Ok(Location {
            given: given.to_owned(),
            local: Some(local),
            root,
            store: self.local(),
            path,
            size: None,
        })
    }

    fn locate_remote(&self, given: &str) -> Result<Location> {
        // Shown without what may be a secret.
        let shown = given.split(['?', '#']).next().unwrap_or_default();
        let bad = |reason: &str| ArchiveError::BadPath {
            path: shown.to_owned(),
            reason: reason.to_owned(),
        };
        let (scheme, rest) = given.split_once("://").unwrap_or_default();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') && !scheme.starts_with("abfs") {
            return Err(ArchiveError::BadPath {
                path: format!("{scheme}://…"),
                reason: "credentials do not belong in a URL; give them by environment variables"
                    .into(),
            });
        }
        if authority.is_empty() {
            return Err(bad("the URL names no bucket"));
        }
        let root = Url::parse(&format!("{scheme}://{authority}"))
            .map_err(|error| bad(&error.to_string()))?;
        // A pattern may have a question mark; a signed URL has one before its parameters.
        if path
            .split_once('?')
            .is_some_and(|(_, query)| query.contains('='))
        {
            return Err(bad(
                "a URL with parameters; credentials are given by environment variables",
            ));
        }
        let path =
            Path::parse(path.trim_end_matches('/')).map_err(|error| bad(&error.to_string()))?;
        Ok(Location {
            given: given.to_owned(),
            local: None,
            store: self.remote(&root).map_err(|error| match error {
                ArchiveError::BadPath { reason, .. } => bad(&reason),
                error => error,
            })?,
            root,
            path,
            size: None,
        })
    }

    /// The files that a path stands for: itself, the files below it, or those that match it as a pattern;
    /// sorted by path, without those below it whose name, or directory's name, begins with `_` or `.`.
    ///
    /// # Errors
    /// [`ArchiveError::NotFound`] when there is nothing, [`ArchiveError::BadPath`] for a malformed pattern, and for a
    /// directory with files of which none has one of the `extensions`.
    pub async fn expand(&self, given: &str, extensions: &[&str]) -> Result<Vec<Location>> {
        let location = self.locate(given)?;
        match location.local.clone() {
            Some(local) => expand_local(self, &location, &local, extensions),
            None => expand_remote(&location, extensions).await,
        }
    }
}

fn is_scheme(scheme: &str) -> bool {
    !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
}

impl Location {
    /// The path as it was given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The path in the local file system, if it is there.
    #[must_use]
    pub fn local(&self) -> Option<&FsPath> {
        self.local.as_deref()
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

    /// The URL of its store, without a path.
    #[must_use]
    pub fn root(&self) -> &Url {
        &self.root
    }

    /// Its whole URL.
    #[must_use]
    pub fn url(&self) -> Url {
        match &self.local {
            Some(local) => Url::from_file_path(local).unwrap_or_else(|()| self.root.clone()),
            None => {
                let mut url = self.root.clone();
                url.set_path(self.path.as_ref());
                url
            }
        }
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.local {
            Some(local) => local
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            None => self.path.filename().unwrap_or_default().to_owned(),
        }
    }

    /// Whether both are the same object.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.root == other.root && self.path == other.path
    }

    /// Whether it lies below `other`, or is it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.root == other.root && self.path.prefix_matches(&other.path)
    }

    /// Whether an object in a store is, or would be, among those that this path, directory or pattern stands for.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        if self.root != other.root {
            return false;
        }
        let path = other.path.as_ref();
        match glob::Pattern::new(self.path.as_ref()) {
            Ok(pattern) if self.path.as_ref().contains(PATTERN) => {
                let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
                let mut all = parents.chain([path]);
                all.any(|path| pattern.matches_with(path, GLOB))
            }
            _ => other.is_within(self),
        }
    }

    /// What is called `relative` below this directory.
    ///
    /// # Errors
    /// [`ArchiveError::BadPath`] when that is no path.
    pub fn child(&self, relative: &str) -> Result<Self> {
        let given = self.child_name(relative);
        let parsed = Path::parse(relative).map_err(|error| ArchiveError::BadPath {
            path: given.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            local: self.local.as_ref().map(|local| local.join(relative)),
            path: self.path.parts().chain(parsed.parts()).collect(),
            given,
            size: None,
            ..self.clone()
        })
    }

    /// What errors call `relative` below this directory.
    #[must_use]
    pub fn child_name(&self, relative: &str) -> String {
        format!("{}/{relative}", self.given.trim_end_matches('/'))
    }

    /// Size of the file in bytes.
    ///
    /// # Errors
    /// [`ArchiveError`] when it cannot be had.
    pub async fn size(&self) -> Result<u64> {
        if let Some(size) = self.size {
            return Ok(size);
        }
        self.size_now().await
    }

    /// Its size, asked for now.
    pub(crate) async fn size_now(&self) -> Result<u64> {
        match self.store.head(&self.path).await {
            Ok(meta) => Ok(meta.size),
            Err(error) => Err(self.refused(error).await),
        }
    }

    /// All of its bytes.
    ///
    /// # Errors
    /// [`ArchiveError`] when they cannot be had.
    pub async fn read(&self) -> Result<bytes::Bytes> {
        let got = self.store.get(&self.path).await;
        let got = got.map_err(|error| self.failed(error))?;
        got.bytes().await.map_err(|error| self.failed(error))
    }

    /// Size and SHA-256 of what is stored.
    ///
    /// # Errors
    /// [`ArchiveError`] when it cannot be read.
    pub async fn digest(&self) -> Result<(u64, String)> {
        let got = self.store.get(&self.path).await;
        let mut stream = got.map_err(|error| self.failed(error))?.into_stream();
        let mut found = Digested::default();
        while let Some(bytes) = stream
            .try_next()
            .await
            .map_err(|error| self.failed(error))?
        {
            found.update(&bytes);
        }
        Ok(found.finish())
    }

    /// Writes all of its bytes to a local file; gives their number.
    ///
    /// # Errors
    /// [`ArchiveError`] when it cannot be read, or the file not written.
    pub async fn copy_to(&self, mut file: std::fs::File) -> Result<u64> {
        let got = self.store.get(&self.path).await;
        let mut stream = got.map_err(|error| self.failed(error))?.into_stream();
        let mut copied = 0;
        while let Some(part) = stream
            .try_next()
            .await
            .map_err(|error| self.failed(error))?
        {
            copied += part.len() as u64;
            file.write_all(&part).map_err(|source| ArchiveError::Io {
                path: format!("a copy of {self}"),
                source,
            })?;
        }
        Ok(copied)
    }

    /// A name for it that other processes understand, wherever they were started.
    #[must_use]
    pub fn shared_name(&self) -> String {
        match &self.local {
            Some(local) => local.to_string_lossy().into_owned(),
            None => self.given.clone(),
        }
    }

    /// Removes all that is below it; that nothing is, is no error.
    ///
    /// # Errors
    /// [`ArchiveError`] when something cannot be removed.
    pub async fn clear(&self) -> Result<()> {
        if let Some(local) = &self.local {
            return match std::fs::remove_dir_all(local) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    Err(ArchiveError::Io {
                        path: local.display().to_string(),
                        source,
                    })
                }
                _ => Ok(()),
            };
        }
        let mut listed = self.store.list(Some(&self.path));
        while let Some(object) = listed
            .try_next()
            .await
            .map_err(|error| self.failed(error))?
        {
            let removed = self.store.delete(&object.location).await;
            removed.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Whether there is an object of that name.
    ///
    /// # Errors
    /// [`ArchiveError`] when the store does not say.
    pub async fn exists(&self) -> Result<bool> {
        match self.store.head(&self.path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.refused(error).await),
        }
    }

    /// Why the store refused to tell about an object: the answer to that has no body, the one to a listing has.
    async fn refused(&self, error: object_store::Error) -> ArchiveError {
        let error = self.failed(error);
        if !matches!(error.kind(), ErrorKind::Permission | ErrorKind::Unreachable) {
            return error;
        }
        let listed = self.store.list(Some(&self.path)).try_next().await;
        match listed {
            Err(said) => {
                let said = self.failed(said);
                match said.kind() {
                    ErrorKind::Permission => said,
                    _ => error,
                }
            }
            Ok(_) => error,
        }
    }

    fn failed(&self, error: object_store::Error) -> ArchiveError {
        match error {
            object_store::Error::NotFound { .. } => ArchiveError::NotFound {
                path: self.given.clone(),
            },
            error => ArchiveError::stored(self, error),
        }
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

fn not_found(location: &Location) -> ArchiveError {
    ArchiveError::NotFound {
        path: location.given.clone(),
    }
}

fn none_of(location: &Location, others: usize, extensions: &[&str]) -> ArchiveError {
    ArchiveError::BadPath {
        path: location.given.clone(),
        reason: format!(
            "none of its {others} files ends in {}",
            extensions.join(", ")
        ),
    }
}

fn bad_pattern(location: &Location, error: &glob::PatternError) -> ArchiveError {
    ArchiveError::BadPath {
        path: location.given.clone(),
        reason: error.to_string(),
    }
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    extensions.iter().any(|extension| name.ends_with(extension))
}

/// What begins a pattern.
const PATTERN: [char; 3] = ['*', '?', '['];
/// As in the file system: a star stays within a directory.
const GLOB: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

async fn expand_remote(location: &Location, extensions: &[&str]) -> Result<Vec<Location>> {
    let is_directory = location.given.ends_with('/') || location.path.as_ref().is_empty();
    if !is_directory && location.exists().await? {
        return Ok(vec![location.clone()]);
    }
    let whole = location.path.as_ref();
    let found = |meta: ObjectMeta| Location {
        given: format!(
            "{}/{}",
            location.root.as_str().trim_end_matches('/'),
            meta.location
        ),
        path: meta.location,
        size: Some(meta.size),
        ..location.clone()
    };
    let mut files: Vec<Location> = Vec::new();
    if let Some(at) = whole.find(PATTERN) {
        let pattern = glob::Pattern::new(whole).map_err(|error| bad_pattern(location, &error))?;
        let prefix = Path::from(
            whole[..at]
                .rsplit_once('/')
                .map_or("", |(prefix, _)| prefix),
        );
        for meta in list(location, &prefix).await? {
            let path = meta.location.as_ref();
            // A pattern that matches a directory stands for what is in it.
            let ends = path.match_indices('/').map(|(at, _)| at);
            let below = ends
                .rev()
                .find(|&end| pattern.matches_with(&path[..end], GLOB));
            let wanted = match below {
                _ if pattern.matches_with(path, GLOB) => named(whole, path),
                Some(end) => is_visible(&path[end + 1..]) && has_extension(path, extensions),
                None => false,
            };
            files.extend(wanted.then(|| found(meta)));
        }
    } else {
        let mut others = 0;
        for meta in list(location, &location.path).await? {
            let below = meta.location.as_ref()[whole.len()..].trim_start_matches('/');
            if !is_visible(below) {
                continue;
            }
            match has_extension(below, extensions) {
                true => files.push(found(meta)),
                false => others += 1,
            }
        }
        if files.is_empty() && others > 0 {
            return Err(none_of(location, others, extensions));
        }
    }
    if files.is_empty() {
        return Err(not_found(location));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Whether a pattern is meant to match a file: a hidden one has to be named as such.
fn named(pattern: &str, path: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    is_visible(&name(path)) || !is_visible(&name(pattern))
}

/// Whether no part of the path below a directory is hidden.
fn is_visible(below: &str) -> bool {
    below.split('/').all(|part| !part.starts_with(['_', '.']))
}

async fn list(location: &Location, prefix: &Path) -> Result<Vec<ObjectMeta>> {
    let listed = location.store.list(Some(prefix)).try_collect().await;
    listed.map_err(|error| location.failed(error))
}

fn expand_local(
    stores: &Stores,
    location: &Location,
    local: &FsPath,
    extensions: &[&str],
) -> Result<Vec<Location>> {
    let mut files = Vec::new();
    if local.is_file() {
        return Ok(vec![location.clone()]);
    } else if local.is_dir() {
        let others = walk(local, extensions, &mut files)?;
        if files.is_empty() && others > 0 {
            return Err(none_of(location, others, extensions));
        }
    } else if location.given.contains(PATTERN) {
        let matches =
            glob::glob(&local.to_string_lossy()).map_err(|error| bad_pattern(location, &error))?;
        for found in matches {
            let found = found.map_err(|error| ArchiveError::Io {
                path: error.path().display().to_string(),
                source: error.into(),
            })?;
            if found.is_dir() {
                walk(&found, extensions, &mut files)?;
            } else if named(&location.given, &found.to_string_lossy()) {
                files.push(found);
            }
        }
        if files.is_empty() {
            return Err(not_found(location));
        }
    } else {
        return Err(not_found(location));
    }
    files.sort();
    files.dedup();
    files
        .into_iter()
        .map(|file| stores.locate(&file.to_string_lossy()))
        .collect()
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
        } else if has_extension(&name, extensions) {
            files.push(path);
        } else {
            others += 1;
        }
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn locate(given: &str) -> Result<Location> {
        Stores::default().locate(given)
    }

    #[test]
    fn dots_are_resolved_behind_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        let local = |path: &str| {
            let location = locate(&format!("{}/{path}", root.display())).unwrap();
            location.local().unwrap().to_owned()
        };
        assert_eq!(local("a/../new.parquet"), root.join("new.parquet"));
        assert_eq!(local("link/../new.parquet"), root.join("a/new.parquet"));
        assert_eq!(local("missing/../x"), root.join("x"));
    }

    #[test]
    fn resolves_paths_and_refuses_what_is_none() {
        let local = |given: &str| locate(given).unwrap().local().unwrap().to_owned();
        assert_eq!(local("/a b/c.parquet"), FsPath::new("/a b/c.parquet"));
        assert_eq!(local("file:///a%20b"), FsPath::new("/a b"));
        for bad in [
            "",
            "ftp://host/x",
            "s3://",
            "s3://key:secret@bucket/x",
            "az://container/x?sv=1&sig=abc",
        ] {
            let error = locate(bad).unwrap_err();
            assert!(matches!(error, ArchiveError::BadPath { .. }), "{error:?}");
            let text = error.to_string();
            assert!(!text.contains("secret") && !text.contains("abc"), "{text}");
        }
    }

    const NAMES: [&str; 6] = [
        "b.parquet",
        "a.parquet",
        "_log.parquet",
        "c.txt",
        "day=2026-01-01/d.parquet",
        "day=2026-01-01/_x/e.parquet",
    ];

    /// The names that a path below `root` expands to.
    async fn names(stores: &Stores, root: &str, below: &str) -> Result<Vec<String>> {
        let files = stores
            .expand(&format!("{root}{below}"), &[".parquet"])
            .await?;
        let root = stores.locate(root)?;
        let name = |file: Location| {
            let path = file.path().as_ref().strip_prefix(root.path().as_ref());
            path.unwrap().trim_start_matches('/').to_owned()
        };
        Ok(files.into_iter().map(name).collect())
    }

    async fn expands(stores: &Stores, root: &str) {
        let names = async |below: &str| names(stores, root, below).await;
        let all = ["a.parquet", "b.parquet", "day=2026-01-01/d.parquet"];
        assert_eq!(names("").await.unwrap(), all);
        assert_eq!(names("/").await.unwrap(), all);
        assert_eq!(
            names("/[ab].parquet").await.unwrap(),
            ["a.parquet", "b.parquet"]
        );
        assert_eq!(names("/day=*").await.unwrap(), ["day=2026-01-01/d.parquet"]);
        assert_eq!(
            names("/*/d.parquet").await.unwrap(),
            ["day=2026-01-01/d.parquet"]
        );
        assert_eq!(names("/c.txt").await.unwrap(), ["c.txt"]);
        assert_eq!(
            names("/*.parquet").await.unwrap(),
            ["a.parquet", "b.parquet"]
        );
        assert_eq!(names("/_*").await.unwrap(), ["_log.parquet"]);
        for missing in ["/x*", "/missing", "/missing/"] {
            let error = names(missing).await.unwrap_err();
            assert!(matches!(error, ArchiveError::NotFound { .. }), "{error:?}");
        }
    }

    #[tokio::test]
    async fn expands_files_directories_and_patterns() {
        let directory = tempfile::tempdir().unwrap();
        for name in NAMES {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = directory.path().to_str().unwrap();
        expands(&Stores::default(), root).await;
    }

    #[tokio::test]
    async fn expands_objects_as_it_does_files() {
        let store = InMemory::new();
        for name in NAMES {
            let path = Path::from(format!("crawl/{name}"));
            store.put(&path, "".into()).await.unwrap();
        }
        let stores = Stores::default();
        stores.register(&Url::parse("s3://bucket").unwrap(), Arc::new(store));
        expands(&stores, "s3://bucket/crawl").await;
    }

    #[tokio::test]
    async fn an_object_that_is_replaced_is_refused() {
        let store = Arc::new(InMemory::new());
        let stores = Stores::default();
        stores.register(&Url::parse("s3://bucket").unwrap(), Arc::clone(&store) as _);
        let location = stores.locate("s3://bucket/a").unwrap();
        store.put(&Path::from("a"), "one".into()).await.unwrap();
        assert_eq!(location.read().await.unwrap(), "one");
        assert_eq!(location.read().await.unwrap(), "one");
        store.put(&Path::from("a"), "two".into()).await.unwrap();
        let error = location.read().await.unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::TryAgain, "{error}");
    }
}
