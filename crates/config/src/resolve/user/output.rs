//! The handling of answers before a model reads them.

use kitbag_base::text::{nearest, shown};
use kitbag_policy::screening::{Screen, Severity};

use crate::config::{Output, ScreenAction, Screening};
use crate::format::span::Written;
use crate::layers::origin::Sourced;
use crate::report::text::did_you_mean;
use crate::report::{Problem, Report};
use crate::resolve::context::{ConfigFiles, tables, valid};

/// Returns the handling of answers from the user config. Other files have no such table.
pub(crate) fn output(configs: &ConfigFiles<'_>, report: &mut Report) -> Output {
    let own = tables(configs, |config| config.output.as_ref()).next();
    let Some((file, table)) = own else { return Output::default() };
    let fence = table.fence.as_ref().map(|it| it.at(file).sourced(it.value));
    let screen = table.screen.as_ref().map(|screen| {
        let action = |written: &Option<Written<ScreenAction>>, default| match written {
            Some(written) => written.at(file).sourced(written.value),
            None => Sourced::default(default),
        };
        let except = screen.except.as_ref().map(|names| valid(names.at(file), report, rule));
        Screening {
            actions: [
                (Severity::Low, action(&screen.low, ScreenAction::Pass)),
                (Severity::Medium, action(&screen.medium, ScreenAction::Mark)),
                (Severity::High, action(&screen.high, ScreenAction::Fence)),
            ],
            except: except.unwrap_or_default(),
        }
    });
    Output { fence: fence.unwrap_or_default(), screen }
}

fn rule(name: &str) -> Result<String, Problem> {
    let names = Screen::names();
    if names.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let hint = did_you_mean(nearest(name, names.iter().map(String::as_str)));
    Err(Problem::from(format!("no rule is named `{}`", shown(name))).hint(hint))
}
