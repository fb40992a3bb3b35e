//! The sessions in `docs/trust.md` are real.

use std::fs;

use crate::support::{Run, Workspace, repository};

/// The commands of the page, each with its output.
fn blocks(page: &str) -> Vec<String> {
    let blocks = page.split("```console\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The content of a file that the page shows under its name.
fn file(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("<!-- {name} -->\n```")).unwrap();
    let (_, content) = rest.split_once('\n').unwrap();
    content.split("```").next().unwrap().to_owned()
}

#[test]
fn the_page_on_trust_is_real() {
    let workspace = Workspace::with_toolsets(&["python", "fetch"]).untrusted();
    workspace.own_config("[secrets.weather]\nto = [\"https://api.weather.example/**\"]\n");
    fs::create_dir(workspace.home().join("notes")).unwrap();
    let page = fs::read_to_string(repository().join("docs/trust.md")).unwrap();
    let blocks = blocks(&page);
    let [called, asked, listed, changed] = &*blocks else { panic!("{blocks:?}") };
    for name in [".kitbag/config.toml", ".kitbag/scripts/report.py"] {
        workspace.file(name, file(&page, name));
    }
    let shown = |run: Run| {
        let text = format!("{}{}", run.stdout, run.stderr);
        text.replace("<workspace>", "/home/ada/src/weather").replace("<home>", "/home/ada")
    };
    let run = shown(workspace.run(&["run", "report", "city=Rome"]));
    assert_eq!(format!("$ kitbag run report city=Rome\n{run}"), *called);
    let trusted = shown(workspace.run(&["trust", "--yes"]));
    let typed = "Trust this? [y]es / [n]o: y\n";
    assert_eq!(format!("$ kitbag trust\n{trusted}"), asked.replace(typed, ""));
    let config = workspace.path(".kitbag/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("weather = {}", "weather = {}, github = {}")).unwrap();
    let again = workspace.run(&["trust"]);
    assert_eq!(
        format!("$ kitbag trust\n{}", shown(Run { stderr: String::new(), ..again })),
        *changed
    );
    let list = shown(workspace.run(&["trust", "--list"]));
    assert!(list.starts_with("/home/ada/src/weather  2 files, content "), "{list}");
    assert!(listed.contains("/home/ada/src/weather  2 files, content "));
    let revoked = shown(workspace.run(&["trust", "--revoke"]));
    assert!(listed.contains(&revoked), "{revoked}");
}
