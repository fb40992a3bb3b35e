//! The rules that decide what happens to a call, as pure functions over its record.
//!
//! Each run of a call has one record, which is changed only by compare-and-set of its revision:
//!
//! | record | meaning |
//! |---|---|
//! | none | no worker has had an effect |
//! | [`Record::Acting`] | this worker can have changed or sent something |
//! | [`Record::Ended`] | the end of the run, which is set once |
//!
//! A worker has an effect only after it has set `Acting`, and answers only after it has set
//! `Ended`. A worker whose write fails has lost the call: it has no further effects and does not
//! answer. So one end is delivered, and effects are repeated only if every tool that had one is
//! idempotent.

use serde::{Deserialize, Serialize};

/// The number of deliveries after which a call is not tried again: it may be the reason why its
/// workers end.
pub const MAX_DELIVERIES: u64 = 5;

/// The record of a run with the end `E`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "with")]
pub enum Record<E> {
    /// A worker can have changed or sent something.
    Acting(Acting),
    /// The run has ended.
    Ended(E),
}

/// A worker that can have changed or sent something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acting {
    /// The worker: a process, not a key.
    pub worker: String,
    /// The first tool that is not idempotent, or else the first tool.
    pub tool: String,
    /// True if every tool that can have acted is idempotent.
    pub is_idempotent: bool,
}

/// A delivery of a call to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// True if an earlier delivery of the call runs in this process.
    pub is_running_here: bool,
    /// True if the deadline of the call has passed.
    pub is_late: bool,
    /// The number of deliveries, including this one.
    pub deliveries: u64,
}

/// The action of a worker on a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a, E> {
    /// Nothing: the call runs here.
    Ignore,
    /// Sends the recorded end again.
    Answer(&'a E),
    /// Ends the call without running it.
    End(Cause),
    /// Runs the call.
    Run,
}

/// The reason that a call ends without an answer of its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The deadline passed before a worker took the call. It had no effect.
    Expired,
    /// The front end cancelled the call before a worker took it. It had no effect.
    Cancelled,
    /// A worker is gone after the call could have an effect.
    MayHaveActed(Acting),
    /// Several workers are gone while they ran the call. It had no effect, or only effects of
    /// idempotent tools.
    Lost,
}

/// Decides what a worker does with a delivery. A record of an older revision is safe: every write
/// that follows from it fails.
pub fn on_delivery<'a, E>(record: Option<&'a Record<E>>, delivery: Delivery) -> Verdict<'a, E> {
    if let Some(Record::Ended(end)) = record {
        return Verdict::Answer(end);
    }
    if delivery.is_running_here {
        return Verdict::Ignore;
    }
    match record {
        Some(Record::Acting(acting)) if !acting.is_idempotent || delivery.is_late => {
            Verdict::End(Cause::MayHaveActed(acting.clone()))
        }
        _ if delivery.is_late => Verdict::End(Cause::Expired),
        _ if delivery.deliveries > MAX_DELIVERIES => Verdict::End(Cause::Lost),
        _ => Verdict::Run,
    }
}

/// Returns how a front end ends a call that it no longer waits for. `None` if the call has ended.
pub fn on_giving_up<E>(record: Option<&Record<E>>, cause: Cause) -> Option<Cause> {
    match record {
        Some(Record::Ended(_)) => None,
        Some(Record::Acting(acting)) => Some(Cause::MayHaveActed(acting.clone())),
        None => Some(cause),
    }
}

/// One run of a call by a worker, as far as the record is concerned.
#[derive(Clone, Debug)]
pub struct Attempt {
    worker: String,
    /// The revision of the record. 0: there is none.
    revision: u64,
    acting: Option<Acting>,
    is_lost: bool,
}

/// The permission of an attempt to have an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The effect may happen.
    Granted,
    /// The effect may happen once this is recorded.
    After(Acting),
    /// Another worker or the front end has taken over the call.
    Denied,
}

