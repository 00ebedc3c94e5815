//! Reads the body of a request, within a size and a time.

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
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
    if request.body().size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let reading = read(shared, Limited::new(request.into_body(), limit));
    match tokio::time::timeout(shared.settings.timeout, reading).await {
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time; send it faster",
        )),
        Ok(Ok(read)) => Ok(read),
        Ok(Err(Unread::Refused(problem))) => Err(problem),
        Ok(Err(Unread::Failed(error))) if error.is::<LengthLimitError>() => Err(too_large()),
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
    /// It is too long, or the connection broke.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Reads a body. Room is reserved for what has arrived: a client that claims a long body and sends nothing takes none.
async fn read(
    shared: &Shared,
    mut body: Limited<Incoming>,
) -> Result<(Bytes, SemaphorePermit<'_>), Unread> {
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
