//! Indexes of tools: one JSON file, or an artifact with that file, which anyone can host.

use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use serde::Deserialize;

use crate::artifact::title;
use crate::error::RegistryError;
use crate::manifest::Pulled;
use crate::reference::Reference;
use crate::registry::Registry;

/// The media type of an index, and of its artifact.
pub const INDEX_TYPE: &str = "application/vnd.kitbag.index.v1+json";

/// The largest index.
const MOST_BYTES: ByteSize = ByteSize::mib(8);

/// The most tools of an index.
const MOST_TOOLS: usize = 50_000;

/// An index of tools.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    version: u64,
    /// The tools in their given order.
    pub tools: Vec<IndexEntry>,
}

/// A tool in an index.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct IndexEntry {
    /// The name.
    pub name: String,
    /// The reference for `kitbag add`.
    pub reference: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// Words that the tool is also found by.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl Index {
    /// The largest index, in bytes.
    pub const MOST_BYTES: ByteSize = MOST_BYTES;

    /// Parses an index.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] names the index and the mistake.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, RegistryError> {
        let invalid = |problem: String| RegistryError::invalid(name, problem);
        let index: Self =
            serde_json::from_slice(bytes).map_err(|error| invalid(error.to_string()))?;
        if index.version != 1 {
            let problem = format!("it has the version {}, but kitbag reads 1", index.version);
            return Err(invalid(problem));
        }
        if index.tools.len() > MOST_TOOLS {
            return Err(invalid(format!("it has more than {MOST_TOOLS} tools")));
        }
        for tool in &index.tools {
            match Reference::parse(&tool.reference) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(invalid(error.to_string())),
                None => {
                    return Err(invalid(format!(
                        "`{}` is not a reference",
                        shown(&tool.reference)
                    )));
                }
            }
        }
        Ok(index)
    }

    /// Returns the tools in which every word occurs, best first: in the name, then in a tag, then in
    /// the description. Case is ignored.
    pub fn find(&self, words: &[String]) -> Vec<&IndexEntry> {
        let words: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
        let rank = |tool: &IndexEntry| {
            let name = tool.name.to_lowercase();
            let tags: Vec<_> = tool.tags.iter().map(|tag| tag.to_lowercase()).collect();
            let text = tool.description.to_lowercase();
            let ranks = words.iter().map(|word| match () {
                () if name == *word => Some(0),
                () if name.contains(&**word) => Some(1),
                () if tags.iter().any(|tag| tag == word) => Some(2),
                () if text.contains(&**word) => Some(3),
                () => None,
            });
            ranks.sum::<Option<u64>>()
        };
        let found = self.tools.iter().filter_map(|tool| Some((rank(tool)?, tool)));
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, tool)| tool).collect()
    }
}

impl Registry<'_> {
    /// Reads the index in an artifact: its only layer, or the layer with its media type.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if the artifact contains no index.
    pub fn index(&self, pulled: &Pulled) -> Result<Index, RegistryError> {
        let layers = pulled.manifest.layers();
        let is_index = |layer: &&oci_spec::image::Descriptor| {
            layer.media_type().to_string() == INDEX_TYPE
                || layers.len() == 1 && title(layer).is_some_and(|name| name.ends_with(".json"))
        };
        let layer = layers
            .iter()
            .find(is_index)
            .ok_or_else(|| RegistryError::invalid(&*pulled.url, "it contains no index of tools"))?;
        let bytes = self.layer(&pulled.url, layer, MOST_BYTES)?;
        Index::parse(&pulled.url, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_all_words() {
        let text = br#"{"version": 1, "tools": [
            {"name": "count", "reference": "oci://a.example/count:1", "description": "Count words"},
            {"name": "words", "reference": "oci://a.example/words:1", "tags": ["text"]},
            {"name": "text", "reference": "wasi:text@1.0.0"}]}"#;
        let index = Index::parse("index.json", text).unwrap();
        let names = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            index.find(&words).iter().map(|tool| &*tool.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["count", "words", "text"]);
        assert_eq!(names(&["WORDS"]), ["words", "count"]);
        assert_eq!(names(&["text"]), ["text", "words"]);
        assert_eq!(names(&["count", "words"]), ["count"]);
        assert!(names(&["nothing"]).is_empty());
    }

    #[test]
    fn mistakes_of_indexes_are_named() {
        let check = |text: &str, expected: &str| {
            let error = Index::parse("index.json", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("{}", "missing field");
        check(r#"{"version": 2, "tools": []}"#, "kitbag reads 1");
        let tool = |reference: &str| {
            format!(r#"{{"version": 1, "tools": [{{"name": "a", "reference": "{reference}"}}]}}"#)
        };
        check(&tool("../evil.wasm"), "is not a reference");
        check(&tool("oci://a.example/b"), "names no version");
        check(&tool("https://a.example/b.wasm"), "has no digest");
    }
}
