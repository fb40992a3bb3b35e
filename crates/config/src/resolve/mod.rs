//! From what a person typed to what is in effect: the layers merged, the
//! defaults filled in, and everything checked.

mod ceiling;
mod grants;
mod isolate;
mod limits;
mod parameters;
mod resolver;
mod tools;
mod topics;
mod user;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

pub(crate) use limits::{Overrides, overrides};

use ceiling::{ceilings, lowered};
use grants::ceiling::grant_ceiling;
use kitbag_fs_guard::{Guard, GuardedPaths};
use resolver::Resolver;
use tools::switches::{Switches, WorkspacePlace};

use crate::config::{Config, ConfiguredGrants, SecretStore, own_directories};
use crate::format::key::KeyPath;
use crate::layers::limits::EffectiveLimits;
use crate::layers::path::Bases;
use crate::read::sources::{ComponentTool, Sources};
use crate::read::{Read, Workspace};
use crate::report::{DiagnosticKind, Piece, Report};
use crate::trust::review::TrustReview;

/// Merges and checks what was read.
///
/// What is faulty is reported, and left out of the result.
pub(crate) fn resolve(
    read: Read,
    overrides: &Overrides,
    sources: &Sources<'_>,
    report: &mut Report,
) -> Config {
    let Read {
        workspace,
        ignored,
        trust,
        mut workspace_trust,
        edits,
        content,
        named,
        files,
        configs,
        found,
        scripts,
        named_script,
        tool_links,
        locks,
        invalid,
        is_complete: _,
    } = read;
    let review =
        (!edits.is_empty()).then(|| TrustReview { files: edits, ..TrustReview::default() });
    let place = WorkspacePlace::new(&workspace, sources.home.as_deref());
    let Workspace { root, canonical, exists } = workspace;
    let configs: Vec<_> = configs.iter().map(|(file, config)| (&files[*file], config)).collect();
    report.enter(key("ceiling"));
    let ceilings = ceilings(&configs, &invalid, report);
    let grant_ceiling = grant_ceiling(&configs, report);
    let is_untrusted = workspace_trust.untrusted().is_some();
    let nothing = ConfiguredGrants::nothing();
    report.enter(key("deny"));
    let deny = grants::http::deny(&configs, report);
    let is_ignored = ignored.is_some() || is_untrusted;
    let switches =
        Switches::new(&configs, place, sources.own_file(), is_ignored, sources.local_zone());
    let mut resolver = Resolver {
        bases: Bases { root: &root.value, home: sources.home.as_deref() },
        builtins: sources.builtins,
        bytes_tools: &sources.bytes_tools,
        files: &files,
        scripts: &scripts,
        locks: &locks,
        invalid: &invalid,
        overrides: &overrides.limits,
        ceilings: &ceilings,
        grant_ceiling: &grant_ceiling,
        workspace_ceiling: if is_untrusted { &nothing } else { &grant_ceiling },
        trust: &workspace_trust,
        deny: &deny,
        variables: sources.variables,
        own_file: sources.own_file(),
        canonical_root: &canonical,
        owners: trust.owners(exists.then_some(&*root.value), sources.home.as_deref()),
        is_ignored: ignored.is_some(),
        directories: HashMap::new(),
        guard: Guard::default(),
        linked: Vec::new(),
        through_links: BTreeSet::new(),
        own_secrets: BTreeMap::new(),
        approve_default: None,
        switches,
        replaced: Vec::new(),
        warnings: overrides.unknown.clone(),
        absent: Vec::new(),
        report,
    };
    let own: Vec<_> = configs
        .iter()
        .filter_map(|(file, config)| Some((*file, config.limits.as_ref()?)))
        .collect();
    let defaults = match is_untrusted {
        true => EffectiveLimits::untrusted(),
        false => EffectiveLimits::default(),
    };
    let lowered = lowered(defaults, &ceilings);
    resolver.report.enter(key("limits"));
    let limits = resolver.limits(&KeyPath::ROOT.key("limits"), &own, &lowered);
    resolver.report.enter(key("serve.memory"));
    let mut server_memory = resolver.server_memory(&configs);
    resolver.report.enter(key("serve.session_idle"));
    let session_idle = resolver.session_idle(&configs);
    let unknown_arguments = tools::served::unknown_arguments(&configs);
    resolver.report.enter(key("secret_files"));
    let secret_files = resolver.secret_files(&configs);
    resolver.report.enter(key("secrets"));
    resolver.own_secrets = resolver.secrets(&configs);
    resolver.report.enter(key("approve"));
    resolver.approve_default = resolver.approve_default(&configs);
    let approve_classes = resolver.approve_classes(&configs);
    resolver.report.enter(key("network"));
    let network = resolver.network(&configs);
    resolver.report.enter(key("audit.size"));
    let audit = resolver.audit(&configs);
    resolver.report.enter(key("output"));
    let output = resolver.output(&configs);
    resolver.report.enter(key("secret_store"));
    let secret_store = resolver.secret_store(&configs, sources);
    let private = private(sources, &secret_store);
    resolver.guard = Guard::new(GuardedPaths {
        own: own_directories(
            &root.value,
            sources.protected.iter().chain(sources.state.as_ref().map(|state| &state.value)),
        ),
        private: private.clone(),
        ..GuardedPaths::default()
    })
    .with_secrets(secret_files.secret_names());
    resolver.report.enter(key("allow_leak"));
    let allowed_leaks = resolver.allowed_leaks(&configs);
    resolver.report.enter(Piece::Everything);
    let component = sources.component.as_ref().map(|component| ComponentTool {
        wasm: sources.named_path(&component.wasm),
        ..component.clone()
    });
    let mut tools = resolver.tools(&configs, &found, component, named_script.as_ref(), &limits);
    if is_untrusted {
        resolver.list_untrusted(&named, &mut tools, &limits);
    }
    if let Some(call) = &sources.call_grants {
        resolver.call_grants(&mut tools, call);
    }
    resolver.without_required(&mut tools);
    resolver.check_links(&tools);
    resolver.warn_of_absent_tools(&mut tools);
    let absent = resolver.absent_tools(&tools);
    resolver.isolate_tools(&configs, &mut tools, &limits, sources.is_server);
    resolver.isolate_memory(&mut server_memory);
    let mut unmatched = resolver.switches.unmatched(sources.builtins);
    tools::served::choose(&mut tools, &configs, sources, &mut unmatched, resolver.report);
    let mut topics = resolver.topics(&configs);
    resolver.isolate_topics(&mut topics);
    let broken = resolver.broken(&tools);
    let (toolsets, secrets) = (resolver.switches.toolsets, resolver.own_secrets);
    let through_links = resolver.through_links;
    let approve_default = resolver.approve_default;
    let warnings = resolver.warnings;
    if warnings.iter().any(|it| it.kind == DiagnosticKind::UntrustedTopic) {
        workspace_trust.leave_out();
    }
    let limits = limits.under(&overrides.limits);
    let ceiling = EffectiveLimits::default().under(&ceilings);
    let protected = sources.protected.clone();
    Config {
        root,
        has_workspace: exists,
        ignored,
        trust,
        workspace_trust,
        review,
        content,
        broken,
        warnings,
        unmatched,
        absent,
        state: sources.state.clone(),
        files,
        ceiling,
        grant_ceiling,
        deny,
        network,
        audit,
        approve_default,
        approve_classes,
        output,
        limits,
        secret_files,
        secrets,
        secret_store,
        allowed_leaks,
        server_memory,
        session_idle,
        unknown_arguments,
        toolsets,
        tools,
        topics,
        own_file: sources.own_file().map(Path::to_owned),
        private,
        protected,
        tool_links,
        through_links,
        home: sources.home.clone(),
    }
}

/// The piece under a top-level key.
fn key(key: &str) -> Piece {
    Piece::Key(key.to_owned())
}

/// What no tool reads: kitbag's own secrets and counts.
fn private(sources: &Sources<'_>, store: &SecretStore) -> Vec<PathBuf> {
    let state = sources.state.as_ref();
    let own = [state, store.file.as_ref(), store.key_file.as_ref()].into_iter().flatten();
    own.map(|path| path.value.clone()).chain(sources.private.iter().cloned()).collect()
}
