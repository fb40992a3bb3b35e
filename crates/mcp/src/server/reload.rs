//! Reloads files that change while the server runs.
//!
//! Running calls keep the toolbox that they started with. A mistake disables only the tool, the
//! topic or the table that contains it, and is logged. A change that cannot be loaded at all has no
//! effect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use kitbag_base::text::{printable, shown_path};
use kitbag_config::{Broken, Config, PersonName, ToolSource};
use kitbag_host::ComponentSource;
use kitbag_toolbox::Toolbox;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};

use crate::server::Server;
use crate::server::directories;
use crate::server::generation::{Changes, Generation};

/// Time without further changes before a change is considered complete.
const QUIET: Duration = Duration::from_millis(100);

/// Maximum time that a change waits for further changes.
const PATIENCE: Duration = Duration::from_secs(1);

impl Server {
    /// Serves another toolbox, such as one with an additional tool. Running calls keep theirs, and
    /// clients are notified of the lists that have changed.
    ///
    /// When files change, the toolbox is loaded again and keeps the tools that the embedding
    /// program added to this one.
    pub fn set_toolbox(&self, toolbox: Toolbox) {
        replace(self, &self.generation(), toolbox, |_| false);
    }

    /// Starts to watch the files of the toolbox on a separate thread.
    ///
    /// Configuration is watched when this method returns, topic documents a little later.
    ///
    /// # Errors
    ///
    /// If the system's limit on watches is reached.
    pub fn watch(&self) -> Result<(), notify::Error> {
        let start = SystemTime::now();
        let (sender, events) = mpsc::channel();
        let handler = move |event| {
            // The receiver is dropped with the server.
            let _ = sender.send(event);
        };
        // Tools also open files in watched directories, without changing them.
        let changes = EventKindMask::CORE | EventKindMask::ACCESS_CLOSE;
        let notifier =
            RecommendedWatcher::new(handler, notify::Config::default().with_event_kinds(changes))?;
        let mut watch = Watch {
            notifier,
            watched: BTreeSet::new(),
            unread: Vec::new(),
            awaited: None,
            is_cut: false,
        };
        let config = self.generation().toolbox.config().clone();
        watch.follow(&config, BTreeSet::new());
        let server = self.downgrade();
        thread::Builder::new()
            .name("watch".into())
            .spawn(move || {
                watch.follow_all(&config);
                drop(config);
                let mut early = watch.changed_since(start);
                while let Some(paths) = next_change(&events, &watch, early) {
                    let Some(server) = server.upgrade() else { return };
                    if server.closing().is_cancelled() {
                        return;
                    }
                    let start = SystemTime::now();
                    watch.forget(&paths);
                    reload(&server, &mut watch, &paths);
                    early = watch.changed_since(start);
                }
            })
            .map_err(notify::Error::io)?;
        Ok(())
    }
}

struct Watch {
    notifier: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// Watched directories in which files may have changed before the watch began.
    unread: Vec<PathBuf>,
    /// The directory that must be created first for the user config to exist. Its parent directory
    /// is watched for this entry alone: it may be the home directory.
    awaited: Option<PathBuf>,
    /// Some directories are not watched because of the limit, and a warning was logged.
    is_cut: bool,
}

impl Watch {
    /// Stops watching paths that were replaced: the watch is on the old file.
    fn forget(&mut self, paths: &[PathBuf]) {
        let notifier = &mut self.notifier;
        self.watched.retain(|watched| {
            let is_same = watched.is_dir() && !paths.contains(watched);
            if !is_same {
                let _ = notifier.unwatch(watched);
            }
            is_same
        });
    }

    /// Watches exactly the directories of this configuration and of its topics' documents.
    fn follow_all(&mut self, config: &Config) {
        let mut trees = BTreeSet::new();
        let mut is_whole = true;
        for topic in documents(config) {
            is_whole &= directories::add_tree(topic, &mut trees);
        }
        if !is_whole && !std::mem::replace(&mut self.is_cut, true) {
            tracing::warn!(
                "the topics have more than {} directories or too many files; changes of documents \
                 in the deepest directories are noticed only after a restart",
                directories::MOST
            );
        }
        if config.workspace_trust.untrusted().is_some()
            && let Some(store) = config.trust_store()
            && let Err(error) = store.make()
        {
            tracing::warn!("changes of trust are noticed only after a restart: {error}");
        }
        self.follow(config, trees);
    }

