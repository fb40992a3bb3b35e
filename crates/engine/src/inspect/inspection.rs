//! The properties of a component, and whether kitbag can run it.

use kitbag_contract::{PACKAGE, VERSION};
use serde::Serialize;

use super::omission::Omission;
use super::sockets;
use super::support::Support;
use super::weight::Heaviest;
use crate::description::DescribeResult;
use crate::lane::{Lane, TRANSLATED};
use crate::load_error::InvalidComponent;
use crate::model::Model;
use crate::section;

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
pub(super) const RUN_SHAPE: &str = run_type!("", "", "", "");

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
    pub(super) mismatch: Option<InvalidComponent>,
    /// The feature that a component needs and that no engine has, if it could be parsed.
    #[serde(skip)]
    pub(super) beyond: Option<InvalidComponent>,
    #[serde(skip)]
    pub(super) heaviest: Heaviest,
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

impl Inspection {
    /// Reads the custom sections of the component.
    pub(super) fn with_sections(self, bytes: &[u8], support: &Support) -> Self {
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
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
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
pub(super) fn wasi_3_version(name: &str) -> Option<&str> {
    let (interface, version) = name.split_once('@')?;
    (interface.starts_with("wasi:") && version.starts_with("0.3.")).then_some(version)
}
