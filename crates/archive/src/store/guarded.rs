//! What is read is what was opened: while a process runs, an object has one content, the one it was first seen with.
//!
//! Sizes and entity tags are remembered from the first look at an object, asked for in every later request, and compared
//! with every answer. So a replaced object, and a body that is shorter than it should be, are errors, whoever reads: the
//! Delta log, Parquet, or rows of text. Large objects that are read in one stream are fetched in pieces, each of
//! which can be sent again.

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
    PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use super::create::create;
use super::explain::REPLACED;

/// Bytes that are asked for in one request at most.
const PIECE: u64 = 16 << 20;
/// Pieces on their way at the same time.
const PIECES: usize = 3;
/// How often a request is sent again because its answer, though no content, broke off.
const BROKEN_ANSWERS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Clone)]
pub(super) struct Guarded {
    inner: Arc<dyn ObjectStore>,
    seen: Arc<Mutex<HashMap<Path, Seen>>>,
    /// For how long a conditional create is tried again; `None` where its outcome is always known.
    deadline: Option<Duration>,
}

/// Asks for a create whose outcome is what the service answers, whatever is stored: it is the service that is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsAnswered;

/// What an object was first seen as.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    size: u64,
    /// Unknown where only a listing was seen: some services have other tags there.
    e_tag: Option<String>,
}

/// An object is no longer what it was when it was first looked at.
#[derive(Debug, thiserror::Error)]
#[error("{REPLACED}")]
struct Replaced;

/// Less came than the object has.
#[derive(Debug, thiserror::Error)]
#[error("{found} bytes came of {expected}")]
struct Short {
    found: u64,
    expected: u64,
}

fn replaced(path: &Path) -> Error {
    Error::Precondition {
        path: path.to_string(),
        source: Replaced.into(),
    }
}

/// The error for a body that ends too soon.
pub(crate) fn short(found: u64, expected: u64) -> Error {
    Error::Generic {
        store: "object store",
        source: Short { found, expected }.into(),
    }
}

impl Guarded {
    /// Guards the file system of this machine.
    pub(super) fn local(inner: Arc<dyn ObjectStore>) -> Self {
        Self {
            inner,
            seen: Arc::default(),
            deadline: None,
        }
    }

    /// Guards a service behind a network.
    pub(super) fn remote(inner: Arc<dyn ObjectStore>, deadline: Duration) -> Self {
        Self {
            inner,
            seen: Arc::default(),
            deadline: Some(deadline),
        }
    }

    fn seen(&self, path: &Path) -> Option<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(path).cloned()
    }

    /// What is written, or deleted, by this process may change.
    fn forget(&self, path: &Path) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(path);
    }

    /// Remembers an object, or finds that it is another one.
    fn check(&self, meta: &ObjectMeta) -> Result<()> {
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
            (Some(before), Some(now)) if before != now => Err(replaced(&meta.location)),
            _ if meta.size < seen.size => Err(short(meta.size, seen.size)),
            _ if meta.size > seen.size => Err(replaced(&meta.location)),
            (None, now) => {
                seen.e_tag.clone_from(now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Remembers sizes of log entries: nothing else says how long they should be.
    fn listed(&self, meta: &ObjectMeta) {
        if !is_log(&meta.location) || is_pointer(&meta.location) {
            return;
        }
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Seen {
            size: meta.size,
            e_tag: None,
        };
        all.entry(meta.location.clone()).or_insert(seen);
    }

    /// A request for what was first seen.
    async fn get(&self, path: &Path, mut options: GetOptions) -> Result<GetResult> {
        let mut pinned = false;
        if options.if_match.is_none()
            && let Some(e_tag) = self.seen(path).and_then(|seen| seen.e_tag)
            // A weak tag matches nothing; the answer's is compared.
            && !e_tag.starts_with("W/")
        {
            options.if_match = Some(e_tag);
            pinned = true;
        }
        let mut attempts = 0;
        let result = loop {
            match self.inner.get_opts(path, options.clone()).await {
                Err(Error::Precondition { .. }) if pinned => return Err(replaced(path)),
                // The client does not ask again when it is the body of a refusal that breaks off.
                Err(error) if attempts < BROKEN_ANSWERS && is_broken_answer(&error) => {
                    attempts += 1;
                    tokio::time::sleep(PAUSE * attempts).await;
                }
                result => break result?,
            }
        };
        self.check(&result.meta)?;
        Ok(result)
    }

    /// The bytes of a range in pieces, a few of which are on their way.
    fn pieces(
        &self,
        path: &Path,
        range: Range<u64>,
        options: &GetOptions,
    ) -> BoxStream<'static, Result<Bytes>> {
        let starts = (range.start..range.end).step_by(PIECE as usize);
        let (guarded, path, options) = (self.clone(), path.clone(), options.clone());
        let pieces = starts.map(move |start| {
            let piece = start..range.end.min(start + PIECE);
            let (guarded, path) = (guarded.clone(), path.clone());
            let options = GetOptions {
                range: Some(GetRange::Bounded(piece)),
                ..options.clone()
            };
            async move { whole(guarded.get(&path, options).await?).bytes().await }
        });
        futures::stream::iter(pieces).buffered(PIECES).boxed()
    }
}

/// Whether an answer came, and broke off.
fn is_broken_answer(error: &Error) -> bool {
    let causes =
        std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| {
            error.source()
        });
    let mut texts = causes.map(ToString::to_string);
    texts.any(|text| text.contains("response body error"))
}

