//! The questions of tools: preset answers, the front end, and limits.

use kitbag_config::{Origin, Sourced};
use kitbag_contract::{Answer, Outcome, Question};
use serde_json::json;

use super::fake::{Fake, Person, question, typed};
use crate::{CallOutcome, Invocation, Reply};

/// A tool that asks `question` until it has an answer.
fn asking(asked: Question) -> Fake {
    Fake::new().tool("it", move |call| {
        let outcome = match call.answers().get(&asked.id) {
            Some(answer) => Outcome::Success(answer.to_string()),
            None => Outcome::NeedsInput(asked.clone()),
        };
        Box::pin(async move { outcome })
    })
}

#[test]
fn a_preset_answer_is_used_without_a_question() {
    let fake = asking(question("sure"));
    let answer = Sourced { value: Answer::Text("yes".into()), origin: Origin::Model };
    let invocation = Invocation::tool("it", json!({})).with_answers([("sure".to_owned(), answer)]);
    let mut person = Person::default();
    let Ok(CallOutcome::Completed(call)) = fake.call(invocation, &mut person) else { panic!() };
    assert!(matches!(call.completion.result, Ok(Outcome::Success(said)) if said == "true"));
    assert!(person.asked.is_empty());
}

#[test]
fn consent_is_not_given_by_a_model() {
    let fake = asking(Question { is_consent: true, ..question("sure") });
    let answer = Sourced { value: Answer::Text("yes".into()), origin: Origin::Model };
    let invocation = Invocation::tool("it", json!({})).with_answers([("sure".to_owned(), answer)]);
    let mut person = Person::typing(&["no"]);
    let Ok(CallOutcome::Completed(call)) = fake.call(invocation, &mut person) else { panic!() };
    assert!(matches!(call.completion.result, Ok(Outcome::Success(said)) if said == "false"));
    assert_eq!(person.asked.len(), 1);
}

#[test]
fn a_question_is_repeated_if_its_answer_does_not_fit() {
    let fake = asking(question("sure"));
    let mut person = Person::typing(&["perhaps", "yes"]);
    assert_eq!(fake.say("it", json!({}), &mut person), "true");
    assert!(person.asked[0].1.is_none() && person.asked[1].1.is_some());
    let mut person = Person::typing(&["perhaps", "maybe", "yes"]);
    let said = fake.say("it", json!({}), &mut person);
    assert!(said.starts_with("Answer: the answer to `sure` "), "{said}");
    assert_eq!(person.asked.len(), 2);
}

#[test]
fn open_questions_suspend_and_declined_questions_end_a_call() {
    let fake = asking(question("sure"));
    for (reply, expected) in [
        (Reply::Unanswered, "asks sure"),
        (Reply::NobodyToAsk, "asks sure"),
        (
            Reply::Declined,
            "Declined: the user declined to answer `sure` (Really?); nothing was done",
        ),
        (Reply::Dismissed, "Declined: the user dismissed `sure` (Really?); nothing was done"),
    ] {
        assert_eq!(fake.say("it", json!({}), &mut Person::replying([reply])), expected);
    }
}

#[test]
fn a_question_names_the_tool_that_asks() {
    let fake = asking(question("sure"));
    let mut person = Person::typing(&["yes"]);
    fake.say("it", json!({}), &mut person);
    assert_eq!(person.asked[0].0.asker.as_deref(), Some("it"));
}

#[test]
fn the_same_question_is_not_asked_twice() {
    let fake =
        Fake::new().tool("it", |_| Box::pin(async { Outcome::NeedsInput(question("sure")) }));
    let mut person = Person::typing(&["yes", "yes"]);
    let said = fake.say("it", json!({}), &mut person);
    assert_eq!(said, "Contract: the tool asks `sure` again although it was answered");
}

#[test]
fn a_tool_asks_at_most_a_hundred_questions() {
    let fake = Fake::new().tool("it", |call| {
        let id = format!("q{}", call.answers().len());
        Box::pin(async move { Outcome::NeedsInput(question(&id)) })
    });
    let mut person = Person::replying((0..200).map(|_| typed("yes", Origin::Caller)));
    let said = fake.say("it", json!({}), &mut person);
    assert_eq!(said, "Contract: the tool asked more than 100 questions");
    assert_eq!(person.asked.len(), 100);
}
