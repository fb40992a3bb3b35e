//! Calls over a real NATS server: one answer each, and no repeated effect.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kitbag_cluster::{FrontEndOptions, Identity, Names, Priority, Queue, QueueOptions, Root};
use kitbag_contract::{ErrorKind, ToolName};
use kitbag_host::RunContext;
use kitbag_test_servers::NatsServer;
use kitbag_toolbox::{Caller, RemoteEnd, RemoteRunner as _, ToolboxError};
use serde_json::{Map, json};

use support::{Cluster, call, kind_of, text_of};

#[test]
fn a_call_runs_on_a_worker_and_returns_its_answer() {
    let cluster = Cluster::start();
    let worker = cluster.worker(1);
    let end = cluster.call("echo", r#"{"text":"hello"}"#);
    assert_eq!(text_of(&end), r#"{"text":"hello"}"#);
    assert_eq!(worker.counts().answered, 1);
}

#[test]
fn a_worker_killed_before_an_effect_is_replaced() {
    let cluster = Cluster::start();
    let first = cluster.worker(1);
    let pending = cluster.begin("act", r#"{"before":60000}"#);
    first.wait_for_run();
    first.kill();
    let _second = cluster.worker_with(1, |effects| effects.skip_waits = true);
    let end = pending.end();
    assert_eq!(text_of(&end), "acted");
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_worker_killed_after_an_effect_is_not_replaced() {
    let cluster = Cluster::start();
    let first = cluster.worker(1);
    let pending = cluster.begin("act", r#"{"after":60000}"#);
    cluster.wait_for_effects(1);
    first.kill();
    let second = cluster.worker_with(1, |effects| effects.skip_waits = true);
    let end = pending.end();
    assert_eq!(kind_of(&end), Some(ErrorKind::MayHaveActed), "{end:?}");
    let Ok(RemoteEnd::Refused { message, .. }) = &end else { panic!("{end:?}") };
    assert!(message.contains("`act` may have changed or sent something"), "{message}");
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 1);
    assert_eq!(second.counts().ended, 1);
}

#[test]
fn an_idempotent_tool_runs_again_after_an_effect() {
    let cluster = Cluster::start();
    let first = cluster.worker(1);
    let pending = cluster.begin("put", r#"{"after":60000}"#);
    cluster.wait_for_effects(1);
    first.kill();
    let _second = cluster.worker_with(1, |effects| effects.skip_waits = true);
    assert_eq!(text_of(&pending.end()), "acted");
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 2);
}

#[test]
fn a_paused_worker_has_no_effect_after_it_was_replaced() {
    let cluster = Cluster::start();
    let first = cluster.worker(1);
    let pending = cluster.begin("act", r#"{"before":4000,"blocking":true}"#);
    first.wait_for_run();
    // The worker's runtime is blocked: it sends nothing, and the call is delivered again.
    let second = cluster.worker_with(1, |effects| effects.skip_waits = true);
    assert_eq!(text_of(&pending.end()), "acted");
    assert_eq!(second.counts().answered, 1);
    // The first worker wakes up and asks to act.
    let until = Instant::now() + Duration::from_secs(20);
    while first.counts().repeated + first.counts().answered == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(first.counts().answered, 0);
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_call_sent_twice_runs_once() {
    let cluster = Cluster::start();
    let _one = cluster.worker(2);
    let _two = cluster.worker(2);
    let first = call("act", "{}");
    let again = cluster.run(&cluster.front_end, first.clone());
    assert_eq!(text_of(&again), "acted");
    // Another front end sends the same call, beyond the server's own detection of duplicates.
    let second = cluster.another_front_end(FrontEndOptions::default());
    let repeated = cluster.run(&second, first);
    assert_eq!(text_of(&repeated), "acted");
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 1);
}

#[test]
fn two_front_ends_get_the_answers_to_their_own_calls() {
    let cluster = Cluster::start();
    let _worker = cluster.worker(4);
    let second = cluster.another_front_end(FrontEndOptions::default());
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| {
            (0..20).all(|n| {
                let arguments = format!(r#"{{"n":{n}}}"#);
                text_of(&cluster.call("echo", &arguments)) == arguments
            })
        });
        let theirs = scope.spawn(|| {
            (100..120).all(|n| {
                let arguments = format!(r#"{{"n":{n}}}"#);
                let end = cluster.run(&second, call("echo", &arguments));
                text_of(&end) == arguments
            })
        });
        assert!(ours.join().unwrap() && theirs.join().unwrap());
    });
    assert_eq!(second.counts().answered, 20);
    assert_eq!(cluster.front_end.counts().answered, 20);
}

#[test]
fn a_lost_answer_is_read_again_by_its_caller_only() {
    let cluster = Cluster::start();
    let _worker = cluster.worker(1);
    let first = call("echo", "{}");
    let id = first.id.parse().unwrap();
    let end = cluster.run(&cluster.front_end, first).unwrap();
    let again = |caller: &str| {
        let caller = Caller::Client(caller.into());
        cluster.runtime.block_on(cluster.front_end.recorded(&id, 0, &caller))
    };
    assert_eq!(again("test").unwrap(), Some(end));
    let error = again("other").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    let unknown = kitbag_cluster::CallId::random().unwrap();
    let caller = Caller::Client("test".into());
    let none = cluster.runtime.block_on(cluster.front_end.recorded(&unknown, 0, &caller));
    assert_eq!(none.unwrap(), None);
}

#[test]
fn a_question_suspends_the_call_and_holds_no_worker() {
    let cluster = Cluster::start();
    let worker = cluster.worker(1);
    let first = call("ask", "{}");
    let end = cluster.run(&cluster.front_end, first.clone()).unwrap();
    let RemoteEnd::Asks { question, answers } = end else { panic!("{end:?}") };
    assert_eq!((question.text.as_str(), answers.len()), ("Which one?", 0));
    assert_eq!(worker.running(), 0);
    // The only place is free for another call while the person thinks.
    assert_eq!(text_of(&cluster.call("echo", "{}")), "{}");
    drop(worker);
    let _other = cluster.worker(1);
    let mut next = first;
    next.round = 1;
    next.answers = Map::from_iter([("which".to_owned(), json!("this"))]);
    assert_eq!(text_of(&cluster.run(&cluster.front_end, next)), "this");
}

#[test]
fn a_deadline_passes_in_the_queue() {
    let cluster = Cluster::start();
    let options =
        FrontEndOptions { wait: Duration::from_millis(300), ..FrontEndOptions::default() };
    let front_end = cluster.another_front_end(options);
    let mut late = call("act", "{}");
    late.time = Duration::from_millis(100);
    let pending = cluster.begin_at(&front_end, late);
    std::thread::sleep(Duration::from_millis(400));
    let worker = cluster.worker(1);
    let end = pending.end();
    assert_eq!(kind_of(&end), Some(ErrorKind::Busy), "{end:?}");
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 0);
    assert_eq!(worker.counts().answered, 0);
}

#[test]
fn a_cancelled_call_ends_on_its_worker() {
    let cluster = Cluster::start();
    let worker = cluster.worker(1);
    let pending = cluster.begin("sleep", r#"{"before":60000}"#);
    worker.wait_for_run();
    pending.cancellation.cancel();
    let end = pending.end();
    assert_eq!(kind_of(&end), Some(ErrorKind::Cancelled), "{end:?}");
    worker.wait_for_idle();
    assert_eq!(worker.counts().answered, 0);
}

#[test]
fn a_call_cancelled_in_the_queue_does_not_run() {
    let cluster = Cluster::start();
    let pending = cluster.begin("act", "{}");
    cluster.wait_for_sent(1);
    pending.cancellation.cancel();
    assert_eq!(kind_of(&pending.end()), Some(ErrorKind::Cancelled));
    let worker = cluster.worker(1);
    let until = Instant::now() + Duration::from_secs(20);
    while worker.counts().repeated == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((worker.counts().repeated, worker.counts().answered), (1, 0));
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 0);
}

#[test]
fn a_forged_call_is_refused() {
    let cluster = Cluster::start();
    let worker = cluster.worker(1);
    // A front end whose key is not a member's.
    let forger = cluster.front_end_as(
        Identity::generate(),
        FrontEndOptions { wait: Duration::from_millis(500), ..FrontEndOptions::default() },
    );
    let mut forged = call("act", "{}");
    forged.time = Duration::from_millis(100);
    let end = cluster.run(&forger, forged);
    assert!(end.is_err() || kind_of(&end) == Some(ErrorKind::Busy), "{end:?}");
    // The call, and usually the cancellation after it.
    assert!(worker.counts().refused >= 1, "{:?}", worker.counts());
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 0);
    assert_eq!(worker.counts().answered, 0);
}

#[test]
fn an_answer_of_a_stranger_is_refused() {
    let cluster = Cluster::start();
    // A worker whose key is not a member's takes the call and answers.
    let liar = cluster.worker_as(Identity::generate(), 1);
    let options = FrontEndOptions { wait: Duration::from_secs(1), ..FrontEndOptions::default() };
    let front_end = cluster.another_front_end(options);
    let mut asked = call("echo", "{}");
    asked.time = Duration::from_millis(100);
    let end = cluster.run(&front_end, asked);
    assert!(matches!(end, Err(ToolboxError::Remote { .. })), "{end:?}");
    assert!(front_end.counts().refused >= 1, "{:?}", front_end.counts());
    assert_eq!(liar.counts().answered, 1);
}

#[test]
fn a_full_queue_says_when_to_try_again() {
    let options = QueueOptions { calls: 3, ..Cluster::queue_options() };
    let cluster = Cluster::start_with(options);
    let pending: Vec<_> = (0..3).map(|_| cluster.begin("echo", "{}")).collect();
    cluster.wait_for_sent(3);
    let end = cluster.call("echo", "{}");
    let Err(error) = &end else { panic!("{end:?}") };
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.to_string(), "busy: the queue of the workspace is full; try again in 2 s");
    let _worker = cluster.worker(1);
    for pending in pending {
        assert_eq!(text_of(&pending.end()), "{}");
    }
}

#[test]
fn a_front_end_bounds_its_calls() {
    let cluster = Cluster::start();
    let options = FrontEndOptions { calls: 2, ..FrontEndOptions::default() };
    let front_end = cluster.another_front_end(options);
    let first = cluster.begin_at(&front_end, call("echo", "{}"));
    let _second = cluster.begin_at(&front_end, call("echo", "{}"));
    let until = Instant::now() + Duration::from_secs(20);
    while front_end.counts().sent < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let end = cluster.run(&front_end, call("echo", "{}"));
    assert_eq!(end.unwrap_err().kind(), ErrorKind::Busy);
    let _worker = cluster.worker(1);
    assert_eq!(text_of(&first.end()), "{}");
}

#[test]
fn calls_of_a_higher_priority_run_first() {
    let cluster = Cluster::start();
    let front_end = |priority| {
        cluster.another_front_end(FrontEndOptions { priority, ..FrontEndOptions::default() })
    };
    let (low, high) = (front_end(Priority::Low), front_end(Priority::High));
    let later: Vec<_> = (0..3).map(|_| cluster.begin_at(&low, call("order", "\"low\""))).collect();
    while low.counts().sent < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let first = cluster.begin_at(&high, call("order", "\"high\""));
    while high.counts().sent < 1 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _worker = cluster.worker(1);
    assert_eq!(text_of(&first.end()), "1");
    for pending in later {
        pending.end().unwrap();
    }
}

#[test]
fn a_call_is_run_by_a_worker_with_its_root() {
    let cluster = Cluster::start();
    let without = cluster.worker(1);
    let with = cluster.worker_with_roots(&["data"]);
    assert_eq!(text_of(&cluster.call("rooted", "{}")), "{}");
    assert_eq!((without.counts().answered, with.counts().answered), (0, 1));
}

#[test]
fn a_call_without_a_worker_for_its_root_is_refused() {
    let cluster = Cluster::start();
    let _worker = cluster.worker_with_roots(&["other"]);
    let error = cluster.call("rooted", "{}").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let message = error.to_string();
    let expected = "no worker has the root `data`: start one with `kitbag worker --root data=DIR`";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("other"), "{message}");
    assert_eq!(cluster.front_end.counts().sent, 0);
}

