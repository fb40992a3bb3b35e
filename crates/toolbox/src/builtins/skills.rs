//! Skills: the directories with a file `SKILL.md` in a topic of skills.
//!
//! The tool `learn` decides which files may be read, with all of its rules, and calls of it are
//! logged. The host then reads these files itself, because digests need all bytes of them. It
//! follows no links.

mod front_matter;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use kitbag_base::text::shown;
use kitbag_config::Topic;
use kitbag_contract::ErrorInfo;
use kitbag_fs_guard::{FileKind, OpenAs, open};
use kitbag_secrets::OnAnswer;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::builtins::knowledge::{self, Unanswered};
use crate::builtins::learn::{enabled, error, find, grant, is_untrusted};
use crate::builtins::skills::front_matter::FrontMatter;
use crate::call::context::CallContext;
use crate::error::ToolboxError;
use crate::registry::{Toolbox, ToolboxState};
use crate::screening::annotations;

/// The name of the file that makes a directory a skill, ignoring case.
const SKILL_FILE: &str = "SKILL.md";

/// The maximum number of files of a skill. Clients need not load larger skills, by SEP-2640.
pub(crate) const FILES: usize = 512;

/// The maximum size of the files of a skill together. Clients need not load larger skills, by
/// SEP-2640.
pub(crate) const BYTES: u64 = 16 << 20;

/// The maximum size of the files that are read for one list of skills.
const LIST_BYTES: u64 = 256 << 20;

/// The maximum size of a file `SKILL.md`.
const SKILL_BYTES: u64 = 1 << 20;

/// The maximum number of problems that are listed for one topic.
const PROBLEMS: usize = 20;

/// The skills of topics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skills {
    /// The skills, by topic and directory.
    pub skills: Vec<Skill>,
    /// The number of skills that were not read.
    pub left_out: usize,
    /// The reasons why skills are missing or not served: a line for each.
    pub problems: Vec<String>,
}

/// A skill: a directory with a file `SKILL.md`. Its strings are untrusted text.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// The id of the topic.
    pub topic: String,
    /// The path of the directory in the directory of the topic, with `/`. Empty if the directory of
    /// the topic is the skill.
    pub directory: String,
    /// The path of the file `SKILL.md` in the directory of the topic.
    pub path: String,
    /// The name in the front matter. Empty if there is none.
    pub name: String,
    /// The description in the front matter, or else the first line of the text.
    pub description: String,
    /// All fields of the front matter.
    pub fields: Map<String, Value>,
    /// The files, by path. Empty if only front matter was requested.
    pub files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// The path in the directory of the skill, with `/`.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 digest of the bytes, as 64 hexadecimal digits in lower case.
    pub sha256: String,
}

impl Skill {
    /// Returns the name by which `learn` loads the skill: its name, or the path of its file without
    /// the extension.
    pub fn loadable_name(&self) -> &str {
        match &*self.name {
            "" => self.path.rsplit_once('.').map_or(&*self.path, |(name, _)| name),
            name => name,
        }
    }
}

/// The paths of the files that `learn` lists.
#[derive(Deserialize)]
struct Paths {
    subjects: Vec<String>,
    left_out: usize,
}

/// The files of a topic of skills, by the path of the `SKILL.md` of their skill.
type Found = BTreeMap<String, Vec<String>>;

pub(crate) fn has_skills(toolbox: &Toolbox) -> bool {
    let has_problems = || !toolbox.0.component_skills().problems.is_empty();
    toolbox.has_learn() && (topics(&toolbox.0).next().is_some() || has_problems())
}

/// Returns the topics of skills. A list of skills is text for a model without a call, so it omits
/// topics of an untrusted workspace.
fn topics(state: &ToolboxState) -> impl Iterator<Item = &Topic> {
    enabled(state).filter(|topic| topic.skills.value && !is_untrusted(&state.config, topic))
}

/// Reads the front matter of all skills.
pub(crate) async fn all_listed(
    toolbox: &Toolbox,
    context: &CallContext,
) -> Result<Skills, ToolboxError> {
    let mut skills = Skills::default();
    skills.problems.extend(toolbox.0.component_skills().problems.iter().cloned());
    for topic in topics(&toolbox.0) {
        skills.extend(listed(toolbox, topic, usize::MAX, context).await?);
    }
    Ok(skills)
}

