//! Maps the path and method of a request to its handler; checks the token.

use std::sync::atomic::Ordering;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode, Version};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::api::Timed;
use super::host::is_known;
use super::problem::Problem;
use super::{Shared, api};

const JSON: &str = "application/json";
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const OPENAPI: &str = include_str!("openapi.json");

/// Content security policy of the page: a browser lets it load the server's own files, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; \
    base-uri 'none'; frame-ancestors 'none'";

/// Answers a request; makes a response of an error, and counts the response.
pub(super) async fn respond(shared: &Shared, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let allowed = allowed(request.uri().path());
    let response = match route(shared, request).await {
        Ok(response) => response,
        Err(problem) => {
            let body = json!({ "error": problem.reason }).to_string();
            let mut response = with_type(problem.status, JSON, body);
            let headers = response.headers_mut();
            match problem.status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                }
                StatusCode::UNAUTHORIZED => {
                    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                StatusCode::METHOD_NOT_ALLOWED => {
                    headers.insert(ALLOW, HeaderValue::from_static(allowed));
                }
                _ => {}
            }
            response
        }
    };
    shared.metrics.answered(response.status());
    response
}

async fn route(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Problem> {
    require_known_host(shared, &request)?;
    let path = request.uri().path().to_owned();
    let is_get = request.method() == Method::GET || request.method() == Method::HEAD;
    let is_post = request.method() == Method::POST;
    let ok = |kind, body: String| Ok(with_type(StatusCode::OK, kind, body));
    match path.as_str() {
        "/healthz" if is_get => ok("text/plain; charset=utf-8", "ok\n".into()),
        "/readyz" if is_get => {
            let problem = match () {
                () if shared.draining.load(Ordering::Relaxed) => "the server is stopping",
                () if shared.is_lost.load(Ordering::Relaxed) => "the index cannot be found",
                () => return ok("text/plain; charset=utf-8", "ready\n".into()),
            };
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, problem))
        }
        "/" if is_get => Ok(page("text/html; charset=utf-8", PAGE)),
        "/page.css" if is_get => Ok(page("text/css; charset=utf-8", STYLE)),
        "/page.js" if is_get => Ok(page("text/javascript; charset=utf-8", SCRIPT)),
        "/openapi.json" if is_get => ok(JSON, OPENAPI.into()),
        "/metrics" if is_get => {
            authorize(shared, &request)?;
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ok(kind, metrics(shared))
        }
        "/v1/info" if is_get => {
            authorize(shared, &request)?;
            ok(JSON, api::info(shared).to_string())
        }
        "/v1/lookup" if is_post => {
            authorize(shared, &request)?;
            response(shared, api::lookup(shared, request).await?)
        }
        "/v1/seen" if is_post && shared.seen.is_some() => {
            authorize(shared, &request)?;
            response(shared, api::seen(shared, request).await?)
        }
        "/v1/seen" if shared.seen.is_none() => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "the server was started without --remember",
        )),
        "/healthz" | "/readyz" | "/" | "/page.css" | "/page.js" | "/openapi.json" | "/metrics"
        | "/v1/info" | "/v1/lookup" | "/v1/seen" => Err(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("{path} does not answer {}", request.method()),
        )),
        _ => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "no such path; /openapi.json lists all paths",
        )),
    }
}

/// The methods that a path answers.
fn allowed(path: &str) -> &'static str {
    match path {
        "/v1/lookup" | "/v1/seen" => "POST",
        _ => "GET, HEAD",
    }
}

/// Refuses a request that does not say one host (RFC 9112, section 3.2), and one to a name that is not this server's, if anybody may
/// ask.
fn require_known_host(shared: &Shared, request: &Request<Incoming>) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    if other.is_some() || (host.is_none() && request.version() == Version::HTTP_11) {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "a request has one header Host",
        ));
    }
    // The host of a whole URL counts before the header (section 3.2.2).
    let whole = request.uri().authority();
    let whole = whole.map(|authority| Ok(authority.as_str()));
    // A browser always sends it.
    let Some(host) = whole
        .or(host.map(HeaderValue::to_str))
        .filter(|_| shared.checks_host)
    else {
        return Ok(());
    };
    if host.is_ok_and(|host| is_known(host, &shared.settings.host_names)) {
        Ok(())
    } else {
        Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this server does not know the name in the header Host; start it with --host-name NAME, or with a token",
        ))
    }
}

/// What is before the token in the header `Authorization`.
const SCHEME: &[u8] = b"Bearer ";

/// Refuses a request that does not send the server's token, if the server has one.
fn authorize(shared: &Shared, request: &Request<Incoming>) -> Result<(), Problem> {
    let Some(token) = &shared.settings.token else {
        return Ok(());
    };
    let given = request.headers().get(AUTHORIZATION).and_then(|given| {
        let (scheme, token) = given.as_bytes().split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
    });
    if given.is_some_and(|given| is_equal(given, token.as_bytes())) {
        Ok(())
    } else {
        Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong (Authorization: Bearer)",
        ))
    }
}

/// Compares two tokens in constant time.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differences) == 0 && a.len() == b.len()
}

/// The response to lookups. The header `Server-Timing` says how long they took; the page shows it.
fn response(shared: &Shared, (body, took): Timed) -> Result<Response<Full<Bytes>>, Problem> {
    let room = shared.admission.response(body.len())?;
    let body = Bytes::from_owner(Held { body, _room: room });
    let mut response = with_type(StatusCode::OK, JSON, body);
    let took = format!("lookup;dur={:.3}", took.as_secs_f64() * 1e3);
    if let Ok(took) = HeaderValue::from_str(&took) {
        response.headers_mut().insert("server-timing", took);
    }
    Ok(response)
}

/// A body, and its room until it is sent.
struct Held {
    body: String,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.body.as_bytes()
    }
}

fn with_type(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let nosniff = HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert("x-content-type-options", nosniff);
    response
}

fn page(kind: &'static str, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = with_type(StatusCode::OK, kind, text);
    let headers = response.headers_mut();
    headers.insert("content-security-policy", HeaderValue::from_static(POLICY));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    response
}

fn metrics(shared: &Shared) -> String {
    let serving = shared.current.serving();
    let info = serving.index.info();
    let remembered = shared.seen.as_ref().map_or(0, crate::seen::Seen::len);
    shared.metrics.text(&[
        (
            "index_version",
            "Version of the index that is open.",
            info.version,
        ),
        (
            "index_archive_version",
            "Version of the archive that the index covers.",
            info.archive_version,
        ),
        ("index_documents", "Documents in the index.", info.rows),
        (
            "index_segments",
            "Segments in the index.",
            info.segments.len() as u64,
        ),
        (
            "seen_documents",
            "Documents remembered by /v1/seen.",
            remembered as u64,
        ),
    ])
}
