//! Removes secrets from messages: errors of libraries may quote requests.

use std::sync::LazyLock;

/// An environment variable whose name contains one of these has a secret value.
const SECRET_NAMES: [&str; 9] = [
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "ACCESS_KEY",
    "ACCOUNT_KEY",
    "STORAGE_KEY",
    "SAS",
    "CREDENTIAL",
];
/// Query parameters of URLs whose values are secrets.
const SECRET_PARAMETERS: [&str; 5] = [
    "sig=",
    "X-Amz-Signature=",
    "X-Amz-Credential=",
    "X-Amz-Security-Token=",
    "X-Goog-Signature=",
];
/// Replaces each secret.
const HIDDEN: &str = "***";
/// Minimum bytes of a secret: `scrub` leaves shorter values, which may be ordinary words.
const MIN_BYTES: usize = 8;

/// The secrets in this process's environment, the longest first: a shorter one may be part of a longer one.
static SECRETS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut secrets: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            let name = name.to_ascii_uppercase();
            let is_path = name.ends_with("_FILE") || name.ends_with("_PATH");
            SECRET_NAMES.iter().any(|part| name.contains(part)) && !is_path
        })
        .flat_map(|(_, value)| secret_forms(value))
        .filter(|secret| secret.len() >= MIN_BYTES)
        .collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
});

/// The forms in which a secret `value` may appear in a message: as it is, percent-encoded, and its parts (the fields of
/// a JSON object, the signature of a query).
fn secret_forms(value: String) -> Vec<String> {
    let mut parts = Vec::new();
    if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&value) {
        let texts = fields.values().filter_map(|field| field.as_str());
        parts.extend(texts.flat_map(|text| text.lines().map(str::to_owned)));
    }
    for parameter in value.trim_start_matches('?').split('&') {
        parts.extend(parameter.strip_prefix("sig=").map(str::to_owned));
    }
    let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    // The path of a file with secrets is no secret.
    if !std::path::Path::new(&value).is_file() {
        parts.extend([encoded, value]);
    }
    parts
}

/// Replaces secrets in a message by `***`: values of secret environment variables, signatures in URLs, and the XML
/// errors of services, which may quote the request.
pub fn scrub(text: &str) -> String {
    let mut text = without_xml_errors(text);
    for secret in SECRETS.iter() {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), HIDDEN);
        }
    }
    for parameter in SECRET_PARAMETERS {
        text = without_values(&text, parameter);
    }
    text
}

/// Replaces each XML element `<Error>` by `***`.
fn without_xml_errors(text: &str) -> String {
    const END: &str = "</Error>";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<Error>") {
        let Some(length) = rest[start..].find(END) else {
            break;
        };
        clean.push_str(&rest[..start]);
        clean.push_str(HIDDEN);
        rest = &rest[start + length + END.len()..];
    }
    // The last element may be cut off.
    match rest.find("<Error>") {
        Some(start) => clean + &rest[..start] + HIDDEN,
        None => clean + rest,
    }
}

/// Replaces the values of a query parameter by `***`; `parameter` is its name with the `=`.
fn without_values(text: &str, parameter: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(parameter) {
        let (before, from) = rest.split_at(at + parameter.len());
        clean.push_str(before);
        let end = from.find(|c: char| c == '&' || c.is_whitespace() || "\"'<>)".contains(c));
        let end = end.unwrap_or(from.len());
        if end > 0 {
            clean.push_str(HIDDEN);
        }
        rest = &from[end..];
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_parameters_and_xml_errors_are_hidden() {
        assert_eq!(
            scrub("GET http://a/b?sv=1&sig=ab%2Bc&se=2 failed (X-Amz-Signature=00ff)"),
            "GET http://a/b?sv=1&sig=***&se=2 failed (X-Amz-Signature=***)"
        );
        assert_eq!(scrub("nothing to hide"), "nothing to hide");
        assert_eq!(
            scrub("400: <?xml?><Error><Token-0>abc</Token-0></Error>, then <Error><Token-0>ab"),
            "400: <?xml?>***, then ***"
        );
    }

    #[test]
    fn secrets_inside_values_are_found() {
        let json = r#"{"type":"service_account","private_key":"-----BEGIN\nMIIEvQIBADAN\n"}"#;
        assert!(secret_forms(json.into()).contains(&"MIIEvQIBADAN".to_owned()));
        assert!(secret_forms("?sv=1&sig=abc/def=".into()).contains(&"abc/def=".to_owned()));
        assert!(secret_forms("/abc/def+ghi=".into()).contains(&"/abc/def+ghi=".to_owned()));
        assert!(secret_forms("abc/def+ghi=".into()).contains(&"abc%2Fdef%2Bghi%3D".to_owned()));
    }
}
