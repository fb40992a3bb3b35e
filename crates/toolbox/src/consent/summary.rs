//! The last lines of the screen: counts, and the worst risks in words.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ability, Consent, RequestChange, RequestItem, Requester, Risk};

/// The maximum number of risks in the summary.
const MOST_RISKS: usize = 3;

/// The maximum number of requesters that the summary names for a risk.
const MOST_NAMES: usize = 2;

/// Each ability as a phrase after a count of tools, and as a verb after the name of one tool.
const ABILITIES: [(Ability, &str, &str); 8] = [
    (Ability::Secrets, "with secrets", "use your secrets"),
    (Ability::Network, "with network", "send requests"),
    (Ability::WriteOutside, "can write outside the workspace", "write outside the workspace"),
    (Ability::ReadOutside, "can read outside the workspace", "read outside the workspace"),
    (Ability::WriteInside, "can write in the workspace", "write in the workspace"),
    (Ability::ReadInside, "can read the workspace", "read the workspace"),
    (Ability::Variables, "with variables", "read your environment variables"),
    (Ability::CallTools, "can call other tools", "call other tools"),
];

impl Consent {
    /// Returns the summary. Its last line names the worst risks.
    pub(super) fn summary(&self) -> Vec<String> {
        let kept: Vec<_> =
            self.items.iter().filter(|item| item.change != RequestChange::Removed).collect();
        let is_change = self.items.iter().any(|item| item.change != RequestChange::Same);
        let mut lines = Vec::new();
        if is_change {
            lines.push(self.changes());
        }
        lines.push(counts(&kept));
        let is_new = |item: &&&RequestItem| !is_change || item.change != RequestChange::Same;
        let shown: Vec<_> = kept.iter().filter(is_new).copied().collect();
        lines.push(match (worst(&shown), is_change) {
            (Some(worst), false) => format!("Worst: {worst}"),
            (Some(worst), true) => format!("Worst of the new requests: {worst}"),
            (None, false) => "No listed risk".to_owned(),
            (None, true) => "No listed risk in the new requests".to_owned(),
        });
        lines
    }

    /// Returns the abilities of a tool in one line, with the worst risks. `None` if the tool has no
    /// abilities.
    pub fn reach(&self, tool: &str) -> Option<String> {
        let has = |ability| self.items.iter().any(|item| item.abilities.contains(&ability));
        let verbs: Vec<_> = ABILITIES
            .iter()
            .filter(|(ability, ..)| has(*ability))
            .map(|(.., verb)| *verb)
            .collect();
        let risks: BTreeSet<_> = self.items.iter().flat_map(|item| &item.risks).collect();
        let risks: Vec<_> = risks.iter().take(MOST_RISKS).map(|risk| risk.reason()).collect();
        let worst = match risks.is_empty() {
            true => String::new(),
            false => format!(" Worst: {}.", risks.join("; ")),
        };
        (!verbs.is_empty()).then(|| format!("`{tool}` can {}.{worst}", verbs.join(", ")))
    }

    fn changes(&self) -> String {
        let count =
            |change: RequestChange| self.items.iter().filter(|item| item.change == change).count();
        let changes = [
            (count(RequestChange::Added), "new"),
            (count(RequestChange::Loosened), "less restricted"),
            (count(RequestChange::Removed), "no longer requested"),
        ];
        let parts = changes.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts.map(|(count, word)| format!("{count} {word}")).collect();
        format!("Changes: {}", parts.join(", "))
    }
}

/// Returns the counts of the requesters: `60 tools, 3 with network, 1 topic`.
fn counts(items: &[&RequestItem]) -> String {
    let mut tools: BTreeMap<&str, BTreeSet<Ability>> = BTreeMap::new();
    let mut topics: BTreeMap<&str, BTreeSet<Ability>> = BTreeMap::new();
    let mut servers: BTreeSet<&str> = BTreeSet::new();
    let mut parts = Vec::new();
    for item in items {
        match &item.requester {
            Requester::Tool(name) => tools.entry(name).or_default().extend(&item.abilities),
            Requester::Topic(name) => topics.entry(name).or_default().extend(&item.abilities),
            Requester::Server(name) => drop(servers.insert(name)),
            Requester::Workspace => {}
        }
    }
    if !servers.is_empty() {
        parts.push(format!("{} {}", servers.len(), plural(servers.len(), "server")));
    }
    if !tools.is_empty() {
        parts.push(format!("{} {}", tools.len(), plural(tools.len(), "tool")));
        for (ability, phrase, _) in ABILITIES {
            let count = tools.values().filter(|abilities| abilities.contains(&ability)).count();
            // Write access includes read access.
            let says_less = matches!(ability, Ability::ReadInside) && tools.len() > 1;
            match count {
                0 => {}
                _ if says_less => {}
                _ if tools.len() == 1 => parts.push(phrase.to_owned()),
                count => parts.push(format!("{count} {phrase}")),
            }
        }
    }
    if !topics.is_empty() {
        let outside = topics.values().filter(|it| it.contains(&Ability::ReadOutside)).count();
        let count = format!("{} {}", topics.len(), plural(topics.len(), "topic"));
        parts.push(match outside {
            0 => count,
            all if all == topics.len() => format!("{count} outside the workspace"),
            some => format!("{count}, {some} of them outside the workspace"),
        });
    }
    let settings = items.iter().filter(|item| item.requester == Requester::Workspace).count();
    if settings > 0 {
        parts.push(format!("{settings} {} for built-in tools", plural(settings, "setting")));
    }
    match parts.is_empty() {
        true => "It requests no grants, secrets or paths of yours".to_owned(),
        false => parts.join(", "),
    }
}

/// Returns the worst risks, each with its requesters.
fn worst(items: &[&RequestItem]) -> Option<String> {
    let mut risks: BTreeMap<Risk, Vec<String>> = BTreeMap::new();
    for item in items {
        for risk in &item.risks {
            let names = risks.entry(*risk).or_default();
            let name = item.requester.name();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let count = risks.len();
    let named = risks.into_iter().take(MOST_RISKS).map(|(risk, names)| {
        let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(MOST_NAMES) {
            0 => format!("{} ({shown})", risk.reason()),
            more => format!("{} ({shown} and {more} more)", risk.reason()),
        }
    });
    let named: Vec<_> = named.collect();
    let more = match count.saturating_sub(named.len()) {
        0 => String::new(),
        more => format!("; {more} more {}", plural(more, "kind")),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join("; ")))
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}
