//! `[ceiling.grants]` of the user config: the widest grants that a workspace may give.
//!
//! A kind that is not listed is not limited, once the workspace is trusted. `filesystem` and
//! `config` have no ceiling: a review of the workspace shows the directories outside of it.

use kitbag_policy::HttpGrants;
use kitbag_policy::tools::ToolGrants;

use super::{environment, http, secrets, storage, tools};
use crate::config::ConfiguredGrants;
use crate::layers::origin::Sourced;
use crate::report::Report;
use crate::resolve::context::{ConfigFiles, of_user};

pub(crate) fn grant_ceiling(configs: &ConfigFiles<'_>, report: &mut Report) -> ConfiguredGrants {
    let mut ceiling = ConfiguredGrants::default();
    let own = of_user(configs, |config| config.ceiling.as_ref()?.grants.as_ref());
    let Some(own) = own else { return ceiling };
    if let Some(http) = own.inner(|grants| grants.http.as_ref()) {
        ceiling.set(|grants| &mut grants.http, http::ceiling(http, report));
    }
    if let Some(env) = own.inner(|grants| grants.env.as_ref()) {
        ceiling.set(|grants| &mut grants.variables, environment::ceiling(env, report));
    }
    if let Some(names) = own.inner(|grants| grants.secrets.as_ref()) {
        ceiling.set(|grants| &mut grants.secrets, secrets::ceiling(names, report));
    }
    if let Some(storage) = own.inner(|grants| grants.storage.as_ref()) {
        ceiling.set(|grants| &mut grants.storage, storage::ceiling(storage, report));
    }
    if let Some(names) = own.inner(|grants| grants.tools.as_ref()) {
        ceiling.set(|grants| &mut grants.tools, tools::ceiling(names, report));
    }
    ceiling
}

impl ConfiguredGrants {
    /// Returns a ceiling that allows no grants of any kind.
    pub(crate) fn nothing() -> Self {
        let mut nothing = Self::default();
        nothing.set(|grants| &mut grants.http, Sourced::default(HttpGrants::default()));
        nothing.set(|grants| &mut grants.variables, Sourced::default(Vec::new()));
        nothing.set(|grants| &mut grants.secrets, Sourced::default(Vec::new()));
        nothing.set(|grants| &mut grants.storage, Sourced::default(None));
        nothing.set(|grants| &mut grants.tools, Sourced::default(ToolGrants::None));
        nothing
    }
}
