//! What the definitions cost a model.

use kitbag_sdk::Tool;
use kitbag_sdk::serde_json::{Value, from_str};

use crate::Files;

/// How many characters are a token, about.
const TOKEN: usize = 4;

#[test]
fn the_definitions_stay_within_their_budget() {
    let described: Value = from_str(&Files::describe().to_string()).unwrap();
    let (mut reading, mut writing) = (0, 0);
    for tool in described["tools"].as_array().unwrap() {
        let text = |key: &str| tool[key].as_str().unwrap().len();
        let size = text("name") + text("description") + tool["inputSchema"].to_string().len();
        match tool["annotations"]["readOnlyHint"].as_bool() {
            Some(true) => reading += size,
            _ => writing += size,
        }
    }
    assert!(reading <= 600 * TOKEN, "{reading}");
    assert!(writing <= 900 * TOKEN, "{writing}");
}
