//! Parsing of paths and URLs into a [`Location`].

use std::path::{Component, PathBuf};

use object_store::path::Path;
use url::Url;

use super::Location;
use crate::error::{Result, StorageError};
use crate::store::Stores;

impl Stores {
    /// Resolves a local path, or a URL of one of the stores. Nothing needs to be at the location, and no request is
    /// sent to it.
    ///
    /// # Errors
    /// [`StorageError::BadPath`] for a URL of another scheme, or a path that no store can have; an error that names the
    /// missing credential or the unusable setting.
    pub fn locate(&self, given: &str) -> Result<Location> {
        let bad = |reason: &str| StorageError::bad_path(given, reason);
        if given.is_empty() {
            return Err(bad("an empty path"));
        }
        let local = match given.split_once("://") {
            Some(("file", _)) => {
                let url = Url::parse(given).ok();
                // `to_file_path` drops a query or fragment, so the path would name another file.
                let has_more = |url: &Url| url.query().or(url.fragment()).is_some();
                if url.as_ref().is_some_and(has_more) {
                    return Err(bad("in a file URL, ? is written %3F and # is written %23"));
                }
                url.and_then(|url| url.to_file_path().ok())
                    .ok_or_else(|| bad("not a file URL with an absolute path"))?
            }
            Some((scheme, _)) if is_scheme(scheme) => return self.locate_remote(given),
            _ => std::path::absolute(given).map_err(StorageError::io(given))?,
        };
        self.locate_local(given.to_owned(), resolve_parent_dirs(local))
    }

    /// Resolves an absolute local path.
    pub(super) fn locate_local(&self, given: String, local: PathBuf) -> Result<Location> {
        let bad = |reason: String| StorageError::bad_path(&given, reason);
        let path = Path::from_absolute_path(&local).map_err(|error| bad(error.to_string()))?;
        let root = Url::parse("file:///").map_err(|error| bad(error.to_string()))?;
        Ok(Location {
            given,
            local: Some(local),
            root,
            store: self.local(),
            path,
            size: None,
            is_found: false,
            table_spec: None,
        })
    }

    fn locate_remote(&self, given: &str) -> Result<Location> {
        // Errors show the URL without parameters, which may be secrets.
        let shown = given.split(['?', '#']).next().unwrap_or_default();
        let bad = |reason: &str| StorageError::bad_path(shown, reason);
        let (scheme, rest) = given.split_once("://").unwrap_or_default();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') && !scheme.starts_with("abfs") {
            let reason = "credentials do not belong in a URL; give them by environment variables";
            return Err(StorageError::bad_path(format!("{scheme}://…"), reason));
        }
        if authority.is_empty() {
            return Err(bad("the URL names no bucket"));
        }
        let root = Url::parse(&format!("{scheme}://{authority}"))
            .map_err(|error| bad(&error.to_string()))?;
        // A `?` may be a wildcard; before a `=`, it begins the parameters of a signed URL.
        let query = path.split_once('?');
        if query.is_some_and(|(_, query)| query.contains('=')) {
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
                StorageError::BadPath { reason, .. } => bad(&reason),
                error => error,
            })?,
            root,
            path,
            size: None,
            is_found: false,
            table_spec: None,
        })
    }
}

fn is_scheme(scheme: &str) -> bool {
    !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The path without `..`, which stores do not know. Symlinks before a `..` are followed first, as the system does.
fn resolve_parent_dirs(path: PathBuf) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use std::path::Path as FsPath;
    use std::sync::Arc;

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
    fn resolves_paths_and_refuses_malformed_ones() {
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
            assert!(matches!(error, StorageError::BadPath { .. }), "{error:?}");
            let text = error.to_string();
            assert!(!text.contains("secret") && !text.contains("abc"), "{text}");
        }
    }

    #[test]
    fn names_are_neither_decoded_nor_expanded() {
        let stores = Stores::default();
        let store = object_store::memory::InMemory::new();
        stores.register(&Url::parse("s3://bucket").unwrap(), Arc::new(store));
        for (name, encoded) in [
            ("x%3Ay.parquet", "x%253Ay.parquet"),
            ("a+b c.parquet", "a+b%20c.parquet"),
            ("中.parquet", "%E4%B8%AD.parquet"),
            ("100%.parquet", "100%25.parquet"),
            ("a?b#c", "a%3Fb%23c"),
            ("[a]*", "[a]*"),
        ] {
            let object = stores.locate(&format!("s3://bucket/p q/{name}")).unwrap();
            assert_eq!(object.path().as_ref(), format!("p q/{name}"));
            assert_eq!(
                object.url().as_str(),
                format!("s3://bucket/p%20q/{encoded}")
            );
            let child = stores.locate("s3://bucket/p q/").unwrap();
            let child = child.child(name).unwrap();
            assert!(child.is(&object) && child.file_name() == name);
            let absolute = stores.locate(&child.absolute_name()).unwrap();
            assert!(absolute.is(&object), "{absolute}");

            let path = FsPath::new("/p q").join(name);
            let file = locate(path.to_str().unwrap()).unwrap();
            assert_eq!(file.local(), Some(path.as_path()));
            assert_eq!(file.path().as_ref(), format!("p q/{name}"));
            assert_eq!(file.url().to_file_path().unwrap(), path);
            assert!(locate(file.url().as_str()).unwrap().is(&file));
            let child = locate("/p q").unwrap().child(name).unwrap();
            assert!(child.is(&file) && child.local() == file.local());
            let absolute = locate(&file.absolute_name()).unwrap();
            assert!(absolute.is(&file), "{absolute}");
        }
        for bad in ["file:///a?b.parquet", "file:///a#b.parquet"] {
            assert!(locate(bad).unwrap_err().to_string().contains("%3F"));
        }
        for bad in ["/etc/x", "../x", "a//b"] {
            let error = locate("/p").unwrap().child(bad).unwrap_err();
            assert!(matches!(error, StorageError::BadPath { .. }), "{error}");
        }
        // An object whose name looks like a pattern covers itself.
        let object = stores.locate("s3://bucket/a[1].parquet").unwrap();
        assert!(object.covers(&object));
    }
}
