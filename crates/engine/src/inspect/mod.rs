//! Reading a component without running or compiling it.
//!
//! Every component passes here before it is compiled, so that a refusal is
//! early and names what is wrong; `kitbag inspect` shows the same reading.

mod declarations;
mod host;
mod sockets;
mod support;
mod weight;
mod wit;

use std::path::Path;

use kitbag_base::ContentDigest;
use kitbag_contract::{PACKAGE, VERSION};
use serde::Serialize;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentEntityType, ComponentInstanceTypeId,
};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{
    Encoding, FuncValidatorAllocations, Parser, Payload, ValidPayload, Validator, WasmFeatures,
};

pub use self::declarations::INSTANCE_BYTES;
pub use self::support::Support;
use self::weight::FunctionProblem;
pub(crate) use self::weight::Heaviest;
use crate::cache::digest_of_bytes;
use crate::description::DescribeResult;
use crate::load_error::{InvalidComponent, LoadError};
use crate::{component_file, section};

/// The type of `run` with its parameters called as given.
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

/// The type that a tool's `run` has, as WIT with all types written out.
pub const RUN_TYPE: &str = run_type!("ctx: ", "name: ", "arguments: ", "answers: ");

/// The same without the names of the parameters, which are no part of a shape.
const RUN_SHAPE: &str = run_type!("", "", "", "");

/// What can be read off a component.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Size of the file, in bytes.
    pub size: u64,
    /// What it imports, in the order of the file.
    pub imports: Vec<Import>,
    /// What it exports, with the type of each function.
    pub exports: Vec<Export>,
    /// The package whose types its `run` uses, where it names one, such as
    /// `kitbag:tool/types@0.1.0`.
    pub contract: Option<String>,
    /// What its section `kitbag:describe` says of it, where it has one.
    #[serde(skip)]
    pub section: Option<DescribeResult>,
    #[serde(skip)]
    run_shape: Option<String>,
    #[serde(skip)]
    mismatch: Option<InvalidComponent>,
    #[serde(skip)]
    heaviest: Heaviest,
}

/// Something that a component imports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Import {
    /// Its name, such as `wasi:cli/environment@0.2.6`.
    pub name: String,
    /// What it gives a tool, or `None` where kitbag does not offer it.
    pub offered: Option<&'static str>,
}

/// Something that a component exports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Its type, as WIT: `func(…) -> …`, `instance` and so on.
    #[serde(rename = "type")]
    pub ty: String,
}

/// Reads a component and checks that it is one that kitbag can run.
///
/// # Errors
///
/// [`InvalidComponent`] says what stands in the way, the first thing first: the
/// form of the file, the version of the contract, the type of `run`, imports
/// that are not offered.
///
/// `None` where `is_cancelled` says so meanwhile.
pub(crate) fn check(
    bytes: &[u8],
    support: &Support,
    is_cancelled: impl Fn() -> bool,
) -> Result<Option<Heaviest>, InvalidComponent> {
    let Some(inspection) = read(bytes, support, is_cancelled)? else { return Ok(None) };
    inspection.verdict().map(|()| Some(inspection.heaviest))
}

/// A component that was read, and what can be read off it.
#[derive(Clone, Debug)]
pub struct ReadComponent {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The digest of its bytes.
    pub digest: ContentDigest,
    /// Its version, as its section `version` has it. Untrusted text.
    pub version: Option<String>,
    /// What can be read off it.
    pub inspection: Inspection,
}

/// Reads a component from a file, by whatever links lead to it, and nothing of it runs. It is
/// one that kitbag can run.
///
/// # Errors
///
/// [`LoadError`] for a file that cannot be read, and for what kitbag cannot run.
pub fn read_component(path: &Path, support: &Support) -> Result<ReadComponent, LoadError> {
    let bytes = component_file::read(path)?;
    let invalid = |problem| LoadError::invalid(path, problem);
    let inspection =
        read(&bytes, support, || false).map_err(invalid)?.ok_or(LoadError::Cancelled)?;
    inspection.verdict().map_err(invalid)?;
    let inspection = Inspection { section: section::described(&bytes, support), ..inspection };
    let digest = digest_of_bytes(&bytes);
    Ok(ReadComponent { version: section::version(&bytes), digest, inspection, bytes })
}

/// Reads a component from a file, whether kitbag can run it or not.
///
/// # Errors
///
/// [`LoadError`] for a file that cannot be read, and for one that is no
/// component at all.
pub fn inspect_file(path: &Path, support: &Support) -> Result<Inspection, LoadError> {
    let bytes = component_file::read(path)?;
    let read =
        read(&bytes, support, || false).map_err(|problem| LoadError::invalid(path, problem))?;
    let inspection = read.ok_or(LoadError::Cancelled)?;
    Ok(Inspection { section: section::described(&bytes, support), ..inspection })
}

impl Inspection {
    /// Whether it exports the function `describe`, which kitbag calls where no section says
    /// what it is.
    pub fn describes(&self) -> bool {
        self.exports.iter().any(|export| export.name == "describe")
    }

