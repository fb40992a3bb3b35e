//! The servers that are moved, under which names, and with which secrets.

use std::collections::BTreeSet;
use std::path::Path;

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::Layer;
use kitbag::policy::{Placement, SecretName, SecretSource};
use kitbag::secrets::SecretValue;
use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value as TomlValue};

use super::client_file::ClientFile;
use super::entry::{
    Draft, DraftAddress, DraftValue, Rejection, SecretOrigin, Surroundings, destination,
};
use super::secret_signs::SecretSigns;
use crate::commands::server::mcp_config::merge::as_json;
use crate::error::CliError;

/// Maximum length of a server's name.
const NAME: usize = 32;

pub(super) struct Plan {
    pub(super) servers: Vec<PlannedServer>,
    pub(super) left: Vec<LeftServer>,
    pub(super) secrets: Vec<PlannedSecret>,
}

/// A server that is moved.
pub(super) struct PlannedServer {
    /// The position of the file and of the table.
    pub(super) place: (usize, usize),
    /// The client's name of the server.
    pub(super) original: String,
    pub(super) name: String,
    pub(super) layer: Layer,
    pub(super) keys: Vec<(String, Item)>,
    /// Tools that the client does not offer.
    pub(super) excluded: Vec<String>,
    /// kitbag already has the server.
    pub(super) is_present: bool,
    /// The command line or the URL, without secrets.
    pub(super) address: String,
    /// The variables, headers and parameters, each with its handling.
    pub(super) values: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) is_process: bool,
    pub(super) is_enabled: bool,
}

/// A server that stays in the file of the client.
pub(super) struct LeftServer {
    pub(super) place: (usize, usize),
    pub(super) original: String,
    pub(super) reason: String,
}

/// A secret that the import creates.
pub(super) struct PlannedSecret {
    pub(super) name: SecretName,
    pub(super) source: SecretSource,
    /// The value for the store. `None`: the person sets it, or it is elsewhere.
    pub(super) value: Option<SecretValue>,
    pub(super) to: Vec<String>,
    pub(super) placement: Option<Placement>,
}

