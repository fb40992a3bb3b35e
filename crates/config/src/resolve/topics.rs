//! The topics of the team's knowledge.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use kitbag_base::text::{is_hidden, nearest, shown, shown_path};
use kitbag_contract::ToolName;
use kitbag_fs_guard::canonical;
use kitbag_glob::Glob;

use super::context::{Context, tables};
use super::user::secret_files;
use crate::config::{ConfiguredTool, DIRECTORY, SKILLS, Topic, USER_SKILLS, WORKSPACE_SKILLS};
use crate::format::TopicConfig;
use crate::format::key::KeyPath;
use crate::format::span::{At, Part, Written, all, copied, last, merge};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::is_fixed;
use crate::read::file::Layer;
use crate::report::text::did_you_mean;
use crate::report::{Diagnostic, DiagnosticKind, Piece, Problem, Report};
use crate::trust::workspace::{TrustedBy, WorkspaceTrust};

/// The maximum length of an id, in characters.
const MAX_ID_CHARS: usize = 64;

pub(super) fn topics(context: &Context<'_>, report: &mut Report) -> BTreeMap<String, Topic> {
    let mut topics = BTreeMap::new();
    let found = skill_directories(context);
    // The topic with each name, by the name in lower case.
    let mut names: HashMap<String, &str> = HashMap::new();
    for parts in merge(tables(context.configs, |config| config.knowledge.as_ref())) {
        let key = parts[0].key;
        report.enter(Piece::Topic(key.value.to_owned()));
        let directory = found.iter().find(|directory| directory.id == key.value);
        if key.value == USER_SKILLS
            && let Some(part) = parts.iter().find(|part| part.at.file.layer() != Layer::User)
        {
            let problem = format!("the topic `{USER_SKILLS}` can be set only in the user config");
            report.at(part.key, problem);
        }
        let Some(topic) = topic(context, &parts, directory, report) else { continue };
        let subjects = last(&parts, |topic| topic.subjects.as_ref());
        let is_of_user = match (subjects, directory) {
            (Some(at), _) => at.file.layer() == Layer::User,
            (None, Some(directory)) => directory.is_of_user(),
            (None, None) => true,
        };
        if leads_out(context, &topic, is_of_user, report) {
            continue;
        }
        // A disabled topic leaves its names to others.
        if topic.enable.value {
            let title = last(&parts, |topic| topic.title.as_ref());
            let title = title.map(|title| title.with(title.value.as_str()));
            for name in [Some(key), title].into_iter().flatten() {
                let other = *names.entry(name.value.to_lowercase()).or_insert(key.value);
                if other != key.value {
                    let problem = format!(
                        "topics `{}` and `{}` are both named `{}`, ignoring case; give one of \
                         them another title or id",
                        shown(key.value),
                        shown(other),
                        shown(name.value)
                    );
                    report.at(name, problem);
                }
            }
        }
        topics.insert(topic.id.clone(), topic);
    }
    report.enter(Piece::Everything);
    for directory in found.iter().filter(|directory| !has_table(context, directory.id)) {
        let topic = directory.topic(context);
        if !leads_out(context, &topic, directory.is_of_user(), report) {
            topics.insert(topic.id.clone(), topic);
        }
    }
    topics
}

/// A directory of skills that is a topic without configuration.
struct SkillDirectory {
    id: &'static str,
    path: PathBuf,
    origin: Origin,
}

impl SkillDirectory {
    fn is_of_user(&self) -> bool {
        self.id == USER_SKILLS
    }

    fn subjects(&self) -> Sourced<PathBuf> {
        Sourced { value: self.path.clone(), origin: self.origin.clone() }
    }

    fn within(&self, context: &Context<'_>) -> Option<PathBuf> {
        if self.is_of_user() { None } else { within_workspace(context, &self.path) }
    }

    fn topic(&self, context: &Context<'_>) -> Topic {
        Topic {
            within: self.within(context),
            ..Topic::of_skills(self.id.to_owned(), self.subjects())
        }
    }
}

