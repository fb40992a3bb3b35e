//! Manifests of artifacts, and the choice of one in an index of images.

use oci_spec::image::{Arch, Descriptor, ImageIndex, ImageManifest, Os};

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::reference::OciReference;
use crate::registry::{Content, Registry};

/// The most manifests of an index.
const MOST_MANIFESTS: usize = 256;

/// A manifest that was pulled.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// The digest of the referenced manifest or index: the one that a tag names.
    pub digest: Sha256Digest,
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
        let digest = content.digest;
        if !is_index(&content) {
            return pulled(digest, content);
        }
        // An index, as of an image for several platforms.
        let index = ImageIndex::from_reader(&*content.bytes)
            .map_err(|error| RegistryError::invalid(&*content.url, error))?;
        let chosen = choose(index.manifests()).ok_or_else(|| {
            RegistryError::invalid(&*content.url, "it is an index without a usable manifest")
        })?;
        let chosen = chosen.digest().to_string().parse();
        let chosen = chosen.map_err(|error| RegistryError::invalid(&*content.url, error))?;
        let content = self.manifest(None, Some(chosen))?;
        if is_index(&content) {
            return Err(RegistryError::invalid(&*content.url, "it is an index in an index"));
        }
        pulled(digest, content)
    }
}

fn pulled(digest: Sha256Digest, content: Content) -> Result<Pulled, RegistryError> {
    let manifest = ImageManifest::from_reader(&*content.bytes)
        .map_err(|error| RegistryError::invalid(&*content.url, error))?;
    Ok(Pulled { digest, url: content.url, manifest })
}

/// The media type is inside the content, since the header field is not covered by the digest.
pub(crate) fn is_index(content: &Content) -> bool {
    let value = serde_json::from_slice::<serde_json::Value>(&content.bytes).unwrap_or_default();
    let media_type = value["mediaType"].as_str().or(content.media_type.as_deref());
    let types = [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    ];
    media_type.is_some_and(|it| types.contains(&it)) && value["manifests"].is_array()
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