/// Reads the front matter of at most `most` skills of a topic.
pub(crate) async fn listed(
    toolbox: &Toolbox,
    topic: &Topic,
    most: usize,
    context: &CallContext,
) -> Result<Skills, ToolboxError> {
    let mut skills = Skills::default();
    let found = match found(toolbox, topic, context).await? {
        Ok(found) => found,
        Err(problem) => {
            skills.problems.push(problem);
            return Ok(skills);
        }
    };
    for path in found.keys() {
        if skills.skills.len() == most {
            skills.left_out += 1;
            continue;
        }
        match read(toolbox, topic, path) {
            Ok((skill, _)) => skills.skills.push(skill),
            Err(problem) => skills.add_problem(problem),
        }
    }
    Ok(skills)
}

/// Reads all skills of all topics with the digests of their files. Skills that no client could use
/// are omitted.
pub(crate) async fn all(toolbox: &Toolbox, context: &CallContext) -> Result<Skills, ToolboxError> {
    let (mut skills, mut bytes_left) = (Skills::default(), LIST_BYTES);
    skills.problems.extend(toolbox.0.component_skills().problems.iter().cloned());
    for topic in topics(&toolbox.0) {
        let found = match found(toolbox, topic, context).await? {
            Ok(found) => found,
            Err(problem) => {
                skills.problems.push(problem);
                continue;
            }
        };
        let mut of_topic = Skills::default();
        for (path, files) in &found {
            match complete(toolbox, topic, path, files, &mut bytes_left) {
                Ok(skill) => of_topic.skills.push(skill),
                Err(problem) => of_topic.add_problem(problem),
            }
        }
        skills.extend(of_topic);
    }
    Ok(skills)
}

impl Skills {
    fn extend(&mut self, other: Self) {
        self.skills.extend(other.skills);
        self.left_out += other.left_out;
        self.problems.extend(other.problems);
    }

    fn add_problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// Returns the content of a file of a topic of skills that `learn` lists.
pub(crate) async fn file(
    toolbox: &Toolbox,
    topic: &str,
    path: &str,
    context: &CallContext,
) -> Result<Result<Vec<u8>, ErrorInfo>, ToolboxError> {
    let topic = match find(&toolbox.0, topic) {
        Ok(topic) if topics(&toolbox.0).any(|it| it.id == topic.id) => topic,
        Ok(_) => return Ok(Err(error("the topic has no skills".to_owned()))),
        Err(error) => return Ok(Err(error)),
    };
    let found = match found(toolbox, topic, context).await? {
        Ok(found) => found,
        Err(problem) => return Ok(Err(error(problem))),
    };
    if !found.values().flatten().any(|file| file == path) {
        let message = format!("topic `{}` has no file `{}`", shown(&topic.id), shown(path));
        return Ok(Err(error(message)));
    }
    let bytes = bytes(toolbox, topic, path, BYTES);
    Ok(bytes.and_then(|bytes| check(toolbox, &bytes).map(|()| bytes)).map_err(error))
}

/// Asks `learn` for the files of a topic, and assigns them to skills.
async fn found(
    toolbox: &Toolbox,
    topic: &Topic,
    context: &CallContext,
) -> Result<Result<Found, String>, ToolboxError> {
    Ok(match knowledge::ask::<Paths>(toolbox, &topic.id, "paths", context).await? {
        Ok(Paths { subjects, left_out: 0 }) => Ok(assign(subjects)),
        Ok(Paths { left_out, .. }) => Err(format!(
            "the skills of topic `{}` are not read: it has {left_out} files too many",
            shown(&topic.id)
        )),
        Err(Unanswered::Error(error)) => Err(error.message),
        Err(Unanswered::Cut) => {
            Err(format!("the skills of topic `{}` are not read", shown(&topic.id)))
        }
    })
}

/// Assigns each file to the outermost directory above it that has a `SKILL.md`. A `SKILL.md` below
/// is a file of the outer skill.
fn assign(mut paths: Vec<String>) -> Found {
    let (mut found, mut directories) = (Found::new(), BTreeMap::<String, String>::new());
    paths.sort();
    let depth = |path: &String| path.matches('/').count();
    let mut files: Vec<_> = paths.iter().filter(|path| is_skill_file(path)).cloned().collect();
    files.sort_by_key(depth);
    for path in files {
        let directory = directory_of(&path).to_owned();
        let is_inside = above(&directory).any(|above| directories.contains_key(above));
        if !is_inside {
            found.insert(path.clone(), Vec::new());
            directories.insert(directory, path);
        }
    }
    for path in paths {
        let directory = directory_of(&path);
        let skill = above(directory).find_map(|above| directories.get(above));
        if let Some(files) = skill.and_then(|skill| found.get_mut(skill)) {
            files.push(path);
        }
    }
    found
}

fn is_skill_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(SKILL_FILE))
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Returns a directory and those above it, up to the empty path.
fn above(directory: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(directory), |directory| {
        (!directory.is_empty()).then(|| directory_of(directory))
    })
}