/// The names that are taken, and the means to compare secrets.
pub(super) struct Present<'a> {
    pub(super) config: &'a Config,
    /// The text of the user config and of the workspace's.
    pub(super) texts: [(Layer, &'a str); 2],
    /// Reads the value of a secret from the store.
    pub(super) stored: &'a dyn Fn(&SecretName) -> Option<SecretValue>,
    pub(super) home: Option<&'a Path>,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Plan {
    /// Plans the import of these servers. Empty `wanted`: all.
    pub(super) fn new(
        files: &[ClientFile],
        wanted: &[String],
        present: &Present<'_>,
    ) -> Result<Self, CliError> {
        let mut plan = Self { servers: Vec::new(), left: Vec::new(), secrets: Vec::new() };
        let signs = SecretSigns::new();
        let documents = present.texts.map(|(layer, text)| {
            (layer, text.parse::<DocumentMut>().map(|document| as_json(document.as_item())))
        });
        let servers = |layer: Layer| {
            let found = documents.iter().find(|(other, _)| *other == layer);
            found.and_then(|(_, document)| {
                document.as_ref().ok()?.get("servers")?.as_object().cloned()
            })
        };
        let own = [Layer::User, Layer::Workspace]
            .map(|layer| (layer, servers(layer).unwrap_or_default()));
        let mut taken: BTreeSet<String> =
            own.iter().flat_map(|(_, servers)| servers.keys().cloned()).collect();
        let mut found = Vec::new();
        for (at_file, file) in files.iter().enumerate() {
            for (at_table, table) in file.tables.iter().enumerate() {
                let place = (at_file, at_table);
                for (original, entry) in &table.servers {
                    found.push(original.as_str());
                    if !wanted.is_empty() && !wanted.contains(original) {
                        continue;
                    }
                    let around = Surroundings {
                        client: file.client,
                        signs: &signs,
                        home: present.home,
                        is_in_workspace: table.layer == Layer::Workspace,
                        variable: present.variable,
                    };
                    let left = |reason| LeftServer { place, original: original.clone(), reason };
                    if table.repeated.contains(original) {
                        plan.left.push(left("the file has this name several times".into()));
                        continue;
                    }
                    let draft = match Draft::read(entry, &around) {
                        Ok(draft) => draft,
                        Err(Rejection::IsKitbag) => continue,
                        Err(Rejection::Reason(reason)) => {
                            plan.left.push(left(reason));
                            continue;
                        }
                    };
                    let mut server = plan.server(draft, original, table.layer, present, &signs);
                    server.place = place;
                    let wish = valid_name(original);
                    let is_same = |servers: &serde_json::Map<String, Value>, name: &str| {
                        servers.get(name).is_some_and(|table| *table == keys_as_json(&server.keys))
                    };
                    let of_layer = own.iter().find(|(layer, _)| *layer == table.layer);
                    let same = of_layer.and_then(|(_, servers)| {
                        numbered(&wish)
                            .take_while(|name| servers.contains_key(name))
                            .find(|name| is_same(servers, name))
                    });
                    let is_twin = plan.servers.iter().find(|other| {
                        other.layer == table.layer
                            && valid_name(&other.original) == wish
                            && keys_as_json(&other.keys) == keys_as_json(&server.keys)
                    });
                    server.is_present = same.is_some() || is_twin.is_some();
                    server.name = match (same, is_twin) {
                        (Some(name), _) => name,
                        (None, Some(twin)) => twin.name.clone(),
                        (None, None) => numbered(&wish)
                            .find(|name| !taken.contains(name))
                            .expect("it is endless"),
                    };
                    taken.insert(server.name.clone());
                    plan.servers.push(server);
                }
            }
        }
        match wanted.iter().find(|name| !found.contains(&name.as_str())) {
            None => Ok(plan),
            Some(unknown) => {
                let names: Vec<_> = found.iter().map(|name| shown(name).to_string()).collect();
                Err(CliError::Usage(format!(
                    "no server is named `{}`; there are {}",
                    shown(unknown),
                    names.join(", ")
                )))
            }
        }
    }

    fn server(
        &mut self,
        draft: Draft,
        original: &str,
        layer: Layer,
        present: &Present<'_>,
        signs: &SecretSigns,
    ) -> PlannedServer {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let is_process = matches!(draft.address, DraftAddress::Process { .. });
        let mut notes = draft.notes;
        let address = match draft.address {
            DraftAddress::Process { command, directory, env } => {
                keys.push(("command".to_owned(), item(texts(&command))));
                if let Some(directory) = directory {
                    keys.push(("directory".to_owned(), item(directory.into())));
                }
                let mut list = Array::new();
                for (name, value) in env {
                    let table = |key: &str, text: &str| -> TomlValue {
                        [("name", name.as_str()), (key, text)]
                            .into_iter()
                            .collect::<InlineTable>()
                            .into()
                    };
                    match value {
                        DraftValue::Text(text) => {
                            values.push(shown(&name).to_string());
                            list.push(table("value", &text));
                        }
                        DraftValue::Inherit => {
                            values.push(format!("{}, from your environment", shown(&name)));
                            list.push(name.as_str());
                        }
                        DraftValue::Secret(origin) => {
                            let (secret, how) = self.secret(
                                &name.to_ascii_lowercase(),
                                origin,
                                None,
                                present,
                                &mut notes,
                            );
                            values.push(format!("{}, {how}", shown(&name)));
                            list.push(table("secret", secret.as_str()));
                        }
                    }
                }
                if !list.is_empty() {
                    keys.push(("env".to_owned(), item(list.into())));
                }
                shell::command(signs.masked(&command))
            }
            DraftAddress::Remote { url, headers, secret } => {
                keys.push(("url".to_owned(), item(url.as_str().into())));
                if let Some(secret) = secret {
                    let to = destination(&url);
                    let remote = Some((to.as_str(), &secret.placement));
                    let (name, how) = self.secret(
                        &valid_name(original),
                        secret.origin,
                        remote,
                        present,
                        &mut notes,
                    );
                    values.push(format!("{}, {how}", shown(&secret.part)));
                    keys.push(("secret".to_owned(), item(name.as_str().into())));
                }
                values.extend(headers.iter().map(|(name, _)| shown(name).to_string()));
                if !headers.is_empty() {
                    let table: InlineTable =
                        headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
                    keys.push(("headers".to_owned(), item(table.into())));
                }
                shown(&url).to_string()
            }
        };
        if !draft.tools.is_empty() {
            keys.push(("tools".to_owned(), item(texts(&draft.tools))));
        }
        if !draft.is_enabled {
            keys.push(("enable".to_owned(), item(false.into())));
            notes.push("it is disabled, and stays so (`enable = false`)".into());
        }
        PlannedServer {
            place: (0, 0),
            original: original.to_owned(),
            name: String::new(),
            layer,
            keys,
            excluded: draft.excluded,
            is_present: false,
            address,
            values,
            notes,
            is_process,
            is_enabled: draft.is_enabled,
        }
    }

    /// Plans a secret, or finds the same one. Returns its name and its handling.
    fn secret(
        &mut self,
        wish: &str,
        origin: SecretOrigin,
        remote: Option<(&str, &Placement)>,
        present: &Present<'_>,
        notes: &mut Vec<String>,
    ) -> (SecretName, String) {
        let (source, value) = match origin {
            SecretOrigin::Value(value) => (SecretSource::Store, Some(value)),
            SecretOrigin::Variable(name) => (SecretSource::Variable(name), None),
            SecretOrigin::Asked => (SecretSource::Store, None),
        };
        let to: Vec<_> = remote.iter().map(|(to, _)| (*to).to_owned()).collect();
        let placement = remote.map(|(_, placement)| placement.clone());
        let wish: String = wish
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .collect();
        let wish = wish.trim_matches('-');
        let is_equal = |a: Option<&SecretValue>, b: Option<&SecretValue>| match (a, b) {
            (Some(a), Some(b)) => a.reveal() == b.reveal(),
            (a, b) => a.is_none() && b.is_none(),
        };
        let mut name = None;
        let mut is_new = true;
        for candidate in numbered(if wish.is_empty() { "secret" } else { wish }) {
            let Ok(candidate) = SecretName::new(candidate) else { continue };
            if let Some(planned) = self.secrets.iter().find(|planned| planned.name == candidate) {
                let is_same = planned.source == source
                    && planned.to == to
                    && planned.placement == placement
                    && is_equal(planned.value.as_ref(), value.as_ref());
                if !is_same {
                    continue;
                }
                is_new = false;
            } else if let Some(existing) = present.config.secrets.get(&candidate) {
                let places: Vec<_> = existing.to.value.iter().map(ToString::to_string).collect();
                let is_placed = remote.is_none()
                    || places == to && placement.as_ref() == Some(&existing.placement.value);
                let stored = value.as_ref().and_then(|_| (present.stored)(&candidate));
                let is_same = existing.source.value == source
                    && is_placed
                    && (value.is_some() || source != SecretSource::Store)
                    && is_equal(stored.as_ref(), value.as_ref());
                if !is_same {
                    continue;
                }
                is_new = false;
            } else if (present.stored)(&candidate).is_some() {
                // A value without a table is never replaced.
                continue;
            }
            name = Some(candidate);
            break;
        }
        let name = name.expect("the numbers are endless");
        let sent = match remote {
            Some((to, placement)) => format!(", sent to {} as {placement}", shown(to)),
            None => String::new(),
        };
        let how = match (&source, &value) {
            (SecretSource::Variable(variable), _) => {
                format!("secret `{name}`, from your variable `{}`{sent}", shown(variable))
            }
            (_, None) => {
                notes.push(format!(
                    "the client asks for the value of `{name}`; store it with `{}`",
                    shell::command(["kitbag", "secret", "set", name.as_str()])
                ));
                format!("secret `{name}`, without a value yet{sent}")
            }
            (_, Some(_)) if !is_new => format!("secret `{name}`, which is stored already{sent}"),
            (_, Some(_)) => format!("stored as the secret `{name}`{sent}"),
        };
        if is_new {
            self.secrets.push(PlannedSecret { name: name.clone(), source, value, to, placement });
        }
        (name, how)
    }

    pub(super) fn as_json(&self, files: &[ClientFile]) -> Value {
        let path = |place: (usize, usize)| files[place.0].path.display().to_string();
        let server = |server: &PlannedServer| {
            json!({
                "name": server.name,
                "original": server.original,
                "from": path(server.place),
                "layer": layer_name(server.layer),
                "address": server.address,
                "values": server.values,
                "present": server.is_present,
                "notes": server.notes,
            })
        };
        let left = |left: &LeftServer| json!({ "original": left.original, "from": path(left.place), "reason": left.reason });
        json!({
            "servers": self.servers.iter().map(server).collect::<Value>(),
            "left": self.left.iter().map(left).collect::<Value>(),
            "secrets": self.secrets.iter().map(|it| Value::from(it.name.as_str())).collect::<Value>(),
        })
    }
}

pub(super) fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::User => "user",
        Layer::Workspace | Layer::Manifest => "workspace",
    }
}

