//! The manifest of a component, in its section `act:component`.

use super::cbor;

/// Maximum size of the manifest, in CBOR and as JSON.
const BYTES: usize = 256 << 10;

/// Returns the manifest in the section `act:component`, which is CBOR, as JSON.
///
/// # Errors
///
/// The reason why the section cannot be used.
pub fn act_manifest(section: &[u8]) -> Result<String, String> {
    if section.len() > BYTES {
        return Err(format!("it has more than {} KiB", BYTES >> 10));
    }
    cbor::to_json(section, BYTES).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_become_json() {
        let manifest = b"\xbf\x63std\xa2\x64name\x64time\x67version\x650.2.0\xff";
        let expected = r#"{"std":{"name":"time","version":"0.2.0"}}"#;
        assert_eq!(act_manifest(manifest).as_deref(), Ok(expected));
    }

    #[test]
    fn unusable_manifests_have_a_reason() {
        assert_eq!(act_manifest(&[0x60; (256 << 10) + 1]), Err("it has more than 256 KiB".into()));
        let deep = act_manifest(&[0x81; 1000]).unwrap_err();
        assert_eq!(deep, "its values are nested more than 64 deep");
    }
}
