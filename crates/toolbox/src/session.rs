//! A call from its first run to its last, with the questions in between.
//!
//! A tool that needs an answer is run again, from the start, with all answers
//! so far. Preset answers are given here; who else is asked is the caller's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kitbag_config::Sourced;
use kitbag_contract::{Action, Answer, ErrorInfo, LimitKind, Outcome, Question, format_duration};
use kitbag_host::{
    Audience, CacheProblem, Call, CallError, Cancellation, Completion, ComponentSource, Host,
    Listener,
};
use kitbag_policy::Grants;
use serde_json::{Map, Value};

use crate::deadline::Deadline;
use crate::error::ToolboxError;
use crate::tool::Tool;
use crate::{Inner, metering};

/// How many questions a tool may ask for one call; for each it is run again.
const QUESTIONS: usize = 100;

/// What somebody said to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// An answer, and where it came from.
    With(Sourced<Answer>),
    /// Nobody is there, or nobody wants to answer.
    Nobody,
}

/// A prepared call.
pub struct Session {
    host: Host,
    source: Result<ComponentSource, ErrorInfo>,
    /// Its time is what checking the arguments has left of the tool's.
    call: Call,
    presets: BTreeMap<String, Sourced<Answer>>,
    answers: Map<String, Value>,
    audience: Audience,
    cache_problems: Vec<CacheProblem>,
    tool: Arc<Tool>,
}

impl Session {
    pub(crate) fn new(
        inner: &Inner,
        configured: &kitbag_config::Tool,
        tool: Arc<Tool>,
        arguments: Map<String, Value>,
        action: Action,
        grants: Grants,
        refusal: Option<ErrorInfo>,
    ) -> Result<Self, ToolboxError> {
        Ok(Self {
            host: inner.host.clone(),
            source: match refusal {
                None => Ok(inner.component_source(configured)?),
                Some(error) => Err(error),
            },
            call: Call {
                name: tool.name.to_string(),
                action,
                arguments: text(&arguments),
                answers: String::new(),
                guard: inner.guard_for(&grants),
                grants,
                limits: tool.limits.limits(),
            },
            presets: preset(&tool),
            answers: Map::new(),
            audience: Audience::default(),
            cache_problems: Vec::new(),
            tool,
        })
    }

    /// Calls the component by another name than its tool's.
    pub(crate) fn named(mut self, name: String) -> Self {
        self.call.name = name;
        self
    }

    /// Takes of the call's time what checking its arguments took.
    pub(crate) fn after(mut self, spent: Duration) -> Self {
        let time = &mut self.call.limits.time;
        *time = time.saturating_sub(spent);
        self
    }

    /// Lets an audience hear what is told.
    pub(crate) fn heard_by(mut self, audience: Audience) -> Self {
        self.audience = audience;
        self
    }

    /// Lets somebody hear what the tool tells while it runs, in all its runs: what
    /// it logs, and progress that rises from the first to the last; and how long it
    /// takes where it has to be compiled first. Whoever listened before does no
    /// longer.
    pub fn listen(&mut self, listener: Arc<dyn Listener>) {
        self.audience = Audience::new(listener);
    }

    /// The tool that is called.
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// The name that is called, and the JSON object that the tool gets as its
    /// arguments: the same for the same call.
    pub fn call(&self) -> (&str, &str) {
        (&self.call.name, &self.call.arguments)
    }

    /// Goes on where another session of the same call stopped: with the answers
    /// that it had, in the form in which the tool gets them.
    pub fn resume(&mut self, answers: Map<String, Value>) {
        self.answers = answers;
    }

    /// Takes answers for questions that may come, by the question's id. What
    /// configuration answers it goes on answering.
    pub fn offer(&mut self, answers: impl IntoIterator<Item = (String, Sourced<Answer>)>) {
        for (id, answer) in answers {
            self.presets.entry(id).or_insert(answer);
        }
    }

    /// The answers so far, in the form in which the tool gets them.
    pub fn answers(&self) -> &Map<String, Value> {
        &self.answers
    }

    /// Loads the tool, compiling it where that has to be, and runs nothing.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Call`] for a component that cannot be loaded.
    pub fn load(&self) -> Result<(), ToolboxError> {
        if let Ok(source) = &self.source {
            let metering = metering(self.call.limits);
            let cancellation = Cancellation::default();
            self.host.component_with_audience(source, metering, &self.audience, &cancellation)?;
        }
        Ok(())
    }