/// Returns the name of a server that is most similar to the client's name.
pub(super) fn valid_name(original: &str) -> String {
    let mut name = String::new();
    for c in original.trim().chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_start_matches(['-', '_']);
    let name = name[..name.len().min(NAME)].trim_end_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

/// Returns a name, then the name with the numbers from 2.
fn numbered(name: &str) -> impl Iterator<Item = String> {
    let name = name.to_owned();
    (1_u64..).map(move |number| match number {
        1 => name.clone(),
        number => {
            let number = format!("-{number}");
            let end = name.len().min(NAME - number.len());
            format!("{}{number}", &name[..end])
        }
    })
}

fn keys_as_json(keys: &[(String, Item)]) -> Value {
    keys.iter().map(|(key, item)| (key.clone(), as_json(item))).collect()
}

fn texts(texts: &[String]) -> TomlValue {
    texts.iter().map(String::as_str).collect::<Array>().into()
}

fn item(value: TomlValue) -> Item {
    Item::Value(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_become_valid() {
        let check = |original: &str, expected: &str| assert_eq!(valid_name(original), expected);
        check("github", "github");
        check("My Server (v2)", "my-server-v2");
        check("@scope/name", "scope-name");
        check("Ünïcode", "n-code");
        check("--", "server");
        check(&"a".repeat(40), &"a".repeat(32));
        let names: Vec<_> = numbered(&"a".repeat(32)).take(2).collect();
        assert_eq!(names[1], format!("{}-2", "a".repeat(30)));
    }
}
