//! Turns errors of object stores into a kind and a message for people.
//!
//! Services report errors as XML, which may quote secrets. From this XML, a message quotes only the
//! code and the first line of the service's message.

use std::error::Error as StdError;

use object_store::Error;

use crate::delta_log::DAMAGED_ENTRY;
use crate::error_kind::{ErrorKind, io_kind};
use crate::secrets::scrub;

/// The kind of a store's error, and a message for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explained {
    /// The kind, which decides the exit code.
    pub(crate) kind: ErrorKind,
    /// The message, without secrets.
    pub(crate) text: String,
}

impl Explained {
    fn new(kind: ErrorKind, text: &str) -> Self {
        let text = scrub(text);
        Self { kind, text }
    }
}

/// The message for an object that another writer replaced while this process read it.
pub(crate) const REPLACED: &str = "it was replaced while it was read";
/// HTTP statuses of refused access, as the messages of `object_store` quote them.
const REFUSED: [&str; 2] = [": 401 ", ": 403 "];
/// Paths of the metadata services from which a cloud's virtual machines get their credentials.
const METADATA_PATHS: [&str; 3] = [
    "/latest/api/token",
    "/metadata/identity",
    "/computeMetadata/",
];

/// For each known failure: error codes of the services, or phrases of their messages; the kind; and
/// the advice that the message gives.
const CODES: [(&[&str], ErrorKind, &str); 9] = [
    (
        &[
            "ExpiredToken",
            "TokenRefreshRequired",
            "ExpiredAuthenticationToken",
            "Signature not valid in the specified time frame",
            "expired",
        ],
        ErrorKind::Permission,
        "the credentials have expired: renew them (AWS_SESSION_TOKEN, AZURE_STORAGE_SAS_TOKEN, or the role they come from)",
    ),
    (
        &[
            "RequestTimeTooSkewed",
            "RequestTimeTooSkewedError",
            "Request date header too old",
        ],
        ErrorKind::Permission,
        "the clock of this machine is wrong: the service's is too far from it",
    ),
    (
        &["InvalidToken", "InvalidClientTokenId"],
        ErrorKind::Permission,
        "the service does not take the session token (AWS_SESSION_TOKEN, or that of the role)",
    ),
    (
        &["InvalidAccessKeyId"],
        ErrorKind::Permission,
        "the service does not know the key of AWS_ACCESS_KEY_ID",
    ),
    (
        &["SignatureDoesNotMatch"],
        ErrorKind::Permission,
        "the signature is wrong: AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID",
    ),
    (
        &[
            "AuthenticationFailed",
            "InvalidAuthenticationInfo",
            "Server failed to authenticate the request",
        ],
        ErrorKind::Permission,
        "the service refused the credentials: look at AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN and the account's name",
    ),
    (
        &[
            "AccessDenied",
            "AllAccessDisabled",
            "AuthorizationFailure",
            "AuthorizationPermissionMismatch",
        ],
        ErrorKind::Permission,
        "access was refused",
    ),
    (
        // The upload was completed, or aborted, by an earlier request whose answer was lost.
        &["NoSuchUpload", "InvalidBlockList"],
        ErrorKind::Unreachable,
        "the store lost the upload",
    ),
    (
        &["NoSuchBucket", "ContainerNotFound"],
        ErrorKind::Usage,
        "there is no such bucket",
    ),
];

pub(crate) fn explain(error: &Error) -> Explained {
    let whole = chain_text(error);
    explain_code(&whole).unwrap_or_else(|| explain_without_code(error, &whole))
}

/// Whether the service's answer has a code that says more than the kind of the error.
pub(crate) fn has_known_code(error: &Error) -> bool {
    explain_code(&chain_text(error)).is_some()
}

pub fn store_kind(error: &Error) -> ErrorKind {
    explain(error).kind
}

/// The kind of the store error or system error that caused `error`; `None` if no such error did.
pub fn cause_kind(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    explain_cause(error).map(|explained| explained.kind)
}

