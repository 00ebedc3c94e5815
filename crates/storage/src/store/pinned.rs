//! A store that pins each object: all reads return the object that this process saw first, or fail.
//!
//! The first request for an object remembers its size and entity tag. Every later request demands
//! that entity tag, and compares the answer with both. So every reader (of the Delta log, of
//! Parquet, of text) gets an error if an object was replaced or a body ends too soon. A large
//! object that is read as one stream is fetched in pieces, so that a failure costs only one piece.
//! Conditional creates go through `create`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Semaphore;

use super::create::create;
use crate::delta_log::{CHECKPOINT_HINT, LOG_DIRECTORY};
use crate::explain::{REPLACED, causes};

/// Maximum bytes of one request.
const PIECE_BYTES: u64 = 16 << 20;
/// Ranges with at most this many bytes between them are fetched by one request. Rows of pairs lie some 100 KiB apart: with a
/// larger gap, reading their ids would fetch most ids of the archive.
const GAP_BYTES: u64 = 8 << 10;
/// Maximum parts into which many ranges are divided, to fetch them concurrently: of each part, the library fetches only ten ranges
/// at a time.
const PARTS: usize = 4;
/// Minimum ranges of a part.
const PART_RANGES: usize = 16;
/// Maximum concurrent requests for ranges of all objects of a store. More would be answered by "slow down".
const CONCURRENT_RANGES: usize = 128;
const CONCURRENT_PIECES: usize = 3;
/// Maximum retries of a request when the body of an error answer breaks off.
const MAX_BROKEN_ANSWERS: u32 = 5;
/// Pause before the first of these retries; the pause before the n-th is n times as long.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(super) struct PinnedStore {
    inner: Arc<dyn ObjectStore>,
    seen: Arc<Mutex<HashMap<Path, Seen>>>,
    /// How long a conditional create is retried; `None` for the local file system, where its outcome is always known.
    deadline: Option<Duration>,
    /// One for each concurrent request for one of several ranges.
    range_permits: Arc<Semaphore>,
}

/// A put option for the test of conditional creates: the put returns the service's own answer, and
/// bypasses [`create`], which would read the object back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoReadBack;

/// An object as it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    size: u64,
    /// `None` after a listing: in listings, some services give other entity tags than in answers to reads.
    e_tag: Option<String>,
}

/// The error for an object that is not the one that was first seen.
fn replaced_error(path: &Path) -> Error {
    Error::Precondition {
        path: path.to_string(),
        source: REPLACED.into(),
    }
}

/// The error for a body that ended after `found` of `expected` bytes.
pub fn short_body(found: u64, expected: u64) -> Error {
    Error::Generic {
        store: "object store",
        source: format!("received {found} of {expected} bytes").into(),
    }
}

