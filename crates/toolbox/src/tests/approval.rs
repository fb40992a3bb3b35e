//! The order of the steps before a run, and approval by a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kitbag_config::{Audience, Origin, Sourced, ToolRate};
use kitbag_contract::{ErrorKind, Outcome};
use serde_json::json;

use super::fake::{Fake, Person, typed};
use crate::{CallOutcome, Caller, Invocation, Reply};

/// A tool that counts its runs and returns its arguments.
fn counting(schema: serde_json::Value) -> (Fake, Arc<AtomicUsize>) {
    let runs = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&runs);
    let fake = Fake::new().tool_with("it", schema, move |call| {
        count.fetch_add(1, Ordering::Relaxed);
        let arguments = json!(call.arguments()).to_string();
        Box::pin(async move { Outcome::Success(arguments) })
    });
    (fake, runs)
}

#[test]
fn arguments_are_coerced_before_a_person_approves_them() {
    let (fake, _) = counting(json!({
        "type": "object",
        "properties": { "times": { "type": "integer" }, "text": { "type": "string", "default": "a" } },
        "required": ["times"],
    }));
    let fake = fake.approved_always("it");
    let mut person = Person::typing(&["yes"]);
    let said = fake.say("it", json!({ "times": "3" }), &mut person);
    assert_eq!(said, r#"{"times":3,"text":"a"}"#);
    let approval = person.asked[0].0.approval.as_ref().unwrap();
    assert!(approval.line.contains(r#""times":3"#), "{}", approval.line);
}

#[test]
fn invalid_arguments_are_refused_without_a_question() {
    let schema = json!({
        "type": "object",
        "properties": { "times": { "type": "integer" } },
        "required": ["times"],
    });
    let (fake, runs) = counting(schema);
    let mut person = Person::typing(&["yes"]);
    let said = fake.approved_always("it").say("it", json!({ "times": "many" }), &mut person);
    assert!(said.starts_with("Arguments: invalid arguments for `it`\n  `/times`: "), "{said}");
    assert!(person.asked.is_empty());
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[test]
fn an_approval_is_for_one_call_unless_it_is_always() {
    let (fake, runs) = counting(json!({ "type": "object" }));
    let fake = fake.approved_always("it");
    let mut person = Person::typing(&["no", "yes", "always", "no"]);
    let mut say = |number: u32| fake.say("it", json!({ "n": number }), &mut person);
    assert_eq!(
        say(1),
        "Approval: the call of `it` was not approved: the user declined; nothing was done"
    );
    assert_eq!(say(1), r#"{"n":1}"#);
    assert_eq!(say(1), r#"{"n":1}"#);
    assert_eq!(say(1), r#"{"n":1}"#, "always allows the same call");
    assert!(say(2).starts_with("Approval: "), "other arguments are another call");
    assert_eq!(person.asked.len(), 4);
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[test]
fn an_approval_does_not_cover_another_caller() {
    let (fake, runs) = counting(json!({ "type": "object" }));
    let fake = fake.approved_always("it");
    let say = |caller: Caller, answer: &str| {
        let mut person = Person::typing(&[answer]);
        let said = fake.say_as(caller, "it", json!({}), &mut person);
        (said == "{}", person.asked.len())
    };
    let ann = Caller::Person("ann".into());
    assert_eq!(say(ann.clone(), "always"), (true, 1));
    assert_eq!(say(ann, "no"), (true, 0), "`always` covers the same call");
    // Another person, and callers of another kind with the same name.
    for other in [
        Caller::Person("ben".into()),
        Caller::Client("ann".into()),
        Caller::Program("ann".into()),
        Caller::User("ann".into()),
    ] {
        assert_eq!(say(other.clone(), "no"), (false, 1), "{other}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[test]
fn a_model_cannot_approve_a_call() {
    let (fake, runs) = counting(json!({ "type": "object" }));
    let fake = fake.approved_always("it");
    let mut person = Person::replying([typed("yes", Origin::Model)]);
    let said = fake.call(Invocation::tool("it", json!({})), &mut person);
    assert!(matches!(said, Ok(CallOutcome::Suspended(_))));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[test]
fn declining_and_closing_an_approval_refuse_the_call() {
    for reply in [Reply::Declined, Reply::Dismissed] {
        let (fake, runs) = counting(json!({ "type": "object" }));
        let mut person = Person::replying([reply]);
        let said = fake.approved_always("it").say("it", json!({}), &mut person);
        assert!(said.starts_with("Approval: "), "{said}");
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_model_does_not_read_how_to_remove_an_approval() {
    let (fake, _) = counting(json!({ "type": "object" }));
    let fake = fake.approved_always("it");
    let ended = fake.call(Invocation::tool("it", json!({})), &mut Person::default());
    let Err(error) = ended else { panic!("it was made") };
    assert_eq!(error.kind(), ErrorKind::Approval);
    assert!(error.message_for(Audience::Person, None).contains("`approve = \"never\"`"));
    assert_eq!(
        error.message_for(Audience::Model, None),
        "the call of `it` needs the approval of a person, but no person can be asked; nothing was \
         done"
    );
}

#[test]
fn a_call_beyond_its_rate_is_refused_without_a_question() {
    let (fake, runs) = counting(json!({ "type": "object" }));
    let fake = fake.approved_always("it").configured(|config| {
        let tool = config.tools.values_mut().next().unwrap();
        let rates = Sourced { value: "2/h".parse().unwrap(), origin: Origin::Default };
        tool.rates = vec![ToolRate { rates, counted_as: tool.name.clone() }];
    });
    let mut person = Person::typing(&["yes", "yes", "yes"]);
    for _ in 0..2 {
        assert_eq!(fake.say("it", json!({}), &mut person), "{}");
    }
    let Err(error) = fake.call(Invocation::tool("it", json!({})), &mut person) else {
        panic!("it was made")
    };
    assert_eq!(error.kind(), ErrorKind::Rate);
    assert!(error.kind().is_transient());
    assert_eq!((person.asked.len(), runs.load(Ordering::Relaxed)), (2, 2));
}
