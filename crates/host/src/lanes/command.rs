//! Commands of WASI: components that export `wasi:cli/run`.
//!
//! A command receives its arguments and its standard input from the call. Its standard output is
//! the result, and an exit code other than 0 an error. Modules for preview 1 are translated to such
//! components before they are compiled.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use kitbag_base::ByteSize;
use kitbag_contract::{Description, ErrorInfo, Limits, Outcome, ToolDescription};
use kitbag_engine::{InvalidComponent, is_command};
use serde::Deserialize;
use serde_json::json;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};
use wasmtime_wasi::I32Exit;

use super::{Parameters, instantiate};
use crate::call::guest_exit::with_last_output;
use crate::call::state::State;

/// The entry point of a command.
pub(crate) struct Command {
    run: ComponentExportIndex,
}

/// The longest command line, with 16 bytes for each argument. The adapter of preview 1 has room for
/// little more.
const COMMAND_LINE: ByteSize = ByteSize::bytes(32 << 10);

/// The result of `wasi:cli/run`.
type ExitStatus = (Result<(), ()>,);

/// The arguments of a call.
#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    args: CommandLine,
    #[serde(default)]
    stdin: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CommandLine {
    /// One argument, spaces included.
    One(String),
    Several(Vec<String>),
}

impl Default for CommandLine {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Command {
    /// Finds the entry point of a component.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let (engine, ty) = (component.engine(), component.component_type());
        let names = ty.exports(engine).map(|(name, _)| name).filter(|name| is_command(name));
        // A component may export both, the older one only because its toolchain adds it.
        let name = names.max_by_key(|name| name.ends_with("@0.3.0"));
        let instance = name.and_then(|name| component.get_export_index(None, name));
        let run = instance.and_then(|instance| component.get_export_index(Some(&instance), "run"));
        let missing = || InvalidComponent::Compile("`wasi:cli/run` has no function `run`".into());
        run.map(|run| Self { run }).ok_or_else(missing)
    }

    pub(crate) fn link(&self, _: &mut Linker<State>) -> wasmtime::Result<()> {
        Ok(())
    }

    /// Returns the memory of the captured output.
    pub(crate) fn host_bytes(&self, limits: &Limits) -> ByteSize {
        ByteSize::bytes(self.output_bytes(limits) as u64)
    }

    /// Returns the captured length of the output: longer than the result, so that the truncated
    /// result states that it was longer.
    pub(crate) fn output_bytes(&self, limits: &Limits) -> usize {
        limits.output.as_usize().saturating_mul(2)
    }

    pub(crate) fn description(&self, _: &Component) -> Option<Description> {
        let schema = json!({
            "type": "object",
            "properties": {
                "args": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "The arguments of the command, without its name",
                },
                "stdin": { "type": "string", "description": "The standard input of the command" },
            },
            "additionalProperties": false,
        });
        let tool = ToolDescription {
            description: Some("A command. The result is its standard output.".to_owned()),
            input_schema: Some(schema),
            ..ToolDescription::default()
        };
        Some(Description { tools: vec![tool], ..Description::default() })
    }

    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let (args, stdin) = match Arguments::read(parameters.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Outcome::Error(ErrorInfo::new(error))),
        };
        let state = store.data_mut();
        state.granted().directories.has_relative_paths = true;
        state.arguments = [parameters.name.to_owned()].into_iter().chain(args).collect();
        state.input.set(Bytes::from(stdin.unwrap_or_default()));
        let code = match self.exit_code(store, pre).await? {
            0 => return Ok(Outcome::Success(store.data().stdio.out.take().text)),
            code => code,
        };
        // Masked before its lines are cut.
        let secrets = store.data_mut().granted().secrets.clone();
        let stdio = &store.data().stdio;
        let (out, err) = (stdio.out.captured(), stdio.err.captured());
        let printed = if err.text.trim().is_empty() { out } else { err };
        let printed = secrets.mask_printed(printed);
        let message = format!("the command exited with code {code}");
        Ok(Outcome::Error(ErrorInfo::new(with_last_output(message, printed.end()))))
    }

    /// Runs the command to its end.
    async fn exit_code(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<i32> {
        let instance = instantiate(store, pre).await?;
        let run = instance.get_typed_func::<(), ExitStatus>(&mut *store, &self.run)?;
        match run.call_async(&mut *store, ()).await {
            Ok((Ok(()),)) => Ok(0),
            Ok((Err(()),)) => Ok(1),
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(I32Exit(code)) => Ok(*code),
                None => Err(error),
            },
        }
    }
}

impl Arguments {
    /// Reads the command line and the standard input of a call.
    fn read(text: &str) -> Result<(Vec<String>, Option<String>), String> {
        let Self { args, stdin } = serde_json::from_str(text).map_err(|_| {
            "a command takes `args`, a list of strings, and `stdin`, a string".to_owned()
        })?;
        let args = match args {
            CommandLine::One(argument) => vec![argument],
            CommandLine::Several(arguments) => arguments,
        };
        if args.iter().any(|argument| argument.contains('\0')) {
            return Err("an argument of a command may not contain the character NUL".to_owned());
        }
        let size: usize = args.iter().map(|argument| argument.len() + 16).sum();
        if size as u64 > COMMAND_LINE.as_u64() {
            return Err(format!(
                "the arguments of a command may have at most {COMMAND_LINE}, with 16 bytes for \
                 each; pass data as `stdin`"
            ));
        }
        Ok((args, stdin))
    }
}
