//! Skills: the extension `io.modelcontextprotocol/skills` (SEP-2640).
//!
//! A file of a skill is `skill://<topic>/<skill-path>/<file-path>`, and the last part of the skill's
//! path is its name. Clients without the extension read the same resources.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kitbag_base::text::{printable, shown};
use kitbag_toolbox::{Skill, Toolbox, ToolboxError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    DIRECTORY_MIME_TYPE, GetSkillRequestParams, GetSkillResult, ListResourcesResult,
    ListSkillsResult, PaginatedRequestParams, ReadResourceDirectoryRequestParams,
    ReadResourceDirectoryResult, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, Skill as SkillEntry, SkillFrontmatter, SkillResource, SkillResources,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::methods::call::{call_context, warn_unlogged};
use crate::methods::knowledge::{MIME_TYPE, not_found};
use crate::methods::outcome::internal;
use crate::methods::page::page;
use crate::session::Session;

pub(crate) const SCHEME: &str = "skill://";

/// Characters that are not escaped in a part of a URI.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The skills that can be served.
pub(crate) struct ServedSkills(Vec<ServedSkill>);

pub(crate) struct ServedSkill {
    /// The entry in `skills/list`.
    entry: SkillEntry,
    skill: Skill,
    /// The URI of the directory, with `/` at its end.
    root: String,
}

/// A file that is read.
struct Found<'a> {
    skill: &'a Skill,
    /// The path in the directory of the skill.
    path: &'a str,
    /// The file as it is published.
    published: &'a SkillResource,
}

impl ServedSkills {
    /// Reads the skills of all topics. Skills that break the rules of the extension are logged and
    /// omitted: a client would refuse them.
    pub(crate) async fn read(
        session: &Session,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let toolbox = session.generation().toolbox.clone();
        let skills = toolbox.skills(call_context(session, context)).await.map_err(failed)?;
        warn_unlogged(&toolbox);
        let mut problems = skills.problems;
        let mut served = Vec::<ServedSkill>::new();
        for skill in skills.skills {
            let named = format!("the skill `{}`", shown(&skill.path));
            let skill = ServedSkill::new(skill);
            if let Err(error) = skill.entry.validate() {
                let error = error.to_string();
                problems.push(format!("{named} is not served: {}", shown(&error)));
            } else if served.iter().any(|other| other.root == skill.root) {
                problems.push(format!("{named} is not served: another skill has the same name"));
            } else if !is_shown(&toolbox, &skill) {
                problems.push(format!("{named} is not served: `[output.screen]` withholds it"));
            } else {
                served.push(skill);
            }
        }
        for problem in problems {
            tracing::warn!("skills: {}", printable(&problem));
        }
        served.sort_by(|one, other| one.entry.uri.cmp(&other.entry.uri));
        Ok(Self(served))
    }

    /// Returns a resource for each file of each skill.
    pub(crate) fn resources(&self) -> impl Iterator<Item = Resource> {
        self.0.iter().flat_map(ServedSkill::resources)
    }

    /// Returns whether a subject of a topic is a file of a served skill, by its slug.
    pub(crate) fn has_subject(&self, topic: &str, slug: &str) -> bool {
        let is_inside = |skill: &ServedSkill| {
            let Skill { topic: own, directory, .. } = &skill.skill;
            let rest = slug.strip_prefix(&**directory);
            own == topic && (directory.is_empty() || rest.is_some_and(|it| it.starts_with('/')))
        };
        self.0.iter().any(is_inside)
    }

    fn find(&self, uri: &str) -> Option<Found<'_>> {
        self.0.iter().find_map(|skill| skill.find(uri))
    }
}

/// Returns whether no text of a listed skill is withheld from clients.
fn is_shown(toolbox: &Toolbox, skill: &ServedSkill) -> bool {
    let fields = serde_json::to_string(&skill.skill.fields).unwrap_or_default();
    !toolbox.leaves_out(&fields)
}

