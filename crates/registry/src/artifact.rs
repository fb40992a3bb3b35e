//! The content of artifacts: a component, and files beside it.

use bytes::Bytes;
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use oci_spec::image::{Descriptor, ImageManifest};

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::image;
use crate::manifest::Pulled;
use crate::registry::Registry;

/// The media type of the configuration of a Wasm artifact.
///
/// Source: CNCF TAG Runtime, "Wasm OCI Artifact layout".
pub const WASM_CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";

/// The media type of a component.
pub const COMPONENT_TYPE: &str = "application/wasm";

/// Media types of components in older artifacts.
const OLDER_TYPES: [&str; 2] = [
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.module.wasm.content.layer.v1+wasm",
];

/// The annotation with the file name of a layer.
pub(crate) const TITLE: &str = "org.opencontainers.image.title";

/// The most files beside a component, and the most bytes of each.
const MOST_FILES: usize = 16;
const FILE_BYTES: ByteSize = ByteSize::mib(1);

/// The most layers of an artifact.
const MOST_LAYERS: usize = 256;

/// A component, and the files beside it.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The component.
    pub component: Bytes,
    /// Files with names, such as a manifest of the tool.
    pub files: Vec<NamedFile>,
    /// The digest of the artifact's manifest.
    pub digest: Sha256Digest,
    /// True if the artifact is a container image.
    pub is_image: bool,
}

/// A file with a plain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The name, without a directory.
    pub name: String,
    /// The content.
    pub bytes: Bytes,
}

impl Registry<'_> {
    /// Reads the component and the files of a manifest. `limit` is the largest component.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if there is no component, or not exactly one, or if content does not have
    /// the digest and the size in the manifest.
    pub fn artifact(&self, pulled: &Pulled, limit: ByteSize) -> Result<Artifact, RegistryError> {
        let layers = pulled.manifest.layers();
        if layers.len() > MOST_LAYERS {
            let problem = format!("has more than {MOST_LAYERS} layers");
            return Err(RegistryError::invalid(&*pulled.url, problem));
        }
        let digest = pulled.digest;
        if is_image(&pulled.manifest) {
            let component = image::plugin(self, &pulled.url, layers, limit)?;
            return Ok(Artifact { component, files: Vec::new(), digest, is_image: true });
        }
        let (components, others): (Vec<_>, Vec<_>) =
            layers.iter().partition(|layer| is_component(layer));
        let [component] = components[..] else {
            let problem = match components.len() {
                0 => "it contains no component".to_owned(),
                count => format!("it contains {count} components, but must contain one"),
            };
            return Err(RegistryError::invalid(&*pulled.url, problem));
        };
        let named: Vec<_> = others.into_iter().filter_map(|it| Some((title(it)?, it))).collect();
        if named.len() > MOST_FILES {
            let problem = format!("it has more than {MOST_FILES} files beside its component");
            return Err(RegistryError::invalid(&*pulled.url, problem));
        }
        let component = self.layer(&pulled.url, component, limit)?;
        let mut files = Vec::<NamedFile>::new();
        for (name, layer) in named {
            if !is_file_name(name) || files.iter().any(|file| file.name == name) {
                let problem = format!("`{}` is not the name of a file beside it", shown(name));
                return Err(RegistryError::invalid(&*pulled.url, problem));
            }
            let bytes = self.layer(&pulled.url, layer, FILE_BYTES)?;
            files.push(NamedFile { name: name.to_owned(), bytes });
        }
        Ok(Artifact { component, files, digest, is_image: false })
    }

    /// Reads the content of a layer.
    pub(crate) fn layer(
        &self,
        url: &str,
        layer: &Descriptor,
        limit: ByteSize,
    ) -> Result<Bytes, RegistryError> {
        let digest = layer.digest().to_string().parse();
        let digest = digest.map_err(|error| RegistryError::invalid(url, error))?;
        self.blob(digest, layer.size(), limit)
    }
}

fn is_component(layer: &Descriptor) -> bool {
    let media_type = layer.media_type().to_string();
    media_type == COMPONENT_TYPE || OLDER_TYPES.contains(&&*media_type)
}

/// Returns whether an artifact is an image of a file system.
fn is_image(manifest: &ImageManifest) -> bool {
    let types = [
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
    ];
    let has_component = manifest.layers().iter().any(is_component);
    !has_component && types.contains(&&*manifest.config().media_type().to_string())
}

pub(crate) fn title(layer: &Descriptor) -> Option<&str> {
    layer.annotations().as_ref()?.get(TITLE).map(String::as_str)
}

/// Returns whether a file of this name is inside the directory that it is written to.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=128).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.chars().all(is_plain)
        // The component has another name.
        && !name.to_ascii_lowercase().ends_with(".wasm")
}
