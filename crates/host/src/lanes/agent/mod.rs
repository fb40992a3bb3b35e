//! Tools made for IronClaw: components that export `near:agent/tool`.
//!
//! The interface has three functions: `execute`, `schema` and `description`. Versions differ in two
//! types, which are recognised by their form and not by their number, so that a tool is never
//! refused for the number alone:
//!
//! | | up to 0.3 | 0.4.1 |
//! |---|---|---|
//! | result of `execute` | record with an optional `output` (first `result`) or `error` | variant of `success` and `failure` |
//! | error of `http-request` | string | record with a kind, a code and a message |
//!
//! One component may serve several tools, which IronClaw calls capabilities; it receives the name
//! of the called one in the request's `context`.

mod host;

use kitbag_base::ByteSize;
use kitbag_base::json::{self, JsonBudget};
use kitbag_base::text::shown;
use kitbag_contract::{Description, ErrorInfo, Outcome, ToolDescription};
use kitbag_engine::{DescribeResult, InvalidComponent};
use serde_json::{Value, json};
use wasmtime::Store;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Func, InstancePre, Linker, Type, Val};

use self::host::HostImport;
use super::{Parameters, instantiate};
use crate::call::state::State;

/// The interface of the tool, without a version.
const TOOL: &str = "near:agent/tool";

/// The name of the only tool in a description. The interface has none, and this one is not valid for a
/// configured tool, which therefore gets the name of its manifest or file.
const NAME: &str = TOOL;

/// A component of IronClaw.
pub(crate) struct Agent {
    execute: ComponentExportIndex,
    schema: ComponentExportIndex,
    description: ComponentExportIndex,
    /// `None` if the component does not import IronClaw's interface.
    host: Option<HostImport>,
}

impl Agent {
    /// Host memory of a call in addition to what every call needs: the bodies of a request, which is
    /// copied to be inspected, and of a response.
    pub(crate) const HOST_BYTES: ByteSize = ByteSize::mib(40);

    /// Finds the functions of a component that exports `near:agent/tool`.
    ///
    /// # Errors
    ///
    /// [`InvalidComponent::AgentType`] if a function has a type of no known version.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let engine = component.engine();
        let ty = component.component_type();
        let found = ty.exports(engine).find_map(|(name, export)| match export.ty {
            ComponentItem::ComponentInstance(instance) if is(name, TOOL) => {
                Some((name.to_owned(), instance, component.get_export_index(None, name)?))
            }
            _ => None,
        });
        let (name, instance, export) =
            found.ok_or(InvalidComponent::NoRun { other: Vec::new() })?;
        let find = |function: &str, fits: fn(&ComponentFunc) -> bool| {
            let found = instance.get_export(engine, function);
            let is_known = found.is_some_and(|export| match export.ty {
                ComponentItem::ComponentFunc(ty) => !ty.async_() && fits(&ty),
                _ => false,
            });
            let index = component.get_export_index(Some(&export), function);
            index.filter(|_| is_known).ok_or_else(|| InvalidComponent::AgentType {
                interface: name.clone(),
                function: function.to_owned(),
            })
        };
        Ok(Self {
            execute: find("execute", is_execute)?,
            schema: find("schema", is_text)?,
            description: find("description", is_text)?,
            host: HostImport::of(component)?,
        })
    }

    /// Links the imports of IronClaw.
    pub(crate) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        match &self.host {
            Some(host) => host.link(linker),
            None => Ok(()),
        }
    }

    /// Asks the component for its description, without grants.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<DescribeResult> {
        let instance = instantiate(store, pre).await?;
        let description =
            instance.get_typed_func::<(), (String,)>(&mut *store, &self.description)?;
        let (description,) = description.call_async(&mut *store, ()).await?;
        let schema = instance.get_typed_func::<(), (String,)>(&mut *store, &self.schema)?;
        let (schema,) = schema.call_async(&mut *store, ()).await?;
        Ok(described(description, &schema))
    }

    /// Executes the tool.
    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let instance = instantiate(store, pre).await?;
        let execute: Option<Func> = instance.get_func(&mut *store, self.execute);
        let execute = execute.ok_or_else(|| wasmtime::format_err!("`execute` is missing"))?;
        let context = json!({ "capability_id": parameters.name }).to_string();
        let context = Val::Option(Some(Box::new(Val::String(context))));
        let request = Val::Record(vec![
            ("params".to_owned(), Val::String(parameters.arguments.to_owned())),
            ("context".to_owned(), context),
        ]);
        let mut response = [Val::Bool(false)];
        execute.call_async(&mut *store, &[request], &mut response).await?;
        let [response] = response;
        outcome(response).ok_or_else(|| wasmtime::format_err!("the response has another type"))
    }
}

/// Returns the purpose of an import if it is one of IronClaw's.
pub(crate) fn offered(import: &str) -> Option<&'static str> {
    is(import, host::HOST)
        .then_some("what the grants allow: requests, files, calls of tools, and a log")
}

/// Returns true for the name of an interface with any or no version.
fn is(name: &str, interface: &str) -> bool {
    name.split('@').next() == Some(interface)
}

/// Returns true for `func() -> string`.
fn is_text(ty: &ComponentFunc) -> bool {
    ty.params().len() == 0 && is_only(ty.results(), &|ty| *ty == Type::String)
}

