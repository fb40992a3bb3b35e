//! The precedence of the layers.

use kitbag_base::ByteSize;
use kitbag_config::{Disabled, load_lenient};
use kitbag_contract::{Limits, ToolName};

use crate::support::Fixture;

#[test]
fn lenient_loading_returns_the_valid_part_and_the_mistakes() {
    let fixture = Fixture::new(
        "[limits]\ntime = \"soon\"\nmemory = \"1MiB\"\n[tools.a]\nsource = \"local\"\n\
         [tools.b]\nsource = \"local\"\nwasm = \"b.wasm\"\n\
         grants.filesystem = [{ host = \".git\", guest = \"/a\", mode = \"rw\" }]\n",
    )
    .directory("w/.git");
    let (config, errors) = load_lenient(&fixture.sources());
    let config = config.unwrap();
    assert_eq!(errors.unwrap().diagnostics().len(), 3);
    assert_eq!(config.limits.limits(), Limits { memory: ByteSize::mib(1), ..Limits::default() });
    let names: Vec<_> = config.tools.keys().map(ToolName::as_str).collect();
    assert_eq!(names, ["a", "b", "learn", "notes"]);
    assert!(matches!(config.tools["a"].disabled, Some(Disabled::Broken { .. })));
    assert_eq!(config.tools["b"].grants.value.directories, []);

    let (config, errors) = load_lenient(&Fixture::new("[").sources());
    assert!(config.is_some() && errors.is_some());
    let (config, errors) = load_lenient(&Fixture::new("").sources());
    assert!(config.is_some() && errors.is_none());
}
