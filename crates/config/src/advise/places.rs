//! The place to add a missing grant so that it takes effect.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kitbag_base::text::{shown, shown_path};
use kitbag_contract::ToolName;
use kitbag_policy::{
    DefaultCeiling, DirectoryGrant, FileRefusal, KindInfo, MissingGrant, PathRequest, RefusedFile,
};

use crate::advise::audience::Audience;
use crate::config::{Config, ConfiguredGrants, ConfiguredTool, ToolSource};
use crate::config::{DIRECTORY, FILE};
use crate::layers::origin::Origin;
use crate::read::file::Layer;

/// The table of a tool's grants or limits, or a list in it, in a file.
///
/// Reads as `` `tools.fetch.grants.http` of your user config `/home/a/.config/kitbag/config.toml` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantPlace {
    /// The dotted key.
    pub key: String,
    file: GrantFile,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GrantFile {
    /// The user config; `None` if its path is unknown.
    Own(Option<Arc<Path>>),
    /// A file of the workspace, by its displayed path.
    Workspace(Arc<Path>),
}

/// The lines that would give a tool a missing grant.
///
/// Reads as ``add `"LANG"` to `tools.a.grants.env` of your user config ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantAdvice {
    /// All lines to add.
    pub lines: Vec<GrantLine>,
    /// The tool, if its file was named for this call only: grants to a name do not apply to it.
    unnamed: Option<ToolName>,
}

/// The entry that would let a tool use a refused file of its directories.
///
/// Reads as ``add `".env"` to `include` of `/docs` in `tools.a.grants.filesystem` of … ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAdvice {
    /// The entry to add.
    pub entry: String,
    /// The grants that the entry belongs to. `None`: the directory of a topic.
    pub place: Option<GrantPlace>,
    action: String,
}

/// The change that would let a tool reach a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathAdvice {
    /// Another mode of the grant that holds the path.
    Mode(FileAdvice),
    /// Another grant.
    Grant(GrantAdvice),
}

/// An entry, and the list, table or setting that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantLine {
    /// The entry.
    pub missing: MissingGrant,
    /// The place to add it.
    pub place: GrantPlace,
}

impl GrantPlace {
    /// Returns the path of the file, relative to the workspace if the file is inside it. `None`:
    /// the user config, whose path is unknown.
    pub fn file(&self) -> Option<&Path> {
        match &self.file {
            GrantFile::Own(path) => path.as_deref(),
            GrantFile::Workspace(path) => Some(path),
        }
    }
}

impl Config {
    /// Returns the place of a tool's grants of a kind, by the kind's key. If no file has such
    /// grants, this is the user config.
    pub fn place_of_grants(
        &self,
        tool: &ToolName,
        grants: &ConfiguredGrants,
        kind: &str,
    ) -> GrantPlace {
        let mut place = self.grants_table(tool, grants, kind);
        place.key = format!("{}.{kind}", place.key);
        place
    }

    /// Returns the table of a tool's limits in the user config.
    pub fn place_of_limits(&self, tool: &ToolName) -> GrantPlace {
        GrantPlace { key: format!("tools.{tool}.limits"), file: self.own_grant_file() }
    }

    /// Returns the entries to add so that a tool gets a missing grant.
    ///
    /// They belong in the file with the current grants of the kind, since only the strongest file
    /// takes effect, and in the user config if its ceiling limits them.
    pub fn advice(
        &self,
        tool: &ToolName,
        grants: &ConfiguredGrants,
        missing: &MissingGrant,
    ) -> GrantAdvice {
        let key = missing.key;
        let has_ceiling = self.grant_ceiling.has(key);
        let is_bound = match KindInfo::of_key(key).map(|kind| kind.ceiling) {
            Some(DefaultCeiling::Unlimited) => false,
            // Without a ceiling in the user config, the default ceiling applies.
            Some(DefaultCeiling::Setting(default)) => has_ceiling || missing.entry != default(),
            Some(DefaultCeiling::Nothing) | None => true,
        };
        let is_free = self.workspace_trust.is_trusted() && !has_ceiling;
        let list = self.grants_table(tool, grants, key);
        let line = |missing: &MissingGrant, table: GrantPlace| GrantLine {
            place: GrantPlace { key: missing.place(&table.key), ..table },
            missing: missing.clone(),
        };
        let own = |missing: &MissingGrant, key: String| {
            line(missing, GrantPlace { key, file: self.own_grant_file() })
        };
        let lines = match (&list.file, grants.is_of_workspace) {
            _ if !is_bound => vec![line(missing, list)],
            (GrantFile::Own(_), false) => vec![line(missing, list)],
            (GrantFile::Workspace(_), _) if is_free => vec![line(missing, list)],
            // A ceiling that is added for this grant would limit grants that were unlimited.
            (GrantFile::Own(_), true) if is_free => {
                let file = Path::new(DIRECTORY).join(FILE);
                vec![line(missing, GrantPlace { file: GrantFile::Workspace(file.into()), ..list })]
            }
            (_, true) => {
                vec![line(missing, list), own(&missing.of_ceiling(), "ceiling.grants".into())]
            }
            (GrantFile::Workspace(_), false) => {
                vec![line(missing, list), own(missing, own_table(tool))]
            }
        };
        let is_unnamed = |it: &&ConfiguredTool| {
            it.source.origin == Origin::Caller
                && matches!(it.source.value, ToolSource::Local(_) | ToolSource::Script(_))
        };
        let unnamed = self.tools.get(tool).filter(is_unnamed).map(|it| it.name.clone());
        GrantAdvice { lines, unnamed }
    }