/// Reads the front matter of a skill. The second part is the reason why no client could use it.
fn read(toolbox: &Toolbox, topic: &Topic, path: &str) -> Result<(Skill, Option<String>), String> {
    let problem = |why: &str| of_skill(topic, path, why);
    let bytes = bytes(toolbox, topic, path, SKILL_BYTES).map_err(|why| problem(&why))?;
    check(toolbox, &bytes).map_err(|why| problem(&why))?;
    let text = str::from_utf8(&bytes).map_err(|_| problem("it is not UTF-8 text"))?;
    let FrontMatter { name, description, fields } = FrontMatter::read(text);
    let unused = match (&fields, &name, &description) {
        (Err(problem), ..) => Some(problem.clone()),
        (Ok(_), None, _) => Some("its front matter has no `name`".to_owned()),
        (Ok(_), Some(_), None) => Some("its front matter has no `description`".to_owned()),
        (Ok(_), Some(name), Some(_)) if !is_name(name) => Some(format!(
            "its name `{}` may have only lower-case letters, digits and single hyphens",
            shown(name)
        )),
        (Ok(_), Some(_), Some(_)) => None,
    };
    let skill = Skill {
        topic: topic.id.clone(),
        directory: directory_of(path).to_owned(),
        path: path.to_owned(),
        name: name.unwrap_or_default(),
        description: description.or_else(|| first_line(text)).unwrap_or_default(),
        fields: fields.unwrap_or_default(),
        files: Vec::new(),
    };
    Ok((skill, unused))
}

/// Returns whether a name obeys the rules of Agent Skills.
fn is_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_alphanumeric() && !c.is_uppercase();
    let mut parts = name.split('-');
    name.chars().count() <= 64 && parts.all(|part| !part.is_empty() && part.chars().all(is_valid))
}

/// Reads a skill with the digests of its files.
fn complete(
    toolbox: &Toolbox,
    topic: &Topic,
    path: &str,
    files: &[String],
    bytes_left: &mut u64,
) -> Result<Skill, String> {
    let problem = |why: &str| of_skill(topic, path, why);
    let (mut skill, unused) = read(toolbox, topic, path)?;
    if let Some(why) = unused {
        return Err(problem(&why));
    }
    if files.len() > FILES {
        return Err(problem(&format!("it has more than {FILES} files")));
    }
    let mut skill_left = BYTES.min(*bytes_left);
    for file in files {
        let read = bytes(toolbox, topic, file, skill_left);
        let read = read.map_err(|why| problem(&format!("`{}`: {why}", shown(file))))?;
        let size = read.len() as u64;
        (skill_left, *bytes_left) = (skill_left - size, *bytes_left - size);
        let path = match &*skill.directory {
            "" => file.clone(),
            directory => file[directory.len() + 1..].to_owned(),
        };
        skill.files.push(SkillFile { path, size, sha256: hex(&Sha256::digest(&read)) });
    }
    Ok(skill)
}

