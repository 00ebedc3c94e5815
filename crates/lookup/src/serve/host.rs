//! Checks the name by which a client has reached a server that asks for no token.
//!
//! A web page of another site may make its own name point to 127.0.0.1 (DNS rebinding). A browser then lets the page read
//! the answers of this server. But the requests still carry the page's name as their host, so the server refuses names
//! that it does not know.

use std::net::IpAddr;

/// Whether `host`, as in the header `Host`, is an address, `localhost`, or one of `names`.
pub(super) fn is_known(host: &str, names: &[String]) -> bool {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse::<IpAddr>().is_ok();
    }
    let name = without_port(host);
    // Another site cannot make an address, or `localhost`, its own.
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names
            .iter()
            .any(|known| without_port(known).eq_ignore_ascii_case(name))
}

/// A host's name without a port and the final dot.
fn without_port(host: &str) -> &str {
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_known() {
        let names = ["lookup.example.", "proxy.example:8443"].map(str::to_owned);
        let known = [
            "127.0.0.1:8080",
            "10.1.2.3",
            "[::1]:8080",
            "localhost",
            "LocalHost:80",
            "Lookup.Example.:443",
            "proxy.example",
            "proxy.example:80",
        ];
        let unknown = [
            "rebound.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[lookup.example]",
            "",
        ];
        assert!(known.iter().all(|host| is_known(host, &names)));
        assert!(!unknown.iter().any(|host| is_known(host, &names)));
    }
}
