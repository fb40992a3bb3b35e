//! Calls of small modules with a whole host, for the tests of lanes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_contract::{Action, Limits, Outcome};
use kitbag_engine::{ComponentBytes, DescribeResult, LoadError};
use kitbag_policy::Grants;
use tempfile::TempDir;

use crate::call::context::RunContext;
use crate::call::{Call, Completion};
use crate::component::{Component, ComponentSource};
use crate::grants::ToolStorage;
use crate::host::{Host, HostOptions};

/// A tool with its host, grants and limits.
pub(crate) struct TestTool {
    host: Host,
    component: Component,
    pub(crate) name: &'static str,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    state: TempDir,
}

impl TestTool {
    /// Loads a module in the text format.
    pub(crate) fn load(module: &str) -> Result<Self, LoadError> {
        let bytes = wat::parse_str(module).unwrap();
        let host = Host::new(HostOptions::default());
        let source = ComponentSource::Bytes(ComponentBytes::new("test.wasm", bytes));
        let limits = Limits {
            memory: ByteSize::mib(4),
            time: Duration::from_secs(20),
            ..Limits::default()
        };
        let component = host.component(&source, &limits, &RunContext::default())?;
        let (grants, state) = (Grants::default(), tempfile::tempdir().unwrap());
        Ok(Self { host, component, name: "test", grants, limits, state })
    }

    pub(crate) fn new(module: &str) -> Self {
        Self::load(module).unwrap()
    }

    pub(crate) fn described(&self) -> &DescribeResult {
        self.component.described()
    }

    /// Calls the tool once.
    pub(crate) fn call(&self, arguments: &str) -> Completion {
        let call = Call {
            name: self.name.to_owned(),
            action: Action::Run,
            arguments: arguments.to_owned(),
            answers: "{}".to_owned(),
            grants: Arc::new(self.grants.clone()),
            guard: Arc::default(),
            secrets: Arc::default(),
            storage: self.storage(),
            limits: self.limits,
            tools: None,
        };
        self.host.call_blocking(&self.component, &call, &RunContext::default())
    }

    #[cfg(feature = "storage")]
    fn storage(&self) -> Option<ToolStorage> {
        use kitbag_state::storage::Storage;

        let storage = Storage::new(self.state.path(), Path::new("/w"));
        Some(ToolStorage { storage, namespace: self.name.to_owned() })
    }

    #[cfg(not(feature = "storage"))]
    fn storage(&self) -> Option<ToolStorage> {
        let _ = Path::new("/w").join(self.state.path());
        None
    }

    /// Returns the text of a success.
    #[track_caller]
    pub(crate) fn success(&self, arguments: &str) -> String {
        match self.call(arguments).result {
            Ok(Outcome::Success(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the message of an error of the tool.
    #[track_caller]
    pub(crate) fn error(&self, arguments: &str) -> String {
        match self.call(arguments).result {
            Ok(Outcome::Error(error)) => error.message,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the error of a call that ended without an outcome.
    #[track_caller]
    pub(crate) fn failure(&self, arguments: &str) -> String {
        match self.call(arguments).result {
            Err(error) => error.to_string(),
            Ok(outcome) => panic!("{outcome:?}"),
        }
    }
}

/// Formats bytes as a string of the text format.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}
