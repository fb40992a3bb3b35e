//! References to tools that are not files.

use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;

use crate::digest::Sha256Digest;
use crate::package::PackageName;

/// The longest reference.
const MOST_BYTES: usize = 1024;

/// The longest tag.
const TAG_BYTES: usize = 128;

/// A reference to a tool that is not a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An artifact in a registry: `oci://HOST/ORG/TOOL:TAG`.
    Oci(OciReference),
    /// A component at a URL: `https://HOST/tool.wasm#sha256=…`.
    Url(UrlReference),
    /// A package: `namespace:name@version`.
    Package(PackageName),
}

/// An artifact in a registry: `oci://HOST/ORG/TOOL:TAG`, `…@sha256:…`, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciReference {
    /// The host, with its port if it has one.
    pub host: String,
    /// The path of the repository.
    pub repository: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest of the manifest.
    pub digest: Option<Sha256Digest>,
}

/// A component at a URL, with its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlReference {
    /// The URL, without the fragment.
    pub url: String,
    /// The digest of the component.
    pub digest: Sha256Digest,
}

/// Why a string is not a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The reference is too long.
    #[error("a reference must have at most {MOST_BYTES} bytes")]
    Long,
    /// The reference has no repository.
    #[error("`{}` must be `oci://HOST/REPOSITORY:TAG`", shown(.0))]
    Form(String),
    /// The host is not valid.
    #[error("`{}` is not the host of a registry", shown(.0))]
    Host(String),
    /// The repository is not valid.
    #[error(
        "`{}` is not a repository: use lower-case letters and digits, with `.`, `_` and `-` between \
         them, in parts that are separated by `/`",
        shown(.0)
    )]
    Repository(String),
    /// The tag is not valid.
    #[error(
        "`{}` is not a tag: use at most {TAG_BYTES} letters, digits, `_`, `.` and `-`{}",
        shown(.0),
        if .0.contains('+') { "; registries have `_` instead of the `+` of a version" } else { "" }
    )]
    Tag(String),
    /// The digest is not valid.
    #[error("`{}`: {source}", shown(text))]
    Digest {
        /// The text.
        text: String,
        /// The problem.
        source: crate::digest::Sha256DigestError,
    },
    /// The reference has neither a tag nor a digest.
    #[error("`{}` names no version: add a tag, such as `{}:1.0.0`, or a digest", shown(.0), shown(.0))]
    NoVersion(String),
    /// The URL has no digest.
    #[error(
        "`{}` has no digest: add `#sha256=` and the digest that its author published, which \
         `sha256sum` also prints for a file that you reviewed",
        shown(.0)
    )]
    NoDigest(String),
    /// The URL has another scheme.
    #[error("`{}` is not an `https` URL: kitbag downloads only over TLS", shown(.0))]
    Scheme(String),
    /// The package's name or version is not valid.
    #[error(
        "`{}` is not a package: write `namespace:name@version`, with a version such as `1.2.0`",
        shown(.0)
    )]
    Package(String),
}

impl Reference {
    /// Parses a reference. `None`: the text has another form, such as the path of a file.
    ///
    /// # Errors
    ///
    /// [`ReferenceError`] if the text has the form of a reference, but is not a valid one.
    pub fn parse(text: &str) -> Option<Result<Self, ReferenceError>> {
        if text.starts_with("oci://") {
            return Some(text.parse().map(Self::Oci));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return match scheme.to_ascii_lowercase().as_str() {
                "https" => Some(text.parse().map(Self::Url)),
                "http" => Some(Err(ReferenceError::Scheme(text.to_owned()))),
                _ => None,
            };
        }
        PackageName::parse(text).map(|package| package.map(Self::Package))
    }

    /// Returns the last part of the name, from which a tool is named if it has no other name.
    pub fn file_stem(&self) -> &str {
        match self {
            Self::Oci(reference) => reference.file_stem(),
            Self::Url(reference) => {
                let path = reference.url.split('?').next().unwrap_or_default();
                let file = path.rsplit('/').next().unwrap_or_default();
                file.strip_suffix(".wasm").unwrap_or(file)
            }
            Self::Package(package) => &package.name,
        }
    }
}

impl OciReference {
    /// Returns the name that the patterns of `[registries]` match: host and repository.
    pub fn name(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }

    /// Returns the last part of the repository.
    pub fn file_stem(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the reference with another digest.
    #[must_use]
    pub fn pinned(&self, digest: Sha256Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }
}

impl UrlReference {
    /// Returns the name that the patterns of `[registries]` match: host and path.
    pub fn name(&self) -> String {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('?').next().unwrap_or_default().to_owned()
    }

