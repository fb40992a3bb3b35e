//! Scripts of `python` that call other tools, through the binary and the server.

use std::fs;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use kitbag::config::TOOLSETS;
use kitbag::contract::ToolDescription;
use kitbag::{NativeCall, NativeTool, Outcome};
use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, guest, snapshot};

/// The tools of `files`, `search` and `data`, which may write, and `probe` under a name that is not
/// an identifier.
fn workspace() -> Workspace {
    let workspace =
        Workspace::with_toolsets(&["python", "files", "search", "calc", "text", "write"]);
    workspace.own_config(&format!(
        "[tools.the-probe]\nsource = \"local\"\nwasm = {:?}\ngrants.filesystem = []\n\
         [tools.keep]\nsource = \"local\"\nwasm = {:?}\n\
         grants.filesystem = []\ngrants.storage = true\n",
        guest("probe"),
        guest("keep"),
    ));
    workspace
}

/// Removes the cost of tool calls from the answer of a script, except the number of calls.
fn without_spent(text: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((calls, _)) if line.starts_with('[') && calls.contains("of tools") => {
            format!("{calls}: <time>, <size>]")
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn run(workspace: &Workspace, code: &str) -> String {
    without_spent(&workspace.call("python", json!({ "code": code })))
}

#[track_caller]
fn check(workspace: &Workspace, code: &str, expected: &str) {
    assert_eq!(run(workspace, code), expected, "{code}");
}

fn one_call(value: &str) -> String {
    format!("{value}\n[1 call of tools: <time>, <size>]")
}

#[test]
fn tools_are_functions_of_a_script() {
    let workspace = workspace();
    workspace.file("a.txt", "one\ntwo\n");
    // Text is returned as a string, and the result of a tool with an output schema as data.
    check(&workspace, "the_probe(do='echo', text='é')", &one_call(r#""é""#));
    check(&workspace, "file_info(path='a.txt')['lines'] + 1", &one_call("3"));
    check(&workspace, "type(calculate(expression='1 + 1'))", &one_call("<class 'dict'>"));
    // Required arguments may be positional; a path is a string.
    check(&workspace, "the_probe('echo', text='x')", &one_call(r#""x""#));
    check(&workspace, "from pathlib import Path\nfile_info(Path('a.txt'))['size']", &one_call("8"));
    check(
        &workspace,
        "f = file_info\nsum(f(path=p)['lines'] for p in ['a.txt', 'a.txt'])",
        "4\n[2 calls of tools: <time>, <size>]",
    );
    // A definition of the script takes precedence.
    check(&workspace, "def file_info(path): return path\nfile_info('x')", r#""x""#);
    check(&workspace, "'file_info'", r#""file_info""#);
}

#[test]
fn mistakes_of_a_script_are_exceptions() {
    let workspace = workspace();
    let caught = |call: &str| {
        let code =
            format!("try:\n    {call}\nexcept Exception as e:\n    print(type(e).__name__, e)");
        let answer = run(&workspace, &code);
        answer.lines().filter(|line| !line.starts_with('[')).collect::<Vec<_>>().join("\n   ")
    };
    let mut shown = String::new();
    for call in [
        "the_probe(do='fail', message='no such luck')",
        "file_info(path='missing')",
        "file_info(paht='a')",
        "file_info(path=1)",
        "file_info()",
        "file_info('a', 'b')",
        "file_info('a', path='b')",
        "file_info(path={1})",
        "write_file(path='.kitbag/config.toml', content='')",
        "open('a.txt', 'w')",
        "flie_info(path='a')",
        "help('flie_info')",
        "python(code='1')",
        "the_probe(do='panic', message='x')",
    ] {
        shown.push_str(&format!("{call}\n=> {}\n", caught(call)));
    }
    snapshot!("exceptions", &shown);
    // For an uncaught exception, the suggestion follows the traceback.
    let answer = run(&workspace, "flie_info(path='a')");
    let end = "NameError: name 'flie_info' is not defined\ndid you mean the tool `file_info`? \
               help() lists all";
    assert!(answer.ends_with(end), "{answer}");
}

#[test]
fn help_shows_signatures_and_lists_all_tools() {
    let workspace = workspace();
    let shown = ["help()", "help(search_files)", "help(calculate)", "help('the_probe')"]
        .map(|code| format!("{code}\n{}\n\n", run(&workspace, code)));
    snapshot!("help", &shown.concat());
}

#[test]
fn awaited_calls_run_concurrently() {
    let workspace = workspace();
    let at_once = "import asyncio\n\
        tasks = [the_probe(do='sleep', ms=2500) for _ in range(4)]\n\
        len(await asyncio.gather(*tasks))";
    // Four consecutive sleeps would exceed the limit.
    let answer =
        workspace.run(&["run", "python", "--time", "9s", &format!("code={at_once}")]).success();
    assert!(answer.starts_with("4\n[4 calls of tools: "), "{answer}");
    check(&workspace, "await the_probe(do='echo', text='a')", &one_call(r#""a""#));
    let chained = "import asyncio\n\
        async def both(n):\n    first = await the_probe(do='echo', text=str(n))\n    \
        second = the_probe(do='echo', text=first + '!')\n    return second\n\
        async def main():\n    return await asyncio.gather(*(both(n) for n in range(3)))\n\
        asyncio.run(main())";
    check(&workspace, chained, "[\"0!\",\"1!\",\"2!\"]\n[6 calls of tools: <time>, <size>]");
    let failing = "import asyncio\ntry:\n    \
        await asyncio.gather(the_probe(do='fail', message='no'), the_probe(do='echo', text='a'))\n\
        except RuntimeError as e:\n    print(e)";
    check(
        &workspace,
        failing,
        "no\n[2 calls of tools, one of them not waited for: <time>, <size>]",
    );
    // The result of a call is not awaitable.
    let plain = run(&workspace, "import asyncio\nx = str(the_probe(do='echo', text='a'))\nawait x");
    assert!(
        plain.contains("a call of a tool returns its result; directly in `await …`"),
        "{plain}"
    );
}

#[test]
fn unawaited_calls_end_with_the_script_and_are_reported() {
    let workspace = workspace();
    let code = "async def never():\n    await task\n\
                task = the_probe(do='sleep', ms=600_000)\n1";
    check(&workspace, code, "1\n[1 call of tools, one of them not waited for: <time>, <size>]");
}

#[test]
fn content_besides_the_text_is_part_of_the_answer() {
    let workspace = workspace();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    workspace.file("a.png", from_base64(png));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answer = client.call("python", json!({ "code": "read_media(path='a.png')[:3]" }));
    assert_eq!(answer["content"][1]["type"], "image", "{answer}");
    assert_eq!(answer["content"][1]["data"], png, "{answer}");
    assert_eq!(answer["content"].as_array().unwrap().len(), 2, "{answer}");
}

/// Decodes base64.
fn from_base64(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = |byte: u8| digits.find(char::from(byte)).unwrap_or_default() as u32;
    let padding = text.bytes().filter(|byte| *byte == b'=').count();
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let number = group.iter().fold(0, |number, byte| (number << 6) | bits(*byte));
        bytes.extend_from_slice(&number.to_be_bytes()[1..]);
    }
    bytes.truncate(bytes.len() - padding);
    bytes
}

#[test]
fn only_tools_of_the_caller_are_defined() {
    let workspace = workspace();
    let described = |workspace: &Workspace| {
        let tool = workspace.kitbag().toolbox().tool("python").unwrap();
        tool.description.unwrap().value
    };
    assert!(described(&workspace).contains("\nread_file(path=…)\n"), "{}", described(&workspace));
    let named = |workspace: &Workspace, tool: &str| {
        let code =
            format!("try:\n    {tool}\n    print('there')\nexcept NameError as e:\n    print(e)");
        run(workspace, &code)
    };
    assert_eq!(named(&workspace, "write_file"), "there");
    assert_eq!(named(&workspace, "python"), "name 'python' is not defined");
    // A tool that is disabled for the caller is disabled for its scripts.
    let reading = Workspace::with_toolsets(&["python", "files"]);
    assert_eq!(named(&reading, "write_file"), "name 'write_file' is not defined");
    assert!(!described(&reading).contains("write_file"), "{}", described(&reading));
    // A workspace can remove tools without being trusted.
    workspace.config("[tools.python.grants]\ntools = {}\n");
    assert_eq!(named(&workspace, "read_file"), "name 'read_file' is not defined");
    assert!(described(&workspace).contains("No tools are granted"), "{}", described(&workspace));
    assert_eq!(run(&workspace, "help()"), "there are no tools that this script can call");
    // The user config defines other names, and only those exist.
    workspace.config("");
    workspace.own_config("[tools.python.grants]\ntools = { look = \"read_file\" }\n");
    assert_eq!(named(&workspace, "look"), "there");
    assert_eq!(named(&workspace, "read_file"), "name 'read_file' is not defined");
    let description = described(&workspace);
    assert!(description.contains("\nlook(path=…)"), "{description}");
    assert!(!description.contains("search_files("), "{description}");
}

#[test]
fn the_hints_of_python_follow_its_callable_tools() {
    let hints = |on: &[&str]| {
        let tool = Workspace::with_toolsets(on).kitbag().toolbox().tool("python").unwrap();
        (tool.annotations.read_only_hint, tool.annotations.open_world_hint)
    };
    assert_eq!(hints(&["python"]), (Some(true), Some(false)));
    assert_eq!(hints(&["python", "files", "search"]), (Some(true), Some(false)));
    assert_eq!(hints(&["python", "files", "write"]), (Some(false), Some(false)));
    let local = workspace();
    local.own_config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {:?}\n\
         grants.http = [\"https://example.com/**\"]\n",
        guest("probe"),
    ));
    let tool = local.kitbag().toolbox().tool("python").unwrap();
    assert_eq!(tool.annotations.open_world_hint, Some(true));
}

#[test]
fn a_workspace_lowers_the_limit_of_two_hundred_calls() {
    let workspace = workspace();
    let code = "n = 0\ntry:\n    while True:\n        the_probe(do='echo', text='x')\n        \
                n += 1\nexcept RuntimeError as e:\n    print(n, e)";
    let limit = |calls: u32| {
        format!(
            "{calls} the call made {calls} calls of other tools, its limit `tool_calls`\n\
             [{calls} calls of tools: <time>, <size>]"
        )
    };
    check(&workspace, code, &limit(200));
    workspace.config("[tools.python.limits]\ntool_calls = 30\n");
    check(&workspace, code, &limit(30));
    workspace.config("[tools.python.limits]\ntool_calls = 201\n");
    let refused = workspace.run(&["check"]);
    assert!(refused.shown().contains("above the ceiling of `200`"), "{}", refused.shown());
    // The user's limits for all tools apply to this tool.
    workspace.config("");
    workspace.own_config("[limits]\ntool_calls = 3\n");
    let allowed = || workspace.kitbag().toolbox().tool("python").unwrap().limits.tool_calls.value;
    assert_eq!(allowed(), 3);
    workspace.own_config("[ceiling]\ntool_calls = 7\n");
    assert_eq!(allowed(), 7);
}

/// One call instead of six, with three tools and a question in the middle. Each write appends, so
/// the file shows how often it was made.
const SCRIPT: &str = "\
import asyncio
from datetime import datetime
began = datetime.now()
drafts = find_files(globs=['*.draft']).split()
print('drafts:', len(drafts))
await asyncio.gather(*[write_file(path='log', content=d + '\\n', append=True) for d in drafts])
remove_path(path=drafts[0])
write_file(path='log', content='removed\\n', append=True)
print('left:', find_files(globs=['*.draft']))
(datetime.now() - began).total_seconds() >= 0";

const QUESTION: &str = "3/remove_path/remove";

fn project() -> Workspace {
    let workspace = workspace();
    workspace.file("a.draft", "a");
    workspace.file("b.draft", "b");
    workspace
}

#[track_caller]
fn check_project(workspace: &Workspace, answer: &str) {
    assert_eq!(
        without_spent(answer),
        "drafts: 2\nleft: b.draft\ntrue\n[6 calls of tools: <time>, <size>]"
    );
    let log = fs::read_to_string(workspace.path("log")).unwrap();
    let mut log: Vec<_> = log.lines().collect();
    assert_eq!(log.pop(), Some("removed"));
    log.sort_unstable();
    assert_eq!(log, ["a.draft", "b.draft"]);
    assert!(!workspace.path("a.draft").exists());
}

/// Checks the log messages that the client received: no message is repeated.
#[track_caller]
fn check_logged(client: &mut Client) {
    let logged: Vec<_> = client
        .others()
        .into_iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| message["params"].clone())
        .map(|log| format!("{} {} {}", log["logger"], log["level"], log["data"]))
        .collect();
    assert_eq!(logged, [r#""python" "info" "drafts: 2""#, r#""python" "info" "left: b.draft""#]);
}

#[test]
fn one_call_replaces_six_with_a_handshake() {
    let workspace = project();
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let call = json!({ "name": "python", "arguments": { "code": SCRIPT } });
    let id = client.send("tools/call", call);
    let asked = client
        .reply("elicitation/create", json!({ "action": "accept", "content": { QUESTION: true } }));
    assert_eq!(asked["message"], "`remove_path` asks: Remove `a.draft` (1 B)?");
    let answer = client.answer(id);
    check_project(&workspace, answer["result"]["content"][0]["text"].as_str().unwrap());
    check_logged(&mut client);
}

#[test]
fn one_call_replaces_six_for_a_stateless_client() {
    let workspace = project();
    let mut client = Client::stateless(&workspace, json!({ "elicitation": {} }));
    let mut call = json!({
        "name": "python",
        "arguments": { "code": SCRIPT },
        "_meta": { "io.modelcontextprotocol/logLevel": "info" },
    });
    let asked = client.request("tools/call", call.clone())["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    call["requestState"] = asked["requestState"].clone();
    let accept = json!({ "action": "accept", "content": { QUESTION: true } });
    call["inputResponses"] = json!({ QUESTION: accept });
    let answer = client.request("tools/call", call);
    check_project(&workspace, answer["result"]["content"][0]["text"].as_str().unwrap());
    check_logged(&mut client);
}

#[test]
fn one_call_replaces_six_on_the_command_line() {
    let workspace = project();
    let code = format!("code={SCRIPT}");
    let asked = workspace.run(&["run", "python", &code]);
    assert_eq!(asked.code, 3, "{}", asked.shown());
    assert!(asked.stderr.contains("remove_path/remove`: Remove `a.draft`"), "{}", asked.shown());
    fs::remove_file(workspace.path("log")).unwrap();
    let answer = format!("{QUESTION}=true");
    let run = workspace.run(&["run", "python", "--verbose", "--answer", &answer, &code]);
    let logged: Vec<_> = run.stderr.lines().filter(|line| line.contains("info")).collect();
    assert_eq!(logged.len(), 2, "{}", run.shown());
    check_project(&workspace, run.success().trim_end());
}

#[test]
fn the_clock_of_a_script_stops_during_a_question() {
    let workspace = workspace();
    let code = "from datetime import datetime\nprint(datetime.now().isoformat())\n\
                the_probe(do='ask')\nkeep(action='set', key='now', value=datetime.now().isoformat())";
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let call = json!({ "name": "python", "arguments": { "code": code } });
    let id = client.send("tools/call", call);
    let accept = json!({ "action": "accept", "content": { "0/the-probe/go-on": true } });
    client.reply("elicitation/create", accept);
    let answer = client.answer(id)["result"].clone();
    let printed = answer["content"][0]["text"].as_str().unwrap().lines().next().unwrap();
    let logged = client.others();
    let logged: Vec<_> = logged.iter().filter_map(|log| log["params"]["data"].as_str()).collect();
    // The last run reads the same time that the first run printed.
    assert_eq!(logged, [printed], "{answer}");
}

#[test]
fn random_numbers_differ_between_calls_and_repeat_in_reruns() {
    let workspace = workspace();
    let code = "import os, random, secrets, uuid\n\
        def draw():\n    \
        return [random.random(), random.SystemRandom().random(), secrets.token_hex(8),\n            \
        str(uuid.uuid4()), str(uuid.uuid1()), os.urandom(8).hex()]\n\
        print(draw())\nthe_probe(do='ask')\nprint(draw())\n";
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let mut draw = || {
        let call = json!({ "name": "python", "arguments": { "code": code } });
        let id = client.send("tools/call", call);
        let accept = json!({ "action": "accept", "content": { "0/the-probe/go-on": true } });
        client.reply("elicitation/create", accept);
        let answer = client.answer(id)["result"]["content"][0]["text"].clone();
        let printed: Vec<_> = answer.as_str().unwrap().lines().take(2).map(str::to_owned).collect();
        let logged = client.others();
        let logged: Vec<_> =
            logged.iter().filter_map(|log| log["params"]["data"].as_str()).collect();
        // The first line was logged by the first run, and printed again by the second.
        assert_eq!(logged, printed, "{answer}");
        printed
    };
    let lines = [draw(), draw()].concat();
    for (at, line) in lines.iter().enumerate() {
        for other in &lines[at + 1..] {
            let mut pairs = line.split(", ").zip(other.split(", "));
            assert!(pairs.all(|(one, two)| one != two), "{line} {other}");
        }
    }
}

#[test]
fn output_is_reported_while_the_script_runs() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let code = "print('a', 'b')\nprint()\nprint('c', end='')\nprint('d\\ne')\nprint('f', end='')\nwhile True: pass";
    let call = json!({ "name": "python", "arguments": { "code": code } });
    let id = client.send("tools/call", call);
    for expected in ["a b", "cd\ne"] {
        let logged = client.notification("notifications/message");
        assert_eq!((&logged["level"], &logged["data"]), (&json!("info"), &json!(expected)));
    }
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    let (kitbag, heard) = workspace.kitbag_with_ears();
    kitbag.call_in_test("python", json!({ "code": "for i in range(5000):\n    print(i)" }));
    let (logs, _) = heard.take();
    assert_eq!(logs.len(), 1001);
    assert_eq!(logs[999].1, "999");
    assert!(logs[1000].1.contains("the rest is dropped"), "{:?}", logs[1000]);
}

/// A tool that declares numbers but returns something else, or a large answer.
struct Liar(AtomicUsize);

impl NativeTool for Liar {
    fn description(&self) -> ToolDescription {
        ToolDescription {
            name: "liar".into(),
            output_schema: Some(json!({ "type": "array", "items": { "type": "integer" } })),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let answer = match call.arguments()["how"].as_str() {
            Some("nonsense") => "not even JSON".to_owned(),
            Some("large") => format!("[{}0]", "12345,".repeat(1 << 20)),
            _ => json!(["a", 1]).to_string(),
        };
        Box::pin(async { Outcome::Success(answer) })
    }
}

#[test]
fn a_result_that_violates_its_schema_is_an_error() {
    let workspace = Workspace::with_toolsets(&["python"]);
    let kitbag = workspace.builder().tool(Liar(AtomicUsize::new(0))).build().unwrap();
    let mut shown = String::new();
    for how in ["nonsense", "other", "large"] {
        let answer = kitbag.call_in_test("python", json!({ "code": format!("liar(how='{how}')") }));
        shown.push_str(&format!("{how}\n=> {}\n\n", without_spent(&answer)));
    }
    snapshot!("liar", &shown);
}

#[test]
fn hostile_scripts_hit_limits_without_affecting_others() {
    let workspace = workspace();
    // No call waits for memory that others have reserved; the wait would be limited to a minute.
    workspace.add_to_own_config("[serve]\nmemory = \"64GiB\"\n[ceiling]\ntime = \"120s\"\n");
    // The same tool twice, with a short time limit for endless scripts.
    workspace.config(
        "[tools.python]\nsource = \"builtin\"\nbuiltin = \"python\"\nlimits.time = \"120s\"\n\
         [tools.hasty]\nsource = \"builtin\"\nbuiltin = \"python\"\nlimits.time = \"2s\"\n",
    );
    workspace.file("big", "x".repeat(40 << 20));
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let call = |tool: &str, arguments: Value| {
        let reply =
            server.message("", "tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.message()["result"].clone()
    };
    let text =
        |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let nested = "help(".repeat(500);
    let hostile = [
        (
            "for i in range(10_000): the_probe(do='echo', text='x')",
            "200 calls of other tools, its limit `tool_calls`",
        ),
        (
            "import asyncio\nawait asyncio.gather(*[the_probe(do='echo', text='x') for _ in range(10_000)])",
            "200 calls of other tools, its limit `tool_calls`",
        ),
        (
            "forks = []\nasync def never():\n    await forks[0]\n\
             for _ in range(10_000): forks.append(the_probe(do='sleep', ms=60_000))",
            "200 calls of other tools, its limit `tool_calls`",
        ),
        ("while True: the_probe(do='spin')", "limit: time (2s)"),
        ("while True: pass", "limit: time (2s)"),
        ("def f(): return the_probe(do='echo', text='x') + f()\nf()", "`tool_calls`"),
        ("async def f(): return await f()\nawait f()", "RecursionError"),
        ("x = []\nwhile True: x.append(the_probe(do='output', bytes=1_000_000))", "limit: "),
        ("x, part = [], 'a' * 100_000\nwhile True: x.append(part + 'a')", "limit: memory"),
        ("open('big').read() + open('big').read()", "limit: memory"),
        ("the_probe(do='echo', text='x' * (30 << 20))", "limit: "),
        ("the_probe(do='recurse')", "RuntimeError"),
        (&nested, "SyntaxError"),
        ("async def f():\n    await g\ng = f()\nawait g", "coroutine already executing"),
    ];
    let ended = AtomicUsize::new(0);
    let (ended, call, text) = (&ended, &call, &text);
    thread::scope(|scope| {
        for (code, expected) in hostile {
            scope.spawn(move || {
                let tool = if expected.ends_with("(2s)") { "hasty" } else { "python" };
                let result = call(tool, json!({ "code": code }));
                ended.fetch_add(1, Ordering::Relaxed);
                assert!(text(&result).contains(expected), "{code}: {}", text(&result));
                assert_eq!(result["isError"], true, "{code}: {}", text(&result));
            });
        }
        scope.spawn(move || {
            let mut answered = 0;
            while ended.load(Ordering::Relaxed) < hostile.len() {
                let result = call("the-probe", json!({ "do": "echo", "text": "well" }));
                assert_eq!(text(&result), "well");
                answered += 1;
            }
            assert!(answered > 0);
        });
    });
    // Later calls work as before.
    let result = call("python", json!({ "code": "the_probe(do='echo', text='after')" }));
    assert!(text(&result).starts_with("\"after\"\n"), "{result}");
}

#[test]
fn the_example_of_the_page_is_correct() {
    let page = include_str!("../../docs/python.md");
    let (_, rest) = page.split_once("<!-- example -->\n\n```python\n").unwrap();
    let (code, rest) = rest.split_once("```\n").unwrap();
    let (_, rest) = rest.split_once("```\n").unwrap();
    let (answer, _) = rest.split_once("```").unwrap();
    let workspace = Workspace::with_toolsets(&["python", "files", "search", "write"]);
    workspace.file("src/a.rs", "// TODO: one\nfn a() {}\n// TODO: two\n");
    workspace.file("src/b.rs", "// TODO: three\n");
    workspace.file("src/c.rs", "fn c() {}\n");
    assert_eq!(run(&workspace, code), without_spent(answer.trim_end()));
    snapshot!("todo", &fs::read_to_string(workspace.path("TODO.md")).unwrap());
}

#[test]
fn the_signatures_in_the_description_match_the_tools() {
    let workspace = Workspace::with_toolsets(&[&TOOLSETS[..], &["write"]].concat());
    workspace.own_config("[tools.fetch.grants]\nhttp = [\"https://docs.rs/**\"]\n");
    let kitbag = workspace.kitbag();
    let described = kitbag.toolbox().tool("python").unwrap().description.unwrap().value;
    let lines = described.lines().filter(|line| line.ends_with(')') && line.contains('('));
    let mut seen = 0;
    for line in lines {
        let (name, arguments) = line.trim_end_matches(')').split_once('(').unwrap();
        let Ok(tool) = kitbag.toolbox().tool(name) else { continue };
        let schema: Value = serde_json::from_str(&tool.input_schema.value.to_string()).unwrap();
        let given: Vec<_> = arguments.split(", ").collect();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let by_position: Vec<_> = given.iter().filter(|name| !name.contains('=')).collect();
        let required: Vec<_> = required.iter().filter_map(Value::as_str).collect();
        assert_eq!(by_position, required.iter().collect::<Vec<_>>(), "{line}");
        for name in given.iter().map(|name| name.trim_end_matches("=…")) {
            assert!(schema["properties"].get(name).is_some(), "{line}: {name}");
        }
        seen += 1;
    }
    assert_eq!(seen, 12, "{described}");
}
