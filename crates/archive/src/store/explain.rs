//! What an error of a store means: services answer with XML, from which a person needs the code and one sentence, and
//! nothing that has a secret in it.

use std::error::Error as StdError;

use object_store::Error;

use super::secrets::scrub;
use crate::error::{ErrorKind, of_io};

/// An error of a store, made plain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explained {
    /// What it calls for.
    pub(crate) kind: ErrorKind,
    /// What to say.
    pub(crate) text: String,
}

/// What an object that was replaced is called.
pub(crate) const REPLACED: &str = "it was replaced while it was read";
/// Statuses of those who are not let in, as errors quote them.
const REFUSED: [&str; 2] = [": 401 ", ": 403 "];
/// Paths of machines' metadata services.
const METADATA: [&str; 3] = [
    "/latest/api/token",
    "/metadata/identity",
    "/computeMetadata/",
];

/// Codes of the services, their kind, and what to say besides.
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
        // Of an upload that was completed, or given up, by a request whose answer is lost.
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

/// What `error` means.
pub(crate) fn explain(error: &Error) -> Explained {
    let whole = chain(error);
    of_code(&whole).unwrap_or_else(|| Explained {
        kind: plain_kind(error, &whole),
        text: scrub(&sentence(error, answer(&whole), &whole)),
    })
}

/// What the first error of a store, or of the system, among the causes of `error` means.
pub(crate) fn of_chain(error: &(dyn StdError + 'static)) -> Option<Explained> {
    let found = causes(error).find_map(|error| {
        if let Some(error) = error.downcast_ref::<Error>() {
            return Some(explain(error));
        }
        let kind = of_real_io(error)?;
        Some(Explained {
            kind,
            text: error.to_string(),
        })
    });
    found.or_else(|| of_text(&error.to_string()))
}

/// What a text means that quotes an error of a store: the reader of the Delta log keeps no more of it.
fn of_text(text: &str) -> Option<Explained> {
    let quoted = [
        "Error interacting with object store",
        "Generic S3 error",
        "Generic MicrosoftAzure error",
        "Generic GCS error",
    ];
    if !quoted.iter().any(|quoted| text.contains(quoted)) {
        return None;
    }
    let explained = of_code(text).unwrap_or_else(|| {
        let (kind, what) = if text.contains(REPLACED) {
            (ErrorKind::TryAgain, format!("{REPLACED}; run it again"))
        } else if text.contains("not found") {
            (ErrorKind::Data, without_bodies(text))
        } else if is_refused(text) {
            (ErrorKind::Permission, "access was refused".to_owned())
        } else {
            (
                ErrorKind::Unreachable,
                match answer(text) {
                    Some(answer) => format!("the service failed: {answer}"),
                    None => without_bodies(text),
                },
            )
        };
        Explained {
            kind,
            text: scrub(&what),
        }
    });
    Some(explained)
}

/// What a service's answer means, where its code is known.
fn of_code(text: &str) -> Option<Explained> {
    let (code, message) = (element(text, "Code"), element(text, "Message"));
    let known = CODES.iter().find(|(names, ..)| {
        names.iter().any(|name| {
            code == Some(*name)
                || message.is_some_and(|message| message.contains(name))
                // Some are in an element of their own.
                || (name.contains(' ') && text.contains(name))
        })
    });
    if let Some((_, kind, advice)) = known {
        let text = match answer(text) {
            Some(answer) => format!("{advice} ({answer})"),
            None => (*advice).to_owned(),
        };
        return Some(Explained {
            kind: *kind,
            text: scrub(&text),
        });
    }
    // Without credentials in the environment, the machine is asked for some.
    METADATA.iter().any(|path| text.contains(path)).then(|| Explained {
        kind: ErrorKind::Permission,
        text: "no credentials: neither AWS_ACCESS_KEY_ID, AZURE_STORAGE_ACCOUNT_KEY nor GOOGLE_APPLICATION_CREDENTIALS is set, \
               and this machine's metadata service gives none"
            .to_owned(),
    })
}

/// What a service answered: code and message.
fn answer(text: &str) -> Option<String> {
    let code = element(text, "Code")?;
    Some(match element(text, "Message") {
        Some(message) => format!("{code}: {}", message.trim()),
        None => code.to_owned(),
    })
}

/// Whether a text quotes the status of those who are not let in.
fn is_refused(text: &str) -> bool {
    REFUSED.iter().any(|status| text.contains(status))
}

fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), below)
}

/// What an error wraps; an error of input or output hides that from `source`.
fn below<'a>(error: &&'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    let error: &'a (dyn StdError + 'static) = *error;
    match error.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

/// The kind of an input or output error of the system; other errors are wrapped as such, and tell nothing.
fn of_real_io(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    let error = error.downcast_ref::<std::io::Error>()?;
    let wrapped = error.get_ref().is_some_and(|inner| {
        causes(inner as &(dyn StdError + 'static)).any(|cause| cause.is::<Error>())
    });
    let real = error.kind() != std::io::ErrorKind::Other || error.raw_os_error().is_some();
    (real && !wrapped).then(|| of_io(error))
}

/// The kind of an error of which nothing else is known than what it says.
fn plain_kind(error: &Error, whole: &str) -> ErrorKind {
    match error {
        // An object that a log or a listing named is gone.
        Error::NotFound { .. } => ErrorKind::Data,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::Permission,
        Error::Precondition { .. } | Error::AlreadyExists { .. } => ErrorKind::TryAgain,
        Error::UnknownConfigurationKey { .. } | Error::NotImplemented { .. } => {
            ErrorKind::Configuration
        }
        Error::Generic { store, .. } if *store == "LocalFileSystem" => causes(error)
            .find_map(of_real_io)
            // A range that the file does not have: it is not the file that was opened.
            .unwrap_or(ErrorKind::Data),
        // Listings wrap what they meet.
        _ if is_refused(whole) => ErrorKind::Permission,
        _ => ErrorKind::Unreachable,
    }
}

/// What happened, in a few words.
fn sentence(error: &Error, answer: Option<String>, whole: &str) -> String {
    let replaced = format!("{REPLACED}; run it again");
    let what = match error {
        Error::NotFound { .. } => "no such object",
        Error::PermissionDenied { .. } => "access was refused",
        Error::Unauthenticated { .. } => "the service does not know who asks",
        Error::Precondition { .. } => &replaced,
        Error::AlreadyExists { .. } => "it is there already",
        _ => "",
    };
    let local = matches!(error, Error::Generic { store, .. } if *store == "LocalFileSystem");
    match (what, answer) {
        ("", Some(answer)) => format!("the service failed: {answer}"),
        ("", None) if local => causes(error)
            .find_map(|cause| cause.downcast_ref::<std::io::Error>())
            .map_or_else(|| whole.to_owned(), ToString::to_string),
        ("", None) => without_bodies(whole),
        (what, Some(answer)) => format!("{what} ({answer})"),
        (what, None) => what.to_owned(),
    }
}

/// Everything that the causes say; each says what those below it say, or does not.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
    }
    text
}

/// The first line, without what looks like a document.
fn without_bodies(text: &str) -> String {
    let end = text.find(['<', '\n']).unwrap_or(text.len());
    text[..end].trim().trim_end_matches(':').to_owned()
}

/// The text of the first XML element of that name.
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
    fn errors_of_the_system_keep_their_kind() {
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
