//! `kitbag workers`.

use std::time::{Duration, SystemTime};

use kitbag::base::text::shown;
use kitbag_cluster::presence::{Presence, Readiness, Workers};
use serde_json::json;

use super::{ClusterArgs, run};
use crate::commands::Global;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag workers --nats nats://localhost
  kitbag workers --nats tls://nats.example --name team --json
  kitbag workers --key")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print this machine's public key, which `kitbag publish` adds as a member. A key is created
    /// if there is none
    #[arg(long = "key")]
    show_key: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let machine = self.cluster.machine()?;
        if self.show_key {
            match global.json {
                true => output::json(&json!({ "key": machine.identity.public() }))?,
                false => output::data(machine.identity.public())?,
            }
            return Ok(Exit::Done);
        }
        let all = run(async {
            let client = self.cluster.connect(&machine).await?;
            let workers = Workers::open(&client, &machine.names).await;
            let workers = workers.map_err(CliError::cluster)?;
            workers.all().await.map_err(CliError::cluster)
        })?;
        if global.json {
            output::json(&json!(all))?;
            return Ok(Exit::Done);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let lines: Vec<_> = all.iter().map(|worker| line(worker, now)).collect();
        match lines.is_empty() {
            true => output::data("there are no workers")?,
            false => output::data(&lines.join("\n"))?,
        }
        Ok(Exit::Done)
    }
}

/// Describes a worker. The strings come from another machine.
fn line(worker: &Presence, now: Duration) -> String {
    let state = match worker.readiness {
        Readiness::Starting => "starting",
        Readiness::Ready => "ready",
        Readiness::Draining => "draining",
        Readiness::Unknown => "unknown state",
    };
    let roots: Vec<_> = worker.roots.iter().map(|root| shown(root).to_string()).collect();
    let roots = match roots.is_empty() {
        true => String::new(),
        false => format!(", roots {}", roots.join(", ")),
    };
    let snapshot = match worker.snapshot {
        Some((counter, _)) => format!("snapshot {counter}"),
        None => "no snapshot".to_owned(),
    };
    let since = Duration::from_secs(now.as_secs().saturating_sub(worker.since));
    format!(
        "{}  {state}, {} of {} places, {} calls ended, up {} s, {snapshot}, {} tools{roots}, kitbag \
         {}, wire {}-{}",
        shown(&worker.id),
        worker.running,
        worker.places,
        worker.ended,
        since.as_secs(),
        worker.tools,
        shown(&worker.kitbag),
        worker.wire.0,
        worker.wire.1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_one_line() {
        let worker = Presence {
            id: "a\nb".to_owned(),
            kitbag: "0.1.0".to_owned(),
            wire: (1, 2),
            tools: 3,
            roots: ["data".to_owned()].into(),
            running: 1,
            places: 8,
            ended: 7,
            since: 90,
            readiness: Readiness::Draining,
            ..Presence::default()
        };
        assert_eq!(
            line(&worker, Duration::from_secs(100)),
            "a\\nb  draining, 1 of 8 places, 7 calls ended, up 10 s, no snapshot, 3 tools, roots \
             data, kitbag 0.1.0, wire 1-2"
        );
    }
}
