//! `kitbag eject`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::links::refuse_links;
use crate::files::new_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag eject search_files
  kitbag eject search_files --to ~/tools")]
pub(crate) struct Args {
    /// The name of the tool, as `kitbag list` shows it
    tool: String,
    /// Write into this directory, and create it if it is missing [default: .kitbag/tools of the
    /// workspace, where the tool replaces the built-in]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let toolbox = kitbag.toolbox();
        let ejected = toolbox.eject(&self.tool)?;
        let root = &toolbox.config().root.value;
        let directory = self.to.unwrap_or_else(|| root.join(".kitbag/tools"));
        refuse_links(root, &directory)?;
        fs::create_dir_all(&directory).map_err(|source| unwritable(&directory, source))?;
        let path = |extension: &str| directory.join(format!("{}.{extension}", ejected.name));
        let (wasm, manifest) = (path("wasm"), path("toml"));
        for path in [&wasm, &manifest] {
            if path.symlink_metadata().is_ok() {
                return Err(exists(path));
            }
        }
        // The manifest first: a component without it would only share the built-in's name.
        write(&directory, &manifest, ejected.manifest.as_bytes())?;
        write(&directory, &wasm, &ejected.component)?;
        match global.json {
            true => output::json(&json!({ "wasm": wasm, "manifest": manifest }))?,
            false => output::data(&format!("{}\n{}\n", wasm.display(), manifest.display()))?,
        }
        Ok(Exit::Done)
    }
}

/// Writes a complete file that must not exist yet.
fn write(directory: &Path, path: &Path, content: &[u8]) -> Result<(), CliError> {
    let failed = |source| unwritable(path, source);
    let file = new_file::write(directory, content, None).map_err(failed)?;
    match new_file::persist(file, [path.to_owned()]).map_err(failed)? {
        Some(_) => Ok(()),
        None => Err(exists(path)),
    }
}

fn exists(path: &Path) -> CliError {
    CliError::Usage(format!(
        "`{}` exists already; remove it, or name another directory with `--to`",
        path.display()
    ))
}

fn unwritable(path: &Path, source: io::Error) -> CliError {
    CliError::Save { path: path.display().to_string(), source }
}
