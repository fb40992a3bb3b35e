//! The risks of requests: one table of severities and reasons.

/// A risk of a request, in order from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// A secret of the user is sent with requests.
    Secret,
    /// A process with all rights of the user.
    AllRights,
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
    /// A text for models that looks like instructions, or has invisible characters.
    HostileText,
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
const TABLE: [(Risk, Severity, &str); 28] = [
    (Risk::Secret, Severity::High, "your secret"),
    (Risk::AllRights, Severity::High, "runs with all of your rights"),
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
    (Risk::HostileText, Severity::High, "a description that looks like instructions"),
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

#[cfg(test)]
mod tests {
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
}
