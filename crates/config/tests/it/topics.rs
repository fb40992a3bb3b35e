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

#[test]
fn directories_of_skills_are_topics() {
    let fixture = Fixture::empty().file("w/.kitbag/skills/a/SKILL.md", "");
    let topic = fixture.load().topics["workspace-skills"].clone();
    let shown = (topic.skills.value, topic.enable.value, topic.subjects.origin.to_string());
    assert_eq!(shown, (true, true, ".kitbag/skills".to_owned()));
    let off =
        fixture.file("w/.kitbag/config.toml", "[knowledge.workspace-skills]\nenable = false\n");
    let topic = off.load().topics["workspace-skills"].clone();
    assert_eq!((topic.skills.value, topic.enable.value), (true, false));
    assert!(Fixture::empty().load().topics.is_empty());
}

#[test]
fn a_topic_may_be_a_directory_of_skills() {
    let config = "[knowledge.own]\nsubjects = \".claude/skills\"\nskills = true\n\
                  [knowledge.team]\nsubjects = \"notes\"\n";
    let config = Fixture::new(config).load();
    assert!(config.topics["own"].skills.value);
    assert!(!config.topics["team"].skills.value);
}
