//! `docs/options.md` says what the table says.

use std::fs;
use std::path::Path;

use masu::options::{ALL, Description, Unit};

/// The page's rows, as the table gives them.
fn row(option: &Description) -> String {
    let Description { name, variable, meaning, default, .. } = option;
    let values = match option.unit {
        Unit::Bytes => "bytes; `K`, `M`, `G` may follow".to_owned(),
        Unit::Count => format!("{} to {}", option.least, option.most),
        _ => "0 or 1".to_owned(),
    };
    format!("| `{variable}`<br>`.{name}(…)` | {values} | {default} | {} |\n", meaning.trim())
}

#[test]
fn the_page_holds_a_row_for_every_option_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let rows: String = ALL.iter().map(row).collect();
    let found: String = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(found, rows, "docs/options.md must hold these rows:\n{rows}");
}
