//! `hash_text`, through the real component.

use crate::support::Workspace;
use crate::support::cases::check_cases;

#[test]
fn a_text_and_a_file_are_hashed() {
    check_cases("text", &["hash_text.txt"]);
}

#[test]
fn a_file_larger_than_the_memory_of_a_call_is_hashed() {
    let workspace = Workspace::with_toolsets(&["text"]).with_time();
    workspace.file("large", vec![0; 100 << 20]);
    let hash = workspace.run(&["run", "hash_text", "path=large"]).success();
    // The output of `head -c 100M /dev/zero | sha256sum`.
    let expected = "20492a4d0d84f8beb1767f6616229f85d44c2827b64bdbfb260ee12fa1109e0e";
    assert_eq!(hash.trim_end(), expected);
}
