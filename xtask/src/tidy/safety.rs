//! Every use of `unsafe` says why it is sound: blocks and implementations in a `SAFETY:` comment
//! close above, functions in a `# Safety` section of their documentation.
//!
//! The one hard idea is what "close above" means: upwards over attributes, comments and the
//! beginning of the same statement, and no further. Test code is left to clippy, which a test may
//! tell by `expect` that its whole file is about breaking things.

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

const RULE: &str = "safety-comment";

/// Uses of `unsafe` that explain nothing.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        let remedy = match use_of_unsafe(line) {
            Some(Use::Block) if !is_explained(&source.lines, index) => {
                "say above, in a `// SAFETY:` comment, which conditions hold and why"
            }
            Some(Use::Function)
                if !has_safety_section(&source.lines, index)
                    && !is_inside_trait_implementation(&source.lines, index) =>
            {
                "add a `# Safety` section: a list of what the caller must make true"
            }
            _ => continue,
        };
        findings.push(Finding::at(&source.path, index, RULE, remedy));
    }
    findings
}

enum Use {
    /// `unsafe { … }` or `unsafe impl`.
    Block,
    /// The definition of an `unsafe fn`.
    Function,
}

fn use_of_unsafe(line: &Line) -> Option<Use> {
    line.code.match_indices("unsafe").find_map(|(at, word)| {
        let (before, after) = (&line.code[..at], &line.code[at + word.len()..]);
        let in_a_name = |c: char| c.is_alphanumeric() || c == '_';
        if before.ends_with(in_a_name) || after.starts_with(in_a_name) {
            return None;
        }
        let next = after.trim_start();
        if next.starts_with('{') || next.starts_with("impl ") || next.starts_with("impl<") {
            return Some(Use::Block);
        }
        // `unsafe extern "C" fn name(` defines a function, `unsafe extern "C" fn(` is a type.
        let next =
            next.strip_prefix("extern").map_or(next, |rest| rest.trim_start_matches([' ', '"']));
        next.starts_with("fn ").then_some(Use::Function)
    })
}

fn is_explained(lines: &[Line], index: usize) -> bool {
    let says = |line: &Line| line.comment.contains("SAFETY:");
    if says(&lines[index]) {
        return true;
    }
    let mut comments_begun = false;
    for line in lines[..index].iter().rev() {
        if says(line) {
            return true;
        }
        let code = line.code.trim_end();
        let continues = line.is_comment() || line.is_attribute();
        comments_begun |= line.is_comment();
        // Code that ends otherwise is the beginning of the same statement.
        let ends = line.is_blank() || code.ends_with([';', '}', '{']);
        if !continues && (ends || comments_begun) {
            return false;
        }
    }
    false
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(contents: &str) -> Vec<usize> {
        let found = check(&Tree::planted(&[("crates/masu/src/a.rs", contents)]));
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_unexplained_block_is_found() {
        assert_eq!(lines_found("fn a() {\n    unsafe { b() }\n}"), [2]);
        assert_eq!(lines_found("fn a() {\n    // Fine.\n    unsafe { b() }\n}"), [3]);
        assert_eq!(lines_found("unsafe impl Send for A {}"), [1]);
        assert_eq!(lines_found("unsafe impl<T> Send for A<T> {}"), [1]);
        assert_eq!(lines_found("f(unsafe { b() });"), [1]);
        assert!(lines_found("let not_unsafe = 1; unsafe_code { }").is_empty());
    }

    #[test]
    fn a_comment_above_the_statement_explains() {
        let text = "// SAFETY: Because.\n// More.\n#[inline]\nlet a =\n    unsafe { b() };";
        assert!(lines_found(text).is_empty());
        assert!(lines_found("f(unsafe { b() }); // SAFETY: Because.").is_empty());
    }

    #[test]
    fn a_comment_explains_one_statement_only() {
        let text = "// SAFETY: Because.\nunsafe { a() };\nunsafe { b() };";
        assert_eq!(lines_found(text), [3]);
        assert_eq!(lines_found("// SAFETY: Because.\n\nunsafe { a() };"), [3]);
    }

    #[test]
    fn an_unsafe_function_states_its_conditions() {
        assert_eq!(lines_found("/// A.\npub unsafe fn a() {}"), [2]);
        assert_eq!(lines_found("/// A.\npub unsafe extern \"C\" fn a() {}"), [2]);
        let stated = "/// A.\n///\n/// # Safety\n///\n/// - B.\n#[inline]\npub unsafe fn a() {}";
        assert!(lines_found(stated).is_empty());
    }

    #[test]
    fn types_of_functions_and_implementations_of_traits_need_no_section() {
        assert!(lines_found("type F = unsafe extern \"C\" fn(*mut u8);").is_empty());
        assert!(lines_found("impl A for B {\n    unsafe fn a(&self) {}\n}").is_empty());
        assert_eq!(lines_found("impl B {\n    unsafe fn a(&self) {}\n}"), [2]);
    }
}