/// Returns the existing directories of skills: `.kitbag/skills`, and the one beside the user
/// config.
fn skill_directories(context: &Context<'_>) -> Vec<SkillDirectory> {
    let shown = Path::new(DIRECTORY).join(SKILLS);
    let of_workspace = (!context.is_ignored).then(|| SkillDirectory {
        id: WORKSPACE_SKILLS,
        path: context.bases.root.join(&shown),
        origin: Origin::Found { path: shown.into() },
    });
    let beside = context.own_file.and_then(Path::parent);
    let of_user = beside.map(|directory| SkillDirectory {
        id: USER_SKILLS,
        path: directory.join(SKILLS),
        origin: Origin::Default,
    });
    // The user config may be in the directory `.kitbag` of the home directory.
    let is_same =
        of_workspace.as_ref().zip(of_user.as_ref()).is_some_and(|(a, b)| a.path == b.path);
    let of_workspace = of_workspace.filter(|_| !is_same);
    let directories = of_workspace.into_iter().chain(of_user);
    directories.filter(|directory| directory.path.is_dir()).collect()
}

fn has_table(context: &Context<'_>, id: &str) -> bool {
    let mut tables = tables(context.configs, |config| config.knowledge.as_ref());
    tables.any(|(_, table)| table.iter().any(|entry| entry.key.value == id))
}

