//! The host names by which clients may call the server.

use std::net::Ipv6Addr;

pub(crate) struct AllowedHosts(Vec<Authority>);

/// A host in the form of a request's `Host` header.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    /// Lower case. An IPv6 address is in brackets.
    name: String,
    port: Option<u16>,
}

impl AllowedHosts {
    /// Takes names with or without a port. Names that cannot be the host of a request are ignored.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let read = |name: String| match name.parse::<Ipv6Addr>() {
            Ok(_) => Authority::read(&format!("[{name}]")),
            Err(_) => Authority::read(&name),
        };
        Self(names.into_iter().filter_map(read).collect())
    }

    /// Returns whether requests for this host are allowed: the whole name must match, and the port
    /// if the allowed name has one.
    pub(crate) fn allows(&self, host: &[u8]) -> bool {
        let host = str::from_utf8(host).ok().and_then(Authority::read);
        host.is_some_and(|host| {
            let is_port = |port: Option<u16>| port.is_none() || port == host.port;
            self.0.iter().any(|allowed| allowed.name == host.name && is_port(allowed.port))
        })
    }
}

impl Authority {
    /// Parses `NAME` or `NAME:PORT`, also with an IPv6 address in brackets.
    fn read(text: &str) -> Option<Self> {
        let end = match text.starts_with('[') {
            true => text.find(']')? + 1,
            false => text.find(':').unwrap_or(text.len()),
        };
        let (name, rest) = text.split_at(end);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_name = match name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !name.is_empty() && name.chars().all(fits),
        };
        let port = match rest.strip_prefix(':') {
            // `parse` would accept a sign.
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            Some(_) => return None,
            None if rest.is_empty() => None,
            None => return None,
        };
        is_name.then(|| Self { name: name.to_ascii_lowercase(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_compared_as_a_whole() {
        let names =
            ["localhost", "127.0.0.1", "::1", "Tools.Example", "a.example:8620", "[::2]:80"];
        let allowed = AllowedHosts::new(names.map(str::to_owned));
        for host in [
            "localhost",
            "LOCALHOST:1",
            "localhost:65535",
            "127.0.0.1:8620",
            "[::1]",
            "[::1]:8620",
            "tools.example",
            "a.example:8620",
            "[::2]:80",
        ] {
            assert!(allowed.allows(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":8620",
            "localhost.",
            "localhost.evil.example",
            "evil-localhost",
            "localhost:8620.evil.example",
            "localhost:",
            "localhost:+1",
            "localhost:65536",
            "localhost:1:2",
            "localhost:8620/",
            "localhost/",
            " localhost",
            "localhost,evil.example",
            "evil@localhost",
            "[localhost]",
            "[127.0.0.1]",
            "[[::1]]",
            "::1",
            "[::1",
            "[::1]8620",
            "[::1]:",
            "[::1%25lo]",
            "127.0.0.1.nip.io",
            "127.0.0.10",
            "0127.0.0.1",
            "tools.example.evil.example",
            "xtools.example",
            "a.example",
            "a.example:80",
            "a.example:08621",
            "[::2]",
            "[::2]:8",
        ] {
            assert!(!allowed.allows(host.as_bytes()), "{host}");
        }
        assert!(!allowed.allows(b"localhost\xff"));
        assert!(!AllowedHosts::new([String::new(), "a b".to_owned()]).allows(b""));
    }
}
