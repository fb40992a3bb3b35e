//! The grants of a tool, each kind with its origin.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_contract::WORKSPACE_GUEST_PATH;
use kitbag_policy::tools::ToolGrants;
use kitbag_policy::{
    Access, DirectoryGrant, Grants, GuestPath, HttpGrant, HttpGrants, Kind, Request, RequestedTool,
    SecretRequest, UrlPattern, VariableRequest,
};

use crate::layers::origin::{Origin, Sourced};
use crate::report::Diagnostic;

const DENY: &str = "deny";

/// The grants of a tool, each kind with its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredGrants {
    /// The grants, shared between calls.
    pub value: Arc<Grants>,
    pub(crate) is_of_workspace: bool,
    /// The origins, by the key of the kind.
    origins: BTreeMap<&'static str, Origin>,
    /// The place of a single grant, by the key of its kind and its line.
    places: BTreeMap<(&'static str, String), Origin>,
    /// Named grants that do not take effect, by the key of the kind and the name.
    left_out: BTreeMap<(&'static str, String), Diagnostic>,
    /// HTTP grants that do not take effect.
    left_out_http: Vec<(Arc<HttpGrant>, Diagnostic)>,
    /// Likely mistakes, each with its place: grants that have no effect or give nothing.
    pub warnings: Vec<Diagnostic>,
}

impl ConfiguredGrants {
    pub(crate) fn none(is_of_workspace: bool) -> Self {
        Self { is_of_workspace, ..Self::default() }
    }

    /// Returns empty grants of these kinds, by key. As a ceiling they allow no grant of the kinds.
    pub(crate) fn empty_of(kinds: impl Iterator<Item = &'static str>) -> Self {
        Self { origins: kinds.map(|kind| (kind, Origin::Default)).collect(), ..Self::default() }
    }

    pub(crate) fn set<T: Kind>(
        &mut self,
        kind: impl FnOnce(&mut Grants) -> &mut T,
        grants: Sourced<T>,
    ) {
        self.origins.insert(grants.value.key(), grants.origin);
        *kind(self.value_mut()) = grants.value;
    }

    pub(crate) fn value_mut(&mut self) -> &mut Grants {
        Arc::make_mut(&mut self.value)
    }

    /// Records the place of a single grant, by its line in [`Kind::lines`].
    pub(crate) fn place(&mut self, kind: &'static str, line: String, origin: Origin) {
        self.places.insert((kind, line), origin);
    }

    pub(crate) fn leave_out(&mut self, kind: &'static str, name: &str, problem: &Diagnostic) {
        self.left_out.insert((kind, name.to_owned()), problem.clone());
    }

    pub(crate) fn leave_out_http(&mut self, grant: Arc<HttpGrant>, problem: &Diagnostic) {
        self.left_out_http.push((grant, problem.clone()));
    }

    /// Returns why a grant that would allow a request does not take effect, with its place. The
    /// request is for HTTP, a variable, a secret, or another tool (also by `tools = "caller"`). A
    /// requested pattern of HTTP is only an example, which any HTTP grant replaces.
    pub fn left_out(&self, request: &Request) -> Option<&Diagnostic> {
        let of = |name: &str| self.left_out.get(&(request.key(), name.to_owned()));
        match request {
            Request::Variable(VariableRequest { name }) => of(name.as_str()),
            Request::Secret(SecretRequest { name }) => of(name.as_str()),
            Request::Tool(RequestedTool::Alias { alias, .. }) => {
                of(alias.as_str()).or_else(|| of(ToolGrants::CALLER))
            }
            Request::Http(request) => {
                let allows = |grant: &Arc<HttpGrant>| {
                    HttpGrants { grants: vec![Arc::clone(grant)], ..HttpGrants::default() }
                        .decide(request)
                        .is_ok()
                };
                self.left_out_http.iter().find(|(grant, _)| allows(grant)).map(|(_, why)| why)
            }
            Request::HttpPattern(_) => self.left_out_http.first().map(|(_, why)| why),
            _ => None,
        }
    }

    /// Returns the HTTP grants that do not take effect.
    pub(crate) fn left_out_http(&self) -> Vec<Arc<HttpGrant>> {
        self.left_out_http.iter().map(|(grant, _)| Arc::clone(grant)).collect()
    }

    /// Records the place of a pattern that denies requests to this tool alone.
    pub(crate) fn place_denied(&mut self, pattern: &UrlPattern, origin: Origin) {
        self.place(DENY, pattern.to_string(), origin);
    }

    /// Returns the place of a single grant, by the key of its kind and its line in [`Kind::lines`].
    /// If only the place of the list is known, returns that.
    pub fn place_of(&self, kind: &'static str, line: &str) -> &Origin {
        self.places.get(&(kind, line.to_owned())).unwrap_or_else(|| self.origin_of(kind))
    }

    /// Returns the place of a pattern that denies requests to this tool alone. `None`: the pattern
    /// is in [`Config::deny`](super::Config::deny), which applies to all tools.
    pub fn denied_at(&self, pattern: &str) -> Option<&Origin> {
        self.places.get(&(DENY, pattern.to_owned()))
    }

    /// Returns whether the workspace is granted only because no file sets the directories.
    pub fn has_default_workspace(&self) -> bool {
        *self.origin_of(DirectoryGrant::KEY) == Origin::Default
            && !self.value.directories.is_empty()
    }

    /// Returns the grants of a tool that was made for another host: without the workspace, unless a
    /// file grants it.
    #[must_use]
    pub fn without_default_workspace(&self) -> Self {
        let mut grants = self.clone();
        if grants.has_default_workspace() {
            grants.value_mut().directories.clear();
        }
        grants
    }

    /// Returns whether any layer sets the grants of a kind.
    pub fn has(&self, kind: &str) -> bool {
        self.origins.contains_key(kind)
    }

    /// Returns the origin of the grants of a kind, by its key.
    pub fn origin_of(&self, kind: &str) -> &Origin {
        self.origins.get(kind).unwrap_or(&DEFAULT)
    }

    /// Returns the kinds that the tool holds or that some layer sets.
    pub fn kinds(&self) -> impl Iterator<Item = &dyn Kind> {
        let is_said = |kind: &&dyn Kind| !kind.is_empty() || self.origins.contains_key(kind.key());
        self.value.kinds().into_iter().filter(is_said)
    }

    /// Returns the origin of the grants: the first that is not the default.
    pub fn origin(&self) -> &Origin {
        self.origins.values().find(|origin| **origin != DEFAULT).unwrap_or(&DEFAULT)
    }
}

static DEFAULT: Origin = Origin::Default;

pub(crate) fn workspace_grant(host: PathBuf, identity: Option<FileId>) -> DirectoryGrant {
    let guest = GuestPath::new(WORKSPACE_GUEST_PATH).expect("the contract's own path is one");
    DirectoryGrant {
        host,
        guest,
        access: Access::ReadOnly,
        include: Vec::new(),
        protected: None,
        identity,
    }
}
