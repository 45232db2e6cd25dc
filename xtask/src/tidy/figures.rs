//! The page of figures is what the records make of it.

use std::path::Path;

use super::Finding;
use super::tree::Tree;
use crate::benchmarks::{PAGE, RECORDS, page};

const RULE: &str = "figures";

/// The page of figures, if the records do not make it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_record =
        |path: &Path| path.starts_with(RECORDS) && path.extension().is_some_and(|end| end == "md");
    let records: Vec<_> = tree.files.iter().filter(|file| is_record(&file.path)).collect();
    if records.is_empty() {
        return Vec::new();
    }
    let made = page(records.iter().map(|file| (file.path.as_path(), file.contents.as_str())));
    let there = tree.files.iter().find(|file| file.path == Path::new(PAGE));
    if there.is_some_and(|file| file.contents == made) {
        return Vec::new();
    }
    let remedy = format!("it is not what the records in {RECORDS} make: `cargo xtask benchmarks`");
    vec![Finding::at(Path::new(PAGE), 0, RULE, remedy)]
}
