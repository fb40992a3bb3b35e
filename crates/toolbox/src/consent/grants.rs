//! Grants as items of a request for consent, in words, with their abilities and risks.

use std::path::Path;

use kitbag_base::text::shown;
use kitbag_config::Network;
use kitbag_contract::PROTECTED_BY_DEFAULT;
use kitbag_policy::{
    Access, ConfigValues, DirectoryGrant, Grants, HttpGrant, KINDS, Kind, Request, RequestedTool,
    SecretGrant, ToolGrants, VariableGrant,
};

use super::{Ability, RequestItem, Requester, Risk, quoted, risk};

/// The paths and the network by which grants are classified.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The root of the workspace; canonical.
    pub root: &'a Path,
    /// The user's home directory; canonical.
    pub home: Option<&'a Path>,
    /// The network configuration.
    pub network: &'a Network,
}

impl Surroundings<'_> {
    /// Returns the risks of a directory that is read. `include` is the globs that open files
    /// although they look like secrets.
    pub fn read_risks(&self, host: &Path, include: &[String]) -> Vec<Risk> {
        risk::place(host, Access::ReadOnly, include, self.root, self.home)
    }
}

/// Returns an item for each grant of a tool.
pub fn grant_items(tool: &str, grants: &Grants, around: &Surroundings<'_>) -> Vec<RequestItem> {
    KINDS.iter().flat_map(|kind| kind_items(tool, grants, kind.key, around)).collect()
}

/// Returns an item for each grant of one kind, by its key. Configuration values need no consent.
pub fn kind_items(
    tool: &str,
    grants: &Grants,
    key: &str,
    around: &Surroundings<'_>,
) -> Vec<RequestItem> {
    let item = |line: String, ability: Option<Ability>, risks: Vec<Risk>| RequestItem {
        abilities: ability.into_iter().collect(),
        risks,
        ..RequestItem::new(Requester::Tool(tool.to_owned()), format!("tool `{tool}` {line}"))
    };
    match key {
        SecretGrant::KEY => {
            let secrets = grants.secrets.iter();
            let secret = |grant: &SecretGrant| {
                item(format!("uses your {grant}"), Some(Ability::Secrets), vec![Risk::Secret])
            };
            secrets.map(secret).collect()
        }
        HttpGrant::KEY => {
            let grants = grants.http.grants.iter();
            let http = |grant: &HttpGrant| {
                let by_proxy = around.network.proxy_resolves();
                let risks = risk::http(grant, by_proxy);
                item(format!("sends requests: {grant}"), Some(Ability::Network), risks)
            };
            grants.map(|grant| http(grant)).collect()
        }
        VariableGrant::KEY => {
            // The variables of a request are classified even if they are unset now.
            let variables = grants.variables.iter().map(|variable| &variable.name);
            let variable = |name| {
                let line = format!("reads an environment variable of yours: {name}");
                item(line, Some(Ability::Variables), risk::variable(name))
            };
            variables.map(variable).collect()
        }
        DirectoryGrant::KEY => {
            let directory = |grant: &DirectoryGrant| {
                let risks = risk::directory(grant, around.root, around.home);
                item(directory_line(grant, around.root), ability(grant, around.root), risks)
            };
            grants.directories.iter().map(directory).collect()
        }
        ToolGrants::KEY => {
            let called = |line: &String| {
                let called = ["tools → ", "tool "].iter().find_map(|it| line.strip_prefix(it));
                let line = format!("calls {}", called.unwrap_or(line));
                item(line, Some(Ability::CallTools), risk::tools(&grants.tools))
            };
            grants.tools.lines().iter().map(called).collect()
        }
        ConfigValues::KEY => Vec::new(),
        _ => {
            let lines = grants.kinds().into_iter().filter(|kind| kind.key() == key);
            lines
                .flat_map(Kind::lines)
                .map(|line| item(format!("has {line}"), None, vec![]))
                .collect()
        }
    }
}

