use kitbag_sdk::{Ask, Call, Description, ErrorInfo, Stop, Tool};
use wstd::http::{Body, Client, Request};

/// Count the words of a text file, or of a page.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// File, relative to the workspace.
    path: Option<String>,
    /// URL to read instead of a file.
    url: Option<String>,
}

struct MyTool;

impl Tool for MyTool {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::of::<Arguments>("my_tool")
    }

    fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
        let (name, text) = match (arguments.path, arguments.url) {
            (_, Some(url)) => (url.clone(), get(&url)?),
            (Some(path), None) => (path.clone(), read(call, &path)?),
            (None, None) => {
                // Without an answer the run ends here. It starts again with the answer.
                let path = call.ask(Ask::text("path", "Which file?"))?;
                (path.clone(), read(call, &path)?)
            }
        };
        Ok(format!("{name} has {} words", text.split_whitespace().count()))
    }
}

fn read(call: &Call, path: &str) -> Result<String, ErrorInfo> {
    std::fs::read_to_string(call.path(path))
        .map_err(|error| ErrorInfo::new(format!("`{path}` cannot be read: {error}")))
}

fn get(url: &str) -> Result<String, ErrorInfo> {
    let failed = |reason: String| ErrorInfo::new(format!("`{url}` cannot be read: {reason}"));
    wstd::runtime::block_on(async {
        let request = Request::get(url).body(Body::empty());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let response = Client::new().send(request).await;
        let mut response = response.map_err(|error| failed(error.to_string()))?;
        let text = response.body_mut().str_contents().await;
        let text = text.map_err(|error| failed(error.to_string()))?.to_owned();
        match response.status().is_success() {
            true => Ok(text),
            false => Err(failed(format!("status {}", response.status().as_u16()))),
        }
    })
}

kitbag_sdk::export!(MyTool);
