//! Container images that contain a `plugin.wasm`, the form of hyper-mcp's plugins.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::GzDecoder;
use kitbag_base::ByteSize;
use oci_spec::image::Descriptor;

use crate::error::RegistryError;
use crate::registry::Registry;

/// The file of a plugin, at the root of the image.
const PLUGIN: &str = "plugin.wasm";

/// The most entries of one layer that are examined.
const MOST_ENTRIES: usize = 10_000;

/// Returns the plugin of an image: of the last layer that contains it.
pub(crate) fn plugin(
    registry: &Registry<'_>,
    url: &str,
    layers: &[Descriptor],
    limit: ByteSize,
) -> Result<Bytes, RegistryError> {
    for layer in layers.iter().rev() {
        let media_type = layer.media_type().to_string();
        let is_gzip = media_type.ends_with("gzip");
        if !is_gzip && !media_type.ends_with("tar") {
            continue;
        }
        let content = registry.layer(url, layer, limit)?;
        let found = match is_gzip {
            true => find(GzDecoder::new(&*content), limit),
            false => find(&*content, limit),
        };
        if let Some(plugin) = found.map_err(|error| RegistryError::invalid(url, error))? {
            return Ok(plugin);
        }
    }
    Err(RegistryError::invalid(url, "it is an image without a `plugin.wasm`"))
}

/// Finds the plugin in an archive. Reads at most `limit` bytes before and in it.
fn find(archive: impl Read, limit: ByteSize) -> io::Result<Option<Bytes>> {
    let mut archive = tar::Archive::new(archive.take(limit.as_u64().saturating_mul(2)));
    for entry in archive.entries()?.take(MOST_ENTRIES) {
        let mut entry = entry?;
        let is_plugin = {
            let path = entry.path()?;
            path.strip_prefix("./").unwrap_or(&path) == std::path::Path::new(PLUGIN)
        };
        if !is_plugin || !entry.header().entry_type().is_file() {
            continue;
        }
        if entry.size() > limit.as_u64() {
            let problem = format!("`{PLUGIN}` is larger than {limit}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != entry.size() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        return Ok(Some(bytes.into()));
    }
    Ok(None)
}