    /// Runs the tool on this thread with the answers so far, and again for each
    /// question that has a preset answer. What it emits counts in its last run.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Call`] for a component that cannot be loaded,
    /// [`ToolboxError::Answer`] for a preset answer that does not fit,
    /// [`ToolboxError::AskedAgain`] and [`ToolboxError::TooManyQuestions`] for a
    /// tool that finds no end. How the call itself ended is in the completion.
    pub fn run(&mut self, cancellation: &Cancellation) -> Result<Completion, ToolboxError> {
        let source = match &self.source {
            Ok(source) => source,
            Err(error) => return Ok(Completion::answered(Outcome::Error(error.clone()))),
        };
        let metering = metering(self.call.limits);
        let component =
            self.host.component_with_audience(source, metering, &self.audience, cancellation)?;
        self.cache_problems = component.cache_problems().to_vec();
        loop {
            self.call.answers = text(&self.answers);
            let mut completion =
                self.host.call_with_audience(&component, &self.call, cancellation, &self.audience);
            if let Err(CallError::Limit { kind: LimitKind::Time, limit }) = &mut completion.result {
                *limit = format_duration(self.tool.limits.time.value).to_string();
            }
            let Ok(Outcome::NeedsInput(question)) = &completion.result else {
                return Ok(completion);
            };
            if self.answers.contains_key(&question.id) {
                return Err(ToolboxError::AskedAgain { question: question.id.clone() });
            }
            if self.answers.len() >= QUESTIONS {
                return Err(ToolboxError::TooManyQuestions { limit: QUESTIONS });
            }
            let Some(preset) = self.presets.get(&question.id) else { return Ok(completion) };
            let (question, preset) = (question.clone(), preset.clone());
            self.answer(&question, preset)?;
        }
    }

    /// As [`run`](Self::run), for a session that goes to another thread: it comes
    /// back with how the run ended.
    pub fn run_owned(
        mut self,
        cancellation: &Cancellation,
    ) -> (Self, Result<Completion, ToolboxError>) {
        let completion = self.run(cancellation);
        (self, completion)
    }

    /// Reads the content of a run that succeeded as the JSON that the tool's output
    /// schema promises; nothing, where it has none or the run ended otherwise. This is
    /// part of the call: it has what the run has left of the call's time.
    ///
    /// # Errors
    ///
    /// As for [`Tool::structured`], and [`ToolboxError::Call`] where the call has to
    /// end.
    pub fn structured(
        &self,
        completion: &Completion,
        cancellation: &Cancellation,
    ) -> Result<Option<Value>, ToolboxError> {
        let Ok(Outcome::Success(content)) = &completion.result else { return Ok(None) };
        let left = self.call.limits.time.saturating_sub(completion.usage.elapsed);
        let deadline = Deadline::new(cancellation, self.tool.limits.time.value, left);
        self.tool.structured_until(content, &deadline)
    }

    /// What was wrong with the disk cache when the tool was loaded.
    pub fn cache_problems(&self) -> &[CacheProblem] {
        &self.cache_problems
    }

    /// Adds an answer for the next run.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Answer`] where it does not fit the question.
    pub fn answer(
        &mut self,
        question: &Question,
        answer: Sourced<Answer>,
    ) -> Result<(), ToolboxError> {
        let checked = question.answer_type.check(&answer.value);
        let checked = checked.map_err(|source| ToolboxError::Answer {
            question: question.id.clone(),
            origin: answer.origin,
            source,
        })?;
        self.answers.insert(question.id.clone(), checked);
        Ok(())
    }
}

/// A JSON object as text, the same for the same object.
fn text(object: &Map<String, Value>) -> String {
    // Room for what is long as a rule, so that it is not copied as this grows.
    let long: usize = object.values().filter_map(Value::as_str).map(str::len).sum();
    let mut text = Vec::with_capacity(long + long / 16 + 128);
    serde_json::to_writer(&mut text, object).expect("every key is a string");
    String::from_utf8(text).expect("JSON is text")
}

/// The answers that configuration gives.
fn preset(tool: &Tool) -> BTreeMap<String, Sourced<Answer>> {
    let answers = tool.answers.iter();
    answers.map(|(id, answer)| (id.clone(), answer.clone().map(Answer::Json))).collect()
}

/// The question that a run ended with.
pub(crate) fn question(completion: &Completion) -> Option<Question> {
    match &completion.result {
        Ok(Outcome::NeedsInput(question)) => Some(question.clone()),
        Ok(_) | Err(_) => None,
    }
}