    /// Whether it uses sockets, which no grant gives.
    pub fn uses_sockets(&self) -> bool {
        let used = self.imports.iter().filter(|import| import.offered != Some("types only"));
        used.map(|import| &*import.name).any(sockets::is_use)
    }

    /// Whether kitbag can run this component.
    ///
    /// # Errors
    ///
    /// [`InvalidComponent`] says what stands in the way, the first thing first:
    /// the version of the contract, the type of `run`, imports that are not
    /// offered, or not with such types.
    pub fn verdict(&self) -> Result<(), InvalidComponent> {
        // A package of our name in another version comes first: it explains
        // whatever else does not fit.
        let of_contract = |name: &str| {
            let (path, version) = name.split_once('@')?;
            let (package, _) = path.split_once('/')?;
            (package == PACKAGE && version != VERSION).then(|| version.to_owned())
        };
        let names = self.imports.iter().map(|import| &import.name);
        if let Some(found) =
            names.chain(self.exports.iter().map(|export| &export.name)).find_map(|n| of_contract(n))
        {
            return Err(InvalidComponent::ContractVersion {
                package: PACKAGE,
                found,
                known: VERSION,
            });
        }
        let Some(run) = self.exports.iter().find(|export| export.name == "run") else {
            let is_program =
                self.exports.iter().any(|export| export.name.starts_with("wasi:cli/run@"));
            return Err(if is_program {
                InvalidComponent::Program
            } else {
                InvalidComponent::NoRun
            });
        };
        if self.run_shape.as_deref() != Some(RUN_SHAPE) {
            return Err(InvalidComponent::RunType { found: run.ty.clone(), expected: RUN_TYPE });
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
}

/// WebAssembly as far as the engine runs it; `engine::config` says the same to
/// the engine.
fn offered_features() -> WasmFeatures {
    WasmFeatures::default()
        .difference(WasmFeatures::CM_ASYNC)
        .difference(WasmFeatures::GC)
        .difference(WasmFeatures::EXCEPTIONS)
        .difference(WasmFeatures::MEMORY64)
        .difference(WasmFeatures::THREADS)
}

/// Reads a component, or as much of it as there is time for: `None` then.
fn read(
    bytes: &[u8],
    support: &Support,
    is_cancelled: impl Fn() -> bool,
) -> Result<Option<Inspection>, InvalidComponent> {
    match bytes {
        [] => return Err(InvalidComponent::Empty),
        [0x7f, b'E', b'L', b'F', ..] => return Err(InvalidComponent::Precompiled),
        [0, b'a', b's', b'm', ..] => {}
        _ => return Err(InvalidComponent::NotWasm),
    }
    declarations::check(bytes)?;
    let malformed =
        |error: wasmparser::BinaryReaderError| InvalidComponent::Malformed(error.to_string());
    let mut validator = Validator::new_with_features(offered_features());
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0;
    let mut types = None;
    let mut allocations = FuncValidatorAllocations::default();
    let mut heaviest = Heaviest::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(malformed)?;
        if is_cancelled() {
            return Ok(None);
        }
        match &payload {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(InvalidComponent::CoreModule);
            }
            Payload::Version { .. } => depth += 1,
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
            ValidPayload::Func(function, body) => {
                let checked = weight::check(function, &body, allocations, &mut heaviest);
                allocations = checked.map_err(|fault| match fault {
                    FunctionProblem::Malformed(error) => malformed(error),
                    FunctionProblem::Heavy(problem) => problem,
                })?;
            }
            _ => {}
        }
    }
    let types = types.ok_or_else(|| InvalidComponent::Malformed("it breaks off".into()))?;
    Ok(Some(Inspection::new(bytes.len() as u64, &types, imports, exports, (heaviest, support))))
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
        let offered = |name: &str| {
            if is_types_only(name) { Some("types only") } else { (support.offered)(name) }
        };
        let contract = imports.iter().find(|name| {
            is_types_only(name)
                && matches!(types.component_item_for_import(name).map(|item| item.ty),
                    Some(ComponentEntityType::Instance(id)) if types[id].exports.contains_key("outcome"))
        });
        let run_shape = match types.component_item_for_export("run").map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => Some(wit::function(types, id, false)),
            _ => None,
        };
        let mismatch = imports.iter().filter(|name| host::is_reports(name)).find_map(|name| {
            match types.component_item_for_import(name)?.ty {
                ComponentEntityType::Instance(id) => host::mismatch(name, types, id),
                _ => None,
            }
        });
        let mut room = wit::ALL_TEXT_BYTES;
        Self {
            size,
            heaviest,
            run_shape,
            mismatch,
            contract: contract.cloned(),
            section: None,
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

/// Whether an instance holds nothing that the host would have to provide.
fn holds_only_types(types: TypesRef<'_>, id: ComponentInstanceTypeId) -> bool {
    types[id].exports.values().all(|item| {
        matches!(item.ty, ComponentEntityType::Type { created, .. }
            if !matches!(created, ComponentAnyTypeId::Resource(_)))
    })
}
