//! The screen that a person reads before adding a tool.

use kitbag::base::text::shown;
use kitbag::base::{ByteSize, ContentDigest};
use kitbag::contract::ToolName;
use kitbag::host::{Inspection, SOCKETS_ADVICE};
use kitbag::policy::{KINDS, SecretGrant, VariableGrant};
use kitbag::toolbox::consent::{
    Attachment, Consent, RequestChange, RequestItem, Requester, Risk, imitated, quoted,
};

use super::grants::{Bounds, RequestedSettings};
use super::{Found, RequestedTool};

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

/// Returns the screen: the tools, their requests, and the imports that could use more.
pub(crate) fn consent(requested: &[RequestedTool], found: &Found<'_>) -> Consent {
    let Found { source, bounds, .. } = found;
    let version = source.version().map(|version| format!(" {version}")).unwrap_or_default();
    let author = source.foreign().and_then(|manifest| manifest.author.as_deref());
    let author = author.map(|author| format!(" by {}", shown(author))).unwrap_or_default();
    let inspection = &source.component.inspection;
    let size = ByteSize::bytes(inspection.size);
    let digest = beginning(&source.component.digest);
    let what = match requested {
        [only] => only.tool.name.to_string(),
        several => format!("{} tools", several.len()),
    };
    let heading = format!(
        "{what}{version}{author}, from {} ({size}, digest {digest})",
        shown(&source.origin)
    );
    let items = requested.iter().flat_map(|RequestedTool { tool, asked, groups, .. }| {
        let mut items: Vec<_> = groups.iter().flat_map(|group| group.items.clone()).collect();
        items.extend(own_risks(&tool.name, inspection, asked, None, bounds));
        items
    });
    Consent {
        heading,
        parts: parts(requested, found),
        items: items.collect(),
        more: "`--all` shows them".to_owned(),
    }
}

fn parts(requested: &[RequestedTool], found: &Found<'_>) -> Vec<Attachment> {
    let Found { source, described, .. } = found;
    let mut parts = Vec::new();
    if let Some(download) = &source.download {
        parts.push(Attachment::ours("Download:", download.lines()));
    }
    let description = |tool: &RequestedTool| {
        let says = described.description().and_then(|says| says.tool(&tool.tool.own));
        let own = says.and_then(|says| says.description.as_deref());
        own.or_else(|| source.foreign().and_then(|manifest| manifest.description.as_deref()))
    };
    match requested {
        [only] => {
            if let Some(description) = description(only) {
                let lines = description.lines().map(str::to_owned).collect();
                parts.push(Attachment::theirs("Its own description:", lines));
            }
        }
        several => {
            let lines = several.iter().map(|tool| {
                let (name, text) = (&tool.tool.name, description(tool).unwrap_or_default());
                let mut lines = text.lines().map(str::to_owned);
                let first = lines.next().map(|first| format!(": {first}")).unwrap_or_default();
                let rest = lines.map(|line| format!("  {line}"));
                std::iter::once(format!("{name}{first}")).chain(rest).collect::<Vec<_>>()
            });
            let lines: Vec<_> = lines.collect();
            let short = lines.iter().filter_map(|lines| lines.first().cloned()).collect();
            let full = lines.concat();
            let tools = Attachment::theirs("The tools, in their own words:", short);
            parts.push(Attachment { full, ..tools });
        }
    }
    let keys = once(requested, |asked| {
        let lines = asked.keys.iter().flat_map(|(key, item)| {
            let text = item.to_string();
            let lines = text.trim().lines().map(|line| format!("{key}: {line}"));
            lines.collect::<Vec<_>>()
        });
        lines.collect()
    });
    if !keys.is_empty() {
        let file = source.manifest.as_ref().map_or("manifest", |manifest| &manifest.file);
        parts.push(Attachment::theirs(format!("{} also sets:", shown(file)), keys));
    }
    let mut notes = once(requested, |asked| asked.notes.clone());
    let inspection = &source.component.inspection;
    if let Some(lane) = inspection.lane.filter(|lane| lane.is_foreign()) {
        let grants = "it has no access to files, variables or the network except by a grant";
        notes.push(format!("the component is {}; {grants}", lane.words()));
    }
    if !inspection.omitted.is_empty() {
        let omitted = inspection.omitted.iter().map(ToString::to_string);
        let omitted: Vec<_> = omitted.collect();
        notes.push(format!("exported functions that are not tools: {}", omitted.join(", ")));
    }
    if inspection.uses_sockets() {
        notes.push(format!("the component {SOCKETS_ADVICE}"));
    }
    if !notes.is_empty() {
        parts.push(Attachment::ours("Notes:", notes));
    }
    parts
}

/// Returns lines about each tool: those of all tools once, others behind the name of the tool.
fn once(
    requested: &[RequestedTool],
    lines: impl Fn(&RequestedSettings) -> Vec<String>,
) -> Vec<String> {
    let all: Vec<_> = requested.iter().map(|tool| lines(&tool.asked)).collect();
    let of_each = |line: &String| all.iter().all(|lines| lines.contains(line));
    let first = all.iter().take(1).flatten().filter(|line| of_each(line)).cloned();
    let others = requested.iter().zip(&all).flat_map(|(tool, lines)| {
        let lines = lines.iter().filter(|line| !of_each(line));
        lines.map(|line| format!("{}: {line}", tool.tool.name)).collect::<Vec<_>>()
    });
    first.chain(others).collect()
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
