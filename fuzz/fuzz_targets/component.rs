#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code)]
mod targets;

use arbitrary::Unstructured;

// Tries the bytes unchanged, and as the seed of a valid component.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    targets::component(data);
    let config = wasm_smith::Config { max_instructions: 200, ..Default::default() };
    if let Ok(made) = wasm_smith::Component::new(config, &mut Unstructured::new(data)) {
        targets::component(&made.to_bytes());
    }
});
