//! The source of `kitbag add`: a component, and an optional manifest beside it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::commands::consent::add::manifests::{Format, Manifest};
use kitbag::base::ContentDigest;
use kitbag::base::shell;
use kitbag::base::text::{alternatives, shown};
use kitbag::config::settled;
use kitbag::contract::ToolName;
use kitbag::host::{
    ACT_MANIFEST, ComponentBytes, ComponentSource, DescribeResult, Host, Import, Limits,
    ReadComponent, RunContext, read_component,
};
use kitbag::toolbox::RecordedDescription;
use kitbag::trust::digest_of;
use toml_edit::DocumentMut;

use crate::commands::registry::download::Download;
use crate::console::listener::Screen;
use crate::error::CliError;

/// Maximum number of manifest bytes that are read. The translation notes a larger file.
const MANIFEST_BYTES: u64 = 1 << 20;

/// Maximum number of directory entries that are examined.
const MOST_ENTRIES: usize = 10_000;

pub(crate) struct Source {
    /// The path of the component as it was found.
    pub(crate) path: PathBuf,
    pub(crate) origin: String,
    pub(crate) component: ReadComponent,
    pub(crate) manifest: Option<SourceManifest>,
    /// Manifests in subdirectories, which are not read.
    pub(crate) nested: Vec<String>,
    /// The name of a tool selected the file of the component, or the plugin of a configuration.
    pub(crate) is_selected: bool,
    /// The download that the component is from.
    pub(crate) download: Option<Download>,
}

pub(crate) struct SourceManifest {
    pub(crate) file: String,
    pub(crate) digest: ContentDigest,
    pub(crate) content: ManifestContent,
}

pub(crate) enum ManifestContent {
    /// A manifest in kitbag's own form: the table of a tool.
    Own(Box<DocumentMut>),
    Foreign(Box<Manifest>),
}

impl SourceManifest {
    /// Returns the manifest of another host in this file.
    fn foreign(file: &Path, manifest: Manifest) -> Self {
        Self {
            file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            digest: manifest.digest,
            content: ManifestContent::Foreign(Box::new(manifest)),
        }
    }
}

/// The configuration of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OtherProgram {
    /// A configuration of JP with `[conversation.tools.NAME]`
    Jp,
    /// A configuration of hyper-mcp with `plugins`
    HyperMcp,
}

/// Returns the error for a path that does not exist.
fn absent(named: &Path) -> String {
    let name = named.to_string_lossy();
    elsewhere(named).unwrap_or_else(|| match name.contains(['/', '\\']) || name.contains(".wasm") {
        true => format!("`{}` does not exist", shown(&name)),
        false => format!(
            "`{}` does not exist; `kitbag add` takes the `.wasm` file of a component, or a directory \
             that holds one: packages of npm and PyPI are programs with all of your rights, which \
             kitbag does not run",
            shown(&name)
        ),
    })
}

/// Returns advice for a name that is neither a file nor a reference.
fn elsewhere(named: &Path) -> Option<String> {
    let text = named.to_str()?;
    let shown = shown(text);
    let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
    // `ghcr.io/owner/name:tag`. A host with a port, such as `localhost:5000`, looks like a scheme.
    let (host, image) = text.split_once('/').unwrap_or_default();
    let is_host = (host.contains('.') || host.contains(':'))
        && !host.ends_with(':')
        && host.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_registry = is_host && (image.contains([':', '@']) || host == "ghcr.io");
    let rest = if is_registry { text } else { rest };
    let file = rest.rsplit('/').next().unwrap_or_default();
    let file = file.split(['?', '#', '@', ':']).next().unwrap_or_default();
    let file = Path::new(file).with_extension("wasm");
    let file = file.to_string_lossy();
    let web = rest.trim_start_matches('/').trim_end_matches('/');
    let is_github = web.starts_with("github.com/") && web.split('/').count() <= 3
        || scheme.starts_with("git")
        || scheme == "ssh";
    Some(match scheme {
        _ if scheme == "docker" || host == "docker.io" => format!(
            "`{shown}` is a container image; kitbag runs WebAssembly components, not containers"
        ),
        _ if is_github => format!(
            "`{shown}` is a repository, but `kitbag add` takes components: clone it, build its \
             component, and add the `.wasm` file"
        ),
        "file" if rest.starts_with('/') => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            format!(
                "`{shown}` is a URL; write the path: `{}`",
                shell::command(["kitbag", "add", path])
            )
        }
        _ if rest.starts_with("//") => format!(
            "`{shown}` is a URL, but `kitbag add` takes files: download it, then `{}`",
            shell::command(["kitbag", "add", &format!("./{file}")])
        ),
        _ if is_registry => {
            let add = shell::command(["kitbag", "add", &format!("oci://{text}")]);
            format!("`{shown}` is not a file; for an artifact in a registry, run `{add}`")
        }
        "pip" | "pypi" | "npm" | "uvx" | "npx" | "cargo" | "brew" => package(text),
        "" if text.starts_with('@') && text.contains('/') => package(text),
        "" if matches!(text, "npx" | "uvx" | "pip" | "npm" | "docker") => package(text),
        // `namespace:package@version`, the notation of WebAssembly package managers.
        _ if is_package_name(scheme) && is_package_name(rest) => {
            format!("`{shown}` is a package without a version; write it as `{shown}@1.0.0`")
        }
        _ => return None,
    })
}

