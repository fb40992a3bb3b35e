//! Pages of `docs/` that are generated from the code, with `INSTA_UPDATE=always`.

mod configuration;
mod promises;

use std::{env, fs};

use crate::support::repository;

/// Asserts that a page of `docs/` has the generated content, or writes it.
#[track_caller]
pub(super) fn assert_current(name: &str, page: &str) {
    let path = repository().join("docs").join(name);
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|current| current == page),
        "docs/{name} is stale: run `INSTA_UPDATE=always cargo test --test main meta::` and review \
         the change",
    );
}
