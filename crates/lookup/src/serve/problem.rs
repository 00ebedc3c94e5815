//! Error responses.

use hyper::StatusCode;

use super::admission::Refused;

/// An error response: a status, and one sentence that says what is wrong.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) reason: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests are in progress; try again",
            ),
            Refused::Late => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the request waited too long for a thread; try again",
            ),
        }
    }
}
