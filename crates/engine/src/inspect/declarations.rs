//! Counts a component's declarations before they are processed.
//!
//! A type takes a validator and an engine hundreds of bytes, and each module instance takes the
//! host memory for its declared globals and functions, in addition to the linear memory that the
//! call is granted. Neither is proportional to the file size: a megabyte of globals, instantiated
//! as often as possible, took 800 MiB per call.

use std::ops::Range;

use kitbag_base::ByteSize;
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentTypeRef, ElementItems, Encoding, Instance,
    Parser, Payload,
};

use crate::inspect::malformed::malformed;
use crate::limits::INSTANCES;
use crate::load_error::InvalidComponent;

/// Types of all modules and components. A component from Python has 1,216.
const TYPES: u64 = 20_000;

/// Bytes of all types. A component from Python has 16,984.
const TYPE_BYTES: ByteSize = ByteSize::mib(2);

/// Functions of all modules. A component from Python has 13,353.
const FUNCTIONS: u64 = 1_000_000;

/// All other declarations: imports, exports, globals, tables, memories, segments, modules,
/// instances, aliases and so on. A component from Python has 10,851.
const ITEMS: u64 = 200_000;

/// Bytes of everything except code, data and custom sections. A component from Python has 295,071.
const DECLARED_BYTES: ByteSize = ByteSize::mib(8);

/// The memory that the instances of one call take the host, in addition to linear memory and
/// tables. Those of a component from Python or JavaScript take about 550,000 bytes.
pub const INSTANCE_BYTES: ByteSize = ByteSize::mib(4);

/// The bytes that are copied to memories and tables for each instantiation of the component.
const INITIAL_BYTES: ByteSize = ByteSize::mib(256);

/// Refuses a component with more declarations than compilers generate.
pub(super) fn check(bytes: &[u8]) -> Result<(), InvalidComponent> {
    let (mut declared, mut instances) = (Declared::default(), Instances::default());
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(malformed)?;
        declared.add(&payload);
        declared.check()?;
        instances.add(&payload).map_err(malformed)?;
    }
    instances.check()
}

/// The declarations that were counted.
#[derive(Debug, Default)]
struct Declared {
    types: u64,
    type_bytes: u64,
    functions: u64,
    items: u64,
    bytes: u64,
}

impl Declared {
    fn add(&mut self, payload: &Payload<'_>) {
        let (mut types, mut items) = (0, 0);
        match payload {
            Payload::TypeSection(section) => types = section.count(),
            Payload::CoreTypeSection(section) => types = section.count(),
            Payload::ComponentTypeSection(section) => types = section.count(),
            Payload::FunctionSection(section) => self.functions += u64::from(section.count()),
            Payload::Version { .. } => items = 1,
            Payload::ImportSection(section) => items = section.count(),
            Payload::GlobalSection(section) => items = section.count(),
            Payload::ExportSection(section) => items = section.count(),
            Payload::TableSection(section) => items = section.count(),
            Payload::MemorySection(section) => items = section.count(),
            Payload::TagSection(section) => items = section.count(),
            Payload::ElementSection(section) => items = section.count(),
            Payload::DataSection(section) => items = section.count(),
            Payload::InstanceSection(section) => items = section.count(),
            Payload::ComponentInstanceSection(section) => items = section.count(),
            Payload::ComponentAliasSection(section) => items = section.count(),
            Payload::ComponentCanonicalSection(section) => items = section.count(),
            Payload::ComponentImportSection(section) => items = section.count(),
            Payload::ComponentExportSection(section) => items = section.count(),
            _ => {}
        }
        self.types += u64::from(types);
        self.items += u64::from(items);
        let is_counted_elsewhere = matches!(
            payload,
            Payload::CodeSectionStart { .. }
                | Payload::DataSection(_)
                | Payload::CustomSection(_)
                | Payload::ModuleSection { .. }
                | Payload::ComponentSection { .. }
        );
        let bytes = payload.as_section().map_or(0, |(_, range)| length(&range));
        if types > 0 {
            self.type_bytes += bytes;
        }
        if !is_counted_elsewhere {
            self.bytes += bytes;
        }
    }

    fn check(&self) -> Result<(), InvalidComponent> {
        let counts = [
            ("types", self.types, TYPES),
            ("functions", self.functions, FUNCTIONS),
            ("imports, exports, globals and similar items", self.items, ITEMS),
            ("bytes of types", self.type_bytes, TYPE_BYTES.as_u64()),
            ("bytes of declarations", self.bytes, DECLARED_BYTES.as_u64()),
        ];
        match counts.into_iter().find(|(_, count, limit)| count > limit) {
            Some((what, _, limit)) => Err(InvalidComponent::ManyDeclarations { what, limit }),
            None => Ok(()),
        }
    }
}

