//! Strings that look like a key or a token but are not secret, from the user config.

use kitbag_base::text::{nearest, shown};
use kitbag_secrets::{AllowedLeak, Leaks};

use crate::config::LeakAllowance;
use crate::format::AllowedLeakConfig;
use crate::format::span::At;
use crate::layers::origin::Sourced;
use crate::report::text::did_you_mean;
use crate::report::{Problem, Report};
use crate::resolve::context::{ConfigFiles, of_user};

/// Returns the leaks that the user config allows. Other files have no such key.
pub(crate) fn allowed_leaks(
    configs: &ConfigFiles<'_>,
    report: &mut Report,
) -> Sourced<Vec<LeakAllowance>> {
    let Some(own) = of_user(configs, |config| config.allow_leak.as_ref()) else {
        return Sourced::default(Vec::new());
    };
    let allowed = own.value.iter().filter_map(|entry| allowed_leak(entry.at(own.file), report));
    own.sourced(allowed.collect())
}

fn allowed_leak(at: At<'_, AllowedLeakConfig>, report: &mut Report) -> Option<LeakAllowance> {
    let reason = at.value.reason.as_ref().map(|reason| reason.value.trim());
    let Some(reason) = reason.filter(|reason| !reason.is_empty()) else {
        let problem = "an allowed leak needs a `reason`: why it is not a key or token";
        report.at(at, problem);
        return None;
    };
    let fingerprint = at.inner(|leak| leak.fingerprint.as_ref());
    let leak = match (fingerprint, at.inner(|leak| leak.rule.as_ref())) {
        (Some(fingerprint), None) => match fingerprint.value.parse() {
            Ok(digits) => AllowedLeak::Fingerprint(digits),
            Err(error) => {
                report.at(fingerprint, error);
                return None;
            }
        },
        (None, Some(rule)) => {
            let rules: Vec<_> = Leaks::rules().collect();
            if !rules.contains(rule.value) {
                let hint = did_you_mean(nearest(rule.value, rules.iter().map(String::as_str)));
                let problem = Problem::from(format!(
                    "`{}` is not a rule of leak detection; the message about a finding names its \
                     rule",
                    shown(rule.value)
                ));
                report.at(rule, problem.hint(hint));
                return None;
            }
            AllowedLeak::Rule(rule.value.clone())
        }
        _ => {
            report.at(at, "an allowed leak needs one of `fingerprint` and `rule`");
            return None;
        }
    };
    Some(LeakAllowance { leak, reason: reason.to_owned() })
}
