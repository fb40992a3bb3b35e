//! Plugins for Extism: plain ones, those of hyper-mcp, and servlets of mcp.run.
//!
//! A plugin exports functions without parameters. Each call gives it an input and takes an output
//! from a memory that the host keeps, the [`Kernel`]. Variables of a plugin end with the call.
//! Configuration values and HTTP requests are those of the tool's grants; the manifests of Extism
//! grant nothing.

mod elicitation;
mod host_functions;
mod kernel;
mod tool_result;

use std::collections::BTreeMap;

use kitbag_base::ByteSize;
use kitbag_contract::{Description, ErrorInfo, Limits, Outcome, ToolDescription};
use kitbag_engine::{DescribeResult, InvalidComponent, PLUGIN_INSTANCE, PREVIEW_1, demangle};
use serde_json::{Map, Value, json};
use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, Linker};
use wasmtime_wasi::I32Exit;

use self::kernel::Kernel;
use super::{Failure, Parameters, instantiate};
use crate::call::state::State;
use crate::component::support::SUPPORT;
use crate::grants::http;
use crate::limits::HOST_DATA;

/// Maximum size of a plugin's variables with their names, as in Extism.
const VARIABLES_BYTES: usize = 1 << 20;

/// The modules of a plugin's imports, and their purpose.
const IMPORTS: [(&str, &str); 3] = [
    ("extism:host/env", "memory, configuration values, requests by grant, and log"),
    ("extism:host/user", "functions of hyper-mcp"),
    (PREVIEW_1, "WASI preview 1: files and variables by grant"),
];

/// Returns the purpose of an import.
pub(super) fn offered(import: &str) -> Option<&'static str> {
    IMPORTS.iter().find(|(name, _)| *name == import).map(|(_, purpose)| *purpose)
}

/// The functions of a plugin.
pub(crate) struct Plugin {
    kind: Kind,
    functions: Vec<Function>,
    uses_http: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Each function is a tool.
    Plain,
    /// `describe` and `call`, with the tool's name in the input.
    Servlet,
    /// `list_tools` and `call_tool`, the second interface of hyper-mcp.
    ToolList,
}

struct Function {
    name: String,
    export: ComponentExportIndex,
    has_status: bool,
}

/// The state of a plugin's host functions during a call.
#[derive(Default)]
pub(crate) struct Session {
    kernel: Kernel,
    variables: BTreeMap<String, Vec<u8>>,
    /// Status and header fields of the last HTTP response.
    status: u16,
    headers: BTreeMap<String, String>,
    /// The answers of a person, and the number of questions in this run.
    answers: Map<String, Value>,
    asked: usize,
    /// The question that ends this run.
    question: Option<Outcome>,
}

