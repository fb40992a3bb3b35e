//! References to variables in the configuration of a client.

use crate::commands::server::mcp_config::client::Client;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// `${NAME}`, `${NAME:-default}`, `${env:NAME}`, and for Gemini `$NAME`.
    Variable {
        name: &'a str,
        default: Option<&'a str>,
    },
    /// `${input:ID}`: the client asks for the value.
    Input(&'a str),
    /// `${workspaceFolder}`.
    Workspace,
    /// `${userHome}`.
    Home,
    /// `${pathSeparator}` or `${/}`.
    Separator,
}

/// Returns the parts of a text, without empty ones.
pub(super) fn pieces(text: &str, client: Client) -> Vec<Piece<'_>> {
    // Codex expands nothing.
    if client == Client::Codex {
        return if text.is_empty() { Vec::new() } else { vec![Piece::Text(text)] };
    }
    let mut pieces = Vec::new();
    let (mut rest, mut at) = (text, 0);
    while let Some(start) = rest[at..].find('$').map(|start| at + start) {
        let Some((piece, length)) = reference(&rest[start..], client) else {
            at = start + 1;
            continue;
        };
        if start > 0 {
            pieces.push(Piece::Text(&rest[..start]));
        }
        pieces.push(piece);
        rest = &rest[start + length..];
        at = 0;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Reads a reference at the start of a text. Returns its length.
fn reference(text: &str, client: Client) -> Option<(Piece<'_>, usize)> {
    let Some(inner) = text.strip_prefix("${") else {
        let name = text[1..].split(|c| !is_of_name(c)).next().filter(|name| is_name(name))?;
        let is_expanded = client == Client::Gemini;
        return is_expanded.then(|| (Piece::Variable { name, default: None }, 1 + name.len()));
    };
    let inner = &inner[..inner.find('}')?];
    let piece = match inner {
        "workspaceFolder" | "workspaceRoot" => Piece::Workspace,
        "userHome" => Piece::Home,
        "pathSeparator" | "/" => Piece::Separator,
        inner => match (inner.split_once(':'), inner.split_once(":-")) {
            (_, Some((name, default))) if is_name(name) => {
                Piece::Variable { name, default: Some(default) }
            }
            (Some(("env", name)), _) if is_name(name) => Piece::Variable { name, default: None },
            (Some(("input", id)), _) => Piece::Input(id),
            _ if is_name(inner) => Piece::Variable { name: inner, default: None },
            _ => return None,
        },
    };
    Some((piece, inner.len() + "${}".len()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(is_of_name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_each_client_are_found() {
        let variable = |name| Piece::Variable { name, default: None };
        let check = |text: &str, client: Client, expected: &[Piece<'_>]| {
            assert_eq!(pieces(text, client), expected, "{text}");
        };
        let (code, gemini) = (Client::ClaudeCode, Client::Gemini);
        check("", code, &[]);
        check("plain $A {B}", code, &[Piece::Text("plain $A {B}")]);
        check("${A}", code, &[variable("A")]);
        check("${env:A}", Client::Cursor, &[variable("A")]);
        check("${A:-b c}", code, &[Piece::Variable { name: "A", default: Some("b c") }]);
        check(
            "Bearer ${input:key}",
            Client::VsCode,
            &[Piece::Text("Bearer "), Piece::Input("key")],
        );
        check("${workspaceFolder}/a", code, &[Piece::Workspace, Piece::Text("/a")]);
        check(
            "x$A-${B}",
            gemini,
            &[Piece::Text("x"), variable("A"), Piece::Text("-"), variable("B")],
        );
        check("$5 ${} ${a b} ${A", gemini, &[Piece::Text("$5 ${} ${a b} ${A")]);
        check("${A}", Client::Codex, &[Piece::Text("${A}")]);
    }
}
