//! The log as people read it: one line per call, followed by the events during the call.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use kitbag_base::text::shown;
use kitbag_policy::RefusalWords;

use crate::audit::read::AuditEntry;
use crate::audit::record::{
    ApprovalEvent, AuditEvent, CallEvent, ClientEvent, PathsEvent, RefusalEvent, RemovedEvent,
    RequestEvent, SummaryEvent, TrustEvent,
};

/// Maximum number of paths or origins in a line.
const NAMED: usize = 3;

/// The deepest indentation of lines. Logs of one process have less nesting.
const DEPTH: usize = 8;

/// The shown length of a digest: enough for a person to distinguish digests.
const DIGEST: usize = 12;

/// Formats log entries for people. A heading names the day and the workspace when one of them
/// changes. All times are in UTC.
#[derive(Debug, Default)]
pub struct Story {
    /// The day and workspace of the previous line.
    heading: Option<(String, Option<String>)>,
}

/// Calls that started and have not ended, among all entries that were passed to [`see`](Self::see).
#[derive(Debug, Default)]
pub struct OpenCalls {
    starts: BTreeMap<String, AuditEntry>,
}

impl OpenCalls {
    /// Processes an entry. Returns it, unless it is the start of a call, which is reported only if
    /// the call does not end.
    pub fn see(&mut self, entry: AuditEntry) -> Option<AuditEntry> {
        match &entry.event {
            AuditEvent::Start(start) => {
                self.starts.insert(start.head.id.clone(), entry);
                return None;
            }
            AuditEvent::Call(call) => {
                self.starts.remove(&call.head.id);
                if call.head.parent.is_none() {
                    // The ends of some nested calls are in a summary.
                    self.starts.retain(|_, entry| outermost(&entry.event) != Some(&call.head.id));
                }
            }
            _ => {}
        }
        Some(entry)
    }

    /// Returns the starts of these calls, by time.
    pub fn starts(self) -> Vec<AuditEntry> {
        let mut starts: Vec<_> = self.starts.into_values().collect();
        starts.sort_by_key(|entry| entry.time);
        starts
    }
}

/// Returns the outermost call of a call's start.
fn outermost(event: &AuditEvent) -> Option<&String> {
    match event {
        AuditEvent::Start(start) => start.outermost.as_ref().or(start.head.parent.as_ref()),
        _ => None,
    }
}

