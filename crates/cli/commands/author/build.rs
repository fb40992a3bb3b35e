//! `kitbag build`.

use std::fs;
use std::path::{Path, PathBuf};

use kitbag::base::text::{alternatives, printable, shown_path};
use kitbag::base::{ByteSize, shell};
use kitbag::contract::ToolName;
use kitbag::host::{Inspection, SOCKETS_ADVICE, inspect_file};
use kitbag::trust::digest_of;
use serde_json::{Value, json};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::commands::Global;
use crate::commands::author::language::Language;
use crate::commands::author::pin::{Pin, Renewed};
use crate::commands::author::{Project, toolchain, unwritable};
use crate::commands::consent::add::workspace_trust::{Changed, TrustBefore};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::links::refuse_links;
use crate::files::new_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag build
  kitbag build word-count")]
pub(crate) struct Args {
    /// The directory of the project [default: the current directory]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// A tool that was built and installed.
pub(crate) struct Built {
    /// The name of the file, without its extension.
    pub(crate) name: ToolName,
    pub(crate) path: PathBuf,
    size: u64,
    warnings: Vec<String>,
    /// The tools in `kitbag.lock` that have this component.
    pins: Vec<Pin>,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let project = Project::find(self.directory.as_deref(), global)?;
        let built = build(&project, global)?;
        match global.json {
            true => output::json(&json!({
                "tools": built.iter().map(Built::as_value).collect::<Vec<_>>(),
            }))?,
            false => {
                let lines = built.iter().map(|tool| {
                    format!("{}: {}, {}\n", tool.name, shown_path(&tool.path), tool.size())
                });
                output::data(&lines.collect::<String>())?;
            }
        }
        Ok(Exit::Done)
    }
}

impl Built {
    fn size(&self) -> ByteSize {
        ByteSize::bytes(self.size)
    }

    fn as_value(&self) -> Value {
        json!({
            "name": self.name,
            "wasm": self.path,
            "bytes": self.size,
            "warnings": self.warnings,
        })
    }
}

/// Builds a project, and installs its components into the workspace. In a trusted workspace, the
/// new components are trusted: their author ran the command.
pub(crate) fn build(project: &Project, global: &Global) -> Result<Vec<Built>, CliError> {
    let language = Language::detect(&project.directory).ok_or_else(|| {
        let error = CliError::Usage(format!(
            "`{}` has no project: a project has {}",
            shown_path(&project.directory),
            alternatives(&Language::marks())
        ));
        let hint = "run `kitbag new NAME`, which makes a project".to_owned();
        CliError::Hinted { error: Box::new(error), hint }
    })?;
    let files = toolchain::build(&project.directory, language)?;
    let own = project.global(global);
    let trusted = TrustBefore::now(&own)?;
    let mut changed = Changed::new();
    let (mut built, mut own_pins) = (Vec::new(), Vec::new());
    for file in &files {
        let mut tool = install(project, file, &own)?;
        // The interpreter imports sockets for every program.
        if language == Language::Python {
            tool.warnings.clear();
        }
        let content = fs::read(&tool.path)
            .map_err(|source| CliError::Read { path: shown_path(&tool.path), source })?;
        changed.insert(format!(".kitbag/tools/{}.wasm", tool.name), Some(digest_of(&content)));
        let (renewable, others): (Vec<_>, Vec<_>) =
            tool.pins.drain(..).partition(|pin| pin.is_own && trusted.is_trusted());
        tool.warnings.extend(others.iter().map(|pin| {
            format!(
                "`kitbag.lock` has another component of the tool `{}`, which does not run until you \
                 run `{}`",
                pin.tool,
                shell::command(["kitbag", "update", pin.tool.as_str()])
            )
        }));
        for warning in &tool.warnings {
            output::warn(warning);
        }
        own_pins.extend(renewable);
        built.push(tool);
    }
    for Renewed { tool, changed } in Pin::renew(&own_pins, project, &own, &mut changed)? {
        output::note(&format!(
            "recorded this build of `{tool}` in `.kitbag/kitbag.lock` (changed: {})",
            changed.join(", ")
        ));
    }
    // No file that grants something has changed.
    trusted.extend(&own, "", &changed)?;
    Ok(built)
}

