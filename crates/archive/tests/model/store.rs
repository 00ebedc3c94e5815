//! A store in memory. At a chosen request it kills the process that uses it, or loses the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use tokio::sync::Notify;

/// What goes wrong in a step, and at which request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The process dies before the store carries out this request.
    Crash(u64),
    /// The process dies after the store carried out this request.
    CrashAfter(u64),
    /// If this request is a put, the store carries it out, but answers with an error.
    LostAnswer(u64),
}

/// One process's view of the store.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<InMemory>,
    fault: Fault,
    requests: AtomicU64,
    /// Notified when the process is dead.
    pub died: Arc<Notify>,
}

impl Faulty {
    pub fn new(inner: Arc<InMemory>, fault: Fault) -> Self {
        Self {
            inner,
            fault,
            requests: AtomicU64::new(0),
            died: Arc::default(),
        }
    }

    async fn die<T>(&self) -> T {
        self.died.notify_one();
        std::future::pending().await
    }

    /// Counts a request, and carries it out as the fault says.
    async fn carry_out<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::Crash(at) if number >= at => self.die().await,
            Fault::CrashAfter(at) if number == at => {
                let _ = request.await;
                self.die().await
            }
            Fault::CrashAfter(at) if number > at => self.die().await,
            Fault::LostAnswer(at) if number == at => {
                let _ = request.await;
                Err(Error::Generic {
                    store: "model",
                    source: "the answer is lost".into(),
                })
            }
            _ => request.await,
        }
    }
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("model")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.carry_out(self.inner.put_opts(location, payload, options))
            .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::Crash(at) | Fault::CrashAfter(at) if number >= at => self.die().await,
            // No read loses its answer: the client would only send it again.
            _ => self.inner.get_opts(location, options).await,
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::Crash(at) | Fault::CrashAfter(at) if number >= at => {
                self.died.notify_one();
                futures::stream::pending().boxed()
            }
            _ => self.inner.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
