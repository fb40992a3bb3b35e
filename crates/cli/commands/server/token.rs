//! `kitbag token`: the people who share a server over HTTP.

use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{Person, PersonName};
use kitbag::mcp::Token;
use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item};

use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::own_file::OwnFile;
use crate::files::tables::{EditError, list, set, table};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag token add ann
  kitbag token add ben --tools 'read_*,search_*,learn'
  kitbag token add ann --replace
  kitbag token remove ben")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Generate a token for a person, and print it
    ///
    /// The token is printed once: your user config has only its SHA-256. A running server accepts
    /// the token at once.
    Add {
        /// The name of the person: letters, digits, `_`, `-` and `.`
        name: PersonName,
        /// Offer only the tools that match these names or globs [default: every tool that the
        /// server offers]
        #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
        tools: Option<Vec<String>>,
        /// Replace the person's token; the old one stops working
        #[arg(long)]
        replace: bool,
    },
    /// List the people who have a token, and their tools
    List,
    /// Remove a person's token
    ///
    /// A running server ends the person's sessions and calls at once.
    Remove {
        /// The name of the person
        name: PersonName,
    },
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        match self.command {
            Command::Add { name, tools, replace } => add(&name, tools, replace, global.json),
            Command::List => list_people(global),
            Command::Remove { name } => remove(&name, global.json),
        }
    }
}

fn add(
    name: &PersonName,
    tools: Option<Vec<String>>,
    replace: bool,
    as_json: bool,
) -> Result<Exit, CliError> {
    Person::check_tools(tools.as_deref().unwrap_or_default())
        .map_err(|problem| CliError::Usage(format!("`--tools`: {problem}")))?;
    let mut own = OwnFile::lock()?;
    if !replace && names(own.text()?).map_err(unchanged)?.iter().any(|known| known == name.as_str())
    {
        let command = shell::command(["kitbag", "token", "add", name.as_str(), "--replace"]);
        return Err(CliError::Usage(format!(
            "`{name}` has a token already; `{command}` replaces it"
        )));
    }
    let made = Token::random();
    let (token, text) =
        made.map_err(|error| CliError::Serve("no token can be made".into(), error.into()))?;
    let new = with(own.text()?, name, &token, tools.as_deref()).map_err(unchanged)?;
    own.write(&new)?;
    if as_json {
        output::json(&json!({ "name": name.as_str(), "token": text, "file": own.path() }))?;
        return Ok(Exit::Done);
    }
    output::data(&text)?;
    output::note(&format!(
        "this is the token of `{name}`. It is not shown again: `{}` has only its SHA-256. Clients \
         send it as `Authorization: Bearer TOKEN`",
        shown(own.path())
    ));
    Ok(Exit::Done)
}

fn list_people(global: &Global) -> Result<Exit, CliError> {
    let people = &global.kitbag(LimitArgs::default())?.toolbox().config().people;
    if global.json {
        let person = |(name, person): (&PersonName, &Person)| {
            let tools = person.tools.as_ref().map(|tools| &tools.value);
            json!({ "name": name.as_str(), "tools": tools, "origin": person.origin.to_string() })
        };
        output::json(&people.iter().map(person).collect::<Value>())?;
        return Ok(Exit::Done);
    }
    if people.is_empty() {
        output::note("no person has a token; `kitbag token add NAME` makes one");
    }
    let row = |(name, person): (&PersonName, &Person)| {
        let tools = match &person.tools {
            None => "every tool of the server".to_owned(),
            Some(tools) if tools.value.is_empty() => "no tools".to_owned(),
            Some(tools) => shown(&tools.value.join(", ")).to_string(),
        };
        vec![name.to_string(), tools]
    };
    output::data(&output::aligned(&people.iter().map(row).collect::<Vec<_>>()))?;
    Ok(Exit::Done)
}

fn remove(name: &PersonName, as_json: bool) -> Result<Exit, CliError> {
    let mut own = OwnFile::lock()?;
    let Some(new) = without(own.text()?, name).map_err(unchanged)? else {
        let known = names(own.text()?).map_err(unchanged)?;
        let known = match &*known {
            [] => "no person has a token".to_owned(),
            names => format!("there are {}", shown(&names.join(", "))),
        };
        return Err(CliError::Usage(format!("`{name}` has no token; {known}")));
    };
    own.write(&new)?;
    match as_json {
        true => output::json(&json!({ "name": name.as_str(), "file": own.path() }))?,
        false => output::data(&format!(
            "the token of `{name}` is removed from {}; running servers no longer accept it",
            shown(own.path())
        ))?,
    }
    Ok(Exit::Done)
}

