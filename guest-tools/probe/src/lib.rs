//! The tool `probe`: tries the operations of tools, permitted and forbidden, as a call requests. It
//! answers with a sentence that names the operation and its result. The host's tests store these
//! sentences as reviewed snapshots, so they contain no address, inode or time, and are the same
//! everywhere.
//!
//! It is an ordinary tool: loaded from disk, never part of kitbag.
//!
//! # Actions
//!
//! The argument `do` selects one; the other arguments belong to the action. Optional ones are in
//! brackets with their defaults. A refusal is content, not an error: `refused (CODE)` with the name
//! of WASI's code.
//!
//! | `do` | arguments | answer, also if refused |
//! |---|---|---|
//! | `echo` | `text` | the text itself |
//! | `arguments` | anything | the arguments' JSON, unchanged |
//! | `answers` | | the answers' JSON, unchanged |
//! | `context` | | `context: root /workspace, action run, name probe` |
//! | `preopens` | | `preopens: /workspace, /data` or `preopens: none` |
//! | `read` | PATH, [`limit` 1048576] | `read a.txt: 6 bytes: hello\n` or `read ../a: refused (not-permitted)` |
//! | `write` | PATH, `text` | `write a.txt: 5 bytes` or `write a.txt: refused (not-permitted)`; creates and truncates |
//! | `append` | PATH, `text` | `append a.txt: 5 bytes`; creates |
//! | `truncate` | PATH | `truncate a.txt: opened, 0 bytes left`; opens with `truncate` and `read`, not with `write` |
//! | `set-size` | PATH, `bytes`, [`write` false, `abort` false] | `set-size a.txt: done`; through a descriptor that was opened with `read`, or with `write`; with `abort` a refusal traps |
//! | `open` | PATH, [`open` [], `flags` [], `follow` true] | `open a.txt: a regular-file with read`; `open` of `create`, `directory`, `exclusive`, `truncate`, `flags` of `read`, `write`, `mutate-directory`, `file-integrity-sync`, `data-integrity-sync`, `requested-write-sync` |
//! | `list` | PATH | `list .: a.txt (regular-file), sub (directory)` or `list .: empty`; an entry whose name cannot be represented is `? (illegal-byte-sequence)` |
//! | `list-all` | PATH | `list-all .: 3 files, 1 directory, 0 links, 0 others, 0 refused`; follows no link |
//! | `stat`, `lstat` | PATH | `stat a.txt: regular-file, 5 bytes`; a directory has no size |
//! | `readlink` | PATH | `readlink l: ../a.txt` |
//! | `mkdir`, `rmdir`, `remove` | PATH | `mkdir sub: done` |
//! | `set-times` | PATH, [`seconds` 0, `follow` true, `held` false] | `set-times a.txt: done`; with `held` through a descriptor that was opened with `read` |
//! | `symlink` | `target`, PATH | `symlink l to ../a.txt: done` |
//! | `link` | OLD, NEW, [`follow` false] | `link a.txt to b.txt: done`; a hard link |
//! | `rename` | OLD, NEW | `rename a.txt to b.txt: done` |
//! | `held` | PATH, OLD, NEW, `name` | `held a, rename a to b: written`: opens the directory PATH, renames, and writes a file of that name in the open directory |
//! | `gather` | PATH, `until`, [`then` ""] | `gather a.txt: let go`: creates the file, and waits until a file exists at the path `until`; with `then` of `spin`, it then loops forever |
//! | `tmp` | | `tmp: no directory`, `tmp: marker absent, left one`, `tmp: marker present` |
//! | `print` | [`text` "", `to` "stdout", `repeat` 1], THEN | `print: 5 bytes to stdout` or `print: 65536 bytes to stdout, then refused (closed)`; `to` of `stdout`, `stderr`, `both` |
//! | `stdin` | | `stdin: 0 bytes` |
//! | `environment` | | `environment: A=1, B=2` or `environment: none` |
//! | `argv` | | `argv: none` or `argv: a, b` |
//! | `cwd` | | `cwd: none` or `cwd: /workspace` |
//! | `exit` | [`code` 0] | none: it ends the instance through `wasi:cli/exit`, as a failure unless the code is 0 |
//! | `ask` | [`id` "go-on", `text` "Go on?", `answer_type` "boolean", `default`] | asks; with an answer, `ask: {"go-on":true}` |
//! | `ask-twice` | | asks `first` (text), then `second` (boolean); `ask-twice: {"first":"a","second":true}` |
//! | `fail` | [`message` "it failed", `trace` [], `transient` false] | the error |
//! | `panic` | [`message` "it panicked"] | none: it traps, the message is in stderr |
//! | `spin` | | none: an endless loop without calls |
//! | `spin-hostcall` | | none: an endless loop that reads the clock |
//! | `sleep` | `ms` | `sleep 10 ms: awake` |
//! | `allocate` | `bytes`, [`step` = `bytes`, `abort` false] | `allocate 1048576 bytes: done` or `allocate 99999999 bytes: refused in step 62 of 95`; touches every page; with `abort` a refusal traps |
//! | `recurse` | [`memory` false] | none: it recurses until the host's stack overflows or, with `memory`, the stack in its own memory |
//! | `output` | `bytes` | `xxx…` of exactly that length |
//! | `random` | `bytes` | `random 16 bytes: 16 bytes`, in one request |
//! | `handles` | `n`, [`of` "descriptors"] | `handles 9 descriptors: 9 are open`; `of` of `descriptors`, `streams` (of a file in the root), `listings` |
//! | `pollables` | `n`, [`poll` false] | `pollables 9: 9 are open`, or, if all are polled at once, `pollables 9: 9 are ready` |
//! | `connect` | `address` | `connect 127.0.0.1:80: connected` or `connect 127.0.0.1:80: refused (access-denied) at start-connect` |
//! | `udp` | `address` | `udp 127.0.0.1:53: sent` or `udp 127.0.0.1:53: refused (access-denied) at start-bind` |
//! | `resolve` | `name` | `resolve localhost: 127.0.0.1` or `resolve localhost: refused (access-denied)` |
//! | `log` | [`level` "info", `text` "hello" or `bytes`, `repeat` 1], THEN | `log: 1 info`; with `level` of `all`, one message per level; `bytes` for a text of that length |
//! | `progress` | [`steps` [], `total`, `text` or `bytes`, `more` 0], THEN | `progress: 3 steps`; a step is the text of a number, such as `NaN`; `more` continues from the last step |
//! | `emit` | [`kind` "image", `bytes` 4 or `data`, `repeat` 1, `mime` "image/png", `uri` "file:///a", `name` "a", `title`, `description`], THEN | `emit: 1 item taken` or `emit: 2 items taken, then refused (REASON)`; `kind` of `image`, `audio`, `text`, `blob`, `link`, or `all` for one of each kind; an empty `mime` is omitted |
//! | `state` | | `state: call 1 of this instance, marker absent`, in a fresh instance |
//!
//! PATH is `path` and optionally `preopen`; OLD and NEW are `old` and `new` with `old_preopen` and
//! `new_preopen`. Without a preopen, an absolute path selects the longest one that contains it, and
//! a relative path starts at the context's root. With a preopen, which is named by its guest path,
//! the path is sent to the host unchanged, even if it is empty, `.`, `a/../../b`, `/etc/passwd` or
//! `a/`, or contains NUL bytes. A path outside all preopens is `refused (no directory)`. Bytes that
//! are not Unicode cannot be tested, because strings of the interface cannot contain them.
//!
//! THEN is [`then` ""], of `spin`, `panic`, `fail`, `ask`, `exit` and `recurse`: the next action;
//! or `unreachable`, the instruction.
//!
//! Control characters in answers are escaped, and values longer than 60 characters (200 for
//! contents) are shortened and state their length.
//!
//! `format-arguments` answers `probe read (0 directories)`: the number of directories that it could
//! reach during the action. For `emit` it also reports the result of emitting content there, and it
//! does the same in its description. With the argument `rendered` it answers with that text, loops
//! forever (`spin`) or traps (`panic`).

