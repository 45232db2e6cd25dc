//! Every atomic operation says why its ordering is enough.
//!
//! The hard part is how far a comment reaches: an `ORDERING:` comment speaks for the group of statements below it, up
//! to the next blank line or function, and for at most [`REACH`] lines.

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

const RULE: &str = "ordering-comment";

/// How many lines of code below itself a comment may speak for.
const REACH: usize = 16;

const ORDERINGS: &[&str] = &["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// Orderings named in `crates/`, outside tests, without a comment in reach.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().filter(|s| s.path.starts_with("crates")).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        if imports_orderings(&line.code) {
            let remedy = "write `Ordering::X` at the operation, so that the ordering is seen there";
            findings.push(Finding::at(&source.path, index, RULE, remedy));
        } else if names_ordering(&line.code) && !is_explained(&source.lines, index) {
            let remedy = "say above, in a `// ORDERING:` comment, what it pairs with and why it is \
                          enough";
            findings.push(Finding::at(&source.path, index, RULE, remedy));
        }
    }
    findings
}

fn names_ordering(code: &str) -> bool {
    ORDERINGS.iter().any(|name| code.contains(&format!("Ordering::{name}")))
}

/// `use …::Ordering::Relaxed` and its like would hide orderings from the rule and from readers.
fn imports_orderings(code: &str) -> bool {
    let code = code.trim_start();
    let import = code.starts_with("use ") || code.starts_with("pub use ");
    import && (code.contains("Ordering::*") || code.contains("Ordering::{") || names_ordering(code))
}

fn is_explained(lines: &[Line], index: usize) -> bool {
    let says = |line: &Line| line.comment.contains("ORDERING:");
    let mut code_lines = 0;
    for line in lines[..=index].iter().rev() {
        if says(line) {
            return true;
        }
        if !line.is_comment() {
            code_lines += 1;
        }
        if line.is_blank() || line.code.contains("fn ") || code_lines > REACH {
            return false;
        }
    }
    false
}
