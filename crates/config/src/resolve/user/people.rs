//! `[serve.tokens]`: the people who may use a server over HTTP, from the user config.
//!
//! A person with a mistake in their table is omitted: a token whose restrictions cannot be read is
//! not accepted.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use kitbag_base::shell;
use kitbag_base::text::{nearest, shown};
use kitbag_contract::ToolName;
use kitbag_glob::Glob;

use crate::config::{ConfiguredTool, Person, PersonName};
use crate::format::TokenConfig;
use crate::format::span::{At, Part};
use crate::read::file::Layer;
use crate::report::text::{did_you_mean, not_a_glob, user_only};
use crate::report::{Diagnostic, Excerpt, Piece, Problem, Report};
use crate::resolve::context::{ConfigFiles, tables};

/// Returns the people of the user config. A pattern that matches no tool is added to `unmatched`,
/// since the file also applies to other workspaces and builds.
pub(crate) fn people(
    configs: &ConfigFiles<'_>,
    user_file: Option<&Path>,
    tools: &BTreeMap<ToolName, ConfiguredTool>,
    unmatched: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> BTreeMap<PersonName, Person> {
    let mut people = BTreeMap::<PersonName, Person>::new();
    let mut owners: HashMap<[u8; 32], &str> = HashMap::new();
    for (file, table) in tables(configs, |config| config.serve.as_ref()?.tokens.as_ref()) {
        for Part { key, at } in table.parts(file) {
            if file.layer() != Layer::User {
                report.at(key, user_only("serve.tokens", user_file));
                continue;
            }
            let before = report.enter(Piece::Person(key.value.to_owned()));
            let name = PersonName::new(key.value).map_err(|error| report.at(key, error)).ok();
            let person = person(key, at, tools, unmatched, report);
            if let Some((name, person)) = name.zip(person) {
                match owners.insert(person.sha256, key.value) {
                    None => drop(people.insert(name, person)),
                    Some(other) => {
                        people.remove(other);
                        let problem = format!(
                            "`{}` has the token of `{}`, so it is accepted for neither; run \
                             `kitbag token add --replace` for both",
                            shown(key.value),
                            shown(other)
                        );
                        report.at(key, problem);
                    }
                }
            }
            report.enter(before);
        }
    }
    for found in report.found() {
        if let Piece::Person(name) = &found.scope.piece {
            people.remove(name.as_str());
        }
    }
    people
}

fn person(
    key: At<'_, str>,
    at: At<'_, TokenConfig>,
    tools: &BTreeMap<ToolName, ConfiguredTool>,
    unmatched: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Option<Person> {
    let Some(written) = at.inner(|token| token.sha256.as_ref()) else {
        let command = shell::command(["kitbag", "token", "add", key.value, "--replace"]);
        let problem = format!("`{}` has no `sha256`; run `{command}`", shown(key.value));
        report.at(key, problem);
        return None;
    };
    let Some(sha256) = digest(written.value) else {
        report.at(written, "`sha256` must have 64 hexadecimal digits; run `kitbag token add`");
        return None;
    };
    let mut globs = Vec::new();
    let tools = at.inner(|token| token.tools.as_ref()).map(|patterns| {
        for text in patterns.value {
            let at = text.at(patterns.file);
            let glob = match Glob::new(&text.value) {
                Ok(glob) => glob,
                Err(reason) => {
                    report.at(at, not_a_glob(&text.value, reason));
                    continue;
                }
            };
            if !tools.keys().any(|name| glob.matches(name.as_str())) {
                let names = tools.keys().map(|name| name.as_str());
                let hint = did_you_mean(nearest(&text.value, names));
                let problem = format!("`{}` matches no tool", shown(&text.value));
                let excerpt = Excerpt::new(at.file.text(), at.span);
                unmatched.push(Problem::from(problem).hint(hint).at(at.origin()).quoting(excerpt));
            }
            globs.push(glob);
        }
        patterns.sourced(patterns.value.iter().map(|text| text.value.clone()).collect())
    });
    Some(Person { origin: at.origin(), sha256, tools, globs })
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut digest = [0; 32];
    for (at, byte) in digest.iter_mut().enumerate().filter(|_| is_hex) {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    is_hex.then_some(digest)
}
