//! All values in effect as a list, for `config --show`.

use kitbag_base::ByteSize;
use kitbag_base::format_duration;
use kitbag_contract::UnknownArguments;
use kitbag_policy::server::{Confinement, ServerAddress, ServerValue, ServerVariable};
use kitbag_policy::tools::ToolGrants;
use kitbag_policy::{ApprovalRule, Placement, SecretPlace, SecretSource};
use kitbag_secrets::AllowedLeak;
use serde_json::{Value, json};

use crate::config::{
    AcceptedSigner, CommandTemplate, Config, ConfiguredGrants, ConfiguredServer, ConfiguredTool,
    LeakAllowance, Parameter, Parameters, Registries, RootFile, SecretStoreKind, Template,
    ToolRate, ToolSource, Topic,
};
use crate::format::key::KeyPath;
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;

/// A value that is in effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The dotted key, as a person types it: `tools.word_count.limits.time`.
    pub key: String,
    /// The value. Its JSON text is also TOML, except for a table.
    pub value: Value,
    /// The origin of the value.
    pub origin: Origin,
}

impl Config {
    /// Returns all values in effect, including defaults: the workspace, the state directory, the
    /// ceilings, the limits of all tools, the files that look like secrets, the server, the
    /// toolsets, the tools by name, the topics by id.
    ///
    /// A key without a value or a default has no row.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Rows(Vec::new());
        let root = &KeyPath::ROOT;
        rows.add(root.key("workspace"), &self.root, |path| path.to_string_lossy().into());
        if let Some(state) = &self.state {
            rows.add(root.key("state"), state, |path| path.to_string_lossy().into());
        }
        rows.limits(&root.key("ceiling"), &self.ceiling);
        rows.ceiling_grants(&root.key("ceiling").key("grants"), &self.grant_ceiling);
        rows.add(root.key("deny"), &self.deny, |deny| {
            deny.patterns().iter().map(ToString::to_string).collect()
        });
        let network = root.key("network");
        if let Some(proxies) = &self.network.proxies {
            // The credentials are not shown.
            rows.add(network.key("proxy"), proxies, |proxies| proxies.to_string().into());
            if !proxies.value.direct.is_empty() {
                rows.add(network.key("no_proxy"), proxies, |proxies| {
                    proxies.direct.iter().map(ToString::to_string).collect()
                });
            }
            let resolve = &self.network.resolve;
            rows.add(network.key("resolve"), resolve, |resolve| resolve.as_str().into());
        }
        if let Some(first) = self.network.roots.first() {
            let paths = |path: &Sourced<RootFile>| path.value.path.to_string_lossy().into_owned();
            rows.add(network.key("roots"), first, |_| {
                self.network.roots.iter().map(paths).collect()
            });
        }
        rows.registries(root, &self.registries);
        let (audit, log) = (root.key("audit"), &self.audit);
        for (name, switch) in
            [("enable", &log.enable), ("arguments", &log.arguments), ("required", &log.required)]
        {
            rows.add(audit.key(name), switch, |switch| (*switch).into());
        }
        rows.add(audit.key("sync"), &log.sync, |sync| sync.as_str().into());
        rows.size(audit.key("size"), &log.size);
        let output = root.key("output");
        if self.output.fence.origin != Origin::Default {
            rows.add(output.key("fence"), &self.output.fence, |fence| (*fence).into());
        }
        for (severity, action) in self.output.screen.iter().flat_map(|screen| &screen.actions) {
            let key = output.key("screen");
            rows.add(key.key(severity.as_str()), action, |action| action.as_str().into());
        }
        if let Some(default) = &self.approve_default {
            rows.add(root.key("approve").key("default"), default, ApprovalRule::to_json);
        }
        for (class, rule) in &self.approve_classes {
            rows.add(root.key("approve").key("classes").key(class), rule, |rule| json!(rule));
        }
        rows.add(root.key("trust").key("directories"), &self.trust.directories, |directories| {
            directories.iter().map(|path| path.to_string_lossy()).collect()
        });
        rows.limits(&root.key("limits"), &self.limits);
        let (secret_files, globs) =
            (root.key("secret_files"), |globs: &Vec<String>| Value::from(globs.as_slice()));
        rows.add(secret_files.key("names"), &self.secret_files.names, globs);
        rows.add(secret_files.key("except"), &self.secret_files.except, globs);
        rows.secrets(root, self);
        rows.add(root.key("allow_leak"), &self.allowed_leaks, |allowed| {
            allowed.iter().map(allowed_leak).collect()
        });
        rows.size(root.key("serve").key("memory"), &self.server_memory);
        rows.add(root.key("serve").key("session_idle"), &self.session_idle, |idle| {
            format_duration(*idle).to_string().into()
        });
        for (name, person) in &self.people {
            let origin = person.tools.as_ref().map_or(&person.origin, |tools| &tools.origin);
            let patterns = person.tools.as_ref();
            let patterns = patterns.map_or(json!(["*"]), |tools| tools.value.as_slice().into());
            let key = root.key("serve").key("tokens").key(name.as_str()).key("tools").to_string();
            rows.0.push(Row { key, value: patterns, origin: origin.clone() });
        }
        rows.add(root.key("serve").key("unknown_arguments"), &self.unknown_arguments, |unknown| {
            match unknown {
                UnknownArguments::Drop => "drop".into(),
                UnknownArguments::Refuse => "error".into(),
            }
        });
        let (serve, discovery) = (root.key("serve"), &self.discovery);
        rows.add(serve.key("discovery"), &discovery.mode, |mode| mode.as_str().into());
        rows.add(serve.key("tool_tokens"), &discovery.tool_tokens, |tokens| (*tokens).into());
        rows.add(serve.key("pinned"), &discovery.pinned, |globs| globs.as_slice().into());
        rows.size(serve.key("result_size"), &discovery.result_size);
        let toolsets = root.key("toolsets");
        rows.add(toolsets.key("write"), &self.toolsets.write, |write| (*write).into());
        for (name, switch) in &self.toolsets.switches {
            rows.add(toolsets.key(name), switch, |switch| (*switch).into());
        }
        if let Some(zone) = &self.toolsets.zone {
            rows.add(toolsets.key("time").key("zone"), zone, |zone| zone.as_str().into());
        }
        let servers = root.key("servers");
        for (name, server) in &self.servers {
            rows.server(&servers.key(name.as_str()), server);
        }
        let tools = root.key("tools");
        // A tool that is off with its toolset has no values in effect.
        let tools_in_effect = self
            .tools
            .iter()
            .filter(|(_, tool)| matches!(tool.disabled, None | Some(Disabled::Tool { .. })));
        for (name, tool) in tools_in_effect {
            rows.tool(&tools.key(name.as_str()), tool);
        }
        let knowledge = root.key("knowledge");
        for (id, topic) in &self.topics {
            rows.topic(&knowledge.key(id), topic);
        }
        rows.0
    }
}

