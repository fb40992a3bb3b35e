//! Counts the files in which each rule has a finding: `find DIR -name '*.md' | measure_screening`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use kitbag_policy::screening::Screen;

fn main() -> io::Result<()> {
    let screen = Screen::new(&[]);
    let (mut files, mut bytes, mut any) = (0, 0, 0);
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let start = Instant::now();
    for path in io::stdin().lock().lines() {
        let path = path?;
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        (files, bytes) = (files + 1, bytes + text.len());
        let findings = screen.look(&text);
        any += usize::from(!findings.is_empty());
        for finding in findings {
            let key = format!("{} {}", finding.severity, finding.rule);
            found.entry(key).or_insert_with(|| (0, path.clone())).0 += 1;
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{files} files, {bytes} bytes, {any} with a finding, {:?}", start.elapsed())?;
    for (rule, (count, first)) in found {
        writeln!(out, "{count} {rule} (first in {first})")?;
    }
    Ok(())
}
