//! The search over many tools, with questions that were written without looking at the ranking.

#[path = "../../../../tests/discovery/corpus.rs"]
mod corpus;

use crate::discovery::{SearchIndex, SearchedTool};

#[test]
fn the_right_tool_is_among_the_first_five() {
    let tools = corpus::tools();
    let searched = tools.iter().map(|tool| SearchedTool {
        name: &tool.name,
        title: tool.title.as_deref(),
        description: Some(&tool.description),
        input_schema: &tool.input_schema,
    });
    let index = SearchIndex::new(searched);
    let questions = corpus::questions();
    assert_eq!((tools.len() >= 1_000, questions.len()), (true, 200));
    let mut missed = Vec::new();
    for (question, expected) in &questions {
        for id in expected {
            assert!(tools.iter().any(|tool| tool.id == *id), "no tool has the id `{id}`");
        }
        let hits: Vec<_> =
            index.search(question, 5).into_iter().map(|at| tools[at].id.as_str()).collect();
        if !hits.iter().any(|hit| expected.contains(hit)) {
            missed.push(format!("{question}: {expected:?}, found {hits:?}"));
        }
    }
    // 97 percent are found.
    assert!(missed.len() * 100 <= questions.len() * 3, "{}:\n{}", missed.len(), missed.join("\n"));
}
