//! Sections of `docs/options.md` that tests write from tables.

use std::fs;
use std::path::Path;

/// Compares the lines between `begin` and `end` with those wanted; with `SNAPSHOTS=overwrite`, overwrites them.
pub(crate) fn check(begin: &str, wanted: &str, end: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let page = fs::read_to_string(&file).expect("the page is there");
    let (before, rest) = page.split_once(begin).expect("the page marks where the section begins");
    let (_, after) = rest.split_once(end).expect("the page marks where the section ends");
    let wanted = [before, begin, wanted, end, after].concat();
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        return fs::write(&file, wanted).expect("the page may be written");
    }
    assert!(page == wanted, "SNAPSHOTS=overwrite writes {} again:\n{wanted}", file.display());
}
