//! The tools inside this binary, as `build.rs` made them.

use kitbag_host::EmbeddedArtifact;
#[allow(unused_imports, reason = "a build may hold no tool of files")]
use kitbag_policy::Access;
use kitbag_toolbox::Builtin;

/// Bytes that start at a page boundary, so that their text can be made
/// executable where it lies.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
// Elsewhere a page may have up to 64 KiB, which is how wasmtime aligns text.
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Aligned<T: ?Sized>(T);

/// Declares the components, each with its native code, its packed bytes and its tools, and makes
/// the table of all their tools. No description is read before it is asked for.
macro_rules! builtins {
    ($($component:ident: $native:literal, $packed:literal, [
        $($tool:ident: $description:literal, $workspace:ident, $keeps:literal, [$($guest:literal),*],
            [$($required:literal),*], $calls:literal),*
    ];)*) => {
        $(mod $component {
            use super::*;

            static NATIVE: &Aligned<[u8]> = &Aligned(*include_bytes!($native));
            // SAFETY: `build.rs` of this very build wrote the native code with
            // `precompile` and `pack_native` from this component, and `Aligned` puts it on
            // a page boundary.
            pub(super) static ARTIFACT: EmbeddedArtifact = unsafe {
                EmbeddedArtifact::new(stringify!($component), &NATIVE.0, include_bytes!($packed))
            };
        })*

        /// The tools that are part of this binary, by component.
        pub(crate) static BUILTINS: &[Builtin] = &[$($(Builtin {
            name: stringify!($tool),
            toolset: stringify!($component),
            artifact: $component::ARTIFACT,
            description: $description,
            workspace: builtins!(@ $workspace),
            keeps: $keeps,
            given_by_call: &[$($guest),*],
            required: &[$($required),*],
            calls: $calls,
        },)*)*];
    };
    (@ none) => { None };
    (@ ro) => { Some(Access::ReadOnly) };
    (@ rw) => { Some(Access::ReadWrite) };
}

#[expect(unsafe_code, reason = "vouching for the artifacts that this build embedded")]
mod generated {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
}

pub(crate) use generated::BUILTINS;
