//! How time and memory grow with sizes: of arguments and answers, with the number of tools, of
//! files in a topic, and of calls at once.
//!
//! `cargo bench --bench growth` prints the growth exponent of each curve and the curves that are
//! worse than linear, and writes plots and figures into `docs/growth/`. Another binary can be
//! named, `cargo bench --bench growth -- target/release/kitbag`. `--quick` uses smaller sizes and
//! does not write to `docs/`, `--only=NAME` measures one family, `--out=DIR` sets the output
//! directory.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod families;
mod library;
mod plot;
mod series;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::families::Measure;
use crate::series::{Family, Quantity};
use crate::support::CommandLine;
use crate::support::memory::run_if_asked;

fn main() {
    run_if_asked();
    library::measure_if_asked();
    let command_line = CommandLine::read();
    let is_quick = command_line.has("quick");
    let usual = match is_quick {
        true => Path::new(env!("CARGO_TARGET_TMPDIR")).join("growth"),
        false => Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/growth"),
    };
    let directory: PathBuf = command_line.value("out").unwrap_or(usual);
    let only: Option<String> = command_line.value("only");
    fs::create_dir_all(&directory).unwrap();
    let measure = Measure { binary: command_line.binary(), is_quick };
    let mut worse = Vec::new();
    for (name, of) in Measure::FAMILIES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let family = of(&measure);
        show(&family, &mut worse);
        let path = |extension| directory.join(name).with_extension(extension);
        fs::write(path("csv"), figures(&family)).unwrap();
        plot::draw(&family, &path("svg")).unwrap();
    }
    println!("plots and figures: {}", directory.display());
    match &worse[..] {
        [] => println!("no curve is worse than a line"),
        worse => println!("worse than a line:\n{}", worse.join("\n")),
    }
}

/// Prints every curve with its ends and exponents, and adds those that are worse than linear.
fn show(family: &Family, worse: &mut Vec<String>) {
    println!("{}, by {}; memory: {}", family.name, family.size, family.memory);
    println!(
        "  {:40} {:6} {:>22} {:>22} {:>7} {:>7}",
        "", "", "at the smallest", "at the largest", "overall", "far end"
    );
    for series in &family.series {
        for quantity in Quantity::ALL {
            let growth = series.growth(quantity);
            let ends = [series.points.first(), series.points.last()].map(Option::unwrap);
            let [first, last] = ends.map(|point| {
                format!("{} {:.3} {}", point.size, quantity.of(point), quantity.unit())
            });
            println!(
                "  {:40} {:6} {first:>22} {last:>22} {:>7.2} {:>7.2}",
                series.title,
                quantity.name(),
                growth.overall,
                growth.far
            );
            if growth.is_worse() {
                worse.push(format!(
                    "  {}, {}: {} grows with the power {:.2}",
                    family.name,
                    series.title,
                    quantity.name(),
                    growth.far
                ));
            }
        }
    }
    println!("  the sizes end there: {}\n", family.end);
}

fn figures(family: &Family) -> String {
    let mut table = String::from("series,size,milliseconds,MiB\n");
    for series in &family.series {
        for point in &series.points {
            let [time, memory] = Quantity::ALL.map(|quantity| quantity.of(point));
            let _ = writeln!(table, "\"{}\",{},{time:.4},{memory:.3}", series.title, point.size);
        }
    }
    table
}