    /// Returns the entry to add so that a tool gets a refused file of its directories. `None`: no
    /// entry allows that.
    pub fn file_advice(
        &self,
        tool: &ToolName,
        grants: &ConfiguredGrants,
        refused: &RefusedFile,
    ) -> Option<FileAdvice> {
        let RefusedFile { directory, why, .. } = refused;
        let glob = refused.as_include();
        let setting = match why {
            FileRefusal::Private => return None,
            FileRefusal::Secret => format!("include = [{glob}]"),
            FileRefusal::Protected => "protected = []".to_owned(),
            FileRefusal::NewDotName => format!("protected = {}", refused.as_exception()),
        };
        let own = grants.value.directories.iter().find(|grant| grant.guest == *directory);
        let Some(DirectoryGrant { access, .. }) = own else {
            let action = format!("add `{glob}` to `include` of the topic");
            return Some(FileAdvice { entry: glob, place: None, action });
        };
        let place = self.place_of_grants(tool, grants, DirectoryGrant::KEY);
        let is_unwritten =
            matches!(grants.origin_of(DirectoryGrant::KEY), Origin::Default | Origin::Tool);
        let (entry, action) = if is_unwritten {
            let entry =
                format!(r#"{{ host = ".", guest = "{directory}", mode = "{access}", {setting} }}"#);
            let action = format!("add `{entry}` to");
            (entry, action)
        } else if *why != FileRefusal::Secret {
            let action = format!("set `{setting}` for `{directory}` in");
            (setting, action)
        } else {
            let action = format!("add `{glob}` to `include` of `{directory}` in");
            (glob, action)
        };
        Some(FileAdvice { entry, place: Some(place), action })
    }

    /// Returns the entry to add so that a tool reaches a path that no granted directory holds with
    /// this access. `is_directory`: the path is known to be a directory.
    pub fn path_advice(
        &self,
        tool: &ToolName,
        grants: &ConfiguredGrants,
        request: &PathRequest,
        is_directory: bool,
    ) -> PathAdvice {
        let holding = grants.value.directories.iter();
        let holding = holding
            .filter(|grant| grant.guest.contains(&request.guest))
            .max_by_key(|grant| grant.guest.as_str().len());
        let is_written =
            !matches!(grants.origin_of(DirectoryGrant::KEY), Origin::Default | Origin::Tool);
        let directory = match holding {
            // The path is readable but not writable.
            Some(grant) if is_written => {
                let place = self.place_of_grants(tool, grants, DirectoryGrant::KEY);
                let entry = format!("mode = \"{}\"", request.access);
                let action = format!("set `{entry}` for `{}` in", grant.guest);
                return PathAdvice::Mode(FileAdvice { entry, place: Some(place), action });
            }
            Some(grant) => PathRequest { guest: grant.guest.clone(), access: request.access },
            None => request.to_grant(is_directory),
        };
        // A person who names an existing directory of this machine means that directory.
        let guest = directory.guest.as_str();
        let is_host = guest != "/" && Path::new(guest).is_dir();
        let missing = if is_host { directory.missing_in(guest) } else { directory.missing() };
        let mut advice = self.advice(tool, grants, &missing);
        if holding.is_none() && !is_written {
            // A list replaces the default, so it repeats the default directories.
            let kept = grants.value.directories.iter().map(|grant| {
                let DirectoryGrant { guest, access, .. } = grant;
                PathRequest { guest: guest.clone(), access: *access }.missing()
            });
            let place = advice.lines[0].place.clone();
            let kept = kept.map(|missing| GrantLine { missing, place: place.clone() });
            advice.lines = kept.chain(advice.lines).collect();
        }
        PathAdvice::Grant(advice)
    }

    fn grants_table(&self, tool: &ToolName, grants: &ConfiguredGrants, kind: &str) -> GrantPlace {
        let own = GrantPlace { key: own_table(tool), file: self.own_grant_file() };
        let Origin::File { path, .. } = grants.origin_of(kind) else { return own };
        match self.files.iter().find(|file| file.shown() == path).map(|file| file.layer()) {
            None | Some(Layer::User) => own,
            Some(Layer::Workspace) => {
                GrantPlace { file: GrantFile::Workspace(path.clone()), ..own }
            }
            Some(Layer::Manifest) => {
                GrantPlace { key: "grants".into(), file: GrantFile::Workspace(path.clone()) }
            }
        }
    }

    /// Tells how to use a proxy from the environment, if the user config ignores it.
    pub fn ignored_proxy_advice(&self, audience: Audience) -> Option<String> {
        let name = self.network.ignored_proxy?;
        let file = self.own_grant_file().named(audience);
        let action = format!("set `proxy = \"environment\"` under `[network]` in {file}");
        let action = match audience {
            Audience::Person => format!("to use it, {action}"),
            Audience::Model => audience.instruct(&action),
        };
        Some(format!("the proxy in the variable `{name}` is not used; {action}"))
    }

    /// Tells a person how to let the proxy resolve names. This skips the check of addresses, so a
    /// model is not told.
    pub fn proxy_resolution_advice(&self, audience: Audience) -> Option<String> {
        let has_proxy = self.network.proxies.as_ref().is_some_and(|it| !it.value.is_empty());
        if audience == Audience::Model || !has_proxy || self.network.proxy_resolves() {
            return None;
        }
        let file = self.own_grant_file().named(audience);
        Some(format!(
            "kitbag resolves names itself; if only your proxy can resolve this one, set \
             `resolve = \"proxy\"` under `[network]` in {file}: the addresses are then not checked"
        ))
    }

    fn own_grant_file(&self) -> GrantFile {
        GrantFile::Own(self.own_file.as_deref().map(Arc::from))
    }
}

fn own_table(tool: &ToolName) -> String {
    format!("tools.{tool}.grants")
}

impl GrantFile {
    fn named(&self, audience: Audience) -> String {
        match self {
            Self::Own(path) => audience.own_file(path),
            Self::Workspace(path) => format!("`{}`", shown_path(path)),
        }
    }
}

impl GrantPlace {
    /// Formats the place for a message to this reader.
    pub fn named(&self, audience: Audience) -> String {
        format!("`{}` of {}", self.key, self.file.named(audience))
    }
}

impl GrantLine {
    fn action(&self, audience: Audience) -> String {
        self.missing.advice(&self.place.named(audience))
    }
}

impl FileAdvice {
    /// Formats the advice for a message to this reader.
    pub fn action(&self, audience: Audience) -> String {
        match &self.place {
            Some(place) => format!("{} {}", self.action, place.named(audience)),
            None => self.action.clone(),
        }
    }
}

impl GrantAdvice {
    /// Formats the advice for a message to this reader.
    pub fn action(&self, audience: Audience) -> String {
        let action = match &self.lines[..] {
            [one, other] if one.missing == other.missing => {
                let named = |line: &GrantLine| line.place.named(audience);
                let (one_place, other_place) = (&one.place, &other.place);
                let places = match one_place.file == other_place.file {
                    true => format!("`{}` and {}", one_place.key, named(other)),
                    false if one_place.key == other_place.key => {
                        format!("{} and of {}", named(one), other_place.file.named(audience))
                    }
                    false => format!("{} and {}", named(one), named(other)),
                };
                one.missing.advice(&places)
            }
            [first, rest @ ..]
                if !rest.is_empty() && rest.iter().all(|line| line.place == first.place) =>
            {
                let entry = |line: &GrantLine| format!("`{}`", shown(&line.missing.entry));
                let entries: Vec<_> = self.lines.iter().map(entry).collect();
                format!("add {} to {}", entries.join(" and "), first.place.named(audience))
            }
            lines => {
                let lines: Vec<_> = lines.iter().map(|line| line.action(audience)).collect();
                lines.join(" and ")
            }
        };
        match &self.unnamed {
            Some(name) => format!(
                "declare the file of the tool under `[tools.{name}]`, run it by that name, and \
                 {action}"
            ),
            None => action,
        }
    }
}

impl PathAdvice {
    /// Returns each line to add, with its place.
    pub fn lines(&self) -> Vec<(&str, &GrantPlace)> {
        match self {
            Self::Mode(advice) => {
                advice.place.iter().map(|place| (&*advice.entry, place)).collect()
            }
            Self::Grant(advice) => {
                advice.lines.iter().map(|line| (&*line.missing.entry, &line.place)).collect()
            }
        }
    }
}

impl fmt::Display for GrantPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(Audience::Person))
    }
}

impl fmt::Display for FileAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action(Audience::Person))
    }
}

impl fmt::Display for PathAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(advice) => advice.fmt(f),
            Self::Grant(advice) => advice.fmt(f),
        }
    }
}

impl fmt::Display for GrantAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action(Audience::Person))
    }
}
