//! The reader of a message, which decides how its advice is phrased.

use kitbag_base::text::shown_path;

use crate::report::text::own_file;
use std::path::Path;
use std::sync::Arc;

/// The reader of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// A person, who may change the configuration.
    #[default]
    Person,
    /// A model, which may only ask its user to change the configuration.
    Model,
}

impl Audience {
    /// Tells this reader to do something, such as ``add `"LANG"` to … ``. A model is asked to pass
    /// the request on to its user.
    pub fn instruct(self, action: &str) -> String {
        match self {
            Self::Person => action.to_owned(),
            Self::Model => format!("ask the user to {action}"),
        }
    }

    /// Like [`instruct`](Self::instruct), for an action that allows a refused request.
    pub fn allow(self, action: &str) -> String {
        match self {
            Self::Person => format!("to allow it, {action}"),
            Self::Model => self.instruct(action),
        }
    }

    pub(crate) fn own_file(self, file: &Option<Arc<Path>>) -> String {
        match (self, file) {
            (Self::Person, file) => own_file(file.as_deref()),
            (Self::Model, Some(path)) => format!("their user config `{}`", shown_path(path)),
            (Self::Model, None) => "their user config".to_owned(),
        }
    }
}
