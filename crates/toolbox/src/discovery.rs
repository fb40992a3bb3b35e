//! Ranked search over the definitions of tools, and an estimate of their tokens.
//!
//! The ranking is BM25 over weighted fields: names, titles, descriptions and parameters. Words are
//! split at the boundaries of identifiers and stemmed. A word of a query also matches its synonyms
//! and, if no tool has it, the words that differ by a typing mistake, both with a lower weight.
//!
//! Tools whose names start with the same word, as those of one MCP server do, form a group. Words
//! that many of them have, such as the name of a service, count for all of them.

mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use self::words::{Synonyms, words};

/// The text of a tool that the search reads.
#[derive(Clone, Copy, Debug)]
pub struct SearchedTool<'a> {
    /// The name for calls.
    pub name: &'a str,
    /// The display name.
    pub title: Option<&'a str>,
    /// The description.
    pub description: Option<&'a str>,
    /// The JSON Schema of the arguments.
    pub input_schema: &'a Value,
}

/// An index of tools.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// The weight of each word in each tool that has it.
    postings: HashMap<String, Vec<(usize, f64)>>,
    /// The words of each tool's name.
    names: Vec<Vec<String>>,
    /// The length of each tool relative to the average.
    lengths: Vec<f64>,
}

/// Weights of the fields.
const NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;
const PARAMETER: f64 = 0.4;
const GROUP: f64 = 0.6;

/// The share of the tools of a group that must have a word in their descriptions, so that the word
/// counts for all of them, and the minimum number of tools in a group.
const GROUP_SHARE: f64 = 0.25;
const GROUP_TOOLS: usize = 4;

/// The parameters of BM25: the saturation of repeated words, and the effect of the length.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.4;

/// Weights of matches that are not exact, relative to an exact match.
const SYNONYM: f64 = 0.5;
const TYPING_MISTAKE: f64 = 0.7;

/// The factor of a tool for each chosen tool with nearly the same name, and the number of tools to
/// choose from, as a multiple of the number of hits.
const ALIKE: f64 = 0.85;
const CANDIDATES: usize = 6;

/// Maximum number of words of a query. The rest is ignored.
const QUERY_WORDS: usize = 32;

/// Maximum number of words of a tool, and levels of its schema.
const TOOL_WORDS: usize = 4_000;
const SCHEMA_DEPTH: usize = 6;

