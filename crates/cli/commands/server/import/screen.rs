//! The text of an import for a person: the command lines first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::Layer;

use super::client_file::ClientFile;
use super::plan::{Plan, PlannedServer};
use crate::console::output;
use crate::error::CliError;

pub(super) fn text(
    plan: &Plan,
    files: &[ClientFile],
    own: &Path,
    workspace: &Path,
    home: Option<&Path>,
) -> String {
    let named = |path: &Path| {
        let below = home.and_then(|home| path.strip_prefix(home).ok());
        let path = below.map_or_else(|| path.to_owned(), |below| Path::new("~").join(below));
        shown(&path.display().to_string()).to_string()
    };
    let mut text = String::new();
    for (at_file, file) in files.iter().enumerate() {
        for (at_table, table) in file.tables.iter().enumerate() {
            let place = (at_file, at_table);
            let servers: Vec<_> = plan.servers.iter().filter(|it| it.place == place).collect();
            let to = match table.layer {
                Layer::User => own,
                Layer::Workspace | Layer::Manifest => workspace,
            };
            if !servers.is_empty() {
                text.push_str(&format!("From {} to {}:\n", named(&file.path), named(to)));
            }
            servers.iter().for_each(|server| push(&mut text, server));
            let left: Vec<_> = plan.left.iter().filter(|it| it.place == place).collect();
            if !left.is_empty() {
                text.push_str(&format!("Left in {}:\n", named(&file.path)));
            }
            for left in left {
                text.push_str(&format!("  {}: {}\n", shown(&left.original), left.reason));
            }
        }
    }
    if plan.servers.iter().any(|server| server.is_process) {
        text.push_str(
            "A server that kitbag starts runs with all of your rights, as it did before; `confine` \
             in its table restricts it.\n",
        );
    }
    text
}

fn push(text: &mut String, server: &PlannedServer) {
    text.push_str(&format!("  {}: {}\n", server.name, server.address));
    let mut lines = server.values.clone();
    if server.name != server.original {
        lines.push(format!("its name was `{}`", shown(&server.original)));
    }
    if server.is_present {
        lines.push("kitbag already has it".into());
    }
    let excluded = server.excluded.iter().map(|tool| shown(tool).to_string());
    let excluded: Vec<_> = excluded.collect();
    if !excluded.is_empty() {
        lines.push(format!("tools that stay off: {}", excluded.join(", ")));
    }
    lines.extend(server.notes.iter().cloned());
    for line in lines {
        text.push_str(&format!("    {line}\n"));
    }
}

/// Reports a finished import.
pub(super) fn report(
    plan: &Plan,
    files: &[PathBuf],
    backups: &[PathBuf],
    source: &str,
) -> Result<(), CliError> {
    let paths = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| shown(&path.display().to_string()).to_string());
        paths.collect::<Vec<_>>().join(", ")
    };
    let names: BTreeSet<_> = plan.servers.iter().map(|server| server.name.as_str()).collect();
    let names: Vec<_> = names.into_iter().collect();
    let mut lines =
        vec![format!("Moved {}.", names.join(", ")), format!("Changed: {}", paths(files))];
    if !backups.is_empty() {
        lines.push(format!("Backup: {}", paths(backups)));
    }
    lines.push(format!(
        "Undo it with `{}`.",
        shell::command(["kitbag", "import", source, "--undo"])
    ));
    output::data(&lines.join("\n"))?;
    if plan.secrets.iter().any(|secret| secret.value.is_some()) {
        output::note(
            "the backup contains the secrets in plain text, readable for you only; delete it when \
             everything works (then the import cannot be undone)",
        );
    }
    Ok(())
}
