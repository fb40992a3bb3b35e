//! The tools inside this binary, as `build.rs` made them.

use kitbag_host::EmbeddedArtifact;
use kitbag_toolbox::Builtin;

/// Bytes that start at a page boundary, so that their text can be made
/// executable where it lies.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
// Elsewhere a page may have up to 64 KiB, which is how wasmtime aligns text.
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Aligned<T: ?Sized>(T);

macro_rules! builtin {
    ($name:literal, $plain:literal, $metered:literal, $description:literal) => {{
        static PLAIN: &Aligned<[u8]> = &Aligned(*include_bytes!($plain));
        static METERED: &Aligned<[u8]> = &Aligned(*include_bytes!($metered));
        Builtin {
            name: $name,
            // SAFETY: `build.rs` of this very build wrote the files with
            // `Host::precompile`, and `Aligned` puts them on a page boundary.
            artifact: unsafe { EmbeddedArtifact::new($name, &PLAIN.0, &METERED.0) },
            description: $description,
        }
    }};
}

#[expect(unsafe_code, reason = "vouching for the artifacts that this build embedded")]
mod generated {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
}

pub(crate) use generated::BUILTINS;