impl ServedSkill {
    fn new(skill: Skill) -> Self {
        let parent = skill.directory.rsplit_once('/').map_or("", |(parent, _)| parent);
        let mut root = format!("{SCHEME}{}/", encoded(&skill.topic));
        for part in parent.split('/').filter(|part| !part.is_empty()) {
            root.push_str(&encoded(part));
            root.push('/');
        }
        root.push_str(&encoded(&skill.name));
        root.push('/');
        let files = skill.files.iter().map(|file| {
            let digest = format!("sha256:{}", file.sha256);
            SkillResource::new(uri(&root, &file.path), digest, file.size)
        });
        let files = SkillResources::Files(files.collect());
        let mut front_matter = SkillFrontmatter::new("", "");
        front_matter.extra = skill.fields.clone();
        // As they are written, not without spaces at their ends.
        let mut text = |key| match front_matter.extra.remove(key) {
            Some(serde_json::Value::String(text)) => text,
            _ => String::new(),
        };
        (front_matter.name, front_matter.description) = (text("name"), text("description"));
        let own = skill.path.rsplit('/').next().unwrap_or_default();
        let entry = SkillEntry::new(uri(&root, own), front_matter, files);
        Self { entry, skill, root }
    }

    fn files(&self) -> impl Iterator<Item = (&str, &SkillResource)> {
        let published = match &self.entry.resources {
            SkillResources::Files(files) => &files[..],
            _ => &[],
        };
        self.skill.files.iter().map(|file| &*file.path).zip(published)
    }

    fn resources(&self) -> impl Iterator<Item = Resource> {
        self.files().map(|(path, published)| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let mut resource = match published.uri == self.entry.uri {
                true => Resource::new(&published.uri, &self.skill.name)
                    .with_description(&self.skill.description),
                false => Resource::new(&published.uri, name),
            };
            resource.mime_type = mime_type(path).map(str::to_owned);
            resource.size = Some(published.size);
            resource
        })
    }

    fn find(&self, uri: &str) -> Option<Found<'_>> {
        let rest = decoded(uri)?;
        let root = decoded(&self.root)?;
        let path = rest.strip_prefix(&*root)?;
        let (path, published) = self.files().find(|(own, _)| *own == path)?;
        Some(Found { skill: &self.skill, path, published })
    }
}

pub(crate) async fn list(
    session: &Session,
    request: Option<PaginatedRequestParams>,
    context: &RequestContext<RoleServer>,
) -> Result<ListSkillsResult, ErrorData> {
    let served = ServedSkills::read(session, context).await?;
    let entries: Vec<_> = served.0.into_iter().map(|skill| skill.entry).collect();
    let (skills, next) = page(&entries, |skill| &skill.uri, request)?;
    let mut result = ListSkillsResult::with_all_items(skills);
    result.next_cursor = next;
    Ok(result)
}

pub(crate) async fn get(
    session: &Session,
    request: &GetSkillRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetSkillResult, ErrorData> {
    let served = ServedSkills::read(session, context).await?;
    let skill = served.0.into_iter().find(|skill| skill.entry.uri == request.uri);
    skill.map(|skill| GetSkillResult::new(skill.entry)).ok_or_else(|| {
        let message = format!("no skill has the URI `{}`", shown(&request.uri));
        ErrorData::invalid_params(message, None)
    })
}

/// Reads a file of a skill. `None` if no skill has the file.
pub(crate) async fn read(
    session: &Session,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<Option<ReadResourceResponse>, ErrorData> {
    let served = ServedSkills::read(session, context).await?;
    let Some(Found { skill, path, published }) = served.find(uri) else { return Ok(None) };
    let toolbox = session.generation().toolbox.clone();
    let in_topic = match &*skill.directory {
        "" => path.to_owned(),
        directory => format!("{directory}/{path}"),
    };
    let call = call_context(session, context);
    let read = toolbox.skill_file(&skill.topic, &in_topic, call).await.map_err(failed)?;
    warn_unlogged(&toolbox);
    let bytes = read.map_err(|error| not_found(uri, &error.message))?;
    // The file may have changed since its digest was computed.
    if published.verify(&bytes).is_err() {
        return Err(internal(&"the file is being changed; try again"));
    }
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri),
    };
    let contents = match mime_type(path) {
        Some(mime_type) => contents.with_mime_type(mime_type),
        None => contents,
    };
    Ok(Some(ReadResourceResult::new(vec![contents]).into()))
}

