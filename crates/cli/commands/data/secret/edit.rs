//! The tables of secrets in the user config, changed without affecting the rest.

use kitbag::policy::{Placement, SecretName, SecretSource};
use toml_edit::{DocumentMut, InlineTable, Item, Value};

use crate::files::tables::{EditError, list, set, table};

#[derive(Clone, Copy)]
pub(crate) struct Changes<'a> {
    pub(crate) name: &'a SecretName,
    pub(crate) source: &'a SecretSource,
    /// Permitted destinations, and whether wildcards are allowed. `None`: unchanged.
    pub(crate) to: Option<(&'a [String], bool)>,
    /// Placement of the secret in a request. `None`: unchanged.
    pub(crate) placement: Option<&'a Placement>,
    /// Locations in which the placeholder is replaced. `None`: unchanged.
    pub(crate) placeholder: Option<&'a [&'a str]>,
    /// Settings for opening the store. `None`: unchanged.
    pub(crate) store: Option<&'a str>,
}

impl Changes<'_> {
    pub(crate) fn apply(&self, text: &str) -> Result<String, EditError> {
        let mut document: DocumentMut = text.parse()?;
        if let Some(kind) = self.store {
            let store = table(document.as_table_mut(), "secret_store", false)?;
            set(store, "kind", kind.into());
        }
        let secrets = table(document.as_table_mut(), "secrets", true)?;
        let secret = table(secrets, self.name.as_str(), false)?;
        let (variable, command) = match self.source {
            SecretSource::Store => (None, None),
            SecretSource::Variable(name) => (Some(name.into()), None),
            SecretSource::Command(words) => (None, Some(list(words))),
        };
        for (key, value) in [("variable", variable), ("command", command)] {
            match value {
                Some(value) => set(secret, key, value),
                None => drop(secret.remove(key)),
            }
        }
        if let Some((to, wildcard)) = self.to {
            set(secret, "to", list(to));
            match wildcard {
                true => set(secret, "wildcard", true.into()),
                false => drop(secret.remove("wildcard")),
            }
        }
        if let Some(placement) = self.placement {
            set(secret, "as", value(placement));
        }
        if let Some(parts) = self.placeholder {
            set(secret, "placeholder", list(parts));
        }
        // Whitespace and comments after the last value no longer end the line.
        let secret = document.get_mut("secrets").and_then(|it| it.get_mut(self.name.as_str()));
        if let Some(line) = secret.and_then(Item::as_inline_table_mut) {
            line.fmt();
        }
        Ok(document.to_string())
    }
}

/// Returns the file without a secret. `None` if it has no secret of this name.
pub(crate) fn without(text: &str, name: &SecretName) -> Result<Option<String>, EditError> {
    let mut document: DocumentMut = text.parse()?;
    let Some(secrets) = document.get_mut("secrets") else { return Ok(None) };
    let form = || EditError::Form("secrets".to_owned());
    let secrets = secrets.as_table_like_mut().ok_or_else(form)?;
    let was_there = secrets.remove(name.as_str()).is_some();
    Ok(was_there.then(|| document.to_string()))
}

/// Formats a placement as TOML.
fn value(placement: &Placement) -> Value {
    let table = |pairs: &[(&str, &str)]| -> Value {
        let pairs = pairs.iter().filter(|(_, text)| !text.is_empty());
        pairs.map(|(key, text)| (*key, *text)).collect::<InlineTable>().into()
    };
    match placement {
        Placement::Bearer => "bearer".into(),
        Placement::Basic { user: None } => "basic".into(),
        Placement::Basic { user: Some(user) } => table(&[("basic", user)]),
        Placement::Header { name, prefix } => table(&[("header", name), ("prefix", prefix)]),
        Placement::Query { name } => table(&[("query", name)]),
        Placement::Path { text } => table(&[("path", text)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SecretName {
        SecretName::new("github").unwrap()
    }

    #[test]
    fn writing_a_secret_keeps_existing_content() {
        let (name, to) = (name(), ["https://api.github.com/**".to_owned()]);
        let changes = Changes {
            name: &name,
            source: &SecretSource::Store,
            to: Some((&to, false)),
            placement: None,
            placeholder: None,
            store: Some("key-file"),
        };
        let text = changes.apply("# Mine.\n[limits]\ntime = \"5s\" # enough\n").unwrap();
        assert_eq!(
            text,
            "# Mine.\n[limits]\ntime = \"5s\" # enough\n\n[secret_store]\nkind = \"key-file\"\n\n\
             [secrets.github]\nto = [\"https://api.github.com/**\"]\n"
        );
        let command = ["pass", "show"].map(str::to_owned).to_vec();
        let changes = Changes {
            source: &SecretSource::Command(command),
            to: None,
            placement: Some(&Placement::header("X-Key", "").unwrap()),
            store: None,
            ..changes
        };
        let text = changes.apply(&text).unwrap();
        assert!(text.ends_with(
            "[secrets.github]\nto = [\"https://api.github.com/**\"]\ncommand = [\"pass\", \"show\"]\n\
             as = { header = \"x-key\" }\n"
        ), "{text}");
        let text = without(&text, &name).unwrap().unwrap();
        assert_eq!(
            text,
            "# Mine.\n[limits]\ntime = \"5s\" # enough\n\n[secret_store]\nkind = \"key-file\"\n"
        );
        assert_eq!(without(&text, &name).unwrap(), None);
    }

    #[test]
    fn changed_value_keeps_its_comment() {
        let (name, to) = (name(), ["https://a.example/**".to_owned()]);
        let changes = Changes {
            name: &name,
            source: &SecretSource::Store,
            to: Some((&to, false)),
            placement: None,
            placeholder: Some(&["body"]),
            store: None,
        };
        let text = "[secrets]\ngithub = { variable = \"A\", to = [] } # mine\n";
        let text = changes.apply(text).unwrap();
        assert_eq!(
            text,
            "[secrets]\ngithub = { to = [\"https://a.example/**\"], placeholder = [\"body\"] } # mine\n"
        );
        assert!(matches!(changes.apply("secrets = 1"), Err(EditError::Form(_))));
        assert!(matches!(changes.apply("="), Err(EditError::Syntax(_))));
    }
}
