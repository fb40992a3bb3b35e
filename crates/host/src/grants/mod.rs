//! Open grants of a running call: the only list of grant kinds in this crate. The module
//! `filesystem` opens directories; every other kind has a module below this one.

pub(crate) mod config;
pub(crate) mod filesystem;
pub(crate) mod http;
pub(crate) mod sockets;
#[cfg(feature = "storage")]
pub(crate) mod storage;
pub(crate) mod tools;

mod context;
mod secrets;

pub(crate) use context::GrantContext;
pub use context::ToolStorage;
pub(crate) use secrets::HeldSecrets;
pub use tools::{
    CallableTool, NestedRequest, NestedRequests, PendingAnswer, ToolAnswer, ToolCalls, ToolPort,
    ToolStart, ToolSuccess,
};
pub(crate) use tools::{TOOLS_BYTES, ToolsView};

use std::sync::Arc;
use std::time::Instant;

use kitbag_contract::Limits;
#[cfg(not(feature = "storage"))]
use kitbag_policy::GrantRefusal;
use kitbag_policy::{Grants, VariableGrant};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi_config::WasiConfigVariables;

use crate::call::refusals::{Refusals, RefusedAccess};
use crate::error::CallError;
use crate::grants::filesystem::CallDirectories;
use crate::grants::http::HeldHttp;
#[cfg(feature = "storage")]
use crate::grants::storage::HeldStorage;

pub(crate) struct HeldGrants {
    grants: Arc<Grants>,
    pub(crate) directories: CallDirectories,
    pub(crate) config: WasiConfigVariables,
    pub(crate) http: HeldHttp,
    pub(crate) secrets: HeldSecrets,
    #[cfg(feature = "storage")]
    pub(crate) storage: HeldStorage,
}

impl HeldGrants {
    /// Opens all grants of a call; they end with it. Grants that WASI's own context provides, such
    /// as variables and sockets, are allowed or denied in `wasi`.
    ///
    /// # Errors
    ///
    /// [`CallError::Denied`] for a grant that cannot be given.
    pub(crate) fn open(
        granting: GrantContext<'_>,
        limits: &Limits,
        until: Option<Instant>,
        wasi: &mut WasiCtxBuilder,
    ) -> Result<Self, CallError> {
        let GrantContext { grants, guard, secrets, .. } = granting;
        let held = Arc::clone(grants);
        // The toolbox decides on calls of other tools, since it executes them.
        let Grants { directories: _, http: _, variables, config, secrets: _, storage: _, tools: _ } =
            &**grants;
        // No kind of grant allows sockets.
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        for VariableGrant { name, value } in variables {
            if let Some(value) = value {
                wasi.env(name.as_str(), value);
            }
        }
        let config = WasiConfigVariables::from_iter(config.iter());
        let directories = CallDirectories::new(grants, guard);
        let secrets = HeldSecrets::open(grants, secrets, wasi)?;
        let http = HeldHttp::new(granting, limits, &secrets);
        #[cfg(feature = "storage")]
        let storage = HeldStorage::new(granting, until);
        #[cfg(not(feature = "storage"))]
        let _ = until;
        Ok(Self {
            grants: held,
            directories,
            config,
            http,
            secrets,
            #[cfg(feature = "storage")]
            storage,
        })
    }

    /// Returns a configuration value, or the placeholder of the secret with this name or variable.
    pub(crate) fn config_value(&self, key: &str) -> Option<String> {
        let value = self.grants.config.iter().find(|(own, _)| *own == key);
        value.map(|(_, value)| value.to_owned()).or_else(|| self.secrets.placeholder(key))
    }

    /// Takes the uses of grants that the guest was refused.
    pub(crate) fn take_refused(&mut self) -> Vec<RefusedAccess> {
        let files = self.directories.take_refused().into_iter().map(RefusedAccess::File);
        let http = self.http.take_refused().into_iter().map(RefusedAccess::Request);
        #[cfg(feature = "storage")]
        let others = self.storage.take_refused();
        #[cfg(not(feature = "storage"))]
        let others = Vec::<GrantRefusal>::new();
        files.chain(http).chain(others.into_iter().map(RefusedAccess::Grant)).collect()
    }

    pub(crate) fn take_refusals(&mut self) -> Refusals {
        let mut refusals = self.directories.take_refusals();
        refusals.append(self.http.refusals());
        #[cfg(feature = "storage")]
        refusals.append(self.storage.take_refusals());
        refusals
    }
}