/// An allowed leak, in the form of the file.
fn allowed_leak(LeakAllowance { leak, reason }: &LeakAllowance) -> Value {
    match leak {
        AllowedLeak::Fingerprint(digits) => {
            json!({ "fingerprint": digits.to_string(), "reason": reason })
        }
        AllowedLeak::Rule(rule) => json!({ "rule": rule, "reason": reason }),
    }
}

/// The placement of a secret, in the form of the file.
fn placement(placement: &Placement) -> Value {
    match placement {
        Placement::Bearer => "bearer".into(),
        Placement::Basic { user: None } => "basic".into(),
        Placement::Basic { user: Some(user) } => json!({ "basic": user }),
        Placement::Header { name, prefix } if prefix.is_empty() => json!({ "header": name }),
        Placement::Header { name, prefix } => json!({ "header": name, "prefix": prefix }),
        Placement::Query { name } => json!({ "query": name }),
        Placement::Path { text } => json!({ "path": text }),
    }
}

/// A variable of a server, in the form of the file.
fn variable(variable: &ServerVariable) -> Value {
    let name = variable.name.as_str();
    match &variable.value {
        ServerValue::Inherit => name.into(),
        ServerValue::Text(text) => json!({ "name": name, "value": text }),
        ServerValue::Secret(secret) => json!({ "name": name, "secret": secret.as_str() }),
    }
}