#[test]
fn long_arguments_and_answers_are_complete() {
    let cluster = Cluster::start();
    let _worker = cluster.worker(1);
    let arguments = json!({ "text": "a".repeat(3 << 20) }).to_string();
    assert_eq!(text_of(&cluster.call("echo", &arguments)), arguments);
}

#[test]
fn a_drained_worker_hands_back_what_has_no_effect() {
    let cluster = Cluster::start();
    let first = cluster.worker(1);
    let pending = cluster.begin("act", r#"{"before":60000}"#);
    first.wait_for_run();
    first.drain.finish();
    let second = cluster.worker_with(1, |effects| effects.skip_waits = true);
    assert_eq!(text_of(&pending.end()), "acted");
    assert_eq!((first.counts().returned, second.counts().answered), (1, 1));
    assert_eq!(cluster.effects.count.load(Ordering::SeqCst), 1);
}

#[test]
fn calls_survive_a_killed_server() {
    let mut cluster = Cluster::start();
    let _worker = cluster.worker(2);
    let pending: Vec<_> = (0..20).map(|_| cluster.begin("act", r#"{"before":50}"#)).collect();
    cluster.wait_for_sent(5);
    cluster.server.kill();
    cluster.server.start_again();
    let ends: Vec<_> = pending.into_iter().map(|pending| pending.end()).collect();
    let acted = ends.iter().filter(|end| matches!(end, Ok(RemoteEnd::Completed(_)))).count();
    let unsure = ends.iter().filter(|end| kind_of(end) == Some(ErrorKind::MayHaveActed)).count();
    let refused = ends.len() - acted - unsure;
    let effects = cluster.effects.count.load(Ordering::SeqCst);
    // Every answer has one effect, and no effect was repeated.
    assert!(effects >= acted && effects <= acted + unsure + refused, "{effects}: {ends:?}");
    assert_eq!(cluster.effects.repeated.load(Ordering::SeqCst), 0);
    assert!(acted > 0, "{ends:?}");
}

#[test]
fn ten_thousand_calls_are_under_way_at_once() {
    let cluster = Cluster::start();
    let wait = Duration::from_secs(300);
    let front_end = cluster.another_front_end(FrontEndOptions { wait, ..Default::default() });
    let begin = |_| cluster.begin_at(&front_end, call("echo", "{}"));
    let pending: Vec<_> = (0..10_000).map(begin).collect();
    let begun = Instant::now();
    while front_end.counts().sent < 10_000 && begun.elapsed() < wait {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _worker = cluster.worker(64);
    let answered = pending.into_iter().map(|pending| pending.end_within(wait));
    assert_eq!(answered.filter(|end| text_of(end) == "{}").count(), 10_000);
    assert_eq!(front_end.counts().answered, 10_000);
}

#[test]
fn a_workspace_without_a_queue_is_named() {
    let server = NatsServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let client = support::connect(&server, &Identity::generate()).await;
        Queue::open(client, Names::new("team").unwrap()).await.err().unwrap()
    });
    assert_eq!(
        error.to_string(),
        "the workspace `team` has no queue on this NATS server; `kitbag publish` creates it"
    );
}

#[test]
fn a_message_of_a_later_version_stays_for_another_worker() {
    let cluster = Cluster::start();
    let worker = cluster.worker(1);
    let names = Names::new("team").unwrap();
    let subject = names.call(&Root::Any, Priority::Normal, &ToolName::new("echo").unwrap());
    cluster.runtime.block_on(async {
        let client = support::connect(&cluster.server, &Identity::generate()).await;
        client.publish(subject, "kitbag/2 something new".into()).await.unwrap();
        client.flush().await.unwrap();
    });
    let until = Instant::now() + Duration::from_secs(20);
    while worker.counts().refused == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(worker.counts().refused, 1);
    assert_eq!(text_of(&cluster.call("echo", "{}")), "{}");
}

#[test]
fn dropping_a_call_cancels_it() {
    let cluster = Cluster::start();
    let worker = cluster.worker(1);
    let front_end = Arc::clone(&cluster.front_end);
    let run = front_end.run(call("sleep", r#"{"before":60000}"#), &[], RunContext::default());
    cluster.runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(500), run).await.unwrap_err();
    });
    worker.wait_for_idle();
    assert_eq!(worker.counts().answered, 0);
}

#[test]
fn a_call_that_outlasts_its_record_is_not_sent() {
    let options = QueueOptions { longest: Duration::from_secs(60), ..Cluster::queue_options() };
    let cluster = Cluster::start_with(options);
    let error = cluster.call("echo", "{}").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ExcessLimit);
    assert_eq!(
        error.to_string(),
        "calls on workers last at most 1m, with the time to wait for a worker; the limit `time` of \
         `echo` is 1m: lower it"
    );
}

