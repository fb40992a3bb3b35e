//! Grants, requests, and decisions on requests.
//!
//! Plain types and pure functions without I/O. All code that describes or checks the access of a
//! tool uses this crate: listings, annotations, errors, the host. `kitbag-config` reads grants from
//! a configuration, and `kitbag-host` enforces them.
//!
//! This file has the only lists of the kinds of grants. Each kind has its own file with its
//! [`KindInfo`], and implements [`Kind`].

pub mod addresses;
mod approval;
mod config_value;
pub mod consent;
mod decision;
mod directory;
pub mod http;
mod kind;
mod rate;
pub mod screening;
mod secret;
pub mod server;
mod storage;
pub mod tools;
mod variable;

pub use approval::{ApprovalRule, ApprovalRuleError, CallToApprove, ClassRule, is_of_class};
pub use config_value::{ConfigValueError, ConfigValues};
pub use decision::{Decision, GrantRefusal, MissingGrant};
pub use directory::{
    Access, DirectoryGrant, FileRefusal, GuestPath, GuestPathError, PathRequest, RefusedFile,
    RequestedDirectory,
};
pub use http::{HttpGrant, HttpGrants, HttpRefusal, HttpRequest, RefusalKind, UrlPattern};
pub use kind::{
    DefaultCeiling, Effects, GrantForm, Kind, KindInfo, KindRequest, RefusalWords, TypedRequest,
};
pub use rate::{ParseRatesError, Period, Rate, RateExceeded, RateUse, Rates};
pub use secret::{
    Placement, PlacementError, SecretGrant, SecretName, SecretNameError, SecretPlace,
    SecretPlaceError, SecretRelation, SecretRequest, SecretSource,
};
pub use storage::{RequestedStorage, StorageGrant, StorageGrantError, StorageRequest};
pub use tools::{RequestedTool, ToolGrant, ToolGrants, ToolRefusal, ToolRequest};
pub use variable::{VariableGrant, VariableName, VariableNameError, VariableRequest};

use std::fmt;

use kitbag_contract::WORKSPACE_GUEST_PATH;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::consent::{Ability, Risk};

/// The kinds of grants, in the order in which they are shown for consent: the worst first.
pub static KINDS: [KindInfo; 7] = [
    secret::KIND,
    http::KIND,
    variable::KIND,
    directory::KIND,
    tools::KIND,
    storage::KIND,
    config_value::KIND,
];

/// Everything that a tool may access. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Directories in their granted order.
    pub directories: Vec<DirectoryGrant>,
    /// Variables of the host's environment, by name.
    pub variables: Vec<VariableGrant>,
    /// Configuration values, by key.
    pub config: ConfigValues,
    /// HTTP requests, and denied URLs.
    pub http: HttpGrants,
    /// Secrets by name, without their values.
    pub secrets: Vec<SecretGrant>,
    /// Persistent storage. `None`: no storage.
    pub storage: Option<StorageGrant>,
    /// Other tools, by alias.
    pub tools: ToolGrants,
}

/// The grants that a tool requests. They grant nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedGrants {
    /// Directories, by guest path.
    #[serde(default, rename = "filesystem", skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<RequestedDirectory>,
    /// Variables of the environment, by name.
    #[serde(default, rename = "env", skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// The keys of the kinds that the tool requires: it cannot work without its requested grants of
    /// these kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Requests over HTTP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<http::RequestedHttp>,
    /// Persistent storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<RequestedStorage>,
    /// Calls of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<tools::RequestedTools>,
}

/// A request of a tool for access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A file or a directory.
    Path(PathRequest),
    /// A variable of the environment.
    Variable(VariableRequest),
    /// A secret that the host adds to requests.
    Secret(SecretRequest),
    /// An HTTP request.
    Http(HttpRequest),
    /// All HTTP requests that a grant would allow.
    HttpPattern(HttpGrant),
    /// Persistent storage.
    Storage(StorageRequest),
    /// A call of another tool.
    Tool(RequestedTool),
}

/// Decides whether these grants allow a request. One matching grant is enough, so removing a grant
/// never permits more.
pub fn decide(grants: &Grants, request: &Request) -> Decision {
    request.of_kind().decide(grants)
}

impl Grants {
    /// Returns the grants by kind, in the order in which a tool's grants are listed.
    pub fn kinds(&self) -> [&dyn Kind; 7] {
        let Self { directories, http, variables, config, secrets, storage, tools } = self;
        [directories, http, variables, config, secrets, storage, tools]
    }

