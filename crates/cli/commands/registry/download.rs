//! Downloads of components: the reference, the digests, and the signature.

use std::fs;
use std::path::{Path, PathBuf};

use kitbag::config::LockedDownload;
use kitbag::host::COMPONENT_BYTES;
use kitbag_registry::{
    NamedFile, OciReference, Pulled, Reference, Registry, RegistryError, Sha256Digest, Signature,
    Signer, UrlReference, verify,
};
use tempfile::TempDir;

use super::Registries;
use crate::error::CliError;

/// A component that was downloaded, with the files beside it.
pub(crate) struct Download {
    /// The directory with the files, which is removed at the end of the command.
    _directory: TempDir,
    /// The component in it.
    pub(crate) component: PathBuf,
    /// The reference for the lock file, which `kitbag update` resolves again: without a digest if
    /// it has a tag.
    pub(crate) origin: String,
    pub(crate) digest: Sha256Digest,
    pub(crate) signature: Signature,
    /// The artifact of a package.
    artifact: Option<String>,
}

/// Returns the reference that an argument is. `None`: it is a path.
pub(crate) fn reference(named: &Path) -> Option<Result<Reference, CliError>> {
    let text = named.to_str()?;
    // The page of a repository, for which `add` has other advice.
    let page = text.strip_prefix("https://github.com/").filter(|page| !page.contains('#'));
    if page.is_some_and(|page| page.trim_end_matches('/').split('/').count() <= 2) {
        return None;
    }
    let parsed = Reference::parse(text)?;
    Some(parsed.map_err(|error| CliError::Usage(error.to_string())))
}

impl Registries<'_> {
    /// Downloads a component, and verifies its digests and its signature.
    pub(crate) fn download(&self, reference: &Reference) -> Result<Download, CliError> {
        match reference {
            Reference::Oci(artifact) => self.artifact(artifact, reference),
            Reference::Url(url) => self.url(url, reference),
            Reference::Package(package) => {
                let found = self.web.find_package(package, &self.packages())?;
                let download = self.artifact(&found.reference, reference)?;
                let artifact = Some(found.reference.to_string());
                Ok(Download { artifact, origin: package.to_string(), ..download })
            }
        }
    }

    fn artifact(&self, of: &OciReference, named: &Reference) -> Result<Download, CliError> {
        let registry = self.registry(of)?;
        let pulled = registry.pull(of)?;
        let shown = of.to_string();
        let signature = self.signature(of, &registry, &pulled)?;
        // Content is read only if the signature is accepted.
        let artifact = registry.artifact(&pulled, COMPONENT_BYTES)?;
        let origin = match &of.tag {
            Some(_) => OciReference { digest: None, ..of.clone() }.to_string(),
            None => shown,
        };
        write(named.file_stem(), &artifact.component, &artifact.files, |directory, component| {
            Download {
                _directory: directory,
                component,
                origin,
                digest: pulled.digest,
                signature,
                artifact: None,
            }
        })
    }

    /// Verifies the signatures of a manifest.
    pub(crate) fn signature(
        &self,
        of: &OciReference,
        registry: &Registry<'_>,
        pulled: &Pulled,
    ) -> Result<Signature, CliError> {
        let bundles = registry.bundles(pulled.digest)?;
        let signers = self.signers(&of.name());
        let required: Vec<_> = signers.iter().map(Vec::as_slice).collect();
        if bundles.is_empty() && required.is_empty() {
            return Ok(Signature::Unsigned);
        }
        let root = self.trust_root()?;
        Ok(verify(&of.to_string(), &pulled.signed, &bundles, &required, &root)?)
    }

    fn url(&self, of: &UrlReference, named: &Reference) -> Result<Download, CliError> {
        if let [signers, ..] = &self.signers(&of.name())[..] {
            let signers: Vec<_> = signers.iter().map(ToString::to_string).collect();
            return Err(CliError::Registry(RegistryError::Signature(format!(
                "`{}` must be signed by {}, as your user config requires, but a URL has no \
                 signatures",
                kitbag::base::text::shown(&of.url),
                signers.join(" or ")
            ))));
        }
        let component = self.web.component(of, COMPONENT_BYTES)?;
        write(named.file_stem(), &component, &[], |directory, component| Download {
            _directory: directory,
            component,
            origin: of.to_string(),
            digest: of.digest,
            signature: Signature::Unsigned,
            artifact: None,
        })
    }
}

impl Download {
    /// Returns the record for the lock file.
    pub(crate) fn record(&self) -> LockedDownload {
        let signer = match &self.signature {
            Signature::Signed { by: Signer::Key { der, .. }, .. } => {
                Some(format!("key {}", Signer::fingerprint(der)))
            }
            Signature::Signed { by: by @ Signer::Identity { .. }, .. } => Some(by.to_string()),
            Signature::Unsigned | Signature::Unknown => None,
        };
        LockedDownload { digest: self.digest.to_string(), signer }
    }

    /// Describes the download for a person.
    pub(crate) fn lines(&self) -> Vec<String> {
        let artifact = self.artifact.iter().map(|artifact| format!("package in {artifact}"));
        let digest = [self.digest.to_string(), self.signature.to_string()];
        artifact.chain(digest).collect()
    }
}

/// Writes the files of a download into a private directory.
fn write(
    stem: &str,
    component: &[u8],
    files: &[NamedFile],
    download: impl FnOnce(TempDir, PathBuf) -> Download,
) -> Result<Download, CliError> {
    let failed = |source| CliError::Save { path: "the download".to_owned(), source };
    let directory = tempfile::Builder::new().prefix("kitbag-").tempdir().map_err(failed)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let stem: String = stem.chars().filter(|c| is_plain(*c)).collect();
    let stem = stem.trim_start_matches('.');
    let path =
        directory.path().join(format!("{}.wasm", if stem.is_empty() { "tool" } else { stem }));
    fs::write(&path, component).map_err(failed)?;
    for file in files {
        fs::write(directory.path().join(&file.name), &file.bytes).map_err(failed)?;
    }
    Ok(download(directory, path))
}
