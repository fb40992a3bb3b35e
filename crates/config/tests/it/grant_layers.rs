//! The one rule of what several files grant a tool: the strongest that has a kind counts
//! alone, and what a workspace writes counts within the ceiling or the user's own grants.

use kitbag_policy::http::HttpRequest;
use kitbag_policy::{Kind, Request, VariableName, VariableRequest, decide};
use proptest::prelude::*;

use crate::support::Fixture;

/// What `learn` is granted of all kinds, and then what there is to warn of.
fn granted(workspace: &str, user: &str) -> Vec<String> {
    let variables: [(&str, &[u8]); 2] = [("LANG", b"C"), ("CI", b"1")];
    let fixture = Fixture::new(workspace).user(user).variables(variables);
    let fixture = fixture.directory("w/docs").directory("w/src");
    let config = fixture.load();
    let grants = &config.tools["learn"].grants;
    let lines = grants.value.kinds().into_iter().flat_map(Kind::lines);
    let warnings = grants.warnings.iter().map(|it| format!("{}: {}", it.place, it.message));
    lines.chain(warnings).map(|line| fixture.redact(&line)).collect()
}

const SECRETS: &str = "[secrets.github]\nto = [\"https://api.github.com/**\"]\n\
                       [secrets.mail]\nto = [\"https://mail.example.com/**\"]\n";

/// What the user grants, and a workspace's file, by kind.
#[track_caller]
fn check(kind: &str, user: &str, workspace: &str, expected: &[&str]) {
    let table = |grants: &str| match grants {
        "" => String::new(),
        grants => format!("[tools.learn.grants]\n{kind} = {grants}\n"),
    };
    let found = granted(&table(workspace), &format!("{SECRETS}{}", table(user)));
    assert_eq!(found, expected, "{kind}: {user}, {workspace}\n{}", found.join("\n"));
}

#[test]
fn of_several_files_the_strongest_that_has_a_kind_counts_alone() {
    let a = "https://a.example.com/**";
    let user = format!("[\"{a}\", \"https://b.example.com/**\"]");
    let own = [&*format!("GET, HEAD  {a}"), "GET, HEAD  https://b.example.com/**"];
    check("http", &user, "", &own);
    check("http", &user, "[]", &[]);
    check("http", &user, &format!("[\"{a}\"]"), &own[..1]);
    check("env", "[\"LANG\", \"CI\"]", "", &["env LANG", "env CI"]);
    check("env", "[\"LANG\", \"CI\"]", "[]", &[]);
    check("env", "[\"LANG\", \"CI\"]", "[\"CI\"]", &["env CI"]);
    let github = "secret github → https://api.github.com/**, as bearer";
    let mail = "secret mail → https://mail.example.com/**, as bearer";
    check("secrets", "{ github = {}, mail = {} }", "", &[github, mail]);
    check("secrets", "{ github = {}, mail = {} }", "{}", &[]);
    check("secrets", "{ github = {}, mail = {} }", "{ mail = {} }", &[mail]);
    let directory = |name: &str| format!("{{ host = \"/t/w/{name}\", guest = \"/{name}\" }}");
    let (docs, src) = (directory("docs"), directory("src"));
    // Directories are those of a temporary directory, which differs.
    let directories = |user: &str, workspace: &str| {
        let fixture = Fixture::empty().directory("w/docs").directory("w/src");
        let root = fixture.path("").to_str().unwrap().trim_end_matches('/').to_owned();
        let table = |list: &str| {
            format!(
                "[tools.learn.grants]\nfilesystem = {}\n",
                list.replace("/t/", &format!("{root}/"))
            )
        };
        let (user, workspace) = (table(user), table(workspace));
        let fixture = fixture.user(&user).file("w/.kitbag/config.toml", workspace);
        let lines = fixture.load().tools["learn"].grants.value.directories.lines();
        lines.iter().map(|line| fixture.redact(line)).collect::<Vec<_>>()
    };
    let both = format!("[{docs}, {src}]");
    assert_eq!(directories(&both, "[]"), [""; 0]);
    assert_eq!(directories(&both, &format!("[{src}]")), ["ro  /src ← /t/w/src"]);
}

#[test]
fn a_workspace_narrows_the_users_own_grants_without_a_ceiling() {
    check(
        "http",
        "[{ url = \"https://a.example.com\", methods = [\"GET\", \"POST\"], follow = 2 }]",
        "[\"https://a.example.com/x/**\", { url = \"https://a.example.com/y\", methods = [\"POST\"] }]",
        &["GET, HEAD  https://a.example.com/x/**", "POST  https://a.example.com/y"],
    );
    check(
        "secrets",
        "{ github = { to = [\"https://api.github.com/repos/**\"] } }",
        "{ github = { to = [\"https://api.github.com/repos/a/**\"] } }",
        &["secret github → https://api.github.com/repos/a/**, as bearer"],
    );
    let placeholder = "[{ name = \"TOKEN\", secret = \"github\" }]";
    let expected = "secret github → https://api.github.com/**, env TOKEN";
    check("env", placeholder, placeholder, &[expected]);
}