impl Plugin {
    /// Finds the functions of a translated plugin.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let missing = || InvalidComponent::Compile("the plugin has no functions".into());
        let (item, instance) = component.get_export(None, PLUGIN_INSTANCE).ok_or_else(missing)?;
        let ComponentItem::ComponentInstance(ty) = item else { return Err(missing()) };
        let engine = component.engine();
        let functions = ty.exports(engine).filter_map(|(export, item)| {
            let ComponentItem::ComponentFunc(ty) = item.ty else { return None };
            let name = demangle(export)?;
            let has_status = ty.results().len() == 1;
            let export = component.get_export_index(Some(&instance), export)?;
            Some(Function { name, export, has_status })
        });
        let functions: Vec<_> = functions.collect();
        let has = |name: &str| functions.iter().any(|function| function.name == name);
        let kind = match () {
            () if has("describe") && has("call") => Kind::Servlet,
            () if has("list_tools") && has("call_tool") => Kind::ToolList,
            () => Kind::Plain,
        };
        let ty = component.component_type();
        let mut imports = ty.imports(engine).filter_map(|(_, import)| {
            let ComponentItem::ComponentInstance(instance) = import.ty else { return None };
            Some(instance.exports(engine).any(|(name, _)| name == host_functions::HTTP_REQUEST))
        });
        let uses_http = imports.any(|uses| uses);
        Ok(Self { kind, functions, uses_http })
    }

    #[expect(clippy::unused_self, reason = "every lane has the same functions")]
    pub(crate) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        host_functions::link(linker)
    }

    /// Returns the memory of the plugin's variables and HTTP requests.
    pub(crate) fn host_bytes(&self, _: &Limits) -> ByteSize {
        let of_http = http::INTERFACES.bytes.as_u64() + host_functions::RESPONSE_BYTES as u64;
        let of_http = if self.uses_http { of_http } else { 0 };
        ByteSize::bytes(of_http + VARIABLES_BYTES as u64)
    }

    /// Describes the functions of a plain plugin: nothing is known about their inputs.
    pub(crate) fn description(&self, _: &Component) -> Option<Description> {
        if self.kind != Kind::Plain {
            return None;
        }
        let schema = json!({
            "type": "object",
            "properties": {
                "input": { "description": "The input of the function: text, or any JSON value" },
            },
            "additionalProperties": false,
        });
        let tools = self.functions.iter().map(|function| ToolDescription {
            name: function.name.clone(),
            description: Some(format!("The function `{}` of a plugin", function.name)),
            input_schema: Some(schema.clone()),
            ..ToolDescription::default()
        });
        Some(Description { tools: tools.collect(), ..Description::default() })
    }

    pub(crate) fn describes(&self) -> bool {
        self.kind != Kind::Plain
    }

    pub(crate) async fn describe(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<DescribeResult> {
        let (function, input) = match self.kind {
            Kind::Plain => return Ok(DescribeResult::Nothing),
            Kind::Servlet => ("describe", Vec::new()),
            Kind::ToolList => ("list_tools", json!({ "context": context() }).to_string().into()),
        };
        let instance = instantiate(store, pre).await?;
        let output = match self.function(function) {
            Some(function) => function.call(store, &instance, &input).await?,
            None => return Ok(DescribeResult::Nothing),
        };
        Ok(match output {
            Ok(output) => tool_result::description(&output, &SUPPORT),
            Err(Failure(problem)) => DescribeResult::Unusable(problem),
        })
    }

    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let arguments = serde_json::from_str(parameters.arguments).unwrap_or(Value::Null);
        let Some((function, input)) = self.request(parameters.name, arguments) else {
            let functions: Vec<_> = self.functions.iter().map(|it| &*it.name).collect();
            let message = format!(
                "the plugin has no function `{}`, only `{}`; name one of them with `function`",
                parameters.name,
                functions.join("`, `")
            );
            return Ok(Outcome::Error(ErrorInfo::new(message)));
        };
        let instance = instantiate(store, pre).await?;
        let answers = serde_json::from_str(parameters.answers).unwrap_or_default();
        store.data_mut().plugin.answers = answers;
        let output = function.call(store, &instance, &input).await?;
        if let Some(question) = store.data_mut().plugin.question.take() {
            return Ok(question);
        }
        Ok(match (output, self.kind) {
            (Err(Failure(message)), _) => Outcome::Error(ErrorInfo::new(message)),
            (Ok(output), Kind::Plain) => {
                tool_result::plain(output, &function.name, store.data_mut().reporting())
            }
            (Ok(output), Kind::Servlet | Kind::ToolList) => {
                tool_result::outcome(&output, store.data_mut().reporting())
            }
        })
    }

    /// Returns the function to call and its input.
    fn request(&self, name: &str, arguments: Value) -> Option<(&Function, Vec<u8>)> {
        let (function, input) = match self.kind {
            Kind::Plain => {
                let function = match &self.functions[..] {
                    [only] => only,
                    _ => self.function(name)?,
                };
                let input = match arguments.get("input") {
                    None | Some(Value::Null) => Vec::new(),
                    Some(Value::String(text)) => text.clone().into_bytes(),
                    Some(value) => value.to_string().into_bytes(),
                };
                return Some((function, input));
            }
            Kind::Servlet => {
                ("call", json!({ "params": { "name": name, "arguments": arguments } }))
            }
            Kind::ToolList => {
                let request = json!({ "name": name, "arguments": arguments });
                ("call_tool", json!({ "request": request, "context": context() }))
            }
        };
        Some((self.function(function)?, input.to_string().into_bytes()))
    }

    fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// The context of a request that hyper-mcp would pass on from its client.
fn context() -> Value {
    json!({ "id": "kitbag", "_meta": {} })
}

impl Function {
    /// Calls the function. Its error message takes precedence over its status, as in Extism.
    async fn call(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        input: &[u8],
    ) -> wasmtime::Result<Result<Vec<u8>, Failure>> {
        let State { plugin, limiter, .. } = store.data_mut();
        let kernel = &mut plugin.kernel;
        kernel.reset();
        let Some(offset) = kernel.insert(input, limiter) else {
            return Ok(Err(Failure("there is no memory for the input".into())));
        };
        kernel.input_set(offset, input.len() as u64);
        let status = match self.has_status {
            true => {
                let function = instance.get_typed_func::<(), (i32,)>(&mut *store, &self.export)?;
                function.call_async(&mut *store, ()).await.map(|(status,)| status)
            }
            false => {
                let function = instance.get_typed_func::<(), ()>(&mut *store, &self.export)?;
                function.call_async(&mut *store, ()).await.map(|()| 0)
            }
        };
        let status = match status {
            Ok(status) => status,
            Err(error) if matches!(error.downcast_ref(), Some(I32Exit(0))) => 0,
            Err(error) => return error.downcast::<Failure>().map(Err),
        };
        let kernel = &store.data().plugin.kernel;
        if kernel.length(kernel.error_get()).max(kernel.output_length()) > HOST_DATA.as_u64() {
            return Ok(Err(Failure(format!("the output of `{}` exceeds {HOST_DATA}", self.name))));
        }
        if let Some(message) = kernel.error() {
            return Ok(Err(Failure(String::from_utf8_lossy(&message).into_owned())));
        }
        Ok(match status {
            0 => Ok(kernel.output()),
            status => Err(Failure(format!("`{}` returned the status {status}", self.name))),
        })
    }
}

#[cfg(test)]
mod tests;
