//! The house rules as checks: `cargo xtask tidy` prints each violation as
//! `file:line: rule: what to do` and fails if there is one.
//!
//! It relies on git for the list of files, so files that git ignores are never checked. A rule is a function from the
//! tree to findings and nothing more, so each can be shown to fail on planted text in its own unit tests.

mod doors;
mod layers;
mod manifest;
pub(crate) mod pages;
mod places;
mod rust;
mod source;
mod tree;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use tree::Tree;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    /// Counted from 1.
    line: usize,
    rule: &'static str,
    remedy: String,
}

impl Finding {
    /// A violation at the line with this index, counted from 0.
    fn at(path: &Path, index: usize, rule: &'static str, remedy: impl Into<String>) -> Finding {
        let (path, remedy) = (path.to_path_buf(), remedy.into());
        Finding { path, line: index + 1, rule, remedy }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, rule, remedy } = self;
        write!(to, "{}:{line}: {rule}: {remedy}", path.display())
    }
}

const RULES: [fn(&Tree) -> Vec<Finding>; 7] = [
    doors::check,
    layers::check,
    manifest::check,
    pages::check,
    places::check,
    rust::check,
    words::check,
];

pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} to mend: each line above says what to do", findings.len());
    }
    println!("tidy: {} files keep the house rules", tree.files.len());
    Ok(())
}

#[cfg(test)]
mod tests;
