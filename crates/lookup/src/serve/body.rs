//! Reads the body of a request, within a size and a time.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::{Request, StatusCode};
use tokio::sync::SemaphorePermit;

use super::Shared;
use super::problem::Problem;

/// Reads the body of a request, if there is room for it.
pub(super) async fn body(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<(Bytes, SemaphorePermit<'_>), Problem> {
    let limit = shared.settings.max_body;
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {limit} bytes"),
        )
    };
    let mut body = request.into_body();
    if body.size_hint().lower() > limit as u64 {
        drain(&mut body).await;
        return Err(too_large());
    }
    let reading = read(shared, &mut body, limit);
    match tokio::time::timeout(shared.settings.timeout, reading).await {
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time; send it faster",
        )),
        Ok(Ok(read)) => Ok(read),
        Ok(Err(Unread::Refused(problem))) => Err(problem),
        Ok(Err(Unread::TooLong)) => {
            drain(&mut body).await;
            Err(too_large())
        }
        Ok(Err(Unread::Failed(error))) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("the body cannot be read: {error}"),
        )),
    }
}

/// The least KiB for which room is reserved at a time.
const STEP: usize = 8;

/// Why a body was not read.
enum Unread {
    /// There is no room for it.
    Refused(Problem),
    /// It is longer than allowed.
    TooLong,
    /// The connection broke.
    Failed(hyper::Error),
}

/// The most bytes of a body that are read to no purpose, and the most time for it.
const DRAINED: usize = 64 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Reads the rest of a body: a client that still sends when the connection closes never sees the answer.
async fn drain(body: &mut Incoming) {
    let reading = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DRAINED {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
}

/// Reads a body. Room is reserved for what has arrived: a client that claims a long body and sends nothing takes none.
async fn read<'s>(
    shared: &'s Shared,
    body: &mut Incoming,
    limit: usize,
) -> Result<(Bytes, SemaphorePermit<'s>), Unread> {
    let reserve = |kib: usize| {
        let room = shared.admission.body(kib);
        room.map_err(|refused| Unread::Refused(refused.into()))
    };
    let longest = shared.settings.max_body.div_ceil(1024).max(1);
    let mut reserved = STEP.min(longest);
    let mut room = reserve(reserved)?;
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Unread::Failed)?.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > limit {
            return Err(Unread::TooLong);
        }
        bytes.extend_from_slice(&data);
        let needed = bytes.len().div_ceil(1024);
        if needed > reserved {
            let more = (needed - reserved).max(STEP).min(longest - reserved);
            room.merge(reserve(more)?);
            reserved += more;
        }
    }
    Ok((bytes.into(), room))
}
