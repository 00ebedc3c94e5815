//! A table's store without the checkpoints of its log, and without the hint at the last one.
//!
//! The Delta library does not open a table whose hint names a checkpoint that is missing, or whose checkpoint is cut off, though all
//! entries of the log are there.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use storage::is_log_entry;

/// The name of the hint in the directory of the log.
pub(crate) const HINT: &str = "_last_checkpoint";

/// The store; see the module.
#[derive(Debug)]
pub(crate) struct WithoutCheckpoints(pub(crate) Arc<dyn ObjectStore>);

/// Whether a path is that of a checkpoint, or of the hint.
fn is_checkpoint(path: &Path) -> bool {
    let name = path.filename().unwrap_or_default();
    name == HINT || (is_log_entry(name) && name.contains(".checkpoint."))
}

impl fmt::Display for WithoutCheckpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for WithoutCheckpoints {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if is_checkpoint(location) {
            return Err(Error::NotFound {
                path: location.to_string(),
                source: "left out".into(),
            });
        }
        self.0.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        without_checkpoints(self.0.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        without_checkpoints(self.0.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.0.list_with_delimiter(prefix).await?;
        listed
            .objects
            .retain(|object| !is_checkpoint(&object.location));
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.0.rename_opts(from, to, options).await
    }
}

fn without_checkpoints(
    listed: BoxStream<'static, Result<ObjectMeta>>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    listed
        .try_filter(|object| std::future::ready(!is_checkpoint(&object.location)))
        .boxed()
}
