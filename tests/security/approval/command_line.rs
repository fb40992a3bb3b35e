//! `kitbag run` with and without a person at a terminal.

use super::{content, workspace};
use crate::support::terminal::on_a_hasty_terminal;

const WRITE: [&str; 5] = ["run", "probe", "do=write", "path=a.txt", "text=new"];

#[test]
fn text_typed_before_the_question_is_not_an_answer() {
    let workspace = workspace("\"always\"");
    // The first line is typed before the command starts, the second line at the question.
    let (stdout, shown) = on_a_hasty_terminal(&workspace, &WRITE, "yes\n", "no\n");
    assert_eq!(stdout, "");
    assert!(shown.contains("was not approved: the user declined"), "{shown}");
    assert_eq!(content(&workspace, "a.txt"), None);
    // A line that was started before the question, and completed at the question.
    let (_, shown) = on_a_hasty_terminal(&workspace, &WRITE, "y", "\nno\n");
    assert!(shown.contains("was not approved: the user declined"), "{shown}");
    assert_eq!(content(&workspace, "a.txt"), None);
}
