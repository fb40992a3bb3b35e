//! Inspects a component or a core module without running or compiling it.
//!
//! Every file is inspected before compilation, so that it is refused early with a precise reason;
//! `kitbag inspect` shows the same result.

mod declarations;
mod host;
mod module;
mod omission;
mod sockets;
mod support;
mod weight;
mod wit;

use std::path::Path;

use kitbag_base::ContentDigest;
use kitbag_contract::{PACKAGE, VERSION};
use serde::Serialize;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentEntityType, ComponentInstanceTypeId, ComponentItem,
};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{
    Encoding, FuncValidatorAllocations, Parser, Payload, ValidPayload, Validator, WasmFeatures,
};

pub use self::declarations::INSTANCE_BYTES;
pub use self::omission::{Omission, TYPE_DEPTH};
pub use self::support::Support;
use self::weight::FunctionProblem;
pub(crate) use self::weight::Heaviest;
use crate::cache::digest_of_bytes;
use crate::description::DescribeResult;
use crate::lane::{ExportKind, Lane, TRANSLATED};
use crate::load_error::{InvalidComponent, LoadError};
use crate::model::Model;
use crate::{component_file, section};

/// The type of `run` with the given parameter names.
macro_rules! run_type {
    ($context:literal, $name:literal, $arguments:literal, $answers:literal) => {
        concat!(
            "func(", $context, "record { root: string, action: enum { run, format-arguments } }, ",
            $name, "string, ", $arguments, "string, ", $answers, "string) -> variant { ",
            "success(string), error(record { message: string, trace: list<string>, transient: bool }), ",
            "needs-input(record { id: string, text: string, answer-type: string, default: option<string> }) }",
        )
    };
}

/// The type of a tool's `run`, as WIT with all types expanded.
pub const RUN_TYPE: &str = run_type!("ctx: ", "name: ", "arguments: ", "answers: ");

/// The same without parameter names, which are not part of the type.
const RUN_SHAPE: &str = run_type!("", "", "", "");

/// The properties of a component.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The size of the file, in bytes.
    pub size: u64,
    /// The binary interface. `None`: it is not known.
    pub lane: Option<Lane>,
    /// True for a core module, which is translated to a component.
    pub is_module: bool,
    /// The imports, in the order of the file.
    pub imports: Vec<Import>,
    /// The exports, with the type of each function.
    pub exports: Vec<Export>,
    /// The exported functions that are not tools, because their types have no JSON form. Empty for
    /// other lanes than [`Lane::Functions`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Omission>,
    /// The package that defines the types of `run`, if it is named, such as
    /// `kitbag:tool/types@0.1.0`.
    pub contract: Option<String>,
    /// The part of the component model that it needs.
    #[serde(skip)]
    pub model: Model,
    /// The description in the section `kitbag:describe`, if present.
    #[serde(skip)]
    pub section: Option<DescribeResult>,
    /// The data of the section `act:component`, if present: the manifest of a component for ACT.
    #[serde(skip)]
    pub act_manifest: Option<Vec<u8>>,
    #[serde(skip)]
    mismatch: Option<InvalidComponent>,
    /// The feature that a component needs and that no engine has, if it could be parsed.
    #[serde(skip)]
    beyond: Option<InvalidComponent>,
    #[serde(skip)]
    heaviest: Heaviest,
}

/// An import of a component, or a module from which a core module imports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Import {
    /// The name, such as `wasi:cli/environment@0.2.6` or `wasi_snapshot_preview1`.
    pub name: String,
    /// The capability for the tool. `None`: kitbag does not provide the import.
    pub offered: Option<&'static str>,
}

/// An export of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// The name.
    pub name: String,
    /// The type, as WIT: `func(…) -> …`, `instance` and so on.
    #[serde(rename = "type")]
    pub ty: String,
}

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

impl Inspection {
    /// Reads the custom sections of the component.
    fn with_sections(self, bytes: &[u8], support: &Support) -> Self {
        let section = section::described(bytes, support);
        let act_manifest =
            self.lane.filter(|lane| *lane == Lane::Act).and_then(|_| section::act_manifest(bytes));
        Self { section, act_manifest, ..self }
    }

    /// Returns true if the component exports the function `describe`, which kitbag calls if no
    /// section has a description.
    pub fn describes(&self) -> bool {
        self.exports.iter().any(|export| export.name == "describe")
    }

