//! Components made by hand, down to the byte, for what no compiler would make.

/// The smallest tool: its `run` answers with `success` and the text `ok`.
///
/// `package` names the interface of its types, `imports` is further text inside
/// the component, before everything else.
pub(crate) fn tool(package: &str, imports: &str) -> Vec<u8> {
    component(
        package,
        imports,
        r#"(param "ctx" $context) (param "name" string) (param "arguments" string)
           (param "answers" string) (result $outcome)"#,
        r#"(func (export "run")
             (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
             i32.const 16)"#,
    )
}

/// A tool whose `run` takes one string and gives a number.
pub(crate) fn other_run() -> Vec<u8> {
    component(
        "kitbag:tool/types@0.1.0",
        "",
        r#"(param "question" string) (result u32)"#,
        r#"(func (export "run") (param i32 i32) (result i32) i32.const 42)"#,
    )
}

/// A component that exports nothing at all.
pub(crate) fn without_run() -> Vec<u8> {
    wat::parse_str("(component)").unwrap()
}

/// A core module.
pub(crate) fn core_module() -> Vec<u8> {
    wat::parse_str(r#"(module (func (export "run")))"#).unwrap()
}

fn component(package: &str, imports: &str, ty: &str, run: &str) -> Vec<u8> {
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
  (core module $guest
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
  (core instance $guest (instantiate $guest))
  (func (export "run") {ty}
    (canon lift (core func $guest "run") (memory (core memory $guest "memory"))
      (realloc (core func $guest "realloc"))))
)"#
    );
    wat::parse_str(text).unwrap()
}