/// Returns whether a word may be the namespace or the name of a package.
fn is_package_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '-'))
}

fn package(text: &str) -> String {
    format!(
        "`{}` is a package whose program has all of your rights; kitbag runs WebAssembly \
         components: add the `.wasm` file of one",
        shown(text)
    )
}

impl Source {
    /// Finds and reads the component and its manifest, if one exists. Does not run anything.
    ///
    /// `from` is the program whose configuration the file is, and `tool` selects one of its tools.
    pub(crate) fn read(
        named: &Path,
        home: Option<&Path>,
        from: Option<OtherProgram>,
        tool: Option<&str>,
    ) -> Result<Self, CliError> {
        let unreadable = |source| CliError::Read { path: named.display().to_string(), source };
        // Without `..`, because requested paths are compared with it.
        let absolute = settled(&std::path::absolute(named).map_err(unreadable)?);
        let metadata = fs::metadata(&absolute).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CliError::Usage(absent(named)),
            _ => unreadable(source),
        })?;
        match from {
            Some(OtherProgram::Jp) => return Self::of_jp(&absolute, home, tool),
            Some(OtherProgram::HyperMcp) => return Self::of_hyper_mcp(&absolute, home, tool),
            None => {}
        }
        let (path, directory) = match metadata.is_dir() {
            true => (None, absolute),
            false => {
                let directory = absolute.parent().unwrap_or(Path::new("/")).to_owned();
                (Some(absolute), directory)
            }
        };
        let entries = Entries::read(&directory, path.as_deref()).map_err(unreadable)?;
        let manifest = entries.manifest(&directory, path.as_deref(), tool)?;
        let selected = match (&path, tool) {
            (None, Some(tool)) => entries.component_of(&directory, tool)?,
            _ => None,
        };
        let is_selected = selected.is_some();
        let path = match path.or(selected) {
            Some(path) => path,
            None => entries.component(&directory, manifest.as_ref())?,
        };
        let source = Self::of_component(path, home, manifest)?;
        let section = || source.component.inspection.act_manifest.as_deref().map(of_section);
        let manifest = source.manifest.or_else(section);
        Ok(Self { nested: entries.nested, is_selected, manifest, ..source })
    }

    /// Reads a download: its component, and the manifest beside it.
    pub(crate) fn of_download(download: Download, tool: Option<&str>) -> Result<Self, CliError> {
        let source = Self::read(&download.component, None, None, tool)?;
        Ok(Self { origin: download.origin.clone(), download: Some(download), ..source })
    }

    /// Reads a component in its final location, where manifests beside it do not belong to another
    /// host.
    pub(crate) fn in_place(path: &Path, home: Option<&Path>) -> Result<Self, CliError> {
        Self::of_component(path.to_owned(), home, None)
    }

    /// Reads a tool of JP. The component path is relative to JP's workspace, the nearest ancestor
    /// directory that holds `.jp`.
    fn of_jp(file: &Path, home: Option<&Path>, tool: Option<&str>) -> Result<Self, CliError> {
        let directory = file.parent().unwrap_or(Path::new("/"));
        let root = directory.ancestors().find(|directory| directory.join(".jp").is_dir());
        let root = root.unwrap_or(directory);
        let bytes = read_manifest(file)?;
        let manifest = Manifest::of_jp(&bytes, tool)
            .map_err(|problem| CliError::Usage(format!("`{}`: {problem}", file.display())))?;
        let named = manifest.component.clone().unwrap_or_default();
        let path = inside(root, &named)?;
        Self::of_component(path, home, Some(SourceManifest::foreign(file, manifest)))
    }

    /// Reads a plugin of hyper-mcp. Its path is absolute: the configuration is the user's own.
    fn of_hyper_mcp(
        file: &Path,
        home: Option<&Path>,
        plugin: Option<&str>,
    ) -> Result<Self, CliError> {
        let bytes = read_manifest(file)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let manifest = Manifest::of_hyper_mcp(&bytes, &name, plugin)
            .map_err(|problem| CliError::Usage(format!("`{}`: {problem}", file.display())))?;
        let path = settled(Path::new(manifest.component.as_deref().unwrap_or_default()));
        refuse_link(&path)?;
        let source = Self::of_component(path, home, Some(SourceManifest::foreign(file, manifest)))?;
        // It selected a plugin. All tools of the plugin are added.
        Ok(Self { is_selected: true, ..source })
    }

    fn of_component(
        path: PathBuf,
        home: Option<&Path>,
        manifest: Option<SourceManifest>,
    ) -> Result<Self, CliError> {
        let component = read_component(&path).map_err(CliError::Component)?;
        let origin = match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        };
        let nested = Vec::new();
        Ok(Self { path, origin, component, manifest, nested, is_selected: false, download: None })
    }

    /// Returns the tool's name from its section or manifest, otherwise from its file name.
    pub(crate) fn name(&self, described: &DescribeResult) -> ToolName {
        let foreign = self.foreign().and_then(|manifest| manifest.name.clone());
        let own = described.description().and_then(|description| match &description.tools[..] {
            [only] => Some(only.name.clone()),
            _ => None,
        });
        let said = foreign.or(own).and_then(|name| ToolName::new(name).ok());
        said.unwrap_or_else(|| crate::commands::name_of(&self.path))
    }

    /// Returns the manifest if it belongs to another host.
    pub(crate) fn foreign(&self) -> Option<&Manifest> {
        match &self.manifest.as_ref()?.content {
            ManifestContent::Foreign(manifest) => Some(manifest),
            ManifestContent::Own(_) => None,
        }
    }

    /// Returns the version in the manifest or the component.
    pub(crate) fn version(&self) -> Option<String> {
        let foreign = self.foreign().and_then(fitting_version);
        foreign.or_else(|| self.component.version.clone())
    }

    /// Returns the component's own description: from its section, otherwise by asking it in the
    /// sandbox without grants.
    pub(crate) fn described(
        &self,
        host: &Host,
        limits: &Limits,
        as_json: bool,
    ) -> Result<DescribeResult, CliError> {
        let inspection = &self.component.inspection;
        if let Some(section) = &inspection.section {
            return Ok(section.clone());
        }
        let is_foreign = inspection.lane.is_some_and(|lane| lane.is_foreign());
        if !inspection.describes() && !is_foreign {
            return Ok(DescribeResult::Nothing);
        }
        let name = self.path.display().to_string();
        let bytes = ComponentBytes::new(name, self.component.bytes.clone());
        let source = ComponentSource::Bytes(bytes);
        let asked = Screen::during(as_json, |events| {
            let context = RunContext { events, ..RunContext::default() };
            host.component(&source, limits, &context)
        });
        Ok(asked.map_err(CliError::Component)?.described().clone())
    }

    pub(crate) fn parts(&self, described: &DescribeResult, own: &str) -> RecordedDescription {
        RecordedDescription::of(described, own)
    }

    /// Returns the names of the component's imports, sorted.
    pub(crate) fn imports(&self) -> Vec<String> {
        let inspection = &self.component.inspection;
        // An import without a colon is a type that the world uses.
        let is_listed = |import: &&Import| inspection.is_module || import.name.contains(':');
        let named = inspection.imports.iter().filter(is_listed);
        let mut names: Vec<_> = named.map(|import| import.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Returns the manifest in the section of a component for ACT.
fn of_section(section: &[u8]) -> SourceManifest {
    let manifest = Manifest::of_act_section(section);
    SourceManifest {
        file: ACT_MANIFEST.to_owned(),
        digest: manifest.digest,
        content: ManifestContent::Foreign(Box::new(manifest)),
    }
}

/// Returns the version in a manifest if it is short and plain.
pub(super) fn fitting_version(manifest: &Manifest) -> Option<String> {
    let fits = |text: &String| text.len() <= 64 && text.chars().all(|c| c.is_ascii_graphic());
    manifest.version.clone().filter(fits)
}

/// The file names in a directory that may be part of a tool.
struct Entries {
    components: Vec<String>,
    nested: Vec<String>,
    manifests: Vec<(String, Option<Format>)>,
}

impl Entries {
    /// Finds manifests, and also components if none was named.
    fn read(directory: &Path, component: Option<&Path>) -> io::Result<Self> {
        let (components, nested) = (Vec::new(), Vec::new());
        let mut entries = Self { components, nested, manifests: Vec::new() };
        let stem = component.and_then(|path| path.file_stem()?.to_str());
        for entry in fs::read_dir(directory)?.take(MOST_ENTRIES) {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if name.starts_with('.') {
                continue;
            }
            // `manifest.toml` beside `manifest.wasm` is kitbag's own.
            let is_own = ["manifest", "act"].iter().any(|own| {
                name.strip_suffix(".toml") == Some(own)
                    && (stem == Some(own) || directory.join(format!("{own}.wasm")).exists())
            });
            if let Some(format) = Format::of_file(&name).filter(|_| !is_own) {
                // A file with the name of another tool is not this tool's manifest.
                let own = Format::tool_of_file(&name);
                if own.is_none_or(|own| stem.is_none_or(|stem| own == stem)) {
                    entries.manifests.push((name, Some(format)));
                }
            } else if let Some(tool) = name.strip_suffix(".toml") {
                // A manifest of kitbag's own has the name of the component.
                let is_own = match stem {
                    Some(stem) => tool == stem,
                    None => directory.join(format!("{tool}.wasm")).exists(),
                };
                if is_own {
                    entries.manifests.push((name, None));
                }
            } else if name.ends_with(".wasm") {
                entries.components.push(name);
            } else if component.is_none() {
                entries.add_nested(directory, &name);
            }
        }
        entries.nested.sort_unstable();
        entries.components.sort_unstable();
        entries.manifests.sort_unstable();
        Ok(entries)
    }

    /// Adds the foreign manifests in a subdirectory, unless it is a link.
    fn add_nested(&mut self, directory: &Path, name: &str) {
        const MOST: usize = 20;
        let path = directory.join(name);
        if path.is_symlink() || !path.is_dir() {
            return;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().take(MOST_ENTRIES).flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let manifests = names.filter(|name| Format::of_file(name).is_some());
        let room = MOST.saturating_sub(self.nested.len());
        self.nested.extend(manifests.take(room).map(|file| format!("{name}/{file}")));
    }

    fn manifest(
        &self,
        directory: &Path,
        component: Option<&Path>,
        tool: Option<&str>,
    ) -> Result<Option<SourceManifest>, CliError> {
        let (file, format) = match &self.manifests[..] {
            [] => return Ok(None),
            [only] => only,
            [(first, _), (second, _), ..] => {
                return Err(CliError::Usage(format!(
                    "`{}` has two manifests, `{first}` and `{second}`; remove one",
                    directory.display()
                )));
            }
        };
        let path = directory.join(file);
        let bytes = read_manifest(&path)?;
        let content = match format {
            Some(format) => {
                // A person chose the directory, but not the links in it.
                let real = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
                let mut manifest = Manifest::translate_tool(*format, &bytes, &real, tool);
                if let Some(tool) = tool
                    && !manifest.tools.is_empty()
                    && !manifest.has_tool(tool)
                {
                    let tools: Vec<_> = manifest.tools.iter().map(String::as_str).collect();
                    return Err(CliError::Usage(format!(
                        "`{}` has no tool `{}`; its tools are {}",
                        path.display(),
                        shown(tool),
                        alternatives(&tools)
                    )));
                }
                if let Some(schema) = &manifest.schema {
                    let schema = read_manifest(&inside(directory, schema)?)?;
                    manifest.take_schema(&schema);
                }
                ManifestContent::Foreign(Box::new(manifest))
            }
            None => {
                let text = str::from_utf8(&bytes).map_err(|error| {
                    CliError::Usage(format!("the manifest `{}`: {error}", path.display()))
                })?;
                let document = text.parse::<DocumentMut>().map_err(|error| {
                    let place = path.display();
                    CliError::Usage(format!("the manifest `{place}` is not TOML: {error}"))
                })?;
                ManifestContent::Own(Box::new(document))
            }
        };
        // A manifest that names another component does not describe this one.
        if let (Some(component), ManifestContent::Foreign(foreign)) = (component, &content)
            && let Some(other) = &foreign.component
            && component.file_name() != Path::new(other).file_name()
        {
            return Ok(None);
        }
        Ok(Some(SourceManifest { file: file.clone(), digest: digest_of(&bytes), content }))
    }

    /// Returns the component with the name of a tool: `NAME.wasm` or, as in Butterfly Bot,
    /// `NAME_tool.wasm`, in the directory or in `wasm` below it. `None`: there is none, or the
    /// directory holds only one component.
    fn component_of(&self, directory: &Path, tool: &str) -> Result<Option<PathBuf>, CliError> {
        if let [_] = &self.components[..] {
            return Ok(None);
        }
        let files = [format!("{tool}.wasm"), format!("{tool}_tool.wasm")];
        let here = files.iter().find(|file| self.components.contains(file)).cloned();
        let below = || {
            let mut files = files.iter().map(|file| format!("wasm/{file}"));
            files.find(|file| directory.join(file).is_file())
        };
        let is_plain = !tool.contains('/');
        let file = here.or_else(|| self.components.is_empty().then(below).flatten());
        file.filter(|_| is_plain).map(|file| inside(directory, &file)).transpose()
    }

    /// Returns the component of a directory: the component in its manifest, or the only component.
    fn component(
        &self,
        directory: &Path,
        manifest: Option<&SourceManifest>,
    ) -> Result<PathBuf, CliError> {
        let place = directory.display();
        let named = manifest.and_then(|manifest| match &manifest.content {
            ManifestContent::Foreign(foreign) => foreign.component.as_deref(),
            ManifestContent::Own(_) => None,
        });
        match (named, &self.components[..]) {
            (Some(named), _) => inside(directory, named),
            (None, [only]) => inside(directory, only),
            (None, []) => Err(CliError::Usage(format!(
                "`{place}` has no component: no file in it ends in `.wasm`"
            ))),
            (None, several) => {
                let names = alternatives(several);
                Err(CliError::Usage(format!("`{place}` has several components: name {names}")))
            }
        }
    }
}

/// Returns the path of a component in a directory. Refuses links below the directory.
fn inside(directory: &Path, named: &str) -> Result<PathBuf, CliError> {
    let mut path = directory.to_owned();
    for part in Path::new(named).components() {
        match part {
            std::path::Component::Normal(part) => path.push(part),
            std::path::Component::CurDir => continue,
            _ => {
                return Err(CliError::Usage(format!(
                    "the manifest in `{}` names the component `{}`, which is outside it",
                    directory.display(),
                    shown(named)
                )));
            }
        }
        refuse_link(&path)?;
    }
    Ok(path)
}

/// Refuses a link, which another user could have pointed anywhere.
fn refuse_link(path: &Path) -> Result<(), CliError> {
    match path.is_symlink() {
        false => Ok(()),
        true => Err(CliError::Usage(format!(
            "`{}` is a symbolic link, which is not followed; name its target",
            path.display()
        ))),
    }
}

fn read_manifest(path: &Path) -> Result<Vec<u8>, CliError> {
    refuse_link(path)?;
    let unreadable = |source| CliError::Read { path: path.display().to_string(), source };
    let metadata = path.symlink_metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        let place = path.display();
        return Err(CliError::Usage(format!("the manifest `{place}` is not a regular file")));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MANIFEST_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}
