//! Where encoded bytes come from: the disk, the first bytes of an object, or an object that a task fetches.
//!
//! A blocking thread reads them. A task fetches an object and sends its parts to that thread
//! through a channel. The end of the object is an item of the channel, too, so that the reader does
//! not take a channel that closes early for the end.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf as _, Bytes};
use datafusion::common::runtime::SpawnedTask;
use futures::StreamExt as _;
use object_store::{GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _};
use storage::{Location, StorageError};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::error::{DocumentsError, Result};

/// At most `length` bytes of a file from `at` on.
pub(crate) async fn window(location: &Location, size: u64, at: u64, length: u64) -> Result<Bytes> {
    let end = size.min(at.saturating_add(length));
    // Some servers ignore a range that covers the whole object, and answer as without a range.
    if at == 0 && end == size {
        return Ok(location.read().await?);
    }
    let (store, path) = (location.store(), location.path());
    let fetched = store.get_range(path, at..end).await;
    Ok(fetched.map_err(|error| location.store_error(error))?)
}

/// A local file whose errors name it.
pub(super) struct Local {
    pub(super) file: File,
    pub(super) name: String,
}

impl Read for Local {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let error = StorageError::io(&self.name)(source);
                    return Err(io::Error::other(DocumentsError::from(error)));
                }
                read => return read,
            }
        }
    }
}

/// The first bytes of an object. Reading past them is an error, unless they are the whole object.
pub(super) struct Head {
    pub(super) bytes: Bytes,
    pub(super) whole: bool,
    /// Set when a reader needed more.
    pub(super) is_cut: Arc<AtomicBool>,
}

impl BufRead for Head {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.bytes.is_empty() && !self.whole {
            self.is_cut.store(true, Ordering::Relaxed);
            return Err(io::Error::other("more of the object is needed"));
        }
        Ok(&self.bytes)
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.advance(bytes);
    }
}

impl Read for Head {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

/// An object that a task fetches. Its reader blocks until the next part is there.
pub(super) struct Remote {
    location: Location,
    parts: Receiver<Result<Option<Bytes>>>,
    part: Bytes,
    ended: bool,
    /// The offset of the bytes behind those that are fetched; they are fetched only if a reader goes on.
    rest: Option<u64>,
    /// Aborted when this is dropped.
    _task: SpawnedTask<()>,
}

impl Remote {
    /// Starts to fetch the object at `location`, of `size` bytes, from its start or from that of `range`.
    pub(super) fn start(location: &Location, range: Option<Range<u64>>, size: u64) -> Self {
        let end = range.as_ref().map(|range| range.end);
        let rest = end.filter(|end| *end < size);
        Self::fetch(location, range.map(GetRange::Bounded), rest)
    }

    fn fetch(location: &Location, range: Option<GetRange>, rest: Option<u64>) -> Self {
        let (sender, parts) = tokio::sync::mpsc::channel(1);
        Self {
            location: location.clone(),
            parts,
            part: Bytes::new(),
            ended: false,
            rest,
            _task: SpawnedTask::spawn(fetch(location.clone(), range, sender)),
        }
    }
}

/// Sends the parts of an object, or of a range of it, then `None`; or the error that ended the fetch.
async fn fetch(location: Location, range: Option<GetRange>, parts: Sender<Result<Option<Bytes>>>) {
    let options = GetOptions {
        range,
        ..GetOptions::default()
    };
    let mut stream = match location.store().get_opts(location.path(), options).await {
        Ok(object) => object.into_stream(),
        Err(error) => {
            // The reader may be gone.
            let _ = parts.send(Err(location.store_error(error).into())).await;
            return;
        }
    };
    loop {
        let part = stream.next().await.transpose();
        let is_last = !matches!(part, Ok(Some(_)));
        let part = part.map_err(|error| location.store_error(error).into());
        if parts.send(part).await.is_err() || is_last {
            return;
        }
    }
}

impl BufRead for Remote {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.part.is_empty() {
            if self.ended {
                let Some(rest) = self.rest else { break };
                *self = Self::fetch(&self.location, Some(GetRange::Offset(rest)), None);
            }
            match self.parts.blocking_recv() {
                Some(Ok(Some(part))) => self.part = part,
                Some(Ok(None)) => self.ended = true,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => {
                    let reason = format!("{}: it is no longer fetched", self.location);
                    return Err(io::Error::other(DocumentsError::Internal(reason)));
                }
            }
        }
        Ok(&self.part)
    }

    fn consume(&mut self, bytes: usize) {
        self.part.advance(bytes);
    }
}

impl Read for Remote {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

pub(super) fn read_buffered(bytes: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<usize> {
    let read = bytes.fill_buf()?.read(buffer)?;
    bytes.consume(read);
    Ok(read)
}
