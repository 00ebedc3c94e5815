//! Texts that are prepared for comparisons: as many as there is memory for, while they are read.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use rayon::ThreadPool;
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _,
};
use simhash::Similarity;
use simhash::similarity::Prepared;

use super::Verifier;
use super::texts_at::Batch;
use crate::error::Result;
use streams::{blocking, free_bytes, locked, thread_pool};

/// The part of the free memory that holds prepared texts, as many as it can.
const SHARED_PART: usize = 2;
/// Bytes of a prepared text beside its own: its counters and what the allocator takes.
const PREPARED_BYTES: usize = 64;
/// Batches whose texts are worked on at the same time.
const BATCHES: usize = 2;
/// The fewest texts that a thread works on before another takes the next.
const TEXTS_AT_ONCE: usize = 8;

/// A place for a prepared text.
type Slot = OnceLock<Arc<Prepared>>;

/// Prepared texts, by the numbers of the texts.
#[derive(Debug)]
pub(super) struct PreparedTexts {
    slots: Vec<Slot>,
    memory: MemoryReservation,
    /// The most bytes that they may take.
    most: usize,
}

impl PreparedTexts {
    /// None, and no room for any.
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        Self {
            slots: Vec::new(),
            memory: MemoryConsumer::new("prepared texts").register(pool),
            most: 0,
        }
    }

    /// Makes room for as many of `texts` as a part of the free memory of `pool` holds, unless there is room. All that is needed
    /// must be reserved by then.
    pub(super) fn make_room(&mut self, texts: usize, pool: &Arc<dyn MemoryPool>) {
        if self.most > 0 {
            return;
        }
        self.most = free_bytes(pool) / SHARED_PART;
        if self.reserve(texts * size_of::<Slot>()) {
            self.slots.resize_with(texts, Slot::new);
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&Arc<Prepared>> {
        self.slots.get(number)?.get()
    }

    /// Keeps the prepared text with a number, if there is memory for it.
    pub(super) fn keep(&self, number: usize, text: &Arc<Prepared>) -> bool {
        let bytes = PREPARED_BYTES + text.bytes();
        let Some(slot) = self.slots.get(number) else {
            return false;
        };
        if !self.reserve(bytes) {
            return false;
        }
        if slot.set(Arc::clone(text)).is_err() {
            // Another worker prepared it meanwhile.
            self.memory.shrink(bytes);
        }
        true
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.memory.size() + bytes <= self.most && self.memory.try_grow(bytes).is_ok()
    }
}

/// Works on texts with all threads.
pub(super) struct TextWorkers {
    threads: ThreadPool,
    /// What each thread prepares texts with.
    workers: Vec<Mutex<Similarity>>,
}

impl TextWorkers {
    pub(super) fn new(verifier: &Verifier, context: &SessionContext) -> Result<Self> {
        let threads = thread_pool(context)?;
        let worker = |_| {
            let similarity = Similarity::new(verifier.verify.measure, verifier.model.clone());
            Mutex::new(similarity)
        };
        Ok(Self {
            workers: (0..threads.current_num_threads()).map(worker).collect(),
            threads,
        })
    }

    /// Each batch of `batches`, with what `make` returns for its texts, in their order.
    pub(super) fn work<T: Send + 'static>(
        self,
        batches: BoxStream<'static, Result<Batch>>,
        make: impl Fn(&mut Similarity, &[u8]) -> T + Send + Sync + 'static,
    ) -> BoxStream<'static, Result<(Batch, Vec<T>)>> {
        let shared = Arc::new((self, make));
        let worked = batches.map(move |batch| {
            let shared = Arc::clone(&shared);
            blocking(move || {
                let (batch, (all, make)) = (batch?, &*shared);
                let texts: Vec<&[u8]> = batch.iter()?.map(|(_, text)| text).collect();
                let make = |text: &&[u8]| {
                    let worker = &all.workers[rayon::current_thread_index().unwrap_or(0)];
                    let mut worker = locked(worker);
                    make(&mut worker, text)
                };
                let texts = texts.par_iter().with_min_len(TEXTS_AT_ONCE).map(make);
                let made = all.threads.install(|| texts.collect());
                Ok((batch, made))
            })
        });
        worked.buffered(BATCHES).boxed()
    }
}

/// The text of these bytes, as [`String::from_utf8_lossy`], which takes longer for what is UTF-8.
pub(super) fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
