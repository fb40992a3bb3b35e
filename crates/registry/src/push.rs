//! Pushing artifacts and signatures.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use oci_spec::image::ImageManifest;
use serde_json::{Value, json};
use url::Url;

use crate::artifact::TITLE;
use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::registry::{ANSWER_BYTES, Registry};
use crate::web::{Answer, Outgoing};

/// The size from which a blob is uploaded in several requests, and the size of one.
pub(crate) const CHUNK_BYTES: usize = 16 << 20;

/// The media type of manifests.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of indexes.
pub(crate) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The media type of an empty configuration.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";

/// An artifact to push.
#[derive(Clone, Debug, Default)]
pub struct NewArtifact {
    /// The media type and the JSON of the configuration. `None`: it is empty.
    pub config: Option<(String, Value)>,
    /// The type, if it is not that of the configuration.
    pub artifact_type: Option<String>,
    /// The layers.
    pub layers: Vec<NewLayer>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// The size and the digest of the manifest that the artifact refers to.
    pub subject: Option<(u64, Sha256Digest)>,
}

/// A layer to push.
#[derive(Clone, Debug)]
pub struct NewLayer {
    /// The media type.
    pub media_type: String,
    /// The name of the file.
    pub title: Option<String>,
    /// The content.
    pub bytes: Bytes,
}

impl NewArtifact {
    /// Returns the manifest. The same artifact always has the same manifest.
    pub(crate) fn manifest(&self) -> Result<Bytes, RegistryError> {
        let (media_type, config) = self.config();
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor(&media_type, &config, None),
            "layers": self.layers.iter().map(|layer| {
                descriptor(&layer.media_type, &layer.bytes, layer.title.as_deref())
            }).collect::<Vec<_>>(),
        });
        if let Some(artifact_type) = &self.artifact_type {
            manifest["artifactType"] = json!(artifact_type);
        }
        if let Some((size, digest)) = &self.subject {
            manifest["subject"] =
                json!({ "mediaType": MANIFEST_TYPE, "digest": digest.to_string(), "size": size });
        }
        if !self.annotations.is_empty() {
            manifest["annotations"] = json!(self.annotations);
        }
        let bytes = Bytes::from(manifest.to_string());
        // The manifest must be one that `pull` reads.
        ImageManifest::from_reader(&*bytes)
            .map_err(|error| RegistryError::invalid("the manifest", error))?;
        Ok(bytes)
    }

    fn config(&self) -> (String, Bytes) {
        match &self.config {
            Some((media_type, config)) => (media_type.clone(), config.to_string().into()),
            None => (EMPTY_TYPE.to_owned(), Bytes::from_static(b"{}")),
        }
    }
}

