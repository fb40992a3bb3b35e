//! The paths in a patch.

use std::fmt::Write as _;

use super::HostPaths;

/// The starts of lines that name a file, in the format that begins with `*** Begin Patch`.
const SECTIONS: [&str; 4] =
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The starts of lines that name a file in a unified diff, except the pair `---` and `+++`.
const RENAMES: [&str; 4] = ["rename from ", "rename to ", "copy from ", "copy to "];

impl HostPaths {
    /// Returns a patch with the guest paths of its files. `None` if the patch is unchanged.
    ///
    /// Only lines that name a file are checked. No line of content begins like those of
    /// `*** Begin Patch`, and `--- ` names a file if `+++ ` follows.
    pub(super) fn patch(&self, patch: &str) -> Option<String> {
        let lines: Vec<&str> = patch.split_inclusive('\n').collect();
        let is_envelope = lines.iter().any(|line| line.trim() == "*** Begin Patch");
        let begins = |at: usize, start: &str| lines.get(at).is_some_and(|it| it.starts_with(start));
        let mut written = String::with_capacity(patch.len());
        for (at, line) in lines.iter().enumerate() {
            let (line, end) = line.split_at(line.trim_end_matches(['\r', '\n']).len());
            let starting = |starts: &[&'static str]| {
                starts.iter().copied().find(|start| line.starts_with(*start))
            };
            let is_old = line.starts_with("--- ") && begins(at + 1, "+++ ");
            let is_new = line.starts_with("+++ ") && at > 0 && begins(at - 1, "--- ");
            let named = match is_envelope {
                true => starting(&SECTIONS),
                false if is_old => Some("--- "),
                false if is_new => Some("+++ "),
                false => starting(&RENAMES),
            };
            let replaced = named.and_then(|start| {
                // A date may follow the path.
                let (path, date) = match line[start.len()..].split_once('\t') {
                    Some((path, date)) => (path, format!("\t{date}")),
                    None => (&line[start.len()..], String::new()),
                };
                Some(format!("{start}{}{date}", self.named(path.trim())?))
            });
            let replaced = replaced.or_else(|| {
                let (old, new) = line.strip_prefix("diff --git ")?.split_once(' ')?;
                Some(format!("diff --git {} {}", self.named(old)?, self.named(new)?))
            });
            let _ = write!(written, "{}{end}", replaced.as_deref().unwrap_or(line));
        }
        (written != patch).then_some(written)
    }

    /// Returns the guest path of a path that may begin with one of git's letters.
    fn named(&self, path: &str) -> Option<String> {
        let rest = path.get(1..).filter(|rest| rest.starts_with('/'));
        let path = match rest {
            Some(rest) if self.to_guest(rest).is_some() => rest,
            _ => path,
        };
        let found = self.path(path)?;
        // `a/x` is the file `x` before the change.
        Some(match found.as_bytes().get(1) {
            Some(b'/') => format!("./{found}"),
            _ => found,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kitbag_policy::{Access, DirectoryGrant, GuestPath};

    use super::*;

    fn check(given: &str, expected: &str) {
        let grant = DirectoryGrant {
            host: "/home/ada/ws".into(),
            guest: GuestPath::new("/workspace").unwrap(),
            access: Access::ReadWrite,
            include: Vec::new(),
            protected: None,
            identity: None,
        };
        let paths = HostPaths::new(&[grant], Path::new("/home/ada/ws"), None);
        assert_eq!(paths.patch(given).as_deref().unwrap_or(given), expected);
    }

    #[test]
    fn the_files_of_an_envelope_are_mapped() {
        check(
            "*** Begin Patch\n*** Update File: /home/ada/ws/a.txt\n*** Move to: /home/ada/ws/b.txt\r\n\
             @@\n-/home/ada/ws/x\n+*** Update File: /home/ada/ws/x\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\r\n\
             @@\n-/home/ada/ws/x\n+*** Update File: /home/ada/ws/x\n*** End Patch\n",
        );
    }

    #[test]
    fn the_files_of_a_unified_diff_are_mapped() {
        check(
            "diff --git a/home/ada/ws/s/a.txt b/home/ada/ws/s/a.txt\n\
             --- a/home/ada/ws/s/a.txt\n+++ b/home/ada/ws/s/a.txt\n@@ -1 +1 @@\n-a\n+b\n",
            "diff --git ./s/a.txt ./s/a.txt\n--- ./s/a.txt\n+++ ./s/a.txt\n@@ -1 +1 @@\n-a\n+b\n",
        );
        check(
            "--- /home/ada/ws/a.txt\t2026-01-01\n+++ /home/ada/ws/a.txt\n@@ -1 +1 @@\n-a\n+b\n",
            "--- a.txt\t2026-01-01\n+++ a.txt\n@@ -1 +1 @@\n-a\n+b\n",
        );
        check(
            "--- /dev/null\n+++ /home/ada/ws/new.txt\n@@ -0,0 +1 @@\n+b\n",
            "--- /dev/null\n+++ new.txt\n@@ -0,0 +1 @@\n+b\n",
        );
        check("rename from /home/ada/ws/a\nrename to /home/ada/ws/b", "rename from a\nrename to b");
    }

    #[test]
    fn other_lines_of_a_patch_are_unchanged() {
        let kept =
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- /home/ada/ws/a\n+-- /home/ada/ws/b\n c\n";
        check(kept, kept);
        let kept = "--- /home/ada/other/x\n+++ /home/ada/other/x\n@@ -1 +1 @@\n-a\n+b\n";
        check(kept, kept);
    }
}
