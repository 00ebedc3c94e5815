//! Sources: where documents are from.

use std::borrow::Cow;
use std::net::Ipv4Addr;

/// The host in a URL, without user, port, and the dot that may end it; in lower case.
pub fn host(url: &str) -> Option<Cow<'_, str>> {
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
    (!host.is_empty()).then(|| {
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            host.to_ascii_lowercase().into()
        } else {
            host.into()
        }
    })
}

/// The source of the pages at a URL: its host, without `www.`; `None` if it has no host.
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
pub fn source_of_site(site: &str) -> Option<Cow<'_, str>> {
    if site.contains("://") {
        source_of_url(site)
    } else {
        Some(site.strip_prefix("www.").unwrap_or(site).into())
    }
}

/// The source that a value says: the host of a URL, or else the value itself; `None` if it is empty, or a URL without a host.
pub fn source_said(value: &str) -> Option<Cow<'_, str>> {
    if value.contains("://") {
        source_of_url(value)
    } else {
        Some(value.into()).filter(|source: &Cow<'_, str>| !source.is_empty())
    }
}

/// The registrable domain of a host: one label more than the public suffix that it ends in. The host itself, if it is no more than
/// a public suffix, an address, or the name of something else.
pub fn domain(host: &str) -> &str {
    let is_address = host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok();
    let domain = psl::domain_str(host).filter(|_| !is_address);
    domain.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url() {
        for (url, expected) in [
            ("https://a.example/b:c@d", Some("a.example")),
            ("http://u:p@a.example:80?x", Some("a.example")),
            ("http://[::1]:8080/", Some("[::1]")),
            ("http://A.Example.:80/X", Some("a.example")),
            ("http:///x", None),
            ("urn:uuid:1", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }

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
    fn domains_of_hosts() {
        for (host, expected) in [
            ("a.b.example.co.uk", "example.co.uk"),
            ("example.co.uk", "example.co.uk"),
            ("co.uk", "co.uk"),
            ("blog.github.io", "blog.github.io"),
            ("x.blog.github.io", "blog.github.io"),
            ("shop.example", "shop.example"),
            ("deep.shop.example", "shop.example"),
            ("192.168.1.1", "192.168.1.1"),
            ("[::1]", "[::1]"),
            ("manuals", "manuals"),
            ("", ""),
        ] {
            assert_eq!(domain(host), expected, "{host}");
        }
    }
}
