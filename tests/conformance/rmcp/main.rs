//! rmcp as a client of `kitbag serve`: in both eras, over both transports.
//!
//!     kitbag-rmcp-client KITBAG URL

use anyhow::{Context, ensure};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, RequestContext, RoleClient, RunningService,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData};
use serde_json::{Map, Value, json};
use tokio::process::Command;

/// A person who answers every question.
struct Person;

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let known = json!({ "name": "Ann", "color": "red" });
        let content = requested_schema.properties.into_keys().map(|field| {
            let answer = known[&field].clone();
            (field, answer)
        });
        let content = Value::Object(content.collect::<Map<_, _>>());
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

async fn session(client: RunningService<RoleClient, Person>) -> anyhow::Result<()> {
    let tools = client.list_all_tools().await?;
    let tool = tools.iter().find(|tool| tool.name == "test_simple_text").context("no tool")?;
    ensure!(tool.description.as_deref() == Some("A text."), "{tool:?}");
    for (name, expected) in [
        ("test_simple_text", "This is a simple text response for testing."),
        ("test_input_required_result_multi_round", "Ann likes red."),
    ] {
        let result = client.call_tool(CallToolRequestParams::new(name)).await?;
        let text = result.content.first().and_then(|content| content.as_text());
        ensure!(text.is_some_and(|text| text.text == expected), "{name}: {result:?}");
    }
    let resources = client.list_all_resources().await?;
    ensure!(resources.iter().any(|resource| resource.uri == "kb://team/known"), "{resources:?}");
    let read = client.read_resource(ReadResourceRequestParams::new("kb://team/known")).await?;
    let read = serde_json::to_string(&read.contents)?;
    ensure!(read.contains("Everybody knows this."), "{read}");
    client.cancel().await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().context("it takes KITBAG and URL");
    let (kitbag, url) = (argument()?, argument()?);
    let modern =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for (era, mode) in [("2026", modern), ("2025", ClientLifecycleMode::Initialize)] {
        let mut command = Command::new(&kitbag);
        command.args(["serve", "--log", "warn"]);
        let stdio = TokioChildProcess::new(command)?;
        session(Person.serve_with_lifecycle(stdio, mode.clone()).await?).await?;
        println!("stdio-{era}: all as expected");
        let http = StreamableHttpClientTransport::from_uri(&*url);
        session(Person.serve_with_lifecycle(http, mode).await?).await?;
        println!("http-{era}: all as expected");
    }
    Ok(())
}
