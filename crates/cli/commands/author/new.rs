//! `kitbag new`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kitbag::base::shell;
use kitbag::base::text::shown_path;
use kitbag::trust::digest_of;
use serde_json::json;

use crate::commands::Global;
use crate::commands::author::language::Language;
use crate::commands::author::templates::{self, Names, NewFile};
use crate::commands::author::{Project, unwritable};
use crate::commands::consent::add::workspace_trust::{Changed, TrustBefore};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// The file that configures the new workspace.
const CONFIG: &str = ".kitbag/config.toml";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag new word-count
  kitbag new word-count --lang python")]
pub(crate) struct Args {
    /// The directory to create. Its name is the name of the tool
    #[arg(value_name = "NAME")]
    directory: PathBuf,
    /// The language of the tool
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let directory = &self.directory;
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let names = Names::new(name).ok_or_else(|| {
            CliError::Usage(format!(
                "`{}` is not a name of a tool: use lowercase letters and digits, with `-` between \
                 words",
                shown_path(directory)
            ))
        })?;
        let files = templates::files(self.lang, &names);
        if files.is_empty() {
            let text = format!("this build has no template for `{}`", self.lang.name());
            return Err(CliError::Usage(text));
        }
        create(directory)?;
        let project = Project::find(Some(directory), &global)?;
        // A project in another workspace is a workspace of its own.
        let project = Project { workspace: project.directory.clone(), ..project };
        let own = project.global(&global);
        let trusted = TrustBefore::now(&own)?;
        let mut changed = Changed::new();
        for file in &files {
            write(directory, file)?;
            if file.path == CONFIG {
                changed.insert(file.path.clone(), Some(digest_of(&file.content)));
            }
        }
        // All content comes from this program, and a person requested it.
        trusted.extend(&own, &format!("tool `{}`", names.snake), &changed)?;
        if global.json {
            let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
            output::json(&json!({
                "directory": project.directory,
                "tool": names.snake,
                "language": self.lang.name(),
                "files": paths,
            }))?;
            return Ok(Exit::Done);
        }
        let shown = directory.display().to_string();
        output::data(&format!(
            "created `{}`, a tool in {}\n\nNext:\n  cd {}\n  kitbag test\n  kitbag run {} \
             path=README.md\n",
            shown_path(directory),
            self.lang.label(),
            shell::quoted(&shown),
            names.snake
        ))?;
        Ok(Exit::Done)
    }
}

/// Creates the directory, which must not exist or must be empty.
fn create(directory: &Path) -> Result<(), CliError> {
    let failed = |source| unwritable(directory, source);
    match fs::create_dir(directory) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_empty = fs::read_dir(directory).map_err(failed)?.next().is_none();
            match is_empty {
                true => Ok(()),
                false => Err(CliError::Usage(format!(
                    "`{}` exists already and is not empty",
                    shown_path(directory)
                ))),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// Writes a file that must not exist yet.
fn write(directory: &Path, file: &NewFile) -> Result<(), CliError> {
    let path = directory.join(&file.path);
    let written = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut to = OpenOptions::new().write(true).create_new(true).open(&path)?;
        to.write_all(&file.content)
    };
    written().map_err(|source| unwritable(&path, source))
}