impl SearchIndex {
    /// Creates an index. Hits are positions in `tools`.
    pub fn new<'a>(tools: impl IntoIterator<Item = SearchedTool<'a>>) -> Self {
        let mut index = Self::default();
        let tools: Vec<_> = tools.into_iter().collect();
        let groups = groups(&tools);
        for (at, tool) in tools.iter().enumerate() {
            let mut weights: BTreeMap<String, f64> = BTreeMap::new();
            let mut length = 0.0;
            let mut add = |text: &str, weight: f64| {
                for word in words(text).take(TOOL_WORDS) {
                    *weights.entry(word).or_default() += weight;
                    length += weight;
                }
            };
            add(tool.name, NAME);
            add(tool.title.unwrap_or_default(), TITLE);
            add(tool.description.unwrap_or_default(), DESCRIPTION);
            parameters(tool.input_schema, SCHEMA_DEPTH, &mut |text| add(text, PARAMETER));
            let group = group_of(tool.name).and_then(|group| groups.get(&group));
            for word in group.into_iter().flatten() {
                let weight = weights.entry(word.clone()).or_default();
                *weight = weight.max(GROUP);
            }
            for (word, weight) in weights {
                index.postings.entry(word).or_default().push((at, weight));
            }
            index.names.push(words(tool.name).collect());
            index.lengths.push(length);
        }
        let average = index.lengths.iter().sum::<f64>() / index.lengths.len().max(1) as f64;
        index.lengths.iter_mut().for_each(|length| *length /= average.max(1.0));
        index
    }

    /// Returns the positions of the best tools for a query, the best first. Tools of equal rank are
    /// in their original order. Empty if no word matches.
    pub fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let mut asked: Vec<Vec<String>> = Vec::new();
        for word in Synonyms::get().query(query) {
            if !asked.contains(&word) && asked.len() < QUERY_WORDS {
                asked.push(word);
            }
        }
        let mut scores = vec![0.0; self.lengths.len()];
        let mut matched = vec![0.0; self.lengths.len()];
        // The words that match exactly, for the comparison with names.
        let mut known: Vec<String> = Vec::new();
        let mut total = 0.0;
        for meanings in &asked {
            let mut variants = Vec::new();
            for word in meanings {
                variants.extend(self.variants(word));
            }
            known.extend(variants.iter().map(|(variant, _)| variant.clone()));
            let rarity = variants.first().map_or(0.0, |(variant, _)| self.rarity(variant));
            total += rarity;
            // Each tool has the best of its matches for a word.
            let mut best: HashMap<usize, (f64, f64)> = HashMap::new();
            for (variant, closeness) in variants {
                let rarity = self.rarity(&variant).min(rarity.max(1.0));
                for (at, weight) in self.postings.get(&variant).into_iter().flatten() {
                    let norm = SATURATION * (1.0 - LENGTH + LENGTH * self.lengths[*at]);
                    let score = closeness * rarity * weight * (SATURATION + 1.0) / (weight + norm);
                    let entry = best.entry(*at).or_insert((0.0, 0.0));
                    entry.0 = entry.0.max(score);
                    entry.1 = entry.1.max(closeness);
                }
            }
            for (at, (score, closeness)) in best {
                scores[at] += score;
                matched[at] += closeness * rarity;
            }
        }
        let mut hits: Vec<_> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        let rank = |at: usize| {
            // Prefers tools that match all of the query, and names without further words.
            let coverage = matched[at] / f64::max(total, f64::MIN_POSITIVE);
            let name = &self.names[at];
            let named = name.iter().filter(|word| known.contains(word)).count();
            let named = named as f64 / name.len().max(1) as f64;
            scores[at] * (0.5 + 0.5 * coverage) * (1.0 + 0.4 * named)
        };
        let ranks: Vec<_> = (0..scores.len()).map(rank).collect();
        hits.sort_by(|one, other| ranks[*other].total_cmp(&ranks[*one]).then(one.cmp(other)));
        self.diverse(&hits, &ranks, limit)
    }

    /// Chooses the best of the ranked tools. A tool ranks lower for each chosen tool that differs
    /// only in one word of the name, as `create_issue` and `delete_issue` do: the verbs of one
    /// object would otherwise fill the list.
    fn diverse(&self, ranked: &[usize], ranks: &[f64], limit: usize) -> Vec<usize> {
        let mut rest: Vec<_> = ranked.iter().take(limit.saturating_mul(CANDIDATES)).collect();
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < limit && !rest.is_empty() {
            let lowered = |at: usize| {
                let alike = chosen.iter().filter(|other| self.is_alike(at, **other)).count();
                ranks[at] * ALIKE.powi(i32::try_from(alike).unwrap_or(i32::MAX))
            };
            let (mut best, mut most) = (0, f64::MIN);
            for (place, at) in rest.iter().enumerate() {
                let rank = lowered(**at);
                if rank > most {
                    (best, most) = (place, rank);
                }
            }
            chosen.push(*rest.remove(best));
        }
        chosen
    }

    /// Returns whether the names of two tools differ in at most one word.
    fn is_alike(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.names[one], &self.names[other]);
        let common = one.iter().filter(|word| other.contains(word)).count();
        common > 0 && common + 1 >= one.len().max(other.len())
    }

    /// Returns the words that match a word of a query, each with its closeness; the word itself
    /// first. Empty if no tool has any of them.
    fn variants(&self, word: &str) -> Vec<(String, f64)> {
        let mut variants = Vec::new();
        let mut add = |variant: &str, closeness: f64| {
            let is_new = variants.iter().all(|(known, _): &(String, f64)| known != variant);
            if is_new && self.postings.contains_key(variant) {
                variants.push((variant.to_owned(), closeness));
            }
        };
        add(word, 1.0);
        for synonym in Synonyms::get().of(word) {
            add(synonym, SYNONYM);
        }
        if !variants.is_empty() {
            return variants;
        }
        // A typing mistake: the closest words, and all of them if there are several.
        let mistakes = match word.chars().count() {
            0..=3 => return variants,
            4..=6 => 1,
            _ => 2,
        };
        let distances = self.postings.keys().filter_map(|known| {
            let distance = match known.len().abs_diff(word.len()) > mistakes {
                true if word.len() >= 4 && known.starts_with(word) => 1,
                true => return None,
                false => strsim::damerau_levenshtein(word, known),
            };
            (distance <= mistakes).then_some((distance, known))
        });
        let mut distances: Vec<_> = distances.collect();
        distances.sort();
        let least = distances.first().map_or(0, |(distance, _)| *distance);
        let closest = distances.into_iter().take_while(|(distance, _)| *distance == least);
        for (_, known) in closest.take(4) {
            variants.push((known.clone(), TYPING_MISTAKE));
            for synonym in Synonyms::get().of(known) {
                if self.postings.contains_key(synonym) {
                    variants.push((synonym.clone(), TYPING_MISTAKE * SYNONYM));
                }
            }
        }
        variants
    }

    /// Returns the inverse document frequency of a word.
    fn rarity(&self, word: &str) -> f64 {
        let (all, with) = (self.lengths.len(), self.postings.get(word).map_or(0, Vec::len));
        (1.0 + (all as f64 - with as f64 + 0.5) / (with as f64 + 0.5)).ln()
    }
}

/// Returns the first word of a name, which names the group of a tool.
fn group_of(name: &str) -> Option<String> {
    let end = name.find(|c: char| !c.is_alphanumeric())?;
    words(&name[..end]).next()
}

