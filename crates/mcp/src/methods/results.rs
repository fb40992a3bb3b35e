//! Large results: the start that is sent, and reading on.

use std::fmt::Write as _;

use kitbag_base::ByteSize;
use kitbag_config::{Config, PYTHON, ToolSource};
use rmcp::RoleServer;
use rmcp::model::{self, CallToolResult, ContentBlock, MetaObject, ResourceContents};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use crate::methods::catalog::Catalog;
use crate::methods::discovery::{definition, failure, success};
use crate::server::generation::Generation;
use crate::session::Session;
use crate::session::client::Client;
use crate::session::kept_results::{KeptResult, RESULT_SCHEME};

/// The size of the start of a kept result in bytes: under 700 tokens of any usual text.
const START: usize = 1_500;

/// The default size of a part that `read_result` returns.
const PART: usize = 16 << 10;

/// The size below which a result fits into the arguments of a call, which the host limits to 1 MiB.
const INPUT_BYTES: usize = 1_000_000;

/// Maximum number of kept results in the arguments of one call.
const INPUTS: usize = 16;

/// The key in `_meta` of an answer from an untrusted source.
const UNTRUSTED: &str = "kitbag/untrusted";

/// Sends structured content in one form if the revision of the client allows it, keeps the large
/// parts of a result, and leaves their start with directions for reading on.
///
/// If the call `is_direct`, the client may know the output schema of the tool.
pub(crate) async fn shorten(
    session: &Session,
    context: &RequestContext<RoleServer>,
    generation: &Generation,
    is_direct: bool,
    result: &mut CallToolResult,
) {
    let config = generation.toolbox.config();
    let limit = config.discovery.result_size.value.as_u64() as usize;
    let client = Client::of(context);
    // Clients need structured content only if a schema promises it. The text is the same JSON.
    if !(is_direct && client.has_structured) {
        result.structured_content = None;
    }
    let structured = result.structured_content.as_ref().map(Value::to_string);
    let is_large = structured.as_ref().is_some_and(|structured| structured.len() > limit);
    let meta = result.meta.as_ref();
    let is_untrusted = meta.is_some_and(|meta| meta.0.get(UNTRUSTED) == Some(&true.into()));
    let (mut is_first, mut is_kept) = (false, false);
    if client.is_stateless
        && !is_large
        && structured.is_some()
        && !session.server.kept_results().is_text_reader(session, context)
        && let Some(ContentBlock::Text(text)) = result.content.first_mut()
        && let Some((reference, first)) =
            refer(session, context, generation, &text.text, is_untrusted)
    {
        (text.text, is_first) = (reference, first);
    }
    let mut left = limit;
    for block in &mut result.content {
        let text = match block {
            ContentBlock::Text(text) => &text.text,
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { text, .. } => text,
                _ => continue,
            },
            _ => continue,
        };
        if text.len() <= left {
            left -= text.len();
            continue;
        }
        let Some((start, first)) = keep(session, context, generation, text, is_untrusted) else {
            continue;
        };
        (is_first, is_kept) = (is_first | first, true);
        *block = ContentBlock::text(start);
        left = left.saturating_sub(START);
    }
    if is_large {
        if let (false, Some(text)) = (is_kept, &structured)
            && let Some((start, first)) = keep(session, context, generation, text, is_untrusted)
        {
            is_first |= first;
            is_kept = true;
            result.content.push(ContentBlock::text(start));
        }
        if is_kept {
            result.structured_content = None;
            // Clients refuse a success without the promised structured content.
            result.is_error = Some(true);
        }
    }
    if is_first && !lists_read_tool(&client, &generation.catalog()) {
        announce(session, context).await;
    }
}

/// Returns whether a client lists `read_result` before a result is kept: its revision sends
/// structured content without a copy in text, and clients that show only text need a way to it.
pub(crate) fn lists_read_tool(client: &Client, catalog: &Catalog) -> bool {
    client.is_stateless && catalog.tools.iter().any(|tool| tool.output_schema.is_some())
}

/// Keeps the text of structured content. Returns a reference that replaces the text, and whether it
/// is the first of the session.
fn refer(
    session: &Session,
    context: &RequestContext<RoleServer>,
    generation: &Generation,
    text: &str,
    is_untrusted: bool,
) -> Option<(String, bool)> {
    let (body, fence) = without_fence(text);
    let kept = KeptResult { text: body.into(), fence, is_untrusted, is_sent: true };
    let (uri, is_first) = session.server.kept_results().keep(session, context, kept)?;
    let read = &generation.catalog().own.read;
    let arguments = json!({ "uri": uri });
    let reference =
        format!("[The result is in `structuredContent`. As text: `{read}` {arguments}]");
    Some((reference, is_first))
}