#[test]
fn calls_need_only_the_permissions_of_members() {
    let cluster = Cluster::with_permissions();
    let worker = cluster.worker(2);
    assert_eq!(text_of(&cluster.call("echo", "{}")), "{}");
    assert_eq!(text_of(&cluster.call("act", "{}")), "acted");
    let long = json!({ "text": "x".repeat(3 << 20) }).to_string();
    assert_eq!(text_of(&cluster.call("echo", &long)), long);
    let asked = cluster.call("ask", "{}");
    assert!(matches!(asked, Ok(RemoteEnd::Asks { .. })), "{asked:?}");
    let pending = cluster.begin("sleep", r#"{"before":60000}"#);
    worker.wait_for_run();
    pending.cancellation.cancel();
    pending.end().ok();
    worker.wait_for_idle();
    let rooted = cluster.worker_with_roots(&["data"]);
    assert_eq!(text_of(&cluster.call("rooted", "{}")), "{}");
    drop(rooted);
    let log = cluster.server.log();
    assert!(!log.contains("Violation"), "{log}");
}

#[test]
fn killed_workers_lose_no_answer_and_repeat_no_effect() {
    let cluster = Cluster::start();
    let second = cluster.another_front_end(FrontEndOptions::default());
    let mut workers: Vec<_> = (0..3).map(|_| cluster.worker(4)).collect();
    let arguments = [r#"{"before":20}"#, r#"{"after":20}"#, r#"{"before":5,"after":5}"#];
    let mut pending = Vec::new();
    for step in 0..30 {
        for number in 0..10 {
            let front_end = if number % 2 == 0 { &cluster.front_end } else { &second };
            let arguments = arguments[(step + number) % arguments.len()];
            pending.push(cluster.begin_at(front_end, call("act", arguments)));
        }
        std::thread::sleep(Duration::from_millis(30));
        // In turn, at different points of their calls.
        workers.remove(step % workers.len()).kill();
        workers.push(cluster.worker(4));
    }
    let calls = pending.len();
    let ends: Vec<_> = pending.into_iter().map(|pending| pending.end()).collect();
    let acted = ends.iter().filter(|end| matches!(end, Ok(RemoteEnd::Completed(_)))).count();
    let unsure = ends.iter().filter(|end| kind_of(end) == Some(ErrorKind::MayHaveActed)).count();
    let effects = cluster.effects.count.load(Ordering::SeqCst);
    // Every call has an end: one effect and its answer, or the error that names the doubt.
    assert_eq!(acted + unsure, calls, "{ends:?}");
    assert_eq!(cluster.effects.repeated.load(Ordering::SeqCst), 0);
    assert!((acted..=calls).contains(&effects), "{effects} effects");
}
