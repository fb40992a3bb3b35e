//! The names by which clients may call the server.

use std::net::Ipv6Addr;

pub(crate) struct AllowedHosts(Vec<Authority>);

/// A host, as the field `Host` of a request names it.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    /// In lower case; an IPv6 address in brackets.
    name: String,
    port: Option<u16>,
}

impl AllowedHosts {
    /// Takes names with or without a port. One that cannot be the host of a request allows none.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let read = |name: String| match name.parse::<Ipv6Addr>() {
            Ok(_) => Authority::read(&format!("[{name}]")),
            Err(_) => Authority::read(&name),
        };
        Self(names.into_iter().filter_map(read).collect())
    }

    /// Whether a request for this host is allowed: its whole name is one of these, and its port,
    /// where that name has one.
    pub(crate) fn allows(&self, host: &[u8]) -> bool {
        let host = str::from_utf8(host).ok().and_then(Authority::read);
        host.is_some_and(|host| {
            let is_port = |port: Option<u16>| port.is_none() || port == host.port;
            self.0.iter().any(|allowed| allowed.name == host.name && is_port(allowed.port))
        })
    }
}

impl Authority {
    /// Reads `NAME`, `NAME:PORT` and the same with an IPv6 address in brackets, and nothing else.
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
            // `parse` takes a sign.
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