/// Lists the direct children of a directory of a skill.
pub(crate) async fn directory(
    session: &Session,
    request: ReadResourceDirectoryRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceDirectoryResult, ErrorData> {
    let served = ServedSkills::read(session, context).await?;
    let asked = format!("{}/", request.uri.trim_end_matches('/'));
    let mut children = Vec::<Resource>::new();
    for resource in served.resources() {
        let Some(rest) = resource.uri.strip_prefix(&asked) else { continue };
        match rest.split_once('/') {
            None => children.push(resource),
            Some((name, _)) => {
                let uri = format!("{asked}{name}");
                if children.iter().all(|child| child.uri != uri) {
                    let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
                    children.push(Resource::new(uri, name).with_mime_type(DIRECTORY_MIME_TYPE));
                }
            }
        }
    }
    if children.is_empty() {
        let message = format!("there is no directory `{}`", shown(&request.uri));
        return Err(ErrorData::invalid_params(message, None));
    }
    children.sort_by(|one, other| one.uri.cmp(&other.uri));
    let mut paginated = PaginatedRequestParams::default();
    paginated.cursor = request.cursor;
    let (children, next) = page(&children, |child| &child.uri, Some(paginated))?;
    let mut result = ListResourcesResult::with_all_items(children);
    result.next_cursor = next;
    Ok(result)
}

/// Returns the first part of the URI of a skill's file: the id of its topic.
pub(crate) fn topic_of(uri: &str) -> Option<String> {
    decoded(uri.strip_prefix(SCHEME)?.split_once('/')?.0)
}

fn failed(error: ToolboxError) -> ErrorData {
    internal(&error)
}

fn encoded(part: &str) -> String {
    utf8_percent_encode(part, PLAIN).to_string()
}

fn uri(root: &str, path: &str) -> String {
    let parts: Vec<_> = path.split('/').map(encoded).collect();
    format!("{root}{}", parts.join("/"))
}

fn decoded(uri: &str) -> Option<String> {
    percent_decode_str(uri).decode_utf8().ok().map(|text| text.into_owned())
}

/// Returns the MIME type for an extension.
fn mime_type(path: &str) -> Option<&'static str> {
    let extension = path.rsplit('/').next()?.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match &*extension {
        "md" | "markdown" => MIME_TYPE,
        "txt" | "text" => "text/plain",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "py" => "text/x-python",
        "sh" => "text/x-shellscript",
        "js" | "mjs" => "text/javascript",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use kitbag_toolbox::SkillFile;
    use serde_json::json;

    use super::*;

    fn skill(directory: &str, name: &str, files: &[&str]) -> Skill {
        let path = |file: &str| match directory {
            "" => file.to_owned(),
            directory => format!("{directory}/{file}"),
        };
        let fields = json!({ "name": name, "description": "d", "license": "MIT" });
        let file =
            |path: &&str| SkillFile { path: (*path).to_owned(), size: 1, sha256: "a".repeat(64) };
        Skill {
            topic: "my skills".to_owned(),
            directory: directory.to_owned(),
            path: path("SKILL.md"),
            name: name.to_owned(),
            description: "d".to_owned(),
            fields: fields.as_object().unwrap().clone(),
            files: files.iter().map(file).collect(),
        }
    }

    #[test]
    fn uri_ends_with_the_name_of_the_skill() {
        for (directory, name, expected) in [
            ("pdf", "pdf", "skill://my%20skills/pdf/SKILL.md"),
            ("team/x", "pdf", "skill://my%20skills/team/pdf/SKILL.md"),
            ("", "pdf", "skill://my%20skills/pdf/SKILL.md"),
        ] {
            let served = ServedSkill::new(skill(directory, name, &["SKILL.md", "a b/c#.md"]));
            assert_eq!(served.entry.uri, expected);
            assert_eq!(served.entry.validate(), Ok(()));
            let file = expected.replace("SKILL.md", "a%20b/c%23.md");
            assert_eq!(served.find(&file).map(|found| found.path), Some("a b/c#.md"));
            assert!(served.find(&expected.replace("SKILL.md", "other.md")).is_none());
        }
    }

    #[test]
    fn names_against_the_rules_are_refused() {
        for name in ["PDF", "a b", "-a", "a--b", "../a", ""] {
            let served = ServedSkill::new(skill("pdf", name, &["SKILL.md"]));
            assert!(served.entry.validate().is_err(), "{name}");
        }
    }
}