    /// Watches exactly the directories of this configuration, and these.
    fn follow(&mut self, config: &Config, mut wanted: BTreeSet<PathBuf>) {
        wanted.extend(places(config));
        let parent = |path: &PathBuf| path.parent().map(Path::to_owned);
        self.awaited = missing_directory(config)
            .filter(|path| parent(path).is_some_and(|parent| !wanted.contains(&parent)));
        wanted.extend(self.awaited.as_ref().and_then(parent));
        for path in self.watched.difference(&wanted) {
            // The path and its watch may no longer exist.
            let _ = self.notifier.unwatch(path);
        }
        self.watched.retain(|place| wanted.contains(place));
        for path in wanted {
            if !self.watched.contains(&path) && path.is_dir() && !directories::is_of_kernel(&path) {
                match self.notifier.watch(&path, RecursiveMode::NonRecursive) {
                    Ok(()) => {
                        self.unread.push(path.clone());
                        self.watched.insert(path);
                    }
                    Err(error) => {
                        tracing::warn!("`{}` is not watched: {error}", shown_path(&path));
                    }
                }
            }
        }
    }

    /// Returns whether an event can change the configuration or a document.
    fn concerns(&self, event: &Event) -> bool {
        let Some(awaited) = &self.awaited else { return is_change(event.kind) };
        let is_other = |path: &PathBuf| path.parent() == awaited.parent() && path != awaited;
        is_change(event.kind) && (event.paths.is_empty() || !event.paths.iter().all(is_other))
    }

    /// Returns the paths that changed between a time and the start of their watch.
    fn changed_since(&mut self, time: SystemTime) -> Vec<PathBuf> {
        // File system timestamps use a clock that is up to 10 ms late.
        let time = time - Duration::from_millis(10);
        let is_new = |path: &Path| {
            path.symlink_metadata().and_then(|it| it.modified()).is_ok_and(|it| it > time)
        };
        let mut changed = Vec::new();
        for directory in std::mem::take(&mut self.unread) {
            if let Some(awaited) =
                self.awaited.as_ref().filter(|it| it.parent() == Some(&directory))
            {
                changed.extend(Some(awaited).filter(|path| is_new(path)).cloned());
                continue;
            }
            let entries = directory.read_dir().into_iter().flatten().flatten();
            let files = entries.take(directories::ENTRIES).map(|entry| entry.path());
            changed.extend(files.chain([directory]).filter(|path| is_new(path)));
        }
        changed
    }
}

/// Returns the directories that contain the configuration itself.
///
/// Directories are watched because an editor replaces a file rather than writing to it.
fn places(config: &Config) -> BTreeSet<PathBuf> {
    let own = config.root.value.join(".kitbag");
    let directories = [own.join("tools"), own.join("scripts")];
    let mut places = BTreeSet::from([config.root.value.clone(), own]);
    places.extend(directories);
    // The trust store.
    places.extend(config.trust_store().map(|store| store.path().to_owned()));
    // The user config, which may not exist yet, be unreadable, or be a link to a file elsewhere: a
    // removed token must be noticed.
    if let Some(file) = &config.own_file {
        let target = file.canonicalize().ok();
        let files = [Some(file), target.as_ref()].into_iter().flatten();
        places.extend(files.filter_map(|file| file.parent()).map(Path::to_owned));
    }
    places.extend(config.files.iter().filter_map(|file| file.path().parent()).map(Path::to_owned));
    for tool in config.tools.values() {
        if let ToolSource::Local(local) = &tool.source.value {
            places.extend(local.wasm.value.parent().map(Path::to_owned));
        }
    }
    places
}

/// Returns the first directory in the path of the user config that does not exist.
fn missing_directory(config: &Config) -> Option<PathBuf> {
    let directory = config.own_file.as_deref()?.parent()?;
    let is_missing = |path: &&Path| path.symlink_metadata().is_err();
    directory.ancestors().take_while(is_missing).last().map(Path::to_owned)
}

fn documents(config: &Config) -> impl Iterator<Item = &Path> {
    config.topics.values().map(|topic| topic.subjects.value.as_path())
}

