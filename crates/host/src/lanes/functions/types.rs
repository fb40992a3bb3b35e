//! WIT types whose values have a JSON form.
//!
//! The types of a component are copied into a tree of our own, which a test can also create, and
//! whose size is bounded: a component shares types, so a few hundred bytes can describe a tree of
//! any size.

use std::collections::HashMap;

use kitbag_engine::TYPE_DEPTH;
use wasmtime::component::Type;

/// The size of the types of one component: their names, and [`NODE_BYTES`] for each type.
const TYPES_BYTES: usize = 256 << 10;

const NODE_BYTES: usize = 16;

/// The size of all types that are read of one component, with those of functions that are omitted.
const READ_BYTES: usize = 4 << 20;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WitType {
    Bool,
    Integer(IntegerType),
    Float32,
    Float64,
    Char,
    String,
    List(Box<WitType>),
    Record(Vec<(String, WitType)>),
    Tuple(Vec<WitType>),
    Variant(Named<Option<WitType>>),
    Enum(Named<()>),
    Option(Box<WitType>),
    Result { ok: Option<Box<WitType>>, err: Option<Box<WitType>> },
    Flags(Named<()>),
}

/// The type of a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerType {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

/// Items in the order of their declaration, found by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named<T> {
    items: Vec<(String, T)>,
    positions: HashMap<String, usize>,
}

impl WitType {
    /// Returns true if a value can be JSON's `null`.
    pub(super) fn is_nullable(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Returns the memory of values relative to what wasmtime counts for them, at least 1.
    ///
    /// For the name of a flag wasmtime counts its bytes, but an allocation has a minimum. For all
    /// other types the difference is below a factor of three.
    pub(super) fn expansion(&self) -> usize {
        const VALUE: usize = size_of::<wasmtime::component::Val>();
        const NAME: usize = 80;
        match self {
            Self::Flags(flags) => {
                let names = flags.iter().map(|(name, ())| name.len());
                let (counted, used) = names.fold((VALUE, VALUE), |(counted, used), length| {
                    (counted + length, used + NAME.max(length))
                });
                used.div_ceil(counted)
            }
            Self::List(ty) | Self::Option(ty) => ty.expansion(),
            Self::Record(fields) => most(fields.iter().map(|(_, ty)| ty)),
            Self::Tuple(types) => most(types),
            Self::Variant(cases) => most(cases.iter().filter_map(|(_, ty)| ty.as_ref())),
            Self::Result { ok, err } => most([ok, err].into_iter().flatten().map(|ty| &**ty)),
            Self::Bool
            | Self::Integer(_)
            | Self::Float32
            | Self::Float64
            | Self::Char
            | Self::String
            | Self::Enum(_) => 1,
        }
    }
}

fn most<'a>(types: impl IntoIterator<Item = &'a WitType>) -> usize {
    types.into_iter().map(WitType::expansion).max().unwrap_or(1)
}

impl IntegerType {
    /// Returns the smallest and the largest number.
    pub(super) fn range(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }
}

impl<T> Named<T> {
    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the item with a name, and its position.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &T)> {
        let position = *self.positions.get(name)?;
        Some((position, &self.items[position].1))
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &T)> {
        self.items.iter().map(|(name, item)| (&**name, item))
    }
}

impl<T> FromIterator<(String, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(items: I) -> Self {
        let items: Vec<_> = items.into_iter().collect();
        let positions =
            items.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        Self { items, positions }
    }
}

/// Copies the types of one component, within a budget.
pub(super) struct TypeReader {
    /// The budget of the functions that are kept.
    bytes_left: usize,
    read_left: usize,
}

/// Why a function is not callable, as the end of "it …".
pub(super) type Unsupported = &'static str;

impl TypeReader {
    pub(super) fn new() -> Self {
        Self { bytes_left: TYPES_BYTES, read_left: READ_BYTES }
    }