/// A confinement, in the form of the file.
fn confinement(confine: &Confinement) -> Value {
    let Confinement { read, write, network, memory, processes } = confine;
    let paths = |paths: &[std::path::PathBuf]| -> Value {
        paths.iter().map(|path| path.to_string_lossy()).collect()
    };
    let mut value = json!({ "read": paths(read), "write": paths(write), "network": network });
    if let Some(memory) = memory {
        value["memory"] = memory.to_string().into();
    }
    if let Some(processes) = processes {
        value["processes"] = (*processes).into();
    }
    value
}

struct Rows(Vec<Row>);

impl Rows {
    fn add<T>(&mut self, key: KeyPath<'_>, sourced: &Sourced<T>, value: impl FnOnce(&T) -> Value) {
        let value = value(&sourced.value);
        self.0.push(Row { key: key.to_string(), value, origin: sourced.origin.clone() });
    }

    fn text(&mut self, key: KeyPath<'_>, text: &Option<Sourced<String>>) {
        if let Some(text) = text {
            self.add(key, text, |text| text.as_str().into());
        }
    }

    fn secrets(&mut self, root: &KeyPath<'_>, config: &Config) {
        let secrets = root.key("secrets");
        for (name, secret) in &config.secrets {
            let key = secrets.key(name.as_str());
            match &secret.source.value {
                SecretSource::Store => {}
                SecretSource::Variable(name) => {
                    self.add(key.key("variable"), &secret.source, |_| name.as_str().into());
                }
                SecretSource::Command(words) => {
                    self.add(key.key("command"), &secret.source, |_| words.as_slice().into());
                }
            }
            self.add(key.key("to"), &secret.to, |to| {
                to.iter().map(SecretPlace::to_string).collect()
            });
            self.add(key.key("as"), &secret.placement, placement);
            self.add(key.key("placeholder"), &secret.placeholder, |(query, body)| {
                let parts = [("query", query), ("body", body)];
                parts.into_iter().filter(|(_, is_in)| **is_in).map(|(part, _)| part).collect()
            });
        }
        let (key, store) = (root.key("secret_store"), &config.secret_store);
        let Some(kind) = &store.kind else { return };
        let path = |path: &std::path::PathBuf| path.to_string_lossy().into();
        self.add(key.key("kind"), kind, |kind| kind.as_str().into());
        if let Some(file) = &store.file
            && kind.value != SecretStoreKind::Keyring
        {
            self.add(key.key("file"), file, path);
        }
        match (kind.value, &store.key_file, &store.passphrase_command) {
            (SecretStoreKind::KeyFile, Some(file), _) => self.add(key.key("key_file"), file, path),
            (SecretStoreKind::Passphrase, _, Some(command)) => {
                self.add(key.key("passphrase_command"), command, |words| words.as_slice().into());
            }
            _ => {}
        }
    }

    fn server(&mut self, key: &KeyPath<'_>, server: &ConfiguredServer) {
        let path = |path: &std::path::PathBuf| Value::from(path.to_string_lossy());
        if let Some(address) = &server.address {
            let mut row = |name: &str, value: Value| self.add(key.key(name), address, |_| value);
            match &*address.value {
                ServerAddress::Process(process) => {
                    row("command", process.command.as_slice().into());
                    row("directory", path(&process.directory));
                    if !process.environment.is_empty() {
                        row("env", process.environment.iter().map(variable).collect());
                    }
                    if let Some(confine) = &process.confine {
                        row("confine", confinement(confine));
                    }
                }
                ServerAddress::Remote(remote) => {
                    row("url", remote.url.as_str().into());
                    if let Some(secret) = &remote.secret {
                        row("secret", secret.as_str().into());
                    }
                    if !remote.headers.is_empty() {
                        let headers = remote.headers.iter().cloned();
                        row(
                            "headers",
                            headers.map(|(name, value)| (name, Value::from(value))).collect(),
                        );
                    }
                    if !remote.addresses.is_empty() {
                        let addresses = remote.addresses.iter();
                        row("addresses", addresses.map(ToString::to_string).collect());
                    }
                }
            }
        }
        for list in &server.tools {
            self.add(key.key("tools"), list, |list| list.as_slice().into());
        }
        self.add(key.key("prefix"), &server.prefix, |prefix| prefix.as_str().into());
        self.add(key.key("enable"), &server.enable, |enable| (*enable).into());
        for (_, rule) in &server.approve {
            self.add(key.key("approve"), rule, ApprovalRule::to_json);
        }
        self.add(key.key("idle"), &server.idle, |idle| format_duration(*idle).to_string().into());
    }

