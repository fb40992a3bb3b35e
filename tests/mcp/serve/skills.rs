//! Skills by the extension of MCP, as resources, and on the command line.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::mcp::Client;

const PDF: &str = "---\nname: pdf-processing\ndescription: Fill in PDF forms.\nlicense: MIT\n\
                   metadata:\n  version: 2\n---\n\nRead references/FORMS.md.\n";

/// With a byte order mark, lines that end in CR LF, and a name that is not the directory's.
const CSV: &str = "\u{feff}---\r\nname: csv\r\ndescription: >-\r\n  Read\r\n  tables.\r\n---\r\n";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.file(".kitbag/skills/pdf-processing/SKILL.md", PDF);
    workspace.file(".kitbag/skills/pdf-processing/references/FORMS.md", "# Forms\n");
    workspace.file(".kitbag/skills/pdf-processing/logo.png", b"\x89PNG\r\n\x1a\n\xff");
    workspace.file(".kitbag/skills/pdf-processing/.env", "TOKEN=none\n");
    workspace.file(".kitbag/skills/team/tables/SKILL.md", CSV);
    workspace.file(".kitbag/skills/plain/SKILL.md", "# Plain text\n");
    workspace.file(".kitbag/skills/broken/SKILL.md", "---\nname: x\ndescription: a: b\n---\n");
    workspace.file(".kitbag/skills/README.md", "Not a skill.\n");
    workspace.file("outside.md", "Outside.\n");
    workspace
}

fn uris(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["uri"].as_str().unwrap()).collect()
}

#[test]
fn skills_are_served_with_digests() {
    let workspace = workspace();
    for mut client in
        [Client::with_handshake(&workspace, json!({})), Client::stateless(&workspace, json!({}))]
    {
        let listed = client.request("skills/list", json!({}));
        let skills = &listed["result"]["skills"];
        assert_eq!(
            uris(skills),
            [
                "skill://workspace-skills/pdf-processing/SKILL.md",
                "skill://workspace-skills/team/csv/SKILL.md",
            ]
        );
        assert_eq!(
            skills[0],
            json!({
                "uri": "skill://workspace-skills/pdf-processing/SKILL.md",
                "frontmatter": {
                    "name": "pdf-processing",
                    "description": "Fill in PDF forms.",
                    "license": "MIT",
                    "metadata": { "version": 2 },
                },
                "resources": [
                    {
                        "uri": "skill://workspace-skills/pdf-processing/SKILL.md",
                        "digest": "sha256:6330d1c5d9fa2bf219ae1170f5c2e4981eb78b4e217cf60e82bcdda9b26cb9df",
                        "size": PDF.len(),
                    },
                    {
                        "uri": "skill://workspace-skills/pdf-processing/logo.png",
                        "digest": "sha256:155ebeb6a8689c7aef710d099488549c6bc433d1ea8608307985ee05b8f81cfe",
                        "size": 9,
                    },
                    {
                        "uri": "skill://workspace-skills/pdf-processing/references/FORMS.md",
                        "digest": "sha256:111198a69a324efe68bb9dd7e0ca9cb2e50e1c374da3d383a7d3569824965082",
                        "size": 8,
                    },
                ],
            })
        );
        let params = json!({ "uri": "skill://workspace-skills/team/csv/SKILL.md" });
        let one = client.request("skills/get", params.clone());
        assert_eq!(one["result"]["skill"], skills[1]);
        assert_eq!(
            skills[1]["frontmatter"],
            json!({ "name": "csv", "description": "Read tables." })
        );
        // The file is not changed, so that its digest is valid.
        let read = client.request("resources/read", params);
        assert_eq!(read["result"]["contents"][0]["text"], CSV);
        let params = json!({ "uri": "skill://workspace-skills/pdf-processing/logo.png" });
        let read = client.request("resources/read", params);
        assert_eq!(read["result"]["contents"][0]["blob"], "iVBORw0KGgr/");
        assert_eq!(read["result"]["contents"][0]["mimeType"], "image/png");
    }
}