    /// Copies a type.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] for a type without JSON form, and if the budget is exceeded.
    pub(super) fn read(&mut self, ty: &Type) -> Result<WitType, Unsupported> {
        self.read_within(ty, TYPE_DEPTH)
    }

    /// Reads the types of one function. The budget is unchanged if one is not supported.
    pub(super) fn function<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unsupported>,
    ) -> Result<T, Unsupported> {
        let before = self.bytes_left;
        let function = read(self);
        if function.is_err() {
            self.bytes_left = before;
        }
        function
    }

    /// Takes the bytes of a name from the budget.
    pub(super) fn take_name(&mut self, name: &str) -> Result<String, Unsupported> {
        self.take(name.len())?;
        Ok(name.to_owned())
    }

    fn take(&mut self, bytes: usize) -> Result<(), Unsupported> {
        let too_large = "has types of more than 256 KiB";
        self.read_left = self.read_left.checked_sub(bytes).ok_or(too_large)?;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(too_large)?;
        Ok(())
    }

    fn read_within(&mut self, ty: &Type, depth: usize) -> Result<WitType, Unsupported> {
        let depth = depth.checked_sub(1).ok_or("has types that are nested more than 24 levels")?;
        self.take(NODE_BYTES)?;
        Ok(match ty {
            Type::Bool => WitType::Bool,
            Type::S8 => WitType::Integer(IntegerType::S8),
            Type::U8 => WitType::Integer(IntegerType::U8),
            Type::S16 => WitType::Integer(IntegerType::S16),
            Type::U16 => WitType::Integer(IntegerType::U16),
            Type::S32 => WitType::Integer(IntegerType::S32),
            Type::U32 => WitType::Integer(IntegerType::U32),
            Type::S64 => WitType::Integer(IntegerType::S64),
            Type::U64 => WitType::Integer(IntegerType::U64),
            Type::Float32 => WitType::Float32,
            Type::Float64 => WitType::Float64,
            Type::Char => WitType::Char,
            Type::String => WitType::String,
            Type::List(list) => WitType::List(Box::new(self.read_within(&list.ty(), depth)?)),
            Type::Record(record) => {
                let field = |field: wasmtime::component::types::Field<'_>| {
                    Ok((self.take_name(field.name)?, self.read_within(&field.ty, depth)?))
                };
                WitType::Record(record.fields().map(field).collect::<Result<_, Unsupported>>()?)
            }
            Type::Tuple(tuple) => {
                let types = tuple.types().map(|ty| self.read_within(&ty, depth));
                WitType::Tuple(types.collect::<Result<_, Unsupported>>()?)
            }
            Type::Variant(variant) => {
                let case = |case: wasmtime::component::types::Case<'_>| {
                    let payload = case.ty.map(|ty| self.read_within(&ty, depth)).transpose()?;
                    Ok((self.take_name(case.name)?, payload))
                };
                WitType::Variant(variant.cases().map(case).collect::<Result<_, Unsupported>>()?)
            }
            Type::Enum(cases) => WitType::Enum(self.names(cases.names())?),
            Type::Option(option) => {
                WitType::Option(Box::new(self.read_within(&option.ty(), depth)?))
            }
            Type::Result(result) => {
                let mut payload = |ty: Option<Type>| {
                    ty.map(|ty| self.read_within(&ty, depth).map(Box::new)).transpose()
                };
                WitType::Result { ok: payload(result.ok())?, err: payload(result.err())? }
            }
            Type::Flags(flags) => WitType::Flags(self.names(flags.names())?),
            Type::Own(_) | Type::Borrow(_) => return Err("uses a resource"),
            Type::Future(_) => return Err("uses a future"),
            Type::Stream(_) => return Err("uses a stream"),
            Type::ErrorContext => return Err("uses an error context"),
            Type::Map(_) => return Err("uses a map"),
            Type::FixedLengthList(_) => return Err("uses a list of fixed length"),
        })
    }

    fn names<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Named<()>, Unsupported> {
        names.map(|name| Ok((self.take_name(name)?, ()))).collect()
    }
}
