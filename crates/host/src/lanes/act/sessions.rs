//! Sessions: state of a component between functions.
//!
//! Each call has an instance of its own, so a session lasts for one call. It is opened if the call
//! has arguments for it.

use kitbag_base::ByteSize;
use kitbag_base::json::{self, JsonBudget};
use kitbag_contract::{ErrorInfo, ToolDescription};
use serde_json::{Value, json};
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, ComponentType, Instance, Lift};

use super::cbor;
use super::events::{ActError, Metadata, error_info};
use crate::call::state::State;

/// The argument of a tool with the arguments for its session.
const ARGUMENT: &str = "session_args";

/// The key of the session in the metadata of a call.
const KEY: &str = "std:session-id";

/// The interface, without its version.
const INTERFACE: &str = "act:sessions/session-provider@0.1.";

/// The functions of the interface.
pub(super) struct Sessions {
    schema: ComponentExportIndex,
    open: ComponentExportIndex,
    close: ComponentExportIndex,
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub(super) struct Session {
    id: String,
    #[expect(dead_code, reason = "part of the interface")]
    metadata: Metadata,
}

impl Sessions {
    /// Finds the functions. `None` if the component has no sessions.
    pub(super) fn of(component: &Component) -> Option<Self> {
        let (engine, ty) = (component.engine(), component.component_type());
        let mut names = ty.exports(engine).map(|(name, _)| name);
        let name = names.find(|name| name.starts_with(INTERFACE))?;
        let instance = component.get_export_index(None, name)?;
        let function = |name: &str| component.get_export_index(Some(&instance), name);
        Some(Self {
            schema: function("get-open-session-args-schema")?,
            open: function("open-session")?,
            close: function("close-session")?,
        })
    }

    /// Adds the arguments of a session to those of each tool.
    pub(super) async fn describe(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        tools: &mut [ToolDescription],
    ) -> wasmtime::Result<Result<(), String>> {
        type Schema = (Result<String, ActError>,);
        let schema = instance.get_typed_func::<(Metadata,), Schema>(&mut *store, &self.schema)?;
        let (schema,) = schema.call_async(&mut *store, (Metadata::new(),)).await?;
        let schema = schema.map_err(|error| error_info(error).message).and_then(|schema| {
            // Each tool gets a copy.
            let limit = JsonBudget::DESCRIPTION.bytes;
            if schema.len().saturating_mul(tools.len()) > limit {
                let limit = ByteSize::bytes(limit as u64);
                return Err(format!("it has more than the limit of {limit}"));
            }
            let schema = json::parse(schema.as_bytes(), JsonBudget::DESCRIPTION);
            schema.map_err(|error| format!("the schema of its sessions is not usable: {error}"))
        });
        Ok(schema.map(|schema| tools.iter_mut().for_each(|tool| add_argument(tool, &schema))))
    }

    /// Opens a session with the arguments of a call, which it removes. `None` if there are none.
    pub(super) async fn open(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        arguments: &mut Value,
    ) -> wasmtime::Result<Result<Option<Session>, ErrorInfo>> {
        type Opened = (Result<Session, ActError>,);
        let own = arguments.as_object_mut().and_then(|arguments| arguments.remove(ARGUMENT));
        let Some(own) = own else { return Ok(Ok(None)) };
        let Value::Object(own) = own else {
            return Ok(Err(ErrorInfo::new(format!("`{ARGUMENT}` must be an object"))));
        };
        let own = own.into_iter().map(|(key, value)| (key, cbor::encode(&value))).collect();
        let open =
            instance.get_typed_func::<(Metadata, Metadata), Opened>(&mut *store, &self.open)?;
        let (opened,) = open.call_async(&mut *store, (own, Metadata::new())).await?;
        Ok(opened.map(Some).map_err(error_info))
    }

    /// Tells the component that a session ends.
    pub(super) async fn close(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        session: Session,
    ) -> wasmtime::Result<()> {
        let close = instance.get_typed_func::<(String,), ()>(&mut *store, &self.close)?;
        close.call_async(&mut *store, (session.id,)).await
    }
}

impl Session {
    /// Returns the metadata of a call in the session.
    pub(super) fn metadata(&self) -> Metadata {
        vec![(KEY.to_owned(), cbor::encode(&Value::from(self.id.clone())))]
    }
}

fn add_argument(tool: &mut ToolDescription, schema: &Value) {
    let Some(Value::Object(own)) = &mut tool.input_schema else { return };
    let properties = own.entry("properties").or_insert_with(|| json!({}));
    if let (Some(properties), Some(schema)) = (properties.as_object_mut(), schema.as_object()) {
        let mut schema = schema.clone();
        let about = "Opens a session for this call, with these arguments";
        schema.insert("description".to_owned(), Value::from(about));
        properties.entry(ARGUMENT).or_insert(Value::Object(schema));
    }
}
