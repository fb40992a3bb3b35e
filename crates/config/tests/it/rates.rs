//! How often a tool may be called.

use crate::support::{Fixture, check_problems_of, check_rows};

fn rate(rate: &str) -> String {
    format!("[tools.learn]\nrate = \"{rate}\"\n")
}

#[track_caller]
fn check(user: Option<&str>, workspace: Option<&str>, expected: &[&str]) {
    let fixture = Fixture::new(&workspace.map(rate).unwrap_or_default());
    let fixture = match user {
        Some(user) => fixture.user(&rate(user)),
        None => fixture,
    };
    check_rows(&fixture, "tools.learn.rate", expected);
}

#[test]
fn the_lowest_rate_of_each_file_counts_for_each_time() {
    let (own, of_workspace) = ("/t/h/config.toml:2:8", ".kitbag/config.toml:2:8");
    let row = |rate: &str, place: &str| format!("tools.learn.rate = \"{rate}\" # {place}");
    check(None, None, &[]);
    check(Some("100/h,10/min"), None, &[&row("10/min, 100/h", own)]);
    check(Some("60/min"), Some("90/min"), &[&row("60/min", own)]);
    check(Some("60/min"), Some("30/min"), &[&row("30/min", of_workspace)]);
    check(Some("60/min"), Some("90/min, 5/d"), &[&row("60/min, 5/d", of_workspace)]);
}

#[test]
fn a_workspace_and_a_manifest_set_a_rate_too() {
    let fixture = Fixture::new("[tools.count]\nrate = \"9/min\"\n")
        .file("w/.kitbag/tools/count.wasm", "")
        .file("w/.kitbag/tools/count.toml", "rate = \"5/min\"\n");
    let place = ".kitbag/tools/count.toml:1:8";
    check_rows(&fixture, "tools.count.rate", &[&format!("tools.count.rate = \"5/min\" # {place}")]);
}

#[test]
fn what_is_not_a_rate_is_refused_in_every_file() {
    let end = "write calls per period, such as `60/min` or `10/min, 100/h`";
    check_problems_of(
        &Fixture::new(&rate("0/min")).user(&rate("often")),
        &[
            &format!("/t/h/config.toml:2:8: `often` is not a rate: `/` is missing; {end}"),
            &format!("C:2:8: `0/min` is not a rate: the number must be from 1 to 10000; {end}"),
        ],
    );
}