impl Attempt {
    /// Begins a run after [`Verdict::Run`] for a record with this revision.
    pub fn begin<E>(worker: &str, revision: u64, record: Option<&Record<E>>) -> Self {
        let acting = match record {
            Some(Record::Acting(acting)) => Some(acting.clone()),
            Some(Record::Ended(_)) | None => None,
        };
        Self { worker: worker.to_owned(), revision, acting, is_lost: false }
    }

    /// Returns the revision that the next write of the record replaces. `None` if the call is lost.
    pub fn expected(&self) -> Option<u64> {
        (!self.is_lost).then_some(self.revision)
    }

    /// Asks to have an effect in a call of this tool.
    pub fn before_effect(&self, tool: &str, is_idempotent: bool) -> Permission {
        if self.is_lost {
            return Permission::Denied;
        }
        let next = |tool: &str, is_idempotent| {
            let (worker, tool) = (self.worker.clone(), tool.to_owned());
            Permission::After(Acting { worker, tool, is_idempotent })
        };
        match &self.acting {
            None => next(tool, is_idempotent),
            Some(acting) if acting.is_idempotent && !is_idempotent => next(tool, false),
            Some(acting) if acting.worker != self.worker => {
                next(&acting.tool, acting.is_idempotent)
            }
            Some(_) => Permission::Granted,
        }
    }