/// Keeps a text. Returns its start with directions, and whether it is the first of the session.
fn keep(
    session: &Session,
    context: &RequestContext<RoleServer>,
    generation: &Generation,
    text: &str,
    is_untrusted: bool,
) -> Option<(String, bool)> {
    let (body, fence) = without_fence(text);
    let kept = KeptResult { text: body.into(), fence, is_untrusted, is_sent: false };
    let (uri, is_first) = session.server.kept_results().keep(session, context, kept.clone())?;
    let (start, next) = part(&kept.text, &Place::default(), START);
    let mut shown = fenced(&kept, start);
    let size = ByteSize::bytes(body.len() as u64);
    let lines = body.lines().count();
    let read = &generation.catalog().own.read;
    let next = next.unwrap_or_default();
    let mut arguments = json!({ "uri": uri, "start_line": next.line });
    if next.column > 1 {
        arguments["start_column"] = next.column.into();
    }
    let _ = write!(
        shown,
        "\n\n[This is the start of a result of {size} in {lines} lines. The whole is kept for this \
         session. Read on: `{read}` {arguments}"
    );
    let python = python(generation.toolbox.config()).filter(|_| body.len() < INPUT_BYTES);
    if let Some(python) = python {
        let _ =
            write!(shown, ", or process it: `{python}` {{\"inputs\": {{\"text\": \"{uri}\"}}}}");
    }
    shown.push(']');
    Some((shown, is_first))
}

/// Tells clients that the list of tools now has `read_result`.
async fn announce(session: &Session, context: &RequestContext<RoleServer>) {
    match Client::of(context).is_stateless {
        true => session.server.tell(|changes| changes.tools += 1),
        // The client has disconnected.
        false => drop(context.peer.notify_tool_list_changed().await),
    }
}

/// Returns the definition of `read_result`, which is offered once a result is kept.
pub(crate) fn read_tool(name: &str) -> model::Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "uri": { "type": "string" },
            "start_line": {
                "type": "integer", "default": 1, "description": "Negative: from the end",
            },
            "end_line": { "type": "integer", "minimum": 1 },
            "start_column": { "type": "integer", "minimum": 1, "default": 1 },
            "max_bytes": { "type": "integer", "minimum": 1, "default": PART },
        },
        "required": ["uri"],
        "additionalProperties": false,
    });
    let description = format!(
        "Read a part of a large result by its URI, `{RESULT_SCHEME}…`. Each part has a header with \
         its range, such as `[lines 1-400 of 900; start_line=401 reads on]`."
    );
    let tool = definition(name, "Read a large result", description, schema);
    tool.annotate(model::ToolAnnotations::new().read_only(true).open_world(false))
}

/// Answers a call of `read_result`.
pub(crate) fn read(
    session: &Session,
    context: &RequestContext<RoleServer>,
    config: &Config,
    arguments: &Map<String, Value>,
) -> CallToolResult {
    let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default();
    let Some(kept) = session.server.kept_results().get(session, context, uri) else {
        return failure(format!(
            "this session has no result with the URI `{}`: results are kept until the session ends, \
             for at most an hour, and the oldest are replaced; make the call again",
            kitbag_base::text::shown(uri)
        ));
    };
    if kept.is_sent {
        session.server.kept_results().add_text_reader(session, context);
    }
    let number = |name: &str, default: i64| match arguments.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value.as_i64().filter(|number| *number != 0).ok_or(name.to_owned()),
    };
    let numbers = (|| {
        let positive = |name: &str, default: i64| {
            number(name, default)
                .and_then(|number| usize::try_from(number).map_err(|_| name.into()))
        };
        Ok::<_, String>((
            number("start_line", 1)?,
            positive("end_line", i64::MAX)?,
            positive("start_column", 1)?,
            positive("max_bytes", PART as i64)?,
        ))
    })();
    let (start, end, column, bytes) = match numbers {
        Ok(numbers) => numbers,
        Err(name) => return failure(format!("`{name}` must be a whole number, and not 0")),
    };
    let lines = kept.text.lines().count();
    let line = match usize::try_from(start) {
        Ok(line) => line,
        Err(_) => (lines + 1).saturating_sub(usize::try_from(-start).unwrap_or(lines)).max(1),
    };
    if line > lines {
        return failure(format!("the result has {lines} lines; `start_line` is {line}"));
    }
    // A part is not kept again.
    let most = (config.discovery.result_size.value.as_u64() as usize).saturating_sub(START);
    let (text, next) = part(&kept.text, &Place { line, column, end }, bytes.min(most));
    let last = match &next {
        Some(next) if next.column > 1 => next.line,
        Some(next) => next.line - 1,
        None => lines.min(end),
    };
    let more = match next {
        Some(Next { line, column: 1 }) => format!("; start_line={line} reads on"),
        Some(Next { line, column }) => {
            format!("; start_line={line} start_column={column} reads on")
        }
        None => String::new(),
    };
    let text = format!("[lines {line}-{last} of {lines}{more}]\n{}", fenced(&kept, text));
    let mut result = success(text);
    if kept.is_untrusted {
        result.meta = Some(MetaObject(Map::from_iter([(UNTRUSTED.to_owned(), true.into())])));
    }
    result
}

