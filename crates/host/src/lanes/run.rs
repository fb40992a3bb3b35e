//! kitbag's own contract: the functions `run` and `describe` of `wit/tool.wit`.

use kitbag_contract::bindings::{RunParameters, RunResult};
use kitbag_contract::{Description, Outcome};
use kitbag_engine::DescribeResult;
use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use super::{Parameters, instantiate};
use crate::call::state::State;
use crate::component::support::SUPPORT;
use crate::error::CallError;

/// The functions of a component for kitbag.
pub(crate) struct Run {
    run: ComponentExportIndex,
    describe: Option<ComponentExportIndex>,
}

impl Run {
    /// Returns the functions of a component. `None` if it does not export `run` of the contract.
    pub(crate) fn of(component: &Component) -> Option<Self> {
        let (ComponentItem::ComponentFunc(ty), run) = component.get_export(None, "run")? else {
            return None;
        };
        let types = component.component_type();
        ty.typecheck::<RunParameters<'_>, RunResult>(&types.instance_type()).ok()?;
        Some(Self { run, describe: component.get_export_index(None, "describe") })
    }

    pub(crate) fn link(&self, _: &mut Linker<State>) -> wasmtime::Result<()> {
        Ok(())
    }

    pub(crate) fn description(&self, _: &Component) -> Option<Description> {
        None
    }

    pub(crate) fn describes(&self) -> bool {
        self.describe.is_some()
    }

    pub(crate) async fn describe(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<DescribeResult> {
        let Some(describe) = &self.describe else { return Ok(DescribeResult::Nothing) };
        let instance = instantiate(store, pre).await?;
        let describe = instance.get_typed_func::<(), (String,)>(&mut *store, describe)?;
        let (text,) = describe.call_async(&mut *store, ()).await?;
        Ok(DescribeResult::read(text.as_bytes(), &SUPPORT))
    }

    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let Parameters { context, name, arguments, answers, output: _ } = parameters;
        let instance = instantiate(store, pre).await?;
        let run =
            instance.get_typed_func::<RunParameters<'_>, RunResult>(&mut *store, &self.run)?;
        let parameters = (context.clone().into(), *name, *arguments, *answers);
        let (outcome,) = run.call_async(&mut *store, parameters).await?;
        Outcome::try_from(outcome).map_err(|error| CallError::Contract(error).into())
    }
}