fn of_skill(topic: &Topic, path: &str, why: &str) -> String {
    format!("the skill `{}` of topic `{}` is not served: {why}", shown(path), shown(&topic.id))
}

/// Reads a file in the directory of a topic, without following links in it.
fn bytes(toolbox: &Toolbox, topic: &Topic, path: &str, limit: u64) -> Result<Vec<u8>, String> {
    let root = grant(&toolbox.0, topic).map_err(|error| error.message)?.host;
    let is_plain = !path.is_empty()
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && Path::new(path).is_relative();
    if !is_plain {
        return Err("its path is invalid".to_owned());
    }
    let (opened, stat) = open(&root.join(path), OpenAs::File).map_err(|error| {
        let why = error.to_string();
        format!("it cannot be read: {}", shown(&why))
    })?;
    if stat.kind() != FileKind::File {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match bytes.len() as u64 > limit {
        true => Err(format!("it is too large: {} bytes are left", limit)),
        false => Ok(bytes),
    }
}

/// Checks content that would be masked or fenced in an answer of `learn`. The bytes of a skill
/// cannot be changed, because their digests are published.
fn check(toolbox: &Toolbox, bytes: &[u8]) -> Result<(), String> {
    let leaks = toolbox.0.secrets.leaks();
    let mut found = leaks.find(bytes);
    if let Some(leak) = found.find(|leak| leak.on_answer == OnAnswer::Redact) {
        return Err(format!("it contains what looks like {} (rule `{}`)", leak.what, leak.rule));
    }
    let is_withheld =
        str::from_utf8(bytes).is_ok_and(|text| annotations::leaves_out(&toolbox.0, text));
    match is_withheld {
        true => Err("`[output.screen]` withholds it".to_owned()),
        false => Ok(()),
    }
}

/// Returns the first line of Markdown with text, without the marks of a heading.
fn first_line(text: &str) -> Option<String> {
    let lines = text.lines().map(|line| line.trim_start_matches(['#', '\u{feff}', ' ']).trim());
    let mut lines = lines.filter(|line| !line.is_empty() && *line != "---");
    lines.next().map(str::to_owned)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_outermost_skill() {
        let check = |paths: &[&str], expected: &[(&str, &[&str])]| {
            let found = assign(paths.iter().map(|path| (*path).to_owned()).collect());
            let found: Vec<_> = found
                .iter()
                .map(|(path, files)| (&**path, files.iter().map(|file| &**file).collect()))
                .collect();
            let expected: Vec<(&str, Vec<&str>)> =
                expected.iter().map(|(path, files)| (*path, files.to_vec())).collect();
            assert_eq!(found, expected, "{paths:?}");
        };
        check(
            &["notes.md", "pdf/SKILL.md", "pdf/a/b.md", "team/csv/skill.md", "team/x.md"],
            &[
                ("pdf/SKILL.md", &["pdf/SKILL.md", "pdf/a/b.md"]),
                ("team/csv/skill.md", &["team/csv/skill.md"]),
            ],
        );
        check(
            &["pdf/SKILL.md", "pdf/inner/SKILL.md", "pdf-2/SKILL.md"],
            &[
                ("pdf-2/SKILL.md", &["pdf-2/SKILL.md"]),
                ("pdf/SKILL.md", &["pdf/SKILL.md", "pdf/inner/SKILL.md"]),
            ],
        );
        check(&["SKILL.md", "a/SKILL.md"], &[("SKILL.md", &["SKILL.md", "a/SKILL.md"])]);
    }

    #[test]
    fn names_obey_the_rules_of_agent_skills() {
        for (name, expected) in [
            ("pdf", true),
            ("pdf-2", true),
            ("größe", true),
            ("PDF", false),
            ("-pdf", false),
            ("a--b", false),
            ("a b", false),
            ("", false),
        ] {
            assert_eq!(is_name(name), expected, "{name}");
        }
        assert!(!is_name(&"a".repeat(65)));
    }

    #[test]
    fn first_line_skips_marks() {
        assert_eq!(first_line("\u{feff}\n# PDF files\n").as_deref(), Some("PDF files"));
        assert_eq!(first_line("\n---\n").as_deref(), None);
    }
}
