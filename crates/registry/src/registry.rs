//! The distribution protocol: manifests and blobs of one repository.
//!
//! Source: OCI distribution specification 1.1.

use std::cell::RefCell;

use bytes::Bytes;
use http::StatusCode;
use kitbag_base::ByteSize;
use url::Url;

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
    pub(crate) media_type: Option<String>,
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
    pub fn new(
        web: &'a Web,
        reference: &OciReference,
        access: Access,
        credentials: Option<Credentials>,
    ) -> Self {
        let host = match &*reference.host {
            host if host == DOCKER_HUB.0 => DOCKER_HUB.1,
            host => host,
        };
        Self {
            web,
            host: host.to_owned(),
            repository: reference.repository.clone(),
            access,
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
        let accept = vec![("accept", MANIFEST_TYPES.to_owned())];
        let outgoing = Outgoing {
            method: "GET",
            url: &url,
            headers: accept,
            body: None,
            limit: MANIFEST_BYTES,
            follows: false,
        };
        let answer = self.send(outgoing)?.success(&self.host)?;
        let media_type = answer.header("content-type").map(str::to_owned);
        let declared = answer.header("docker-content-digest").and_then(|it| it.parse().ok());
        for expected in [digest, declared].into_iter().flatten() {
            check_digest(&answer, expected)?;
        }
        let Answer { url, body: bytes, digest, .. } = answer;
        Ok(Content { url, media_type, bytes, digest })
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
        let outgoing = Outgoing {
            method: "GET",
            url: &url,
            headers: Vec::new(),
            body: None,
            limit: size,
            follows: false,
        };
        let answer = self.send(outgoing)?.success(&self.host)?;
        if answer.body.len() as u64 != size {
            let problem =
                format!("has {} bytes, but its manifest declares {size}", answer.body.len());
            return Err(RegistryError::Size { url, problem });
        }
        check_digest(&answer, digest)?;
        Ok(answer.body)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}/v2/{}/{path}", self.access.scheme(), self.host, self.repository)
    }

    /// Sends a request, after authentication if the registry requires it. Credentials are sent to
    /// the registry only: a redirect is followed without them, and its target cannot ask for them.
    pub(crate) fn send(&self, outgoing: Outgoing<'_>) -> Result<Answer, RegistryError> {
        let with = |authorization: Option<String>| {
            let mut outgoing = outgoing.clone();
            outgoing.headers.extend(authorization.map(|value| ("authorization", value)));
            self.web.send(outgoing, &self.host, self.access)
        };
        let known = self.authorization.borrow().clone();
        let mut answer = with(known)?;
        if answer.status == StatusCode::UNAUTHORIZED
            && let Some(value) = token::authorize(self, &answer, self.credentials.as_ref())?
        {
            answer = with(Some(value.clone()))?;
            if answer.status != StatusCode::UNAUTHORIZED {
                *self.authorization.borrow_mut() = Some(value);
            }
        }
        if !answer.status.is_redirection() || outgoing.method != "GET" {
            return Ok(answer);
        }
        let invalid =
            || RegistryError::invalid(outgoing.url, "it redirects to something that is not a URL");
        let location = answer.header("location").ok_or_else(invalid)?;
        let base = Url::parse(outgoing.url).map_err(|_| invalid())?;
        let target: String = base.join(location).map_err(|_| invalid())?.into();
        let outgoing = Outgoing { url: &target, follows: true, ..outgoing };
        self.web.send(outgoing, &self.host, self.access)
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
