//! The risks of requested grants: one table of severities and reasons, and the classification of
//! each kind of grant.

use std::net::IpAddr;
use std::path::Path;

use kitbag_contract::PROTECTED_BY_DEFAULT;
use kitbag_fs_guard::{ProtectedNames, SecretNames};
use kitbag_policy::addresses::{Block, is_global, is_within};
use kitbag_policy::http::{Host, HostPattern, Methods};
use kitbag_policy::{Access, DirectoryGrant, HttpGrant, ToolGrants, VariableName};

/// A risk of a request, in order from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// A secret of the user is sent with requests.
    Secret,
    /// The root directory.
    WholeFileSystem,
    /// The user's home directory, or a directory that contains it.
    HomeDirectory,
    /// Files that look like secrets.
    SecretFiles,
    /// A variable whose name suggests a secret.
    SecretVariable,
    /// Link-local addresses, and those that return credentials of a cloud.
    CloudMetadata,
    /// A port of the Docker daemon.
    DockerPort,
    /// Every host of the internet.
    AnyHost,
    /// Addresses that a proxy resolves, without a check.
    ProxyResolution,
    /// Writing files outside the workspace.
    WritesOutside,
    /// Writing files that other programs run, such as hooks and editor settings.
    RunFiles,
    /// A restriction that the user trusted was removed or is less strict.
    Loosened,
    /// Reading files outside the workspace.
    ReadsOutside,
    /// Services of this machine.
    Loopback,
    /// Hosts of the private network.
    PrivateNetwork,
    /// Every HTTP method.
    AnyMethod,
    /// All tools that the caller may call.
    CallerTools,
    /// A question is answered instead of the user.
    PresetAnswer,
    /// Calls are made without the approval that the user requires.
    Unasked,
    /// Later builds run without a review.
    LaterBuilds,
    /// A built-in tool is replaced.
    ReplacesBuiltin,
    /// A name that is easily mistaken for the name of another tool.
    Imitation,
    /// A different description of a built-in tool for models.
    OtherWords,
    /// A request that this version of kitbag cannot read.
    Unreadable,
    /// An import that could use a kind of grant for which no grant is requested.
    UnrequestedImport,
    /// Stored text that later sessions read.
    Memory,
}

/// The severity of a risk, in order from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The risk can cost the user more than the workspace.
    High,
    /// The risk exceeds the needs of a tool for a workspace.
    Medium,
    /// The risk is worth a look.
    Low,
}

/// The severity of each risk, and its reason in words, in the order of [`Risk`].
const TABLE: [(Risk, Severity, &str); 26] = [
    (Risk::Secret, Severity::High, "your secret"),
    (Risk::WholeFileSystem, Severity::High, "the whole file system"),
    (Risk::HomeDirectory, Severity::High, "your home directory"),
    (Risk::SecretFiles, Severity::High, "files that look like secrets"),
    (Risk::SecretVariable, Severity::High, "a variable that looks like a secret"),
    (Risk::CloudMetadata, Severity::High, "cloud metadata and link-local addresses"),
    (Risk::DockerPort, Severity::High, "a port of the Docker daemon"),
    (Risk::AnyHost, Severity::High, "any host"),
    (Risk::ProxyResolution, Severity::High, "a proxy chooses the address"),
    (Risk::WritesOutside, Severity::High, "writes outside the workspace"),
    (Risk::RunFiles, Severity::High, "changes files that other programs run"),
    (Risk::Loosened, Severity::High, "loosens a restriction"),
    (Risk::ReadsOutside, Severity::Medium, "reads outside the workspace"),
    (Risk::Loopback, Severity::Medium, "services of this machine"),
    (Risk::PrivateNetwork, Severity::Medium, "the private network"),
    (Risk::AnyMethod, Severity::Medium, "any method"),
    (Risk::CallerTools, Severity::Medium, "every tool that its caller may call"),
    (Risk::PresetAnswer, Severity::Medium, "answers a question for you"),
    (Risk::Unasked, Severity::Medium, "runs without asking you"),
    (Risk::LaterBuilds, Severity::Medium, "runs later builds without review"),
    (Risk::ReplacesBuiltin, Severity::Medium, "replaces a built-in tool"),
    (Risk::Imitation, Severity::Medium, "a name that resembles another tool"),
    (Risk::OtherWords, Severity::Medium, "another description for a built-in tool"),
    (Risk::Unreadable, Severity::Medium, "a request that kitbag cannot read"),
    (Risk::UnrequestedImport, Severity::Low, "an import without a requested grant"),
    (Risk::Memory, Severity::Low, "text that later sessions read"),
];

