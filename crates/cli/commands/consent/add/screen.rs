//! The screen that a person reads before adding a tool.

use kitbag::base::text::shown;
use kitbag::base::{ByteSize, ContentDigest};
use kitbag::contract::ToolName;
use kitbag::host::{DescribeResult, Inspection, SOCKETS_ADVICE};
use kitbag::policy::{KINDS, SecretGrant, VariableGrant};
use kitbag::toolbox::consent::{
    Attachment, Consent, RequestChange, RequestItem, Requester, Risk, imitated, quoted,
};

use super::ChosenTool;
use super::grants::{Bounds, RequestedSettings};
use super::source::Source;
use super::wording::Group;

/// Returns the prefix of a digest, which is long enough for a person to tell digests apart.
pub(crate) fn beginning(digest: &ContentDigest) -> String {
    format!("{}…", &digest.to_string()[..12])
}

/// Returns the imports that could use a kind of grant, without their versions.
fn imports_of(inspection: &Inspection, prefix: &str) -> Vec<String> {
    let usable = inspection.imports.iter().filter(|import| import.offered != Some("types only"));
    let names = usable.filter(|import| import.name.starts_with(prefix));
    let mut names: Vec<_> =
        names.map(|import| import.name.split('@').next().unwrap_or_default().to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the imports that could use a kind of grant that is not requested, each with the kind.
pub(crate) fn unexplained(
    inspection: &Inspection,
    asked: &RequestedSettings,
) -> Vec<(String, &'static str)> {
    let has = |key: &str| !asked.requested_lines(key).is_empty();
    // The placeholder of a secret is in a variable.
    let is_asked = |key: &str| has(key) || (key == VariableGrant::KEY && has(SecretGrant::KEY));
    let kinds = KINDS.iter().rev().filter(|kind| !is_asked(kind.key));
    let imports = kinds.flat_map(|kind| {
        let imports = kind.imports.map(|prefix| imports_of(inspection, prefix));
        imports.into_iter().flatten().map(move |import| (import, kind.word))
    });
    imports.collect()
}

/// Returns the screen: the tool, its requests, and the imports that could use more.
pub(crate) fn consent(
    tool: &ChosenTool,
    source: &Source,
    described: &DescribeResult,
    asked: &RequestedSettings,
    groups: &[Group],
    bounds: &Bounds<'_>,
) -> Consent {
    let name = &tool.name;
    let version = source.version().map(|version| format!(" {version}")).unwrap_or_default();
    let author = source.foreign().and_then(|manifest| manifest.author.as_deref());
    let author = author.map(|author| format!(" by {}", shown(author))).unwrap_or_default();
    let inspection = &source.component.inspection;
    let size = ByteSize::bytes(inspection.size);
    let digest = beginning(&source.component.digest);
    let heading = format!(
        "{name}{version}{author}, from {} ({size}, digest {digest})",
        shown(&source.origin)
    );
    let mut items: Vec<_> = groups.iter().flat_map(|group| group.items.clone()).collect();
    items.extend(own_risks(name, inspection, asked, None, bounds));
    Consent {
        heading,
        parts: parts(&tool.own, source, described, asked),
        items,
        more: "`--all` shows them".to_owned(),
    }
}

fn parts(
    own: &str,
    source: &Source,
    described: &DescribeResult,
    asked: &RequestedSettings,
) -> Vec<Attachment> {
    let mut parts = Vec::new();
    let says = described.description().and_then(|says| says.tool(own));
    let description = says.and_then(|says| says.description.as_deref());
    let of_manifest = source.foreign().and_then(|manifest| manifest.description.as_deref());
    if let Some(description) = description.or(of_manifest) {
        let lines = description.lines().map(str::to_owned).collect();
        parts.push(Attachment::theirs("Its own description:", lines));
    }
    if !asked.keys.is_empty() {
        let file = source.manifest.as_ref().map_or("manifest", |manifest| &manifest.file);
        let lines = asked.keys.iter().flat_map(|(key, item)| {
            let text = item.to_string();
            let lines = text.trim().lines().map(|line| format!("{key}: {line}"));
            lines.collect::<Vec<_>>()
        });
        parts.push(Attachment::theirs(format!("{} also sets:", shown(file)), lines.collect()));
    }
    let mut notes = asked.notes.clone();
    if let Some(lane) = source.component.inspection.lane.filter(|lane| lane.is_foreign()) {
        let grants = "it has no access to files, variables or the network except by a grant";
        notes.push(format!("the component is {}; {grants}", lane.words()));
    }
    if source.component.inspection.uses_sockets() {
        notes.push(format!("the component {SOCKETS_ADVICE}"));
    }
    if !notes.is_empty() {
        parts.push(Attachment::ours("Notes:", notes));
    }
    parts
}

/// Returns the risks of a tool that are not part of a requested grant. `recorded` has the imports
/// that a person already approved.
pub(crate) fn own_risks(
    name: &ToolName,
    inspection: &Inspection,
    asked: &RequestedSettings,
    recorded: Option<&[String]>,
    bounds: &Bounds<'_>,
) -> Vec<RequestItem> {
    let item = |line: String, risk: Risk| {
        let requester = Requester::Tool(name.to_string());
        RequestItem::new(requester, format!("tool `{name}` {line}")).with_risk(risk)
    };
    let mut items = Vec::new();
    let is_recorded = |import: &str| {
        let without_version = |it: &String| it.split('@').next() == Some(import);
        recorded.is_none_or(|recorded| recorded.iter().any(without_version))
    };
    let known = bounds.config.tools.keys().map(ToolName::as_str);
    if let Some(other) = imitated(name.as_str(), known) {
        let line = format!("has a name that resembles `{other}`");
        items.push(item(line, Risk::Imitation));
    }
    let unexplained = unexplained(inspection, asked);
    let mut words: Vec<_> = unexplained.iter().map(|(_, word)| *word).collect();
    words.dedup();
    for word in words {
        let mut imports = unexplained.iter().filter(|(_, of)| *of == word).map(|(it, _)| it);
        let is_known = imports.clone().all(|import| is_recorded(import));
        let first = imports.next().map(|import| quoted(import)).unwrap_or_default();
        let more = match imports.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let line = format!("imports {first}{more}, but requests no {word}");
        let item = item(line, Risk::UnrequestedImport);
        items.push(if is_known { item } else { item.changed(RequestChange::Added) });
    }
    items
}
