//! Where a file asks to be two: a warning, for clarity decides and not the number.

use super::Finding;
use super::tree::Tree;

const RULE: &str = "long-file";

/// Lines from which a file is worth a look.
const LINES: usize = 550;

/// Warns of long Rust files.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources
        .iter()
        .filter(|source| source.lines.len() > LINES)
        .map(|source| {
            let lines = source.lines.len();
            let remedy = format!("{lines} lines: does it hold two subjects?");
            Finding { warning: true, ..Finding::at(&source.path, lines - 1, RULE, remedy) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_a_warning() {
        let (long, short) = ("\n".repeat(LINES + 1), "\n".repeat(LINES));
        let found = check(&Tree::planted(&[("a.rs", &long), ("b.rs", &short)]));
        assert_eq!(found.len(), 1);
        assert!(found[0].warning);
    }
}