/// Link-local addresses, and further addresses under which clouds return credentials.
///
/// Sources: RFC 3927; RFC 4291, 2.5.6; Azure's `168.63.129.16`, Alibaba's `100.100.100.200`,
/// Oracle's `192.0.0.192`, and `fd00:ec2::254` of AWS.
const METADATA: [&str; 6] = [
    "169.254.0.0/16",
    "fe80::/10",
    "168.63.129.16/32",
    "100.100.100.200/32",
    "192.0.0.192/32",
    "fd00:ec2::/32",
];

/// Addresses of this machine, including the unspecified address, under which Linux reaches it.
const LOOPBACK: [&str; 4] = ["127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128"];

/// Private networks: RFC 1918, RFC 6598 and RFC 4193.
const PRIVATE: [&str; 5] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/// Names under which clouds return credentials.
const METADATA_NAMES: [&str; 7] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.platformequinix.com",
];

/// The last labels of names that are not in the public DNS.
///
/// Sources: RFC 6762, RFC 8375, ICANN's reservation of `internal`, and the names that Kubernetes
/// and routers use.
const PRIVATE_SUFFIXES: [&str; 8] =
    ["cluster.local", "corp", "home", "home.arpa", "internal", "intranet", "lan", "local"];

/// The ports of the Docker daemon, plain and with TLS.
const DOCKER_PORTS: [u16; 2] = [2375, 2376];

impl Risk {
    /// Returns the severity of the risk.
    pub fn severity(self) -> Severity {
        TABLE[self as usize].1
    }

    /// Returns the reason in words, such as `the whole file system`.
    pub fn reason(self) -> &'static str {
        TABLE[self as usize].2
    }
}

/// Returns the risks of a granted directory. `root` is the workspace, canonical like the directory.
pub(super) fn directory(grant: &DirectoryGrant, root: &Path, home: Option<&Path>) -> Vec<Risk> {
    if grant.is_temporary() {
        return Vec::new();
    }
    let mut risks = place(&grant.host, grant.access, &grant.include, root, home);
    let protects = |names: &Vec<String>| {
        names.iter().any(|name| name == PROTECTED_BY_DEFAULT)
            && !names.iter().any(|name| name.starts_with('!'))
    };
    let is_writable = grant.access == Access::ReadWrite;
    let below = grant.host.strip_prefix(root).unwrap_or(&grant.host).to_string_lossy();
    let is_protected = ProtectedNames::default().are_on(root, &below)
        || below.split('/').any(|name| ProtectedNames::default().are_in(name));
    if is_writable && (is_protected || grant.protected.as_ref().is_some_and(|it| !protects(it))) {
        risks.push(Risk::RunFiles);
    }
    risks
}

/// Returns the risks of a path with this access. `include` is the globs of files in it that look
/// like secrets.
pub(super) fn place(
    host: &Path,
    access: Access,
    include: &[String],
    root: &Path,
    home: Option<&Path>,
) -> Vec<Risk> {
    let mut risks = Vec::new();
    let is_home = home.is_some_and(|home| home.starts_with(host) && *home != *root);
    let wide = match host.parent() {
        None => Some(Risk::WholeFileSystem),
        Some(_) => is_home.then_some(Risk::HomeDirectory),
    };
    risks.extend(wide);
    let below = host.strip_prefix(root).unwrap_or(host);
    if !include.is_empty() || SecretNames::default().are_entered_by(below) {
        risks.push(Risk::SecretFiles);
    }
    if !host.starts_with(root) {
        match access {
            Access::ReadWrite => risks.push(Risk::WritesOutside),
            Access::ReadOnly if wide.is_none() => risks.push(Risk::ReadsOutside),
            // The wider risk already covers reads outside the workspace.
            Access::ReadOnly => {}
        }
    }
    risks
}

/// Returns the risks of an HTTP grant. `by_proxy` is true if a proxy resolves the names of hosts.
pub(super) fn http(grant: &HttpGrant, by_proxy: bool) -> Vec<Risk> {
    let mut risks = Vec::new();
    if by_proxy && grant.url.host().is_of_names() {
        risks.push(Risk::ProxyResolution);
    }
    match grant.url.host() {
        HostPattern::Any => risks.push(Risk::AnyHost),
        HostPattern::Below(name) | HostPattern::One(Host::Name(name)) => risks.extend(host(name)),
        HostPattern::One(Host::Address(named)) => risks.extend(address(*named)),
    }
    risks.extend(grant.addresses.iter().flat_map(|named| block(*named)));
    if DOCKER_PORTS.contains(&grant.url.port()) {
        risks.push(Risk::DockerPort);
    }
    if grant.methods == Methods::Any {
        risks.push(Risk::AnyMethod);
    }
    risks.sort_unstable();
    risks.dedup();
    risks
}