/// Returns true for the type of `execute` in any version.
fn is_execute(ty: &ComponentFunc) -> bool {
    let is_request = |ty: &Type| match ty {
        Type::Record(request) => {
            let mut fields = request.fields();
            let mut next = |name: &str, fits: fn(&Type) -> bool| {
                fields.next().is_some_and(|field| field.name == name && fits(&field.ty))
            };
            next("params", |ty| *ty == Type::String)
                && next("context", is_optional_text)
                && fields.next().is_none()
        }
        _ => false,
    };
    is_only(ty.params().map(|(_, ty)| ty), &is_request) && is_only(ty.results(), &is_response)
}

fn is_response(ty: &Type) -> bool {
    match ty {
        Type::Record(response) => {
            let names: Vec<_> = response.fields().map(|field| field.name.to_owned()).collect();
            matches!(
                &*names[..].iter().map(|name| &**name).collect::<Vec<_>>(),
                ["output" | "result", "error"]
            ) && response.fields().all(|field| is_optional_text(&field.ty))
        }
        Type::Variant(response) => {
            let mut cases = response.cases();
            let (success, failure) = (cases.next(), cases.next());
            let is_success =
                success.is_some_and(|case| case.name == "success" && case.ty == Some(Type::String));
            let is_failure = failure.is_some_and(|case| {
                case.name == "failure" && matches!(case.ty, Some(Type::Record(_)))
            });
            is_success && is_failure && cases.next().is_none()
        }
        _ => false,
    }
}

fn is_optional_text(ty: &Type) -> bool {
    matches!(ty, Type::Option(option) if option.ty() == Type::String)
}

fn is_only(mut types: impl Iterator<Item = Type>, fits: &dyn Fn(&Type) -> bool) -> bool {
    types.next().is_some_and(|ty| fits(&ty)) && types.next().is_none()
}

/// Creates the description from what the component returned.
fn described(description: String, schema: &str) -> DescribeResult {
    let schema = match json::parse(schema.as_bytes(), JsonBudget::DESCRIPTION) {
        Ok(schema @ Value::Object(_)) => schema,
        Ok(_) => return DescribeResult::Unusable("its `schema` is not a JSON object".into()),
        Err(error) => return DescribeResult::Unusable(format!("its `schema`: {error}")),
    };
    let left = JsonBudget::DESCRIPTION.bytes.saturating_sub(json::length(&schema));
    if json::length(&Value::from(&*description)) > left {
        let limit = ByteSize::bytes(JsonBudget::DESCRIPTION.bytes as u64);
        return DescribeResult::Unusable(format!("it has more than the limit of {limit}"));
    }
    let tool = ToolDescription {
        name: NAME.to_owned(),
        description: Some(description),
        input_schema: Some(schema),
        ..ToolDescription::default()
    };
    DescribeResult::Description(Description { tools: vec![tool], ..Description::default() })
}

/// Converts the response of `execute`. `None` for another type.
fn outcome(response: Val) -> Option<Outcome> {
    match response {
        Val::Record(fields) => {
            let mut values = fields.into_iter().map(|(_, value)| optional_text(value));
            let (output, error) = (values.next()??, values.next()??);
            Some(match error {
                Some(message) => Outcome::Error(ErrorInfo::new(message)),
                // Any text is a result in these versions.
                None => Outcome::Success(output.unwrap_or_default()),
            })
        }
        Val::Variant(case, Some(payload)) => match (&*case, *payload) {
            ("success", Val::String(output)) => Some(checked(output)),
            ("failure", Val::Record(fields)) => Some(Outcome::Error(failure(fields))),
            _ => None,
        },
        _ => None,
    }
}

fn optional_text(value: Val) -> Option<Option<String>> {
    match value {
        Val::Option(None) => Some(None),
        Val::Option(Some(value)) => match *value {
            Val::String(text) => Some(Some(text)),
            _ => None,
        },
        _ => None,
    }
}

/// Since version 0.4, an output must be JSON.
fn checked(output: String) -> Outcome {
    match serde_json::from_str::<serde::de::IgnoredAny>(&output) {
        Ok(_) => Outcome::Success(output),
        Err(error) => Outcome::Error(ErrorInfo::new(format!(
            "the tool returned text that is not JSON: {error}"
        ))),
    }
}

/// Converts a failure: its message with its code, or a sentence about its kind.
fn failure(fields: Vec<(String, Val)>) -> ErrorInfo {
    let (mut kind, mut code, mut message, mut is_transient) = (String::new(), None, None, false);
    for (name, value) in fields {
        match (&*name, value) {
            ("kind", Val::Enum(name)) => kind = name,
            ("code", value) => code = optional_text(value).flatten(),
            ("message", value) => message = optional_text(value).flatten(),
            ("retry-after-ms", Val::Option(after)) => is_transient = after.is_some(),
            _ => {}
        }
    }
    let code = code.filter(|code| !code.is_empty());
    let message = message.filter(|message| !message.is_empty());
    let text = message.unwrap_or_else(|| match &*kind {
        "auth-required" => "the service requires a credential".to_owned(),
        "input" => "the arguments are not valid".to_owned(),
        "output-too-large" => "the output is too large".to_owned(),
        "network-denied" => "a request is not allowed".to_owned(),
        "client" => "the service is not available".to_owned(),
        _ => "the operation failed".to_owned(),
    });
    let text = match code {
        Some(code) => format!("{text} ({})", shown(&code)),
        None => text,
    };
    ErrorInfo { transient: is_transient, ..ErrorInfo::new(text) }
}

#[cfg(test)]
mod tests;
