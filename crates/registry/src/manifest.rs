//! Manifests of artifacts, and the choice of one in an index of images.

use bytes::Bytes;
use oci_spec::image::{Arch, Descriptor, ImageIndex, ImageManifest, Os};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::reference::OciReference;
use crate::registry::{Content, Registry};

/// The most manifests of an index.
const MOST_MANIFESTS: usize = 256;

/// Types of indexes.
const INDEX_TYPES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// A manifest that was pulled.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// The digest of the referenced manifest or index: the one that a tag names.
    pub digest: Sha256Digest,
    /// The bytes of that manifest or index, for signatures.
    pub signed: Bytes,
    pub(crate) url: String,
    pub(crate) manifest: ImageManifest,
}

impl Registry<'_> {
    /// Resolves a reference, and reads its manifest. The digest is computed from the received bytes.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if the manifest does not have the digest in the reference.
    pub fn pull(&self, reference: &OciReference) -> Result<Pulled, RegistryError> {
        let content = self.manifest(reference.tag.as_deref(), reference.digest)?;
        let (digest, signed) = (content.digest, content.bytes.clone());
        let value = read(&content)?;
        if !is_index(&content, &value)? {
            let manifest = manifest(&content, value)?;
            return Ok(Pulled { digest, signed, url: content.url, manifest });
        }
        // An index, as of an image for several platforms.
        let index = index(&content, value)?;
        let chosen = choose(index.manifests()).ok_or_else(|| {
            RegistryError::invalid(&*content.url, "it is an index without a usable manifest")
        })?;
        let chosen = chosen.digest().to_string().parse();
        let chosen = chosen.map_err(|error| RegistryError::invalid(&*content.url, error))?;
        let content = self.manifest(None, Some(chosen))?;
        let value = read(&content)?;
        if is_index(&content, &value)? {
            return Err(RegistryError::invalid(&*content.url, "it is an index in an index"));
        }
        let manifest = manifest(&content, value)?;
        Ok(Pulled { digest, signed, url: content.url, manifest })
    }
}

/// Reads the JSON of a manifest or an index, without the fields that have no value: programs in Go
/// write `null` for an empty list.
pub(crate) fn read(content: &Content) -> Result<Value, RegistryError> {
    let mut value: Value = serde_json::from_slice(&content.bytes)
        .map_err(|error| RegistryError::invalid(&*content.url, error))?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
    }
    Ok(value)
}

/// Parses an index. A missing list is empty.
pub(crate) fn index(content: &Content, mut value: Value) -> Result<ImageIndex, RegistryError> {
    if let Value::Object(fields) = &mut value {
        fields.entry("manifests").or_insert_with(|| Value::Array(Vec::new()));
    }
    parsed(content, value)
}

/// Parses a manifest. A missing list is empty.
pub(crate) fn manifest(
    content: &Content,
    mut value: Value,
) -> Result<ImageManifest, RegistryError> {
    if let Value::Object(fields) = &mut value {
        fields.entry("layers").or_insert_with(|| Value::Array(Vec::new()));
    }
    parsed(content, value)
}

fn parsed<T: DeserializeOwned>(content: &Content, value: Value) -> Result<T, RegistryError> {
    serde_json::from_value(value).map_err(|error| RegistryError::invalid(&*content.url, error))
}

/// Returns whether content is an index. The media type in the content decides, since the header
/// field is not covered by the digest. A type that neither of them names is seen from the fields.
///
/// # Errors
///
/// [`RegistryError::Invalid`] for content that programs could read as both.
fn is_index(content: &Content, value: &Value) -> Result<bool, RegistryError> {
    let (has_manifests, has_layers) = (value.get("manifests"), value.get("layers"));
    if has_manifests.is_some() && has_layers.is_some() {
        let problem = "it is both an index and a manifest";
        return Err(RegistryError::invalid(&*content.url, problem));
    }
    let own = value.get("mediaType").and_then(Value::as_str).map(str::to_owned);
    let media_type = own.or_else(|| content.media_type());
    let is_index = media_type.is_some_and(|it| INDEX_TYPES.contains(&&*it));
    Ok(has_manifests.is_some() || is_index && has_layers.is_none())
}

/// Prefers a manifest for Wasm, then one of Linux. Attestations have an unknown platform.
fn choose(manifests: &[Descriptor]) -> Option<&Descriptor> {
    let rank = |descriptor: &&Descriptor| match descriptor.platform() {
        None => Some(1),
        Some(platform) if matches!(platform.architecture(), Arch::Wasm) => Some(3),
        Some(platform)
            if *platform.architecture() == Arch::Amd64 && *platform.os() == Os::Linux =>
        {
            Some(2)
        }
        Some(platform) if platform.os().to_string() == "unknown" => None,
        Some(_) => Some(0),
    };
    let ranked = manifests.iter().take(MOST_MANIFESTS).filter(|it| rank(it).is_some());
    // The first one of the highest rank.
    ranked.rev().max_by_key(rank)
}