#[test]
fn what_a_workspace_does_not_get_says_what_it_takes_the_place_of() {
    let beyond = |place: &str, setting: &str| {
        let column = if setting.starts_with("secrets") { 11 } else { 7 };
        let column = if setting.starts_with("http") { 8 } else { column };
        format!(
            ".kitbag/config.toml:{place}: this grant does not count: what the files and components \
             of a workspace are granted counts only within `[ceiling.grants]` of your own file \
             (/t/h/config.toml:8:{column}); to allow it, have `[ceiling.grants]` in your user config \
             `/t/h/config.toml` include `{setting}`"
        )
    };
    let bounded = |kind: &str, user: &str, workspace: &str, expected: &[&str]| {
        let user = format!("{user}\n[ceiling.grants]\n{kind} = []");
        check(kind, &user, workspace, expected);
    };
    let instead = |place: &str, kind: &str| {
        format!(
            ".kitbag/config.toml:{place}: `{kind}` of the workspace takes the place of what your own \
             file grants the tool (/t/h/config.toml:{}), and not all of it counts; without it your \
             own grants count here",
            if kind == "secrets" {
                "6:11"
            } else if kind == "env" {
                "6:7"
            } else {
                "6:8"
            }
        )
    };
    bounded(
        "http",
        "[\"https://a.example.com\"]",
        "[\"https://b.example.com\"]",
        &[&beyond("2:9", "http = [\"https://b.example.com/**\"]"), &instead("2:8", "http")],
    );
    bounded(
        "http",
        "[\"https://a.example.com\"]",
        "[{ url = \"https://a.example.com\", methods = \"*\" }, \"https://a.example.com/x\"]",
        &[
            "GET, HEAD  https://a.example.com/x",
            &beyond("2:9", "http = [{ url = \"https://a.example.com/**\", methods = \"*\" }]"),
            &instead("2:8", "http"),
        ],
    );
    bounded(
        "env",
        "[\"LANG\"]",
        "[\"CI\"]",
        &[&beyond("2:8", "env = [\"CI\"]"), &instead("2:7", "env")],
    );
    bounded(
        "secrets",
        "{ github = { to = [\"https://api.github.com/repos/**\"] } }",
        "{ github = {} }",
        &[&beyond("2:13", "secrets = [\"github\"]"), &instead("2:11", "secrets")],
    );
    // A file without grants of its own is not spoken of.
    let found = granted(
        "[tools.learn.grants]\nenv = [\"CI\"]\n",
        &format!("{SECRETS}# one\n# two\n[ceiling.grants]\nenv = []\n"),
    );
    assert_eq!(found, [beyond("2:8", "env = [\"CI\"]")]);
}

#[test]
fn a_placeholder_goes_no_further_where_a_workspace_leaves_its_secret_out() {
    let user = format!(
        "{SECRETS}[tools.learn.grants]\n\
         secrets = {{ github = {{ to = [\"https://api.github.com/repos/**\"] }} }}\n\
         env = [{{ name = \"TOKEN\", secret = \"github\" }}]\n"
    );
    let found = granted("[tools.learn.grants]\nsecrets = {}\n", &user);
    assert_eq!(found, ["secret github → https://api.github.com/repos/**, env TOKEN"]);
}

/// Patterns that lie in each other, and some that do not.
const PATTERNS: [&str; 6] = [
    "\"https://a.example.com\"",
    "\"https://a.example.com/x/**\"",
    "\"https://a.example.com/x/y\"",
    "{ url = \"https://a.example.com/x/**\", methods = [\"POST\"] }",
    "{ url = \"https://a.example.com\", methods = \"*\" }",
    "\"https://*.example.com\"",
];

const VARIABLES: [&str; 3] = ["A", "B", "C"];

/// What a file has: some entries of a list, or no list.
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

/// What is allowed of every request that tells the patterns apart, and of every variable.
fn allowed(own: &Lists, ceiling: &Lists, workspace: &Lists) -> Vec<bool> {
    let text = |(http, env): &Lists| {
        list("http", http, |at| PATTERNS[at].to_owned())
            + &list("env", env, |at| format!("\"{}\"", VARIABLES[at]))
    };
    // A kind that the ceiling does not name is not limited.
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

/// The same lists with one entry fewer.
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
    fn a_workspace_widens_nothing_and_fewer_grants_never_allow_more(
        own in lists(),
        ceiling in lists(),
        workspace in lists(),
    ) {
        let none = (None, None);
        let found = allowed(&own, &ceiling, &workspace);
        // No more than the user's own grants and the ceiling allow together.
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
