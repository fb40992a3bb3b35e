//! Types of a component, formatted as WIT.
//!
//! A short declaration can have a long text, since types may refer to others many times. So the
//! text is bounded, and types beyond the limit are not visited.

use wasmparser::component_types::{
    ComponentDefinedType, ComponentDefinedTypeId, ComponentFuncTypeId, ComponentValType,
};
use wasmparser::types::TypesRef;

/// Maximum length of the text of a type. The `run` of a tool takes a hundredth of it.
const TEXT_BYTES: usize = 64 << 10;

/// Maximum length of the text of all types of one component: a million exports may share a type of
/// a few bytes.
pub(super) const ALL_TEXT_BYTES: usize = 1 << 20;

/// Formats a function type, with or without parameter names. A type that is too long ends with `…`.
pub(super) fn function(types: TypesRef<'_>, id: ComponentFuncTypeId, with_names: bool) -> String {
    function_within(types, id, with_names, TEXT_BYTES)
}

/// As [`function`], with at most this many bytes.
pub(super) fn function_within(
    types: TypesRef<'_>,
    id: ComponentFuncTypeId,
    with_names: bool,
    bytes: usize,
) -> String {
    let room = bytes.min(TEXT_BYTES);
    let mut writer = Writer { types, text: String::new(), room, is_full: false };
    let ty = &types[id];
    writer.push(if ty.async_ { "async func(" } else { "func(" });
    writer.list(ty.params.iter(), |writer, (name, ty)| {
        if with_names {
            writer.push(name.as_str());
            writer.push(": ");
        }
        writer.value(*ty);
    });
    writer.push(")");
    if let Some(result) = ty.result {
        writer.push(" -> ");
        writer.value(result);
    }
    writer.text
}

struct Writer<'a> {
    types: TypesRef<'a>,
    text: String,
    room: usize,
    is_full: bool,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        if self.is_full {
            return;
        }
        if self.text.len() + text.len() > self.room {
            self.is_full = true;
            self.text.push('…');
        } else {
            self.text.push_str(text);
        }
    }

    fn list<T>(&mut self, items: impl Iterator<Item = T>, show: impl Fn(&mut Self, T)) {
        for (index, item) in items.enumerate() {
            if self.is_full {
                return;
            }
            if index > 0 {
                self.push(", ");
            }
            show(self, item);
        }
    }

    fn value(&mut self, ty: ComponentValType) {
        match ty {
            _ if self.is_full => {}
            ComponentValType::Primitive(ty) => self.push(&ty.to_string()),
            ComponentValType::Type(id) => self.defined(id),
        }
    }

    /// Formats a generic type: its name and its parameters.
    fn generic<const N: usize>(&mut self, name: &str, parts: [Option<ComponentValType>; N]) {
        self.push(name);
        self.push("<");
        self.list(parts.into_iter(), |writer, part| match part {
            Some(ty) => writer.value(ty),
            None => writer.push("_"),
        });
        self.push(">");
    }

    fn defined(&mut self, id: ComponentDefinedTypeId) {
        let types = self.types;
        match &types[id] {
            ComponentDefinedType::Primitive(ty) => self.push(&ty.to_string()),
            ComponentDefinedType::Record(record) => {
                self.push("record { ");
                self.list(record.fields.iter(), |writer, (name, ty)| {
                    writer.push(name.as_str());
                    writer.push(": ");
                    writer.value(*ty);
                });
                self.push(" }");
            }
            ComponentDefinedType::Variant(variant) => {
                self.push("variant { ");
                self.list(variant.cases.iter(), |writer, (name, case)| {
                    writer.push(name.as_str());
                    if let Some(ty) = case.ty {
                        writer.push("(");
                        writer.value(ty);
                        writer.push(")");
                    }
                });
                self.push(" }");
            }
            ComponentDefinedType::Enum(cases) => {
                self.push("enum { ");
                self.list(cases.iter(), |writer, name| writer.push(name.as_str()));
                self.push(" }");
            }
            ComponentDefinedType::Flags(flags) => {
                self.push("flags { ");
                self.list(flags.iter(), |writer, name| writer.push(name.as_str()));
                self.push(" }");
            }
            ComponentDefinedType::Tuple(tuple) => {
                self.push("tuple<");
                self.list(tuple.types.iter(), |writer, ty| writer.value(*ty));
                self.push(">");
            }
            ComponentDefinedType::List { element, .. } => self.generic("list", [Some(*element)]),
            ComponentDefinedType::FixedLengthList { element, length, .. } => {
                self.push("list<");
                self.value(*element);
                self.push(&format!(", {length}>"));
            }
            ComponentDefinedType::Map { key, value, .. } => {
                self.generic("map", [Some(*key), Some(*value)]);
            }
            ComponentDefinedType::Option { ty, .. } => self.generic("option", [Some(*ty)]),
            ComponentDefinedType::Result { ok: None, err: None, .. } => self.push("result"),
            ComponentDefinedType::Result { ok, err: None, .. } => self.generic("result", [*ok]),
            ComponentDefinedType::Result { ok, err, .. } => self.generic("result", [*ok, *err]),
            ComponentDefinedType::Own(_) => self.push("own<resource>"),
            ComponentDefinedType::Borrow(_) => self.push("borrow<resource>"),
            ComponentDefinedType::Future { ty, .. } => self.generic("future", [*ty]),
            ComponentDefinedType::Stream { ty, .. } => self.generic("stream", [*ty]),
        }
    }
}