fn topic(
    context: &Context<'_>,
    parts: &[Part<'_, TopicConfig>],
    directory: Option<&SkillDirectory>,
    report: &mut Report,
) -> Option<Topic> {
    let Part { key, at } = parts[0];
    let id = key.value;
    if !is_id(id) {
        let problem = format!(
            "`{}` is not a topic id: use 1 to 64 characters, without `/`, invisible characters, or \
             spaces at the ends",
            shown(id)
        );
        report.at(key, problem);
    }
    let title = copied(parts, |topic| topic.title.as_ref());
    if let Some(at) =
        last(parts, |topic| topic.title.as_ref()).filter(|at| at.value.trim().is_empty())
    {
        let problem =
            format!("the title of topic `{}` is empty; remove it to show the id", shown(id));
        report.at(at, problem);
    }
    let learned = strings(parts, |topic| topic.learned.as_ref());
    let globs = [
        all(parts, |topic| topic.learned.as_ref()).collect::<Vec<_>>(),
        all(parts, |topic| topic.include.as_ref()).collect(),
        all(parts, |topic| topic.disabled.as_ref()).collect(),
    ];
    for layer in globs.into_iter().flatten() {
        secret_files::globs(layer, report);
    }
    let written = last(parts, |topic| topic.subjects.as_ref());
    let subjects = match (written, directory) {
        (Some(subjects), _) => context.path(subjects, report).map(|path| subjects.sourced(path)),
        (None, Some(directory)) => Some(directory.subjects()),
        // The directory of these topics may be absent.
        (None, None) if matches!(id, WORKSPACE_SKILLS | USER_SKILLS) => None,
        (None, None) => {
            let base = KeyPath::ROOT.key("knowledge");
            if !context.invalid.covers(&base.key(id).key("subjects")) {
                let problem = format!(
                    "topic `{}` has no `subjects`; add the directory of its documents",
                    shown(id)
                );
                report.at(at, problem);
            }
            None
        }
    };
    let subjects = subjects?;
    let directory = directory.filter(|_| written.is_none());
    let within = match directory {
        Some(directory) => directory.within(context),
        None => within(context, &subjects.value, written),
    };
    let is_of_skills = Sourced::default(directory.is_some());
    Some(Topic {
        id: id.to_owned(),
        subjects,
        within,
        enable: copied(parts, |topic| topic.enable.as_ref()).unwrap_or(Sourced::default(true)),
        title: title.unwrap_or_else(|| Sourced::default(id.to_owned())),
        introduction: copied(parts, |topic| topic.introduction.as_ref()),
        description: copied(parts, |topic| topic.description.as_ref()),
        skills: copied(parts, |topic| topic.skills.as_ref()).unwrap_or(is_of_skills),
        learned,
        include: strings(parts, |topic| topic.include.as_ref()),
        disabled: strings(parts, |topic| topic.disabled.as_ref()),
        entries: entries("learned", last(parts, |topic| topic.learned.as_ref()))
            .chain(entries("disabled", last(parts, |topic| topic.disabled.as_ref())))
            .collect(),
    })
}

/// Returns the directory that must contain the documents of a topic when they are read. Links of a
/// workspace may lead out of it only with a person's consent.
fn within(context: &Context<'_>, subjects: &Path, at: Option<At<'_, String>>) -> Option<PathBuf> {
    let is_of_user = at.is_some_and(|at| at.file.layer() == Layer::User && is_fixed(at.value));
    if is_of_user {
        return None;
    }
    within_workspace(context, subjects)
}

/// Returns the directory that must contain the documents of a topic of the workspace.
fn within_workspace(context: &Context<'_>, subjects: &Path) -> Option<PathBuf> {
    match context.trust {
        WorkspaceTrust::Nothing | WorkspaceTrust::Untrusted(_) => {
            Some(context.canonical_root.to_owned())
        }
        // The record contains the target of each link.
        WorkspaceTrust::Trusted(TrustedBy::Record(_)) => Some(canonical(subjects)),
        WorkspaceTrust::Trusted(_) => None,
    }
}

/// Returns whether a topic of an untrusted workspace is outside of the workspace, or in a directory
/// that looks like a secret. A warning names it.
fn leads_out(context: &Context<'_>, topic: &Topic, is_of_user: bool, report: &mut Report) -> bool {
    if !context.is_untrusted() || is_of_user {
        return false;
    }
    let path = canonical(&topic.subjects.value);
    let below = path.strip_prefix(context.canonical_root);
    let leads_out = below.map_or(true, |below| context.guard.secrets().are_entered_by(below));
    if leads_out {
        let message = format!(
            "the topic `{}` is ignored: `{}` is outside the workspace or looks like a secret, and \
             the workspace is not trusted; see `kitbag trust`",
            shown(&topic.id),
            shown_path(&path)
        );
        let problem = Problem::new(DiagnosticKind::UntrustedTopic, message);
        report.warn(problem.at(topic.subjects.origin.clone()));
    }
    leads_out
}

fn strings<'a>(
    parts: &[Part<'a, TopicConfig>],
    field: impl Fn(&'a TopicConfig) -> Option<&'a Written<Vec<Written<String>>>>,
) -> Sourced<Vec<String>> {
    let values = |at: &[Written<String>]| at.iter().map(|element| element.value.clone()).collect();
    last(parts, field).map_or(Sourced::default(Vec::new()), |at| at.sourced(values(at.value)))
}

impl Topic {
    /// Returns the entries of `learned` and `disabled` that match no subject and no other name of a
    /// file in the directory, each with a suggestion. A tool in `disabled` is also likely a
    /// mistake.
    pub fn unmatched(
        &self,
        subjects: &[String],
        files: &[String],
        tools: &BTreeMap<ToolName, ConfiguredTool>,
    ) -> Vec<Diagnostic> {
        let is_matched = |entry: &str| match Glob::new(entry) {
            Ok(glob) => {
                subjects.iter().chain(files).any(|name| name == entry || glob.matches(name))
            }
            // The entry was already refused.
            Err(_) => true,
        };
        let unmatched = self.entries.iter().filter(|(_, entry)| !is_matched(&entry.value));
        let diagnostic = |(key, entry): &(&'static str, Sourced<String>)| {
            let Sourced { value: name, origin } = entry.clone();
            let near = nearest(&name, subjects.iter().map(String::as_str));
            let is_tool = *key == "disabled" && tools.contains_key(&*name);
            let hint = did_you_mean(near).or_else(|| {
                is_tool.then(|| {
                    format!(
                        "this list is for subjects; to switch off the tool, set `enable = false` \
                         in `[tools.{name}]`"
                    )
                })
            });
            let message = format!(
                "`{}` in `knowledge.{}.{key}` matches no subject",
                shown(&name),
                shown(&self.id)
            );
            Problem::from(message).hint(hint).at(origin)
        };
        unmatched.map(diagnostic).collect()
    }
}

fn entries(
    key: &'static str,
    list: Option<At<'_, Vec<Written<String>>>>,
) -> impl Iterator<Item = (&'static str, Sourced<String>)> {
    let entries = list.map(|list| list.value.iter().map(move |entry| entry.at(list.file)));
    entries.into_iter().flatten().map(move |at| (key, at.sourced(at.value.clone())))
}

/// Returns whether a string can be the id of a topic: short, visible, and not a path.
fn is_id(id: &str) -> bool {
    let length = id.chars().count();
    (1..=MAX_ID_CHARS).contains(&length)
        && id.trim() == id
        && !id.contains(|c| c == '/' || is_hidden(c))
}
