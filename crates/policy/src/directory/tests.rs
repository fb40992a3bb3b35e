use proptest::prelude::*;

use super::*;

fn check(path: &str, expected: bool) {
    assert_eq!(GuestPath::new(path).is_ok(), expected, "{path:?}");
}

#[test]
fn guest_paths_are_absolute_and_clean() {
    check("/", true);
    check("/data", true);
    check("/data/in put", true);
    check("", false);
    check("data", false);
    check("/data/", false);
    check("/data//x", false);
    check("/data/../etc", false);
    check("/./data", false);
    check("/da\0ta", false);
}

fn check_overlap(a: &str, b: &str, expected: bool) {
    let (a, b) = (GuestPath::new(a).unwrap(), GuestPath::new(b).unwrap());
    assert_eq!(a.overlaps(&b), expected, "{a} {b}");
    assert_eq!(b.overlaps(&a), expected, "{b} {a}");
}

#[test]
fn paths_overlap_by_whole_components() {
    check_overlap("/data", "/data", true);
    check_overlap("/data", "/data/in", true);
    check_overlap("/", "/data", true);
    check_overlap("/data", "/database", false);
    check_overlap("/a/b", "/a/c", false);
}

#[test]
fn missing_directories_are_list_entries() {
    let check = |guest: &str, access: Access, expected: &str| {
        let request = PathRequest { guest: guest.parse().unwrap(), access };
        let Decision::Denied { missing: Some(missing), .. } = decide(&[], &request) else {
            panic!("allowed")
        };
        assert_eq!((missing.key, &*missing.entry), ("filesystem", expected));
    };
    let workspace = "{ host = \".\", guest = \"/workspace\", mode = \"rw\" }";
    check("/workspace", Access::ReadWrite, workspace);
    let quoted = "{ host = \"DIRECTORY\", guest = \"/a\\\"b\", mode = \"ro\" }";
    check("/a\"b", Access::ReadOnly, quoted);
    let request =
        |guest: &str| PathRequest { guest: guest.parse().unwrap(), access: Access::ReadOnly };
    let host = "{ host = \"/etc\", guest = \"/etc\", mode = \"ro\" }";
    assert_eq!(request("/etc").missing_in("/etc").entry, host);
    assert!(request("/workspace").missing_in("/etc").entry.contains("host = \".\""));
}

#[test]
fn granted_directories_are_never_files() {
    let check = |path: &str, is_directory: bool, expected: &str| {
        let request = PathRequest { guest: path.parse().unwrap(), access: Access::ReadWrite };
        let directory = request.to_grant(is_directory);
        assert_eq!((directory.guest.as_str(), directory.access), (expected, Access::ReadWrite));
    };
    for is_directory in [false, true] {
        check("/workspace", is_directory, "/workspace");
        check("/workspace/docs/a.md", is_directory, "/workspace");
    }
    check("/etc/passwd", false, "/etc");
    check("/etc/ssl", true, "/etc/ssl");
    check("/data", true, "/data");
    check("/notes.txt", false, "/");
    check("/", false, "/");
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::ReadOnly), Just(Access::ReadWrite)]
}

/// Few names, so that paths contain each other; one name is a prefix of another.
fn names() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop_oneof![Just("a"), Just("ab"), Just("b")], 0..4)
}

fn path(names: &[&str]) -> GuestPath {
    GuestPath::new(format!("/{}", names.join("/"))).unwrap()
}

fn grant((names, access): &(Vec<&str>, Access)) -> DirectoryGrant {
    let guest = path(names);
    DirectoryGrant {
        host: "/h".into(),
        guest,
        access: *access,
        include: Vec::new(),
        protected: None,
        identity: None,
    }
}

#[test]
fn grants_cover_only_included_secrets() {
    let grant = |host: &str, include: &[&str]| DirectoryGrant {
        host: host.into(),
        guest: "/data".parse().unwrap(),
        access: Access::ReadOnly,
        include: include.iter().copied().map(String::from).collect(),
        protected: None,
        identity: None,
    };
    let own = grant("/w", &[".env", "keys/*"]);
    let check = |host: &str, include: &[&str], expected: bool| {
        assert_eq!(own.holds(&grant(host, include)), expected, "{host} {include:?}");
    };
    check("/w", &[], true);
    check("/w", &["keys/*"], true);
    check("/w", &["*"], false);
    check("/w/sub", &[], true);
    check("/w/sub", &[".env"], false);
}

