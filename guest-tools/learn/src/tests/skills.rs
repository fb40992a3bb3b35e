use kitbag_sdk::serde_json::json;

use super::{Memory, check, list, load};

const PDF: &str = "---\nname: pdf-processing\ndescription: Extract text from PDFs. Use it: for forms.\n\
                   license: MIT\n---\n\n# PDF\n";

fn skills() -> Memory {
    Memory::of(&["pdf/reference.md", "notes.md"])
        .file("pdf/SKILL.md", PDF)
        .file(
            "csv/SKILL.md",
            "---\r\nname: 'csv'\r\ndescription: >-\r\n  Read\r\n  tables.\r\n---\r\n",
        )
        .file("plain/SKILL.md", "# No front matter\n")
        .file(
            "web/skill.md",
            "---\ndescription: \"Say \\\"hello\\\".\"\nmetadata:\n  name: other\n---\n",
        )
}

#[test]
fn skills_are_listed_with_name_and_description() {
    check(
        list(&skills(), json!({})),
        "\
# Topic: skills

## Available subjects:

- csv/SKILL: csv: Read tables.
- notes
- pdf/SKILL: pdf-processing: Extract text from PDFs. Use it: for forms.
- pdf/reference
- plain/SKILL
- web/skill: Say \"hello\".

Use the `learn` tool with the `subjects` argument to learn specific subjects.",
    );
}

#[test]
fn a_skill_is_loaded_by_its_name() {
    check(load(&skills(), json!({}), json!("pdf-processing")), PDF);
    check(load(&skills(), json!({}), json!("pdf/SKILL")), PDF);
    let refused = load(&skills(), json!({ "disabled": ["pdf/*"] }), json!("pdf-processing"));
    assert!(refused.unwrap_err().starts_with("no subject of topic `skills` matches"));
}

#[test]
fn a_skill_has_priority_over_its_directory() {
    let skill = "---\nname: pdf\n---\nText.\n";
    let files = Memory::of(&["pdf/reference.md"]).file("pdf/SKILL.md", skill);
    check(load(&files, json!({}), json!("pdf")), skill);
    let listed = load(&files, json!({}), json!("pdf/")).unwrap();
    assert!(listed.contains("- pdf/reference\n"), "{listed}");
}

#[test]
fn a_long_list_has_the_descriptions_of_skills() {
    let mut files = Memory::of(&["zz.md"]);
    for number in 0..60 {
        let skill = format!("---\nname: s{number}\ndescription: Does {number}.\n---\n");
        files =
            files.file(&format!("s{number}/SKILL.md"), skill).file(&format!("s{number}/x.md"), "x");
    }
    let answer = list(&files, json!({})).unwrap();
    assert!(answer.contains("- s7/ (2 subjects, 39 bytes): s7: Does 7.; x\n"), "{answer}");
}
