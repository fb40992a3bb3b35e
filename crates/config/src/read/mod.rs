//! Finding the workspace, and the files in it.

mod bounds;
pub(crate) mod file;
mod input;
pub(crate) mod lock;
mod own_files;
mod parser;
pub(crate) mod script;
pub(crate) mod sources;
mod texts;
mod workspace;

pub(crate) use input::{FoundScript, FoundTool, Locks, Read, Reading};
pub(crate) use workspace::{Workspace, workspace};

use std::collections::BTreeMap;
use std::sync::Arc;

use bounds::bound_tables;
use own_files::{OwnFiles, OwnScript, OwnTool};
use parser::Parser;
use texts::Texts;

use crate::config::Trust;
use crate::format::ConfigFile;
use crate::format::invalid_keys::InvalidKeys;
use crate::format::span::Table;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path;
use crate::read::file::{Layer, SourceFile};
use crate::read::lock::Lock;
use crate::read::sources::{ScriptFile, Sources, TrustSource};
use crate::report::{Piece, Report};
use crate::trust::content::OwnContent;
use crate::trust::examiner::{open_named, trust};
use crate::trust::restrictions::{NamedTool, WithheldSwitch, counts_wholly, narrowed};
use crate::trust::workspace::{TrustedBy, WorkspaceTrust};

/// The name of the embedding program's settings in messages.
const PROGRAM: &str = "Builder::tool_config";

/// Reads the files. A file that cannot be understood has no settings.
pub(crate) fn read(
    mut workspace: Workspace,
    sources: &Sources<'_>,
    reading: Reading<'_>,
    report: &mut Report,
) -> Read {
    let mut parser = Parser {
        own_file: sources.own_file(),
        invalid: InvalidKeys::default(),
        is_complete: true,
        report,
    };
    let proposed = sources.own_file().zip(sources.proposed(Layer::User)).map(|(path, text)| {
        let root = &workspace.root.value;
        SourceFile::new(path::clean(path), root, Layer::User, text.to_owned())
    });
    let user = sources.user_file.as_ref().filter(|_| proposed.is_none()).and_then(|path| {
        let mut texts = Texts::new(&workspace.root.value);
        let file = texts.user_file(path::clean(path), sources, Piece::File(None));
        parser.take(texts);
        file
    });
    let user = proposed.or(user).map(|file| (parser.config(&file), file));
    let trust = match &user {
        Some((config, file)) => {
            let before = parser.report.enter(Piece::Key("trust".to_owned()));
            let trust = trust(file, config, sources.home.as_deref(), parser.report);
            parser.report.enter(before);
            trust
        }
        None => Trust::default(),
    };
    let root = &workspace.root.value;
    let mut own = match &reading {
        Reading::Trusted(record, texts) => Some(OwnFiles::trusted(root, record, texts)),
        Reading::Found | Reading::Untrusted(_) => {
            workspace.exists.then(|| OwnFiles::find(root, sources.home.as_deref()))
        }
    };
    if let Some(text) = sources.proposed(Layer::Workspace)
        && !matches!(reading, Reading::Trusted(..))
    {
        workspace.exists = true;
        own.get_or_insert_with(|| OwnFiles::none(root, sources.home.as_deref())).propose(text);
    }
    let mut workspace_trust = match &reading {
        Reading::Untrusted(untrusted) => WorkspaceTrust::Untrusted(Box::new(untrusted.clone())),
        Reading::Trusted(record, _) => {
            WorkspaceTrust::Trusted(TrustedBy::Record(Arc::clone(record)))
        }
        Reading::Found => {
            let empty = || OwnContent::empty(&workspace.canonical);
            let content = own.as_ref().map_or_else(empty, OwnFiles::content);
            content.trust(root, &trust, sources)
        }
    };
    // Only the names of the tools of an untrusted workspace are needed.
    if workspace_trust.untrusted().is_none()
        && let Some(own) = &mut own
    {
        own.read_tools();
    }
    let ignored = own.as_mut().and_then(|own| own.distrusted(&trust, sources));
    if ignored.is_some() {
        own = None;
        workspace_trust = WorkspaceTrust::Nothing;
        workspace.exists = false;
        // A parent directory that belongs to another user does not determine the workspace.
        if matches!(workspace.root.origin, Origin::Found { .. }) {
            let start = path::settled(&sources.start);
            workspace.canonical = kitbag_fs_guard::canonical(&start);
            workspace.root = Sourced::default(start);
        }
    }

    let empty = || OwnContent::empty(&workspace.canonical);
    let own_content = own.as_ref().map_or_else(empty, OwnFiles::content);
    let edits = match workspace_trust.record() {
        Some(record) if matches!(reading, Reading::Found) => own_content.digested().changes(record),
        _ => Vec::new(),
    };
    let is_asked = sources.trust == TrustSource::Asked && ignored.is_none();
    let content = is_asked.then(|| own_content.digested());
    let is_untrusted = workspace_trust.untrusted().is_some();

    let (mut files, mut configs, mut found) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut tool_links, mut scripts, mut locks) = (Vec::new(), BTreeMap::new(), Locks::default());
    let mut keep = |file| {
        files.push(file);
        files.len() - 1
    };
    let own = own.map(|own| {
        for (name, OwnTool { wasm, manifest, .. }) in own.tools {
            let manifest = manifest.and_then(|file| {
                let config = parser.manifest(&file, &name);
                let file = keep(file);
                Some((file, config?))
            });
            let shown = file::relative(&wasm, &own.texts.root);
            found.insert(name, FoundTool { wasm, shown, manifest });
        }
        for (name, OwnScript { path, file }) in own.scripts {
            let script = match file {
                None => FoundScript::unread(&path, &own.texts.root),
                Some(file) => parser.script(file, &name, false, &mut keep),
            };
            scripts.insert(name, script);
        }
        if let Some(file) = own.lock {
            if !is_untrusted {
                locks.workspace = parser.lock(&file);
            }
            keep(file);
        }
        parser.take(own.texts);
        tool_links = own.tool_links;
        own.config
    });
    let named_script = sources.script.as_ref().and_then(|ScriptFile { name, path }| {
        let path = sources.named_path(path);
        let mut texts = Texts::new(&workspace.root.value);
        let root = workspace.exists.then_some(&*workspace.root.value);
        let opened = open_named(&path, &trust.owners(root, sources.home.as_deref()));
        let file = texts.named(path, Layer::Manifest, opened);
        parser.take(texts);
        Some((name.clone(), parser.script(file?, name, true, &mut keep)))
    });
    let own = own.flatten().map(|file| {
        let config = parser.config(&file);
        (bound_tables(config, &file, parser.report), file)
    });
    let own = own.map(|(config, file)| match is_untrusted {
        false => (config, file, Vec::new(), Vec::new()),
        true => {
            let user = user.as_ref().map(|(user, _)| user);
            let (config, named, withheld) = counting(config, user, sources, &mut workspace_trust);
            (config, file, named, withheld)
        }
    });
    // A user config without own tools needs no lock file.
    if let Some((config, file)) = &user
        && (config.has_components() || config.servers.is_some())
        && let path = Lock::path_beside(file.path())
        && path.symlink_metadata().is_ok()
    {
        let mut texts = Texts::new(&workspace.root.value);
        if let Some(file) = texts.user_file(path, sources, Piece::Lock) {
            locks.user = parser.lock(&file);
            keep(file);
        }
        parser.take(texts);
    }
    if let Some((config, file)) = user {
        configs.push((keep(file), config));
    }
    if !found.is_empty() || !scripts.is_empty() {
        workspace_trust.leave_out();
    }
    let (mut named, mut withheld) = (Vec::new(), Vec::new());
    if let Some((config, file, tools, switches)) = own {
        let file = keep(file);
        configs.push((file, config));
        named.extend(tools.into_iter().map(|tool| (file, tool)));
        withheld.extend(switches.into_iter().map(|switch| (file, switch)));
    }
    if let Some(text) = &sources.program {
        let root = &workspace.root.value;
        let file = SourceFile::new(PROGRAM.into(), root, Layer::User, text.clone());
        let config = parser.config(&file);
        configs.push((keep(file), config));
    }
    let Parser { invalid, is_complete, .. } = parser;
    Read {
        workspace,
        ignored,
        trust,
        workspace_trust,
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
        is_complete,
    }
}