impl Story {
    /// Formats entries that are in log order. The log has a call after its nested calls and
    /// refusals; the result has them below it.
    pub fn tell(&mut self, entries: &[AuditEntry]) -> Vec<String> {
        let calls: HashMap<_, _> = entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| match &entry.event {
                AuditEvent::Call(call) => Some((call.head.id.as_str(), index)),
                AuditEvent::Start(start) => Some((start.head.id.as_str(), index)),
                _ => None,
            })
            .collect();
        let mut inside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut outermost = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match outer(&entry.event).and_then(|id| calls.get(id)) {
                Some(call) if *call != index => inside.entry(*call).or_default().push(index),
                _ => outermost.push(index),
            }
        }
        let mut lines = Vec::new();
        let mut done = vec![false; entries.len()];
        // A forged log may have calls that contain each other: they come last.
        for index in outermost.into_iter().chain(0..entries.len()) {
            self.tell_call(entries, &inside, index, &mut done, &mut lines);
        }
        lines
    }

    /// Formats an entry and its nested entries.
    fn tell_call(
        &mut self,
        entries: &[AuditEntry],
        inside: &BTreeMap<usize, Vec<usize>>,
        outermost: usize,
        done: &mut [bool],
        lines: &mut Vec<String>,
    ) {
        let mut rest = vec![Rest::Entry(outermost, 0)];
        while let Some(next) = rest.pop() {
            let (index, depth) = match next {
                Rest::Entry(index, depth) => (index, depth),
                Rest::Lines(more) => {
                    lines.extend(more);
                    continue;
                }
            };
            if std::mem::replace(&mut done[index], true) {
                continue;
            }
            let entry = &entries[index];
            if depth == 0 {
                self.head(entry, lines);
            }
            let margin = match depth {
                0 => format!("  {}  {}", clock(started_at(entry)), by(&entry.event)),
                depth => " ".repeat(9 + 4 * (depth.min(DEPTH) - 1)),
            };
            lines.push(format!("{margin}{}", sentence(entry)));
            if let AuditEvent::Call(call) = &entry.event {
                let more = " ".repeat(9 + 4 * depth.min(DEPTH));
                let lines = besides(call).into_iter().map(|line| format!("{more}{line}"));
                rest.push(Rest::Lines(lines.collect()));
            }
            let inner = inside.get(&index).into_iter().flatten();
            rest.extend(inner.rev().map(|inner| Rest::Entry(*inner, depth + 1)));
        }
    }

    /// Adds a heading if the day or the workspace changed.
    fn head(&mut self, entry: &AuditEntry, lines: &mut Vec<String>) {
        let workspace = match &entry.event {
            AuditEvent::Call(call) => Some(&call.head.workspace),
            AuditEvent::Refusal(refusal) => Some(&refusal.workspace),
            AuditEvent::Approval(approval) => Some(&approval.workspace),
            AuditEvent::Trust(trust) => Some(&trust.workspace),
            AuditEvent::Start(start) => Some(&start.head.workspace),
            AuditEvent::Summary(summary) => Some(&summary.workspace),
            AuditEvent::Torn { .. }
            | AuditEvent::Unrecorded { .. }
            | AuditEvent::Lost { .. }
            | AuditEvent::Removed(_) => None,
        };
        let heading = (day(started_at(entry)), workspace.cloned());
        let is_same = |(day, of): &(String, Option<String>)| {
            *day == heading.0 && (heading.1.is_none() || *of == heading.1)
        };
        if self.heading.as_ref().is_some_and(is_same) {
            return;
        }
        let (day, workspace) = &heading;
        let of = workspace.as_ref().map(|of| format!("  {}", shown(of))).unwrap_or_default();
        lines.push(format!("{day} (UTC){of}"));
        self.heading = Some(heading);
    }
}

/// The remaining output.
enum Rest {
    /// An entry and its depth.
    Entry(usize, usize),
    /// The lines after the last entry of a call.
    Lines(Vec<String>),
}

/// Returns the call that an event belongs to or is nested in.
fn outer(event: &AuditEvent) -> Option<&str> {
    match event {
        AuditEvent::Call(call) => call.head.parent.as_deref(),
        AuditEvent::Start(start) => start.head.parent.as_deref(),
        AuditEvent::Summary(summary) => Some(&summary.call),
        AuditEvent::Refusal(refusal) => Some(&refusal.call),
        AuditEvent::Approval(approval) => Some(&approval.call),
        _ => None,
    }
}

/// Returns the start time. The log has the time at which a call ended.
fn started_at(entry: &AuditEntry) -> SystemTime {
    match &entry.event {
        AuditEvent::Call(call) => {
            let took = Duration::from_micros(call.micros);
            entry.time.checked_sub(took).unwrap_or(entry.time)
        }
        _ => entry.time,
    }
}

fn day(time: SystemTime) -> String {
    let time = humantime::format_rfc3339_seconds(time).to_string();
    time.split('T').next().unwrap_or_default().to_owned()
}

fn clock(time: SystemTime) -> String {
    let time = humantime::format_rfc3339_seconds(time).to_string();
    let time = time.split('T').nth(1).unwrap_or_default();
    time.get(..5).unwrap_or(time).to_owned()
}

/// Formats the actor, which precedes the sentence.
fn by(event: &AuditEvent) -> String {
    let name = match event {
        AuditEvent::Call(call) => subject(&call.head.caller, call.head.client.as_ref()),
        AuditEvent::Refusal(refusal) => subject(&refusal.caller, refusal.client.as_ref()),
        AuditEvent::Approval(approval) => subject(&approval.caller, None),
        AuditEvent::Trust(trust) => subject(&trust.caller, None),
        AuditEvent::Start(start) => subject(&start.head.caller, start.head.client.as_ref()),
        AuditEvent::Summary(summary) => subject(&summary.caller, summary.client.as_ref()),
        _ => return "kitbag: ".to_owned(),
    };
    format!("{name}: ")
}