/// Writes a component to the tools of the workspace, if kitbag can run it.
fn install(project: &Project, file: &Path, global: &Global) -> Result<Built, CliError> {
    let unreadable = |source| CliError::Read { path: shown_path(file), source };
    let content = fs::read(file).map_err(unreadable)?;
    let content = as_component(content, &project.directory).map_err(|reason| {
        CliError::Usage(format!("`{}` cannot be made a component: {reason}", shown_path(file)))
    })?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = ToolName::new(&*stem).map_err(|error| {
        CliError::Usage(format!("`{}` cannot be a tool: {error}", shown_path(file)))
    })?;
    let directory = project.tools();
    let path = directory.join(format!("{name}.wasm"));
    refuse_links(&project.workspace, &path)?;
    fs::create_dir_all(&directory).map_err(|source| unwritable(&directory, source))?;
    let written = new_file::write(&directory, &content, None);
    let written = written.map_err(|source| unwritable(&path, source))?;
    let inspection = inspect_file(written.path()).map_err(CliError::Component)?;
    if let Err(problem) = inspection.verdict() {
        let problem = format!("`{}`: {problem}", shown_path(file));
        return Err(CliError::Usage(printable(&problem).to_string()));
    }
    let warnings = warnings(&name, &inspection);
    let pins = Pin::of(&path, file, project, global)?;
    written.persist(&path).map_err(|error| unwritable(&path, error.error))?;
    Ok(Built { name, path, size: content.len() as u64, warnings, pins })
}

/// Returns warnings of imports that no grant covers.
fn warnings(name: &ToolName, inspection: &Inspection) -> Vec<String> {
    let mut warnings = Vec::new();
    if inspection.uses_sockets() {
        warnings.push(format!("the component `{name}` {SOCKETS_ADVICE}"));
    }
    warnings
}

/// Returns the component of a core module: its world is in the module or in the directory `wit` of
/// the project. Other files are unchanged.
fn as_component(mut content: Vec<u8>, project: &Path) -> Result<Vec<u8>, String> {
    const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";
    /// The custom section with the world.
    const WORLD: &[u8] = b"component-type";
    if !content.starts_with(CORE_MODULE) {
        return Ok(content);
    }
    let wit = project.join("wit");
    let has_world = content.windows(WORLD.len()).any(|name| name == WORLD);
    if !has_world && !wit.is_dir() {
        return Ok(content);
    }
    let mut encode = || {
        if !has_world {
            let mut resolve = Resolve::default();
            let (package, _) = resolve.push_dir(&wit)?;
            let world = resolve.select_world(&[package], None)?;
            embed_component_metadata(&mut content, &resolve, world, StringEncoding::UTF8)?;
        }
        ComponentEncoder::default()
            .module(&content)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
            .validate(true)
            .encode()
    };
    encode().map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_modules_get_the_world_of_the_project() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path();
        let module = b"\0asm\x01\0\0\0".to_vec();
        assert_eq!(as_component(module.clone(), project), Ok(module.clone()));
        fs::create_dir(project.join("wit")).unwrap();
        let world = |text: &str| fs::write(project.join("wit/world.wit"), text).unwrap();
        world("package a:b; world c {}");
        let component = as_component(module.clone(), project).unwrap();
        assert!(component.starts_with(b"\0asm\x0d\0\x01\0"), "{component:?}");
        assert_eq!(as_component(component.clone(), project), Ok(component));
        // The module has no such export.
        world("package a:b; world c { export run: func(); }");
        assert!(as_component(module, project).unwrap_err().contains("run"));
    }
}
