//! `kitbag push`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use kitbag::base::text::shown;
use kitbag::config::ToolSource;
use kitbag::host::{DescribeResult, Inspection, read_component};
use kitbag_registry::{
    COMPONENT_TYPE, INDEX_TYPE, Index, NewArtifact, NewLayer, OciReference, Sha256Digest, Signer,
    SigningKey, WASM_CONFIG_TYPE,
};
use serde_json::json;

use super::Registries;
use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Maximum size of a manifest.
const FILE_BYTES: u64 = 1 << 20;

/// The time in every artifact, so that the same content has the same digest.
const CREATED: &str = "1970-01-01T00:00:00Z";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag push oci://ghcr.io/org/word_count:1.2.0
  kitbag push oci://ghcr.io/org/word_count:1.2.0 word_count.wasm --sign key.pem
  kitbag push oci://ghcr.io/org/tools:1 tools.json

`--sign` takes a P-256 key in PEM. The signature is a Sigstore bundle, which refers to the artifact.
People verify it with the public key: `signed_by` in `[registries]` of their user config.")]
pub(crate) struct Args {
    /// The destination: `oci://HOST/REPOSITORY:TAG`
    #[arg(value_name = "oci://REFERENCE", value_parser = reference)]
    to: OciReference,
    /// The component, the name of a tool, or an index in JSON [default: the tool with the name of
    /// the repository]
    #[arg(value_name = "FILE.wasm | NAME | FILE.json")]
    what: Option<PathBuf>,
    /// Add this manifest, which `kitbag add` translates [default: none]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Sign the artifact with this private key [default: do not sign]
    #[arg(long, value_name = "KEY.pem")]
    sign: Option<PathBuf>,
}

fn reference(text: &str) -> Result<OciReference, String> {
    let reference: OciReference = text.parse().map_err(|error| format!("{error}"))?;
    match (&reference.tag, reference.digest) {
        (Some(_), None) => Ok(reference),
        _ => Err("a push has a tag, and the registry calculates the digest".to_owned()),
    }
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let key = self.sign.as_deref().map(SigningKey::read).transpose()?;
        let registries = Registries::new(kitbag)?;
        let artifact = match &self.what {
            Some(path) if path.extension().is_some_and(|extension| extension == "json") => {
                index(path)?
            }
            what => {
                let path = component_path(what.as_deref(), &self.to, kitbag.toolbox().config())?;
                component(&path, &self.to, self.manifest.as_deref())?
            }
        };
        let registry = registries.registry(&self.to)?;
        let pushed = registry.push(self.to.tag.as_deref(), &artifact)?;
        let signer = match &key {
            None => None,
            Some(key) => {
                registry.push(None, &key.sign(pushed)?)?;
                Some(Signer::fingerprint(&key.public_key()))
            }
        };
        let pinned = self.to.pinned(pushed.1);
        if global.json {
            let (reference, digest) = (self.to.to_string(), pushed.1.to_string());
            output::json(&json!({ "reference": reference, "digest": digest, "key": signer }))?;
            return Ok(Exit::Done);
        }
        let signed = match &signer {
            None => "unsigned".to_owned(),
            Some(key) => format!("signed by key {key}"),
        };
        output::data(&format!("Pushed {pinned}, {signed}."))?;
        Ok(Exit::Done)
    }
}

/// Returns the path of the component: a file, or the component of a tool.
fn component_path(
    what: Option<&Path>,
    to: &OciReference,
    config: &kitbag::Config,
) -> Result<PathBuf, CliError> {
    let is_path = |path: &&Path| {
        path.extension().is_some_and(|it| it == "wasm") || path.components().nth(1).is_some()
    };
    if let Some(path) = what.filter(is_path) {
        return Ok(path.to_owned());
    }
    let name = match what {
        Some(name) => name.to_string_lossy().into_owned(),
        None => to.file_stem().to_owned(),
    };
    match config.tools.get(name.as_str()).map(|tool| &tool.source.value) {
        Some(ToolSource::Local(local)) => Ok(local.wasm.value.clone()),
        Some(_) => {
            Err(CliError::Usage(format!("the tool `{}` has no component file", shown(&name))))
        }
        None => Err(CliError::Usage(format!(
            "no tool is named `{}`; name the file of the component",
            shown(&name)
        ))),
    }
}

fn component(
    path: &Path,
    to: &OciReference,
    manifest: Option<&Path>,
) -> Result<NewArtifact, CliError> {
    let component = read_component(path).map_err(CliError::Component)?;
    let inspection = &component.inspection;
    let config = config(inspection, Sha256Digest::of(&component.bytes));
    let layer = |media_type: &str, title: String, bytes: Vec<u8>| NewLayer {
        media_type: media_type.to_owned(),
        title: Some(title),
        bytes: bytes.into(),
    };
    let stem = to.file_stem();
    let mut layers = vec![layer(COMPONENT_TYPE, format!("{stem}.wasm"), component.bytes.clone())];
    if let Some(manifest) = manifest {
        let name = manifest.file_name().unwrap_or_default().to_string_lossy();
        // kitbag's own manifest has the name of its component.
        let is_own = manifest.file_stem() == path.file_stem() && name.ends_with(".toml");
        let name = if is_own { format!("{stem}.toml") } else { name.into_owned() };
        layers.push(layer("application/octet-stream", name, read(manifest)?));
    }
    let description = inspection.section.as_ref().and_then(DescribeResult::description);
    let description = description.and_then(|said| said.tools.first()?.description.clone());
    let mut annotations = vec![("org.opencontainers.image.title", Some(stem.to_owned()))];
    annotations.push(("org.opencontainers.image.version", component.version.or(to.tag.clone())));
    annotations.push(("org.opencontainers.image.description", description));
    let annotations = annotations.into_iter().filter_map(|(key, value)| Some((key.into(), value?)));
    Ok(NewArtifact {
        config: Some((WASM_CONFIG_TYPE.to_owned(), config)),
        layers,
        annotations: annotations.collect(),
        ..NewArtifact::default()
    })
}

/// Returns the configuration of a Wasm artifact, with the world of its component.
///
/// Source: CNCF TAG Runtime, "Wasm OCI Artifact layout".
fn config(inspection: &Inspection, digest: Sha256Digest) -> serde_json::Value {
    let os = if inspection.is_module { "wasip1" } else { "wasip2" };
    let mut config = json!({
        "created": CREATED,
        "architecture": "wasm",
        "os": os,
        "layerDigests": [digest.to_string()],
    });
    if !inspection.is_module {
        let imports: Vec<_> = inspection.imports.iter().map(|import| &import.name).collect();
        let exports: Vec<_> = inspection.exports.iter().map(|export| &export.name).collect();
        config["component"] = json!({ "exports": exports, "imports": imports });
    }
    config
}

fn index(path: &Path) -> Result<NewArtifact, CliError> {
    let unreadable = |source| CliError::Read { path: path.display().to_string(), source };
    let bytes = fs::read(path).map_err(unreadable)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Index::parse(&name, &bytes)?;
    let layer =
        NewLayer { media_type: INDEX_TYPE.to_owned(), title: Some(name), bytes: bytes.into() };
    let artifact_type = Some(INDEX_TYPE.to_owned());
    Ok(NewArtifact { artifact_type, layers: vec![layer], ..NewArtifact::default() })
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let unreadable = |source| CliError::Read { path: path.display().to_string(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}