fn unchanged(error: EditError) -> CliError {
    CliError::Usage(error.to_string())
}

/// Returns the names in `[serve.tokens]`.
fn names(text: &str) -> Result<Vec<String>, EditError> {
    let document: DocumentMut = text.parse()?;
    let tokens = document.get("serve").and_then(|serve| serve.get("tokens"));
    let tokens = tokens.and_then(Item::as_table_like);
    Ok(tokens.into_iter().flat_map(|it| it.iter().map(|(name, _)| name.to_owned())).collect())
}

/// Returns the file with a person's token. Without `tools` the person keeps theirs.
fn with(
    text: &str,
    name: &PersonName,
    token: &Token,
    tools: Option<&[String]>,
) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse()?;
    let serve = table(document.as_table_mut(), "serve", true)?;
    let tokens = table(serve, "tokens", true)?;
    let person = table(tokens, name.as_str(), false)?;
    let digest: String = token.sha256().iter().map(|byte| format!("{byte:02x}")).collect();
    set(person, "sha256", digest.into());
    if let Some(tools) = tools {
        set(person, "tools", list(tools));
    }
    // Whitespace and comments after the last value no longer end the line.
    let person = document["serve"]["tokens"].get_mut(name.as_str());
    if let Some(line) = person.and_then(Item::as_inline_table_mut) {
        line.fmt();
    }
    Ok(document.to_string())
}

/// Returns the file without a person's token. `None` if the person has none.
fn without(text: &str, name: &PersonName) -> Result<Option<String>, EditError> {
    let mut document: DocumentMut = text.parse()?;
    let tokens = document.get_mut("serve").and_then(|serve| serve.get_mut("tokens"));
    let Some(tokens) = tokens else { return Ok(None) };
    let form = || EditError::Form("serve.tokens".to_owned());
    let tokens = tokens.as_table_like_mut().ok_or_else(form)?;
    let was_there = tokens.remove(name.as_str()).is_some();
    Ok(was_there.then(|| document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_written_hashed_beside_other_settings() {
        let (ann, ben) = (PersonName::new("ann").unwrap(), PersonName::new("ben.k").unwrap());
        let token = Token::new("correct-horse-battery").unwrap();
        let text = with("# Ours.\n[serve]\nmemory = \"1GiB\" # enough\n", &ann, &token, None);
        let text = text.unwrap();
        assert!(!text.contains("correct-horse"), "{text}");
        let written = text.lines().find_map(|line| line.strip_prefix("sha256 = \"")).unwrap();
        let written = written.trim_end_matches('"').to_owned();
        assert_eq!(written.len(), 64);
        assert_eq!(
            text.replace(&written, "X"),
            "# Ours.\n[serve]\nmemory = \"1GiB\" # enough\n\n[serve.tokens.ann]\nsha256 = \"X\"\n"
        );
        let patterns = ["read_*".to_owned()];
        let text = with(&text, &ben, &token, Some(&patterns)).unwrap();
        assert_eq!(names(&text).unwrap(), ["ann", "ben.k"]);
        // A new token keeps the tools and the comments.
        let text = text.replace("[\"read_*\"]", "[\"read_*\"] # files");
        let other = with(&text, &ben, &Token::new("another-horse-battery").unwrap(), None).unwrap();
        assert!(other.ends_with("tools = [\"read_*\"] # files\n"), "{other}");
        assert_ne!(other, text);
        let text = without(&other, &ben).unwrap().unwrap();
        assert_eq!(names(&text).unwrap(), ["ann"]);
        assert_eq!(without(&text, &ben).unwrap(), None);
    }

    #[test]
    fn unusual_tables_of_tokens_are_edited_or_refused() {
        let ann = PersonName::new("ann").unwrap();
        let token = Token::new("correct-horse-battery").unwrap();
        let text = "[serve]\ntokens = { ann = { sha256 = \"1\" } } # ours\n";
        let text = with(text, &ann, &token, Some(&[])).unwrap();
        assert!(text.contains(", tools = [] } } # ours"), "{text}");
        for text in ["serve = 1", "serve.tokens = 1", "serve.tokens.ann = 1"] {
            assert!(matches!(with(text, &ann, &token, None), Err(EditError::Form(_))), "{text}");
        }
        assert!(matches!(with("=", &ann, &token, None), Err(EditError::Syntax(_))));
    }
}