/// Formats the caller. The declared name of a client is quoted, so that it cannot look like another
/// caller or an event. A person is named before the client that they use.
fn subject(caller: &str, client: Option<&ClientEvent>) -> String {
    let person = match caller.starts_with("person ") {
        true => format!("{}, ", shown(caller)),
        false => String::new(),
    };
    let quoted = |text: String| {
        format!("{person}client \"{}\"", shown(&text).to_string().replace('"', "\\u{22}"))
    };
    match client {
        Some(ClientEvent { name, version }) if version.is_empty() => quoted(name.clone()),
        Some(ClientEvent { name, version }) => quoted(format!("{name} {version}")),
        None => shown(caller.strip_prefix("tool ").unwrap_or(caller)).to_string(),
    }
}

fn sentence(entry: &AuditEntry) -> String {
    match &entry.event {
        AuditEvent::Call(call) => of_call(call),
        AuditEvent::Start(start) => format!(
            "{} began and has not ended: it still runs, or its process was stopped",
            named(&start.head.tool, start.head.serves.as_deref())
        ),
        AuditEvent::Summary(summary) => summary_line(summary),
        AuditEvent::Removed(removed) => removed_line(removed),
        AuditEvent::Refusal(refusal) => of_refusal(refusal),
        AuditEvent::Approval(approval) => of_approval(approval),
        AuditEvent::Trust(TrustEvent { digest: Some(digest), .. }) => {
            format!(
                "trusted the workspace, content {}",
                shown(digest.get(..DIGEST).unwrap_or(digest))
            )
        }
        AuditEvent::Trust(TrustEvent { digest: None, .. }) => {
            "no longer trusts the workspace".to_owned()
        }
        AuditEvent::Torn { bytes } => format!(
            "{bytes} bytes before this line are not a line: a process was stopped while it wrote \
             them"
        ),
        AuditEvent::Unrecorded { lines } => {
            let (count, were) = counted(*lines, "line", "was", "were");
            format!(
                "{count} before this one {were} not recorded in `head.json`: a process was stopped \
                 before it could record them, or another program added them"
            )
        }
        AuditEvent::Lost { lines, reason } => {
            let (count, _) = counted(*lines, "line", "", "");
            format!("{count} could not be written: {}", shown(reason))
        }
    }
}

/// Formats a number with its noun and the matching verb.
fn counted<'a>(number: u64, noun: &str, one: &'a str, more: &'a str) -> (String, &'a str) {
    match number {
        1 => (format!("1 {noun}"), one),
        number => (format!("{number} {noun}s"), more),
    }
}

/// Describes a call: its actions, and its outcome unless that is success.
fn of_call(call: &CallEvent) -> String {
    let tool = named(&call.head.tool, call.head.serves.as_deref());
    let reason = call.reason.as_deref();
    if call.outcome == "refused" {
        return format!("refused: {tool} was not called ({})", why_not_called(reason));
    }
    let reason = reason.map(|reason| shown(reason).to_string());
    let of = reason.as_ref().map(|reason| format!(" `{reason}`")).unwrap_or_default();
    let end = match &*call.outcome {
        "success" => None,
        "error" => Some("failed".to_owned()),
        "suspended" => Some("asked a question".to_owned()),
        "limit" => Some(format!("exceeded its limit{of}")),
        "trap" => Some("crashed".to_owned()),
        "cancelled" => Some("was cancelled".to_owned()),
        "failed" => Some("could not run".to_owned()),
        other => Some(shown(other).to_string()),
    };
    let did = did(&call.paths, &call.requests);
    match (did.is_empty(), end) {
        (true, None) => format!("{tool} ran"),
        (true, Some(end)) => format!("{tool} {end}"),
        (false, None) => format!("{tool} {}", did.join(", ")),
        (false, Some(end)) => format!("{tool} {}; {end}", did.join(", ")),
    }
}

