//! What looks like a key or a token and is none, as the user's own file says it.

use kitbag_contract::text::nearest;
use kitbag_secrets::{AllowedLeak, FingerprintError, Leaks};

use super::resolver::Resolver;
use crate::config::LeakAllowance;
use crate::file::{Layer, SourceFile};
use crate::format::{AllowedLeakConfig, ConfigFile};
use crate::origin::Sourced;
use crate::problem::Problem;
use crate::text::did_you_mean;
use crate::written::At;

/// The key, for messages.
const KEY: &str = "allow_leak";

/// Why nothing is allowed.
#[derive(Debug, thiserror::Error)]
enum AllowedLeakProblem {
    /// It is not said what, or twice.
    #[error("an allowed leak has one of `fingerprint` and `rule`")]
    NotOne,
    /// It is not said why.
    #[error("an allowed leak has a `reason`, which is not empty: why it is no key or token")]
    NoReason,
    /// It names no finding.
    #[error(transparent)]
    Fingerprint(#[from] FingerprintError),
    /// It names no rule.
    #[error("`{}` is no rule of leak detection; a message about a finding names its rule", kitbag_contract::text::shown(.0))]
    Rule(String),
}

impl Resolver<'_> {
    /// What the user's own file allows. Other files have no such key.
    pub(super) fn allowed_leaks(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> Sourced<Vec<LeakAllowance>> {
        let own = layers.iter().find(|(file, _)| file.layer() == Layer::User);
        let own = own.and_then(|(file, layer)| Some(layer.allow_leak.as_ref()?.at(file)));
        let Some(own) = own else { return Sourced::default(Vec::new()) };
        let allowed = own.value.iter().filter_map(|entry| self.allowed_leak(entry.at(own.file)));
        own.sourced(allowed.collect())
    }

    fn allowed_leak(&mut self, at: At<'_, AllowedLeakConfig>) -> Option<LeakAllowance> {
        let reason = at.value.reason.as_ref().map(|reason| reason.value.trim());
        let Some(reason) = reason.filter(|reason| !reason.is_empty()) else {
            self.report.at(at, AllowedLeakProblem::NoReason);
            return None;
        };
        let fingerprint = at.inner(|leak| leak.fingerprint.as_ref());
        let leak = match (fingerprint, at.inner(|leak| leak.rule.as_ref())) {
            (Some(fingerprint), None) => match fingerprint.value.parse() {
                Ok(digits) => AllowedLeak::Fingerprint(digits),
                Err(error) => {
                    self.report.at(fingerprint, AllowedLeakProblem::Fingerprint(error));
                    return None;
                }
            },
            (None, Some(rule)) => {
                let rules: Vec<_> = Leaks::rules().collect();
                if !rules.contains(rule.value) {
                    let hint = did_you_mean(nearest(rule.value, rules.iter().map(String::as_str)));
                    let problem = AllowedLeakProblem::Rule(rule.value.clone());
                    self.report.at_with(rule, problem, hint);
                    return None;
                }
                AllowedLeak::Rule(rule.value.clone())
            }
            _ => {
                self.report.at(at, AllowedLeakProblem::NotOne);
                return None;
            }
        };
        Some(LeakAllowance { leak, reason: reason.to_owned() })
    }
}

impl From<AllowedLeakProblem> for Problem {
    fn from(problem: AllowedLeakProblem) -> Self {
        Self::Grant { kind: KEY, reason: problem.to_string() }
    }
}
