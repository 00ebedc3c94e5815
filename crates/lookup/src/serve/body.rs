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
    let mut body = request.into_body();
    let reading = read(shared, &mut body);
    match tokio::time::timeout(shared.settings.timeout, reading).await {
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time; send it faster",
        )),
        Ok(Ok(Some(read))) => Ok(read),
        Ok(Ok(None)) => {
            drain(&mut body).await;
            let limit = shared.settings.max_body;
            Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body has more than {limit} bytes"),
            ))
        }
        Ok(Err(problem)) => Err(problem),
    }
}

/// The least KiB for which room is reserved at a time.
const STEP: usize = 8;

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

/// Reads a body; `None` if it is longer than allowed. Room is reserved for what has arrived: a client that claims a long
/// body and sends nothing takes none.
async fn read<'s>(
    shared: &'s Shared,
    body: &mut Incoming,
) -> Result<Option<(Bytes, SemaphorePermit<'s>)>, Problem> {
    let limit = shared.settings.max_body;
    if body.size_hint().lower() > limit as u64 {
        return Ok(None);
    }
    let longest = limit.div_ceil(1024).max(1);
    let mut reserved = STEP.min(longest);
    let mut room = shared.admission.body(reserved)?;
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("the body cannot be read: {error}");
            Problem::new(StatusCode::BAD_REQUEST, reason)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
        let needed = bytes.len().div_ceil(1024);
        if needed > reserved {
            let more = (needed - reserved).max(STEP).min(longest - reserved);
            room.merge(shared.admission.body(more)?);
            reserved += more;
        }
    }
    Ok(Some((bytes.into(), room)))
}
