//! The audit lines of calls.

use std::future::pending;
use std::task::{Context, Poll, Waker};

use kitbag_contract::{ErrorInfo, Outcome};
use serde_json::json;

use super::fake::{Fake, Person, question};
use crate::{CallContext, Caller, Invocation, NativeCall};

fn answering(outcome: Outcome) -> Fake {
    Fake::new().tool("it", move |_: NativeCall<'_>| {
        let outcome = outcome.clone();
        Box::pin(async move { outcome })
    })
}

/// Returns the line of a call's end.
fn end(fake: &Fake) -> String {
    fake.audit().into_iter().find(|line| line.starts_with("call ")).unwrap_or_default()
}

#[test]
fn each_outcome_has_its_own_words_in_the_log() {
    for (outcome, expected) in [
        (Outcome::Success("a secret text".into()), "success"),
        (Outcome::Error(ErrorInfo::new("a secret text")), "error"),
        (Outcome::NeedsInput(question("sure")), "suspended"),
    ] {
        let fake = answering(outcome);
        fake.say("it", json!({}), &mut Person::default());
        assert_eq!(end(&fake), format!("call it by program test: {expected}"));
    }
    let fake = answering(Outcome::Success(String::new()));
    fake.say("it", json!([]), &mut Person::default());
    assert_eq!(end(&fake), "call it by program test: refused arguments");
}

#[test]
fn an_approval_is_logged_between_its_question_and_the_start() {
    let fake = answering(Outcome::Success(String::new())).approved_always("it");
    fake.say("it", json!({}), &mut Person::typing(&["yes"]));
    assert_eq!(
        fake.audit(),
        ["approval it: asked", "approval it: yes", "start it", "call it by program test: success",]
    );
    let fake = answering(Outcome::Success(String::new())).approved_always("it");
    fake.say("it", json!({}), &mut Person::default());
    assert_eq!(
        fake.audit(),
        ["approval it: asked", "approval it: nobody", "call it by program test: refused approval",]
    );
}

#[test]
fn a_call_whose_future_is_dropped_is_logged() {
    let fake = Fake::new().tool("it", |_| Box::pin(pending()));
    let context = CallContext::new(Caller::Program("test".into()));
    let mut person = Person::default();
    let mut call =
        Box::pin(fake.toolbox.call(Invocation::tool("it", json!({})), context, &mut person));
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
    drop(call);
    assert_eq!(end(&fake), "call it by program test: cancelled");
}

#[test]
fn an_unknown_tool_name_is_not_logged() {
    let fake = answering(Outcome::Success(String::new()));
    let said = fake.say("ti", json!({}), &mut Person::default());
    assert_eq!(said, "UnknownTool: no tool is named `ti`");
    assert!(fake.audit().is_empty());
}
