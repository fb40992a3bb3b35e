//! `decode_text`, through the real component. Its cases are in the directory of `encode_text`.

use serde_json::json;

use crate::support::Workspace;
use crate::support::cases::{call, check_concurrent};

#[test]
fn encoded_text_is_decoded() {
    let workspace = Workspace::with_toolsets(&["text"]);
    let kitbag = workspace.kitbag();
    let text = "a < b & \"c\" 漢字 😀\u{202e}\n".repeat(1_000);
    for encoding in ["base64", "base64url", "hex", "percent", "html"] {
        let arguments = |text: &str| json!({ "text": text, "encoding": encoding });
        let encoded = call(&kitbag, "encode_text", arguments(&text)).unwrap();
        assert_eq!(call(&kitbag, "decode_text", arguments(&encoded)), Ok(text.clone()));
    }
}

#[test]
fn concurrent_calls_do_not_interfere() {
    let workspace = Workspace::with_toolsets(&["text"]);
    let kitbag = workspace.kitbag();
    let calls = [("aGk=", "base64"), ("zz", "hex"), ("%41", "percent"), ("&amp;", "html")];
    let calls = calls
        .map(|(text, encoding)| ("decode_text", json!({ "text": text, "encoding": encoding })));
    check_concurrent(&kitbag, &calls);
}