    /// Returns true if the component uses sockets, which cannot be granted.
    pub fn uses_sockets(&self) -> bool {
        let used = self.imports.iter().filter(|import| import.offered != Some("types only"));
        used.map(|import| &*import.name).any(sockets::is_use)
    }

    /// Checks that kitbag can run the component.
    ///
    /// # Errors
    ///
    /// [`InvalidComponent`] has the first problem: the version of the contract, the type of `run`,
    /// imports that are not provided, or not with these types.
    pub fn verdict(&self) -> Result<(), InvalidComponent> {
        // Another version of our package is reported first, since it explains other mismatches.
        let of_contract = |name: &str| {
            let (path, version) = name.split_once('@')?;
            let (package, _) = path.split_once('/')?;
            (package == PACKAGE && version != VERSION).then(|| version.to_owned())
        };
        if let Some(found) = self.names().find_map(of_contract) {
            return Err(InvalidComponent::ContractVersion {
                package: PACKAGE,
                found,
                known: VERSION,
            });
        }
        if let Some(version) = self.names().filter_map(wasi_3_version).find(|it| *it != WASI_3) {
            return Err(InvalidComponent::WasiVersion { version: version.to_owned() });
        }
        if let Some(beyond) = &self.beyond {
            return Err(beyond.clone());
        }
        // Only the translation of a module exports it.
        if let Some(name) = self.names().find(|name| name.starts_with(TRANSLATED)) {
            return Err(InvalidComponent::Reserved { name: name.to_owned() });
        }
        if !self.lane.is_some_and(Lane::is_offered) {
            return Err(self.unknown());
        }
        let missing: Vec<_> = self
            .imports
            .iter()
            .filter(|import| import.offered.is_none())
            .map(|import| import.name.clone())
            .collect();
        match &self.mismatch {
            _ if !missing.is_empty() => Err(InvalidComponent::Imports { imports: missing }),
            Some(mismatch) => Err(mismatch.clone()),
            None => Ok(()),
        }
    }

    /// Returns the error for a file that no known host runs, or whose host kitbag does not know.
    fn unknown(&self) -> InvalidComponent {
        if self.is_module {
            return InvalidComponent::Module { items: self.names().map(str::to_owned).collect() };
        }
        match self.exports.iter().find(|export| export.name == "run" && self.lane.is_none()) {
            Some(run) => InvalidComponent::RunType { found: run.ty.clone(), expected: RUN_TYPE },
            None => InvalidComponent::NoRun { other: self.of_another_host() },
        }
    }

    /// Returns the names of the imports and exports.
    fn names(&self) -> impl Iterator<Item = &str> {
        let imports = self.imports.iter().map(|import| &*import.name);
        imports.chain(self.exports.iter().map(|export| &*export.name))
    }

    /// Returns the names of the interfaces and functions that neither kitbag nor WASI defines.
    fn of_another_host(&self) -> Vec<String> {
        let imports = self.imports.iter().filter(|import| import.offered.is_none());
        let imports = imports.map(|import| &import.name);
        let exports = self.exports.iter().map(|export| &export.name);
        let is_server = |name: &str| {
            let interface = name.split('@').next();
            ["wasi:http/handler", "wasi:http/incoming-handler"].map(Some).contains(&interface)
        };
        let is_other =
            |name: &&String| (!name.starts_with("wasi:") || is_server(name)) && *name != "describe";
        imports.chain(exports).filter(is_other).cloned().collect()
    }
}

/// The release of WASI 0.3 whose interfaces are known.
const WASI_3: &str = "0.3.0";

/// Returns the version of an interface of WASI 0.3.
fn wasi_3_version(name: &str) -> Option<&str> {
    let (interface, version) = name.split_once('@')?;
    (interface.starts_with("wasi:") && version.starts_with("0.3.")).then_some(version)
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

/// Converts a parser error. Only its text shows that a feature is disabled.
fn malformed(error: wasmparser::BinaryReaderError) -> InvalidComponent {
    let text = error.to_string();
    let is_off = |words: &&str| error.message().contains(words);
    match ["not enabled", "must be enabled", " feature"].iter().any(is_off) {
        true => InvalidComponent::Feature(text),
        false => InvalidComponent::Malformed(text),
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
