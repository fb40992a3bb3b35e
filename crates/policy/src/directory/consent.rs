//! Directories in the words in which a person consents to them.

use std::path::Path;

use kitbag_contract::PROTECTED_BY_DEFAULT;

use super::{Access, DirectoryGrant};
use crate::consent::{Ability, GrantText, Risk, Surroundings, place, quoted};

impl Surroundings<'_> {
    /// Returns the risks of a directory that is read. `include` is the globs that open files
    /// although they look like secrets.
    pub fn read_risks(&self, host: &Path, include: &[String]) -> Vec<Risk> {
        self.path_risks(host, Access::ReadOnly, include)
    }

    /// Returns the risks of a path with this access.
    fn path_risks(&self, host: &Path, access: Access, include: &[String]) -> Vec<Risk> {
        let Self { root, home, holds_secrets, .. } = *self;
        let mut risks = Vec::new();
        let is_home = home.is_some_and(|home| home.starts_with(host) && home != root);
        let wide = match host.parent() {
            None => Some(Risk::WholeFileSystem),
            Some(_) => is_home.then_some(Risk::HomeDirectory),
        };
        risks.extend(wide);
        if !include.is_empty() || holds_secrets(host.strip_prefix(root).unwrap_or(host)) {
            risks.push(Risk::SecretFiles);
        }
        if !host.starts_with(root) {
            match access {
                Access::ReadWrite => risks.push(Risk::WritesOutside),
                Access::ReadOnly if wide.is_none() => risks.push(Risk::ReadsOutside),
                // The wider risk already covers reads outside the workspace.
                Access::ReadOnly => {}
            }
        }
        risks
    }
}

/// Returns a grant in words, with its ability and risks.
pub(super) fn text(grant: &DirectoryGrant, around: &Surroundings<'_>) -> GrantText {
    if grant.is_temporary() {
        let line = "has an empty directory for each call".to_owned();
        return GrantText::new(line, None, Vec::new());
    }
    let is_inside = grant.host.starts_with(around.root);
    let ability = match (grant.access, is_inside) {
        (Access::ReadWrite, true) => Ability::WriteInside,
        (Access::ReadWrite, false) => Ability::WriteOutside,
        (Access::ReadOnly, true) => Ability::ReadInside,
        (Access::ReadOnly, false) => Ability::ReadOutside,
    };
    GrantText::new(line(grant, around), Some(ability), risks(grant, around))
}

fn risks(grant: &DirectoryGrant, around: &Surroundings<'_>) -> Vec<Risk> {
    let mut risks = around.path_risks(&grant.host, grant.access, &grant.include);
    let protects = |names: &Vec<String>| {
        names.iter().any(|name| name == PROTECTED_BY_DEFAULT)
            && !names.iter().any(|name| name.starts_with('!'))
    };
    let below = grant.host.strip_prefix(around.root).unwrap_or(&grant.host).to_string_lossy();
    let is_unprotected = grant.protected.as_ref().is_some_and(|names| !protects(names));
    if grant.access == Access::ReadWrite
        && (is_unprotected || (around.holds_programs)(around.root, &below))
    {
        risks.push(Risk::RunFiles);
    }
    risks
}

fn line(grant: &DirectoryGrant, around: &Surroundings<'_>) -> String {
    let does = match grant.access {
        Access::ReadOnly => "reads",
        Access::ReadWrite => "reads and changes",
    };
    let mut line = format!("{does} {}", place(&grant.host, around.root));
    if !grant.include.is_empty() {
        line.push_str(&format!(
            ", including files that look like secrets: {}",
            list(&grant.include)
        ));
    }
    if let (Access::ReadWrite, Some(protected)) = (grant.access, &grant.protected) {
        line.push_str(&unprotected(protected));
    }
    line
}

/// Returns the files of other programs that a grant lets a tool write, for a grant with its own
/// list of protected names.
fn unprotected(protected: &[String]) -> String {
    let (exceptions, names): (Vec<_>, Vec<_>) =
        protected.iter().cloned().partition(|name| name.starts_with('!'));
    let exceptions: Vec<_> = exceptions.iter().map(|name| name[1..].to_owned()).collect();
    let all = ", including files from which other programs run code";
    match (names.iter().any(|name| name == PROTECTED_BY_DEFAULT), names.is_empty()) {
        (true, _) if exceptions.is_empty() => String::new(),
        (true, _) => format!(", including files named {} of other programs", list(&exceptions)),
        (false, true) => all.to_owned(),
        (false, false) => format!("{all}, but not {}", list(&names)),
    }
}

fn list(texts: &[String]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
}
