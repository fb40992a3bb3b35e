//! The configuration of hyper-mcp: `plugins`, each with `url` (or `path`) and `runtime_config`.
//!
//! A file may hold several plugins, in JSON, YAML or TOML. A plugin of Extism has no scheme and no
//! methods in its hosts, and sees a directory under the path that it has on the host. Its variables
//! are configuration values.

use kitbag::base::ByteSize;
use kitbag::base::text::alternatives;
use kitbag::policy::ConfigValues;

use super::fields::{Fields, Notes, join};
use super::manifest::{Format, Manifest};
use super::node::{Node, Problem, quoted};
use super::requested_grants::{
    ManifestDirectory, ManifestHttp, guest_path, host_path, host_pattern,
};
use super::translate::decoded;
use super::{json, toml_tree, yaml};

const PLUGINS: &str = "plugins";

impl Manifest {
    /// Translates a plugin of a configuration of hyper-mcp: the plugin of this name, or the only
    /// plugin. `file` is the name of the file, which tells its language.
    ///
    /// # Errors
    ///
    /// The file cannot be read, has no such plugin or several, or the plugin is not a file.
    pub(crate) fn of_hyper_mcp(
        source: impl AsRef<[u8]>,
        file: &str,
        plugin: Option<&str>,
    ) -> Result<Self, String> {
        let source = source.as_ref();
        let root = decoded(source).and_then(|text| match file.rsplit_once('.') {
            Some((_, "yaml" | "yml")) => yaml::read(text),
            Some((_, "toml")) => toml_tree::read(text),
            _ => json::read(text),
        });
        let root = root.map_err(|problem| format!("it cannot be read: {problem}"))?;
        let mut notes = Notes::default();
        let plugins = Fields::of("", &root, &mut notes)
            .and_then(|mut root| root.table(PLUGINS, &mut notes))
            .ok_or_else(|| format!("it has no `{PLUGINS}`"))?;
        let entries: Vec<_> = plugins.entries().collect();
        let names: Vec<_> = entries.iter().map(|(_, name, _)| *name).collect();
        let all = || alternatives(&names);
        let name = match (plugin, &names[..]) {
            (_, []) => return Err(format!("it has no `{PLUGINS}`")),
            (Some(plugin), names) if names.contains(&plugin) => plugin,
            (Some(plugin), _) => {
                return Err(format!(
                    "it has no plugin {}; its plugins are {}",
                    quoted(plugin),
                    all()
                ));
            }
            (None, [only]) => only,
            (None, _) => {
                return Err(format!("it has several plugins: choose {} with `--tool`", all()));
            }
        };
        let node = entries.iter().find(|(_, own, _)| *own == name).map(|(_, _, node)| *node);
        let path = join(PLUGINS, name);
        let fields = node.and_then(|node| Fields::of(path, node, &mut notes));
        let fields = fields.ok_or_else(|| format!("the plugin {} is not a table", quoted(name)))?;
        let mut manifest = Self::empty(Format::HyperMcp, source);
        manifest.name = Some(name.to_owned());
        translate(fields, name, &mut manifest, &mut notes)?;
        manifest.finish(notes);
        Ok(manifest)
    }
}

fn translate(
    mut plugin: Fields<'_>,
    name: &str,
    manifest: &mut Manifest,
    notes: &mut Notes,
) -> Result<(), Problem> {
    let url = plugin.text("url", notes).or_else(|| plugin.text("path", notes));
    let url = url.ok_or_else(|| format!("the plugin {} has no `url`", quoted(name)))?;
    let path = url.strip_prefix("file://").filter(|path| path.starts_with('/'));
    let path = path.ok_or_else(|| {
        format!(
            "the plugin {} is {}, which kitbag does not download; fetch it, and name its file",
            quoted(name),
            quoted(url)
        )
    })?;
    manifest.component = Some(path.to_owned());
    if let Some(config) = plugin.table("runtime_config", notes) {
        runtime_config(config, manifest, notes);
    }
    plugin.note_unread(notes);
    Ok(())
}

