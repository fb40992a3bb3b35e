//! Inspects a component or a core module without running or compiling it.
//!
//! Every file is inspected before compilation, so that it is refused early with a precise reason;
//! `kitbag inspect` shows the same result.

mod declarations;
mod host;
mod inspection;
mod malformed;
mod module;
mod omission;
mod sockets;
mod support;
mod weight;
mod wit;

use std::path::Path;

use kitbag_base::ContentDigest;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentEntityType, ComponentInstanceTypeId, ComponentItem,
};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{
    Encoding, FuncValidatorAllocations, Parser, Payload, ValidPayload, Validator, WasmFeatures,
};

pub use self::declarations::INSTANCE_BYTES;
pub use self::inspection::{Export, Import, Inspection, RUN_TYPE};
use self::inspection::{RUN_SHAPE, wasi_3_version};
use self::malformed::malformed;
pub use self::omission::{Omission, TYPE_DEPTH};
pub use self::support::Support;
use self::weight::FunctionProblem;
pub(crate) use self::weight::Heaviest;
use crate::cache::digest_of_bytes;
use crate::lane::{ExportKind, Lane};
use crate::load_error::{InvalidComponent, LoadError};
use crate::model::Model;
use crate::{component_file, section};

/// Parses a component and checks that kitbag can run it.
///
/// # Errors
///
/// [`InvalidComponent`] has the first problem: the format of the file, the version of the contract,
/// the type of `run`, imports that are not provided.
///
/// `None` if `is_cancelled` returns true meanwhile.
pub(crate) fn check(
    bytes: &[u8],
    support: &Support,
    is_cancelled: impl Fn() -> bool,
) -> Result<Option<(Heaviest, Model)>, InvalidComponent> {
    let Some(inspection) = read(bytes, support, is_cancelled)? else { return Ok(None) };
    inspection.verdict().map(|()| Some((inspection.heaviest, inspection.model)))
}

/// A component and its properties.
#[derive(Clone, Debug)]
pub struct ReadComponent {
    /// The bytes of the component.
    pub bytes: Vec<u8>,
    /// The digest of the bytes.
    pub digest: ContentDigest,
    /// The version in the section `version`. Untrusted.
    pub version: Option<String>,
    /// The properties.
    pub inspection: Inspection,
}

/// Reads a component from a file, following links, and checks that kitbag can run it. Does not run
/// any of it.
///
/// # Errors
///
/// [`LoadError`] if the file cannot be read or kitbag cannot run the component.
pub fn read_component(path: &Path, support: &Support) -> Result<ReadComponent, LoadError> {
    let bytes = component_file::read(path)?;
    let invalid = |problem| LoadError::invalid(path, problem);
    let inspection =
        read(&bytes, support, || false).map_err(invalid)?.ok_or(LoadError::Cancelled)?;
    inspection.verdict().map_err(invalid)?;
    let inspection = inspection.with_sections(&bytes, support);
    let digest = digest_of_bytes(&bytes);
    Ok(ReadComponent { version: section::version(&bytes), digest, inspection, bytes })
}

/// Inspects a component in a file, whether or not kitbag can run it.
///
/// # Errors
///
/// [`LoadError`] if the file cannot be read or is not a component.
pub fn inspect_file(path: &Path, support: &Support) -> Result<Inspection, LoadError> {
    let bytes = component_file::read(path)?;
    let read =
        read(&bytes, support, || false).map_err(|problem| LoadError::invalid(path, problem))?;
    let inspection = read.ok_or(LoadError::Cancelled)?;
    Ok(inspection.with_sections(&bytes, support))
}

/// Returns the exported functions of a component that are not tools. Empty if it is malformed.
pub fn omissions_of(bytes: &[u8]) -> Vec<Omission> {
    let read = read_with(bytes, &Support::ANY, &|| false, Bodies::Skip);
    read.ok().flatten().map(|inspection| inspection.omitted).unwrap_or_default()
}

/// Recognises the lane of a component or a module. `None` if it is malformed or not made for a
/// known host. Functions are not validated.
pub fn lane_of(bytes: &[u8]) -> Option<Lane> {
    read_with(bytes, &Support::ANY, &|| false, Bodies::Skip).ok()??.lane
}

