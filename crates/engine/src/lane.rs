//! Lanes: the binary interfaces through which a tool is called.
//!
//! A lane is recognised by the names of imports and exports alone, so that the inspection of a file
//! and the host, which has only the compiled component, come to the same result.

use serde::Serialize;

/// A binary interface through which a host calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// kitbag's own contract: the function `run` of `wit/tool.wit`.
    Run,
    /// Exported functions: each is a tool.
    Functions,
    /// A command of WASI: `wasi:cli/run`, or `_start` of a module for preview 1.
    Command,
    /// The interface `near:agent/tool`.
    Agent,
    /// A core module with `memory`, `alloc`, `dealloc` and an entry point.
    Core,
    /// A core module that imports the functions of `extism:host/env`.
    Plugin,
    /// The interface `act:tools/tool-provider`.
    Act,
    /// A core module that imports the functions of `blufio`.
    Skill,
}

/// The kind of an exported item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// A function.
    Function,
    /// An instance.
    Instance {
        /// True if the instance exports at least one function.
        has_functions: bool,
    },
    /// Any other item.
    Other,
}

/// The exported instance of a module that was translated to a component, by lane. A component in a
/// file must not have it.
pub(crate) const TRANSLATED: &str = "kitbag:lane/";

/// The exported instance of a translated core module.
pub const CORE_INSTANCE: &str = "kitbag:lane/core";

/// The exported instance of a translated plugin.
pub const PLUGIN_INSTANCE: &str = "kitbag:lane/plugin";

/// The exported instance of a translated skill.
pub const SKILL_INSTANCE: &str = "kitbag:lane/skill";

/// The module of the functions of Blufio.
pub const BLUFIO: &str = "blufio";

/// The module of the functions of WASI preview 1.
pub const PREVIEW_1: &str = "wasi_snapshot_preview1";

/// The lanes that this kitbag runs.
const OFFERED: &[Lane] = &[
    Lane::Run,
    Lane::Functions,
    Lane::Command,
    Lane::Agent,
    Lane::Core,
    Lane::Plugin,
    Lane::Skill,
    Lane::Act,
];

impl Lane {
    /// Recognises the lane of a component. `is_tool` is true if it exports `run` of the contract.
    pub fn of_component<'a>(
        is_tool: bool,
        imports: impl IntoIterator<Item = &'a str>,
        exports: impl IntoIterator<Item = (&'a str, ExportKind)>,
    ) -> Option<Self> {
        if is_tool {
            return Some(Self::Run);
        }
        let exports: Vec<_> = exports.into_iter().collect();
        let has = |name: &str| exports.iter().any(|(export, _)| is_interface(export, name));
        let mut imports = imports.into_iter();
        if has(CORE_INSTANCE) {
            return Some(Self::Core);
        }
        if has(PLUGIN_INSTANCE) {
            return Some(Self::Plugin);
        }
        if has(SKILL_INSTANCE) {
            return Some(Self::Skill);
        }
        if imports.any(|import| import.starts_with("kitbag:tool/")) {
            return None;
        }
        if has("near:agent/tool") {
            return Some(Self::Agent);
        }
        if exports.iter().any(|(export, _)| is_act(export)) {
            return Some(Self::Act);
        }
        // The toolchain of Rust adds `wasi:cli/run@0.2` to servers for WASI 0.3.
        let is_server = has("wasi:http/handler");
        let is_entry = |export: &str| match is_server {
            true => export == "wasi:cli/run@0.3.0",
            false => is_command(export),
        };
        if exports.iter().any(|(export, _)| is_entry(export)) {
            return Some(Self::Command);
        }
        let is_function = |(name, kind): &(&str, ExportKind)| match kind {
            ExportKind::Function => !is_of_toolchain(name),
            ExportKind::Instance { has_functions } => *has_functions && !is_of_host(name),
            ExportKind::Other => false,
        };
        exports.iter().any(is_function).then_some(Self::Functions)
    }

