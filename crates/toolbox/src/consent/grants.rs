//! Grants as items of a request for consent.

use std::path::Path;

use kitbag_base::text::shown;
use kitbag_config::Network;
use kitbag_fs_guard::{ProtectedNames, SecretNames};
use kitbag_policy::consent::{GrantText, Surroundings};
use kitbag_policy::{Grants, KINDS, Request};

use super::{RequestItem, Requester};

/// Returns the surroundings by which the grants of a workspace are classified. `root` and `home` are
/// canonical.
pub fn surroundings<'a>(
    root: &'a Path,
    home: Option<&'a Path>,
    network: &Network,
) -> Surroundings<'a> {
    Surroundings {
        root,
        home,
        proxy_resolves: network.proxy_resolves(),
        holds_secrets,
        holds_programs,
    }
}

fn holds_secrets(directory: &Path) -> bool {
    SecretNames::default().are_entered_by(directory)
}

fn holds_programs(root: &Path, directory: &str) -> bool {
    let names = ProtectedNames::default();
    names.are_on(root, directory) || directory.split('/').any(|name| names.are_in(name))
}

/// Returns an item for each grant of a tool.
pub fn grant_items(tool: &str, grants: &Grants, around: &Surroundings<'_>) -> Vec<RequestItem> {
    KINDS.iter().flat_map(|kind| kind_items(tool, grants, kind.key, around)).collect()
}

/// Returns an item for each grant of one kind, by its key.
pub fn kind_items(
    tool: &str,
    grants: &Grants,
    key: &str,
    around: &Surroundings<'_>,
) -> Vec<RequestItem> {
    let item = |GrantText { line, ability, risks }| RequestItem {
        abilities: ability.into_iter().collect(),
        risks,
        ..RequestItem::new(Requester::Tool(tool.to_owned()), format!("tool `{tool}` {line}"))
    };
    let kind = grants.kinds().into_iter().filter(|kind| kind.key() == key);
    kind.flat_map(|kind| kind.texts(around)).map(item).collect()
}

/// Returns the item for a request of a component.
pub fn request_item(tool: &str, request: &Request, network: &Network) -> RequestItem {
    let (ability, risks) = request.consent(network.proxy_resolves());
    let line = request.to_string();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("tool `{tool}` requests {}", shown(&line));
    let item = RequestItem::new(Requester::Tool(tool.to_owned()), line);
    RequestItem { abilities: ability.into_iter().collect(), risks, ..item }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kitbag_policy::consent::Risk;
    use kitbag_policy::{Access, DirectoryGrant, Kind};

    use super::*;

    #[test]
    fn directories_are_classified() {
        use Risk::{
            HomeDirectory, ReadsOutside, RunFiles, SecretFiles, WholeFileSystem, WritesOutside,
        };
        let check = |host: &str, change: &dyn Fn(&mut DirectoryGrant), expected: &[Risk]| {
            let mut grant = DirectoryGrant {
                host: PathBuf::from(host),
                guest: "/data".parse().unwrap(),
                access: Access::ReadOnly,
                include: Vec::new(),
                protected: None,
                identity: None,
            };
            change(&mut grant);
            let (root, home) = (Path::new("/home/ada/work"), Path::new("/home/ada"));
            let around =
                Surroundings { home: Some(home), ..surroundings(root, None, &Network::default()) };
            let [text] = &vec![grant].texts(&around)[..] else { panic!("one grant has one text") };
            assert_eq!(text.risks, expected, "{host}");
        };
        let read = |_: &mut DirectoryGrant| {};
        let write = |grant: &mut DirectoryGrant| grant.access = Access::ReadWrite;
        check("/home/ada/work", &read, &[]);
        check("/home/ada/work/data", &write, &[]);
        check("$TEMP", &write, &[]);
        check("/", &read, &[WholeFileSystem]);
        check("/", &write, &[WholeFileSystem, WritesOutside]);
        check("/home/ada", &read, &[HomeDirectory]);
        check("/home", &write, &[HomeDirectory, WritesOutside]);
        check("/home/ada/.ssh", &read, &[SecretFiles, ReadsOutside]);
        check("/home/ada/work/.aws", &read, &[SecretFiles]);
        check("/home/ada/work/.git", &read, &[SecretFiles]);
        check("/home/ada/work/.github/workflows", &read, &[]);
        check("/home/ada/work/.github/workflows", &write, &[RunFiles]);
        check("/home/ada/work/.claude", &write, &[RunFiles]);
        check("/home/ada/work/.vscode", &write, &[RunFiles]);
        check("/home/ada/work2", &write, &[WritesOutside]);
        check("/etc", &read, &[ReadsOutside]);
        check("/home/ada/work", &|grant| grant.include = vec![".env".into()], &[SecretFiles]);
        let unprotected = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            move |grant: &mut DirectoryGrant| {
                grant.access = Access::ReadWrite;
                grant.protected = Some(names.clone());
            }
        };
        check("/home/ada/work", &unprotected(&[]), &[RunFiles]);
        check("/home/ada/work", &unprotected(&["AGENTS.md"]), &[RunFiles]);
        check("/home/ada/work", &unprotected(&["default"]), &[]);
        check("/home/ada/work", &unprotected(&["default", "!.newrc"]), &[RunFiles]);
    }
}
