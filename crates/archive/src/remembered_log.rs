//! A table's store that remembers the log: the Delta library reads each entry, and each part of a checkpoint, again for each question
//! about the table, and none of them ever changes. It can leave the checkpoints out. Entries get a digest when they are written, which is
//! checked when they are read.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};
use storage::{CHECKPOINT_HINT, DAMAGED_ENTRY, is_log_entry};

use crate::entry_digest::{is_damaged, with_digest};

/// The most bytes of a log that are remembered.
const MAX_BYTES: u64 = 16 << 20;

/// What the log of a table is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogBy {
    /// Its last checkpoint, and the entries behind it.
    Checkpoint,
    /// Its entries alone: the Delta library does not open a table whose hint names a checkpoint that is missing, or whose checkpoint
    /// is cut off, though all entries of the log are there.
    Entries,
}

#[derive(Debug)]
pub(crate) struct RememberedLog {
    store: Arc<dyn ObjectStore>,
    by: LogBy,
    remembered: Mutex<Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    objects: HashMap<Path, (ObjectMeta, Bytes)>,
    bytes: usize,
    /// Objects that do not fit.
    too_large: HashSet<Path>,
}

impl RememberedLog {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, by: LogBy) -> Self {
        Self {
            store,
            by,
            remembered: Mutex::default(),
        }
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        let remembered = self.remembered.lock();
        remembered.unwrap_or_else(PoisonError::into_inner)
    }

    /// An entry or a checkpoint: remembered, or read as a whole; `None` if it is a checkpoint that is too large to remember.
    ///
    /// # Errors
    /// Those of the store, and one for an entry that is not what was written.
    async fn whole(&self, path: &Path) -> Result<Option<(ObjectMeta, Bytes)>> {
        {
            let remembered = self.remembered();
            if let Some(known) = remembered.objects.get(path) {
                return Ok(Some(known.clone()));
            }
            if remembered.too_large.contains(path) {
                return Ok(None);
            }
        }
        let found = self.store.get(path).await?;
        let meta = found.meta.clone();
        let name = path.filename().unwrap_or_default();
        let is_entry = name.ends_with(".json");
        let fits = self.remembered().bytes as u64 + meta.size <= MAX_BYTES;
        if !fits && !is_entry {
            self.remembered().too_large.insert(path.clone());
            return Ok(None);
        }
        let bytes = found.bytes().await?;
        if is_damaged(name, &bytes) {
            return Err(Error::Generic {
                store: "Delta log",
                source: format!("{path}: {DAMAGED_ENTRY}").into(),
            });
        }
        let mut remembered = self.remembered();
        // What another program cuts off is an error of whoever reads it, and is not remembered.
        let is_whole = bytes.len() as u64 == meta.size;
        let object = (meta, bytes);
        if fits && is_whole {
            let before = remembered.objects.insert(path.clone(), object.clone());
            if before.is_none() {
                remembered.bytes += object.1.len();
            }
        }
        Ok(Some(object))
    }
}

/// Whether an object is left out: a checkpoint, or the hint at one.
fn is_left_out(by: LogBy, path: &Path) -> bool {
    let name = path.filename().unwrap_or_default();
    let is_checkpoint =
        name == CHECKPOINT_HINT || (is_log_entry(name) && name.contains(".checkpoint."));
    by == LogBy::Entries && is_checkpoint
}

fn without_left_out(
    by: LogBy,
    listed: BoxStream<'static, Result<ObjectMeta>>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    listed
        .try_filter(move |object| std::future::ready(!is_left_out(by, &object.location)))
        .boxed()
}

/// Whether an object never changes: an entry or a checkpoint, in the directory of the log.
fn is_immutable(path: &Path) -> bool {
    path.filename().is_some_and(is_log_entry)
}

impl fmt::Display for RememberedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for RememberedLog {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let payload = match location.filename() {
            Some(name) if is_log_entry(name) && name.ends_with(".json") => {
                with_digest(name, payload.into()).into()
            }
            _ => payload,
        };
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if is_left_out(self.by, location) {
            return Err(Error::NotFound {
                path: location.to_string(),
                source: "left out".into(),
            });
        }
        let is_plain = !options.head
            && options.version.is_none()
            && options.if_match.is_none()
            && options.if_none_match.is_none()
            && options.if_modified_since.is_none()
            && options.if_unmodified_since.is_none();
        if !is_plain || !is_immutable(location) {
            return self.store.get_opts(location, options).await;
        }
        let Some((meta, bytes)) = self.whole(location).await? else {
            return self.store.get_opts(location, options).await;
        };
        let size = bytes.len() as u64;
        let range = match options.range {
            None => 0..size,
            Some(GetRange::Bounded(range)) => range.start.min(size)..range.end.min(size),
            Some(GetRange::Offset(start)) => start.min(size)..size,
            Some(GetRange::Suffix(length)) => size.saturating_sub(length)..size,
        };
        let part = bytes.slice(range.start as usize..range.end.max(range.start) as usize);
        Ok(GetResult {
            payload: GetResultPayload::Stream(
                futures::stream::once(std::future::ready(Ok(part))).boxed(),
            ),
            meta,
            range,
            attributes: Attributes::default(),
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let whole = if is_immutable(location) {
            self.whole(location).await?
        } else {
            None
        };
        let Some((_, bytes)) = whole else {
            return self.store.get_ranges(location, ranges).await;
        };
        let size = bytes.len() as u64;
        let part = |range: &Range<u64>| {
            let (start, end) = (range.start.min(size), range.end.min(size));
            bytes.slice(start as usize..end.max(start) as usize)
        };
        Ok(ranges.iter().map(part).collect())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        without_left_out(self.by, self.store.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        without_left_out(self.by, self.store.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.store.list_with_delimiter(prefix).await?;
        listed
            .objects
            .retain(|object| !is_left_out(self.by, &object.location));
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
