//! Measures how well the main content of real pages is found.
//!
//! `cargo run -p kitbag-page --example measure_pages -- DIRECTORY [WORST]`
//!
//! DIRECTORY is `test/test-pages` of <https://github.com/mozilla/readability>: each directory in it
//! has a page, `source.html`, and its expected content, `expected.html`. Recall is the share of
//! expected words that are found, precision the share of found words that are expected. The WORST
//! pages of either are listed.

#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use kitbag_page::{Page, View};

const VIEW: View<'static> = View { base: None, main: true, all: "main=false" };

/// The figures of one page.
struct Figures {
    name: String,
    has_main: bool,
    recall: f64,
    precision: f64,
    seconds: f64,
}

fn main() {
    let mut arguments = env::args_os().skip(1);
    let directory = PathBuf::from(arguments.next().expect("a directory"));
    let worst = arguments.next().and_then(|it| it.to_str()?.parse().ok()).unwrap_or(10);
    let mut pages: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("the directory can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("source.html").exists())
        .collect();
    pages.sort();
    let figures: Vec<Figures> = pages.iter().map(|path| measure(path)).collect();
    let (with, without): (Vec<&Figures>, _) = figures.iter().partition(|it| it.has_main);
    summary("all", &figures.iter().collect::<Vec<_>>());
    summary("with <main>", &with);
    summary("without", &without);
    list("recall", figures.iter().map(|it| (it.recall, it)).collect(), worst);
    list("precision", figures.iter().map(|it| (it.precision, it)).collect(), worst);
    let slowest = figures.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    if let Some(slowest) = slowest {
        println!("slowest: {} {:.2} s", slowest.name, slowest.seconds);
    }
}

fn measure(path: &Path) -> Figures {
    let read = |file| fs::read_to_string(path.join(file)).expect("a file that can be read");
    let source = read("source.html");
    let expected = format!("<main>{}</main>", read("expected.html"));
    let expected = Page::parse(expected).expect("a page").markdown(&VIEW);
    let has_main = source.contains("<main") || source.contains("role=\"main\"");
    let start = Instant::now();
    let found = Page::parse(source).expect("a page").markdown(&VIEW);
    let seconds = start.elapsed().as_secs_f64();
    let (expected, found) = (words(&expected.text), words(&found.text));
    let both: usize =
        expected.iter().map(|(word, count)| *count.min(found.get(word).unwrap_or(&0))).sum();
    let share =
        |of: &HashMap<String, usize>| both as f64 / (of.values().sum::<usize>() as f64).max(1.0);
    Figures {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        has_main,
        recall: share(&expected),
        precision: share(&found),
        seconds,
    }
}

/// Counts the words of a Markdown text without the URLs of its links.
fn words(markdown: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    let mut rest = markdown;
    while !rest.is_empty() {
        let end = rest.find("](").unwrap_or(rest.len());
        for word in rest[..end].split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty())
        {
            *words.entry(word.to_lowercase()).or_default() += 1;
        }
        rest = &rest[end..];
        rest = rest.find(')').map_or("", |close| &rest[close + 1..]);
    }
    words
}

fn summary(name: &str, figures: &[&Figures]) {
    let mean = |of: fn(&Figures) -> f64| {
        figures.iter().map(|it| of(it)).sum::<f64>() / figures.len().max(1) as f64
    };
    println!(
        "{name}: {} pages, recall {:.4}, precision {:.4}",
        figures.len(),
        mean(|it| it.recall),
        mean(|it| it.precision)
    );
}

fn list(name: &str, mut pages: Vec<(f64, &Figures)>, worst: usize) {
    pages.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    println!("\nlowest {name}:");
    for (figure, page) in pages.iter().take(worst) {
        println!("  {figure:.3} {} (main: {})", page.name, page.has_main);
    }
}