    fn tool(&mut self, key: &KeyPath<'_>, tool: &ConfiguredTool) {
        let source = &tool.source;
        self.add(key.key("source"), source, |source| match source {
            ToolSource::Builtin { .. } => "builtin".into(),
            ToolSource::Local(_) => "local".into(),
            ToolSource::Script(_) => "script".into(),
            ToolSource::Bytes(_) => "bytes".into(),
            ToolSource::Native => "native".into(),
            ToolSource::Server(tool) => tool.source().into(),
        });
        match &source.value {
            ToolSource::Builtin { name } => {
                self.add(key.key("builtin"), name, |name| name.as_str().into());
            }
            ToolSource::Local(local) => {
                self.add(key.key("wasm"), &local.wasm, |path| path.to_string_lossy().into());
                self.text(key.key("replaces"), &local.replaces);
            }
            ToolSource::Script(script) => {
                self.add(key.key("script"), &script.path, |path| {
                    path.file_stem().unwrap_or_default().to_string_lossy().into()
                });
                self.text(key.key("replaces"), &script.replaces);
            }
            ToolSource::Bytes(_) | ToolSource::Native | ToolSource::Server(_) => {}
        }
        if let Some(call) = source.value.component_call() {
            self.text(key.key("function"), &call.function);
            if let Some(command) = &call.command {
                let texts = |command: &CommandTemplate| {
                    command.arguments.iter().map(Template::as_str).collect()
                };
                self.add(key.key("command"), command, texts);
                if let Some(stdin) = &command.value.stdin {
                    self.add(key.key("stdin"), command, |_| stdin.as_str().into());
                }
            }
        }
        self.add(key.key("enable"), &tool.enable, |enable| (*enable).into());
        self.text(key.key("title"), &tool.title);
        self.text(key.key("description"), &tool.description);
        if let Some(parameters) = source.value.parameters() {
            self.parameters(&key.key("parameters"), parameters);
        }
        let is_builtin = matches!(source.value, ToolSource::Builtin { .. });
        self.grants(&key.key("grants"), &tool.grants, is_builtin);
        self.limits(&key.key("limits"), &tool.limits);
        for ToolRate { rates, counted_as } in &tool.rates {
            // The rate of another name is shown there.
            if *counted_as == tool.name {
                self.add(key.key("rate"), rates, |rates| rates.to_string().into());
            }
        }
        for rule in &tool.approve.rules {
            self.add(key.key("approve"), rule, ApprovalRule::to_json);
        }
        if let (true, Some(origin)) = (tool.approve.rules.is_empty(), &tool.approve.never) {
            let never = Sourced { value: ApprovalRule::Never, origin: origin.clone() };
            self.add(key.key("approve"), &never, ApprovalRule::to_json);
        }
        if tool.mask.origin != Origin::Default {
            self.add(key.key("mask"), &tool.mask, |mask| (*mask).into());
        }
        for (id, answer) in &tool.answers {
            self.add(key.key("answers").key(id), answer, Value::clone);
        }
    }

    /// Adds the grants of a tool. Grants that a built-in gets only for a call are not grants of the
    /// configuration. A kind with an empty grant has a row if a file sets it.
    fn grants(&mut self, key: &KeyPath<'_>, grants: &ConfiguredGrants, is_builtin: bool) {
        for kind in grants.value.kinds() {
            let origin = grants.origin_of(kind.key()).clone();
            let is_written = origin != Origin::Default && !(is_builtin && origin == Origin::Tool);
            if kind.is_empty() && !is_written {
                continue;
            }
            let (key, value) = (key.key(kind.key()).to_string(), kind.to_json());
            self.0.push(Row { key, value, origin });
        }
    }

    /// Like [`grants`](Self::grants). A ceiling lists tools by name only.
    fn ceiling_grants(&mut self, key: &KeyPath<'_>, grants: &ConfiguredGrants) {
        let first = self.0.len();
        self.grants(key, grants, false);
        let tools = key.key(ToolGrants::KEY).to_string();
        for row in self.0[first..].iter_mut().filter(|row| row.key == tools) {
            if let Value::Object(names) = &row.value {
                row.value = names.keys().map(String::as_str).collect();
            }
        }
    }

