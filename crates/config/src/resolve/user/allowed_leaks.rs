//! What looks like a key or a token and is none, as the user's own file says it.

use kitbag_base::text::{nearest, shown};
use kitbag_secrets::{AllowedLeak, Leaks};

use crate::config::LeakAllowance;
use crate::format::spanned::At;
use crate::format::{AllowedLeakConfig, ConfigFile};
use crate::layers::origin::Sourced;
use crate::read::file::{Layer, SourceFile};
use crate::report::Problem;
use crate::report::text::did_you_mean;
use crate::resolve::resolver::Resolver;

impl Resolver<'_> {
    /// What the user's own file allows. Other files have no such key.
    pub(in crate::resolve) fn allowed_leaks(
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
            let problem =
                "an allowed leak has a `reason`, which is not empty: why it is no key or token";
            self.report.at(at, problem);
            return None;
        };
        let fingerprint = at.inner(|leak| leak.fingerprint.as_ref());
        let leak = match (fingerprint, at.inner(|leak| leak.rule.as_ref())) {
            (Some(fingerprint), None) => match fingerprint.value.parse() {
                Ok(digits) => AllowedLeak::Fingerprint(digits),
                Err(error) => {
                    self.report.at(fingerprint, error);
                    return None;
                }
            },
            (None, Some(rule)) => {
                let rules: Vec<_> = Leaks::rules().collect();
                if !rules.contains(rule.value) {
                    let hint = did_you_mean(nearest(rule.value, rules.iter().map(String::as_str)));
                    let problem = Problem::from(format!(
                        "`{}` is no rule of leak detection; a message about a finding names its \
                         rule",
                        shown(rule.value)
                    ));
                    self.report.at(rule, problem.hint(hint));
                    return None;
                }
                AllowedLeak::Rule(rule.value.clone())
            }
            _ => {
                self.report.at(at, "an allowed leak has one of `fingerprint` and `rule`");
                return None;
            }
        };
        Some(LeakAllowance { leak, reason: reason.to_owned() })
    }
}
