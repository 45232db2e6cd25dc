//! Every Rust file of a crate opens by saying what it is for.

use super::Finding;
use super::tree::Tree;

const RULE: &str = "file-top";

/// Files under a `src` folder must begin with a `//!` comment.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let in_src = |path: &std::path::Path| path.iter().any(|part| part == "src");
    tree.sources
        .iter()
        .filter(|source| in_src(&source.path))
        .filter(|source| !source.lines.first().is_some_and(|l| l.comment.starts_with("//! ")))
        .map(|source| {
            let remedy = "open the file with `//!`: its purpose, what it relies on, the hard part";
            Finding::at(&source.path, 0, RULE, remedy)
        })
        .collect()
}