#[test]
fn grants_cover_grants_with_equal_protection() {
    let grant = |access, protected: Option<&[&str]>| DirectoryGrant {
        host: "/w".into(),
        guest: "/data".parse().unwrap(),
        access,
        include: Vec::new(),
        protected: protected.map(|names| names.iter().copied().map(String::from).collect()),
        identity: None,
    };
    let check = |own: Option<&[&str]>, other: Option<&[&str]>, expected: bool| {
        let [own, read] = [(Access::ReadWrite, own), (Access::ReadOnly, other)]
            .map(|(access, protected)| grant(access, protected));
        let written = grant(Access::ReadWrite, other);
        assert_eq!(own.holds(&written), expected, "{own} {written}");
        assert!(own.holds(&read), "read-only files need no protection");
    };
    check(None, None, true);
    check(None, Some(&[]), false);
    check(None, Some(&["a"]), false);
    check(Some(&[]), None, true);
    check(Some(&[]), Some(&["a"]), true);
    check(Some(&["a"]), Some(&["a", "b"]), true);
    check(Some(&["a", "b"]), Some(&["a"]), false);
    check(Some(&["a"]), None, false);
    // The name of the built-in list is equal to the list, and further names protect more.
    check(None, Some(&["default"]), true);
    check(None, Some(&["default", "a"]), true);
    check(Some(&["default"]), None, true);
    check(Some(&["default", "a"]), None, false);
}

#[test]
fn grants_cover_nested_paths_with_equal_access() {
    let grant = |host: &str, guest: &str, access| DirectoryGrant {
        host: host.into(),
        guest: guest.parse().unwrap(),
        access,
        include: Vec::new(),
        protected: None,
        identity: None,
    };
    let own = grant("/w/data", "/data", Access::ReadOnly);
    let check = |host: &str, guest: &str, access, expected: bool| {
        assert_eq!(own.holds(&grant(host, guest, access)), expected, "{host} {guest} {access}");
    };
    check("/w/data", "/data", Access::ReadOnly, true);
    check("/w/data/in", "/data", Access::ReadOnly, true);
    check("/w/data/in", "/data/in", Access::ReadOnly, true);
    check("/w/data", "/data", Access::ReadWrite, false);
    check("/w", "/data", Access::ReadOnly, false);
    check("/w/database", "/data", Access::ReadOnly, false);
    check("/w/data/..", "/data", Access::ReadOnly, false);
    check("/w/data/in/../../other", "/data", Access::ReadOnly, false);
    check("/w/data", "/other", Access::ReadOnly, false);
    let writes = grant("/w/data", "/data", Access::ReadWrite);
    assert!(writes.holds(&own));
}

proptest! {
    #[test]
    fn decisions_match_a_walk_over_names(
        grants in prop::collection::vec((names(), access()), 0..4),
        requested in names(),
        requested_access in access(),
    ) {
        let allows = |(names, access): &(Vec<&str>, Access)| {
            requested.starts_with(names)
                && (requested_access == Access::ReadOnly || *access == Access::ReadWrite)
        };
        let expected = grants.iter().any(allows);
        let request = PathRequest { guest: path(&requested), access: requested_access };
        let granted: Vec<_> = grants.iter().map(grant).collect();
        let decision = decide(&granted, &request);
        prop_assert_eq!(matches!(decision, Decision::Allowed { .. }), expected);

        // Removing a grant never permits more.
        for left_out in 0..granted.len() {
            let mut fewer = granted.clone();
            fewer.remove(left_out);
            let is_allowed = matches!(decide(&fewer, &request), Decision::Allowed { .. });
            prop_assert!(expected || !is_allowed);
        }

        // The grant that is reported as missing permits the request.
        if let Decision::Denied { .. } = decision {
            let mut more = granted;
            let PathRequest { guest, access } = request.clone();
            more.push(DirectoryGrant { host: "/h".into(), guest, access, include: Vec::new(), protected: None, identity: None });
            let is_allowed = matches!(decide(&more, &request), Decision::Allowed { .. });
            prop_assert!(is_allowed);
        }
    }
}
