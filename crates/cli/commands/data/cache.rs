//! `kitbag cache`.

use kitbag::Places;
use kitbag::base::ByteSize;
use kitbag::host::{CacheEntry, DiskCache};
use serde_json::json;

use crate::commands::Global;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag cache --clear")]
pub(crate) struct Args {
    /// Remove all entries
    #[arg(long)]
    clear: bool,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let places = Places::from_environment(std::env::vars_os());
        let Some(path) = places.cache else {
            return Err(CliError::Usage(
                "there is no cache, because neither `HOME` nor `KITBAG_CACHE_DIR` is set".into(),
            ));
        };
        let cache = DiskCache::new(path);
        let entries = if self.clear { cache.clear()? } else { cache.entries()? };
        let total: u64 = entries.iter().map(|entry| entry.size).sum();
        if global.json {
            let entry = |entry: &CacheEntry| json!({ "name": entry.name, "size": entry.size });
            output::json(&json!({
                "path": cache.path(),
                "removed": self.clear,
                "entries": entries.iter().map(entry).collect::<Vec<_>>(),
                "size": total,
                "maxSize": DiskCache::MAX_BYTES,
                "maxAgeSeconds": DiskCache::MAX_AGE.as_secs(),
            }))?;
        } else {
            let verb = if self.clear { "removed " } else { "" };
            let noun = if entries.len() == 1 { "entry" } else { "entries" };
            let (path, total) = (cache.path().display(), ByteSize::bytes(total));
            let (most, days) =
                (ByteSize::bytes(DiskCache::MAX_BYTES), DiskCache::MAX_AGE.as_secs() / 86_400);
            output::data(&format!(
                "{path}: {verb}{} {noun}, {total}\nkept: at most {most}, each for {days} days \
                 after its last use",
                entries.len()
            ))?;
        }
        Ok(Exit::Done)
    }
}
