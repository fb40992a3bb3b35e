//! The types of the contract's interface `host`, as WIT with all types expanded and without
//! parameter names.
//!
//! A component with other types under this name could not be linked; this check finds it before
//! compilation.

use kitbag_contract::VERSION;
use wasmparser::component_types::{ComponentEntityType, ComponentInstanceTypeId};
use wasmparser::types::TypesRef;

use super::wit;
use crate::load_error::InvalidComponent;

/// The interface of the contract that a tool may import.
const NAME: &str = "kitbag:tool/host";

/// Returns true if an import is the interface in the version of this build.
pub(super) fn is_reports(import: &str) -> bool {
    import.split_once('@') == Some((NAME, VERSION))
}

/// A record of the contract that is part of two variants.
macro_rules! media {
    () => {
        "record { data: list<u8>, mime-type: string }"
    };
}

/// The functions of the interface.
const FUNCTIONS: [(&str, &str); 3] = [
    (
        "log",
        "func(enum { debug, info, notice, warning, error, critical, alert, emergency }, string)",
    ),
    ("progress", "func(f64, option<f64>, option<string>)"),
    (
        "emit",
        concat!(
            "func(variant { image(",
            media!(),
            "), audio(",
            media!(),
            "), resource(record { uri: string, mime-type: option<string>, ",
            "body: variant { text(string), blob(list<u8>) } }), ",
            "link(record { uri: string, name: string, title: option<string>, ",
            "description: option<string>, mime-type: option<string>, size: option<u64> }) }) ",
            "-> result<_, string>",
        ),
    ),
];

/// Returns the first function that a component imports under this name and that does not exist or
/// has another type. A component need not import all functions.
pub(super) fn mismatch(
    import: &str,
    types: TypesRef<'_>,
    id: ComponentInstanceTypeId,
) -> Option<InvalidComponent> {
    types[id].exports.iter().find_map(|(name, item)| {
        let ComponentEntityType::Func(id) = item.ty else { return None };
        let found = wit::function(types, id, false);
        let known = FUNCTIONS.iter().find(|(known, _)| *known == name.as_str());
        let expected = known.map_or("nothing", |(_, expected)| expected);
        (found != expected).then(|| InvalidComponent::ImportType {
            import: import.to_owned(),
            function: name.to_string(),
            found,
            expected,
        })
    })
}