/// The message of `error` without secrets; if a store's error caused it, the explanation of that
/// error.
pub fn plain_message(error: &(dyn StdError + 'static)) -> String {
    if let Some(explained) = explain_cause(error) {
        return explained.text;
    }
    // The Delta library appends a backtrace if the environment asks for backtraces.
    let text = error.to_string();
    scrub(text.split("\n   0: ").next().unwrap_or(&text).trim_end())
}

/// Explains the first store error or system error in the chain of `error` and its causes.
fn explain_cause(error: &(dyn StdError + 'static)) -> Option<Explained> {
    let found = causes(error).find_map(|error| {
        if let Some(error) = error.downcast_ref::<Error>() {
            return Some(explain(error));
        }
        let kind = system_io_kind(error)?;
        Some(Explained {
            kind,
            text: error.to_string(),
        })
    });
    found.or_else(|| explain_quoted(&error.to_string()))
}

/// Explains an error whose text quotes a store's message: the Delta library keeps a store's error
/// only as text.
fn explain_quoted(text: &str) -> Option<Explained> {
    let quoted = [
        "Error interacting with object store",
        "Generic S3 error",
        "Generic MicrosoftAzure error",
        "Generic GCS error",
    ];
    if !quoted.iter().any(|quoted| text.contains(quoted)) {
        return None;
    }
    let explained = explain_code(text).unwrap_or_else(|| {
        let (kind, what) = if text.contains(REPLACED) {
            (ErrorKind::TryAgain, format!("{REPLACED}; run it again"))
        } else if text.contains("not found") || text.contains(DAMAGED_ENTRY) {
            (ErrorKind::Data, without_bodies(text))
        } else if text.contains("Permission denied (os error 13)") {
            (ErrorKind::Permission, without_bodies(text))
        } else if is_refused(text) {
            (ErrorKind::Permission, "access was refused".to_owned())
        } else if let Some(answer) = code_and_message(text) {
            let what = format!("the service failed: {answer}");
            (ErrorKind::Unreachable, what)
        } else {
            (ErrorKind::Unreachable, without_bodies(text))
        };
        Explained::new(kind, &what)
    });
    Some(explained)
}

/// Explains a service's answer if [`CODES`] has its code.
fn explain_code(text: &str) -> Option<Explained> {
    let (code, message) = (element(text, "Code"), element(text, "Message"));
    let known = CODES.iter().find(|(names, ..)| {
        names.iter().any(|name| {
            code == Some(*name)
                || message.is_some_and(|message| message.contains(name))
                // Azure puts some of these sentences in other elements than `Message`.
                || (name.contains(' ') && text.contains(name))
        })
    });
    if let Some((_, kind, advice)) = known {
        let text = match code_and_message(text) {
            Some(answer) => format!("{advice} ({answer})"),
            None => (*advice).to_owned(),
        };
        return Some(Explained::new(*kind, &text));
    }
    explain_region(text).or_else(|| explain_metadata(text))
}

/// Explains an answer that names another region than the request's.
fn explain_region(text: &str) -> Option<Explained> {
    let codes = ["AuthorizationHeaderMalformed", "PermanentRedirect"];
    let is_wrong = element(text, "Code").is_some_and(|code| codes.contains(&code))
        || text.contains("incorrectly configured region");
    let region = match element(text, "Region") {
        Some(region) => format!("the region {region}"),
        None => "another region".to_owned(),
    };
    let text = format!("the bucket is in {region}: set AWS_REGION to it");
    is_wrong.then(|| Explained::new(ErrorKind::Configuration, &text))
}

/// Explains the failure of the metadata service, which the client asks only if the environment has no credentials.
fn explain_metadata(text: &str) -> Option<Explained> {
    METADATA_PATHS.iter().find(|path| text.contains(*path))?;
    let has_none = ["400", "401", "403", "404"];
    let is_missing = has_none
        .iter()
        .any(|status| text.contains(&format!("status code: {status}")));
    let unset = "neither AWS_ACCESS_KEY_ID, AZURE_STORAGE_ACCOUNT_KEY nor GOOGLE_APPLICATION_CREDENTIALS is set";
    let (kind, answer) = if is_missing {
        (ErrorKind::Permission, " gives none")
    } else {
        let answer = ", which may have some, does not answer or is busy";
        (ErrorKind::Unreachable, answer)
    };
    let text = format!("no credentials: {unset}, and this machine's metadata service{answer}");
    Some(Explained::new(kind, &text))
}

/// The code and message of a service's answer, as `CODE: MESSAGE`; `None` without a code.
fn code_and_message(text: &str) -> Option<String> {
    let code = element(text, "Code")?;
    Some(match element(text, "Message") {
        Some(message) => format!("{code}: {}", message.trim()),
        None => code.to_owned(),
    })
}

/// Whether a message quotes an HTTP status of refused access.
fn is_refused(text: &str) -> bool {
    REFUSED.iter().any(|status| text.contains(status))
}

/// The error, its cause, and so on.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), source_of)
}

/// The error that `error` wraps. For an `io::Error` this calls `get_ref`, because
/// `io::Error::source` skips the error that it wraps.
fn source_of<'a>(error: &&'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    let error: &'a (dyn StdError + 'static) = *error;
    match error.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

