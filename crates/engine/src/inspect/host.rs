//! The types of the contract's own import, `host`, as WIT with all types written
//! out and without the names of parameters.
//!
//! A component that has other types under this name could not be linked; here
//! that is found before it is compiled.

use kitbag_contract::VERSION;
use wasmparser::component_types::{ComponentEntityType, ComponentInstanceTypeId};
use wasmparser::types::TypesRef;

use super::wit;
use crate::load_error::InvalidComponent;

/// The interface of the contract that a tool may import.
const NAME: &str = "kitbag:tool/host";

/// Whether an import is the interface in the version that this build speaks.
pub(super) fn is_reports(import: &str) -> bool {
    import.split_once('@') == Some((NAME, VERSION))
}

/// A record of the contract that two of its variants hold.
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

/// Finds a function that a component imports under this name and that is not
/// there, or has another type. It need not import all of them.
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