    /// Returns the first of these grants that `own` does not cover, in one line. Compares paths
    /// only; the host checks links.
    pub fn beyond(&self, own: &Self) -> Option<String> {
        self.kinds().into_iter().find_map(|kind| kind.uncovered(own))
    }

    /// Returns each of the grants as the only grant of a tool.
    pub fn singles(&self) -> Vec<Self> {
        self.kinds().into_iter().flat_map(Kind::singles).collect()
    }

    /// Reduces the grants for a run that shows the changes of a call: read-only directories and
    /// configuration values.
    #[must_use]
    pub fn read_only(&self) -> Self {
        let Self { directories, config, .. } = self.clone();
        let read_only = |grant| DirectoryGrant { access: Access::ReadOnly, ..grant };
        let directories = directories.into_iter().map(read_only).collect();
        Self { directories, config, ..Self::default() }
    }

    /// Returns the effects that a tool with these grants can have.
    pub fn effects(&self) -> Effects {
        self.kinds().iter().map(|kind| kind.effects()).fold(Effects::default(), Effects::or)
    }

    /// Formats the grants in lines for people. The last line lists the resources without a grant.
    /// `per_call` are requests that are granted per call.
    pub fn lines(&self, per_call: &[Request]) -> Vec<String> {
        let kinds = self.kinds();
        let granted = kinds.iter().filter(|kind| !kind.is_empty()).map(|kind| kind.key());
        let reached: Vec<_> = granted.chain(per_call.iter().map(Request::key)).collect();
        let absent = KINDS.iter().rev().filter(|kind| !reached.contains(&kind.key));
        let mut absent = absent.filter_map(|kind| kind.absent).collect::<Vec<_>>().join(", ");
        if !absent.is_empty() && reached.contains(&ToolGrants::KEY) {
            // The called tools have grants of their own.
            absent.push_str(" of its own");
        }
        let per_call = per_call.iter().map(|request| format!("{request} ← chosen by the call"));
        let lines = kinds.into_iter().flat_map(Kind::lines).chain(per_call);
        lines.chain((!absent.is_empty()).then_some(absent)).collect()
    }

    /// Formats the grants in a few words, such as `reads /data, writes /workspace`. `per_call` are
    /// requests that are granted per call.
    pub fn brief(&self, per_call: &[Request]) -> String {
        let granted = self.kinds().into_iter().flat_map(Kind::brief);
        let reached: Vec<_> = granted.chain(per_call.iter().map(Request::brief)).collect();
        match reached.is_empty() {
            true => "reaches nothing".to_owned(),
            false => reached.join(", "),
        }
    }

    /// Describes the permitted requests for a model: `reads https://docs.rs/**` and so on. `None`
    /// if there are none.
    pub fn network_line(&self) -> Option<String> {
        const MOST: usize = 20;
        let brief = self.http.brief();
        let shown = brief.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match brief.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        (!brief.is_empty()).then(|| format!("Network: {shown}{more}"))
    }

    /// Describes the other tools that a tool may call, for a model. `None` if there are none.
    pub fn tools_line(&self) -> Option<String> {
        const MOST: usize = 20;
        let mut names: Vec<_> = match &self.tools {
            ToolGrants::Caller => return Some("Calls other tools: those of its caller".to_owned()),
            tools => tools.iter().map(|(_, grant)| grant.tool.as_str()).collect(),
        };
        names.sort_unstable();
        names.dedup();
        let more = match names.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        names.truncate(MOST);
        (!names.is_empty()).then(|| format!("Calls other tools: {}{more}", names.join(", ")))
    }

    /// Returns the guest path of the tool's working directory: `/workspace` if it or a directory in
    /// it is granted, otherwise the first granted directory, otherwise `/`. Rules refer to files by
    /// paths relative to it, so narrowing the grant of the workspace does not change the meaning of
    /// a rule.
    ///
    /// Contract: `wit/tool.wit`, record `context`, field `root`.
    pub fn root(&self) -> &str {
        let guests = || self.directories.iter().map(|grant| grant.guest.as_str());
        let is_workspace = |guest: &str| {
            let below = guest.strip_prefix(WORKSPACE_GUEST_PATH);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        match guests().any(is_workspace) {
            true => WORKSPACE_GUEST_PATH,
            false => guests().next().unwrap_or("/"),
        }
    }
}

impl From<Vec<DirectoryGrant>> for Grants {
    /// Grants directories only.
    fn from(directories: Vec<DirectoryGrant>) -> Self {
        Self { directories, ..Self::default() }
    }
}

impl RequestedGrants {
    /// The keys that a tool may use in its requested grants.
    pub const KEYS: [&str; 6] = ["filesystem", "env", "http", "storage", "tools", "required"];

