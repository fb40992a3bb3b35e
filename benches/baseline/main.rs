//! The baseline of `benches/cold.rs`: `kitbag run learn topic=… [subjects=…]` as a native program
//! with all rights and no configuration.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_default();
    let mut text = String::new();
    match arguments.next() {
        Some(subject) => text = fs::read_to_string(Path::new(&directory).join(subject + ".md"))?,
        None => {
            let mut slugs = Vec::new();
            list(Path::new(&directory), "", &mut slugs)?;
            slugs.sort();
            text.push_str("# Topic: topic\n\n## Available subjects:\n\n");
            for slug in slugs {
                text.push_str(&format!("- {slug}\n"));
            }
            text.push_str("\nUse the `learn` tool with the `subjects` argument to learn specific subjects.\n");
        }
    }
    io::stdout().write_all(text.as_bytes())
}

fn list(directory: &Path, prefix: &str, slugs: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{prefix}{name}/"), slugs)?;
        } else {
            let stem = name.rsplit_once('.').map_or(&*name, |(stem, _)| stem);
            slugs.push(format!("{prefix}{stem}"));
        }
    }
    Ok(())
}