impl Registry<'_> {
    /// Pushes an artifact. Returns the size and the digest of its manifest.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if the registry does not accept a part.
    pub fn push(
        &self,
        tag: Option<&str>,
        artifact: &NewArtifact,
    ) -> Result<(u64, Sha256Digest), RegistryError> {
        self.upload(&artifact.config().1)?;
        for layer in &artifact.layers {
            self.upload(&layer.bytes)?;
        }
        let manifest = artifact.manifest()?;
        let digest = Sha256Digest::of(&manifest);
        let size = manifest.len() as u64;
        let name = tag.map_or_else(|| digest.to_string(), str::to_owned);
        let answer = self.put_manifest(&name, MANIFEST_TYPE, manifest)?;
        if let Some((_, subject)) = artifact.subject
            && answer.header("oci-subject").is_none()
        {
            self.add_referrer(subject, artifact, (size, digest))?;
        }
        Ok((size, digest))
    }

    /// Adds an artifact to the index with the tag of its subject, which replaces the API for
    /// referrers in older registries.
    ///
    /// Source: OCI distribution specification 1.1, "Referrers Tag Schema".
    fn add_referrer(
        &self,
        subject: Sha256Digest,
        artifact: &NewArtifact,
        (size, digest): (u64, Sha256Digest),
    ) -> Result<(), RegistryError> {
        let mut manifests = Vec::new();
        match self.manifest(Some(&referrers_tag(subject)), None) {
            Ok(content) => {
                let index: Value = serde_json::from_slice(&content.bytes)
                    .map_err(|error| RegistryError::invalid(&*content.url, error))?;
                manifests.extend(index["manifests"].as_array().into_iter().flatten().cloned());
            }
            Err(RegistryError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let own = json!(digest.to_string());
        if !manifests.iter().any(|known| known["digest"] == own) {
            manifests.push(json!({
                "mediaType": MANIFEST_TYPE,
                "digest": own,
                "size": size,
                "artifactType": artifact.artifact_type,
                "annotations": artifact.annotations,
            }));
        }
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests });
        let index = Bytes::from(index.to_string());
        self.put_manifest(&referrers_tag(subject), INDEX_TYPE, index).map(drop)
    }

    fn put_manifest(
        &self,
        name: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<Answer, RegistryError> {
        let url = self.url(&format!("manifests/{name}"));
        let headers = vec![("content-type", media_type.to_owned())];
        self.change("PUT", &url, headers, bytes)?.success(&self.host)
    }

    /// Uploads a blob unless the registry has it.
    fn upload(&self, bytes: &Bytes) -> Result<(), RegistryError> {
        let digest = Sha256Digest::of(bytes);
        let url = self.url(&format!("blobs/{digest}"));
        let head = Outgoing {
            method: "HEAD",
            url: &url,
            headers: Vec::new(),
            body: None,
            limit: ANSWER_BYTES,
        };
        let answer = self.send(head)?;
        // A registry may redirect to the server that stores the blob.
        if answer.status == StatusCode::OK || answer.is_redirect() {
            return Ok(());
        }
        let start = self.url("blobs/uploads/");
        let answer = self.change("POST", &start, Vec::new(), Bytes::new())?.success(&self.host)?;
        let mut place = self.place(&answer)?;
        let mut last = bytes.clone();
        if bytes.len() > CHUNK_BYTES {
            let mut at = 0;
            while bytes.len() - at > CHUNK_BYTES {
                let piece = bytes.slice(at..at + CHUNK_BYTES);
                let headers = vec![
                    ("content-type", "application/octet-stream".to_owned()),
                    ("content-range", format!("{at}-{}", at + CHUNK_BYTES - 1)),
                ];
                let answer =
                    self.change("PATCH", place.as_str(), headers, piece)?.success(&self.host)?;
                place = self.place(&answer)?;
                at += CHUNK_BYTES;
            }
            last = bytes.slice(at..);
        }
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        let headers = vec![("content-type", "application/octet-stream".to_owned())];
        self.change("PUT", place.as_str(), headers, last)?.success(&self.host).map(drop)
    }

    /// Returns the next URL of an upload, which must be at the registry.
    fn place(&self, answer: &Answer) -> Result<Url, RegistryError> {
        let invalid =
            || RegistryError::invalid(&*answer.url, "it continues the upload at another host");
        let location = answer.header("location").ok_or_else(invalid)?;
        let base = Url::parse(&answer.url).map_err(|_| invalid())?;
        let place = base.join(location).map_err(|_| invalid())?;
        match place.origin() == base.origin() {
            true => Ok(place),
            false => Err(invalid()),
        }
    }

    fn change(
        &self,
        method: &'static str,
        url: &str,
        headers: Vec<(&'static str, String)>,
        body: Bytes,
    ) -> Result<Answer, RegistryError> {
        let (body, limit) = (Some(body), ANSWER_BYTES);
        self.send(Outgoing { method, url, headers, body, limit })
    }
}

/// Returns the tag of the index of a manifest's referrers.
pub(crate) fn referrers_tag(subject: Sha256Digest) -> String {
    format!("sha256-{}", subject.hex())
}

fn descriptor(media_type: &str, bytes: &Bytes, title: Option<&str>) -> Value {
    let digest = Sha256Digest::of(bytes).to_string();
    let mut value = json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() });
    if let Some(title) = title {
        value["annotations"] = json!({ TITLE: title });
    }
    value
}
