//! `kitbag completions`.

use clap::Command;
use clap_complete::Shell;

use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  kitbag completions bash > ~/.local/share/bash-completion/completions/kitbag")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    /// `kitbag` is the program with all of its commands.
    pub(crate) fn run(self, mut kitbag: Command) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut kitbag, "kitbag", &mut script);
        output::data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
