//! The local file system, with writes that survive a power cut.
//!
//! A log entry must never name lost data. So a put, or an upload in parts, returns only after it
//! synced the file, its directory, and the parents of new directories. Copies do not sync.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path as FsPath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};

use crate::unchanged_file::directory_of;

/// An unfinished file is called by the final name, this mark and a number. `object_store` uses the
/// same mark, and leaves such files out of listings.
pub const UNFINISHED_MARK: char = '#';

#[derive(Debug)]
pub(super) struct DurableLocal(pub(super) LocalFileSystem);

impl std::fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

fn generic(source: std::io::Error) -> Error {
    Error::Generic {
        store: "LocalFileSystem",
        source: source.into(),
    }
}

/// Writes `payload` to a file beside `target`, syncs it, and renames it. With `create`, an existing `target` is an
/// error.
fn write_file(target: &FsPath, payload: &PutPayload, create: bool) -> Result<()> {
    let directory = directory_of(target);
    create_dir_all_synced(directory).map_err(generic)?;
    let (mut file, unfinished) = create_unfinished(target)?;
    let written = payload
        .iter()
        .try_for_each(|bytes| file.write_all(bytes))
        .and_then(|()| file.sync_all());
    let named = written.and_then(|()| {
        if create {
            name_without_replacing(&unfinished, target)
        } else {
            std::fs::rename(&unfinished, target)
        }
    });
    if named.is_err() {
        // If the removal fails, a vacuum removes the file later; no log entry names it.
        let _ = std::fs::remove_file(&unfinished);
    }
    match named {
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Err(Error::NotSupported {
            source: error.into(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::AlreadyExists {
                path: target.display().to_string(),
                source: error.into(),
            })
        }
        named => named.and_then(|()| sync(directory)).map_err(generic),
    }
}

/// Whether an error of a hard link says that the file system has none.
fn has_no_links(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let none = [Errno::PERM, Errno::OPNOTSUPP, Errno::NOSYS, Errno::MLINK];
    none.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Gives an unfinished file its name, unless there is a file of that name: by a rename that replaces nothing, or where the file system
/// has none, by a hard link.
///
/// # Errors
/// [`Unsupported`](std::io::ErrorKind::Unsupported) where it has neither.
fn name_without_replacing(unfinished: &FsPath, target: &FsPath) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, unfinished, CWD, target, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {}
        named => return named.map_err(Into::into),
    }
    match std::fs::hard_link(unfinished, target) {
        Ok(()) => {
            let _ = std::fs::remove_file(unfinished);
            Ok(())
        }
        Err(error) if !has_no_links(&error) => Err(error),
        Err(error) => Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            format!(
                "its file system has neither renames that replace nothing nor hard links ({error})"
            ),
        )),
    }
}

/// Creates a directory and its missing ancestors, and syncs their names to the disk.
pub fn create_dir_all_synced(directory: &FsPath) -> std::io::Result<()> {
    // The last ancestor of a relative path is empty.
    let is_missing = |path: &&FsPath| !path.as_os_str().is_empty() && !path.is_dir();
    let missing: Vec<&FsPath> = directory.ancestors().take_while(is_missing).collect();
    for missing in missing.into_iter().rev() {
        match std::fs::create_dir(missing) {
            // Another process created it first, and may not have synced it yet.
            Err(_) if missing.is_dir() => {}
            made => made?,
        }
        sync(directory_of(missing))?;
    }
    Ok(())
}

/// Creates an empty file beside `target`, with a mark and a number behind its name.
fn create_unfinished(target: &FsPath) -> Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut unfinished = target.as_os_str().to_owned();
        unfinished.push(format!(
            "{UNFINISHED_MARK}{}{number:06}",
            std::process::id()
        ));
        match File::create_new(&unfinished) {
            Ok(file) => return Ok((file, unfinished.into())),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(generic(error)),
        }
    }
}

/// Syncs the bytes of a file, or the names in a directory, to the disk.
fn sync(path: &FsPath) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(generic(std::io::Error::other(panic))))
}

/// An upload in parts that syncs the file when it is completed.
#[derive(Debug)]
struct SyncedUpload {
    inner: Box<dyn MultipartUpload>,
    target: PathBuf,
}

#[async_trait]
impl MultipartUpload for SyncedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let done = self.inner.complete().await?;
        let target = self.target.clone();
        blocking(move || {
            sync(&target).map_err(generic)?;
            sync(directory_of(&target)).map_err(generic)
        })
        .await?;
        Ok(done)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let create = match options.mode {
            PutMode::Create => true,
            PutMode::Overwrite => false,
            PutMode::Update(_) => return self.0.put_opts(location, payload, options).await,
        };
        let target = self.0.path_to_filesystem(location)?;
        blocking(move || write_file(&target, &payload, create)).await?;
        Ok(PutResult {
            e_tag: None,
            version: None,
        })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let target = self.0.path_to_filesystem(location)?;
        let directory = directory_of(&target).to_owned();
        blocking(move || create_dir_all_synced(&directory).map_err(generic)).await?;
        let inner = self.0.put_multipart_opts(location, options).await?;
        Ok(Box::new(SyncedUpload { inner, target }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        self.0.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt as _;

    use super::*;

    #[tokio::test]
    async fn a_create_never_replaces_and_leaves_nothing_beside() {
        let directory = tempfile::tempdir().unwrap();
        let store = DurableLocal(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
        let path = Path::from("a/b/0.json");
        let create = PutOptions::from(PutMode::Create);
        let put = |text: &'static str| store.put_opts(&path, text.into(), create.clone());
        put("one").await.unwrap();
        assert!(matches!(put("two").await, Err(Error::AlreadyExists { .. })));
        assert_eq!(
            store.get(&path).await.unwrap().bytes().await.unwrap(),
            "one"
        );
        store.put(&path, "three".into()).await.unwrap();
        assert_eq!(
            store.get(&path).await.unwrap().bytes().await.unwrap(),
            "three"
        );
        let names: Vec<_> = std::fs::read_dir(directory.path().join("a/b"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["0.json"]);
    }

    /// Tests that the store creates these directories and no others; this test cannot cut the
    /// power.
    #[tokio::test]
    async fn missing_directories_are_made_for_files_and_parts() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let names = |path: &str| {
            let entries = std::fs::read_dir(root.join(path)).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        create_dir_all_synced(&root.join("a/b/c")).unwrap();
        create_dir_all_synced(&root.join("a/b/c")).unwrap();
        create_dir_all_synced(&root.join("a/b/d")).unwrap();
        assert_eq!(names(""), ["a"]);
        assert_eq!(names("a"), ["b"]);
        assert_eq!(names("a/b"), ["c", "d"]);
        assert!(names("a/b/c").is_empty());

        let store = DurableLocal(LocalFileSystem::new_with_prefix(root).unwrap());
        let mut upload = store.put_multipart(&Path::from("x/y/parts")).await.unwrap();
        upload.put_part("one".into()).await.unwrap();
        upload.complete().await.unwrap();
        assert_eq!(names("x"), ["y"]);
        assert_eq!(names("x/y"), ["parts"]);

        std::fs::write(root.join("file"), "").unwrap();
        for path in ["file", "file/below"] {
            create_dir_all_synced(&root.join(path)).unwrap_err();
        }
        assert_eq!(names(""), ["a", "file", "x"]);
    }
}
