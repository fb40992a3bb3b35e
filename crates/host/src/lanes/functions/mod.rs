//! Components that export functions: each is a tool, with JSON Schemas made from its WIT types.
//!
//! The types are those of the compiled component. The WIT in a custom section is never read: it may
//! be missing, or belong to another component.

mod names;
mod schema;
mod types;
mod values;

use kitbag_base::json::{self, JsonBudget};
use kitbag_base::text::shown;
use kitbag_contract::{Description, ErrorInfo, LimitKind, Outcome, ToolDescription};
use kitbag_engine::{FunctionDocs, InvalidComponent, Omission, is_hook, is_initialiser};
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Val};

use self::names::FunctionPath;
use self::types::{TypeReader, Unsupported, WitType};
use super::{Parameters, instantiate};
use crate::call::state::State;
use crate::limits::LimitReached;

/// The most functions of one component that are tools.
const MOST_FUNCTIONS: usize = 1_000;

/// The exported functions of a component.
pub(crate) struct Functions {
    functions: Vec<Function>,
    /// The exported functions that cannot be called.
    omitted: Vec<Omission>,
}

struct Function {
    path: FunctionPath,
    /// The name of the tool.
    name: String,
    index: ComponentExportIndex,
    parameters: Vec<(String, WitType)>,
    result: Option<WitType>,
}

impl Functions {
    /// Finds the functions of a component.
    ///
    /// # Errors
    ///
    /// [`InvalidComponent::NoFunction`] if none is callable.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let mut reader = TypeReader::new();
        let (mut functions, mut omitted) = (Vec::new(), Vec::new());
        for (path, index, ty) in exported(component) {
            let read = match functions.len() {
                MOST_FUNCTIONS => Err("is one of more than 1,000 functions"),
                _ => reader.function(|reader| Function::read(&path, index, &ty, reader)),
            };
            match read {
                Ok(function) => functions.push(function),
                Err(reason) => omitted.push(omission(&path, reason)),
            }
        }
        let paths: Vec<_> = functions.iter().map(|function| function.path.clone()).collect();
        for (function, name) in functions.iter_mut().zip(names::assign(&paths)) {
            function.name = name;
        }
        let mut bytes_left = JsonBudget::DESCRIPTION.bytes;
        functions.retain(|function| {
            let length = function.described(&FunctionDocs::default()).1;
            let left = bytes_left.checked_sub(length);
            match left {
                Some(left) => bytes_left = left,
                None => {
                    let reason = "has a schema for which the description has no room";
                    omitted.push(omission(&function.path, reason));
                }
            }
            left.is_some()
        });
        match functions.is_empty() {
            true => Err(InvalidComponent::NoFunction { omitted }),
            false => Ok(Self { functions, omitted }),
        }
    }

    /// Describes each function. `docs` is its documentation.
    pub(crate) fn description(&self, docs: &FunctionDocs) -> Description {
        // Documentation that would exceed the limit of a description is omitted.
        let mut bytes_left = JsonBudget::DESCRIPTION.bytes;
        let plain = FunctionDocs::default();
        for function in &self.functions {
            bytes_left = bytes_left.saturating_sub(function.described(&plain).1);
        }
        let described = |function: &Function| {
            let (plain, plain_length) = function.described(&plain);
            let (full, length) = function.described(docs);
            match bytes_left.checked_sub(length.saturating_sub(plain_length)) {
                Some(left) => {
                    bytes_left = left;
                    full
                }
                None => plain,
            }
        };
        Description {
            tools: self.functions.iter().map(described).collect(),
            ..Description::default()
        }
    }

    /// Calls a function. Arguments that do not match its types, and the error of its `result`, are
    /// errors of the tool.
    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let function = match self.find(parameters.name) {
            Ok(function) => function,
            Err(error) => return Ok(Outcome::Error(error)),
        };
        let bytes = store.hostcall_fuel();
        let arguments = match function.arguments(parameters.arguments, bytes) {
            Ok(arguments) => arguments,
            Err(message) => return Ok(Outcome::Error(ErrorInfo::new(message))),
        };
        let instance = instantiate(store, pre).await?;
        let callee = instance.get_func(&mut *store, function.index);
        let callee = callee.ok_or_else(|| wasmtime::format_err!("the function is missing"))?;
        let mut results = vec![Val::Bool(false); usize::from(function.result.is_some())];
        let expansion = function.result.as_ref().map_or(1, WitType::expansion);
        store.set_hostcall_fuel(bytes / expansion);
        callee.call_async(&mut *store, &arguments, &mut results).await?;
        drop(arguments);
        let outcome = function.outcome(results.first(), bytes);
        outcome.map_err(|values::TooLong| LimitReached(LimitKind::HostData).into())
    }

    /// Returns the exported functions that are not tools.
    #[cfg(test)]
    fn omitted(&self) -> &[Omission] {
        &self.omitted
    }

    fn find(&self, name: &str) -> Result<&Function, ErrorInfo> {
        const MOST: usize = 20;
        if let [only] = &self.functions[..] {
            return Ok(only);
        }
        if let Some(function) = self.functions.iter().find(|function| function.name == name) {
            return Ok(function);
        }
        if let Some(Omission { function, reason }) =
            self.omitted.iter().find(|omission| omission.function == name)
        {
            let function = shown(function);
            return Err(ErrorInfo::new(format!("`{function}` cannot be called: it {reason}")));
        }
        let names = self.functions.iter().take(MOST).map(|it| format!("`{}`", it.name));
        let names: Vec<_> = names.collect();
        let more = if self.functions.len() > MOST { ", …" } else { "" };
        Err(ErrorInfo::new(format!(
            "the component has no function `{}`; it has {}{more}",
            shown(name),
            names.join(", ")
        )))
    }
}