    /// Recognises the lane of a core module. `imports` are the names of the modules that it imports
    /// from, and `functions` the names of its exported functions.
    pub fn of_module<'a>(
        imports: impl IntoIterator<Item = &'a str>,
        functions: impl IntoIterator<Item = &'a str>,
        has_memory: bool,
    ) -> Option<Self> {
        let imports: Vec<_> = imports.into_iter().collect();
        let functions: Vec<_> = functions.into_iter().collect();
        if imports.iter().any(|import| import.starts_with("extism:host/")) {
            return Some(Self::Plugin);
        }
        if functions.contains(&"_start") && imports.iter().all(|import| *import == PREVIEW_1) {
            return Some(Self::Command);
        }
        if imports.contains(&BLUFIO) {
            return Some(Self::Skill);
        }
        let is_core = has_memory && ["alloc", "dealloc"].iter().all(|it| functions.contains(it));
        is_core.then_some(Self::Core)
    }

    /// Returns true if this kitbag runs tools of the lane.
    pub fn is_offered(self) -> bool {
        OFFERED.contains(&self)
    }

    /// Returns true if the tool was made for another host. It then has no grants by default.
    pub fn is_foreign(self) -> bool {
        self != Self::Run
    }

    /// Returns the name of the lane, as in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Functions => "functions",
            Self::Command => "command",
            Self::Agent => "agent",
            Self::Core => "core",
            Self::Plugin => "plugin",
            Self::Act => "act",
            Self::Skill => "skill",
        }
    }

    /// Returns the kind of the tool in words for a person, such as `a tool for IronClaw`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Run => "a tool for kitbag",
            Self::Functions => "a library of functions, as for Wassette",
            Self::Command => "a command, as for `wasmtime run`",
            Self::Agent => "a tool for IronClaw",
            Self::Core => "a core module, as for Butterfly Bot",
            Self::Plugin => "a plugin for Extism",
            Self::Act => "a tool for ACT",
            Self::Skill => "a skill for Blufio",
        }
    }
}

/// Returns true if an export is the entry point of a command, in a version that kitbag calls.
pub fn is_command(export: &str) -> bool {
    let version = export.strip_prefix("wasi:cli/run@");
    version.is_some_and(|version| version.starts_with("0.2.") || version == "0.3.0")
}

/// Returns true if an export is the interface of a tool for ACT, in a version that kitbag calls.
pub fn is_act(export: &str) -> bool {
    let version = export.strip_prefix("act:tools/tool-provider@");
    version.is_some_and(|version| version.starts_with("0.1.") || version.starts_with("0.2."))
}

/// Returns true if an export is this interface, in any version.
fn is_interface(export: &str, name: &str) -> bool {
    export.split('@').next() == Some(name)
}

/// Packages of exported instances that a host or a language toolchain calls.
const HOOKS: [&str; 4] = ["wasi:", "kitbag:", "golem:api/", "componentize-js:"];

/// Instances and functions of the world with which language toolchains initialise a component.
const INITIALISERS: [&str; 4] = ["exports", "init", "initialize", "cabi-initialize"];

/// Returns true for an exported instance of a host or a toolchain, whose functions are not tools.
pub fn is_hook(instance: &str) -> bool {
    HOOKS.iter().any(|hook| instance.starts_with(hook)) || INITIALISERS.contains(&instance)
}

/// Returns true for a function with which a language toolchain initialises a component. `is_bare` is
/// true if it has no parameters and no result.
pub fn is_initialiser(name: &str, is_bare: bool) -> bool {
    name.starts_with("cabi") || is_bare && INITIALISERS.contains(&name)
}

/// Returns true for the functions that the toolchains of languages export.
fn is_of_toolchain(name: &str) -> bool {
    name.starts_with("cabi_") || name.starts_with('_')
}

