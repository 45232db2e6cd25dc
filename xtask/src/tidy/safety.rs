//! Every `unsafe fn` states its conditions, in a `# Safety` section of its documentation.
//!
//! Clippy asks that of public functions alone, unless it asks private ones for sections of errors, too. Blocks and
//! implementations are left to it.

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

const RULE: &str = "safety-comment";

/// Unsafe functions that state no conditions.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let lines = source.lines.iter().enumerate().filter(|(_, line)| !line.in_test);
    let unsafe_functions = lines.filter(|(index, line)| {
        defines_unsafe_function(line)
            && !has_safety_section(&source.lines, *index)
            && !is_inside_trait_implementation(&source.lines, *index)
    });
    let remedy = "add a `# Safety` section: a list of what the caller must make true";
    unsafe_functions.map(|(index, _)| Finding::at(&source.path, index, RULE, remedy)).collect()
}

fn defines_unsafe_function(line: &Line) -> bool {
    line.code.match_indices("unsafe ").any(|(at, word)| {
        let is_name = line.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        // `unsafe extern "C" fn name(` defines a function, `unsafe extern "C" fn(` is a type.
        let next = line.code[at + word.len()..].trim_start();
        let next =
            next.strip_prefix("extern").map_or(next, |rest| rest.trim_start_matches([' ', '"']));
        !is_name && next.starts_with("fn ")
    })
}

fn has_safety_section(lines: &[Line], index: usize) -> bool {
    lines[..index]
        .iter()
        .rev()
        .take_while(|line| line.is_comment() || line.is_attribute())
        .any(|line| line.comment.trim_start_matches('/').trim() == "# Safety")
}

/// Whether the line is indented below an `impl Trait for Type`: the trait states the conditions.
fn is_inside_trait_implementation(lines: &[Line], index: usize) -> bool {
    let indent = |line: &Line| line.code.len() - line.code.trim_start().len();
    let own = indent(&lines[index]);
    let outer =
        lines[..index].iter().rev().find(|line| !line.code.trim().is_empty() && indent(line) < own);
    outer.is_some_and(|line| line.code.contains("impl") && line.code.contains(" for "))
}
