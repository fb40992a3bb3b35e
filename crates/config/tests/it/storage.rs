//! What tools may keep between their calls.

use kitbag_base::ByteSize;
use kitbag_config::{CallGrants, Config, ConfiguredTool, load};
use kitbag_policy::{Decision, Kind, Request, StorageGrant, StorageRequest, decide};

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

/// A workspace's file and the user's own, with these values of `storage` for a tool.
fn fixture(workspace: &str, user: &str, ceiling: &str) -> Fixture {
    let table = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("[{name}]\nstorage = {value}\n"),
    };
    let own = table("ceiling.grants", ceiling) + &table("tools.learn.grants", user);
    Fixture::new(&table("tools.learn.grants", workspace)).user(&own)
}

/// What a tool may keep, and what there is to warn of.
fn granted(tool: &ConfiguredTool) -> (String, Vec<String>) {
    let lines = tool.grants.value.storage.lines().join(", ");
    (lines, tool.grants.warnings.iter().map(|it| format!("{}: {}", it.place, it.message)).collect())
}

const DEFAULT: &str = "storage 16 MiB, 10000 keys";

#[test]
fn storage_has_a_size() {
    let check = |value: &str, expected: &str| {
        let fixture = Fixture::new("").user(&format!("tools.learn.grants.storage = {value}\n"));
        assert_eq!(granted(&fixture.load().tools["learn"]), (expected.to_owned(), vec![]));
    };
    check("true", DEFAULT);
    check("{}", DEFAULT);
    check("false", "");
    check("{ quota = \"1GiB\" }", "storage 1 GiB, 10000 keys");
    check("{ keys = 1_000_000 }", "storage 16 MiB, 1000000 keys");
    check("{ quota = \"1KiB\", keys = 3 }", "storage 1 KiB, 3 keys");
    let tool = |config: Config| granted(&config.tools["learn"]).0;
    assert_eq!(tool(Fixture::empty().load()), "", "nothing by default");
}

#[test]
fn what_is_no_size_is_named() {
    let check = |value: &str, expected: &[&str]| {
        check_problems(&format!("[tools.learn.grants]\nstorage = {value}\n"), expected);
    };
    check(
        "\"16MiB\"",
        &["C:2:11: `tools.learn.grants.storage` takes `true`, `false` or a table, not the string \
           `16MiB`"],
    );
    check(
        "{ quota = 16, keys = 0 }",
        &[
            "C:2:21: `tools.learn.grants.storage.quota` takes a string, not the integer `16`",
            "C:2:32: `tools.learn.grants.storage.keys` takes a positive integer, not the integer \
             `0`",
        ],
    );
    check(
        "{ quota = \"16\" }",
        &["C:2:21: `16` is not a size; write a number and a unit, such as `64MiB`"],
    );
    check("{ quota = \"2TiB\" }", &["C:2:21: `2048 GiB` exceeds 1024 GiB, the largest quota"]);
    check(
        "{ keys = 10_000_000_000 }",
        &["C:2:20: `10000000000` keys: the number must be from 1 to 1000000000"],
    );
    check(
        "{ quotas = \"16MiB\" }",
        &["C:2:13: unknown key `quotas` in `tools.learn.grants.storage`; did you mean `quota`?"],
    );
    let fixture = Fixture::new("").user("[ceiling.grants]\nstorage = { quota = \"x\" }\n");
    let expected =
        "/t/h/config.toml:2:21: `x` is not a size; write a number and a unit, such as `64MiB`";
    check_problems_of(&fixture, &[expected]);
}

#[test]
fn a_workspace_grants_the_default_and_only_the_users_own_file_more() {
    let check = |workspace: &str, user: &str, ceiling: &str, expected: &str, setting: &str| {
        let fixture = fixture(workspace, user, ceiling);
        let (lines, warnings) = granted(&fixture.load().tools["learn"]);
        assert_eq!(lines, expected, "{workspace}, {user}, {ceiling}");
        let is_named = warnings
            .first()
            .is_some_and(|warning| warning.contains(&format!("include `{setting}`")));
        assert_eq!(is_named, !setting.is_empty(), "{warnings:?}");
    };
    let large = "{ quota = \"1GiB\" }";
    let small = "{ quota = \"1MiB\" }";
    let shown_large = "storage 1 GiB, 10000 keys";
    let shown_small = "storage 1 MiB, 10000 keys";
    check("true", "", "", DEFAULT, "");
    check(small, "", "", shown_small, "");
    check(large, "", "", shown_large, "");
    check(large, "", "true", "", "storage = { quota = \"1 GiB\" }");
    check("{ keys = 10_001 }", "", "true", "", "storage = { keys = 10001 }");
    check(large, "", large, shown_large, "");
    check(small, "", large, shown_small, "");
    // A lower ceiling binds what would be the default, too.
    check("true", "", small, "", "storage = true");
    check(small, "", "false", "", "storage = { quota = \"1 MiB\" }");
    // What the user grants the tool counts as well, and its own file is bound by nothing.
    check("", large, small, shown_large, "");
    check(large, large, small, shown_large, "");
    check(small, large, "false", shown_small, "");
    check("false", large, "", "", "");
    check("{ quota = \"2GiB\" }", large, "true", "", "storage = { quota = \"2 GiB\" }");
}

