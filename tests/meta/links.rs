//! Links in the documentation: each target file and heading exists, and the book contains every
//! page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::repository;

/// Hand-written pages: in the root, in `docs/`, and the front pages of crates.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for directory in ["", "docs", "crates/cli", "crates/kitbag", "fuzz", "guest-tools"] {
        for entry in fs::read_dir(repository().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The page without fenced blocks.
fn without_blocks(page: &str) -> String {
    let mut is_block = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text without code spans.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The destinations of the links of a page.
fn links(page: &str) -> Vec<String> {
    let text = without_code(&without_blocks(page));
    let ends = text.match_indices("](").map(|(start, brackets)| &text[start + brackets.len()..]);
    ends.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of the headings of a page, in the format of GitHub and mdBook.
fn anchors(page: &str) -> BTreeSet<String> {
    let (mut anchors, mut counts) = (BTreeSet::new(), BTreeMap::new());
    let page = without_blocks(page);
    for heading in page.lines().filter(|line| line.starts_with('#')) {
        let heading = heading.trim_start_matches('#').trim();
        let anchor: String = heading
            .chars()
            .filter(|&char| char.is_alphanumeric() || "-_ ".contains(char))
            .flat_map(char::to_lowercase)
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        let count: &mut u32 = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

#[test]
fn links_lead_to_existing_files_and_headings() {
    let (mut broken, mut count) = (Vec::new(), 0);
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(repository()).unwrap().display();
        for link in links(&page) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let has_anchor = || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
            if !target.exists() || (!anchor.is_empty() && !has_anchor()) {
                broken.push(format!("{shown}: {link}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
    assert!(count > 100, "{count} links");
}

#[test]
fn the_summary_of_the_book_has_every_page_once() {
    let summary = fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let mut listed = links(&summary);
    listed.retain(|link| link != "../README.md");
    listed.sort_unstable();
    let entries = fs::read_dir(repository().join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = names
        .filter(|name| {
            name != "SUMMARY.md" && Path::new(name).extension().is_some_and(|it| it == "md")
        })
        .collect();
    pages.sort_unstable();
    assert_eq!(listed, pages);
}
