//! Resolving the files to the configuration in effect: merges the layers, adds the defaults and
//! checks everything.

mod ceiling;
mod config_files;
mod context;
mod discovery;
mod grants;
mod isolate;
mod limits;
mod parameters;
mod servers;
mod tools;
mod topics;
mod user;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) use limits::overrides;

use ceiling::{ceilings, lowered};
use context::{Context, Directories, tables};
pub use grants::call::read_grant;
use grants::{empty_ceiling, grant_ceiling};
use kitbag_fs_guard::{Guard, GuardedPaths};
use servers::offers::Offers;
use tools::serve;
use tools::switches::{Switches, WorkspacePlace};
use user::approve;

use crate::config::{Config, SecretStore, own_directories};
use crate::format::key::KeyPath;
use crate::layers::limits::{EffectiveLimits, KnownLimits};
use crate::layers::path::Bases;
use crate::read::sources::Sources;
use crate::read::{Read, Workspace};
use crate::report::{DiagnosticKind, GrantedLink, Report};
use crate::trust::review::TrustReview;

/// Merges and checks the files that were read. Mistakes are reported, and their pieces omitted from
/// the result.
pub(crate) fn resolve(
    read: Read,
    overrides: &KnownLimits,
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
        withheld,
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
    let (own_file, home) = (sources.own_file(), sources.home.as_deref());
    let bases = Bases { root: &root.value, home };
    let is_untrusted = workspace_trust.untrusted().is_some();

    let (ceilings, grant_ceiling) = report.of_key("ceiling", |report| {
        (ceilings(&configs, &invalid, report), grant_ceiling(&configs, report))
    });
    let deny = report.of_key("deny", |report| grants::http::deny(&configs, report));
    let mut server_memory = report.of_key("serve.memory", |report| {
        limits::server_memory(&configs, is_untrusted, own_file, report)
    });
    let session_idle = report
        .of_key("serve.session_idle", |report| limits::session_idle(&configs, own_file, report));
    let secret_files = report.of_key("secret_files", |report| {
        user::secret_files::secret_files(&configs, own_file, report)
    });
    let secrets = report.of_key("secrets", |report| user::secrets::secrets(&configs, report));
    let (approve_default, approve_classes) = report.of_key("approve", |report| {
        (approve::default(&configs, report), approve::classes(&configs, report))
    });
    let network = report.of_key("network", |report| {
        user::network::network(&configs, sources.variables, &bases, report)
    });
    let registries = report.of_key("registries", |report| {
        user::registry::registries(&configs, &secrets, &bases, report)
    });
    let audit = report.of_key("audit.size", |report| user::audit::audit(&configs, report));
    let output = report.of_key("output", |report| user::output::output(&configs, report));
    let secret_store = report.of_key("secret_store", |report| {
        user::secrets::secret_store(&configs, sources, &bases, report)
    });
    let allowed_leaks =
        report.of_key("allow_leak", |report| user::allowed_leaks::allowed_leaks(&configs, report));
    let private = private(sources, &secret_store);
    let state = sources.state.as_ref().map(|state| &state.value);
    let guard = Guard::new(GuardedPaths {
        own: own_directories(&root.value, sources.protected.iter().chain(state)),
        private: private.clone(),
        ..GuardedPaths::default()
    });
    let is_ignored = ignored.is_some();
    let nothing = empty_ceiling();
    let mut context = Context {
        configs: &configs,
        sources,
        bases,
        builtins: sources.builtins,
        bytes_tools: &sources.bytes_tools,
        files: &files,
        scripts: &scripts,
        locks: &locks,
        invalid: &invalid,
        overrides,
        ceilings: &ceilings,
        grant_ceiling: &grant_ceiling,
        workspace_ceiling: if is_untrusted { &nothing } else { &grant_ceiling },
        trust: &workspace_trust,
        deny: &deny,
        variables: sources.variables,
        own_file,
        canonical_root: &canonical,
        owners: trust.owners(exists.then_some(&*root.value), home),
        is_ignored,
        private: &private,
        servers: BTreeMap::new(),
        offers: Offers::default(),
        directories: Directories::default(),
        guard: guard.with_secrets(secret_files.secret_names()),
        own_secrets: &secrets,
        approve_default: approve_default.as_ref(),
        switches: Switches::new(
            &configs,
            place,
            own_file,
            is_ignored || is_untrusted,
            sources.local_zone(),
        ),
    };
    context.servers = servers::all_servers(&context, report);
    isolate::servers(&mut context, report);
    context.offers = Offers::new(&context.servers);
    let defaults = match is_untrusted {
        true => EffectiveLimits::untrusted(),
        false => EffectiveLimits::default(),
    };
    let limits = report.of_key("limits", |report| {
        let layers = tables(&configs, |config| config.limits.as_ref());
        let (path, lowered) = (KeyPath::ROOT.key("limits"), lowered(defaults, &ceilings));
        limits::merged(&context, &path, layers, &lowered, report)
    });
    let (mut tools, absent) = tools::all(&context, &found, named_script.as_ref(), &limits, report);
    if is_untrusted {
        tools::untrusted_tools::list(&context, &named, &mut tools, &limits);
        tools::untrusted_tools::name_switches(&context, &withheld, &mut tools);
    }
    if let Some(call) = &sources.call_grants {
        grants::call::add(&context, &mut tools, call, report);
    }
    tools::toolsets::without_required(&context, &mut tools);
    let links = report.take_links();
    let through_links = links.iter().filter(|link| link.is_led_by_workspace(&canonical));
    let through_links = through_links.map(GrantedLink::canonical).collect();
    grants::filesystem::check_links(&tools, links, report);
    grants::tools::warn_of_absent(&mut tools);
    let absent = tools::warnings(absent, &tools);
    isolate::tools(&context, &mut tools, &limits, report);
    isolate::memory(&context, &mut server_memory, report);
    let mut unmatched = context.switches.unmatched(sources.builtins);
    serve::choose(&mut tools, &configs, sources, &mut unmatched, report);
    let discovery = report.of_key("serve.discovery", |report| {
        discovery::discovery(&configs, &tools, &mut unmatched, report)
    });
    let people = report.of_key("serve.tokens", |report| {
        user::people::people(&configs, own_file, &tools, &mut unmatched, report)
    });
    let mut topics = topics::topics(&context, report);
    isolate::topics(&context, &mut topics, report);
    let broken = isolate::broken(&context, &tools, report);
    let servers = std::mem::take(&mut context.servers);
    let toolsets = context.switches.toolsets;
    let warnings = report.take_warnings();
    if warnings.iter().any(|it| it.kind == DiagnosticKind::UntrustedTopic) {
        workspace_trust.leave_out();
    }
    let limits = limits.under(overrides);
    let unknown_arguments = serve::unknown_arguments(&configs);
    Config {
        root,
        state_path: sources.state_path.clone(),
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
        ceiling: EffectiveLimits::default().under(&ceilings),
        grant_ceiling,
        deny,
        network,
        registries,
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
        discovery,
        unknown_arguments,
        people,
        toolsets,
        servers,
        tools,
        topics,
        own_file: own_file.map(Path::to_owned),
        private,
        protected: sources.protected.clone(),
        tool_links,
        through_links,
        home: sources.home.clone(),
    }
}

/// Returns the files that no tool may read: kitbag's own secrets and counters.
fn private(sources: &Sources<'_>, store: &SecretStore) -> Vec<PathBuf> {
    let state = sources.state.as_ref();
    let own = [state, store.file.as_ref(), store.key_file.as_ref()].into_iter().flatten();
    own.map(|path| path.value.clone()).chain(sources.private.iter().cloned()).collect()
}