#[test]
fn a_workspaces_component_keeps_no_more_than_the_ceiling_whoever_writes_it() {
    let fixture = Fixture::empty()
        .file("w/.kitbag/tools/count.wasm", "")
        .user("[tools.count.grants]\nstorage = { quota = \"1GiB\" }\n");
    let config = fixture.load();
    let (lines, warnings) = granted(&config.tools["count"]);
    assert_eq!((&*lines, warnings.len()), ("", 1), "{warnings:?}");
    let fixture = fixture.file(
        "w/.kitbag/tools/count.toml",
        "[grants]\nstorage = { quota = \"16MiB\", keys = 5 }\n",
    );
    let fixture = fixture.user("");
    assert_eq!(granted(&fixture.load().tools["count"]).0, "storage 16 MiB, 5 keys");
}

#[test]
fn a_call_is_granted_storage_within_the_ceiling() {
    let check = |grant: &str, ceiling: &str, expected: Result<&str, &str>| {
        let fixture = fixture("", "", ceiling);
        let mut sources = fixture.sources();
        let call = CallGrants { tool: "learn".into(), grants: vec![grant.to_owned()] };
        sources.call_grants = Some(call);
        let found = load(&sources);
        let found = found.map(|config| granted(&config.tools["learn"]).0);
        let found = found.map_err(|errors| fixture.redact(&errors.to_string()));
        let is_expected = match (&found, expected) {
            (Ok(found), Ok(expected)) => found == expected,
            (Err(found), Err(expected)) => found.contains(expected),
            _ => false,
        };
        assert!(is_expected, "{grant}: {found:?}");
    };
    check("storage", "", Ok(DEFAULT));
    check("storage=true", "", Ok(DEFAULT));
    check("storage=1MiB", "", Ok("storage 1 MiB, 10000 keys"));
    check("storage=1GiB", "", Ok("storage 1 GiB, 10000 keys"));
    check("storage={ quota = \"1KiB\", keys = 2 }", "", Ok("storage 1 KiB, 2 keys"));
    check("storage={ keys = 2_000_000_000 }", "", Err("the number must be from 1 to 1000000000"));
    check("storage=16", "", Err("`16` is not a size"));
    check("storage={ quota", "", Err("syntax error"));
    check("storage=1MiB", "{ quota = \"1MiB\" }", Ok("storage 1 MiB, 10000 keys"));
    check("storage", "{ quota = \"1MiB\" }", Err("storage = true"));
    check("storage", "false", Err("storage = true"));
    check("storages", "", Err("did you mean `storage`?"));
}

#[test]
fn every_flag_that_is_printed_grants_what_was_denied() {
    let check = |wanted: StorageGrant, expected: &str| {
        let fixture = Fixture::empty();
        let config = fixture.load();
        let request = Request::Storage(StorageRequest(wanted));
        let decision = decide(&config.tools["learn"].grants.value, &request);
        let Decision::Denied { missing: Some(missing), .. } = decision else { panic!("allowed") };
        let flag = config.grant_flag(&missing).unwrap();
        assert_eq!(flag, expected);
        let word = flag.strip_prefix("--grant ").unwrap().trim_matches('\'');
        let mut sources = fixture.sources();
        sources.call_grants =
            Some(CallGrants { tool: "learn".into(), grants: vec![word.to_owned()] });
        let config = load(&sources).unwrap();
        let decision = decide(&config.tools["learn"].grants.value, &request);
        assert!(matches!(decision, Decision::Allowed { .. }), "{decision:?}");
    };
    check(StorageGrant::default(), "--grant storage");
    let quota = Some(ByteSize::mib(32));
    let wanted = |keys| StorageGrant::new(quota, keys).unwrap();
    check(wanted(None), "--grant 'storage={ quota = \"32 MiB\" }'");
    check(wanted(Some(7)), "--grant 'storage={ quota = \"32 MiB\", keys = 7 }'");
}

#[test]
fn what_is_granted_has_a_row() {
    let fixture = fixture("{ keys = 7 }", "", "{ quota = \"1GiB\" }");
    check_rows(
        &fixture,
        "tools.learn.grants",
        &[r#"tools.learn.grants.storage = {"quota":"16 MiB","keys":7} # .kitbag/config.toml:2:11"#],
    );
    check_rows(
        &fixture,
        "ceiling.grants",
        &[r#"ceiling.grants.storage = {"quota":"1 GiB","keys":10000} # /t/h/config.toml:2:11"#],
    );
    check_rows(&Fixture::empty(), "ceiling.grants", &[]);
}
