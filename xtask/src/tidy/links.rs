//! Links in Markdown files that lead to files of the repository lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::tree::Tree;

const RULE: &str = "dead-link";

/// Local links whose file or folder is not in the tree.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_markdown = |path: &Path| path.extension().is_some_and(|end| end == "md");
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_markdown(&file.path)) {
        let mut in_code = false;
        for (index, line) in file.contents.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            let targets = if in_code { Vec::new() } else { targets(line) };
            for target in
                targets.into_iter().filter(|target| !leads_somewhere(tree, &file.path, target))
            {
                let remedy = format!("`{target}` is not in the repository: mend the link");
                findings.push(Finding::at(&file.path, index, RULE, remedy));
            }
        }
    }
    findings
}

/// The local targets of a line's links, without anchors.
fn targets(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, opening)| {
            let target = line[at + opening.len()..].split([')', ' ']).next()?;
            let path = target.split('#').next()?;
            let is_local =
                !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:");
            is_local.then_some(path)
        })
        .collect()
}

fn leads_somewhere(tree: &Tree, from: &Path, target: &str) -> bool {
    let mut path: PathBuf = from.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                if !path.pop() {
                    return false;
                }
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            // An absolute path is one of somebody's machine.
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    tree.files.iter().any(|file| file.path.starts_with(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> usize {
        check(&Tree::planted(&[("docs/a.md", line), ("docs/b.md", ""), ("crates/c/d.rs", "")]))
            .len()
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        assert_eq!(found("See [this](missing.md) and [that](b.md)."), 1);
        assert_eq!(found("See [this](/docs/b.md)."), 1);
        assert_eq!(found("See [this](../../b.md)."), 1);
    }

    #[test]
    fn links_to_files_folders_anchors_and_the_world_are_not() {
        assert_eq!(
            found("[a](b.md#top) [b](../crates/c) [c](#here) [d](https://example.org/x)"),
            0
        );
        assert_eq!(found("```\n[a](missing.md)\n```"), 0);
    }
}