impl PinnedStore {
    /// Pins the objects of a service, and retries conditional creates until `deadline`; or with `None`, the files of this machine.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, deadline: Option<Duration>) -> Self {
        Self {
            inner,
            seen: Arc::default(),
            deadline,
            range_permits: Arc::new(Semaphore::new(CONCURRENT_RANGES)),
        }
    }

    fn seen(&self, path: &Path) -> Option<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(path).cloned()
    }

    /// Forgets an object, because this process writes or deletes it.
    fn forget(&self, path: &Path) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(path);
    }

    /// Remembers an object that was not seen before; refuses one that differs from what was first seen.
    fn remember_or_compare(&self, meta: &ObjectMeta) -> Result<()> {
        if is_pointer(&meta.location) {
            return Ok(());
        }
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = all.get_mut(&meta.location) else {
            let seen = Seen {
                size: meta.size,
                e_tag: meta.e_tag.clone(),
            };
            all.insert(meta.location.clone(), seen);
            return Ok(());
        };
        match (&seen.e_tag, &meta.e_tag) {
            (Some(before), Some(now)) if before != now => Err(replaced_error(&meta.location)),
            _ if meta.size < seen.size => Err(short_body(meta.size, seen.size)),
            _ if meta.size > seen.size => Err(replaced_error(&meta.location)),
            (None, now) => {
                seen.e_tag.clone_from(now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Remembers a log entry's size from a listing. Nothing else records that size; those of data
    /// files are in the log.
    fn remember_listed(&self, meta: &ObjectMeta) {
        let mut parts = meta.location.parts();
        let is_in_log = parts.any(|part| part.as_ref() == LOG_DIRECTORY);
        if !is_in_log || is_pointer(&meta.location) {
            return;
        }
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Seen {
            size: meta.size,
            e_tag: None,
        };
        all.entry(meta.location.clone()).or_insert(seen);
    }

    /// Requests an object, and refuses an answer from any other object than the one seen first.
    async fn get_pinned(&self, path: &Path, mut options: GetOptions) -> Result<GetResult> {
        let mut pinned = false;
        if options.if_match.is_none()
            && let Some(e_tag) = self.seen(path).and_then(|seen| seen.e_tag)
            // `If-Match` never matches a weak entity tag; `remember_or_compare` compares it below.
            && !e_tag.starts_with("W/")
        {
            options.if_match = Some(e_tag);
            pinned = true;
        }
        let mut attempts = 0;
        let result = loop {
            match self.inner.get_opts(path, options.clone()).await {
                Err(Error::Precondition { .. }) if pinned => return Err(replaced_error(path)),
                // The client does not retry when the body of an error answer breaks off.
                Err(error) if attempts < MAX_BROKEN_ANSWERS && is_broken_answer(&error) => {
                    attempts += 1;
                    tokio::time::sleep(PAUSE * attempts).await;
                }
                result => break result?,
            }
        };
        self.remember_or_compare(&result.meta)?;
        Ok(result)
    }

    /// The bytes of a range, fetched piece by piece, [`CONCURRENT_PIECES`] at a time.
    fn pieces(
        &self,
        path: &Path,
        range: Range<u64>,
        options: &GetOptions,
    ) -> BoxStream<'static, Result<Bytes>> {
        let starts = (range.start..range.end).step_by(PIECE_BYTES as usize);
        let (store, path, options) = (self.clone(), path.clone(), options.clone());
        let pieces = starts.map(move |start| {
            let piece = start..range.end.min(start + PIECE_BYTES);
            let (store, path) = (store.clone(), path.clone());
            let options = GetOptions {
                range: Some(GetRange::Bounded(piece)),
                ..options.clone()
            };
            async move {
                require_whole(store.get_pinned(&path, options).await?)
                    .bytes()
                    .await
            }
        });
        futures::stream::iter(pieces)
            .buffered(CONCURRENT_PIECES)
            .boxed()
    }
}

/// Whether the body of an error answer broke off.
fn is_broken_answer(error: &Error) -> bool {
    let mut texts = causes(error).map(ToString::to_string);
    texts.any(|text| text.contains("response body error"))
}

/// Whether other writers may replace the object at any time: it points to the latest checkpoint.
fn is_pointer(path: &Path) -> bool {
    path.filename() == Some(CHECKPOINT_HINT)
}

/// Makes the answer's stream end in an error if it ends too soon.
fn require_whole(mut result: GetResult) -> GetResult {
    let expected = result.range.end - result.range.start;
    if let GetResultPayload::Stream(stream) = result.payload {
        let counted =
            futures::stream::try_unfold((stream, 0), move |(mut stream, found)| async move {
                match stream.try_next().await? {
                    Some(bytes) => {
                        let found = found + bytes.len() as u64;
                        Ok(Some((bytes, (stream, found))))
                    }
                    None if found == expected => Ok(None),
                    None => Err(short_body(found, expected)),
                }
            });
        result.payload = GetResultPayload::Stream(counted.boxed());
    }
    result
}

// Not derived, because `Debug` of some stores shows their credentials.
impl std::fmt::Debug for PinnedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinnedStore({})", self.inner)
    }
}