/// Formats a tool and the requested item if it is not a call.
fn named(tool: &str, serves: Option<&str>) -> String {
    match serves {
        None => shown(tool).to_string(),
        Some(serves) => format!("{} ({})", shown(tool), shown(serves)),
    }
}

/// Describes nested calls without lines of their own.
fn summary_line(summary: &SummaryEvent) -> String {
    let (count, _) = counted(summary.calls.values().sum(), "more call", "", "");
    let calls = summary.calls.iter().map(|(call, number)| format!("{number} {}", shown(call)));
    let calls = calls.collect::<Vec<_>>().join(", ");
    let did = did(&summary.paths, &summary.requests);
    let more = match summary.more_requests {
        0 => None,
        more => Some(format!("and {}", counted(more, "more request", "", "").0)),
    };
    let did: Vec<_> = did.into_iter().chain(more).collect();
    let end = if did.is_empty() { String::new() } else { format!("; they {}", did.join(", ")) };
    format!("and {count}: {calls}{end}")
}

fn removed_line(removed: &RemovedEvent) -> String {
    let RemovedEvent { files, lines, from, to, damaged } = removed;
    let (files, _) = counted(*files, "file", "", "");
    let (lines, _) = counted(*lines, "line", "", "");
    let time = match (from, to) {
        (Some(from), Some(to)) => format!(", of {} to {}", shown(from), shown(to)),
        _ => String::new(),
    };
    let damaged = if *damaged { "; they had been changed" } else { "" };
    format!("removed {files} with {lines}{time}, to keep the log within `[audit] size`{damaged}")
}

fn did(paths: &PathsEvent, requests: &[RequestEvent]) -> Vec<String> {
    let PathsEvent {
        read,
        more_read,
        written,
        more_written,
        removed,
        more_removed,
        looked_at,
        temporary: _,
    } = paths;
    // A call that writes a file lists its directory first.
    let writes = !(written.is_empty() && removed.is_empty());
    let read: Vec<_> = read.iter().filter(|path| !(writes && path.ends_with('/'))).collect();
    let [written, removed, looked_at] =
        [written, removed, looked_at].map(|paths| paths.iter().collect::<Vec<_>>());
    let mut did = Vec::new();
    for (verb, paths, more) in [
        ("wrote", written, *more_written),
        ("removed", removed, *more_removed),
        ("read", read, *more_read),
        ("looked at", looked_at, 0),
    ] {
        did.extend(list(paths.iter().map(|path| shown(path).to_string()), more, verb));
    }
    let mut origins: Vec<(&str, Vec<String>)> = Vec::new();
    for request in requests.iter().filter(|request| request.refused.is_none()) {
        let status =
            request.status.map_or_else(|| "no response".into(), |status| status.to_string());
        match origins.iter_mut().find(|(origin, _)| *origin == request.origin) {
            Some((_, known)) if known.contains(&status) => {}
            Some((_, known)) => known.push(status),
            None => origins.push((&request.origin, vec![status])),
        }
    }
    let requests =
        origins.iter().map(|(origin, status)| format!("{} ({})", shown(origin), status.join(", ")));
    did.extend(list(requests, 0, "requested"));
    did
}

/// Formats `read a, b, c and 9 more`.
fn list(items: impl ExactSizeIterator<Item = String>, more: u64, verb: &str) -> Option<String> {
    let more = more + items.len().saturating_sub(NAMED) as u64;
    let named: Vec<_> = items.take(NAMED).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{verb} {}{more}", named.join(", ")))
}

/// Describes parts of a call without entries of their own.
fn besides(call: &CallEvent) -> Vec<String> {
    let mut lines = Vec::new();
    if call.refusals == 0 {
        // A log of 0.1.0 has refused requests only here.
        for request in &call.requests {
            let Some(reason) = &request.refused else { continue };
            let target = format!("{} {}", request.method, request.origin);
            lines.push(of_refusal(&RefusalEvent {
                tool: call.head.tool.clone(),
                kind: "http".into(),
                target,
                reason: reason.clone(),
                times: 1,
                ..RefusalEvent::default()
            }));
        }
    }
    if call.more_refusals > 0 {
        lines.push(format!("refused: {} more", call.more_refusals));
    }
    if call.more_requests > 0 {
        let (count, _) = counted(call.more_requests, "more request", "", "");
        lines.push(format!("and {count}"));
    }
    lines
}

