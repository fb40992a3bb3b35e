//! The imports and exports of a core module.

use wasmparser::types::{EntityType, Types};
use wasmparser::{ExternalKind, FuncType};

use super::inspection::{Export, Import, Inspection};
use super::malformed::malformed;
use super::support::Support;
use super::weight::Heaviest;
use super::wit;
use crate::lane::Lane;
use crate::load_error::InvalidComponent;
use crate::model::Model;
use crate::translate::{self, ModuleItems};

/// Returns the properties of a valid core module.
pub(super) fn inspection(
    bytes: &[u8],
    size: u64,
    types: &Types,
    (heaviest, support): (Heaviest, &Support),
) -> Result<Inspection, InvalidComponent> {
    let items = ModuleItems::read(bytes).map_err(malformed)?;
    let lane = items.lane();
    let mut imports: Vec<Import> = Vec::new();
    for (module, ..) in &items.imports {
        if !imports.iter().any(|import| import.name == *module) {
            let offered = (support.offered)(lane.unwrap_or(Lane::Command), module);
            imports.push(Import { name: (*module).to_owned(), offered });
        }
    }
    let types = types.as_ref();
    let exported: std::collections::HashMap<_, _> =
        types.core_exports().into_iter().flatten().collect();
    let mut room = wit::ALL_TEXT_BYTES;
    let exports = items.exports.iter().map(|(name, kind)| {
        let ty = match exported.get(name) {
            Some(EntityType::Func(id)) if room > 0 => function(types[*id].unwrap_func()),
            _ => kind_name(*kind).to_owned(),
        };
        room = room.saturating_sub(ty.len());
        Export { name: (*name).to_owned(), ty }
    });
    Ok(Inspection {
        size,
        lane,
        is_module: true,
        exports: exports.collect(),
        omitted: Vec::new(),
        imports,
        contract: None,
        section: None,
        act_manifest: None,
        mismatch: lane.and_then(|lane| translate::check(bytes, lane).err()),
        model: Model::Basic,
        beyond: None,
        heaviest,
    })
}

/// Formats the type of a function, such as `func(i32, i32) -> i64`.
fn function(ty: &FuncType) -> String {
    let list = |types: &[wasmparser::ValType]| {
        types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    match ty.results() {
        [] => format!("func({})", list(ty.params())),
        results => format!("func({}) -> {}", list(ty.params()), list(results)),
    }
}

fn kind_name(kind: ExternalKind) -> &'static str {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => "func",
        ExternalKind::Table => "table",
        ExternalKind::Memory => "memory",
        ExternalKind::Global => "global",
        ExternalKind::Tag => "tag",
    }
}
