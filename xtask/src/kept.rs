//! A part of a page that a chore writes: what stands between two marks is replaced, so that nobody writes figures there by
//! hand.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Puts `text` into `page` in the place of what stands between the marks of `cargo xtask CHORE`.
///
/// # Errors
///
/// When the page cannot be read or written, or lacks the marks.
pub fn keep(page: &Path, chore: &str, text: &str) -> Result<()> {
    let whole =
        fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let replaced = replace(&whole, chore, text)
        .with_context(|| format!("{} has no marks of `cargo xtask {chore}`", page.display()))?;
    fs::write(page, replaced).with_context(|| format!("cannot write {}", page.display()))
}

fn replace(page: &str, chore: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- written by `cargo xtask {chore}` -->\n");
    let end = format!("<!-- end of what `cargo xtask {chore}` writes -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced_and_nothing_else() {
        let page = |part: &str| {
            format!(
                "a\n<!-- written by `cargo xtask x` -->\n{part}<!-- end of what `cargo xtask x` writes -->\nb\n"
            )
        };
        let once = replace(&page("old\n"), "x", "new").unwrap();
        assert_eq!(once, page("\nnew\n\n"));
        assert_eq!(replace(&once, "x", "new"), Some(once));
        assert_eq!(replace("a", "x", "new"), None);
    }
}