/// Returns the WebAssembly features of the engine for a model; must match `engine::config_of`.
fn features(model: Model) -> WasmFeatures {
    let asynchronous = match model {
        Model::Basic => WasmFeatures::empty(),
        Model::Async => WasmFeatures::CM_ASYNC,
    };
    WasmFeatures::default()
        .difference(WasmFeatures::CM_ASYNC)
        .union(asynchronous)
        .difference(WasmFeatures::GC)
        .difference(WasmFeatures::EXCEPTIONS)
        .difference(WasmFeatures::MEMORY64)
        .difference(WasmFeatures::THREADS)
}

/// Unfinished features of the component model. They are parsed so that an error can name the
/// version of WASI that needs them, and never run.
fn unfinished_features() -> WasmFeatures {
    WasmFeatures::CM_ASYNC_STACKFUL
        | WasmFeatures::CM_MORE_ASYNC_BUILTINS
        | WasmFeatures::CM_ERROR_CONTEXT
        | WasmFeatures::CM_THREADING
        | WasmFeatures::CM_FIXED_LENGTH_LISTS
        | WasmFeatures::CM_MAP
        | WasmFeatures::CM_IMPLEMENTS
}

/// Parses a component. `None` if it was cancelled.
fn read(
    bytes: &[u8],
    support: &Support,
    is_cancelled: impl Fn() -> bool,
) -> Result<Option<Inspection>, InvalidComponent> {
    read_with(bytes, support, &is_cancelled, Bodies::Check)
}

/// Parses a component with the features of the first model that suffices.
fn read_with(
    bytes: &[u8],
    support: &Support,
    is_cancelled: &impl Fn() -> bool,
    bodies: Bodies,
) -> Result<Option<Inspection>, InvalidComponent> {
    let read = |features| read_as(features, bytes, support, is_cancelled, bodies);
    let basic = read(features(Model::Basic));
    let asynchronous = match basic {
        Err(InvalidComponent::Feature(_)) => read(features(Model::Async)),
        Ok(Some(inspection)) if inspection.names().filter_map(wasi_3_version).next().is_some() => {
            Ok(Some(inspection))
        }
        _ => return basic,
    };
    let model = Model::Async;
    match asynchronous {
        Err(InvalidComponent::Feature(feature)) => {
            let beyond = InvalidComponent::Feature(feature);
            match read(features(model) | unfinished_features()) {
                Ok(Some(inspection)) => {
                    Ok(Some(Inspection { model, beyond: Some(beyond), ..inspection }))
                }
                Ok(None) => Ok(None),
                Err(_) => Err(beyond),
            }
        }
        read => Ok(read?.map(|inspection| Inspection { model, ..inspection })),
    }
}

/// The handling of function bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bodies {
    Check,
    Skip,
}

fn read_as(
    features: WasmFeatures,
    bytes: &[u8],
    support: &Support,
    is_cancelled: &impl Fn() -> bool,
    bodies: Bodies,
) -> Result<Option<Inspection>, InvalidComponent> {
    match bytes {
        [] => return Err(InvalidComponent::Empty),
        [0x7f, b'E', b'L', b'F', ..] => return Err(InvalidComponent::Precompiled),
        [0, b'a', b's', b'm', ..] => {}
        _ => return Err(InvalidComponent::NotWasm),
    }
    declarations::check(bytes)?;
    let mut validator = Validator::new_with_features(features);
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let (mut depth, mut is_module) = (0, false);
    let mut types = None;
    let mut allocations = FuncValidatorAllocations::default();
    let mut heaviest = Heaviest::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(malformed)?;
        if is_cancelled() {
            return Ok(None);
        }
        match &payload {
            Payload::Version { encoding, .. } => {
                is_module |= depth == 0 && *encoding == Encoding::Module;
                depth += 1;
            }
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section.clone() {
                    imports.push(import.map_err(malformed)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section.clone() {
                    exports.push(export.map_err(malformed)?.name.name.to_owned());
                }
            }
            _ => {}
        }
        match validator.payload(&payload).map_err(malformed)? {
            ValidPayload::End(all) => types = Some(all),
            ValidPayload::Func(function, body) if bodies == Bodies::Check => {
                let checked = weight::check(function, &body, allocations, &mut heaviest);
                allocations = checked.map_err(|fault| match fault {
                    FunctionProblem::Malformed(error) => malformed(error),
                    FunctionProblem::Heavy(problem) => problem,
                })?;
            }
            _ => {}
        }
    }
    let types = types.ok_or_else(|| InvalidComponent::Malformed("it is truncated".into()))?;
    let size = bytes.len() as u64;
    Ok(Some(match is_module {
        true => module::inspection(bytes, size, &types, (heaviest, support))?,
        false => Inspection::new(size, &types, imports, exports, (heaviest, support)),
    }))
}

