//! Grants of several files: only the strongest file that has a kind takes effect, and the grants of
//! a workspace take effect within the ceiling or the user's own grants.

use kitbag_policy::http::HttpRequest;
use kitbag_policy::{Request, VariableName, VariableRequest, decide};
use proptest::prelude::*;

use crate::support::Fixture;

/// Patterns, some of them nested.
const PATTERNS: [&str; 6] = [
    "\"https://a.example.com\"",
    "\"https://a.example.com/x/**\"",
    "\"https://a.example.com/x/y\"",
    "{ url = \"https://a.example.com/x/**\", methods = [\"POST\"] }",
    "{ url = \"https://a.example.com\", methods = \"*\" }",
    "\"https://*.example.com\"",
];

const VARIABLES: [&str; 3] = ["A", "B", "C"];

/// Generates the content of a file: some entries of a list, or no list.
fn entries(most: usize) -> impl Strategy<Value = Option<Vec<usize>>> {
    let list = prop::collection::btree_set(0..most, 0..4);
    prop::option::of(list.prop_map(|list| list.into_iter().collect()))
}

fn list(key: &str, entries: &Option<Vec<usize>>, text: impl Fn(usize) -> String) -> String {
    let texts = |entries: &Vec<usize>| entries.iter().map(|at| text(*at)).collect::<Vec<_>>();
    entries
        .as_ref()
        .map_or(String::new(), |entries| format!("{key} = [{}]\n", texts(entries).join(", ")))
}

/// Returns the decision on each request that distinguishes the patterns, and on each variable.
fn allowed(own: &Lists, ceiling: &Lists, workspace: &Lists) -> Vec<bool> {
    let text = |(http, env): &Lists| {
        list("http", http, |at| PATTERNS[at].to_owned())
            + &list("env", env, |at| format!("\"{}\"", VARIABLES[at]))
    };
    // A kind that the ceiling does not list is not limited.
    let (http, env) = ceiling.clone();
    let ceiling = (Some(http.unwrap_or_default()), Some(env.unwrap_or_default()));
    let user = format!("[tools.learn.grants]\n{}[ceiling.grants]\n{}", text(own), text(&ceiling));
    let workspace = format!("[tools.learn.grants]\n{}", text(workspace));
    let config = Fixture::new(&workspace).user(&user).load();
    let grants = &config.tools["learn"].grants.value;
    let urls = ["a.example.com/", "a.example.com/x/y", "a.example.com/x/z", "b.example.com/"];
    let http = urls.iter().flat_map(|url| ["GET", "POST", "PUT"].map(|method| (method, url)));
    let http = http.map(|(method, url)| {
        Request::Http(HttpRequest::new(method, &format!("https://{url}")).unwrap())
    });
    let env = VARIABLES
        .map(|name| Request::Variable(VariableRequest { name: VariableName::new(name).unwrap() }));
    let is_allowed = |request: Request| {
        matches!(decide(grants, &request), kitbag_policy::Decision::Allowed { .. })
    };
    http.chain(env).map(is_allowed).collect()
}

/// The lists of `http` and `env` of a file.
type Lists = (Option<Vec<usize>>, Option<Vec<usize>>);

fn lists() -> impl Strategy<Value = Lists> {
    (entries(PATTERNS.len()), entries(VARIABLES.len()))
}

/// Returns the same lists with one entry fewer.
fn fewer(lists: &Lists) -> Vec<Lists> {
    let without = |list: &Option<Vec<usize>>| {
        let list = list.clone().unwrap_or_default();
        let fewer = |at: usize| {
            let mut fewer = list.clone();
            fewer.remove(at);
            Some(fewer)
        };
        (0..list.len()).map(fewer).collect::<Vec<_>>()
    };
    let http = without(&lists.0).into_iter().map(|http| (http, lists.1.clone()));
    let env = without(&lists.1).into_iter().map(|env| (lists.0.clone(), env));
    http.chain(env).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn fewer_grants_never_allow_more(
        own in lists(),
        ceiling in lists(),
        workspace in lists(),
    ) {
        let none = (None, None);
        let found = allowed(&own, &ceiling, &workspace);
        // At most the user's own grants and the ceiling together.
        let most = allowed(&own, &none, &none);
        let ceiling_as_own = allowed(&ceiling, &none, &none);
        for (at, found) in found.iter().enumerate() {
            prop_assert!(!found || most[at] || ceiling_as_own[at]);
        }
        let holds = |fewer: Vec<bool>| fewer.iter().zip(&found).all(|(fewer, found)| *found || !fewer);
        for own in fewer(&own) {
            prop_assert!(holds(allowed(&own, &ceiling, &workspace)), "{own:?}");
        }
        for ceiling in fewer(&ceiling) {
            prop_assert!(holds(allowed(&own, &ceiling, &workspace)), "{ceiling:?}");
        }
        for workspace in fewer(&workspace) {
            prop_assert!(holds(allowed(&own, &ceiling, &workspace)), "{workspace:?}");
        }
    }
}