pub(super) fn variable(name: &VariableName) -> Vec<Risk> {
    if name.looks_like_secret() { vec![Risk::SecretVariable] } else { Vec::new() }
}

pub(super) fn tools(grants: &ToolGrants) -> Vec<Risk> {
    if *grants == ToolGrants::Caller { vec![Risk::CallerTools] } else { Vec::new() }
}

fn host(name: &str) -> Option<Risk> {
    let is_below = |suffix: &&str| {
        name.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if METADATA_NAMES.contains(&name) {
        Some(Risk::CloudMetadata)
    } else if is_below(&"localhost") {
        Some(Risk::Loopback)
    } else if PRIVATE_SUFFIXES.iter().any(is_below) || !name.contains('.') {
        Some(Risk::PrivateNetwork)
    } else {
        None
    }
}

fn blocks(texts: &[&str]) -> Vec<Block> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

fn address(address: IpAddr) -> Option<Risk> {
    if is_within(address, &blocks(&METADATA)) {
        Some(Risk::CloudMetadata)
    } else if is_within(address, &blocks(&LOOPBACK)) {
        Some(Risk::Loopback)
    } else {
        (!is_global(address)).then_some(Risk::PrivateNetwork)
    }
}

/// Returns the risks of a block of addresses.
fn block(block: Block) -> Vec<Risk> {
    let holds = |text: &str| text.parse().is_ok_and(|other: Block| block.contains(&other));
    let is_in = |text: &str| text.parse().is_ok_and(|other: Block| other.contains(&block));
    let mut risks = Vec::new();
    for (texts, risk) in [(&METADATA[..], Risk::CloudMetadata), (&LOOPBACK, Risk::Loopback)] {
        if texts.iter().any(|text| holds(text) || is_in(text)) {
            risks.push(risk);
        }
    }
    if risks.is_empty() || PRIVATE.iter().any(|text| holds(text)) {
        risks.push(Risk::PrivateNetwork);
    }
    risks
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kitbag_policy::UrlPattern;

    use super::*;

    #[test]
    fn the_table_has_every_risk_in_order() {
        for (at, (risk, severity, reason)) in TABLE.iter().enumerate() {
            assert_eq!(*risk as usize, at, "{reason}");
            assert_eq!((risk.severity(), risk.reason()), (*severity, *reason));
        }
        // A worse risk never has a lower severity.
        assert!(TABLE.is_sorted_by_key(|(_, severity, _)| *severity));
        assert_eq!(TABLE[0].0, Risk::Secret, "secrets come first");
    }

    #[test]
    fn the_consent_page_contains_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/consent.md");
        let page = std::fs::read_to_string(path).unwrap();
        for (severity, word) in
            [(Severity::High, "high"), (Severity::Medium, "medium"), (Severity::Low, "low")]
        {
            let rows = TABLE.iter().filter(|(_, of, _)| *of == severity);
            let reasons: Vec<_> = rows.map(|(.., reason)| *reason).collect();
            let row = format!("| {word} | {} |\n", reasons.join("; "));
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn directories_are_classified() {
        use Risk::{
            HomeDirectory, ReadsOutside, RunFiles, SecretFiles, WholeFileSystem, WritesOutside,
        };
        let check = |host: &str, change: &dyn Fn(&mut DirectoryGrant), expected: &[Risk]| {
            let mut grant = DirectoryGrant {
                host: PathBuf::from(host),
                guest: "/data".parse().unwrap(),
                access: Access::ReadOnly,
                include: Vec::new(),
                protected: None,
                identity: None,
            };
            change(&mut grant);
            let (root, home) = (Path::new("/home/ada/work"), Path::new("/home/ada"));
            assert_eq!(directory(&grant, root, Some(home)), expected, "{host}");
        };
        let read = |_: &mut DirectoryGrant| {};
        let write = |grant: &mut DirectoryGrant| grant.access = Access::ReadWrite;
        check("/home/ada/work", &read, &[]);
        check("/home/ada/work/data", &write, &[]);
        check("$TEMP", &write, &[]);
        check("/", &read, &[WholeFileSystem]);
        check("/", &write, &[WholeFileSystem, WritesOutside]);
        check("/home/ada", &read, &[HomeDirectory]);
        check("/home", &write, &[HomeDirectory, WritesOutside]);
        check("/home/ada/.ssh", &read, &[SecretFiles, ReadsOutside]);
        check("/home/ada/work/.aws", &read, &[SecretFiles]);
        check("/home/ada/work/.git", &read, &[SecretFiles]);
        check("/home/ada/work/.github/workflows", &read, &[]);
        check("/home/ada/work/.github/workflows", &write, &[RunFiles]);
        check("/home/ada/work/.claude", &write, &[RunFiles]);
        check("/home/ada/work/.vscode", &write, &[RunFiles]);
        check("/home/ada/work2", &write, &[WritesOutside]);
        check("/etc", &read, &[ReadsOutside]);
        check("/home/ada/work", &|grant| grant.include = vec![".env".into()], &[SecretFiles]);
        let unprotected = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            move |grant: &mut DirectoryGrant| {
                grant.access = Access::ReadWrite;
                grant.protected = Some(names.clone());
            }
        };
        check("/home/ada/work", &unprotected(&[]), &[RunFiles]);
        check("/home/ada/work", &unprotected(&["AGENTS.md"]), &[RunFiles]);
        check("/home/ada/work", &unprotected(&["default"]), &[]);
        check("/home/ada/work", &unprotected(&["default", "!.newrc"]), &[RunFiles]);
    }

    #[test]
    fn requests_over_http_are_classified() {
        use Risk::{AnyHost, AnyMethod, CloudMetadata, DockerPort, Loopback, PrivateNetwork};
        let check = |url: &str, addresses: &[&str], expected: &[Risk]| {
            let mut grant = HttpGrant::new(UrlPattern::parse(url).unwrap());
            grant.addresses = addresses.iter().map(|block| block.parse().unwrap()).collect();
            assert_eq!(http(&grant, false), expected, "{url} {addresses:?}");
        };
        check("https://api.github.com/**", &[], &[]);
        check("https://*.example.com", &[], &[]);
        check("https://93.184.215.14", &[], &[]);
        check("https://*", &[], &[AnyHost]);
        check("http://169.254.169.254/latest/**", &[], &[CloudMetadata]);
        check("http://[fe80::1]", &[], &[CloudMetadata]);
        check("http://[::ffff:169.254.169.254]", &[], &[CloudMetadata]);
        check("http://168.63.129.16", &[], &[CloudMetadata]);
        check("http://100.100.100.200", &[], &[CloudMetadata]);
        check("http://metadata.google.internal/**", &[], &[CloudMetadata]);
        check("http://localhost:8080", &[], &[Loopback]);
        check("http://db.localhost", &[], &[Loopback]);
        check("http://127.0.0.1", &[], &[Loopback]);
        check("http://[::1]", &[], &[Loopback]);
        check("http://0.0.0.0", &[], &[Loopback]);
        check("http://localhost:2375/**", &[], &[DockerPort, Loopback]);
        check("https://docker.example.com:2376", &[], &[DockerPort]);
        check("http://10.0.0.1", &[], &[PrivateNetwork]);
        check("http://[fd12::1]", &[], &[PrivateNetwork]);
        check("http://router", &[], &[PrivateNetwork]);
        check("http://nas.local", &[], &[PrivateNetwork]);
        check("http://api.default.svc.cluster.local", &[], &[PrivateNetwork]);
        check("https://notlocal.example", &[], &[]);
        check("https://a.example", &["10.0.0.0/8"], &[PrivateNetwork]);
        check("https://a.example", &["127.0.0.0/8"], &[Loopback]);
        check("https://a.example", &["169.254.169.254/32"], &[CloudMetadata]);
        check("https://a.example", &["0.0.0.0/0"], &[CloudMetadata, Loopback, PrivateNetwork]);
        check("https://a.example", &["::/0"], &[CloudMetadata, Loopback, PrivateNetwork]);
        let any = HttpGrant {
            methods: Methods::Any,
            ..HttpGrant::new(UrlPattern::parse("https://a.example").unwrap())
        };
        assert_eq!(http(&any, false), [AnyMethod]);
        let by_proxy = |url: &str| http(&HttpGrant::new(UrlPattern::parse(url).unwrap()), true);
        assert_eq!(by_proxy("https://a.example"), [Risk::ProxyResolution]);
        assert_eq!(by_proxy("https://*.a.example"), [Risk::ProxyResolution]);
        // kitbag resolves and checks these names itself.
        assert_eq!(by_proxy("https://*"), [AnyHost]);
        assert_eq!(by_proxy("https://93.184.215.14"), []);
    }

    #[test]
    fn variable_names_that_suggest_secrets_are_found() {
        let check = |name: &str, expected: &[Risk]| {
            assert_eq!(variable(&VariableName::new(name).unwrap()), expected, "{name}");
        };
        check("LANG", &[]);
        check("GITHUB_TOKEN", &[Risk::SecretVariable]);
        check("AWS_SECRET_ACCESS_KEY", &[Risk::SecretVariable]);
    }
}
