//! What a tool may reach, and where each kind of it came from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_contract::WORKSPACE_GUEST_PATH;
use kitbag_policy::tools::ToolGrants;
use kitbag_policy::{
    Access, DirectoryGrant, Grants, GuestPath, Kind, Request, RequestedTool, SecretRequest,
    UrlPattern, VariableRequest,
};

use crate::layers::origin::{Origin, Sourced};
use crate::report::Diagnostic;

/// The key of what a tool is denied.
const DENY: &str = "deny";

/// What a tool may reach, and where each kind of it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredGrants {
    /// The grants. Calls share them.
    pub value: Arc<Grants>,
    pub(crate) is_of_workspace: bool,
    /// By the key of the kind.
    origins: BTreeMap<&'static str, Origin>,
    /// The place of a single grant, by the key of its kind and its line.
    places: BTreeMap<(&'static str, String), Origin>,
    /// What a file grants by name and does not count, by the key of its kind and the name.
    left_out: BTreeMap<(&'static str, String), Diagnostic>,
    /// What is most likely not as it was meant, each with its place: a grant that does not
    /// count, or that gives nothing.
    pub warnings: Vec<Diagnostic>,
}

impl ConfiguredGrants {
    pub(crate) fn none(is_of_workspace: bool) -> Self {
        Self { is_of_workspace, ..Self::default() }
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

    /// Says where a single grant stands, by the line that its kind writes of it.
    pub(crate) fn place(&mut self, kind: &'static str, line: String, origin: Origin) {
        self.places.insert((kind, line), origin);
    }

    pub(crate) fn leave_out(&mut self, kind: &'static str, name: &str, problem: &Diagnostic) {
        self.left_out.insert((kind, name.to_owned()), problem.clone());
    }

    /// Why the grant by which a file names what a request wants does not count, with its place:
    /// of a variable, a secret, or another tool, also by `tools = "caller"`.
    pub fn left_out(&self, request: &Request) -> Option<&Diagnostic> {
        let of = |name: &str| self.left_out.get(&(request.key(), name.to_owned()));
        match request {
            Request::Variable(VariableRequest { name }) => of(name.as_str()),
            Request::Secret(SecretRequest { name }) => of(name.as_str()),
            Request::Tool(RequestedTool::Alias { alias, .. }) => {
                of(alias.as_str()).or_else(|| of(ToolGrants::CALLER))
            }
            _ => None,
        }
    }

    /// Says where a pattern stands by which the tool alone is denied requests.
    pub(crate) fn place_denied(&mut self, pattern: &UrlPattern, origin: Origin) {
        self.place(DENY, pattern.to_string(), origin);
    }

    /// Where a single grant stands, by the key of its kind and its line in
    /// [`Kind::lines`]; where the list stands if that is all that is known.
    pub fn place_of(&self, kind: &'static str, line: &str) -> &Origin {
        self.places.get(&(kind, line.to_owned())).unwrap_or_else(|| self.origin_of(kind))
    }

    /// Where a pattern stands by which the tool alone is denied requests. `None`: it is in
    /// [`Config::deny`](super::Config::deny), which is for all tools.
    pub fn denied_at(&self, pattern: &UrlPattern) -> Option<&Origin> {
        self.places.get(&(DENY, pattern.to_string()))
    }

    /// Whether something says what is granted of a kind.
    pub fn has(&self, kind: &str) -> bool {
        self.origins.contains_key(kind)
    }

    /// Where the grants of a kind came from, by its key.
    pub fn origin_of(&self, kind: &str) -> &Origin {
        self.origins.get(kind).unwrap_or(&DEFAULT)
    }

    /// The kinds that the tool holds, or of which something says what it holds.
    pub fn kinds(&self) -> impl Iterator<Item = &dyn Kind> {
        let is_said = |kind: &&dyn Kind| !kind.is_empty() || self.origins.contains_key(kind.key());
        self.value.kinds().into_iter().filter(is_said)
    }

    /// Where they came from: the first place that is not the default.
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
