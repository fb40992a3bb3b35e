//! Hand-made components that no compiler would generate.

/// The lifting of a core function to the export `describe`.
const DESCRIBE: &str = r#"(func (export "describe") (result string)
  (canon lift (core func $guest "describe") (memory (core memory $guest "memory"))))"#;

/// The type of a tool's `run`.
const RUN: &str = r#"(param "ctx" $context) (param "name" string) (param "arguments" string)
           (param "answers" string) (result $outcome)"#;

/// The parts of a component, besides those of every tool.
#[derive(Default)]
struct Parts<'a> {
    /// The package and interface of the types.
    package: &'a str,
    /// Text at the start of the component.
    imports: &'a str,
    /// Text before the core module, and the arguments of its instantiation.
    before: &'a str,
    with: &'a str,
    /// Text at the start of the core module.
    core: &'a str,
    /// The type of `run`, and its function in the core module.
    ty: &'a str,
    run: &'a str,
    /// Text at the end of the component.
    after: &'a str,
}

/// The smallest tool: its `run` answers with `success` and the text `ok`.
///
/// `package` names the interface of its types, `imports` is additional text at the start of the
/// component.
pub(crate) fn tool(package: &str, imports: &str) -> Vec<u8> {
    component(&Parts {
        package,
        imports,
        ty: RUN,
        run: &answer("i32.const 16"),
        ..Parts::default()
    })
}

/// A tool with additional text in its core module: declarations, and instructions that run before
/// it answers.
pub(crate) fn tool_with_core(core: &str, instructions: &str) -> Vec<u8> {
    let run = answer(&format!("{instructions} i32.const 16"));
    component(&Parts { package: "a:b/c", core, ty: RUN, run: &run, ..Parts::default() })
}

/// A tool that answers with an error whose trace is the same string of `length` NUL bytes many
/// times: small in its own memory, large when it is copied.
pub(crate) fn same_text_again(times: usize, length: usize) -> Vec<u8> {
    let pages = (times * 8).div_ceil(65536) + 64;
    // The answer at 512: case 1, the message, the trace, and the flag for a temporary error.
    let run = answer(&format!(
        r#"(drop (memory.grow (i32.const {pages})))
           (loop $next
             (i32.store offset=4194304
               (i32.mul (local.get 9) (i32.const 8)) (i32.const 2000000))
             (i32.store offset=4194308
               (i32.mul (local.get 9) (i32.const 8)) (i32.const {length}))
             (local.set 9 (i32.add (local.get 9) (i32.const 1)))
             (br_if $next (i32.lt_u (local.get 9) (i32.const {times}))))
           (i32.store8 (i32.const 512) (i32.const 1))
           (i32.store (i32.const 524) (i32.const 4194304))
           (i32.store (i32.const 528) (i32.const {times}))
           i32.const 512"#
    ));
    component(&Parts { package: "a:b/c", ty: RUN, run: &run, ..Parts::default() })
}

/// A tool that checks that fresh memory contains only zeros, traps if it does not, and fills that
/// memory.
pub(crate) fn dirty() -> Vec<u8> {
    tool_with_core(
        "(global $seen (mut i32) (i32.const 0))",
        r#"(if (global.get $seen) (then unreachable))
           (global.set $seen (i32.const 1))
           (drop (memory.grow (i32.const 100)))
           (local.set 9 (i32.const 65536))
           (loop $next
             (if (i64.ne (i64.load (local.get 9)) (i64.const 0)) (then unreachable))
             (i64.store (local.get 9) (i64.const -1))
             (local.set 9 (i32.add (local.get 9) (i32.const 8)))
             (br_if $next (i32.lt_u (local.get 9) (i32.const 6619136))))"#,
    )
}

/// A tool that creates this many handles of its own resource.
pub(crate) fn own_handles(count: usize) -> Vec<u8> {
    let run = answer(&format!(
        r#"(loop $again
             (drop (call $new (i32.const 0)))
             (local.set 9 (i32.add (local.get 9) (i32.const 1)))
             (br_if $again (i32.lt_u (local.get 9) (i32.const {count}))))
           i32.const 16"#
    ));
    component(&Parts {
        package: "a:b/c",
        before: "(type $mine (resource (rep i32))) (core func $new (canon resource.new $mine))",
        with: r#"(with "host" (instance (export "new" (func $new))))"#,
        core: r#"(import "host" "new" (func $new (param i32) (result i32)))"#,
        ty: RUN,
        run: &run,
        ..Parts::default()
    })
}

