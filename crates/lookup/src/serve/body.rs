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
    let claimed = request.body().size_hint();
    if claimed.lower() > limit as u64 {
        return Err(too_large());
    }
    let bytes = claimed.upper().map_or(limit, |upper| {
        usize::try_from(upper).unwrap_or(limit).min(limit)
    });
    let room = shared.admission.body(bytes)?;
    let reading = Limited::new(request.into_body(), limit).collect();
    match tokio::time::timeout(shared.settings.timeout, reading).await {
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time; send it faster",
        )),
        Ok(Ok(collected)) => Ok((collected.to_bytes(), room)),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("the body cannot be read: {error}"),
        )),
    }
}