#![forbid(unsafe_code)]

mod arguments;
mod dialogue;
mod files;
#[cfg(feature = "network")]
mod network;
mod places;
mod process;
mod reports;
mod resources;
mod sentence;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, json};

use crate::arguments::Arguments;

/// The tool.
struct Probe;

kitbag_sdk::export!(Probe);

/// Tries one operation and reports the result.
type Action = fn(&Call, &Arguments) -> Result<String, Stop>;

const ACTIONS: &[(&str, Action)] = &[
    ("echo", dialogue::echo),
    ("arguments", dialogue::arguments),
    ("answers", dialogue::answers),
    ("context", dialogue::context),
    ("ask", dialogue::ask),
    ("ask-twice", dialogue::ask_twice),
    ("fail", dialogue::fail),
    ("panic", dialogue::panic),
    ("preopens", files::preopens),
    ("read", files::read),
    ("write", files::write),
    ("append", files::append),
    ("truncate", files::truncate),
    ("set-size", files::set_size),
    ("open", files::open),
    ("list", files::list),
    ("list-all", files::list_all),
    ("stat", files::stat),
    ("lstat", files::lstat),
    ("readlink", files::readlink),
    ("mkdir", files::mkdir),
    ("rmdir", files::rmdir),
    ("remove", files::remove),
    ("set-times", files::set_times),
    ("symlink", files::symlink),
    ("link", files::link),
    ("rename", files::rename),
    ("held", files::held),
    ("tmp", files::tmp),
    ("print", process::print),
    ("stdin", process::stdin),
    ("environment", process::environment),
    ("argv", process::argv),
    ("cwd", process::cwd),
    ("exit", dialogue::exit),
    ("spin", resources::spin),
    ("spin-hostcall", resources::spin_hostcall),
    ("sleep", resources::sleep),
    ("allocate", resources::allocate),
    ("recurse", resources::recurse),
    ("output", resources::output),
    ("random", resources::random),
    ("handles", resources::handles),
    ("pollables", resources::pollables),
    ("gather", files::gather),
    ("state", resources::state),
    ("log", reports::log),
    ("progress", reports::progress),
    ("emit", reports::emit),
    #[cfg(feature = "network")]
    ("connect", network::connect),
    #[cfg(feature = "network")]
    ("need-connection", network::need_connection),
    #[cfg(feature = "network")]
    ("udp", network::udp),
    #[cfg(feature = "network")]
    ("resolve", network::resolve),
];

impl Tool for Probe {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::new("probe")
            .title("Probe")
            .description(format!(
                "Try what a tool can do and what it must not be able to do. ({})",
                reports::unheard(),
            ))
            .input_schema(json!({
                "type": "object",
                "properties": {
                    "do": { "type": "string", "description": "The action." },
                },
                "required": ["do"],
                "additionalProperties": true,
            }))
    }

    fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
        let name = arguments.text("do")?;
        let Some((_, action)) = ACTIONS.iter().find(|(action, _)| *action == name) else {
            return Err(
                ErrorInfo::new(format!("invalid arguments: there is no action `{name}`")).into()
            );
        };
        action(call, &arguments)
    }

    fn format_arguments(call: &Call, arguments: Arguments) -> String {
        let action = sentence::shown(arguments.text_or("do", "nothing"));
        let directories =
            sentence::count(places::Places::open().count(), "directory", "directories");
        let line = format!("{} {action} ({directories})", call.name());
        match arguments.text_or("rendered", "") {
            "" => {}
            "spin" => resources::endless(),
            "panic" => panic!("it does not render"),
            text => return text.to_owned(),
        }
        match arguments.text_or("do", "") {
            "emit" => format!("{line}; {}", reports::unheard()),
            _ => line,
        }
    }
}
