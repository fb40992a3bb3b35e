//! The refused paths in a granted directory.

use std::fs;

use kitbag_config::{Sourced, Sources, load};
use kitbag_policy::{Access, GuestPath, PathRequest};

use crate::support::Fixture;

#[test]
fn refusals_in_granted_directories_name_the_path() {
    let tool = "source = \"local\"\nwasm = \"bin/t.wasm\"\n";
    let fixture = Fixture::new(&format!(
        "[tools.t]\n{tool}grants.filesystem = [{{ host = \"..\", guest = \"/all\", mode = \"rw\" }}]\n\
         [tools.u]\n{tool}grants.filesystem = [{{ host = \"..\", guest = \"/all\", include = [\"w/.env\", \"s/**\"] }}]\n",
    ))
    .file("w/bin/t.wasm", "")
    .file("w/a.txt", "")
    .file("w/.env", "")
    .file("w/.git/config", "")
    .file("w/.git/HEAD", "")
    .file("s/secrets.age", "")
    .file("h/secrets.key", "")
    .user("");
    fs::hard_link(fixture.path("s/secrets.age"), fixture.path("w/copy")).unwrap();
    let fixture = fixture.link("w/link", "../s/secrets.age");
    let state = Some(Sourced::default(fixture.path("s")));
    let config = load(&Sources { state, ..fixture.sources() }).unwrap();
    let check = |tool: &str, path: &str, access: Access, expected: Option<&str>| {
        let guest = GuestPath::new(path).unwrap();
        let refusal = config.path_refusal(&config.tools[tool], &PathRequest { guest, access });
        let refusal = refusal.map(|refusal| fixture.redact(&refusal.to_string()));
        assert_eq!(refusal.as_deref(), expected, "{tool} {path} {access}");
    };
    let (read, write) = (Access::ReadOnly, Access::ReadWrite);
    let state = Some("no tool may read `/t/s`, where kitbag keeps secrets");
    let secret = Some(
        "`/all/w/.env` looks like a secret; a tool may use it only if its grant includes \
              it",
    );
    for tool in ["t", "u"] {
        check(tool, "/all/w/a.txt", read, None);
        check(tool, "/all/w/.git/HEAD", read, None);
        check(tool, "/all/s/secrets.age", read, state);
        check(tool, "/all/s", read, state);
        check(tool, "/all/w/link", read, state);
        let copy = "no tool may read `/t/w/copy`, where kitbag keeps secrets";
        check(tool, "/all/w/copy", read, Some(copy));
        let key = "no tool may read `/t/h/secrets.key`, where kitbag keeps secrets";
        check(tool, "/all/h/secrets.key", read, Some(key));
    }
    check("t", "/all/w/.env", read, secret);
    let config = "`/all/w/.git/config` looks like a secret; a tool may use it only if its grant \
                  includes it";
    check("t", "/all/w/.git/config", read, Some(config));
    check("u", "/all/w/.env", read, None);
    check("t", "/all/w/a.txt", write, None);
    check("t", "/all/w/new", write, None);
    check("t", "/all/s/new", write, state);
    check("t", "/all/w/.git/HEAD", write, Some("no tool may change `/t/w/.git`"));
    check("t", "/all/w/.kitbag/x", write, Some("no tool may change `/t/w/.kitbag`"));
    check("t", "/all/w/bin/t.wasm", write, Some("no tool may change `/t/w/bin/t.wasm`"));
    check("t", "/all/h/config.toml", write, Some("no tool may change `/t/h/config.toml`"));
    // No grant covers these paths.
    check("t", "/other", read, None);
    check("u", "/all/s/new", write, None);
}
