//! The topics of the team's knowledge.

use crate::support::Fixture;

#[test]
fn each_entry_of_a_list_of_subjects_has_its_own_place() {
    let config = Fixture::new(
        "[knowledge.a]\nsubjects = \"a\"\nlearned = [\n  \"b\",\n  \"c\",\n]\ndisabled = [\"d\"]\n",
    );
    let config = config.load();
    let entries = config.topics["a"].entries.iter();
    let entries = entries.map(|(key, entry)| format!("{key} {} {}", entry.value, entry.origin));
    assert_eq!(
        entries.collect::<Vec<_>>(),
        [
            "learned b .kitbag/config.toml:4:3",
            "learned c .kitbag/config.toml:5:3",
            "disabled d .kitbag/config.toml:7:13",
        ]
    );
}
