//! Sources: where documents are from.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, StringArray};
use arrow::datatypes::DataType;

use super::columns::Says;

/// The host in a URL, without user, port, and the dot that may end it; in lower case.
pub(super) fn host(url: &str) -> Option<Cow<'_, str>> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let end = match host.find(']') {
        // An IPv6 address has colons.
        Some(end) => end + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let host = &host[..end];
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then(
        || match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => host.to_ascii_lowercase().into(),
            false => host.into(),
        },
    )
}

/// The source of the pages at a URL: its host, without `www.`; `None` if it has no host.
#[must_use]
pub fn source_of_url(url: &str) -> Option<Cow<'_, str>> {
    Some(match host(url)? {
        Cow::Borrowed(host) => host.strip_prefix("www.").unwrap_or(host).into(),
        Cow::Owned(host) => match host.strip_prefix("www.") {
            Some(rest) => rest.to_owned().into(),
            None => host.into(),
        },
    })
}

/// The source that a host or a URL says; `None` if it has no host.
#[must_use]
pub fn source_of_site(site: &str) -> Option<Cow<'_, str>> {
    match site.contains("://") {
        true => source_of_url(site),
        false => Some(site.strip_prefix("www.").unwrap_or(site).into()),
    }
}

/// The sources of documents by the values of a column; null where it says none.
pub(super) fn sources(values: &ArrayRef, says: Says) -> StringArray {
    let texts = match values.data_type() {
        DataType::Binary => lossy_texts(values.as_binary::<i32>().iter()),
        DataType::BinaryView => lossy_texts(values.as_binary_view().iter()),
        // A column that has no text says nothing.
        _ => arrow::compute::cast(values, &DataType::Utf8)
            .unwrap_or_else(|_| arrow::array::new_null_array(&DataType::Utf8, values.len())),
    };
    let source = |value| match says {
        Says::Sources if !str::contains(value, "://") => Some(Cow::Borrowed(value)),
        _ => source_of_url(value),
    };
    let texts = texts.as_string::<i32>().iter();
    let found = texts.map(|text| text.and_then(source).filter(|source| !source.is_empty()));
    found.collect()
}

/// Texts of bytes. Those that are no UTF-8 become replacement characters.
pub(super) fn lossy_texts<'a>(texts: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let texts = texts.map(|text| text.map(String::from_utf8_lossy));
    Arc::new(texts.collect::<StringArray>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_their_hosts() {
        for (url, expected) in [
            ("https://www.Example.com/a/b?c", Some("example.com")),
            ("http://user@h.example.:8080/", Some("h.example")),
            ("https://[::1]:80/", Some("[::1]")),
            ("https://WWW.example", Some("example")),
            ("a/b", None),
            ("file:///a", None),
            ("", None),
        ] {
            assert_eq!(source_of_url(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn columns_say_sources() {
        let values: ArrayRef = Arc::new(StringArray::from(vec![
            Some("http://a.example/1"),
            Some("shop"),
            Some(""),
            None,
        ]));
        let found = |says| {
            sources(&values, says)
                .iter()
                .map(|s| s.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let a = || Some("a.example".to_owned());
        assert_eq!(found(Says::Sources), [a(), Some("shop".into()), None, None]);
        assert_eq!(found(Says::Urls), [a(), None, None, None]);
        assert_eq!(found(Says::Ids), [a(), None, None, None]);
        let numbers: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![7]));
        assert_eq!(sources(&numbers, Says::Sources).value(0), "7");
    }
}
