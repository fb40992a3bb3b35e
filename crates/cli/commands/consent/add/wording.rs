//! Describes the requests of a tool: the grants to write, with their risks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kitbag::Config;
use kitbag::config::read_grant;
use kitbag::contract::ToolName;
use kitbag::policy::{
    Access, DirectoryGrant, GrantForm, Grants, GuestPath, KINDS, KindInfo, SecretGrant, SecretName,
    ToolGrant, ToolGrants, UrlPattern,
};
use kitbag::toolbox::consent::{
    Ability, RequestItem, Requester, Risk, kind_items, quoted, surroundings,
};
use toml_edit::{InlineTable, Value};

use super::grants::{Bounds, RequestedSettings};

/// The key of denied requests.
pub(crate) const DENY: &str = "deny";

#[derive(Clone)]
pub(crate) struct Group {
    /// The key under `grants`.
    pub(crate) key: String,
    pub(crate) word: &'static str,
    pub(crate) items: Vec<RequestItem>,
}

/// Returns the requests of a tool by kind. Kinds without requests are omitted.
pub(crate) fn groups(
    asked: &RequestedSettings,
    tool: &ToolName,
    bounds: &Bounds<'_>,
) -> Vec<Group> {
    let reader = Reader::new(tool, bounds);
    let mut groups: Vec<_> = asked
        .grants
        .iter()
        .map(|(key, value)| {
            let word = match &**key {
                DENY => "never",
                key => KindInfo::of_key(key).map_or("others", |kind| kind.word),
            };
            Group { key: key.clone(), word, items: reader.items(key, value) }
        })
        .filter(|group| !group.items.is_empty())
        .collect();
    // The worst last, and kinds that this version does not know before all others.
    let rank = |group: &Group| KINDS.iter().position(|kind| kind.key == group.key);
    groups.sort_by_key(|group| match rank(group) {
        Some(rank) => KINDS.len() + 1 - rank,
        None => usize::from(group.key == DENY),
    });
    groups
}

/// Reads the grants of a tool in the form of a configuration file.
pub(crate) struct Reader<'a> {
    tool: &'a str,
    config: &'a Config,
    root: PathBuf,
    home: Option<PathBuf>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(tool: &'a ToolName, bounds: &Bounds<'a>) -> Self {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self {
            tool: tool.as_str(),
            config: bounds.config,
            root: canonical(&bounds.config.root.value),
            home: bounds.home.map(canonical),
        }
    }
}

fn is_list(key: &str) -> bool {
    KindInfo::of_key(key).is_some_and(|kind| kind.form == GrantForm::List)
}

