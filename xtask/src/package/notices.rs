//! The licences of other people's crates that are linked into a program, for those who pass the program on.
//!
//! It relies on `cargo metadata` for what is linked and on each crate carrying its licence's text. The same text
//! is there once, however many crates have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::clean::answer;
use crate::steps;

/// The texts, each below the crates that have it, of all that is linked into these members of the workspace.
///
/// # Errors
///
/// When cargo does not know the dependencies, or a text cannot be read.
pub(super) fn of(root: &Path, members: &[&str], target: &str) -> Result<String> {
    let mut ask = steps::cargo(root, &["metadata", "--format-version=1", "--locked"]);
    let metadata = serde_json::from_str(&answer(ask.args(["--filter-platform", target]))?)?;
    let mut crates_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for linked in linked(&metadata, members)? {
        let folder =
            Path::new(&linked.manifest).parent().context("a manifest lies in no folder")?;
        for text in texts(folder)? {
            crates_of.entry(text).or_default().push(linked.name.clone());
        }
        crates_of.entry(String::new()).or_default().push(linked.name);
    }
    let all = crates_of.remove("").unwrap_or_default();
    let mut notices = format!(
        "Programs of this package have these crates linked in, besides Rust's standard library (MIT or Apache-2.0):\n{}",
        lines(&all)
    );
    for (text, crates) in crates_of {
        let rule = "-".repeat(78);
        notices.push_str(&format!(
            "\n{rule}\nThe text of\n{}\n{}\n",
            lines(&crates),
            text.trim_end()
        ));
    }
    Ok(notices)
}

fn lines(names: &[String]) -> String {
    names.iter().map(|name| format!("  {name}\n")).collect()
}

/// A crate that is linked in.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    /// With its version and the licences that it may be used under.
    name: String,
    manifest: String,
}

/// What is linked into `members`: what they depend on, not to build or to test, and what that depends on.
fn linked(metadata: &Value, members: &[&str]) -> Result<BTreeSet<Linked>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    let needs: BTreeMap<String, Vec<Value>> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (text(&node["id"]), list(&node["deps"])))
        .collect();
    let is_member = |package: &Value| package["source"].is_null();
    let mut left: Vec<String> = packages
        .iter()
        .filter(|(_, package)| {
            is_member(package) && members.contains(&text(&package["name"]).as_str())
        })
        .map(|(id, _)| id.clone())
        .collect();
    ensure!(left.len() == members.len(), "the workspace has not all of {members:?}");
    let mut seen = BTreeSet::new();
    let mut linked = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let package = packages.get(&id).context("cargo names a package and does not know it")?;
        if !is_member(package) {
            let [name, version, licence] =
                ["name", "version", "license"].map(|field| text(&package[field]));
            let name = format!("{name} {version}: {licence}");
            linked.insert(Linked { name, manifest: text(&package["manifest_path"]) });
        }
        for dep in needs.get(&id).into_iter().flatten() {
            // A dependency of no kind is one that is linked.
            if list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                left.push(text(&dep["pkg"]));
            }
        }
    }
    Ok(linked)
}

/// The texts of licences in a crate's folder.
fn texts(folder: &Path) -> Result<Vec<String>> {
    const STARTS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && STARTS.iter().any(|start| name.starts_with(start)) {
            names.push(path);
        }
    }
    names.sort();
    let read =
        |path: PathBuf| fs::read_to_string(&path).with_context(|| format!("{}", path.display()));
    names.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_builds_or_tests_is_not_linked() {
        let package = |name: &str, source: Value| {
            serde_json::json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source,
                "manifest_path": format!("/crates/{name}/Cargo.toml"),
            })
        };
        let needs = |name: &str, kind: Value| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = serde_json::json!({
            "packages": [
                package("tool", Value::Null), package("room", Value::Null), package("a", "registry".into()),
                package("b", "registry".into()), package("c", "registry".into()), package("d", "registry".into()),
            ],
            "resolve": {"nodes": [
                {"id": "tool", "deps": [needs("room", Value::Null), needs("c", "dev".into())]},
                {"id": "room", "deps": [needs("a", Value::Null), needs("d", "build".into())]},
                {"id": "a", "deps": [needs("b", Value::Null)]},
                {"id": "b", "deps": [needs("a", Value::Null)]},
            ]},
        });
        let names: Vec<String> =
            linked(&metadata, &["tool"]).unwrap().into_iter().map(|linked| linked.name).collect();
        assert_eq!(names, ["a 1.0.0: MIT", "b 1.0.0: MIT"]);
        assert!(linked(&metadata, &["tool", "other"]).is_err());
    }
}