fn counting(
    config: ConfigFile,
    user: Option<&ConfigFile>,
    sources: &Sources<'_>,
    trust: &mut WorkspaceTrust,
) -> (ConfigFile, Vec<NamedTool>, Vec<WithheldSwitch>) {
    let has_tool = |name: &str| {
        let mut tables =
            user.and_then(|config| config.tools.as_ref()).into_iter().flat_map(Table::iter);
        let is_own = tables.any(|entry| entry.key.value == name && entry.value.value.makes_tool());
        let is_of_program = || sources.bytes_tools.iter().any(|tool| tool.as_str() == name);
        let is_of_server = || user.is_some_and(|config| may_be_of_server(config, name));
        is_own
            || is_of_server()
            || is_of_program()
            || sources.builtins.iter().any(|builtin| builtin.name == name)
    };
    let has_topic = |id: &str| {
        let tables = user.and_then(|config| config.knowledge.as_ref());
        tables.is_some_and(|tables| tables.has(id))
    };
    if !counts_wholly(&config, has_tool, has_topic) {
        trust.leave_out();
    }
    narrowed(config, has_tool, has_topic)
}

/// Returns whether a tool of a server in the user config may have a name. Its record is not read yet.
fn may_be_of_server(user: &ConfigFile, name: &str) -> bool {
    user.servers.iter().flat_map(Table::iter).any(|entry| {
        let prefix = entry.value.value.prefix.as_ref();
        let prefix = prefix.map_or(entry.key.value.as_str(), |prefix| &prefix.value);
        let rest = name.trim_start_matches('_').strip_prefix(prefix.trim_start_matches('_'));
        rest.is_some_and(|rest| prefix.is_empty() || rest.starts_with('_'))
    })
}