/// Returns true for instances that a host defines, which are not tools.
fn is_of_host(name: &str) -> bool {
    ["wasi:", "kitbag:", "act:", "near:agent/"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: ExportKind = ExportKind::Instance { has_functions: true };
    const TYPES: ExportKind = ExportKind::Instance { has_functions: false };

    #[test]
    fn components_are_recognised_by_their_names() {
        let check = |imports: &[&str], exports: &[(&str, ExportKind)], expected: Option<Lane>| {
            let found = Lane::of_component(false, imports.iter().copied(), exports.iter().copied());
            assert_eq!(found, expected, "{imports:?} {exports:?}");
        };
        let function = |name: &'static str| (name, ExportKind::Function);
        check(&[], &[], None);
        check(&[], &[("wasi:cli/run@0.2.3", FUNCTIONS)], Some(Lane::Command));
        check(&[], &[("wasi:cli/run@0.3.0", FUNCTIONS)], Some(Lane::Command));
        check(&[], &[("wasi:cli/run@0.3.1", FUNCTIONS)], None);
        let server = ("wasi:http/handler@0.3.0", FUNCTIONS);
        check(&[], &[("wasi:cli/run@0.2.0", FUNCTIONS), server], None);
        check(&[], &[("wasi:cli/run@0.3.0", FUNCTIONS), server], Some(Lane::Command));
        check(&[], &[("near:agent/tool@0.4.1", FUNCTIONS)], Some(Lane::Agent));
        check(&[], &[function("run")], Some(Lane::Functions));
        check(&["kitbag:tool/host@0.1.0"], &[function("run")], None);
        check(&["wasi:io/poll@0.2.6"], &[function("read-file")], Some(Lane::Functions));
        check(&[], &[("local:context7/context7@0.1.0", FUNCTIONS)], Some(Lane::Functions));
        check(&[], &[("local:context7/types", TYPES)], None);
        check(&[], &[function("cabi_realloc"), function("_initialize")], None);
        check(&[], &[("wasi:http/incoming-handler@0.2.3", FUNCTIONS)], None);
        check(&[], &[("act:tools/tool-provider@0.1.0", FUNCTIONS)], Some(Lane::Act));
        check(&[], &[("act:tools/tool-provider@0.2.1", FUNCTIONS)], Some(Lane::Act));
        check(&[], &[("act:tools/tool-provider@0.3.0", FUNCTIONS)], None);
        check(&[], &[("near:agent/channel@0.3.0", FUNCTIONS)], None);
        check(&[], &[(CORE_INSTANCE, FUNCTIONS)], Some(Lane::Core));
        check(&[], &[(SKILL_INSTANCE, FUNCTIONS)], Some(Lane::Skill));
        assert_eq!(Lane::of_component(true, [], [function("run")]), Some(Lane::Run));
    }

    #[test]
    fn modules_are_recognised_by_their_names() {
        let check = |imports: &[&str], functions: &[&str], expected: Option<Lane>| {
            let found = Lane::of_module(imports.iter().copied(), functions.iter().copied(), true);
            assert_eq!(found, expected, "{imports:?} {functions:?}");
        };
        check(&[], &[], None);
        check(&[PREVIEW_1], &["_start"], Some(Lane::Command));
        check(&[], &["_start"], Some(Lane::Command));
        check(&["wasi_unstable"], &["_start"], None);
        check(&[PREVIEW_1, "env"], &["_start"], None);
        check(&["extism:host/env", PREVIEW_1], &["_start", "call"], Some(Lane::Plugin));
        check(&[BLUFIO, PREVIEW_1], &["run"], Some(Lane::Skill));
        check(&[BLUFIO, "env"], &["_start", "run"], Some(Lane::Skill));
        check(&[], &["run"], None);
        check(&["env"], &["allocate", "handle"], None);
        check(&[], &["alloc", "dealloc", "execute"], Some(Lane::Core));
        check(&[], &["alloc", "execute"], None);
    }
}