impl Inspection {
    fn new(
        size: u64,
        types: &Types,
        imports: Vec<String>,
        exports: Vec<String>,
        (heaviest, support): (Heaviest, &Support),
    ) -> Self {
        let types = types.as_ref();
        let is_types_only = |name: &str| match types.component_item_for_import(name).map(|i| i.ty) {
            Some(ComponentEntityType::Instance(id)) => holds_only_types(types, id),
            Some(ComponentEntityType::Type { created, .. }) => {
                !matches!(created, ComponentAnyTypeId::Resource(_))
            }
            _ => false,
        };
        let run_shape = match types.component_item_for_export("run").map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => Some(wit::function(types, id, false)),
            _ => None,
        };
        let lane = Lane::of_component(
            run_shape.as_deref() == Some(RUN_SHAPE),
            imports.iter().map(String::as_str),
            exports.iter().map(|name| (name.as_str(), export_kind(types, name))),
        );
        let offered = |name: &str| match is_types_only(name) {
            true => Some("types only"),
            false => (support.offered)(lane.unwrap_or(Lane::Run), name),
        };
        let contract = imports.iter().find(|name| {
            is_types_only(name)
                && matches!(types.component_item_for_import(name).map(|item| item.ty),
                    Some(ComponentEntityType::Instance(id)) if types[id].exports.contains_key("outcome"))
        });
        let mismatch = imports.iter().filter(|name| host::is_reports(name)).find_map(|name| {
            match types.component_item_for_import(name)?.ty {
                ComponentEntityType::Instance(id) => host::mismatch(name, types, id),
                _ => None,
            }
        });
        let mut room = wit::ALL_TEXT_BYTES;
        Self {
            size,
            lane,
            is_module: false,
            model: Model::Basic,
            heaviest,
            mismatch,
            beyond: None,
            contract: contract.cloned(),
            section: None,
            act_manifest: None,
            omitted: match lane {
                Some(Lane::Functions) => omission::omissions(types, &exports),
                _ => Vec::new(),
            },
            exports: exports
                .into_iter()
                .map(|name| {
                    let ty = match types.component_item_for_export(&name).map(|item| item.ty) {
                        Some(ComponentEntityType::Func(id)) => {
                            let text = wit::function_within(types, id, true, room);
                            room = room.saturating_sub(text.len());
                            text
                        }
                        Some(ComponentEntityType::Instance(_)) => "instance".into(),
                        Some(ComponentEntityType::Component(_)) => "component".into(),
                        Some(ComponentEntityType::Module(_)) => "module".into(),
                        Some(ComponentEntityType::Type { .. }) => "type".into(),
                        Some(ComponentEntityType::Value(_)) | None => "value".into(),
                    };
                    Export { name, ty }
                })
                .collect(),
            imports: imports
                .into_iter()
                .map(|name| Import { offered: offered(&name), name })
                .collect(),
        }
    }
}

/// Returns the kind of an exported item.
fn export_kind(types: TypesRef<'_>, name: &str) -> ExportKind {
    let is_function = |item: &ComponentItem| matches!(item.ty, ComponentEntityType::Func(_));
    match types.component_item_for_export(name).map(|item| item.ty) {
        Some(ComponentEntityType::Func(_)) => ExportKind::Function,
        Some(ComponentEntityType::Instance(id)) => {
            ExportKind::Instance { has_functions: types[id].exports.values().any(is_function) }
        }
        _ => ExportKind::Other,
    }
}

