//! The configurations on the pages about grants are valid, and the examples of the cookbook have
//! the documented outcomes.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use kitbag_config::{BuiltinTool, Config, Diagnostic, DiagnosticKind, load};
use kitbag_policy::ToolRequest;
use kitbag_policy::http::HttpRequest;

use crate::support::Fixture;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs").join(name)).unwrap()
}

/// Returns the fenced blocks of a text, each with its language.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// Loads a block as the user config. The tools that it configures exist, unless it defines their
/// source.
fn configuration(block: &str) -> Config {
    let lines = block.lines().filter_map(|line| line.strip_prefix("[tools."));
    let mut names: Vec<_> = lines.filter_map(|rest| rest.split(['.', ']']).next()).collect();
    names.dedup();
    names.retain(|_| !block.contains("source = "));
    let builtins: Vec<BuiltinTool<'_>> = names.into_iter().map(BuiltinTool::from).collect();
    let fixture = Fixture::new("").directory("h/notes");
    let fixture = fixture.file("h/corp-ca.pem", include_str!("network/authority.pem")).user(block);
    let mut sources = fixture.sources();
    sources.builtins = &builtins;
    load(&sources).unwrap_or_else(|errors| panic!("{block}\n{errors}"))
}

#[test]
fn every_configuration_of_the_page_is_accepted() {
    const PAGES: [&str; 5] =
        ["grants.md", "grants-cookbook.md", "grants-files.md", "grants-http.md", "secrets.md"];
    let page: String = PAGES.map(page).concat();
    let configurations: Vec<_> =
        blocks(&page).into_iter().filter(|(language, _)| *language == "toml").collect();
    assert!(configurations.len() >= 10, "{}", configurations.len());
    for (_, block) in configurations {
        let config = configuration(block);
        for tool in config.tools.values() {
            assert_eq!(
                tool.grants.warnings.iter().filter(|it| !is_elsewhere(it)).count(),
                0,
                "{block}"
            );
        }
    }
}

/// Returns whether a warning concerns an unset variable, as all are unset here, or a tool that the
/// page does not configure.
fn is_elsewhere(warning: &Diagnostic) -> bool {
    matches!(warning.kind, DiagnosticKind::Grant("env" | "tools"))
}

#[test]
fn the_cookbook_has_the_documented_outcomes() {
    let page = page("grants-cookbook.md");
    let blocks = blocks(&page);
    assert_eq!(blocks.len(), 10);
    for pair in blocks.chunks(2) {
        let [("toml", block), ("text", said)] = pair else { panic!("{pair:?}") };
        let config = configuration(block);
        let [tool] = &*config.tools.values().collect::<Vec<_>>() else { panic!("{block}") };
        let decided = |request: &str, address: Option<&str>| -> Result<(), &'static str> {
            let grants = &tool.grants.value;
            let (method, url) = request.split_once(' ').unwrap();
            if method == "tool" {
                let (alias, arguments) = url.split_once(' ').unwrap();
                let arguments = &serde_json::from_str(arguments).unwrap();
                let allowed = grants.tools.decide(&ToolRequest { alias, arguments });
                return allowed.map(drop).map_err(|refusal| refusal.kind());
            }
            let address: Option<IpAddr> = address.map(|address| address.parse().unwrap());
            let allowed = HttpRequest::new(method, url).and_then(|request| {
                let mut allowed = grants.http.decide(&request)?;
                address.map_or(Ok(()), |address| allowed.addresses(&[address]))
            });
            allowed.map_err(|refusal| refusal.kind.as_str())
        };
        for line in said.lines() {
            let (request, address) = match line.split_once(" at ") {
                Some((request, address)) => (request, Some(address)),
                None => (line, None),
            };
            let (expected, request) = request.split_at(18);
            let found = match decided(request, address) {
                Ok(()) => "allowed".to_owned(),
                Err(kind) => format!("denied ({kind})"),
            };
            assert_eq!(found, expected.trim_end(), "{line}");
        }
    }
}