/// Replaces the URIs of results by their text in `inputs` of a call of `python`.
pub(crate) fn fill_inputs(
    session: &Session,
    context: &RequestContext<RoleServer>,
    config: &Config,
    tool: &str,
    arguments: &mut Map<String, Value>,
) {
    let is_python = config.tools.get(tool).is_some_and(
        |tool| matches!(&tool.source.value, ToolSource::Builtin { name } if name.value == PYTHON),
    );
    let Some(Value::Object(inputs)) = arguments.get_mut("inputs").filter(|_| is_python) else {
        return;
    };
    let is_uri = |text: &str| text.starts_with(RESULT_SCHEME);
    let uris = inputs.values_mut().filter(|value| value.as_str().is_some_and(is_uri));
    for value in uris.take(INPUTS) {
        let uri = value.as_str().unwrap_or_default();
        if let Some(kept) = session.server.kept_results().get(session, context, uri) {
            *value = Value::String(kept.text.as_ref().to_owned());
        }
    }
}

/// Returns the name of an offered tool that runs Python.
fn python(config: &Config) -> Option<&str> {
    let mut tools = config.tools.values().filter(|tool| tool.is_enabled());
    let is_python = |source: &ToolSource| matches!(source, ToolSource::Builtin { name } if name.value == PYTHON);
    tools.find(|tool| is_python(&tool.source.value)).map(|tool| tool.name.as_str())
}

/// The place where a part starts, and its last line.
struct Place {
    line: usize,
    column: usize,
    end: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self { line: 1, column: 1, end: usize::MAX }
    }
}

/// The place where the next part starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Next {
    line: usize,
    column: usize,
}

/// Returns the part of a text that starts at a place: whole lines of at most `bytes` bytes, or the
/// start of a longer line. At least one character.
fn part<'a>(text: &'a str, place: &Place, bytes: usize) -> (&'a str, Option<Next>) {
    let start: usize = text.split_inclusive('\n').take(place.line - 1).map(str::len).sum();
    let rest = &text[start..];
    let skipped = rest.char_indices().nth(place.column - 1).map_or(rest.len(), |(at, _)| at);
    let line_end = rest.find('\n').unwrap_or(rest.len());
    let from = start + skipped.min(line_end);
    let mut end = from;
    for (line, piece) in (place.line..).zip(text[from..].split_inclusive('\n')) {
        if line > place.end {
            return (&text[from..end], None);
        }
        if end + piece.len() - from > bytes {
            if end > from {
                return (&text[from..end], Some(Next { line, column: 1 }));
            }
            let least = piece.chars().next().map_or(0, char::len_utf8);
            let cut = piece.floor_char_boundary(bytes).max(least);
            let column = place.column + piece[..cut].chars().count();
            return (&text[from..from + cut], Some(Next { line, column }));
        }
        end += piece.len();
    }
    (&text[from..end], None)
}

/// Removes the lines that enclose a text of an untrusted source.
fn without_fence(text: &str) -> (&str, Option<(String, String)>) {
    let whole = (text, None);
    let Some((first, rest)) = text.split_once('\n') else { return whole };
    let Some((body, last)) = rest.rsplit_once('\n') else { return whole };
    let number = first.strip_prefix("[kitbag ").and_then(|rest| rest.split_once(':'));
    match number {
        Some((number, _)) if last == format!("[kitbag {number}: end]") => {
            (body, Some((first.to_owned(), last.to_owned())))
        }
        _ => whole,
    }
}

fn fenced(kept: &KeptResult, text: &str) -> String {
    match &kept.fence {
        Some((first, last)) => format!("{first}\n{text}\n{last}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        text: &str,
        place: (usize, usize),
        bytes: usize,
        expected: (&str, Option<(usize, usize)>),
    ) {
        let place = Place { line: place.0, column: place.1, end: usize::MAX };
        let (part, next) = part(text, &place, bytes);
        assert_eq!((part, next.map(|next| (next.line, next.column))), expected);
    }

    #[test]
    fn parts_cover_a_text() {
        check("a\nb\nc", (1, 1), 4, ("a\nb\n", Some((3, 1))));
        check("a\nb\nc", (3, 1), 4, ("c", None));
        check("a\nb\n", (2, 1), 4, ("b\n", None));
        check("äöü\nb", (1, 1), 4, ("äö", Some((1, 3))));
        check("äöü\nb", (1, 3), 3, ("ü\n", Some((2, 1))));
        check("äöü", (1, 1), 1, ("ä", Some((1, 2))));
        check("ab\nc", (1, 9), 9, ("\nc", None));
    }

    #[test]
    fn a_fence_encloses_each_part() {
        let text = "[kitbag 0a: what `x` answered follows.]\nbody\n[kitbag 0a: end]";
        let (body, fence) = without_fence(text);
        assert_eq!(body, "body");
        let kept = KeptResult { text: body.into(), fence, is_untrusted: true, is_sent: false };
        assert_eq!(fenced(&kept, "bo").lines().nth(1), Some("bo"));
        assert_eq!(fenced(&kept, body), text);
        let other = "[kitbag 0a: what]\nbody\n[kitbag 0b: end]";
        assert_eq!(without_fence(other), (other, None));
    }
}
