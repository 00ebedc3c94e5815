//! The local file system, with writes that a power cut does not take back.
//!
//! A log entry that is there must name data that is there: files are synced before they get their names, and the
//! directory after.

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
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result, UploadPart,
};

/// What comes between a file's name and a number while it is written; object_store's own mark, which its listings
/// leave out.
pub(crate) const STAGED: char = '#';

/// See the module.
#[derive(Debug)]
pub(super) struct DurableLocal(LocalFileSystem);

impl DurableLocal {
    pub(super) fn new(inner: LocalFileSystem) -> Self {
        Self(inner)
    }
}

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

/// Writes `payload` beside `target`, and gives it its name once it is on the disk.
fn put(target: &FsPath, payload: &PutPayload, create: bool) -> Result<()> {
    let directory = target.parent().unwrap_or(FsPath::new("/"));
    std::fs::create_dir_all(directory).map_err(generic)?;
    let (mut file, staged) = stage(target)?;
    let written = payload
        .iter()
        .try_for_each(|bytes| file.write_all(bytes))
        .and_then(|()| file.sync_all());
    // A link never replaces what is there; a rename does.
    let named = written.and_then(|()| match create {
        true => std::fs::hard_link(&staged, target),
        false => std::fs::rename(&staged, target),
    });
    if create || named.is_err() {
        // One that stays is an unreferenced file.
        let _ = std::fs::remove_file(&staged);
    }
    match named {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::AlreadyExists {
                path: target.display().to_string(),
                source: error.into(),
            })
        }
        named => named.and_then(|()| sync(directory)).map_err(generic),
    }
}

/// A new file beside `target`.
fn stage(target: &FsPath) -> Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut staged = target.as_os_str().to_owned();
        staged.push(format!("{STAGED}{}{number:06}", std::process::id()));
        match File::create_new(&staged) {
            Ok(file) => return Ok((file, staged.into())),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(generic(error)),
        }
    }
}

/// Has the names in a directory, or the bytes of a file, on the disk.
fn sync(path: &FsPath) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(generic(std::io::Error::other(panic))))
}

/// An upload in parts whose file is on the disk when it is complete.
#[derive(Debug)]
struct Synced {
    inner: Box<dyn MultipartUpload>,
    target: PathBuf,
}

#[async_trait]
impl MultipartUpload for Synced {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let done = self.inner.complete().await?;
        let target = self.target.clone();
        blocking(move || {
            sync(&target).map_err(generic)?;
            sync(target.parent().unwrap_or(FsPath::new("/"))).map_err(generic)
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
        blocking(move || put(&target, &payload, create)).await?;
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
        let inner = self.0.put_multipart_opts(location, options).await?;
        Ok(Box::new(Synced { inner, target }))
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

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.0.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt as _;

    use super::*;

    #[tokio::test]
    async fn a_create_never_replaces_and_leaves_nothing_beside() {
        let directory = tempfile::tempdir().unwrap();
        let store = DurableLocal::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
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
}