#[test]
fn files_of_skills_are_resources() {
    let workspace = workspace();
    let mut client = Client::stateless(&workspace, json!({}));
    let listed = client.request("resources/list", json!({}));
    assert_eq!(
        uris(&listed["result"]["resources"]),
        [
            "kb://workspace-skills/README",
            "kb://workspace-skills/broken/SKILL",
            "kb://workspace-skills/plain/SKILL",
            "skill://workspace-skills/pdf-processing/SKILL.md",
            "skill://workspace-skills/pdf-processing/logo.png",
            "skill://workspace-skills/pdf-processing/references/FORMS.md",
            "skill://workspace-skills/team/csv/SKILL.md",
        ]
    );
    let skill = &listed["result"]["resources"][3];
    assert_eq!(skill["name"], "pdf-processing");
    assert_eq!(skill["description"], "Fill in PDF forms.");
    let root = "skill://workspace-skills/pdf-processing";
    let children = client.request("resources/directory/read", json!({ "uri": root }));
    assert_eq!(
        uris(&children["result"]["resources"]),
        [format!("{root}/SKILL.md"), format!("{root}/logo.png"), format!("{root}/references")]
    );
    assert_eq!(children["result"]["resources"][2]["mimeType"], "inode/directory");
    for (method, uri) in [
        ("skills/get", "skill://workspace-skills/none/SKILL.md"),
        ("resources/read", "skill://workspace-skills/pdf-processing/.env"),
        ("resources/read", "skill://workspace-skills/pdf-processing/../../config.toml"),
        ("resources/read", "skill://workspace-skills/pdf-processing/%2E%2E/README.md"),
        ("resources/directory/read", "skill://workspace-skills/none"),
    ] {
        let answer = client.request(method, json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[test]
fn links_in_skills_are_not_followed() {
    let workspace = workspace();
    symlink("../../../outside.md", workspace.path(".kitbag/skills/pdf-processing/out.md")).unwrap();
    symlink("../pdf-processing", workspace.path(".kitbag/skills/linked")).unwrap();
    let mut client = Client::stateless(&workspace, json!({}));
    let uri = "skill://workspace-skills/pdf-processing/out.md";
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["error"]["code"], -32602, "{read}");
    let listed = client.request("skills/list", json!({}));
    for absent in ["out.md", "linked"] {
        assert!(!listed.to_string().contains(absent), "{listed}");
    }
}

#[test]
fn skills_of_untrusted_workspaces_are_hidden() {
    let workspace = workspace().untrusted();
    // A file that needs trust.
    workspace.config("[knowledge.notes]\nsubjects = \"notes\"\nlearned = [\"a\"]\n");
    let mut client = Client::stateless(&workspace, json!({}));
    let listed = client.request("skills/list", json!({}));
    assert_eq!(listed["result"]["skills"], json!([]));
    assert!(!workspace.run(&["prompt"]).stdout.contains("pdf-processing"));
    assert!(!workspace.run(&["list"]).stdout.contains("pdf-processing"));
}

#[test]
fn skills_without_configuration_need_trust() {
    let workspace = workspace().untrusted();
    let has_skill = |args: &[&str]| workspace.run(args).stdout.contains("pdf-processing");
    let mut client = Client::stateless(&workspace, json!({}));
    assert_eq!(client.request("skills/list", json!({}))["result"]["skills"], json!([]));
    assert!(!has_skill(&["prompt"]) && !has_skill(&["list"]));
    // `learn` reads them for a model that requests them.
    let load = ["run", "learn", "topic=workspace-skills", "subjects=pdf-processing"];
    assert!(has_skill(&load));
    let trusted = workspace.run(&["trust", "--yes"]).success();
    assert!(trusted.contains("topic `workspace-skills` reads `.kitbag/skills`"), "{trusted}");
    assert!(has_skill(&["prompt"]) && has_skill(&["list"]));
}

/// The name and content of a file in a component.
type File<'a> = (&'a str, &'a [u8]);

/// Returns a component for ACT with the tool `echo` and these files as its skill.
fn component(files: &[File<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[148..156].copy_from_slice(&[b' '; 8]);
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(*content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    let name = b"act:skill";
    let mut component = wat::parse_str(include_str!("../../../benches/lanes/act.wat")).unwrap();
    component.push(0);
    let mut left = 1 + name.len() + archive.len();
    while left > 0x7f {
        component.push(left as u8 | 0x80);
        left >>= 7;
    }
    component.push(left as u8);
    component.push(name.len() as u8);
    component.extend(name);
    component.extend(archive);
    component
}

#[test]
fn skills_of_components_are_served_with_their_tool() {
    let skill = b"---\nname: echoing\ndescription: Repeat a text.\n---\nRead a.md.\n";
    let workspace = Workspace::new();
    workspace.file("echo.wasm", component(&[("SKILL.md", skill), ("a.md", b"# A\n")]));
    let config = "[tools.echo]\nsource = \"local\"\nwasm = \"echo.wasm\"\n";
    workspace.config(config);
    let line = "- echoing (echo-skill): Repeat a text.";
    let load = ["run", "learn", "topic=echo-skill", "subjects=echoing"];
    let has_line = || workspace.run(&["prompt"]).success().contains(line);
    assert!(has_line());
    assert_eq!(workspace.run(&load).success(), str::from_utf8(skill).unwrap());
    let mut client = Client::stateless(&workspace, json!({}));
    let listed = client.request("skills/list", json!({}))["result"]["skills"].clone();
    let root = "skill://echo-skill/echoing";
    assert_eq!(uris(&listed), [format!("{root}/SKILL.md")]);
    assert_eq!(uris(&listed[0]["resources"]), [format!("{root}/SKILL.md"), format!("{root}/a.md")]);
    let read = client.request("resources/read", json!({ "uri": format!("{root}/a.md") }));
    assert_eq!(read["result"]["contents"][0]["text"], "# A\n");

    // The skill is offered only with its tool.
    let served = "[serve]\ntools = [\"learn\", \"now\"]\n";
    for off in [format!("{config}enable = false\n"), format!("{config}{served}")] {
        workspace.config(&off);
        let mut client = Client::stateless(&workspace, json!({}));
        let listed = client.request("skills/list", json!({}));
        assert_eq!(listed["result"]["skills"], json!([]), "{off}");
        let call = json!({ "name": "learn", "arguments": { "topic": "echo-skill" } });
        let loaded = client.request("tools/call", call)["result"].clone();
        assert!(loaded["isError"] == true && !loaded.to_string().contains("SKILL"), "{loaded}");
    }
    workspace.config(&format!("{config}enable = false\n"));
    assert!(!has_line());
    assert_ne!(workspace.run(&load).code, 0);
}

#[test]
fn invalid_skills_of_components_are_reported() {
    let workspace = Workspace::new();
    workspace.file("echo.wasm", component(&[("../SKILL.md", PDF.as_bytes())]));
    workspace.config("[tools.echo]\nsource = \"local\"\nwasm = \"echo.wasm\"\n");
    let checked = workspace.run(&["check"]);
    let expected = "the skill in the component of `echo` is not served: the path `../SKILL.md` \
                    leads out of its archive";
    assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    assert!(!workspace.run(&["prompt"]).stdout.contains("pdf-processing"));
}

#[test]
fn large_skills_are_not_served() {
    let workspace = Workspace::new();
    for name in ["many", "heavy", "small"] {
        let text = format!("---\nname: {name}\ndescription: d\n---\n");
        workspace.file(&format!(".kitbag/skills/{name}/SKILL.md"), text);
    }
    // One file more than the limit, and one byte more.
    for number in 0..512 {
        workspace.file(&format!(".kitbag/skills/many/{number}.md"), "x");
    }
    let skill = fs::read(workspace.path(".kitbag/skills/heavy/SKILL.md")).unwrap();
    let rest = vec![b'x'; (16 << 20) - skill.len() + 1];
    workspace.file(".kitbag/skills/heavy/data.md", &rest);
    let mut client = Client::stateless(&workspace, json!({}));
    let mut served = || {
        let listed = client.request("skills/list", json!({}));
        let uris = uris(&listed["result"]["skills"]).into_iter();
        uris.map(|uri| uri.split('/').nth(3).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(served(), ["small"]);
    let checked = workspace.run(&["check"]).stderr;
    assert!(checked.contains("it has more than 512 files"), "{checked}");
    assert!(checked.contains("it is too large"), "{checked}");
    // At the limits both are served.
    fs::remove_file(workspace.path(".kitbag/skills/many/0.md")).unwrap();
    workspace.file(".kitbag/skills/heavy/data.md", &rest[1..]);
    assert_eq!(served(), ["heavy", "many", "small"]);
}

#[test]
fn skills_need_the_tool_learn() {
    let workspace = workspace();
    workspace.config("[tools.learn]\nenable = false\n");
    let mut client = Client::stateless(&workspace, json!({}));
    assert_eq!(client.request("skills/list", json!({}))["result"]["skills"], json!([]));
    let uri = "skill://workspace-skills/pdf-processing/SKILL.md";
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["error"]["code"], -32602, "{read}");
}

#[test]
fn skills_are_listed_loaded_and_checked() {
    let workspace = workspace();
    fs::create_dir_all(workspace.home().join(".config/kitbag/skills/mine")).unwrap();
    let mine = "---\nname: mine\ndescription: My own.\n---\nDo it.\n";
    fs::write(workspace.home().join(".config/kitbag/skills/mine/SKILL.md"), mine).unwrap();
    let listed = workspace.run(&["list"]).success();
    let (_, skills) = listed.split_once("\nskills\n").unwrap();
    assert_eq!(
        skills,
        "  mine            user-skills       My own\n\
         \x20 x               workspace-skills  a: b\n\
         \x20 pdf-processing  workspace-skills  Fill in PDF forms\n\
         \x20 plain/SKILL     workspace-skills  Plain text\n\
         \x20 csv             workspace-skills  Read tables\n"
    );
    let prompt = workspace.run(&["prompt"]).success();
    assert!(
        prompt.contains(
            "- mine (user-skills): My own.\n\
             - x (workspace-skills): a: b\n\
             - pdf-processing (workspace-skills): Fill in PDF forms.\n\
             - plain/SKILL (workspace-skills): Plain text\n\
             - csv (workspace-skills): Read tables.\n"
        ),
        "{prompt}"
    );
    let load = |name: &str| {
        let subjects = format!("subjects={name}");
        workspace.run(&["run", "learn", "topic=workspace-skills", &subjects]).success()
    };
    assert_eq!(load("pdf-processing"), PDF);
    assert_eq!(load("plain/SKILL"), "# Plain text\n");
    let checked = workspace.run(&["check"]);
    for expected in [
        "the skill `broken/SKILL.md` of topic `workspace-skills` is not served: its front matter \
         is not valid YAML: ",
        "the skill `plain/SKILL.md` of topic `workspace-skills` is not served: it has no front \
         matter",
    ] {
        assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    }
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}

#[test]
fn the_prompt_has_twenty_skills_at_most() {
    let workspace = Workspace::new();
    for number in 10..35 {
        let skill = format!("---\nname: s{number}\ndescription: Does {number}.\n---\n");
        workspace.file(&format!("own/s{number}/SKILL.md"), skill);
    }
    workspace.config("[knowledge.own]\nsubjects = \"own\"\nskills = true\n");
    let prompt = workspace.run(&["prompt"]).success();
    assert_eq!(prompt.matches(" (own): Does ").count(), 20, "{prompt}");
    assert!(prompt.contains("- s29 (own): Does 29.\n… and 5 more\n"), "{prompt}");
}
