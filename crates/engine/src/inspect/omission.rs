//! Exported functions that cannot be called with JSON, by their types.

use std::collections::HashMap;
use std::fmt;

use kitbag_base::text::shown;
use serde::Serialize;
use wasmparser::PrimitiveValType;
use wasmparser::component_types::{
    ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType, ComponentFuncTypeId,
    ComponentValType,
};
use wasmparser::types::TypesRef;

use crate::lane::{is_hook, is_initialiser};

/// The deepest nesting of a type that has a JSON form. Its JSON Schema has up to four levels for each,
/// and parsers stop at 128.
pub const TYPE_DEPTH: usize = 24;

/// Maximum number of omissions that are listed.
const MOST: usize = 1_000;

/// An exported function that is not a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omission {
    /// The function, with its instance before a `#`.
    pub function: String,
    /// The reason, as the end of "it …".
    pub reason: String,
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", shown(&self.function), self.reason)
    }
}

/// Returns the functions of a component that are not tools, in the order of the exports.
pub(super) fn omissions(types: TypesRef<'_>, exports: &[String]) -> Vec<Omission> {
    let mut reader = Reader { types, known: HashMap::new() };
    let mut omissions = Vec::new();
    let mut add = |function: String, id| {
        if omissions.len() < MOST
            && let Some(reason) = reader.function(id)
        {
            omissions.push(Omission { function, reason: reason.to_owned() });
        }
    };
    for name in exports {
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => {
                let is_bare = types[id].params.is_empty() && types[id].result.is_none();
                if !is_initialiser(name, is_bare) {
                    add(name.clone(), id);
                }
            }
            Some(ComponentEntityType::Instance(id)) if !is_hook(name) => {
                for (function, item) in &types[id].exports {
                    if let ComponentEntityType::Func(id) = item.ty {
                        add(format!("{name}#{function}"), id);
                    }
                }
            }
            _ => {}
        }
    }
    omissions
}

/// Reads types. Each is visited once, since a few hundred bytes can describe a tree of any size.
struct Reader<'a> {
    types: TypesRef<'a>,
    /// The depths of types, and the problems that a type has at any place.
    known: HashMap<ComponentDefinedTypeId, Result<usize, &'static str>>,
}

const TOO_DEEP: &str = "has types that are nested more than 24 levels";

impl Reader<'_> {
    fn function(&mut self, id: ComponentFuncTypeId) -> Option<&'static str> {
        let types = self.types;
        let ty = &types[id];
        if ty.async_ {
            return Some("is asynchronous");
        }
        let parts = ty.params.iter().map(|(_, ty)| *ty).chain(ty.result);
        self.deepest(parts, TYPE_DEPTH).err()
    }

    /// Returns the depth of the deepest type, or the first problem. No type may be deeper than `left`.
    fn deepest(
        &mut self,
        parts: impl IntoIterator<Item = ComponentValType>,
        left: usize,
    ) -> Result<usize, &'static str> {
        let mut parts = parts.into_iter();
        parts.try_fold(0, |deepest: usize, part| Ok(deepest.max(self.value(part, left)?)))
    }

    fn value(&mut self, ty: ComponentValType, left: usize) -> Result<usize, &'static str> {
        let within = |depth: usize| if depth > left { Err(TOO_DEEP) } else { Ok(depth) };
        match ty {
            ComponentValType::Primitive(ty) => primitive(ty).and_then(within),
            ComponentValType::Type(id) => match self.known.get(&id) {
                Some(known) => known.and_then(within),
                None => {
                    let left = left.checked_sub(1).ok_or(TOO_DEEP)?;
                    let known = self.defined(id, left);
                    if known != Err(TOO_DEEP) {
                        self.known.insert(id, known);
                    }
                    known
                }
            },
        }
    }

    fn defined(&mut self, id: ComponentDefinedTypeId, left: usize) -> Result<usize, &'static str> {
        let types = self.types;
        let parts: Vec<ComponentValType> = match &types[id] {
            ComponentDefinedType::Primitive(ty) => return primitive(*ty),
            ComponentDefinedType::Record(record) => record.fields.values().copied().collect(),
            ComponentDefinedType::Variant(variant) => {
                variant.cases.values().filter_map(|case| case.ty).collect()
            }
            ComponentDefinedType::Enum(_) | ComponentDefinedType::Flags(_) => Vec::new(),
            ComponentDefinedType::Tuple(tuple) => tuple.types.to_vec(),
            ComponentDefinedType::List { element, .. } => vec![*element],
            ComponentDefinedType::Option { ty, .. } => vec![*ty],
            ComponentDefinedType::Result { ok, err, .. } => {
                [*ok, *err].into_iter().flatten().collect()
            }
            ComponentDefinedType::FixedLengthList { .. } => {
                return Err("uses a list of fixed length");
            }
            ComponentDefinedType::Map { .. } => return Err("uses a map"),
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => {
                return Err("uses a resource");
            }
            ComponentDefinedType::Future { .. } => return Err("uses a future"),
            ComponentDefinedType::Stream { .. } => return Err("uses a stream"),
        };
        Ok(self.deepest(parts, left)? + 1)
    }
}

fn primitive(ty: PrimitiveValType) -> Result<usize, &'static str> {
    match ty {
        PrimitiveValType::ErrorContext => Err("uses an error context"),
        _ => Ok(1),
    }
}
