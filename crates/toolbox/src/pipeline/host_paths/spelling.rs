//! The spellings of a path that clients use.

pub(super) enum Spelled {
    /// An absolute path on the host: the possible paths, the most likely first.
    Host(Vec<String>),
    /// Relative to the workspace.
    Relative(String),
}

/// The hosts in UNC paths and URIs that are a WSL distribution.
const WSL_HOSTS: [&str; 2] = ["wsl.localhost", "wsl$"];

/// Variables for the workspace.
const WORKSPACE: [&str; 3] = ["${workspaceFolder}", "${PWD}", "$PWD"];

/// Variables for the home directory.
const HOME: [&str; 3] = ["~", "${HOME}", "$HOME"];

pub(super) fn read(given: &str, home: Option<&str>) -> Spelled {
    let text = unquoted(given.trim());
    if let Some(path) = uri(text) {
        return absolute(&path);
    }
    if let Some(rest) = after(text, &WORKSPACE) {
        let rest = rest.trim_start_matches('/');
        return Spelled::Relative(if rest.is_empty() { "." } else { rest }.to_owned());
    }
    if let (Some(rest), Some(home)) = (after(text, &HOME), home) {
        return absolute(&format!("{home}{rest}"));
    }
    let path = slashed(text);
    match path.starts_with('/') || drive(&path).is_some() {
        true => absolute(&path),
        // A name may begin or end with a space.
        false => Spelled::Relative(slashed(unquoted(given))),
    }
}

/// Returns the possible host paths of an absolute path.
fn absolute(path: &str) -> Spelled {
    let path = path.strip_prefix("//?/").unwrap_or(path);
    if let Some(inside) = path.strip_prefix("//") {
        let (host, share) = inside.split_once('/').unwrap_or((inside, ""));
        let is_wsl = WSL_HOSTS.iter().any(|wsl| host.eq_ignore_ascii_case(wsl));
        let inner = share.split_once('/').filter(|_| is_wsl);
        return Spelled::Host(vec![match inner {
            Some((_, path)) => format!("/{path}"),
            None => path.to_owned(),
        }]);
    }
    // In Git Bash, `/c/data` is `C:\data`.
    let shell = path.strip_prefix('/').and_then(|rest| {
        let (letter, rest) = rest.split_once('/')?;
        is_letter(letter).then(|| mounted(letter, rest))
    });
    Spelled::Host(
        [drive(path).unwrap_or_else(|| path.to_owned())].into_iter().chain(shell).collect(),
    )
}

/// Returns the path of a URI. The path includes the host if it is not this machine.
fn uri(text: &str) -> Option<String> {
    let remote = text.strip_prefix("vscode-remote://").and_then(|rest| rest.split_once('/'));
    let path = match (remote, text.strip_prefix("file:")) {
        (Some((_, path)), _) => format!("/{path}"),
        (None, Some(path)) => match path.strip_prefix("//") {
            None => path.to_owned(),
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            Some(rest) => match rest.strip_prefix("localhost/") {
                Some(path) => format!("/{path}"),
                None => path.to_owned(),
            },
        },
        (None, None) => return None,
    };
    let path = path.split(['#', '?']).next().unwrap_or_default();
    decoded(path)
}

/// Returns a path without percent-encoding. `None` if the encoding is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = behind.split_at_checked(2)?;
        let digits = str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|byte| *byte != 0)?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Returns the WSL path of a path that begins with a drive: `/mnt/c/data` for `C:/data`.
fn drive(path: &str) -> Option<String> {
    let (letter, rest) = path.strip_prefix('/').unwrap_or(path).split_once(':')?;
    (is_letter(letter) && rest.starts_with('/')).then(|| mounted(letter, &rest[1..]))
}

fn is_letter(text: &str) -> bool {
    text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn mounted(letter: &str, rest: &str) -> String {
    format!("/mnt/{}/{rest}", letter.to_ascii_lowercase())
}

/// Returns the rest after one of `beginnings`: an empty string, or `/` and a path.
fn after<'a>(text: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let rest = beginnings.iter().find_map(|beginning| text.strip_prefix(beginning))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Removes the quotes around a path.
fn unquoted(text: &str) -> &str {
    let inner = ['"', '\'', '`'].into_iter().find_map(|quote| {
        text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote))
    });
    inner.filter(|inner| !inner.is_empty()).unwrap_or(text)
}

/// Replaces Windows separators in a path with `/`. In a name that systemd escaped, such as
/// `dev-disk-by\x2duuid.swap`, a backslash is not a separator.
fn slashed(text: &str) -> String {
    let is_escape = |rest: &str| {
        let mut bytes = rest.bytes();
        bytes.next() == Some(b'x')
            && bytes.by_ref().take(2).filter(u8::is_ascii_hexdigit).count() == 2
            && !matches!(bytes.next(), None | Some(b'\\' | b'/'))
    };
    let has_escape = text.match_indices('\\').any(|(at, _)| is_escape(&text[at + 1..]));
    if has_escape { text.to_owned() } else { text.replace('\\', "/") }
}

/// Returns true if the backslashes of a glob separate names. A letter, a digit or `**` needs no
/// escape.
pub(super) fn separates(glob: &str) -> bool {
    let is_name = |rest: &str| {
        rest.starts_with(|char: char| char.is_alphanumeric()) || rest.starts_with("**")
    };
    glob.match_indices('\\').any(|(at, _)| is_name(&glob[at + 1..])) && slashed(glob) != glob
}
