//! TEMPORARY: not committed.
use std::fs;
use std::sync::Arc;
use kitbag_policy::{Access, DirectoryGrant, Grants, VariableGrant};
use super::tests::{answer, call};
use crate::*;

#[test]
fn suite() {
    let Some(dir) = std::env::var("P3_SUITE").ok().filter(|d| !d.is_empty()) else { return };
    let host = Host::new(HostOptions::default());
    let only = std::env::var("P3_ONLY").ok();
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().filter_map(|e| e.unwrap().file_name().into_string().ok()).filter(|n| n.ends_with(".wasm")).collect();
    names.sort();
    for name in names {
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) { continue }
        let path = std::path::Path::new(&dir).join(&name);
        let config: serde_json::Value = fs::read(path.with_extension("json")).ok().map(|b| serde_json::from_slice(&b).unwrap()).unwrap_or_default();
        let source = ComponentSource::Bytes(ComponentBytes::new(&*name, fs::read(&path).unwrap()));
        let context = RunContext::default();
        let mut grants = Grants::default();
        let tmp = tempfile::tempdir().unwrap();
        if let Some(root) = config["root"].as_str() {
            let status = std::process::Command::new("cp").arg("-r").arg(format!("{dir}/{root}/.")).arg(tmp.path()).status().unwrap();
            assert!(status.success());
            grants.directories.push(DirectoryGrant { host: tmp.path().canonicalize().unwrap(), guest: "/".parse().or_else(|_| "/work".parse()).unwrap(), access: Access::ReadWrite, include: vec![], protected: None, identity: None });
        }
        let run = &config["operations"][0];
        for (k, v) in run["env"].as_object().into_iter().flatten() {
            grants.variables.push(VariableGrant { name: k.parse().unwrap(), value: Some(v.as_str().unwrap().into()) });
        }
        let mut args = serde_json::json!({ "args": run["args"].as_array().cloned().unwrap_or_default() });
        if name.contains("roundtrip") { args["stdin"] = "Hello, world!".into(); }
        if name.contains("flush") { args["stdin"] = "x".into(); }
        let mut c = call(&args.to_string());
        c.grants = Arc::new(grants);
        c.limits.time = std::time::Duration::from_secs(10);
        match host.component(&source, &c.limits, &context) {
            Err(e) => println!("{name}: LOAD {e}"),
            Ok(component) => {
                let done = host.call_blocking(&component, &c, &context);
                println!("\n{name}: {:?} {:?}", answer(&done), done.stderr.text.chars().take(400).collect::<String>());
            }
        }
    }
}

#[test]
fn act() {
    let Some(dir) = std::env::var("ACT_SUITE").ok().filter(|d| !d.is_empty()) else { return };
    let host = Host::new(HostOptions::default());
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "wasm") { continue }
        let context = RunContext::default();
        let source = ComponentSource::Bytes(ComponentBytes::new("x.wasm", fs::read(&path).unwrap()));
        let component = match host.component(&source, &Limits::default(), &context) { Ok(c) => c, Err(e) => { println!("{path:?}: LOAD {e}"); continue } };
        println!("\n== {path:?} {:?}", component.lane());
        match component.described() {
            DescribeResult::Description(d) => {
                for t in &d.tools { println!("{}", serde_json::to_string(t).unwrap().chars().take(700).collect::<String>()); }
                for t in &d.tools {
                    let mut c = call(&std::env::var("ACT_ARGS").unwrap_or("{}".into()));
                    c.function = Some(t.name.clone());
                    let done = host.call_blocking(&component, &c, &context);
                    println!("{} -> {:?} {:?}", t.name, answer(&done), done.stderr.text);
                }
            }
            other => println!("{other:?}"),
        }
    }
}