impl std::fmt::Display for PinnedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for PinnedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.forget(location);
        let read_back = options.extensions.get::<NoReadBack>().is_none();
        match (&options.mode, self.deadline) {
            (PutMode::Create, Some(deadline)) if read_back => {
                create(self.inner.as_ref(), location, payload, options, deadline).await
            }
            _ => self.inner.put_opts(location, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.forget(location);
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.deadline.is_none() || options.head {
            return Ok(require_whole(self.get_pinned(location, options).await?));
        }
        // Without a known size or a bounded range, one request asks for the object: its answer says
        // how large it is.
        let known = self.seen(location).map(|seen| seen.size);
        let range = match (&options.range, known) {
            (None, Some(size)) => Some(0..size),
            (Some(range), Some(size)) => range.as_range(size).ok(),
            (Some(GetRange::Bounded(range)), None) => Some(range.clone()),
            (_, None) => None,
        };
        let Some(range) = range.filter(|range| range.end - range.start > PIECE_BYTES) else {
            let result = self.get_pinned(location, options.clone()).await?;
            let range = result.range.clone();
            if range.end - range.start <= PIECE_BYTES {
                return Ok(require_whole(result));
            }
            let payload = GetResultPayload::Stream(self.pieces(location, range, &options));
            return Ok(GetResult { payload, ..result });
        };
        let head = GetOptions {
            head: true,
            range: None,
            ..options.clone()
        };
        let result = self.get_pinned(location, head).await?;
        let payload = GetResultPayload::Stream(self.pieces(location, range.clone(), &options));
        Ok(GetResult {
            payload,
            range,
            ..result
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.deadline.is_none() {
            // The local store reads all ranges from one open file. Check first that the path still
            // names the file seen first.
            self.get_pinned(location, GetOptions::new().with_head(true))
                .await?;
            return self.inner.get_ranges(location, ranges).await;
        }
        let fetch = |range| async move {
            let _permit = self.range_permits.acquire().await;
            self.get_range(location, range).await
        };
        let parts = ranges
            .chunks(ranges.len().div_ceil(PARTS).max(PART_RANGES))
            .map(|part| object_store::coalesce_ranges(part, fetch, GAP_BYTES));
        Ok(futures::future::try_join_all(parts).await?.concat())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let forgotten = locations.inspect_ok(move |path| store.forget(path));
        self.inner.delete_stream(forgotten.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let store = self.clone();
        let listed = self.inner.list(prefix);
        listed
            .inspect_ok(move |meta| store.remember_listed(meta))
            .boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let store = self.clone();
        let (prefix, offset) = (prefix.cloned(), offset.clone());
        let listed = self.inner.list_with_offset(prefix.as_ref(), &offset);
        let listed = async move {
            let mut listed = listed.peekable();
            // Some services ignore where a list shall begin, and some answer nothing.
            match std::pin::Pin::new(&mut listed).peek().await {
                Some(_) => listed.boxed(),
                None => store.inner.list(prefix.as_ref()),
            }
            .try_filter(move |meta| std::future::ready(meta.location > offset))
            .inspect_ok(move |meta| store.remember_listed(meta))
        };
        futures::stream::once(listed).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.forget(to);
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3Builder;
    use object_store::azure::MicrosoftAzureBuilder;
    use object_store::memory::InMemory;

    use super::*;
    use crate::error::StorageError;
    use crate::store::{StoreOptions, Stores};

    const CANARY: &str = "canary-0123456789";

    #[test]
    fn no_secret_is_shown() {
        let s3 = AmazonS3Builder::new()
            .with_bucket_name("bucket")
            .with_access_key_id(format!("id-{CANARY}"))
            .with_secret_access_key(CANARY)
            .with_token(CANARY)
            .build();
        let azure = || {
            MicrosoftAzureBuilder::new()
                .with_account("account")
                .with_container_name("container")
        };
        let sas = vec![("sig".to_owned(), CANARY.to_owned())];
        let stores: [Arc<dyn ObjectStore>; 4] = [
            Arc::new(s3.unwrap()),
            Arc::new(azure().with_sas_authorization(sas).build().unwrap()),
            Arc::new(
                azure()
                    .with_bearer_token_authorization(CANARY)
                    .build()
                    .unwrap(),
            ),
            Arc::new(
                azure()
                    .with_client_secret_authorization("client", CANARY, "tenant")
                    .build()
                    .unwrap(),
            ),
        ];
        for store in stores {
            let shown = format!("{:?}", PinnedStore::new(store, Some(Duration::ZERO)));
            assert!(!shown.contains(CANARY), "{shown}");
        }
        let options = StoreOptions {
            endpoint: Some(format!("https://user:{CANARY}@host")),
            ..Default::default()
        };
        let shown = format!("{:?} {options:?}", Stores::new(options.clone()));
        assert!(shown.contains("host") && !shown.contains(CANARY), "{shown}");
        let error = StorageError::Store {
            object: "s3://bucket/a".into(),
            source: Error::Generic {
                store: "S3",
                source: format!(
                    "400: <Error><Code>InvalidToken</Code><Token-0>{CANARY}</Token-0></Error>"
                )
                .into(),
            },
        };
        let shown = format!("{error:?} {error}");
        assert!(
            shown.contains("InvalidToken") && !shown.contains(CANARY),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn large_objects_are_read_whole_in_pieces() {
        let path = Path::from("large");
        let bytes: Vec<u8> = (0..2 * PIECE_BYTES + 12_345)
            .map(|at| (at * at % 251) as u8)
            .collect();
        let memory = Arc::new(InMemory::new());
        memory.put(&path, bytes.clone().into()).await.unwrap();
        let store = PinnedStore::new(memory, Some(Duration::ZERO));
        // Only the first of these requests does not know the size.
        for _ in 0..2 {
            let got = store
                .get_pinned(&path, GetOptions::default())
                .await
                .unwrap();
            assert_eq!(got.meta.size, bytes.len() as u64);
            let got = store.get(&path).await.unwrap();
            assert_eq!(got.range, 0..bytes.len() as u64);
            assert!(got.bytes().await.unwrap() == bytes);
        }
        let range = 1000..PIECE_BYTES + 2000;
        let part = store.get_range(&path, range.clone()).await.unwrap();
        assert!(part == bytes[range.start as usize..range.end as usize]);
        let empty = Path::from("empty");
        store.put(&empty, "".into()).await.unwrap();
        let got = store.get(&empty).await.unwrap();
        assert!(got.bytes().await.unwrap().is_empty());
    }
}