fn of_refusal(refusal: &RefusalEvent) -> String {
    let RefusalEvent { tool, kind, target, reason, by, times, .. } = refusal;
    let (tool, target) = (shown(tool), shown(target));
    let words = RefusalWords::of_kind(kind);
    let what = match words {
        Some(words) => words.access.replace("{}", &target.to_string()),
        None => format!("use {} `{target}`", shown(kind)),
    };
    let why = match words.and_then(|words| words.reason(reason)) {
        Some(why) => why.to_owned(),
        None => shown(reason).to_string(),
    };
    let by = by.as_ref().map(|by| format!(": `{}`", shown(by))).unwrap_or_default();
    let times = if *times > 1 { format!(", {times} times") } else { String::new() };
    format!("refused: {tool} may not {what} ({why}{by}{times})")
}

/// Describes why a call was not made.
fn why_not_called(reason: Option<&str>) -> String {
    match reason {
        Some("arguments") => "the arguments do not match",
        Some("approval") => "it was not approved",
        Some("audit") => "the call cannot be logged",
        Some("busy") => "kitbag is busy",
        Some("counts") => "calls cannot be counted",
        Some("declined") => "the question was not answered",
        Some("depth") => "nested calls are too deep",
        Some("disabled") => "it is disabled",
        Some("grant") => "a grant does not allow it",
        Some("limit") => "a higher limit was requested than the tool has",
        Some("rate") => "its rate is exhausted",
        Some("recorded") => "it differs from the recorded version",
        Some("secret") => "a required secret cannot be read",
        Some("state") => "the state of the call does not match",
        Some("topic") => "the topic may not be read",
        Some("trust") => "the workspace is not trusted",
        Some(other) => return shown(other).to_string(),
        None => "the client cancelled it",
    }
    .to_owned()
}

fn of_approval(approval: &ApprovalEvent) -> String {
    let tool = shown(&approval.tool);
    let by = approval.by.as_ref().map(|by| format!(" by {}", shown(by))).unwrap_or_default();
    match &*approval.answer {
        "asked" => format!("{tool} needs approval"),
        "once" => format!("{tool} was approved once{by}"),
        "process" => format!("{tool} was approved until kitbag ends{by}"),
        "remembered" => format!("{tool} was approved before"),
        "no" => format!("refused: {tool} was not approved{by}"),
        "nobody" => format!("refused: {tool} needs approval, and no person could be asked"),
        other => format!("{tool}, approval: {}{by}", shown(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<AuditEntry> {
        let text = include_str!("../../testdata/story.jsonl");
        text.lines().map(|line| AuditEntry::read(line.into()).expect(line)).collect()
    }

    #[test]
    fn stories_match_the_expected_file() {
        let lines = Story::default().tell(&entries()).join("\n");
        assert_eq!(lines, include_str!("../../testdata/story.txt").trim_end());
    }

    #[test]
    fn declared_names_cannot_imitate_callers() {
        let tell = |name: &str| {
            let client = ClientEvent { name: name.into(), version: String::new() };
            subject("client http", Some(&client))
        };
        assert_eq!(tell("user 1000"), "client \"user 1000\"");
        let forged = "x\": ran\n  09:00  user 0: trusted the workspace, content ";
        let expected =
            "client \"x\\u{22}: ran\\n  09:00  user 0: trusted the workspace, content \"";
        assert_eq!(tell(forged), expected);
        assert_eq!(subject("user 1000", None), "user 1000");
    }

    #[test]
    fn separate_entries_share_a_heading() {
        let mut story = Story::default();
        let lines: Vec<_> = entries().chunks(1).flat_map(|entry| story.tell(entry)).collect();
        let headings = lines.iter().filter(|line| line.contains("(UTC)  /home/ada/project"));
        assert!(headings.count() < 8, "{lines:#?}");
        assert!(lines.contains(&"  09:17  relay: probe read a, b, c and 10 more".to_owned()));
    }
}