/// Returns the item for a request of a component. Only the guest paths of its directories are
/// known.
pub fn request_item(tool: &str, request: &Request, network: &Network) -> RequestItem {
    let by_proxy = network.proxy_resolves();
    let (ability, risks) = match request {
        Request::Secret(_) => (Ability::Secrets, vec![Risk::Secret]),
        Request::HttpPattern(grant) => (Ability::Network, risk::http(grant, by_proxy)),
        Request::Http(_) => (Ability::Network, Vec::new()),
        Request::Variable(variable) => (Ability::Variables, risk::variable(&variable.name)),
        Request::Tool(RequestedTool::Caller) => (Ability::CallTools, vec![Risk::CallerTools]),
        Request::Tool(RequestedTool::Alias { .. }) => (Ability::CallTools, Vec::new()),
        Request::Path(path) if path.is_workspace() && path.access == Access::ReadWrite => {
            (Ability::WriteInside, Vec::new())
        }
        Request::Path(path) if path.is_workspace() => (Ability::ReadInside, Vec::new()),
        Request::Path(_) | Request::Storage(_) => {
            return RequestItem::new(Requester::Tool(tool.to_owned()), request_line(tool, request));
        }
    };
    let item = RequestItem::new(Requester::Tool(tool.to_owned()), request_line(tool, request));
    RequestItem { risks, ..item.with_ability(ability) }
}

fn request_line(tool: &str, request: &Request) -> String {
    let request = request.to_string();
    let request = request.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("tool `{tool}` requests {}", shown(&request))
}

fn ability(grant: &DirectoryGrant, root: &Path) -> Option<Ability> {
    let is_inside = grant.host.starts_with(root);
    match (grant.access, is_inside) {
        _ if grant.is_temporary() => None,
        (Access::ReadWrite, true) => Some(Ability::WriteInside),
        (Access::ReadWrite, false) => Some(Ability::WriteOutside),
        (Access::ReadOnly, true) => Some(Ability::ReadInside),
        (Access::ReadOnly, false) => Some(Ability::ReadOutside),
    }
}

/// Returns the line for the tool's use of a directory.
fn directory_line(grant: &DirectoryGrant, root: &Path) -> String {
    let does = match grant.access {
        Access::ReadOnly => "reads",
        Access::ReadWrite => "reads and changes",
    };
    if grant.is_temporary() {
        return "has an empty directory for each call".to_owned();
    }
    let mut line = format!("{does} {}", place(&grant.host, root));
    if !grant.include.is_empty() {
        line.push_str(&format!(
            ", including files that look like secrets: {}",
            list(&grant.include)
        ));
    }
    if let (Access::ReadWrite, Some(protected)) = (grant.access, &grant.protected) {
        line.push_str(&unprotected(protected));
    }
    line
}

/// Returns the files of other programs that a grant lets a tool write, for a grant with its own
/// list of protected names.
fn unprotected(protected: &[String]) -> String {
    let (exceptions, names): (Vec<_>, Vec<_>) =
        protected.iter().cloned().partition(|name| name.starts_with('!'));
    let exceptions: Vec<_> = exceptions.iter().map(|name| name[1..].to_owned()).collect();
    let all = ", including files from which other programs run code";
    match (names.iter().any(|name| name == PROTECTED_BY_DEFAULT), names.is_empty()) {
        (true, _) if exceptions.is_empty() => String::new(),
        (true, _) => format!(", including files named {} of other programs", list(&exceptions)),
        (false, true) => all.to_owned(),
        (false, false) => format!("{all}, but not {}", list(&names)),
    }
}

fn list(texts: &[String]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
}

/// Returns the text for a canonical path, which states if the path is in the workspace.
pub fn place(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => "the workspace".into(),
        Ok(inside) => quoted(&inside.to_string_lossy()),
        Err(_) => {
            format!("{}, which is outside the workspace", quoted(&path.to_string_lossy()))
        }
    }
}