/// A tool whose `describe` never ends.
pub(crate) fn endless_description() -> Vec<u8> {
    component(&Parts {
        package: "a:b/c",
        core: r#"(func (export "describe") (result i32) (loop (br 0)) unreachable)"#,
        ty: RUN,
        run: &answer("i32.const 16"),
        after: DESCRIBE,
        ..Parts::default()
    })
}

/// Builds a tool with this description.
pub(crate) fn describing(text: &str) -> Vec<u8> {
    describing_with(text, "i32.const 16")
}

/// Builds a tool with this description that answers with a JSON string of this many bytes.
pub(crate) fn describing_and_answering(text: &str, length: usize) -> Vec<u8> {
    let last = 131_072 + length - 1;
    let answer = format!(
        r#"(drop (memory.grow (i32.const 64)))
           (memory.fill (i32.const 131072) (i32.const 97) (i32.const {length}))
           (i32.store8 (i32.const 131072) (i32.const 34))
           (i32.store8 (i32.const {last}) (i32.const 34))
           (i32.store (i32.const 20) (i32.const 131072))
           (i32.store (i32.const 24) (i32.const {length}))
           i32.const 16"#
    );
    describing_with(text, &answer)
}

/// Builds a tool with this description that answers every call with a short string.
pub(crate) fn describing_and_saying(text: &str, says: &str) -> Vec<u8> {
    let answer = format!(
        r#"(i32.store (i32.const 20) (i32.const 32768))
           (i32.store (i32.const 24) (i32.const {}))
           i32.const 16"#,
        says.len()
    );
    with_text(text, says, &answer)
}

/// Builds a tool with this description that traps in every call.
pub(crate) fn describing_and_trapping(text: &str) -> Vec<u8> {
    describing_with(text, "unreachable")
}

/// Builds a tool with this description and this body of `run`.
fn describing_with(text: &str, run: &str) -> Vec<u8> {
    with_text(text, "", run)
}

/// Like [`describing_with`], with another string at 32768.
fn with_text(text: &str, other: &str, run: &str) -> Vec<u8> {
    let data = |at: usize, text: &str| {
        let bytes: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        format!("(data (i32.const {at}) \"{bytes}\")")
    };
    let other = if other.is_empty() { String::new() } else { data(32768, other) };
    let (text, length) = (data(2048, text), text.len());
    let core = format!(
        r#"{text} {other}
           (func (export "describe") (result i32)
             (i32.store (i32.const 0) (i32.const 2048))
             (i32.store (i32.const 4) (i32.const {length}))
             (i32.const 0))"#
    );
    component(&Parts {
        package: "a:b/c",
        core: &core,
        ty: RUN,
        run: &answer(run),
        after: DESCRIBE,
        ..Parts::default()
    })
}