/// Whether an object is one whose content is replaced as time goes: it points to the latest checkpoint.
fn is_pointer(path: &Path) -> bool {
    path.filename() == Some("_last_checkpoint")
}

fn is_log(path: &Path) -> bool {
    path.parts().any(|part| part.as_ref() == "_delta_log")
}

/// The answer, with an error at its end if it ends too soon.
fn whole(mut result: GetResult) -> GetResult {
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
                    None => Err(short(found, expected)),
                }
            });
        result.payload = GetResultPayload::Stream(counted.boxed());
    }
    result
}

// Stores hold credentials, which some of them show.
impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guarded({})", self.inner)
    }
}

impl std::fmt::Display for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Guarded {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.forget(location);
        let plain = options.extensions.get::<AsAnswered>().is_some();
        match (&options.mode, self.deadline) {
            (PutMode::Create, Some(deadline)) if !plain => {
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
            return Ok(whole(self.get(location, options).await?));
        }
        // An object that was not looked at yet is asked for as a whole: its answer says how large it is.
        let known = self.seen(location).map(|seen| seen.size);
        let range = match (&options.range, known) {
            (None, Some(size)) => Some(0..size),
            (Some(range), Some(size)) => range.as_range(size).ok(),
            (Some(GetRange::Bounded(range)), None) => Some(range.clone()),
            (_, None) => None,
        };
        let Some(range) = range.filter(|range| range.end - range.start > PIECE) else {
            let result = self.get(location, options.clone()).await?;
            let range = result.range.clone();
            if range.end - range.start <= PIECE {
                return Ok(whole(result));
            }
            let payload = GetResultPayload::Stream(self.pieces(location, range, &options));
            return Ok(GetResult { payload, ..result });
        };
        let head = GetOptions {
            head: true,
            range: None,
            ..options.clone()
        };
        let result = self.get(location, head).await?;
        let payload = GetResultPayload::Stream(self.pieces(location, range.clone(), &options));
        Ok(GetResult {
            payload,
            range,
            ..result
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.deadline.is_none() {
            // Read from one open file; whether it is still the same is looked at first.
            self.get(location, GetOptions::new().with_head(true))
                .await?;
            return self.inner.get_ranges(location, ranges).await;
        }
        let fetch = |range| self.get_range(location, range);
        object_store::coalesce_ranges(ranges, fetch, object_store::OBJECT_STORE_COALESCE_DEFAULT)
            .await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let guarded = self.clone();
        let forgotten = locations.inspect_ok(move |path| guarded.forget(path));
        self.inner.delete_stream(forgotten.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let guarded = self.clone();
        let listed = self.inner.list(prefix);
        listed.inspect_ok(move |meta| guarded.listed(meta)).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let guarded = self.clone();
        let listed = self.inner.list_with_offset(prefix, offset);
        listed.inspect_ok(move |meta| guarded.listed(meta)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.forget(to);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.forget(from);
        self.forget(to);
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3Builder;
    use object_store::azure::MicrosoftAzureBuilder;
    use object_store::memory::InMemory;

    use super::*;
    use crate::error::ArchiveError;
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
            let shown = format!("{:?}", Guarded::remote(store, Duration::ZERO));
            assert!(!shown.contains(CANARY), "{shown}");
        }
        let options = StoreOptions {
            endpoint: Some(format!("https://user:{CANARY}@host")),
            ..Default::default()
        };
        let shown = format!("{:?} {options:?}", Stores::new(options.clone()));
        assert!(shown.contains("host") && !shown.contains(CANARY), "{shown}");
        let error = ArchiveError::Store {
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
    async fn large_objects_come_in_pieces_and_whole() {
        let path = Path::from("large");
        let bytes: Vec<u8> = (0..2 * PIECE + 12_345)
            .map(|at| (at * at % 251) as u8)
            .collect();
        let memory = Arc::new(InMemory::new());
        memory.put(&path, bytes.clone().into()).await.unwrap();
        let guarded = Guarded::remote(memory, Duration::ZERO);
        // Asked for before and after its size is known.
        for _ in 0..2 {
            let got = guarded.get(&path, GetOptions::default()).await.unwrap();
            assert_eq!(got.meta.size, bytes.len() as u64);
            let got = object_store::ObjectStoreExt::get(&guarded, &path)
                .await
                .unwrap();
            assert_eq!(got.range, 0..bytes.len() as u64);
            assert!(got.bytes().await.unwrap() == bytes);
        }
        let range = 1000..PIECE + 2000;
        let part = guarded.get_range(&path, range.clone()).await.unwrap();
        assert!(part == bytes[range.start as usize..range.end as usize]);
        let empty = Path::from("empty");
        guarded.put(&empty, "".into()).await.unwrap();
        let got = object_store::ObjectStoreExt::get(&guarded, &empty)
            .await
            .unwrap();
        assert!(got.bytes().await.unwrap().is_empty());
    }
}
