//! A part of a page that a chore writes: the chore replaces the text between two marks, so that nobody writes figures
//! there by hand.

use std::path::Path;

use anyhow::{Context, Result};

use crate::files;

/// Replaces the text of `page` between the marks of `cargo xtask CHORE` by `text`.
pub fn replace(page: &Path, chore: &str, text: &str) -> Result<()> {
    let whole = files::read(page)?;
    let [before, _, after] = parts(&whole, chore).with_context(|| lacking(page, chore))?;
    files::write(page, format!("{before}\n{}\n\n{after}", text.trim()))
}

pub fn read(page: &Path, chore: &str) -> Result<String> {
    let whole = files::read(page)?;
    let [_, kept, _] = parts(&whole, chore).with_context(|| lacking(page, chore))?;
    Ok(kept.to_owned())
}

fn lacking(page: &Path, chore: &str) -> String {
    format!("{} has no marks of `cargo xtask {chore}`", page.display())
}

/// The text up to the end of the first mark, the text between both marks, and the text from the second mark on.
fn parts<'a>(page: &'a str, chore: &str) -> Option<[&'a str; 3]> {
    let begin = format!("<!-- written by `cargo xtask {chore}` -->\n");
    let end = format!("<!-- end of what `cargo xtask {chore}` writes -->");
    let start = page.find(&begin)? + begin.len();
    let length = page[start..].find(&end)?;
    Some([&page[..start], &page[start..start + length], &page[start + length..]])
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
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        for old in ["old\n", "\nnew\n\n"] {
            files::write(&path, page(old)).unwrap();
            replace(&path, "x", "new\n").unwrap();
            assert_eq!(files::read(&path).unwrap(), page("\nnew\n\n"));
        }
        assert_eq!(read(&path, "x").unwrap(), "\nnew\n\n");
        assert!(replace(&path, "y", "new").is_err());
    }
}