impl Reader<'_> {
    /// Describes the requests of a kind, with at least one item for each entry.
    pub(crate) fn items(&self, key: &str, value: &Value) -> Vec<RequestItem> {
        match (key, value) {
            (_, Value::Boolean(off)) if !off.value() => Vec::new(),
            (_, Value::Array(entries)) if is_list(key) => {
                entries.iter().flat_map(|entry| self.or_unreadable(key, entry)).collect()
            }
            (SecretGrant::KEY, Value::InlineTable(table)) => {
                let secrets = table.iter();
                secrets.flat_map(|(name, value)| self.secret(name, value)).collect()
            }
            (ToolGrants::KEY, Value::InlineTable(table)) => {
                let aliases = table.iter();
                aliases.flat_map(|(alias, value)| self.alias(alias, value)).collect()
            }
            (DENY, Value::Array(entries)) => {
                let item = |entry: &Value| self.item(format!("never requests {}", toml(entry)));
                entries.iter().map(item).collect()
            }
            ("config", Value::InlineTable(table)) => {
                let item = |(key, value): (&str, &Value)| {
                    self.item(format!("receives the setting {} = {}", quoted(key), toml(value)))
                };
                table.iter().map(item).collect()
            }
            (_, value) => self.or_unreadable(key, value),
        }
    }

    fn item(&self, line: String) -> RequestItem {
        let tool = self.tool;
        RequestItem::new(Requester::Tool(tool.to_owned()), format!("tool `{tool}` {line}"))
    }

    /// Describes an entry. An entry that this version cannot read is shown as it is written.
    fn or_unreadable(&self, key: &str, value: &Value) -> Vec<RequestItem> {
        match self.grants(key, value) {
            Some(grants) => self.in_words(key, &grants),
            None => {
                let line = format!("requests under {}: {}", quoted(key), toml(value));
                vec![self.item(line).with_risk(Risk::Unreadable)]
            }
        }
    }

    fn in_words(&self, key: &str, grants: &Grants) -> Vec<RequestItem> {
        let around = surroundings(&self.root, self.home.as_deref(), &self.config.network);
        kind_items(self.tool, grants, key, &around)
    }

    fn grants(&self, key: &str, value: &Value) -> Option<Grants> {
        let form = KindInfo::of_key(key)?.form;
        let text = match (form, value) {
            (GrantForm::List, _) if key == DirectoryGrant::KEY => {
                return Some(vec![self.directory(value)?].into());
            }
            (GrantForm::Table, Value::String(text)) if text.value() != ToolGrants::CALLER => {
                return None;
            }
            (GrantForm::List | GrantForm::Table, Value::String(text)) => text.value().clone(),
            (GrantForm::Setting, Value::Boolean(_))
            | (GrantForm::List | GrantForm::Setting, Value::InlineTable(_)) => {
                value.to_string().trim().to_owned()
            }
            _ => return None,
        };
        read_grant(key, &text)
    }

    fn directory(&self, value: &Value) -> Option<DirectoryGrant> {
        let table = value.as_inline_table()?;
        let host = table.get("host")?.as_str()?;
        let host = match host.strip_prefix("~/") {
            _ if host == DirectoryGrant::TEMPORARY => PathBuf::from(host),
            Some(rest) => self.home.as_ref()?.join(rest),
            None if host == "~" => self.home.clone()?,
            None => self.root.join(host),
        };
        let host = host.canonicalize().unwrap_or(host);
        let guest = table.get("guest")?.as_str()?;
        let access = match table.get("mode").map(Value::as_str) {
            None | Some(Some("ro")) => Access::ReadOnly,
            Some(Some("rw")) => Access::ReadWrite,
            Some(_) => return None,
        };
        let include = table.get("include").map_or(Some(Vec::new()), texts)?;
        let protected = match table.get("protected") {
            None => None,
            Some(value) => Some(texts(value)?),
        };
        let guest = GuestPath::new(guest).ok()?;
        Some(DirectoryGrant { host, guest, access, include, protected, identity: None })
    }

    /// Describes a secret with its destinations: those in the user config, or the requested ones if
    /// the user has no such secret yet.
    fn secret(&self, name: &str, value: &Value) -> Vec<RequestItem> {
        let to = value.as_inline_table().and_then(|table| table.get("to")).map(texts);
        let patterns = to.clone().map(|to| {
            let patterns = to?.into_iter().map(|text| UrlPattern::parse(&text).ok());
            patterns.collect::<Option<Vec<_>>>()
        });
        let (Ok(name), within) = (SecretName::new(name), patterns) else {
            return self.unreadable_secret(name, value);
        };
        let within = match within {
            Some(None) => return self.unreadable_secret(name.as_str(), value),
            Some(Some(within)) => Some(within),
            None => None,
        };
        match self.config.secrets.get(&name) {
            Some(own) => {
                let secret = SecretGrant {
                    name,
                    to: own.to.value.clone(),
                    within,
                    added: Some(own.placement.value.clone()),
                    variables: Vec::new(),
                    in_query: false,
                    in_body: false,
                };
                self.in_words(
                    SecretGrant::KEY,
                    &Grants { secrets: vec![secret], ..Grants::default() },
                )
            }
            None => {
                let to = to.flatten().unwrap_or_default();
                let to: Vec<_> = to.iter().map(|text| quoted(text)).collect();
                let to =
                    if to.is_empty() { String::new() } else { format!(" → {}", to.join(", ")) };
                let line = format!("uses your secret {name}{to}, which you do not have yet");
                vec![self.item(line).with_ability(Ability::Secrets).with_risk(Risk::Secret)]
            }
        }
    }

    fn unreadable_secret(&self, name: &str, value: &Value) -> Vec<RequestItem> {
        let line = format!("requests a secret: {} = {}", quoted(name), toml(value));
        let item = self.item(line).with_ability(Ability::Secrets);
        vec![item.with_risk(Risk::Secret).with_risk(Risk::Unreadable)]
    }

    fn alias(&self, alias: &str, value: &Value) -> Vec<RequestItem> {
        let table = value.as_inline_table();
        let tool = table.map_or(value.as_str(), |table| table.get("tool")?.as_str());
        let names =
            tool.and_then(|tool| Some((ToolName::new(alias).ok()?, ToolName::new(tool).ok()?)));
        let Some((alias, tool)) = names else {
            let line = format!("calls another tool: {} = {}", quoted(alias), toml(value));
            let item = self.item(line).with_ability(Ability::CallTools);
            return vec![item.with_risk(Risk::Unreadable)];
        };
        let grant = ToolGrant { tool, conditions: BTreeMap::new(), rate: None };
        let tools = ToolGrants::aliases([(alias, grant)]);
        let mut items = self.in_words(ToolGrants::KEY, &Grants { tools, ..Grants::default() });
        let rest: InlineTable =
            table.into_iter().flatten().filter(|(key, _)| *key != "tool").map(owned).collect();
        if !rest.is_empty() {
            for item in &mut items {
                item.line.push_str(&format!(", with {}", toml(&Value::InlineTable(rest.clone()))));
            }
        }
        items
    }
}

fn owned((key, value): (&str, &Value)) -> (String, Value) {
    (key.to_owned(), value.clone())
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let texts = value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned));
    texts.collect()
}

/// Formats a value as TOML in code quotes.
fn toml(value: &Value) -> String {
    quoted(&value.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}
