//! The topics of the team's knowledge.

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

#[test]
fn a_topic_needs_a_directory_and_has_defaults_for_the_rest() {
    check_rows(
        &Fixture::new("[knowledge.\"my skills\"]\nsubjects = \"./none\"\n"),
        "knowledge",
        &[
            r#"knowledge."my skills".subjects = "/t/w/none" # .kitbag/config.toml:2:12"#,
            r#"knowledge."my skills".enable = true # default"#,
            r#"knowledge."my skills".title = "my skills" # default"#,
            r#"knowledge."my skills".learned = [] # default"#,
            r#"knowledge."my skills".include = [] # default"#,
            r#"knowledge."my skills".disabled = [] # default"#,
        ],
    );
}

#[test]
fn a_topic_says_everything_about_itself() {
    let fixture = Fixture::new("[knowledge.a]\nenable = false\ntitle = \"A\"\n").user(
        "[knowledge.a]\nsubjects = \"docs\"\nintroduction = \"I\"\ndescription = \"D\"\nlearned = [\"x/**\"]\n\
         disabled = [\"y\"]\n[knowledge.b]\nsubjects = \"~/notes\"\n",
    );
    check_rows(
        &fixture,
        "knowledge",
        &[
            r#"knowledge.a.subjects = "/t/w/docs" # /t/h/config.toml:2:12"#,
            r#"knowledge.a.enable = false # .kitbag/config.toml:2:10"#,
            r#"knowledge.a.title = "A" # .kitbag/config.toml:3:9"#,
            r#"knowledge.a.introduction = "I" # /t/h/config.toml:3:16"#,
            r#"knowledge.a.description = "D" # /t/h/config.toml:4:15"#,
            r#"knowledge.a.learned = ["x/**"] # /t/h/config.toml:5:11"#,
            r#"knowledge.a.include = [] # default"#,
            r#"knowledge.a.disabled = ["y"] # /t/h/config.toml:6:12"#,
            r#"knowledge.b.subjects = "/t/h/notes" # /t/h/config.toml:8:12"#,
            r#"knowledge.b.enable = true # default"#,
            r#"knowledge.b.title = "b" # default"#,
            r#"knowledge.b.learned = [] # default"#,
            r#"knowledge.b.include = [] # default"#,
            r#"knowledge.b.disabled = [] # default"#,
        ],
    );
}

#[test]
fn an_id_is_short_visible_and_no_path() {
    let long = "x".repeat(64);
    let config = format!(
        "[knowledge]\n\"\" = {{ subjects = \"d\" }}\n\"a/b\" = {{ subjects = \"d\" }}\n\" a\" = {{ subjects = \
         \"d\" }}\n\"a\\u0007\" = {{ subjects = \"d\" }}\n\"a\\u202e\" = {{ subjects = \"d\" }}\n{long} = {{ \
         subjects = \"d\" }}\n{long}y = {{ subjects = \"d\" }}\n\"wörter & co.\" = {{ subjects = \"d\" }}\n"
    );
    let form = "is not the id of a topic: it has 1 to 64 characters, no `/`, nothing invisible, and no space at its \
                ends";
    check_problems(
        &config,
        &[
            &format!("C:2:1: `` {form}"),
            &format!("C:3:1: `a/b` {form}"),
            &format!("C:4:1: ` a` {form}"),
            &format!("C:5:1: `a\\u{{7}}` {form}"),
            &format!("C:6:1: `a\\u{{202e}}` {form}"),
            &format!("C:8:1: `{long}y` {form}"),
        ],
    );
}

#[test]
fn a_glob_that_is_none_is_refused_in_every_layer() {
    check_problems_of(
        &Fixture::new("[knowledge.a]\nsubjects = \"d\"\nlearned = [\"ok/*\", \"[\", \"a**\"]\n")
            .user("[knowledge.a]\nlearned = [\"***\"]\n"),
        &[
            "/t/h/config.toml:2:12: `***` is not a glob: wildcards are either regular `*` or recursive `**`",
            "C:3:20: `[` is not a glob: invalid range pattern",
            "C:3:25: `a**` is not a glob: recursive wildcards must form a single path component",
        ],
    );
}

#[test]
fn what_is_disabled_is_a_glob_too() {
    check_problems_of(
        &Fixture::new("[knowledge.a]\nsubjects = \"d\"\ndisabled = [\"ok/*\", \"ok\", \"a**\"]\n"),
        &["C:3:27: `a**` is not a glob: recursive wildcards must form a single path component"],
    );
}

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
fn two_topics_never_answer_to_one_name() {
    let same = |at: &str, topic: &str, other: &str, name: &str| {
        format!(
            "{at}: topics `{topic}` and `{other}` are both named `{name}`, ignoring case; give one of them another \
             title or id"
        )
    };
    check_problems_of(
        &Fixture::new(
            "[knowledge]\nskills = { subjects = \"d\" }\nb = { subjects = \"d\", title = \"Größe\" }\n\
             c = { subjects = \"d\", title = \"GRÖßE\" }\nd = { subjects = \"d\", title = \"D\" }\n\
             e = { subjects = \"d\", title = \"d\" }\n\
             f = { subjects = \"d\", title = \"d\", enable = false }\n",
        )
        .user("[knowledge]\nSkills = { subjects = \"d\" }\n"),
        &[
            &same("C:2:1", "skills", "Skills", "skills"),
            &same("C:4:31", "c", "b", "GRÖßE"),
            &same("C:6:31", "e", "d", "d"),
        ],
    );
}

#[test]
fn subjects_and_title_must_say_something() {
    check_problems(
        "[knowledge.a]\ntitle = \"A\"\n[knowledge.b]\nsubjects = \"\"\ntitle = \" \"\n",
        &[
            "C:1:1: topic `a` has no `subjects`; add the directory of its documents",
            "C:4:12: the path is empty; write `.` for the workspace",
            "C:5:9: the title of topic `b` is empty; remove it, and the id is shown",
        ],
    );
}