    /// Parses the requested grants in a tool's description. Unknown kinds are ignored.
    ///
    /// # Errors
    ///
    /// If a known kind is malformed.
    pub fn read(requested: &Map<String, Value>) -> serde_json::Result<Self> {
        Self::deserialize(requested)
    }

    /// Iterates over the requested grants as requests.
    pub fn requests(&self) -> impl Iterator<Item = Request> {
        let directories = self.directories.iter().filter_map(RequestedDirectory::request);
        // A person cannot grant a variable with an invalid name.
        let names = self.variables.iter().filter_map(|name| VariableName::new(name.as_str()).ok());
        let variables = names.map(|name| Request::Variable(VariableRequest { name }));
        let http = self.http.iter().filter_map(http::RequestedHttp::grant);
        let http = http.map(Request::HttpPattern);
        let storage = self.storage.iter().filter_map(RequestedStorage::request);
        let storage = storage.map(Request::Storage);
        let tools = self.tools.iter().flat_map(tools::RequestedTools::requests).map(Request::Tool);
        directories.map(Request::Path).chain(http).chain(variables).chain(storage).chain(tools)
    }

    /// Returns the requests that these grants do not allow, and the grants that would allow them.
    pub fn missing<'a>(
        &'a self,
        grants: &'a Grants,
    ) -> impl Iterator<Item = (Request, MissingGrant)> + 'a {
        self.requests().filter_map(move |request| match decide(grants, &request) {
            Decision::Allowed { .. } => None,
            Decision::Denied { missing, .. } => missing.map(|missing| (request, missing)),
        })
    }
}

impl RequestedGrants {
    /// Like [`missing`](Self::missing), but only for required kinds without any grant. If part of a
    /// kind is granted, a person has chosen the extent.
    pub fn missing_required<'a>(
        &'a self,
        grants: &'a Grants,
    ) -> impl Iterator<Item = (Request, MissingGrant)> + 'a {
        let is_granted_some = |key: &str| {
            let mut of_kind = self.requests().filter(|request| request.key() == key);
            of_kind.any(|request| request.of_kind().is_granted_in_part(grants))
        };
        let is_required = |key: &str| self.required.iter().any(|required| required == key);
        self.missing(grants)
            .filter(move |(_, missing)| is_required(missing.key) && !is_granted_some(missing.key))
    }
}

impl Request {
    fn of_kind(&self) -> &dyn KindRequest {
        match self {
            Self::Path(request) => request,
            Self::Variable(request) => request,
            Self::Secret(request) => request,
            Self::Http(request) => request,
            Self::HttpPattern(requested) => requested,
            Self::Storage(request) => request,
            Self::Tool(requested) => requested,
        }
    }

    fn brief(&self) -> String {
        self.of_kind().brief()
    }

    /// Returns true if a person must choose the directory to grant: every directory except the
    /// workspace.
    pub fn needs_directory(&self) -> bool {
        matches!(self, Self::Path(request) if !request.is_workspace())
    }

