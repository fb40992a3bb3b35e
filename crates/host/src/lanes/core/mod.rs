//! Core modules for Butterfly Bot: one function from JSON to JSON.
//!
//! A module reaches nothing itself. It may answer with a capability call instead of a result:
//! `{"status":"capability_call","abi_version":1,"capability_call":{"name":…,"args":…}}`. The host
//! carries it out and, as Butterfly Bot does, answers the call of the tool with the result. A module
//! that sets `"resume":true` beside the name is called again, with the results of its calls in
//! `capability_results`.

mod capabilities;
mod http_call;
#[cfg(feature = "storage")]
mod rows;

use kitbag_base::ByteSize;
use kitbag_base::json::{JsonBudget, parse};
use kitbag_contract::{Description, ErrorInfo, Limits, Outcome, ToolDescription};
use kitbag_engine::{CORE_INSTANCE, CORE_OUTPUT, InvalidComponent, demangle};
use serde_json::{Value, json};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, Linker};
use wasmtime::{Store, StoreContextMut};

use self::capabilities::{Answer, Capabilities};
use super::{Parameters, instantiate};
use crate::call::state::State;
use crate::grants;

/// The usual name of the entry.
const EXECUTE: &str = "execute";

/// Maximum number of capability calls in one call of a tool.
const MOST_CALLS: usize = 8;

/// The entries of a module.
pub(crate) struct Core {
    entries: Vec<(String, ComponentExportIndex)>,
}

/// The result that a module passed to the host.
#[derive(Default)]
pub(crate) struct Output(Vec<u8>);

impl Core {
    /// Finds the entries of a translated module.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let missing = || InvalidComponent::Compile("the module has no entry".into());
        let (item, instance) = component.get_export(None, CORE_INSTANCE).ok_or_else(missing)?;
        let ComponentItem::ComponentInstance(ty) = item else { return Err(missing()) };
        let entries = ty.exports(component.engine()).filter_map(|(export, _)| {
            Some((demangle(export)?, component.get_export_index(Some(&instance), export)?))
        });
        Ok(Self { entries: entries.collect() })
    }

    #[expect(clippy::unused_self, reason = "every lane has the same functions")]
    pub(crate) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        let mut output = linker.instance(CORE_OUTPUT)?;
        output.func_wrap("set", |mut store: StoreContextMut<'_, State>, (data,): (Vec<u8>,)| {
            store.data_mut().core.0 = data;
            Ok(())
        })
    }

    /// Returns the memory of an HTTP request and of the storage.
    #[expect(clippy::unused_self, reason = "every lane has the same functions")]
    pub(crate) fn host_bytes(&self, _: &Limits) -> ByteSize {
        let http = grants::http::INTERFACES.bytes.as_u64() + http_call::RESPONSE_BYTES as u64;
        #[cfg(feature = "storage")]
        let http = http + grants::storage::INTERFACES.bytes.as_u64();
        ByteSize::bytes(http)
    }

    /// Names the entries if there are several.
    pub(crate) fn description(&self, _: &Component) -> Option<Description> {
        if self.entries.len() == 1 {
            return None;
        }
        let tool = |(name, _): &(String, _)| ToolDescription {
            name: name.clone(),
            ..ToolDescription::default()
        };
        let tools = self.entries.iter().map(tool).collect();
        Some(Description { tools, ..Description::default() })
    }

    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let tool = own_name(parameters.name);
        let named = self.entries.iter().find(|(name, _)| name == tool);
        let entry = named.or_else(|| self.entries.iter().find(|(name, _)| name == EXECUTE));
        let Some((_, entry)) = entry.or_else(|| self.entries.first()) else {
            return Ok(Outcome::Error(ErrorInfo::new("the module has no entry")));
        };
        let instance = instantiate(store, pre).await?;
        let capabilities = Capabilities::of(store.data_mut(), tool);
        let mut input = parameters.arguments.to_owned();
        let mut results = Vec::new();
        loop {
            let output = call(store, &instance, entry, &input).await?;
            let answer = match Answer::read(&output, tool) {
                Ok(Answer::Result(outcome)) => return Ok(outcome),
                Ok(Answer::Call(call)) => call,
                Err(reason) => return Ok(Outcome::Error(ErrorInfo::new(reason))),
            };
            if results.len() == MOST_CALLS {
                let reason = format!("the tool made more than {MOST_CALLS} capability calls");
                return Ok(Outcome::Error(ErrorInfo::new(reason)));
            }
            let result = match capabilities.answer(store, &answer).await {
                Ok(result) => result,
                Err(reason) => return Ok(Outcome::Error(ErrorInfo::new(reason))),
            };
            if !answer.resumes {
                return Ok(capabilities::outcome(&result, result.to_string()));
            }
            results.push(result);
            let mut arguments = serde_json::from_str(parameters.arguments).unwrap_or(json!({}));
            if let Value::Object(arguments) = &mut arguments {
                arguments.insert("capability_results".to_owned(), Value::Array(results.clone()));
            }
            input = arguments.to_string();
        }
    }
}

/// Returns Butterfly Bot's name of a tool, which is in a file `NAME_tool.wasm`.
fn own_name(name: &str) -> &str {
    let own = name.strip_suffix("_tool").or_else(|| name.strip_suffix("-tool"));
    own.filter(|own| !own.is_empty()).unwrap_or(name)
}

/// Calls an entry and returns its result.
async fn call(
    store: &mut Store<State>,
    instance: &Instance,
    entry: &ComponentExportIndex,
    input: &str,
) -> wasmtime::Result<Vec<u8>> {
    let function = instance.get_typed_func::<(&[u8],), ()>(&mut *store, entry)?;
    function.call_async(&mut *store, (input.as_bytes(),)).await?;
    Ok(std::mem::take(&mut store.data_mut().core.0))
}

/// Reads the result of a module. No bytes are an empty object.
fn read(output: &[u8]) -> Result<Value, String> {
    if output.is_empty() {
        return Ok(json!({}));
    }
    parse(output, JsonBudget::OUTPUT)
        .map_err(|error| format!("the result of the module is not JSON: {error}"))
}

#[cfg(test)]
mod tests;