/// The kind of an I/O error that the operating system reported. `None` for other errors, also for
/// those that a library wrapped in an `io::Error`.
fn system_io_kind(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    let error = error.downcast_ref::<std::io::Error>()?;
    let wrapped = error.get_ref().is_some_and(|inner| {
        causes(inner as &(dyn StdError + 'static)).any(|cause| cause.is::<Error>())
    });
    let real = error.kind() != std::io::ErrorKind::Other || error.raw_os_error().is_some();
    (real && !wrapped).then(|| io_kind(error))
}

/// Explains an error whose code is unknown, in one sentence.
fn explain_without_code(error: &Error, whole: &str) -> Explained {
    let is_local = matches!(error, Error::Generic { store, .. } if *store == "LocalFileSystem");
    let replaced = format!("{REPLACED}; run it again");
    let (kind, what) = match error {
        // An object that a log or a listing named is gone.
        Error::NotFound { .. } => (ErrorKind::Data, "no such object"),
        Error::PermissionDenied { .. } => (ErrorKind::Permission, "access was refused"),
        Error::Unauthenticated { .. } => {
            (ErrorKind::Permission, "the service does not know who asks")
        }
        Error::Precondition { .. } => (ErrorKind::TryAgain, replaced.as_str()),
        Error::AlreadyExists { .. } => (ErrorKind::TryAgain, "it is there already"),
        Error::UnknownConfigurationKey { .. }
        | Error::NotImplemented { .. }
        | Error::NotSupported { .. } => (ErrorKind::Configuration, ""),
        _ if is_local => {
            let kind = causes(error).find_map(system_io_kind);
            // The system reported no error: the range lies past the end of the file, so the file is
            // not the one that was opened.
            (kind.unwrap_or(ErrorKind::Data), "")
        }
        _ if whole.contains(DAMAGED_ENTRY) => (ErrorKind::Data, ""),
        // A listing reports refused access as a generic error.
        _ if is_refused(whole) => (ErrorKind::Permission, ""),
        _ => (ErrorKind::Unreachable, ""),
    };
    let text = match (what, code_and_message(whole)) {
        ("", Some(answer)) => format!("the service failed: {answer}"),
        ("", None) if is_local => causes(error)
            .find_map(|cause| cause.downcast_ref::<std::io::Error>())
            .map_or_else(|| whole.to_owned(), ToString::to_string),
        ("", None) => without_bodies(whole),
        (what, Some(answer)) => format!("{what} ({answer})"),
        (what, None) => what.to_owned(),
    };
    Explained::new(kind, &text)
}

/// The messages of the error and its causes, joined by colons. Leaves out a cause's message that
/// the text already contains.
fn chain_text(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
    }
    text
}

/// The first line of `text`, cut off where an XML body begins.
fn without_bodies(text: &str) -> String {
    let end = text.find(['<', '\n']).unwrap_or(text.len());
    text[..end].trim().trim_end_matches(':').to_owned()
}

/// The first line of the first XML element called `name`.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    text.lines().next().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(body: &str) -> Error {
        Error::PermissionDenied {
            path: "a".into(),
            source: format!(
                "Error performing GET: Server returned non-2xx status code: 403 Forbidden: {body}"
            )
            .into(),
        }
    }

    #[test]
    fn codes_of_services_are_told_from_each_other() {
        for (code, message, expected) in [
            ("ExpiredToken", "The provided token has expired.", "expired"),
            (
                "RequestTimeTooSkewed",
                "The difference is too large.",
                "clock",
            ),
            ("InvalidAccessKeyId", "No such key.", "AWS_ACCESS_KEY_ID"),
            (
                "SignatureDoesNotMatch",
                "Check it.",
                "AWS_SECRET_ACCESS_KEY",
            ),
            (
                "AccessDenied",
                "Access Denied.",
                "access was refused (AccessDenied: Access Denied.)",
            ),
        ] {
            let body = format!(
                "<?xml?><Error><Code>{code}</Code><Message>{message}</Message><StringToSign>AWS4-SECRET</StringToSign></Error>"
            );
            let explained = explain(&denied(&body));
            assert_eq!(explained.kind, ErrorKind::Permission, "{code}");
            assert!(explained.text.contains(expected), "{}", explained.text);
            assert!(!explained.text.contains("AWS4"), "{}", explained.text);
        }
    }

    #[test]
    fn errors_without_a_code_have_a_kind() {
        let full = Error::Generic {
            store: "LocalFileSystem",
            source: std::io::Error::from(std::io::ErrorKind::StorageFull).into(),
        };
        assert_eq!(explain(&full).kind, ErrorKind::Io);
        let gone = Error::Generic {
            store: "S3",
            source: "error sending request: connection refused".into(),
        };
        let explained = explain(&gone);
        assert_eq!(explained.kind, ErrorKind::Unreachable);
        assert!(explained.text.contains("connection refused"));
    }
}
