//! The tools inside this binary, as `build.rs` made them.

use kitbag_host::EmbeddedArtifact;
use kitbag_toolbox::Builtin;

/// Bytes that start at a page boundary, so that their text can be made
/// executable where it lies.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
// Elsewhere a page may have up to 64 KiB, which is how wasmtime aligns text.
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Aligned<T: ?Sized>(T);

/// Declares the components, each with its native code, its bytes, its description and its
/// tools, and makes the table of all tools of them.
macro_rules! builtins {
    ($($component:ident: $native:literal, $wasm:literal, $description:literal, [
        $($tool:ident: $grants:literal),*
    ];)*) => {
        $(mod $component {
            use super::Aligned;

            static NATIVE: &Aligned<[u8]> = &Aligned(*include_bytes!($native));
            pub(super) static COMPONENT: &[u8] = include_bytes!($wasm);
            pub(super) static DESCRIPTION: &str = $description;
            pub(super) static CODE: &[u8] = &NATIVE.0;
        })*

        /// The tools that are part of this binary, by name.
        pub(crate) static BUILTINS: &[Builtin] = &[$($(Builtin {
            name: stringify!($tool),
            toolset: stringify!($component),
            // SAFETY: `build.rs` of this very build wrote the native code with
            // `Host::precompile` from this component, and `Aligned` puts it on a page
            // boundary.
            artifact: unsafe {
                EmbeddedArtifact::new(stringify!($component), $component::CODE, $component::COMPONENT)
            },
            description: $component::DESCRIPTION,
            grants: $grants,
        },)*)*];
    };
}

#[expect(unsafe_code, reason = "vouching for the artifacts that this build embedded")]
mod generated {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
}

pub(crate) use generated::BUILTINS;
