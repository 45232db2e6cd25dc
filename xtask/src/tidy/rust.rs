//! Rules for each Rust file: its name, its first line, and the comments that `unsafe` functions and atomic operations need.
//!
//! The hard part is how far a comment reaches: an `ORDERING:` comment speaks for the group of statements below it, up to
//! the next blank line or function, and for at most [`REACH`] lines.

use std::path::Path;

use super::Finding;
use super::source::Line;
use super::tree::Tree;

/// Names of files that say only "more code".
const VAGUE: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "misc", "manager"];

/// The most lines of code below an `ORDERING:` comment that it may cover.
const REACH: usize = 16;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let mut find =
            |index, rule, remedy| findings.push(Finding::at(&source.path, index, rule, remedy));
        if let Some(remedy) = misnamed(&source.path) {
            find(0, "file-name", remedy);
        }
        let in_src = source.path.iter().any(|part| part == "src");
        if in_src && !source.lines[0].comment.starts_with("//! ") {
            find(
                0,
                "file-top",
                "open the file with `//!`: its purpose, what it relies on, the hard part",
            );
        }
        let is_of_crate = source.path.starts_with("crates");
        for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            let above = &source.lines[..index];
            if defines_unsafe_function(line) && !is_safe_to_use(above, line) {
                let remedy = "add a `# Safety` section: a list of what the caller must make true";
                find(index, "safety-comment", remedy);
            }
            if !is_of_crate {
                continue;
            }
            if imports_orderings(&line.code) {
                let remedy =
                    "write `Ordering::X` at the operation, so that the ordering is seen there";
                find(index, "ordering-comment", remedy);
            } else if names_ordering(&line.code) && !is_explained(&source.lines[..=index]) {
                let remedy = "say above, in a `// ORDERING:` comment, what it pairs with and why it is enough";
                find(index, "ordering-comment", remedy);
            }
        }
    }
    findings
}

fn misnamed(path: &Path) -> Option<&'static str> {
    let stem = path.with_extension("");
    if stem.iter().any(|part| VAGUE.iter().any(|name| part == *name)) {
        return Some("the name says nothing: name the file after its one subject");
    }
    // Cargo takes every file directly in `tests/` for a test program; code that several tests share lies in
    // `tests/NAME/mod.rs`.
    let is_shared_by_tests = path.iter().rev().nth(2).is_some_and(|folder| folder == "tests");
    let is_mod = path.ends_with("mod.rs") && !is_shared_by_tests;
    is_mod.then_some("write `foo.rs` beside `foo/` instead of `foo/mod.rs`")
}

/// `unsafe extern "C" fn name(` defines a function, `unsafe extern "C" fn(` is a type.
fn defines_unsafe_function(line: &Line) -> bool {
    let words = line.code.split_whitespace().skip_while(|word| *word != "unsafe").skip(1);
    let mut words = words.skip_while(|word| ["extern", "\"\""].contains(word));
    words.next() == Some("fn")
}

/// Whether the function has a `# Safety` section above it, or implements a trait, which has it.
fn is_safe_to_use(above: &[Line], line: &Line) -> bool {
    let indent = |line: &Line| line.code.len() - line.code.trim_start().len();
    let mut comments =
        above.iter().rev().take_while(|line| line.is_comment() || line.is_attribute());
    let is_outer = |other: &&Line| !other.code.trim().is_empty() && indent(other) < indent(line);
    let outer = above.iter().rev().find(is_outer);
    comments.any(|line| line.comment.trim_start_matches('/').trim() == "# Safety")
        || outer.is_some_and(|line| line.code.contains("impl") && line.code.contains(" for "))
}

fn names_ordering(code: &str) -> bool {
    let orderings = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];
    let mut named = code.split("Ordering::").skip(1);
    named.any(|rest| orderings.iter().any(|ordering| rest.starts_with(ordering)))
}

/// `use …::Ordering::Relaxed` and its like would hide orderings from the rule and from readers.
fn imports_orderings(code: &str) -> bool {
    let code = code.trim_start().trim_start_matches("pub ");
    let hides =
        code.contains("Ordering::*") || code.contains("Ordering::{") || names_ordering(code);
    code.starts_with("use ") && hides
}

/// Whether a comment speaks for the last of these lines.
fn is_explained(lines: &[Line]) -> bool {
    let mut code_lines = 0;
    for line in lines.iter().rev() {
        if line.comment.contains("ORDERING:") {
            return true;
        }
        code_lines += usize::from(!line.is_comment());
        if line.is_blank() || line.code.contains("fn ") || code_lines > REACH {
            return false;
        }
    }
    false
}