/// Returns true if an instance has no items that the host must provide.
fn holds_only_types(types: TypesRef<'_>, id: ComponentInstanceTypeId) -> bool {
    types[id].exports.values().all(|item| {
        matches!(item.ty, ComponentEntityType::Type { created, .. }
            if !matches!(created, ComponentAnyTypeId::Resource(_)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that provides only WASI 0.2.
    const SUPPORT: Support = Support {
        offered: |_, name| {
            (name.starts_with("wasi:") && name.contains("@0.2.")).then_some("WASI 0.2")
        },
        check_grants: |_| Ok(()),
    };

    fn refused(text: &str) -> InvalidComponent {
        let bytes = wat::parse_str(text).unwrap();
        check(&bytes, &SUPPORT, || false).unwrap_err()
    }

    fn inspected(text: &str) -> Inspection {
        let bytes = wat::parse_str(text).unwrap();
        read(&bytes, &SUPPORT, || false).unwrap().unwrap()
    }

    #[test]
    fn asynchronous_components_need_an_engine_of_their_own() {
        for (component, model) in [
            ("(component)", Model::Basic),
            ("(component (import \"wasi:clocks/types@0.2.0\" (instance)))", Model::Basic),
            ("(component (type (stream u8)))", Model::Async),
            ("(component (type (future u8)))", Model::Async),
            ("(component (import \"read\" (func (result (stream u8)))))", Model::Async),
            ("(component (import \"read\" (func async)))", Model::Async),
            ("(component (import \"wasi:clocks/types@0.3.0\" (instance)))", Model::Async),
        ] {
            assert_eq!(inspected(component).model, model, "{component}");
        }
        let command = "(component (instance $i) (export \"wasi:cli/run@0.3.0\" (instance $i)))";
        let inspection = inspected(command);
        assert_eq!((inspection.model, inspection.lane), (Model::Async, Some(Lane::Command)));
        assert_eq!(inspection.verdict(), Ok(()));
    }

    #[test]
    fn other_releases_of_wasi_0_3_are_named() {
        for version in ["0.3.1", "0.3.0-rc-2026-01-06", "0.3.10"] {
            let import = format!("(component (import \"wasi:cli/types@{version}\" (instance)))");
            let expected = format!(
                "the component needs WASI {version}, which this kitbag does not offer; build it \
                 for WASI 0.3.0, or for WASI 0.2 with the target `wasm32-wasip2`"
            );
            assert_eq!(refused(&import).to_string(), expected);
        }
        // The version explains the feature.
        let refused = refused(
            "(component
                (import \"wasi:cli/types@0.3.1\" (instance))
                (core func (canon error-context.drop)))",
        );
        assert_eq!(refused, InvalidComponent::WasiVersion { version: "0.3.1".into() });
    }

    #[test]
    fn unfinished_features_are_refused_by_name() {
        let refused = refused("(component (core func (canon error-context.drop)))").to_string();
        let expected = "the component needs a feature of WebAssembly that this kitbag does not \
                        offer: `error-context.drop` requires the component model error-context";
        assert!(refused.starts_with(expected), "{refused}");
    }

    #[test]
    fn disabled_features_are_not_reported_as_invalid() {
        let found = refused("(component (core module (memory i64 1)))").to_string();
        let expected = "the component needs a feature of WebAssembly that this kitbag does not \
                        offer: memory64 must be enabled for 64-bit memories";
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn a_component_of_another_host_is_named_by_its_interfaces() {
        let other = |text: &str| match refused(text) {
            InvalidComponent::NoRun { other } => other,
            other => panic!("{other:?}"),
        };
        assert_eq!(other("(component)"), [""; 0]);
        let ironclaw = "(component
            (import \"near:agent/host@0.4.1\" (instance (export \"log\" (func))))
            (import \"wasi:cli/environment@0.2.6\" (instance (export \"get\" (func)))))";
        assert_eq!(other(ironclaw), ["near:agent/host@0.4.1"]);
        assert_eq!(
            refused(ironclaw).to_string(),
            "the component has no export that kitbag can call: it is made for IronClaw, with \
             `near:agent/host@0.4.1`; a tool exports the world `tool` of `wit/tool.wit`, in Rust \
             with `kitbag_sdk::export!`, or is a command with `wasi:cli/run`"
        );
    }

    #[test]
    fn a_component_with_functions_is_accepted() {
        let wassette =
            "(component (import \"wasi:io/poll@0.2.6\" (instance $i (export \"f\" (func))))
            (alias export $i \"f\" (func $f))
            (export \"read-file\" (func $f)) (export \"describe\" (func $f)))";
        let inspection = read(&wat::parse_str(wassette).unwrap(), &SUPPORT, || false);
        let inspection = inspection.unwrap().unwrap();
        assert_eq!((inspection.lane, inspection.verdict()), (Some(Lane::Functions), Ok(())));
    }
}