/// Waits for a change, unless `paths` have already changed, and then for the quiet period. Returns
/// the changed paths.
fn next_change(
    events: &mpsc::Receiver<notify::Result<Event>>,
    watch: &Watch,
    mut paths: Vec<PathBuf>,
) -> Option<Vec<PathBuf>> {
    let mut deadline = (!paths.is_empty()).then(|| Instant::now() + PATIENCE);
    loop {
        let event = match deadline {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                events.recv_timeout(QUIET.min(left))
            }
        };
        match event {
            Ok(Ok(event)) if watch.concerns(&event) => {
                paths.extend(event.paths);
                deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            }
            Ok(Ok(_)) => {}
            // Some events were lost, so any file may have changed.
            Ok(Err(error)) => {
                tracing::warn!("watching: {error}");
                deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            }
            Err(RecvTimeoutError::Timeout) => return Some(paths),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Returns whether an event changes content. Read access does not.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

/// Applies a change. New files are watched before clients are notified.
fn reload(server: &Server, watch: &mut Watch, paths: &[PathBuf]) {
    let old = server.generation();
    // The embedding program's tools change only through `set_toolbox`.
    let loaded = server.load().and_then(|toolbox| {
        let kept = toolbox.with_program_tools_of(&old.toolbox);
        kept.map_err(|error| error.to_string())
    });
    let toolbox = match loaded {
        Ok(toolbox) => toolbox,
        Err(error) => {
            let error = error.trim_end();
            tracing::error!(
                "the configuration changed, but has mistakes; the previous one stays \
                             in use:\n{error}"
            );
            watch.follow_all(old.toolbox.config());
            return;
        }
    };
    watch.follow_all(toolbox.config());
    log_broken(&toolbox.config().broken, &old.toolbox.config().broken);
    let ignored = &toolbox.config().ignored;
    if let Some(ignored) = ignored.as_ref().filter(|_| *ignored != old.toolbox.config().ignored) {
        tracing::warn!("{ignored}");
    }
    match (old.toolbox.config().trust_notice(), toolbox.config().trust_notice()) {
        (before, Some(now)) if before.as_ref() != Some(&now) => tracing::warn!("{now}"),
        (Some(_), None) => tracing::info!("the configuration of the workspace now takes effect"),
        _ => {}
    }
    // If events were lost, any file may have changed.
    let is_changed =
        |path: &Path| paths.is_empty() || paths.iter().any(|changed| changed.starts_with(path));
    if replace(server, &old, toolbox, is_changed) {
        tracing::info!("the files changed");
    }
}

/// Logs the broken parts of the configuration that are ignored, except those that were broken
/// before.
pub fn log_broken(broken: &[Broken], before: &[Broken]) {
    let before: BTreeSet<_> = before.iter().map(Broken::to_string).collect();
    let news = broken.iter().map(|broken| (broken.is_own, broken.to_string()));
    for (is_own, line) in news.filter(|(_, line)| !before.contains(line)) {
        let line = printable(&line);
        match is_own {
            true => tracing::error!("{line}"),
            false => tracing::warn!("{line}"),
        }
    }
}

/// Makes new calls use another toolbox, and notifies clients of changed lists. Returns whether a
/// list has changed.
fn replace(
    server: &Server,
    old: &Generation,
    toolbox: Toolbox,
    is_changed: impl Fn(&Path) -> bool,
) -> bool {
    let new = Arc::new(Generation::new(toolbox, Some(old)));
    let mut changed = difference(old, &new, is_changed);
    server.replace(Arc::clone(&new));
    // From here on no request is accepted with a revoked token; this ends those that run.
    changed.people = u64::from(old.revoke_missing_from(&new));
    // Before clients are notified.
    new.toolbox.retain_components();
    new.toolbox.retain_servers();
    let is_news = changed != Changes::default();
    if is_news {
        server.tell(|changes| {
            changes.tools += changed.tools;
            changes.prompts += changed.prompts;
            changes.resources += changed.resources;
            changes.components += changed.components;
            changes.trust += changed.trust;
            changes.people += changed.people;
            for (topic, count) in changed.topics {
                *changes.topics.entry(topic).or_default() += count;
            }
        });
    }
    is_news
}

fn difference(old: &Generation, new: &Generation, is_changed: impl Fn(&Path) -> bool) -> Changes {
    let mut changes = Changes::default();
    // All clients are notified of a change of one person's list.
    for (name, old) in old.views() {
        let new = new.view(name).unwrap_or(new);
        // A list that no client has requested needs no notification.
        if let Some(known) = old.known_catalog() {
            changes.tools |= u64::from(known.tools != new.catalog().tools);
        }
        if let Some(known) = old.served.known() {
            let served = new.served.get(&new.toolbox);
            changes.prompts |= u64::from(known.prompts != served.prompts);
            let is_same =
                known.resources == served.resources && known.templates == served.templates;
            changes.resources |= u64::from(!is_same);
        }
    }
    // A person who had the tools of the server may get their own list.
    let is_new = |(name, _): (Option<&PersonName>, &Generation)| old.view(name).is_none();
    if new.views().any(is_new) {
        (changes.tools, changes.prompts, changes.resources) = (1, 1, 1);
    }
    let sources = |generation: &Generation| {
        let mut sources = generation.toolbox.component_sources();
        sources.retain(|source| !matches!(source, ComponentSource::Embedded(_)));
        sources
    };
    let (before, now) = (sources(old), sources(new));
    let is_changed_file = |source: &ComponentSource| match source {
        ComponentSource::File(file) => is_changed(&file.path),
        ComponentSource::Bytes(_) | ComponentSource::Embedded(_) => false,
    };
    changes.components = u64::from(before != now || now.iter().any(is_changed_file));
    let (old, new) = (old.toolbox.config(), new.toolbox.config());
    let is_same_trust = old.trust_notice() == new.trust_notice();
    changes.trust = u64::from(!is_same_trust);
    if old.topics != new.topics {
        (changes.prompts, changes.resources) = (1, 1);
    }
    for (id, topic) in old.topics.iter().chain(&new.topics) {
        if old.topics.get(id) != new.topics.get(id) || is_changed(&topic.subjects.value) {
            changes.topics.insert(id.to_string(), 1);
            changes.resources = 1;
        }
    }
    changes
}