/// A tool whose description is `start`, then `again` this many times, then `end`, built when
/// `describe` is called.
pub(crate) fn describing_again(start: &str, again: &str, times: usize, end: &str) -> Vec<u8> {
    const TEXTS: usize = 2048;
    const ANSWER: usize = 65536;
    let text = |text: &str| text.bytes().map(|b| format!("\\{b:02x}")).collect::<String>();
    let (again_at, end_at) = (TEXTS + start.len(), TEXTS + start.len() + again.len());
    let length = start.len() + again.len() * times + end.len();
    let pages = length.div_ceil(65536) + 1;
    let (start_len, again_len, end_len) = (start.len(), again.len(), end.len());
    let core = format!(
        r#"(data (i32.const {TEXTS}) "{}")
           ;; Room for arguments.
           (func $grow (drop (memory.grow (i32.const 64))))
           (start $grow)
           (func (export "describe") (result i32) (local i32 i32)
             (if (i32.eq (memory.grow (i32.const {pages})) (i32.const -1)) (then unreachable))
             (memory.copy (i32.const {ANSWER}) (i32.const {TEXTS}) (i32.const {start_len}))
             (local.set 0 (i32.const {}))
             (loop $next
               (memory.copy (local.get 0) (i32.const {again_at}) (i32.const {again_len}))
               (local.set 0 (i32.add (local.get 0) (i32.const {again_len})))
               (local.set 1 (i32.add (local.get 1) (i32.const 1)))
               (br_if $next (i32.lt_u (local.get 1) (i32.const {times}))))
             (memory.copy (local.get 0) (i32.const {end_at}) (i32.const {end_len}))
             (i32.store (i32.const 0) (i32.const {ANSWER}))
             (i32.store (i32.const 4) (i32.const {length}))
             (i32.const 0))"#,
        text(&[start, again, end].concat()),
        ANSWER + start.len(),
    );
    component(&Parts {
        package: "a:b/c",
        core: &core,
        ty: RUN,
        run: &answer("i32.const 16"),
        after: DESCRIBE,
        ..Parts::default()
    })
}

/// A tool with this many additional memories of `pages` pages; all pages are written at the start.
pub(crate) fn full_memories(count: usize, pages: usize) -> Vec<u8> {
    let bytes = pages << 16;
    component(&Parts {
        package: "a:b/c",
        before: &format!(
            r#"(core module $full
                 (memory {pages})
                 (func $fill (memory.fill (i32.const 0) (i32.const 1) (i32.const {bytes})))
                 (start $fill))"#
        ),
        ty: RUN,
        run: &answer("i32.const 16"),
        after: &"(core instance (instantiate $full))\n".repeat(count),
        ..Parts::default()
    })
}

/// A tool with this many additional core instances.
pub(crate) fn many_instances(count: usize) -> Vec<u8> {
    let after = "(core instance (instantiate $empty))\n".repeat(count);
    component(&Parts {
        package: "a:b/c",
        before: "(core module $empty)",
        ty: RUN,
        run: &answer("i32.const 16"),
        after: &after,
        ..Parts::default()
    })
}

/// A core function of this many nested blocks, each with a thousand results that can branch to any
/// enclosing block.
pub(crate) fn wide_branches(blocks: usize) -> String {
    use std::fmt::Write as _;
    let open = "(block (type $wide)".repeat(blocks);
    let mut rest = format!("{} local.get 0", "local.get 0 ".repeat(1_000));
    for outer in (0..blocks).rev() {
        let targets: String = (0..=outer).map(|target| format!(" {target}")).collect();
        let _ = write!(rest, " br_table{targets}) local.get 0");
    }
    let (results, drops) = (" i32".repeat(1_000), " drop".repeat(1_001));
    format!("(type $wide (func (result{results}))) (func (param i32) {open} {rest} {drops})")
}

/// A tool with an additional core instance of a module with this text.
pub(crate) fn beside(core: &str) -> Vec<u8> {
    instances_of(core, 1, false)
}

/// A tool with this many additional core instances of a module with this text, in a nested
/// component if `within`.
pub(crate) fn instances_of(core: &str, count: usize, within: bool) -> Vec<u8> {
    let module = format!("(core module $beside {core})");
    let instances = "(core instance (instantiate $beside))\n".repeat(count);
    let after = match within {
        true => format!("(component $c {module} {instances}) (instance (instantiate $c))"),
        false => format!("{module} {instances}"),
    };
    let run = answer("i32.const 16");
    component(&Parts { package: "a:b/c", ty: RUN, run: &run, after: &after, ..Parts::default() })
}

/// A component whose `run` has a small type that takes gigabytes when printed.
pub(crate) fn long_type() -> Vec<u8> {
    let label = "a".repeat(90_000);
    let imports = format!(
        r#"(import "x:y/z" (instance $named
             (type $e (enum "{label}")) (export "label" (type (eq $e)))))
           (alias export $named "label" (type $label))
           (type $many (tuple {})) (type $more (tuple {}))"#,
        "$label ".repeat(1000),
        "$many ".repeat(400),
    );
    component(&Parts {
        package: "kitbag:tool/types@0.1.0",
        imports: &imports,
        ty: r#"(param "x" $more) (result u32)"#,
        run: r#"(func (export "run") (param i32) (result i32) i32.const 42)"#,
        ..Parts::default()
    })
}