fn runtime_config(mut config: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    for (path, host) in config.texts("allowed_hosts", notes) {
        match host_pattern(host, "") {
            Ok(url) => manifest.requested.requests(ManifestHttp { url, methods: None }),
            Err(reason) => notes.add(path, reason),
        }
    }
    for (path, directory) in config.texts("allowed_paths", notes) {
        match self::directory(directory) {
            Ok(requested) => manifest.requested.directories.push(requested),
            Err(reason) => notes.add(path, reason),
        }
    }
    if let Some(variables) = config.table("env_vars", notes) {
        let mut values = ConfigValues::default();
        for (path, key, node) in variables.entries() {
            match node {
                Node::Text(value) if value.starts_with("${") => {
                    let text = "it is a variable of hyper-mcp's environment; it is dropped: set the \
                                value with `grants.config`, or as a secret";
                    notes.add(path, text);
                }
                Node::Text(value) => match values.set(key, value) {
                    Ok(()) => manifest.requested.config.push((key.to_owned(), value.clone())),
                    Err(error) => notes.add(path, format!("{error}; it is dropped")),
                },
                other => notes.wrong_type(path, "a text", other),
            }
        }
    }
    if let Some(limit) = config.text("memory_limit", notes) {
        match size(limit) {
            Some(size) => manifest.limits.push(("memory", format!("\"{size}\""))),
            None => notes.add(
                config.path("memory_limit"),
                "it is not a size such as `512Mi`; it is ignored",
            ),
        }
    }
    let skipped = ["skip_tools", "skip_prompts", "skip_resources", "skip_resource_templates"];
    let text = "kitbag adds all tools; it is ignored: switch tools off with `enable = false`";
    config.remark(&skipped, text, notes);
    config.note_unread(notes);
}

/// A directory that the plugin sees under its own path. `ro:` makes it read-only.
fn directory(text: &str) -> Result<ManifestDirectory, String> {
    let (path, is_writable) = match text.strip_prefix("ro:") {
        Some(path) => (path, false),
        None => (text, true),
    };
    let host = host_path(path)?;
    if !host.starts_with('/') {
        return Err(format!("{} is not an absolute path; it is dropped", quoted(text)));
    }
    Ok(ManifestDirectory { guest: guest_path(&host)?, host, is_writable })
}

/// Reads a size such as `512Mi` or `100 MB`, rounded down to whole kibibytes.
fn size(text: &str) -> Option<ByteSize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match &*text[digits..].trim().to_ascii_lowercase() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        _ => return None,
    };
    let kibibytes = number.checked_mul(unit)? >> 10;
    (kibibytes > 0).then(|| ByteSize::bytes(kibibytes << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(size(text).map(|size| size.to_string()).as_deref(), expected, "{text}");
        };
        check("512Mi", Some("512 MiB"));
        check("1GB", Some("976562 KiB"));
        check("100 MB", Some("97656 KiB"));
        check("65536", Some("64 KiB"));
        for text in ["", "0", "1", "Mi", "1.5Mi", "1 parsec", "99999999999999999999", "-1"] {
            check(text, None);
        }
        check("18446744073709551615Gi", None);
    }

    #[test]
    fn one_plugin_of_several_is_selected() {
        let source = r#"{"plugins":{"a":{"url":"file:///a.wasm"},"b":{"url":"oci://r/b"}}}"#;
        let read = |plugin: Option<&str>| Manifest::of_hyper_mcp(source, "config.json", plugin);
        assert_eq!(read(Some("a")).unwrap().component.as_deref(), Some("/a.wasm"));
        let several = "it has several plugins: choose `a` or `b` with `--tool`";
        assert_eq!(read(None).unwrap_err(), several);
        assert_eq!(
            read(Some("c")).unwrap_err(),
            "it has no plugin `c`; its plugins are `a` or `b`"
        );
        assert_eq!(
            read(Some("b")).unwrap_err(),
            "the plugin `b` is `oci://r/b`, which kitbag does not download; fetch it, and name its \
             file"
        );
        for source in ["{}", "[]", "{\"plugins\":{}}", "{\"plugins\":1}"] {
            let error = Manifest::of_hyper_mcp(source, "config.json", None).unwrap_err();
            assert_eq!(error, "it has no `plugins`", "{source}");
        }
    }
}