    /// Takes the result of a write of [`Permission::After`]: the new revision, or `None` if
    /// the record had another revision.
    pub fn recorded(&mut self, acting: Acting, revision: Option<u64>) {
        match revision {
            Some(revision) => (self.revision, self.acting) = (revision, Some(acting)),
            None => self.is_lost = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn acting(worker: &str, is_idempotent: bool) -> Record<u32> {
        let (worker, tool) = (worker.to_owned(), "send".to_owned());
        Record::Acting(Acting { worker, tool, is_idempotent })
    }

    fn delivery(is_running_here: bool, is_late: bool, deliveries: u64) -> Delivery {
        Delivery { is_running_here, is_late, deliveries }
    }

    #[test]
    fn a_call_without_effects_runs_again() {
        let none: Option<&Record<u32>> = None;
        assert_eq!(on_delivery(none, delivery(false, false, 1)), Verdict::Run);
        assert_eq!(on_delivery(none, delivery(false, false, MAX_DELIVERIES)), Verdict::Run);
        let ended = on_delivery(none, delivery(false, false, MAX_DELIVERIES + 1));
        assert_eq!(ended, Verdict::End(Cause::Lost));
    }

    #[test]
    fn a_call_that_may_have_acted_does_not_run_again() {
        let record = acting("a", false);
        let Record::Acting(first) = &record else { unreachable!() };
        let verdict = on_delivery(Some(&record), delivery(false, false, 2));
        assert_eq!(verdict, Verdict::End(Cause::MayHaveActed(first.clone())));
        assert_eq!(on_delivery(Some(&record), delivery(true, false, 2)), Verdict::Ignore);
    }

    #[test]
    fn an_idempotent_call_runs_again_until_its_deadline() {
        let record = acting("a", true);
        assert_eq!(on_delivery(Some(&record), delivery(false, false, 2)), Verdict::Run);
        let verdict = on_delivery(Some(&record), delivery(false, true, 2));
        assert!(matches!(verdict, Verdict::End(Cause::MayHaveActed(_))), "{verdict:?}");
    }

    #[test]
    fn an_ended_call_is_answered_from_its_record() {
        let record = Record::Ended(7);
        assert_eq!(on_delivery(Some(&record), delivery(false, true, 9)), Verdict::Answer(&7));
        assert_eq!(on_giving_up(Some(&record), Cause::Expired), None);
    }

    #[test]
    fn a_late_call_expires_only_without_effects() {
        let none: Option<&Record<u32>> = None;
        assert_eq!(on_delivery(none, delivery(false, true, 1)), Verdict::End(Cause::Expired));
        assert_eq!(on_giving_up(none, Cause::Cancelled), Some(Cause::Cancelled));
        let ended = on_giving_up(Some(&acting("a", true)), Cause::Cancelled);
        assert!(matches!(ended, Some(Cause::MayHaveActed(_))), "{ended:?}");
    }

    #[test]
    fn a_nested_effect_that_is_not_idempotent_is_recorded() {
        let mut attempt = Attempt::begin::<u32>("a", 0, None);
        let Permission::After(first) = attempt.before_effect("read", true) else { panic!() };
        attempt.recorded(first, Some(1));
        assert_eq!(attempt.before_effect("read", true), Permission::Granted);
        let Permission::After(second) = attempt.before_effect("send", false) else { panic!() };
        assert_eq!((second.tool.as_str(), second.is_idempotent), ("send", false));
        attempt.recorded(second, None);
        assert_eq!(attempt.before_effect("send", false), Permission::Denied);
        assert_eq!(attempt.expected(), None);
    }

    #[test]
    fn a_worker_that_takes_over_is_recorded() {
        let record = acting("a", true);
        let attempt = Attempt::begin("b", 3, Some(&record));
        let Permission::After(acting) = attempt.before_effect("send", true) else { panic!() };
        assert_eq!((acting.worker.as_str(), attempt.expected()), ("b", Some(3)));
    }

    /// The end of a call in the simulation: which worker set it in which run, or why.
    #[derive(Clone, Debug, PartialEq)]
    enum Ended {
        Answer(usize),
        Cause(Cause),
    }

    /// A write on its way to the bucket.
    #[derive(Clone, Debug)]
    struct Write {
        expected: u64,
        record: Record<Ended>,
        /// The result, once the bucket has handled the write.
        result: Option<Option<u64>>,
    }

    #[derive(Debug)]
    struct Run {
        number: usize,
        attempt: Attempt,
        has_acted: bool,
        write: Option<Write>,
    }

    /// A bucket and workers, with a network that delays, reorders and loses messages.
    struct World {
        is_idempotent: bool,
        /// Every state of the record. The index is the revision.
        history: Vec<Option<Record<Ended>>>,
        workers: [Option<Run>; 3],
        /// Writes of processes that are gone.
        orphans: Vec<Write>,
        deliveries: u64,
        is_late: bool,
        runs: usize,
        runs_with_effects: Vec<usize>,
        answers: Vec<Ended>,
    }

    impl World {
        fn new(is_idempotent: bool) -> Self {
            Self {
                is_idempotent,
                history: vec![None],
                workers: [None, None, None],
                orphans: Vec::new(),
                deliveries: 0,
                is_late: false,
                runs: 0,
                runs_with_effects: Vec::new(),
                answers: Vec::new(),
            }
        }

        fn apply(history: &mut Vec<Option<Record<Ended>>>, write: &mut Write) {
            if write.result.is_none() {
                let is_current = write.expected as usize == history.len() - 1;
                if is_current {
                    history.push(Some(write.record.clone()));
                }
                write.result = Some(is_current.then(|| history.len() as u64 - 1));
            }
        }

        fn deliver(&mut self, worker: usize, staleness: usize) {
            let revision = (self.history.len() - 1).saturating_sub(staleness);
            let record = self.history[revision].as_ref();
            self.deliveries += 1;
            let delivery = Delivery {
                is_running_here: self.workers[worker].is_some(),
                is_late: self.is_late,
                deliveries: self.deliveries,
            };
            match on_delivery(record, delivery) {
                Verdict::Ignore => {}
                Verdict::Answer(end) => self.answers.push(end.clone()),
                Verdict::End(cause) => {
                    let record = Record::Ended(Ended::Cause(cause));
                    let write = Write { expected: revision as u64, record, result: None };
                    self.orphans.push(write);
                }
                Verdict::Run => {
                    let name = format!("{worker}.{}", self.runs);
                    let attempt = Attempt::begin(&name, revision as u64, record);
                    let number = self.runs;
                    self.runs += 1;
                    self.workers[worker] =
                        Some(Run { number, attempt, has_acted: false, write: None });
                }
            }
        }

        /// Advances a run by one step. The reply to a write can be lost; the worker then reads the
        /// record and looks for its own write.
        fn step(&mut self, worker: usize, is_reply_lost: bool) {
            let Some(run) = &mut self.workers[worker] else { return };
            if let Some(mut write) = run.write.take() {
                Self::apply(&mut self.history, &mut write);
                let mut result = write.result.flatten();
                if is_reply_lost {
                    let at = self.history.iter().rposition(|it| it.as_ref() == Some(&write.record));
                    let is_last = at == Some(self.history.len() - 1);
                    result = at.filter(|_| is_last).map(|at| at as u64);
                }
                match write.record {
                    Record::Acting(acting) => run.attempt.recorded(acting, result),
                    Record::Ended(end) => {
                        if result.is_some() {
                            self.answers.push(end);
                        }
                        self.workers[worker] = None;
                    }
                }
                return;
            }
            if !run.has_acted {
                match run.attempt.before_effect("send", self.is_idempotent) {
                    Permission::Granted => {
                        run.has_acted = true;
                        self.runs_with_effects.push(run.number);
                    }
                    Permission::Denied => self.workers[worker] = None,
                    Permission::After(acting) => {
                        let expected = run.attempt.expected().expect("permission was given");
                        let record = Record::Acting(acting);
                        run.write = Some(Write { expected, record, result: None });
                    }
                }
                return;
            }
            match run.attempt.expected() {
                None => self.workers[worker] = None,
                Some(expected) => {
                    let record = Record::Ended(Ended::Answer(run.number));
                    run.write = Some(Write { expected, record, result: None });
                }
            }
        }

        fn crash(&mut self, worker: usize) {
            if let Some(run) = self.workers[worker].take() {
                self.orphans.extend(run.write);
            }
        }

        fn land(&mut self, orphan: usize) {
            if !self.orphans.is_empty() {
                let mut write = self.orphans.remove(orphan % self.orphans.len());
                Self::apply(&mut self.history, &mut write);
            }
        }

        fn give_up(&mut self, staleness: usize) {
            let revision = (self.history.len() - 1).saturating_sub(staleness);
            if let Some(cause) = on_giving_up(self.history[revision].as_ref(), Cause::Expired) {
                let record = Record::Ended(Ended::Cause(cause));
                self.orphans.push(Write { expected: revision as u64, record, result: None });
            }
        }

        fn check(&self) {
            let ends = self.history.iter().flatten().filter_map(|record| match record {
                Record::Ended(end) => Some(end),
                Record::Acting(_) => None,
            });
            let ends: Vec<_> = ends.collect();
            assert!(ends.len() <= 1, "two ends: {ends:?}");
            for answer in &self.answers {
                assert_eq!(Some(&answer), ends.first(), "an answer that is not the end");
            }
            if !self.is_idempotent {
                assert!(
                    self.runs_with_effects.len() <= 1,
                    "repeated: {:?}",
                    self.runs_with_effects
                );
            }
            if let Some(Ended::Cause(Cause::Expired | Cause::Lost)) = ends.first()
                && !self.is_idempotent
            {
                assert!(self.runs_with_effects.is_empty(), "an effect was denied");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn one_answer_and_no_repeated_effect(
            is_idempotent: bool,
            steps in prop::collection::vec((0_u8..16, 0_usize..3, any::<bool>()), 1..80),
        ) {
            let mut world = World::new(is_idempotent);
            for (step, which, flag) in steps {
                match step {
                    0..=2 => world.deliver(which, usize::from(flag)),
                    3..=9 => world.step(which, flag),
                    10 => world.crash(which),
                    11..=12 => world.land(which),
                    13 => world.give_up(usize::from(flag)),
                    14 => world.is_late = true,
                    _ => world.deliver(which, 0),
                }
                world.check();
            }
        }
    }
}
