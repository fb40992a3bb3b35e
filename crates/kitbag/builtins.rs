//! The tools inside this binary, as `build.rs` made them.

use std::sync::LazyLock;

use kitbag_host::EmbeddedArtifact;
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
        $($tool:ident: $description:literal, $grants:literal),*
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
        pub(crate) static BUILTINS: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
            vec![$($(Builtin::new(
                stringify!($tool),
                stringify!($component),
                $component::ARTIFACT,
                $description,
                $grants,
            ),)*)*]
        });
    };
}

#[expect(unsafe_code, reason = "vouching for the artifacts that this build embedded")]
mod generated {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
}

pub(crate) use generated::BUILTINS;
