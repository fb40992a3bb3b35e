//! `kitbag script`.

use std::path::PathBuf;

use crate::commands::tools::run::Call;
use crate::commands::{Global, script_kitbag};
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag script count.py path=README.md
  ./count.py path=README.md

For the second form make the file executable and begin it with this line:
  #!/usr/bin/env -S kitbag script")]
pub(crate) struct Args {
    /// The script
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    call: Call,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let Self { file, call } = self;
        call.run(&global, |limits, grants| script_kitbag(&file, &global, limits, grants))
    }
}
