//! The tools that a call may call.

use std::sync::Arc;

use kitbag_config::{Audience, Config, ConfiguredTool, GrantAdvice};
use kitbag_contract::{ErrorInfo, ToolName};
use kitbag_policy::{Rates, ToolGrants, ToolRefusal, ToolRequest};
use serde_json::{Map, Value};

use crate::error::ToolboxError;

/// The tools that a caller may call, which a tool with the grant `"caller"` receives.
#[derive(Clone, Default)]
pub(crate) enum Scope {
    #[default]
    All,
    Granted(Arc<Callable>),
}

pub(crate) struct Callable {
    tool: ToolName,
    grants: ToolGrants,
    scope: Scope,
}

/// The grant by which a tool makes a call of another tool.
#[derive(Clone, Debug)]
pub(crate) struct Via {
    pub(crate) caller: ToolName,
    pub(crate) alias: String,
    pub(crate) grants: ToolGrants,
}

impl Callable {
    /// Returns the tools that a call of this tool may call. `None` if it may call no tools.
    pub(crate) fn new(tool: &ToolName, grants: &ToolGrants, scope: &Scope) -> Option<Arc<Self>> {
        if matches!(grants, ToolGrants::None) {
            return None;
        }
        let (tool, grants, scope) = (tool.clone(), grants.clone(), scope.clone());
        Some(Arc::new(Self { tool, grants, scope }))
    }

    pub(crate) fn scope(self: &Arc<Self>) -> Scope {
        Scope::Granted(Arc::clone(self))
    }

    /// Returns the tool with this alias, and the grant by which it is called. The tool may be
    /// disabled.
    ///
    /// # Errors
    ///
    /// States that the alias does not exist and lists those that do, for this audience.
    pub(crate) fn resolve<'a>(
        &'a self,
        config: &Config,
        alias: &'a str,
        audience: Audience,
    ) -> Result<(&'a str, Option<Via>), ErrorInfo> {
        match (&self.grants, &self.scope) {
            (ToolGrants::None, _) => Err(self.refused(config, alias, audience)),
            (ToolGrants::Aliases(aliases), _) => {
                let grant = aliases.get(alias);
                let grant = grant.ok_or_else(|| self.refused(config, alias, audience))?;
                let (caller, alias) = (self.tool.clone(), alias.to_owned());
                let via = Via { caller, alias, grants: self.grants.clone() };
                Ok((grant.tool.as_str(), Some(via)))
            }
            (ToolGrants::Caller, Scope::Granted(callable)) => {
                callable.resolve(config, alias, audience)
            }
            (ToolGrants::Caller, Scope::All) if self.tool.as_str() != alias => Ok((alias, None)),
            (ToolGrants::Caller, Scope::All) => {
                Err(ErrorInfo::new(format!("`{alias}` may not call itself")))
            }
        }
    }

    /// Returns the tool with this alias, if it exists. The tool may be disabled.
    pub(crate) fn find(&self, alias: &str) -> Option<ToolName> {
        match (&self.grants, &self.scope) {
            (ToolGrants::None, _) => None,
            (ToolGrants::Aliases(aliases), _) => aliases.get(alias).map(|grant| grant.tool.clone()),
            (ToolGrants::Caller, Scope::Granted(callable)) => callable.find(alias),
            (ToolGrants::Caller, Scope::All) => {
                ToolName::new(alias).ok().filter(|name| *name != self.tool)
            }
        }
    }

    /// Returns the tools, each with its alias. If the caller may call all tools, returns the
    /// enabled ones.
    pub(crate) fn tools(&self, config: &Config) -> Vec<(String, ToolName)> {
        match (&self.grants, &self.scope) {
            (ToolGrants::None, _) => Vec::new(),
            (ToolGrants::Aliases(aliases), _) => aliases
                .iter()
                .map(|(alias, grant)| (alias.to_string(), grant.tool.clone()))
                .collect(),
            (ToolGrants::Caller, Scope::Granted(callable)) => callable.tools(config),
            (ToolGrants::Caller, Scope::All) => config
                .tools
                .values()
                .filter(|tool| tool.is_enabled() && tool.name != self.tool)
                .map(|tool| (tool.name.to_string(), tool.name.clone()))
                .collect(),
        }
    }

    fn refused(&self, config: &Config, alias: &str, audience: Audience) -> ErrorInfo {
        let nothing = Map::new();
        let refusal = self.grants.decide(&ToolRequest { alias, arguments: &nothing }).err();
        let refusal = refusal.unwrap_or(ToolRefusal::NoGrant { alias: alias.to_owned() });
        match advice(config, &self.tool, &refusal) {
            Some(advice) => {
                let advice = audience.allow(&advice.action(audience));
                ErrorInfo::new(format!("{refusal}; {advice}"))
            }
            None => ErrorInfo::new(refusal.to_string()),
        }
    }
}

impl Via {
    /// Checks these arguments of the call against the grant, and returns the rate of the grant.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::NotGranted`].
    pub(crate) fn check(
        &self,
        config: &Config,
        arguments: &Map<String, Value>,
    ) -> Result<Option<Rates>, ToolboxError> {
        let Self { caller, alias, grants } = self;
        match grants.decide(&ToolRequest { alias, arguments }) {
            Ok(allowed) => Ok(allowed.rate),
            Err(refusal) => Err(ToolboxError::NotGranted {
                caller: caller.to_string(),
                alias: alias.clone(),
                reason: refusal.to_string(),
                advice: advice(config, caller, &refusal).map(Box::new),
            }),
        }
    }
}

/// Returns how to allow the call. `None` if no grant would.
fn advice(config: &Config, tool: &ToolName, refusal: &ToolRefusal) -> Option<GrantAdvice> {
    let (missing, ConfiguredTool { grants, .. }) = refusal.missing().zip(config.tools.get(tool))?;
    Some(config.advice(tool, grants, &missing))
}