    /// Returns the key of the kind under `grants`.
    pub fn key(&self) -> &'static str {
        self.of_kind().info().key
    }

    /// Returns the ability and the risks of a grant of the request. `by_proxy` is true if a proxy
    /// resolves the names of hosts.
    pub fn consent(&self, by_proxy: bool) -> (Option<Ability>, Vec<Risk>) {
        self.of_kind().consent(by_proxy)
    }

    /// Returns true if each call of a built-in receives its own grant, since the grant depends on
    /// the call.
    pub fn is_given_by_call(&self) -> bool {
        self.of_kind().is_given_by_call()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of_kind().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn directory(guest: &str, access: Access) -> DirectoryGrant {
        let guest = guest.parse().unwrap();
        let (host, include) = (PathBuf::from("/tmp"), Vec::new());
        DirectoryGrant { host, guest, access, include, protected: None, identity: None }
    }

    #[test]
    fn each_kind_is_declared_once() {
        let grants = Grants::default();
        let mut declared = KINDS.each_ref().map(|kind| kind.key);
        let mut held = grants.kinds().map(|kind| kind.key());
        declared.sort_unstable();
        held.sort_unstable();
        assert_eq!(declared, held);
    }

    #[test]
    fn the_root_prefers_the_workspace() {
        let check = |guests: &[&str], expected: &str| {
            let directories = guests.iter().map(|guest| directory(guest, Access::ReadOnly));
            let grants = Grants::from(directories.collect::<Vec<_>>());
            assert_eq!(grants.root(), expected);
        };
        check(&[], "/");
        check(&["/subjects", "/other"], "/subjects");
        check(&["/subjects", "/workspace"], "/workspace");
        check(&["/subjects", "/workspace/docs"], "/workspace");
        check(&["/workspaces"], "/workspaces");
    }

    #[test]
    fn lines_end_with_the_missing_resources() {
        let none = Grants::default();
        assert_eq!(none.lines(&[]), ["no directory, no environment, no network"]);
        let grants = Grants::from(vec![directory("/data", Access::ReadWrite)]);
        assert_eq!(grants.lines(&[]), ["rw  /data ← /tmp", "no environment, no network"]);
        let request = PathRequest { guest: "/in".parse().unwrap(), access: Access::ReadOnly };
        let lines = none.lines(&[Request::Path(request)]);
        assert_eq!(lines, ["ro  /in ← chosen by the call", "no environment, no network"]);
    }

    #[test]
    fn brief_grants_name_reads_and_writes() {
        assert_eq!(Grants::default().brief(&[]), "reaches nothing");
        let grants = [("/data", Access::ReadOnly), ("/out", Access::ReadWrite)];
        let grants = grants.map(|(guest, access)| directory(guest, access)).to_vec();
        let request = PathRequest { guest: "/in".parse().unwrap(), access: Access::ReadOnly };
        let brief = Grants::from(grants).brief(&[Request::Path(request)]);
        assert_eq!(brief, "reads /data, writes /out, reads /in");
    }

    #[test]
    fn effects_follow_from_grants() {
        let check = |access: &[Access], changes: bool| {
            let directories = access.iter().map(|access| directory("/data", *access));
            let effects = Grants::from(directories.collect::<Vec<_>>()).effects();
            assert_eq!(effects, Effects { changes, open_world: false });
        };
        check(&[], false);
        check(&[Access::ReadOnly], false);
        check(&[Access::ReadOnly, Access::ReadWrite], true);
        let variable = VariableGrant { name: "LANG".parse().unwrap(), value: None };
        let grants = Grants { variables: vec![variable], ..Grants::default() };
        assert_eq!(grants.effects(), Effects::default());
        let reads = http_grant("https://docs.rs/**");
        let grants = Grants { http: vec![reads.clone()].into(), ..Grants::default() };
        assert_eq!(grants.effects(), Effects { changes: false, open_world: true });
        let mut sends = http_grant("https://api.example.com");
        sends.methods = http::Methods::new(["POST"]).unwrap();
        let grants = Grants { http: vec![reads, sends].into(), ..Grants::default() };
        assert_eq!(grants.effects(), Effects { changes: true, open_world: true });
    }

    #[test]
    fn read_only_grants_change_nothing() {
        let directories =
            vec![directory("/data", Access::ReadWrite), directory("/in", Access::ReadOnly)];
        let grants = Grants {
            directories,
            http: vec![http_grant("https://docs.rs/**")].into(),
            variables: vec![VariableGrant { name: "LANG".parse().unwrap(), value: None }],
            tools: ToolGrants::Caller,
            ..Grants::default()
        };
        let left = grants.read_only();
        let guests: Vec<_> = left.directories.iter().map(|grant| grant.guest.as_str()).collect();
        assert_eq!(guests, ["/data", "/in"]);
        assert_eq!(left.effects(), Effects::default());
        assert_eq!(left.kinds().iter().filter(|kind| !kind.is_empty()).count(), 1);
    }

    fn http_grant(url: &str) -> HttpGrant {
        HttpGrant::new(url.parse().unwrap())
    }

    #[test]
    fn network_line_names_the_hosts() {
        let line = |urls: &[String]| {
            let http = urls.iter().map(|url| http_grant(url)).collect::<Vec<_>>().into();
            Grants { http, ..Grants::default() }.network_line()
        };
        assert_eq!(line(&[]), None);
        let urls = ["https://docs.rs/**".to_owned(), "https://*.example.com".to_owned()];
        let expected = "Network: reads https://docs.rs/**, reads https://*.example.com/**";
        assert_eq!(line(&urls).as_deref(), Some(expected));
        let many: Vec<_> = (0..23).map(|number| format!("https://h{number}.example.com")).collect();
        let line = line(&many).unwrap();
        assert!(line.ends_with("reads https://h19.example.com/**, and 3 more"), "{line}");
    }

    #[test]
    fn missing_grants_are_those_not_allowed() {
        let requested = serde_json::json!({
            "filesystem": [{ "guest": "/data" }, { "guest": "/out", "mode": "rw" }],
            "telepathy": [1],
        });
        let requested = RequestedGrants::read(requested.as_object().unwrap()).unwrap();
        let grants = Grants::from(vec![directory("/data", Access::ReadOnly)]);
        let missing: Vec<_> = requested
            .missing(&grants)
            .map(|(request, missing)| format!("{request}: {} {}", missing.key, missing.entry))
            .collect();
        assert_eq!(
            missing,
            ["rw  /out: filesystem { host = \"DIRECTORY\", guest = \"/out\", mode = \"rw\" }"]
        );
        let required = serde_json::json!({
            "filesystem": [{ "guest": "/out", "mode": "rw" }],
            "env": ["LANG"],
            "http": ["https://docs.rs/**"],
            "required": ["env", "http", "telepathy"],
        });
        let required = RequestedGrants::read(required.as_object().unwrap()).unwrap();
        let missing: Vec<_> = required.missing_required(&grants).map(|(_, it)| it.entry).collect();
        let expected = ["\"https://docs.rs/**\"", "\"LANG\""];
        assert_eq!(missing, expected, "the directory is not required");
        let malformed = serde_json::json!({ "filesystem": [{ "guest": 1 }] });
        assert!(RequestedGrants::read(malformed.as_object().unwrap()).is_err());
    }

    #[test]
    fn missing_grants_name_their_place() {
        let request = VariableRequest { name: "LANG".parse().unwrap() };
        let Decision::Denied { missing: Some(missing), .. } =
            decide(&Grants::default(), &Request::Variable(request))
        else {
            panic!("nothing is granted")
        };
        assert_eq!(missing.as_setting(), "env = [\"LANG\"]");
        assert_eq!(missing.place("tools.a.grants"), "tools.a.grants.env");
    }

    #[test]
    fn required_kinds_need_only_a_partial_grant() {
        let requested = serde_json::json!({
            "filesystem": [{ "guest": "/out", "mode": "rw" }],
            "env": ["TOKEN", "LANG"],
            "http": [{ "url": "https://api.example.com/**", "methods": ["GET", "POST"] }],
            "required": ["filesystem", "env", "http"],
        });
        let requested = RequestedGrants::read(requested.as_object().unwrap()).unwrap();
        let check = |grants: &Grants, expected: &[&str]| {
            let missing: Vec<_> =
                requested.missing_required(grants).map(|(_, it)| it.entry).collect();
            assert_eq!(missing, expected);
        };
        let out = "{ host = \"DIRECTORY\", guest = \"/out\", mode = \"rw\" }";
        let http = "{ url = \"https://api.example.com/**\", methods = [\"GET\", \"POST\"] }";
        let env = ["\"TOKEN\"", "\"LANG\""];
        check(&Grants::default(), &[out, http, env[0], env[1]]);
        // Less than requested, of each kind.
        let mut grants = Grants {
            http: vec![http_grant("https://api.example.com/a/**")].into(),
            ..Grants::default()
        };
        check(&grants, &[out, env[0], env[1]]);
        grants.variables = vec![VariableGrant { name: "LANG".parse().unwrap(), value: None }];
        check(&grants, &[out]);
        // The workspace, which a component has by default, is not part of `/out`.
        grants.directories = vec![directory("/workspace", Access::ReadWrite)];
        check(&grants, &[out]);
        grants.directories = vec![directory("/out/a", Access::ReadOnly)];
        check(&grants, &[]);
    }

    #[test]
    fn placeholder_variables_are_granted() {
        let secret = SecretGrant {
            name: "github".parse().unwrap(),
            to: Vec::new(),
            within: None,
            added: None,
            variables: vec!["TOKEN".parse().unwrap()],
            in_query: false,
            in_body: false,
        };
        let by = secret.to_string();
        let grants = Grants { secrets: vec![secret], ..Grants::default() };
        let decision = |name: &str| {
            let name = name.parse().unwrap();
            decide(&grants, &Request::Variable(VariableRequest { name }))
        };
        assert_eq!(decision("TOKEN"), Decision::Allowed { by });
        assert!(matches!(decision("OTHER"), Decision::Denied { .. }));
        let requested = serde_json::json!({ "env": ["TOKEN"], "required": ["env"] });
        let requested = RequestedGrants::read(requested.as_object().unwrap()).unwrap();
        assert_eq!(requested.missing_required(&grants).count(), 0);
    }
}