/// The declarations of core modules, and the number of their instances.
#[derive(Debug, Default)]
struct Instances {
    /// The current module.
    module: Option<Module>,
    /// The number of enclosing components.
    depth: usize,
    modules: Vec<Module>,
    /// The modules that the outermost component can instantiate, by their index in it: the position
    /// in `modules`, if known.
    known: Vec<Option<usize>>,
    /// The modules that the outermost component instantiates.
    instantiated: Vec<Option<usize>>,
    /// Functions of the host and of components that are lowered for modules.
    lowered: u64,
    /// True if a nested component instantiates modules: it may itself be instantiated any number of
    /// times.
    is_nested: bool,
}

/// The declarations of one core module.
#[derive(Clone, Copy, Debug, Default)]
struct Module {
    functions: u64,
    imports: u64,
    globals: u64,
    exports: u64,
    elements: u64,
    segments: u64,
    data_bytes: u64,
}

impl Module {
    /// Returns the approximate memory of an instance, by the layout of wasmtime 48 (`VMOffsets`):
    /// 16 bytes for a global, at most 32 for an import, 32 for a referenced function, 16 for an
    /// element of a segment.
    fn instance_bytes(self) -> u64 {
        let referred =
            (self.functions + self.imports).min(self.exports + self.elements + self.globals);
        (1 << 10)
            + 16 * (self.globals + self.elements + self.segments)
            + 32 * (self.imports + referred)
    }

    /// Returns the bytes that are copied for an instantiation.
    fn initial_bytes(self) -> u64 {
        self.data_bytes + 16 * self.elements
    }
}

impl Instances {
    fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match (payload, &mut self.module) {
            (Payload::Version { encoding: Encoding::Module, .. }, module) => {
                *module = Some(Module::default());
            }
            (Payload::Version { encoding: Encoding::Component, .. }, _) => self.depth += 1,
            (Payload::End(_), module) => match module.take() {
                Some(module) => {
                    match self.depth {
                        // A core module: a call has one instance of it.
                        0 => self.instantiated.push(Some(self.modules.len())),
                        1 => self.known.push(Some(self.modules.len())),
                        _ => {}
                    }
                    self.modules.push(module);
                }
                None => self.depth = self.depth.saturating_sub(1),
            },
            (payload, Some(module)) => module.add(payload)?,
            (Payload::InstanceSection(section), None) => {
                for instance in section.clone() {
                    let Instance::Instantiate { module_index, .. } = instance? else { continue };
                    self.is_nested |= self.depth > 1;
                    let known = self.known.get(module_index as usize);
                    self.instantiated.push(known.copied().flatten());
                }
            }
            (Payload::ComponentAliasSection(section), None) if self.depth == 1 => {
                const MODULE: ComponentExternalKind = ComponentExternalKind::Module;
                for alias in section.clone() {
                    if let ComponentAlias::InstanceExport { kind: MODULE, .. } = alias? {
                        self.known.push(None);
                    }
                }
            }
            (Payload::ComponentImportSection(section), None) if self.depth == 1 => {
                for import in section.clone() {
                    if let ComponentTypeRef::Module(_) = import?.ty {
                        self.known.push(None);
                    }
                }
            }
            (Payload::ComponentCanonicalSection(section), None) => {
                self.lowered += u64::from(section.count());
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), InvalidComponent> {
        let all = |of: fn(Module) -> u64| {
            let largest = self.modules.iter().map(|module| of(*module)).max().unwrap_or(0);
            let each = |place: &Option<usize>| match place {
                Some(place) => of(self.modules[*place]),
                None => largest,
            };
            match self.is_nested {
                // As many instances of the largest module as a call may have.
                true => largest.saturating_mul(INSTANCES as u64),
                false => self.instantiated.iter().map(each).sum(),
            }
        };
        let instances = all(Module::instance_bytes).saturating_add(64 * self.lowered);
        let sizes = [
            ("need host memory of", instances, INSTANCE_BYTES),
            ("are initialized with", all(Module::initial_bytes), INITIAL_BYTES),
        ];
        match sizes.into_iter().find(|(_, size, limit)| *size > limit.as_u64()) {
            Some((what, size, limit)) => {
                let size = ByteSize::mib(size.div_ceil(1 << 20));
                Err(InvalidComponent::LargeInstances { what, size, limit })
            }
            None => Ok(()),
        }
    }
}

impl Module {
    fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::FunctionSection(section) => self.functions += u64::from(section.count()),
            Payload::ImportSection(section) => self.imports += u64::from(section.count()),
            Payload::GlobalSection(section) => self.globals += u64::from(section.count()),
            Payload::ExportSection(section) => self.exports += u64::from(section.count()),
            Payload::ElementSection(section) => {
                self.segments += u64::from(section.count());
                for element in section.clone() {
                    self.elements += u64::from(match element?.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    });
                }
            }
            Payload::DataSection(section) => {
                self.segments += u64::from(section.count());
                self.data_bytes += length(&section.range());
            }
            _ => {}
        }
        Ok(())
    }
}

fn length(range: &Range<usize>) -> u64 {
    (range.end - range.start) as u64
}