    /// Returns the host, with its port if it has one.
    pub fn host(&self) -> String {
        self.name().split('/').next().unwrap_or_default().to_owned()
    }
}

impl FromStr for OciReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MOST_BYTES {
            return Err(ReferenceError::Long);
        }
        let form = || ReferenceError::Form(text.to_owned());
        let rest = text.strip_prefix("oci://").ok_or_else(form)?;
        let (host, rest) = rest.split_once('/').ok_or_else(form)?;
        let (rest, digest) = match rest.split_once('@') {
            None => (rest, None),
            Some((rest, digest)) => {
                let failed = |source| ReferenceError::Digest { text: digest.to_owned(), source };
                (rest, Some(digest.parse().map_err(failed)?))
            }
        };
        let (repository, tag) = match rest.split_once(':') {
            None => (rest, None),
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
        };
        let is_host = |byte: u8| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
        };
        if host.is_empty() || !host.bytes().all(is_host) {
            return Err(ReferenceError::Host(host.to_owned()));
        }
        if !repository.split('/').all(is_repository_part) {
            return Err(ReferenceError::Repository(repository.to_owned()));
        }
        if let Some(tag) = tag.as_ref().filter(|tag| !is_tag(tag)) {
            return Err(ReferenceError::Tag(tag.clone()));
        }
        if tag.is_none() && digest.is_none() {
            return Err(ReferenceError::NoVersion(text.to_owned()));
        }
        Ok(Self { host: host.to_owned(), repository: repository.to_owned(), tag, digest })
    }
}

impl FromStr for UrlReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MOST_BYTES {
            return Err(ReferenceError::Long);
        }
        let (url, fragment) = text.split_once('#').unwrap_or((text, ""));
        let digest = fragment
            .strip_prefix("sha256=")
            .ok_or_else(|| ReferenceError::NoDigest(text.to_owned()))?;
        let failed = |source| ReferenceError::Digest { text: digest.to_owned(), source };
        Ok(Self { url: url.to_owned(), digest: Sha256Digest::from_hex(digest).map_err(failed)? })
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

impl fmt::Display for UrlReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#sha256={}", self.url, self.digest.hex())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oci(reference) => reference.fmt(f),
            Self::Url(reference) => reference.fmt(f),
            Self::Package(package) => package.fmt(f),
        }
    }
}

/// Source: OCI distribution specification 1.1, "Pulling manifests".
fn is_repository_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    part.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
        && part.bytes().next().is_some_and(is_plain)
        && part.bytes().last().is_some_and(is_plain)
        && !part.contains("..")
}

pub(crate) fn is_tag(tag: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=TAG_BYTES).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_plain)
        && tag.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match Reference::parse(text) {
            None => "not a reference".to_owned(),
            Some(Err(error)) => error.to_string(),
            Some(Ok(reference)) => format!("{reference} ({})", reference.file_stem()),
        }
    }

    #[test]
    fn references_are_parsed_back() {
        let hex = "ab".repeat(32);
        let texts = [
            "oci://ghcr.io/org/tool:1.0.0 (tool)".to_owned(),
            format!("oci://localhost:5000/a/b-c@sha256:{hex} (b-c)"),
            format!("oci://[::1]:5000/a:v1@sha256:{hex} (a)"),
            format!("https://example.com/dir/tool.wasm#sha256={hex} (tool)"),
            "wasi:http@0.2.0 (http)".to_owned(),
        ];
        for text in texts {
            assert_eq!(parsed(text.split(' ').next().unwrap()), text);
        }
    }

    #[test]
    fn paths_are_not_references() {
        for text in ["tool.wasm", "./wasi:http", "a/b:c", "C:\\tool.wasm", "git://a/b", "a:b"] {
            assert_eq!(parsed(text), "not a reference", "{text}");
        }
    }

    #[test]
    fn invalid_references_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = parsed(text);
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("oci://ghcr.io", "must be `oci://HOST/REPOSITORY:TAG`");
        check("oci://ghcr.io/org/tool", "names no version");
        check("oci://user@ghcr.io/org/tool:1", "is not the host of a registry");
        check("oci://GHCR.io/org/tool:1", "is not the host of a registry");
        check("oci:///org/tool:1", "is not the host of a registry");
        check("oci://ghcr.io/../tool:1", "is not a repository");
        check("oci://ghcr.io/org//tool:1", "is not a repository");
        check("oci://ghcr.io/org/to%2Fol:1", "is not a repository");
        check("oci://ghcr.io/org/tool:a/b", "is not a tag");
        check("oci://ghcr.io/org/tool:1.0.0+build", "`_` instead of the `+` of a version");
        check("oci://ghcr.io/org/tool@sha512:ab", "a digest must be");
        check("http://example.com/tool.wasm", "is not an `https` URL");
        check("https://example.com/tool.wasm", "has no digest");
        check("https://example.com/tool.wasm#sha256=ab", "a digest must be");
        check("wasi:http@latest", "is not a package");
    }
}