/// Returns the exported functions of a component that may be tools, at its root and in instances.
fn exported(component: &Component) -> Vec<(FunctionPath, ComponentExportIndex, ComponentFunc)> {
    let engine = component.engine();
    let mut functions = Vec::new();
    let ty = component.component_type();
    for (name, export) in ty.exports(engine) {
        let Some(index) = component.get_export_index(None, name) else { continue };
        match export.ty {
            ComponentItem::ComponentFunc(function) if !is_initialiser(name, is_bare(&function)) => {
                let path = FunctionPath { instance: None, function: name.to_owned() };
                functions.push((path, index, function));
            }
            ComponentItem::ComponentInstance(instance) if !is_hook(name) => {
                for (function, export) in instance.exports(engine) {
                    let ComponentItem::ComponentFunc(ty) = export.ty else { continue };
                    let inner = component.get_export_index(Some(&index), function);
                    let Some(inner) = inner else { continue };
                    let instance = Some(name.to_owned());
                    let path = FunctionPath { instance, function: function.to_owned() };
                    functions.push((path, inner, ty));
                }
            }
            _ => {}
        }
    }
    functions
}

fn omission(path: &FunctionPath, reason: &str) -> Omission {
    let function = match &path.instance {
        Some(instance) => format!("{instance}#{}", path.function),
        None => path.function.clone(),
    };
    Omission { function, reason: reason.to_owned() }
}

fn is_bare(function: &ComponentFunc) -> bool {
    function.params().len() == 0 && function.results().len() == 0
}

impl Function {
    /// Reads the type of a function.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if a value has no JSON form, or the function is asynchronous.
    fn read(
        path: &FunctionPath,
        index: ComponentExportIndex,
        ty: &ComponentFunc,
        reader: &mut TypeReader,
    ) -> Result<Self, Unsupported> {
        if ty.async_() {
            return Err("is asynchronous");
        }
        let mut parameters = Vec::new();
        for (name, ty) in ty.params() {
            parameters.push((reader.take_name(name)?, reader.read(&ty)?));
        }
        let result = ty.results().next().map(|ty| reader.read(&ty)).transpose()?;
        Ok(Self { path: path.clone(), name: String::new(), index, parameters, result })
    }

    /// Describes the function, and returns the length of the description as JSON.
    fn described(&self, docs: &FunctionDocs) -> (ToolDescription, usize) {
        let docs = docs.of(self.path.interface(), &self.path.function);
        let description = match docs {
            Some(docs) => docs.to_owned(),
            None => format!("The function `{}`.", self.path),
        };
        let output = match &self.result {
            Some(WitType::Result { ok: Some(ty), .. }) => schema::of_result(ty),
            Some(ty) => schema::of_result(ty),
            None => None,
        };
        let described = ToolDescription {
            name: self.name.clone(),
            description: Some(description),
            input_schema: Some(schema::of_parameters(&self.parameters)),
            output_schema: output,
            ..ToolDescription::default()
        };
        let length = serde_json::to_value(&described).map_or(usize::MAX, |it| json::length(&it));
        (described, length)
    }

    /// Parses and converts the arguments.
    fn arguments(&self, text: &str, bytes: usize) -> Result<Vec<Val>, String> {
        let arguments = match json::parse(text.as_bytes(), JsonBudget::ARGUMENTS) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) => return Err("the arguments are not a JSON object".to_owned()),
            Err(error) => return Err(format!("the arguments are not valid JSON: {error}")),
        };
        let values = values::arguments(&self.parameters, &arguments, bytes);
        values.map_err(|values::Mismatch { pointer, message }| match pointer.is_empty() {
            true => format!("the arguments: {message}"),
            false => format!("argument `{pointer}`: {message}"),
        })
    }

    /// Converts the result.
    fn outcome(&self, result: Option<&Val>, limit: usize) -> Result<Outcome, values::TooLong> {
        let text = |ty: &Option<Box<WitType>>, value: &Option<Box<Val>>| {
            let payload = ty.as_ref().zip(value.as_ref());
            payload.map(|(ty, value)| values::text(ty, value, limit)).transpose()
        };
        Ok(match (&self.result, result) {
            (Some(WitType::Result { ok, .. }), Some(Val::Result(Ok(value)))) => {
                Outcome::Success(text(ok, value)?.unwrap_or_default())
            }
            (Some(WitType::Result { err, .. }), Some(Val::Result(Err(value)))) => {
                let message = text(err, value)?.filter(|message| !message.is_empty());
                Outcome::Error(ErrorInfo::new(
                    message.unwrap_or_else(|| format!("`{}` failed without a message", self.path)),
                ))
            }
            (Some(ty), Some(value)) => Outcome::Success(values::text(ty, value, limit)?),
            _ => Outcome::Success(String::new()),
        })
    }
}

impl std::fmt::Display for FunctionPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.instance {
            Some(instance) => write!(f, "{}#{}", shown(instance), shown(&self.function)),
            None => write!(f, "{}", shown(&self.function)),
        }
    }
}

#[cfg(test)]
mod tests;
