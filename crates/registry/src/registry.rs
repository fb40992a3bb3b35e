//! The distribution protocol: manifests and blobs of one repository.
//!
//! Source: OCI distribution specification 1.1.

use std::cell::RefCell;

use bytes::Bytes;
use http::StatusCode;
use kitbag_base::ByteSize;

use crate::credentials::Credentials;
use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::reference::OciReference;
use crate::token;
use crate::web::{Answer, Outgoing, Web};

/// The largest manifest. Source: OCI distribution specification, "Pushing manifests".
pub(crate) const MANIFEST_BYTES: u64 = 4 << 20;

/// The largest answer that is not content.
pub(crate) const ANSWER_BYTES: u64 = 256 << 10;

/// Manifests and indexes that are accepted.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// The registry that Docker's short name denotes.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// Access to a host that the user config allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// True if the host may be on this machine or in a private network.
    pub is_private: bool,
    /// True if connections are not encrypted.
    pub is_plain: bool,
}

/// One repository of a registry.
#[derive(Debug)]
pub struct Registry<'a> {
    pub(crate) web: &'a Web,
    /// The host that requests are sent to.
    pub(crate) host: String,
    pub(crate) repository: String,
    pub(crate) access: Access,
    credentials: Option<Credentials>,
    /// The value of `Authorization` that the registry accepted last.
    authorization: RefCell<Option<String>>,
}

/// Content with its digest.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) url: String,
    /// The value of the header field.
    media_type: Option<String>,
    pub(crate) bytes: Bytes,
    pub(crate) digest: Sha256Digest,
}

impl Access {
    pub(crate) fn scheme(self) -> &'static str {
        if self.is_plain { "http" } else { "https" }
    }

    /// Returns the access to another server of the same operator.
    pub(crate) fn encrypted(self) -> Self {
        Self { is_plain: false, ..self }
    }
}

impl<'a> Registry<'a> {
    /// Returns a repository. Nothing is sent.
    pub fn new(web: &'a Web, reference: &OciReference, credentials: Option<Credentials>) -> Self {
        let host = match &*reference.host {
            host if host == DOCKER_HUB.0 => DOCKER_HUB.1,
            host => host,
        };
        Self {
            web,
            host: host.to_owned(),
            repository: reference.repository.clone(),
            access: web.access(&reference.name()),
            credentials,
            authorization: RefCell::default(),
        }
    }

    /// Reads a manifest by tag or digest.
    pub(crate) fn manifest(
        &self,
        tag: Option<&str>,
        digest: Option<Sha256Digest>,
    ) -> Result<Content, RegistryError> {
        let text = digest.map(|digest| digest.to_string());
        let reference = text.as_deref().or(tag).unwrap_or("latest");
        let url = self.url(&format!("manifests/{reference}"));
        let answer = self.get(&url, Some(MANIFEST_TYPES), MANIFEST_BYTES)?.success(&self.host)?;
        let declared = answer.header("docker-content-digest").and_then(|it| it.parse().ok());
        for expected in [digest, declared].into_iter().flatten() {
            check_digest(&answer, expected)?;
        }
        Ok(answer.into())
    }

    /// Reads a blob of exactly this size and digest.
    pub(crate) fn blob(
        &self,
        digest: Sha256Digest,
        size: u64,
        limit: ByteSize,
    ) -> Result<Bytes, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"));
        if size > limit.as_u64() {
            let size = ByteSize::bytes(size);
            let problem = format!("has {size}, but may have at most {limit}");
            return Err(RegistryError::Size { url, problem });
        }
        let answer = self.get(&url, None, size)?.success(&self.host)?;
        if answer.body.len() as u64 != size {
            let problem =
                format!("has {} bytes, but its manifest declares {size}", answer.body.len());
            return Err(RegistryError::Size { url, problem });
        }
        check_digest(&answer, digest)?;
        Ok(answer.body)
    }

    /// Reads something, and follows redirects. Credentials are sent to the registry only: a redirect
    /// is followed without them, and its target cannot ask for them.
    pub(crate) fn get(
        &self,
        url: &str,
        accept: Option<&str>,
        limit: u64,
    ) -> Result<Answer, RegistryError> {
        let headers = Vec::from_iter(accept.map(|types| ("accept", types.to_owned())));
        let outgoing = Outgoing { method: "GET", url, headers, body: None, limit };
        let answer = self.send(outgoing.clone())?;
        self.web.follow(answer, &outgoing)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}/v2/{}/{path}", self.access.scheme(), self.host, self.repository)
    }

    /// Sends a request, after authentication if the registry requires it. The answer may be a
    /// redirect.
    pub(crate) fn send(&self, outgoing: Outgoing<'_>) -> Result<Answer, RegistryError> {
        let with = |authorization: Option<String>| {
            let mut outgoing = outgoing.clone();
            outgoing.headers.extend(authorization.map(|value| ("authorization", value)));
            self.web.send(outgoing, &self.host, self.access)
        };
        let known = self.authorization.borrow().clone();
        let answer = with(known)?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let credentials = self.credentials.as_ref();
        let Some(value) = token::authorize(self, outgoing.method, &answer, credentials)? else {
            return Ok(answer);
        };
        let answer = with(Some(value.clone()))?;
        if answer.status != StatusCode::UNAUTHORIZED {
            *self.authorization.borrow_mut() = Some(value);
        }
        Ok(answer)
    }
}

impl Content {
    /// Returns the media type of the header field in lower case, without parameters.
    pub(crate) fn media_type(&self) -> Option<String> {
        let name = self.media_type.as_ref()?.split(';').next()?;
        Some(name.trim().to_ascii_lowercase())
    }
}

impl From<Answer> for Content {
    fn from(answer: Answer) -> Self {
        let media_type = answer.header("content-type").map(str::to_owned);
        let Answer { url, body: bytes, digest, .. } = answer;
        Self { url, media_type, bytes, digest }
    }
}

pub(crate) fn check_digest(answer: &Answer, expected: Sha256Digest) -> Result<(), RegistryError> {
    match answer.digest == expected {
        true => Ok(()),
        false => {
            let (url, found) = (answer.url.clone(), answer.digest);
            Err(RegistryError::Digest { url, expected, found })
        }
    }
}
