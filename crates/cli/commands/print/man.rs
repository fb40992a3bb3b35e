//! `kitbag man`.

use std::io::{self, IsTerminal};

use clap::Command;
use clap_mangen::Man;

use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal the page is shown like a page of `man`; otherwise roff is printed.

Examples:
  kitbag man run
  kitbag man run > kitbag-run.1")]
pub(crate) struct Args {
    /// The command [default: kitbag itself]
    command: Option<String>,
}

impl Args {
    /// `kitbag` is the program with all of its commands.
    pub(crate) fn run(self, kitbag: Command) -> Result<Exit, CliError> {
        let mut kitbag = kitbag.disable_help_subcommand(true);
        // Passes global options and names to the subcommands.
        kitbag.build();
        let command = match self.command {
            None => &kitbag,
            Some(name) => kitbag.find_subcommand(&name).ok_or_else(|| {
                CliError::Usage(format!("no command `{name}`; `kitbag --help` shows all commands"))
            })?,
        };
        let mut page = Vec::new();
        Man::new(command.clone())
            // No date, for reproducible output. The writer omits an empty date, and the next field
            // would take its position.
            .date(" ")
            .source(concat!("kitbag ", env!("CARGO_PKG_VERSION")))
            .manual("Manual of kitbag")
            .render(&mut page)
            .map_err(CliError::Output)?;
        if !io::stdout().is_terminal() {
            output::data(&String::from_utf8_lossy(&page))?;
        } else if !output::manual(&page)? {
            output::paged(&command.clone().render_long_help().to_string())?;
        }
        Ok(Exit::Done)
    }
}
