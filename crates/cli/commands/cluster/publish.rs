//! `kitbag publish`.

use kitbag::base::text::shown;
use kitbag::{Caller, Kitbag};
use kitbag_cluster::permissions::{Role, permissions, server_config};
use kitbag_cluster::presence::Workers;
use kitbag_cluster::snapshot::{Manifest, NewSnapshot, SnapshotStore};
use kitbag_cluster::{Members, Queue, QueueOptions};
use serde_json::{Value, json};

use super::{ClusterArgs, Machine, public_key, publishable, run};
use crate::commands::consent::trust::show;
use crate::commands::{Global, built};
use crate::console::{consent, output};
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag publish --nats nats://localhost
  kitbag publish --nats tls://nats.example --name team --worker UDX… --front-end UAB…
  kitbag publish --permissions --name team --worker UDX… --front-end UAB… > kitbag.conf")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Add a worker by its public key, which `kitbag workers --key` prints on its machine
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    worker: Vec<String>,
    /// Add a front end by its public key
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    front_end: Vec<String>,
    /// Remove a worker or front end: its calls and answers are refused from now on
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    remove: Vec<String>,
    /// The number of NATS servers that store each message, for what does not exist yet
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// Print the account of the workspace for the configuration of nats-server, and publish nothing
    #[arg(long)]
    permissions: bool,
    /// Publish the shown content without asking
    #[arg(long)]
    yes: bool,
    /// Show all requests and the content of all files before the summary, in your pager
    #[arg(long)]
    all: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let machine = self.cluster.machine()?;
        if self.permissions {
            return self.print_permissions(&machine, global.json);
        }
        let kitbag = built(global.builder().ask_trust())?;
        let (new, warnings) = self.reviewed(kitbag, &global)?;
        for warning in warnings {
            output::warn(&warning);
        }
        let (manifest, members) = run(self.publish(&machine, new))?;
        report(&manifest, &members, &self.cluster.servers(), global.json)?;
        Ok(Exit::Done)
    }

    /// Shows the requests of the workspace as `kitbag trust` does, asks, and records the trust.
    fn reviewed(
        &self,
        kitbag: &Kitbag,
        global: &Global,
    ) -> Result<(NewSnapshot, Vec<String>), CliError> {
        let question = kitbag.trust_question()?;
        let config = kitbag.toolbox().config();
        let root = std::path::Path::new(&question.record.workspace);
        let local = publishable::local_settings(config);
        let files = publishable::files(root, &question.record, &question.shown);
        let files = files.and_then(|files| if local.is_empty() { Ok(files) } else { Err(local) });
        let files = files.map_err(|problems| {
            CliError::Usage(format!("nothing was published: {}", problems.join("; ")))
        })?;
        let is_interactive = consent::is_interactive(global.json) && !self.yes;
        if !global.json {
            consent::show(&show::consent(&question), self.all, is_interactive)?;
        }
        let ask = format!("Publish this as `{}`?", self.cluster.name);
        if !(self.yes || is_interactive && consent::agrees(&ask)?) {
            return Err(CliError::NotTrusted(match is_interactive {
                true => "nothing was published",
                false => {
                    "nothing was published, because there is no terminal to ask on; review the \
                     requests with `kitbag trust`, and publish them with `kitbag publish --yes`"
                }
            }));
        }
        if question.is_news() {
            question.give(&Caller::this_user())?;
        }
        let new = NewSnapshot { members: Members::default(), files };
        Ok((new, publishable::missing_documents(config)))
    }

    /// Publishes the snapshot with the members of the previous one and the changes of the options.
    async fn publish(
        &self,
        machine: &Machine,
        new: NewSnapshot,
    ) -> Result<(Manifest, Members), CliError> {
        let client = self.cluster.connect(machine).await?;
        let replicas = usize::from(self.replicas);
        let store = SnapshotStore::create(&client, &machine.names, replicas).await?;
        Workers::create(&client, &machine.names, replicas).await.map_err(CliError::cluster)?;
        let options = QueueOptions { replicas, ..QueueOptions::default() };
        let queue = Queue::create(client.clone(), machine.names.clone(), &options).await;
        queue.map_err(CliError::cluster)?;
        let before = store.valid(&machine.publishers).await?.map(|manifest| manifest.members);
        let members = self.members(before.unwrap_or_default());
        let new = NewSnapshot { members: members.clone(), ..new };
        let known = machine.known();
        let published = store.publish(&machine.identity, &machine.publishers, &known, new).await?;
        Ok((published, members))
    }

    fn members(&self, mut members: Members) -> Members {
        members.workers.extend(self.worker.iter().cloned());
        members.front_ends.extend(self.front_end.iter().cloned());
        members.workers.retain(|key| !self.remove.contains(key));
        members.front_ends.retain(|key| !self.remove.contains(key));
        members
    }

    fn print_permissions(&self, machine: &Machine, as_json: bool) -> Result<Exit, CliError> {
        let members = self.members(Members::default());
        if !as_json {
            let text = server_config(&machine.names, &machine.publishers, &members);
            output::data(text.trim_end())?;
            return Ok(Exit::Done);
        }
        let list = |role: Role, keys: &std::collections::BTreeSet<String>| -> Vec<Value> {
            let one = |key: &String| {
                json!({
                    "key": key,
                    "role": role,
                    "permissions": permissions(&machine.names, role, key),
                })
            };
            keys.iter().map(one).collect()
        };
        let all = [
            list(Role::Publisher, &machine.publishers),
            list(Role::FrontEnd, &members.front_ends),
            list(Role::Worker, &members.workers),
        ];
        output::json(&all.concat().into())?;
        Ok(Exit::Done)
    }
}

fn report(
    manifest: &Manifest,
    members: &Members,
    servers: &str,
    as_json: bool,
) -> Result<(), CliError> {
    if as_json {
        return output::json(&json!({
            "name": manifest.workspace,
            "snapshot": manifest.counter,
            "publisher": manifest.publisher,
            "files": manifest.files,
            "workers": members.workers,
            "front_ends": members.front_ends,
        }));
    }
    let count = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    output::data(&format!(
        "published snapshot {} of `{}` at {}: {}, {}, {}\nworkers and front ends accept it with \
         `--publisher {}`",
        manifest.counter,
        manifest.workspace,
        shown(servers),
        count(manifest.files.len(), "file"),
        count(members.workers.len(), "worker"),
        count(members.front_ends.len(), "front end"),
        manifest.publisher,
    ))
}
