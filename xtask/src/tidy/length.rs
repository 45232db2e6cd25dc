//! Where a file or a function asks to be two: warnings, for clarity decides and not the number.
//!
//! It relies on the formatter: a function ends at the first `}` that is indented like its head.

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

/// Lines from which a file is worth a look.
const FILE_LINES: usize = 550;

/// Lines from which a function is.
const FUNCTION_LINES: usize = 80;

/// Warns of long Rust files and functions.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |index: usize, rule, remedy: String| {
        let finding = Finding::at(&source.path, index, rule, remedy);
        findings.push(Finding { warning: true, ..finding });
    };
    let lines = source.lines.len();
    if lines > FILE_LINES {
        warn(0, "long-file", format!("{lines} lines: does it hold two subjects?"));
    }
    for (index, line) in source.lines.iter().enumerate() {
        let Some(length) = function_length(line, &source.lines[index..]) else { continue };
        if length > FUNCTION_LINES {
            warn(index, "long-function", format!("{length} lines: does it do two things?"));
        }
    }
    findings
}

/// How many lines the function takes whose head is the first of `lines`.
fn function_length(head: &Line, lines: &[Line]) -> Option<usize> {
    let is_head = head.code.trim_start().starts_with("fn ") || head.code.contains(" fn ");
    if !is_head || head.code.trim_end().ends_with([';', '}']) {
        return None;
    }
    let indent = head.code.len() - head.code.trim_start().len();
    let brace = format!("{}}}", " ".repeat(indent));
    let ends = |line: &Line| line.code.starts_with(&brace);
    lines.iter().position(ends).map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_found(contents: &str) -> Vec<&'static str> {
        let found = check(&Tree::planted(&[("a.rs", contents)]));
        assert!(found.iter().all(|finding| finding.warning));
        found.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_long_file_is_a_warning() {
        assert_eq!(rules_found(&"\n".repeat(FILE_LINES + 1)), ["long-file"]);
        assert!(rules_found(&"\n".repeat(FILE_LINES)).is_empty());
    }

    #[test]
    fn a_long_function_is_a_warning() {
        let function = |lines: usize| {
            format!("impl A {{\n    fn a() {{\n{}    }}\n}}", "        b();\n".repeat(lines - 2))
        };
        assert_eq!(rules_found(&function(FUNCTION_LINES + 1)), ["long-function"]);
        assert!(rules_found(&function(FUNCTION_LINES)).is_empty());
    }

    #[test]
    fn a_declaration_is_no_long_function() {
        let text = format!("fn a();\n{}}}", "b();\n".repeat(FUNCTION_LINES));
        assert!(rules_found(&text).is_empty());
    }
}
