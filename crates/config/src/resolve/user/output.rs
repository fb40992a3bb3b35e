//! What becomes of answers before a model reads them.

use kitbag_base::text::{nearest, shown};
use kitbag_policy::screening::{Screen, Severity};

use crate::config::{Output, ScreenAction, Screening};
use crate::format::ConfigFile;
use crate::format::spanned::Written;
use crate::layers::origin::Sourced;
use crate::read::file::SourceFile;
use crate::report::Problem;
use crate::report::text::did_you_mean;
use crate::resolve::resolver::Resolver;

impl Resolver<'_> {
    /// What the user's own file says of answers. Other files have no such table.
    pub(in crate::resolve) fn output(&mut self, layers: &[(&SourceFile, &ConfigFile)]) -> Output {
        let own = layers.iter().find_map(|(file, layer)| Some((*file, layer.output.as_ref()?)));
        let Some((file, table)) = own else { return Output::default() };
        let fence = table.fence.as_ref().map(|it| it.at(file).sourced(it.value));
        let screen = table.screen.as_ref().map(|screen| {
            let action = |written: &Option<Written<ScreenAction>>, default| match written {
                Some(written) => written.at(file).sourced(written.value),
                None => Sourced::default(default),
            };
            let mut except = Vec::new();
            for name in screen.except.iter().flat_map(|names| &names.value) {
                let names = Screen::names();
                if names.contains(&name.value) {
                    except.push(name.value.clone());
                    continue;
                }
                let hint = did_you_mean(nearest(&name.value, names.iter().map(String::as_str)));
                let problem = Problem::from(format!("there is no rule `{}`", shown(&name.value)));
                self.report.at(name.at(file), problem.hint(hint));
            }
            Screening {
                actions: [
                    (Severity::Low, action(&screen.low, ScreenAction::Pass)),
                    (Severity::Medium, action(&screen.medium, ScreenAction::Mark)),
                    (Severity::High, action(&screen.high, ScreenAction::Fence)),
                ],
                except,
            }
        });
        Output { fence: fence.unwrap_or_default(), screen }
    }
}
