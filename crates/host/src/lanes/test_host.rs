//! Calls of small modules with a whole host, for the tests of lanes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_contract::{Action, Limits, Outcome};
use kitbag_engine::{ComponentBytes, DescribeResult, LoadError};
use kitbag_policy::Grants;
use kitbag_policy::http::{HttpGrant, HttpGrants, Methods, UrlPattern};
use tempfile::TempDir;

use crate::call::context::RunContext;
use crate::call::{Call, Completion};
use crate::component::{Component, ComponentSource};
use crate::grants::ToolStorage;
use crate::host::{Host, HostOptions};

/// Compiles each module once.
static HOST: LazyLock<Host> = LazyLock::new(|| Host::new(HostOptions::default()));

/// An allocator for a component, from address 65,536 upwards. It frees nothing.
pub(crate) const ALLOCATOR: &str = r#"
    (global $next (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
        (global.set $next (i32.add (local.get $at) (local.get 3)))
        (local.get $at))"#;

/// A tool with its grants and limits.
pub(crate) struct TestTool {
    component: Component,
    pub(crate) name: &'static str,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    pub(crate) answers: &'static str,
    state: TempDir,
}

impl TestTool {
    /// Loads a module in the text or binary format.
    pub(crate) fn load(module: impl AsRef<[u8]>) -> Result<Self, LoadError> {
        let bytes = wat::parse_bytes(module.as_ref()).unwrap().into_owned();
        let source = ComponentSource::Bytes(ComponentBytes::new("test.wasm", bytes));
        let limits =
            Limits { memory: ByteSize::mib(4), time: Duration::from_secs(20), ..Limits::default() };
        let component = HOST.component(&source, &limits, &RunContext::default())?;
        let (grants, state) = (Grants::default(), tempfile::tempdir().unwrap());
        Ok(Self { component, name: "test", grants, limits, answers: "{}", state })
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
            function: None,
            action: Action::Run,
            arguments: arguments.to_owned(),
            answers: self.answers.to_owned(),
            grants: Arc::new(self.grants.clone()),
            guard: Arc::default(),
            secrets: Arc::default(),
            storage: self.storage(),
            limits: self.limits,
            tools: None,
        };
        HOST.call_blocking(&self.component, &call, &RunContext::default())
    }

    #[cfg(feature = "storage")]
    fn storage(&self) -> Option<ToolStorage> {
        use kitbag_state::storage::Storage;

        let storage = Storage::new(&self.state.path().join("state"), Path::new("/w"));
        Some(ToolStorage { storage, namespace: self.name.to_owned() })
    }

    #[cfg(not(feature = "storage"))]
    fn storage(&self) -> Option<ToolStorage> {
        let _ = Path::new("/w").join(self.state.path());
        None
    }

    /// Grants every method for a server.
    pub(crate) fn grant_http(&mut self, address: SocketAddr) {
        let url = UrlPattern::parse(&format!("http://{address}/**")).unwrap();
        let grant = HttpGrant { methods: Methods::Any, ..HttpGrant::new(url) };
        self.grants.http = HttpGrants::from(vec![grant]);
    }

    /// Returns the text of a success.
    #[track_caller]
    pub(crate) fn success(&self, arguments: &str) -> String {
        let completion = self.call(arguments);
        match completion.result {
            Ok(Outcome::Success(text)) => text,
            ref other => panic!("{other:?} {:?}", completion.refused),
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

/// Answers one request on the loopback interface. Returns the address, and the request later.
pub(crate) fn serve(response: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !request.ends_with(b"\r\n\r\n") && !request.ends_with(b"end") {
            let read = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(response.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    (address, server)
}

/// Formats bytes as a string of the text format.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}
