//! Registries of tools: the connections, credentials and signers of the user config.

pub(crate) mod download;
pub(crate) mod push;
pub(crate) mod search;

use std::cell::OnceCell;
use std::path::PathBuf;

use kitbag::base::text::shown_path;
use kitbag::config::{AcceptedSigner, Config, RegistryRule};
use kitbag::secrets::{CallEnd, ReadSecret};
use kitbag::{Kitbag, secret_sources};
use kitbag_registry::{
    Access, Credentials, DockerConfig, OciReference, PackageRegistries, Registry, RegistryError,
    Signer, TrustRoot, Web,
};

use crate::commands::Global;
use crate::error::CliError;

/// The connections to registries, as the user config allows them.
pub(crate) struct Registries<'a> {
    config: &'a Config,
    pub(crate) web: Web,
    docker: OnceCell<DockerConfig>,
}

impl<'a> Registries<'a> {
    /// Reads no files and connects to nothing yet.
    pub(crate) fn new(kitbag: &'a Kitbag) -> Result<Self, CliError> {
        let config = kitbag.toolbox().config();
        // A rule with a mistake is ignored, and it may have required a signature.
        if let Some(broken) = config.broken.iter().find(|broken| broken.is_own) {
            return Err(CliError::Usage(format!(
                "your user config has a mistake, and may require a signature: {}",
                broken.diagnostic.line()
            )));
        }
        let rules = config.registries.clone();
        let access = move |name: &str| {
            let is_set = |flag: fn(&RegistryRule) -> bool| rules.rules_of(name).any(flag);
            Access {
                is_private: is_set(|rule| rule.private.as_ref().is_some_and(|it| it.value)),
                is_plain: is_set(|rule| rule.plain_http.as_ref().is_some_and(|it| it.value)),
            }
        };
        let web = Web::new(kitbag.toolbox().host().client().clone(), access);
        let web = web.map_err(|source| CliError::Read { path: "the network".into(), source })?;
        Ok(Self { config, web, docker: OnceCell::new() })
    }

    /// Returns the repository of a reference, with the credentials for its registry.
    pub(crate) fn registry(&self, reference: &OciReference) -> Result<Registry<'_>, CliError> {
        let name = reference.name();
        let credentials = self.credentials(&name, &reference.host)?;
        Ok(Registry::new(&self.web, reference, credentials))
    }

    /// Returns the lists of signers that the user config requires for a name.
    pub(crate) fn signers(&self, name: &str) -> Vec<Vec<Signer>> {
        let lists = self.rules(name).filter_map(|rule| rule.signed_by.as_ref());
        lists.map(|list| list.value.iter().map(signer).collect()).collect()
    }

    /// Returns the trust root of the user config, otherwise that of this build.
    pub(crate) fn trust_root(&self) -> Result<TrustRoot, CliError> {
        let Some(file) = &self.config.registries.trust_root else {
            return Ok(TrustRoot::shipped()?);
        };
        let name = format!("`{}`", shown_path(&file.value.path));
        let text = str::from_utf8(&file.value.bytes)
            .map_err(|error| RegistryError::Key(format!("{name}: {error}")))?;
        Ok(TrustRoot::parse(&name, text)?)
    }

    /// Returns the hosts that describe the registries of packages.
    pub(crate) fn packages(&self) -> PackageRegistries {
        let registries = &self.config.registries;
        let namespaces = registries.namespaces.iter();
        PackageRegistries {
            default: registries.packages.as_ref().map(|host| host.value.clone()),
            namespaces: namespaces.map(|(name, host)| (name.clone(), host.value.clone())).collect(),
        }
    }

    fn rules<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b RegistryRule> {
        self.config.registries.rules_of(name)
    }

    /// Returns the user name and the secret of the user config, otherwise Docker's credentials.
    fn credentials(&self, name: &str, host: &str) -> Result<Option<Credentials>, CliError> {
        let own =
            self.rules(name).find_map(|rule| rule.username.as_ref().zip(rule.secret.as_ref()));
        if let Some((user, secret)) = own {
            let secrets = secret_sources(self.config);
            let read = secrets.read(&secret.value, &CallEnd::default());
            let value = read.map_err(|source| {
                let name = secret.value.to_string();
                CliError::Secret { name, source }
            })?;
            let (user, password) = (user.value.clone(), value.reveal().to_owned().into());
            return Ok(Some(Credentials::Password { user, password }));
        }
        let docker = match self.docker.get() {
            Some(docker) => docker,
            None => {
                let read = match docker_directory() {
                    Some(directory) => DockerConfig::read(&directory)?,
                    None => DockerConfig::default(),
                };
                self.docker.get_or_init(|| read)
            }
        };
        Ok(docker.credentials(host)?)
    }
}

fn docker_directory() -> Option<PathBuf> {
    let own = std::env::var_os("DOCKER_CONFIG").filter(|path| !path.is_empty());
    own.map(PathBuf::from).or_else(|| Some(Global::home()?.join(".docker")))
}

fn signer(accepted: &AcceptedSigner) -> Signer {
    match accepted {
        AcceptedSigner::Key(key) => {
            Signer::Key { name: key.path.display().to_string(), der: key.bytes.to_vec() }
        }
        AcceptedSigner::Identity { identity, issuer } => {
            Signer::Identity { identity: identity.clone(), issuer: issuer.clone() }
        }
    }
}