/// Returns the words that count for all tools of each group.
fn groups(tools: &[SearchedTool<'_>]) -> HashMap<String, Vec<String>> {
    let mut groups: HashMap<String, (usize, BTreeMap<String, usize>)> = HashMap::new();
    for tool in tools {
        let Some(group) = group_of(tool.name) else { continue };
        let (count, with) = groups.entry(group).or_default();
        *count += 1;
        let found: BTreeSet<_> =
            words(tool.description.unwrap_or_default()).take(TOOL_WORDS).collect();
        for word in found {
            *with.entry(word).or_default() += 1;
        }
    }
    groups.retain(|_, (count, _)| *count >= GROUP_TOOLS);
    let common = groups.into_iter().map(|(group, (count, with))| {
        let is_common = |with: usize| with as f64 >= count as f64 * GROUP_SHARE;
        let words = with.into_iter().filter(|(_, with)| is_common(*with)).map(|(word, _)| word);
        (group, words.collect())
    });
    common.collect()
}

/// Passes the names, descriptions and values of the parameters in a schema.
fn parameters(schema: &Value, depth: usize, add: &mut impl FnMut(&str)) {
    let (Value::Object(schema), Some(depth)) = (schema, depth.checked_sub(1)) else { return };
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    add(name);
                    parameters(property, depth, add);
                }
            }
            ("description" | "title", Value::String(text)) => add(text),
            ("enum", Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).for_each(&mut *add);
            }
            ("items", value) => parameters(value, depth, add),
            ("anyOf" | "oneOf" | "allOf", Value::Array(parts)) => {
                parts.iter().for_each(|part| parameters(part, depth, add));
            }
            _ => {}
        }
    }
}

/// Estimates the tokens of a text for a model: a quarter of its bytes, rounded up.
///
/// The definitions of the built-ins have 3.95 bytes for each token of the encoding `o200k`. Other
/// encodings differ by up to a fifth, and text in other alphabets by more.
pub fn estimated_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(tools: &[(&str, &str)]) -> SearchIndex {
        SearchIndex::new(tools.iter().map(|(name, description)| SearchedTool {
            name,
            title: None,
            description: Some(description),
            input_schema: &Value::Null,
        }))
    }

    #[test]
    fn names_rank_above_descriptions() {
        let index = index(&[("other", "May create an issue."), ("createIssue", "Files a bug.")]);
        assert_eq!(index.search("create issue", 5), [1, 0]);
    }

    #[test]
    fn synonyms_and_typing_mistakes_match() {
        let index = index(&[("delete_file", ""), ("calendar_list", ""), ("kubernetes_logs", "")]);
        assert_eq!(index.search("remove files", 1), [0]);
        assert_eq!(index.search("calender", 5), [1]);
        assert_eq!(index.search("kubernets", 5), [2]);
        assert_eq!(index.search("qqqqqq", 5), Vec::<usize>::new());
        assert_eq!(index.search("", 5), Vec::<usize>::new());
    }

    #[test]
    fn words_of_a_group_match_all_of_its_tools() {
        let index = index(&[
            ("gdrive_find", "Finds files by name"),
            ("gdrive_add", "Adds a file to Google Drive"),
            ("gdrive_move", "Moves a file in Google Drive"),
            ("gdrive_copy", "Copies a file in Google Drive"),
            ("local_find", "Finds files by name"),
        ]);
        assert_eq!(index.search("find a file in google drive", 1), [0]);
    }

    #[test]
    fn verbs_of_two_words_and_wider_words_match() {
        let index = index(&[
            ("zoom_update_meeting", ""),
            ("zoom_create_meeting", ""),
            ("convert_currency", ""),
            ("convert_image", ""),
        ]);
        assert_eq!(index.search("set up a meeting", 1), [1]);
        assert_eq!(index.search("set the meeting", 1), [0]);
        assert_eq!(index.search("convert dollars", 1), [2]);
        assert_eq!(index.search("dollar", 5), [2]);
    }

    #[test]
    fn parameters_are_searched() {
        let schema = serde_json::json!({
            "properties": { "zone": { "enum": ["Paris"], "description": "The local hour" } },
        });
        let tool =
            SearchedTool { name: "a", title: None, description: None, input_schema: &schema };
        let index = SearchIndex::new([tool]);
        for query in ["zone", "paris", "hours"] {
            assert_eq!(index.search(query, 5), [0], "{query}");
        }
    }

    #[test]
    fn long_queries_and_deep_schemas_are_bounded() {
        let mut schema = serde_json::json!({ "description": "w3" });
        for _ in 0..100 {
            schema = serde_json::json!({ "items": schema });
        }
        let tool =
            SearchedTool { name: "a", title: None, description: None, input_schema: &schema };
        let index = SearchIndex::new([tool]);
        let query: String = (0..100_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(index.search(&query, 5), Vec::<usize>::new());
    }
}
