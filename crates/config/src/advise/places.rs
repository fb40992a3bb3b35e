//! Where a grant that a tool lacks would be written so that it counts.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kitbag_contract::ToolName;
use kitbag_policy::{
    DirectoryGrant, FileRefusal, MissingGrant, PathRequest, RefusedFile, StorageGrant,
};

use crate::advise::audience::Audience;
use crate::config::{Config, ConfiguredGrants, ConfiguredTool, ToolSource};
use crate::config::{DIRECTORY, FILE};
use crate::layers::origin::Origin;
use crate::read::file::Layer;
use crate::report::text::shown_path;

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
    /// The user's own, where it is known.
    Own(Option<Arc<Path>>),
    /// One of the workspace, as it is shown.
    Workspace(Arc<Path>),
}

/// What would give a tool a grant that it lacks.
///
/// Reads as ``add `"LANG"` to `tools.a.grants.env` of your user config ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantAdvice {
    /// What is to be written, all of it.
    pub lines: Vec<GrantLine>,
    /// The tool, where its file was named for this call alone: what is granted to a name does
    /// not count for it.
    unnamed: Option<ToolName>,
}

/// What would let a tool have a file of its directories that it was refused.
///
/// Reads as ``add `".env"` to `include` of `/docs` in `tools.a.grants.filesystem` of … ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAdvice {
    /// What is to be written.
    pub entry: String,
    /// The grants that it belongs to. `None`: it is the directory of a topic.
    pub place: Option<GrantPlace>,
    /// The sentence before the place.
    action: String,
}

/// What would let a tool reach a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathAdvice {
    /// Another mode of the grant that holds the path.
    Mode(FileAdvice),
    /// Another grant.
    Grant(GrantAdvice),
}

/// An entry and the list, the table or the setting that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantLine {
    /// The entry.
    pub missing: MissingGrant,
    /// Where it is written.
    pub place: GrantPlace,
}

impl GrantPlace {
    /// The path of the file; relative to the workspace where it lies inside. `None`: the
    /// user's own, which is not known.
    pub fn file(&self) -> Option<&Path> {
        match &self.file {
            GrantFile::Own(path) => path.as_deref(),
            GrantFile::Workspace(path) => Some(path),
        }
    }
}

impl Config {
    /// Where the grants of a kind stand that a tool has, by the key of the kind; in the
    /// user's own file where no file says any.
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

    /// The table of a tool's limits in the user's own file.
    pub fn place_of_limits(&self, tool: &ToolName) -> GrantPlace {
        GrantPlace { key: format!("tools.{tool}.limits"), file: self.own_grant_file() }
    }

    /// Where to write what a tool lacks so that it counts: where the grants of its kind stand,
    /// since the strongest file counts alone, and in the user's own file, where that bounds them.
    pub fn advice(
        &self,
        tool: &ToolName,
        grants: &ConfiguredGrants,
        missing: &MissingGrant,
    ) -> GrantAdvice {
        let key = missing.key;
        let has_ceiling = self.grant_ceiling.has(key);
        // Without a ceiling of the user's own there is that of the default.
        let is_default = key == StorageGrant::KEY
            && !has_ceiling
            && missing.entry == StorageGrant::default().as_setting();
        let is_bound = key != DirectoryGrant::KEY && !is_default;
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
            // A ceiling that is written for this would bind what was free.
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

    /// What to write so that a tool gets a file of its directories that it was refused, and where.
    /// `None`: nothing allows that.
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
            let action = format!("write `{setting}` for `{directory}` in");
            (setting, action)
        } else {
            let action = format!("add `{glob}` to `include` of `{directory}` in");
            (glob, action)
        };
        Some(FileAdvice { entry, place: Some(place), action })
    }

    /// What to write so that a tool reaches a path that no granted directory holds for this access.
    /// `is_directory` says whether the path is known to be a directory.
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
            // It may be read and not changed.
            Some(grant) if is_written => {
                let place = self.place_of_grants(tool, grants, DirectoryGrant::KEY);
                let entry = format!("mode = \"{}\"", request.access);
                let action = format!("write `{entry}` for `{}` in", grant.guest);
                return PathAdvice::Mode(FileAdvice { entry, place: Some(place), action });
            }
            Some(grant) => PathRequest { guest: grant.guest.clone(), access: request.access },
            None => request.to_grant(is_directory),
        };
        PathAdvice::Grant(self.advice(tool, grants, &directory.missing()))
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

    /// How a proxy that the environment names is used, if the user config ignores it.
    pub fn ignored_proxy_advice(&self, audience: Audience) -> Option<String> {
        let name = self.network.ignored_proxy?;
        let file = self.own_grant_file().named(audience);
        let action = format!("write `proxy = \"environment\"` under `[network]` in {file}");
        let action = match audience {
            Audience::Person => format!("to use it, {action}"),
            Audience::Model => audience.instruct(&action),
        };
        Some(format!("the proxy that the variable `{name}` names is not used; {action}"))
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
    /// The place, as a message to this reader names it.
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
    /// What to do, as a message to this reader puts it.
    pub fn action(&self, audience: Audience) -> String {
        match &self.place {
            Some(place) => format!("{} {}", self.action, place.named(audience)),
            None => self.action.clone(),
        }
    }
}

impl GrantAdvice {
    /// What to do, as a message to this reader puts it.
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
            lines => {
                let lines: Vec<_> = lines.iter().map(|line| line.action(audience)).collect();
                lines.join(" and ")
            }
        };
        match &self.unnamed {
            Some(name) => format!(
                "name the file of the tool under `[tools.{name}]`, run it by that name, and {action}"
            ),
            None => action,
        }
    }
}

impl PathAdvice {
    /// What is to be written, and where.
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