/// A tool that exports another function this many times, under short names; its type takes 60,000
/// bytes when printed.
pub(crate) fn long_export(times: usize) -> Vec<u8> {
    let label = "a".repeat(60_000);
    let function = format!(
        r#"(type $long (func (param "{label}" u32)))
           (core func $mine (canon resource.drop $resource))
           (func $long (type $long) (canon lift (core func $mine)))"#
    );
    let exports: String = (0..times).map(|n| format!("(export \"e{n}\" (func $long))\n")).collect();
    component(&Parts {
        package: "a:b/c",
        before: "(type $resource (resource (rep i32)))",
        ty: RUN,
        run: &answer("i32.const 16"),
        after: &format!("{function}{exports}"),
        ..Parts::default()
    })
}

/// A tool whose `run` takes one string and returns a number.
pub(crate) fn other_run() -> Vec<u8> {
    component(&Parts {
        package: "kitbag:tool/types@0.1.0",
        ty: r#"(param "question" string) (result u32)"#,
        run: r#"(func (export "run") (param i32 i32) (result i32) i32.const 42)"#,
        ..Parts::default()
    })
}

/// A component without exports.
pub(crate) fn without_run() -> Vec<u8> {
    wat::parse_str("(component)").unwrap()
}

/// A component with the export of a program: an instance with a function `run`.
pub(crate) fn program() -> Vec<u8> {
    let text = r#"
        (component
          (core module $m (func (export "run") (result i32) (i32.const 0)))
          (core instance $i (instantiate $m))
          (func $run (result (result)) (canon lift (core func $i "run")))
          (instance $run (export "run" (func $run)))
          (export "wasi:cli/run@0.2.6" (instance $run)))"#;
    wat::parse_str(text).unwrap()
}

/// A core module.
pub(crate) fn core_module() -> Vec<u8> {
    wat::parse_str(r#"(module (func (export "run")))"#).unwrap()
}

/// The core function behind `run`. Its body leaves the address of the answer on the stack; local 9
/// is free.
fn answer(body: &str) -> String {
    format!(
        r#"(func (export "run") (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
             (local i32)
             {body})"#
    )
}

fn component(parts: &Parts<'_>) -> Vec<u8> {
    let Parts { package, imports, before, with, core, ty, run, after } = parts;
    let text = format!(
        r#"(component
  {imports}
  (import "{package}" (instance $types
    (type $a (enum "run" "format-arguments"))
    (export "action" (type $action (eq $a)))
    (type $c (record (field "root" string) (field "action" $action)))
    (export "context" (type $context (eq $c)))
    (type $e (record (field "message" string) (field "trace" (list string)) (field "transient" bool)))
    (export "error-info" (type $error (eq $e)))
    (type $q (record (field "id" string) (field "text" string) (field "answer-type" string)
                     (field "default" (option string))))
    (export "question" (type $question (eq $q)))
    (type $o (variant (case "success" string) (case "error" $error) (case "needs-input" $question)))
    (export "outcome" (type $outcome (eq $o)))
  ))
  (alias export $types "context" (type $context))
  (alias export $types "outcome" (type $outcome))
  {before}
  (core module $guest
    {core}
    (memory (export "memory") 1)
    ;; At 16 the answer: case 0, and where its text is; at 32 the text.
    (data (i32.const 16) "\00\00\00\00\20\00\00\00\02\00\00\00")
    (data (i32.const 32) "ok")
    (global $free (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      global.get $free
      global.get $free
      local.get 3
      i32.add
      i32.const 7
      i32.add
      i32.const -8
      i32.and
      global.set $free)
    {run})
  (core instance $guest (instantiate $guest {with}))
  (func (export "run") {ty}
    (canon lift (core func $guest "run") (memory (core memory $guest "memory"))
      (realloc (core func $guest "realloc"))))
  {after}
)"#
    );
    wat::parse_str(text).unwrap()
}
