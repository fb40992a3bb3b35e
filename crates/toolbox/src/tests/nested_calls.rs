//! Inner calls.

use kitbag_contract::{ErrorInfo, Outcome};
use serde_json::json;

use super::fake::{BoxedWork, Fake, Person, question};
use crate::{CALL_DEPTH, Invocation, NativeCall};

/// Calls a tool and returns its answer.
fn forward<'a>(call: NativeCall<'a>, tool: &'static str) -> BoxedWork<'a> {
    Box::pin(async move {
        match call.call(Invocation::tool(tool, json!({}))).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Error(ErrorInfo::new(format!("{:?}: {error}", error.kind()))),
        }
    })
}

#[test]
fn the_caller_of_an_inner_call_is_the_outer_tool() {
    let fake = Fake::new()
        .tool("inner", |call| {
            let caller = call.caller().to_string();
            Box::pin(async move { Outcome::Success(caller) })
        })
        .tool("outer", |call| forward(call, "inner"));
    assert_eq!(fake.say("outer", json!({}), &mut Person::default()), "tool outer");
}

#[test]
fn calls_are_nested_up_to_the_maximum_depth() {
    let fake = Fake::new().tool("it", |call| forward(call, "it"));
    let said = fake.say("it", json!({}), &mut Person::default());
    let expected = format!(
        "error: Depth: nested calls are limited to {CALL_DEPTH} levels (called from tool it)"
    );
    assert_eq!(said, expected);
    let refused = fake.audit().iter().filter(|line| line.contains("depth")).count();
    assert_eq!(refused, 1, "{:#?}", fake.audit());
}

#[test]
fn an_inner_call_of_native_code_cannot_be_approved() {
    let fake = Fake::new()
        .tool("inner", |_| Box::pin(async { Outcome::Success("done".into()) }))
        .tool("outer", |call| forward(call, "inner"))
        .approved_always("inner");
    let mut person = Person::typing(&["yes"]);
    let said = fake.say("outer", json!({}), &mut person);
    assert!(said.starts_with("error: Approval: the call of `inner` needs the approval"), "{said}");
    assert!(person.asked.is_empty());
}

#[test]
fn the_question_of_an_inner_call_is_its_outcome() {
    let fake = Fake::new()
        .tool("inner", |_| Box::pin(async { Outcome::NeedsInput(question("sure")) }))
        .tool("outer", |call| {
            let work = forward(call, "inner");
            Box::pin(async move {
                match work.await {
                    Outcome::NeedsInput(question) => Outcome::Success(question.id),
                    outcome => outcome,
                }
            })
        });
    assert_eq!(fake.say("outer", json!({}), &mut Person::default()), "sure");
}