    fn parameters(&mut self, key: &KeyPath<'_>, parameters: &Parameters) {
        for (name, parameter) in &parameters.entries {
            self.parameter(&key.key(name), parameter, true);
        }
    }

    fn parameter(&mut self, key: &KeyPath<'_>, parameter: &Parameter, has_required: bool) {
        if let Some(kind) = &parameter.kind {
            self.add(key.key("type"), kind, |kind| kind.as_str().into());
        }
        self.text(key.key("description"), &parameter.description);
        if has_required {
            self.add(key.key("required"), &parameter.required, |required| (*required).into());
        }
        if let Some(default) = &parameter.default {
            self.add(key.key("default"), default, Value::clone);
        }
        if let Some(choices) = &parameter.choices {
            self.add(key.key("enum"), choices, |choices| choices.clone().into());
        }
        if let Some(items) = &parameter.items {
            self.parameter(&key.key("items"), items, false);
        }
        if let Some(properties) = &parameter.properties {
            self.parameters(&key.key("properties"), properties);
        }
    }

    fn limits(&mut self, key: &KeyPath<'_>, limits: &EffectiveLimits) {
        limits.clone().map(
            &mut (self, key),
            |(rows, key), limit, size| rows.size(key.key(limit), &size),
            |(rows, key), limit, time| {
                rows.add(key.key(limit), &time, |time| format_duration(*time).to_string().into());
            },
            |(rows, key), limit, number| {
                rows.add(key.key(limit), &number, |number| (*number).into());
            },
            |(rows, key), limit, fuel| {
                if let Some(fuel) = fuel {
                    rows.add(key.key(limit), &fuel, |fuel| (*fuel).into());
                }
            },
        );
    }

    fn registries(&mut self, root: &KeyPath<'_>, registries: &Registries) {
        let registry = root.key("registry");
        self.text(registry.key("index"), &registries.index);
        self.text(registry.key("packages"), &registries.packages);
        for (namespace, host) in &registries.namespaces {
            let key = registry.key("namespaces");
            self.add(key.key(namespace), host, |host| host.as_str().into());
        }
        if let Some(file) = &registries.trust_root {
            self.add(registry.key("trust_root"), file, |it| it.path.to_string_lossy().into());
        }
        let patterns = root.key("registries");
        for rule in &registries.rules {
            let key = patterns.key(&rule.pattern);
            if let Some(signers) = &rule.signed_by {
                self.add(key.key("signed_by"), signers, |signers| {
                    signers.iter().map(signer).collect()
                });
            }
            for (name, flag) in [("private", &rule.private), ("plain_http", &rule.plain_http)] {
                if let Some(flag) = flag {
                    self.add(key.key(name), flag, |flag| (*flag).into());
                }
            }
            self.text(key.key("username"), &rule.username);
            if let Some(secret) = &rule.secret {
                self.add(key.key("secret"), secret, |name| name.to_string().into());
            }
        }
    }

    fn size(&mut self, key: KeyPath<'_>, size: &Sourced<ByteSize>) {
        self.add(key, size, |size| size.to_string().into());
    }

    fn topic(&mut self, key: &KeyPath<'_>, topic: &Topic) {
        self.add(key.key("subjects"), &topic.subjects, |path| path.to_string_lossy().into());
        self.add(key.key("enable"), &topic.enable, |enable| (*enable).into());
        self.add(key.key("title"), &topic.title, |title| title.as_str().into());
        self.text(key.key("introduction"), &topic.introduction);
        self.text(key.key("description"), &topic.description);
        if topic.skills.value {
            self.add(key.key("skills"), &topic.skills, |skills| (*skills).into());
        }
        self.add(key.key("learned"), &topic.learned, |globs| globs.as_slice().into());
        self.add(key.key("include"), &topic.include, |globs| globs.as_slice().into());
        self.add(key.key("disabled"), &topic.disabled, |slugs| slugs.as_slice().into());
    }
}

fn signer(signer: &AcceptedSigner) -> Value {
    match signer {
        AcceptedSigner::Key(key) => key.path.to_string_lossy().into(),
        AcceptedSigner::Identity { identity, issuer } => {
            json!({ "identity": identity, "issuer": issuer })
        }
    }
}
