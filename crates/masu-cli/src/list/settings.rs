//! `masu list --settings`: every setting, its effect, and its form for each malloc.
//!
//! Relies on the lab's table for all of it; this file fits the page into 80 columns.

use masu_lab::variant::settings::{Cell, SETTINGS, Setting};

use super::{BOLD, DIM};

const WIDTH: usize = 80;

/// The column of the names and values that a malloc reads.
const INDENT: usize = 12;

const INTRODUCTION: &str = "\
A variant is ALLOCATOR[:NAME=VALUE,…]. Each malloc is listed with what it reads.
SIZE is in bytes, or ends in K, M or G; MS is milliseconds, -1 for never.";

const REST: &str = "\
Options of masu's are settings of it too (masu list --options): masu:retain=64M.

For anything else, unchecked:
  conf.NAME=VALUE  an option of jemalloc's (MALLOC_CONF), a tunable of glibc's
  env.NAME=VALUE   an environment variable";

pub(super) fn page() -> String {
    let mut page = format!("{INTRODUCTION}\n");
    for setting in &SETTINGS {
        page.push('\n');
        head(&mut page, setting);
        for cell in setting.cells {
            row(&mut page, cell);
        }
    }
    page.push_str(&format!("\n{REST}\n"));
    page
}

/// The setting and its meaning, on one line where that fits.
fn head(page: &mut String, setting: &Setting) {
    let Setting { name, alias, unit, meaning, .. } = setting;
    let alias = alias.map(|name| format!(" or {name}")).unwrap_or_default();
    let title = format!("{name}={}{alias}", unit.placeholder());
    let fits = title.chars().count() + 2 + meaning.chars().count() <= WIDTH;
    let separator = if fits { "  " } else { "\n  " };
    page.push_str(&format!("{BOLD}{title}{BOLD:#}{separator}{meaning}\n"));
}

fn row(page: &mut String, cell: &Cell) {
    let mut first = cell.malloc;
    for line in cell.shown() {
        page.push_str(&format!("  {first:<width$}{line}\n", width = INDENT - 2));
        first = "";
    }
    let remark = cell.remark();
    if !remark.is_empty() {
        page.push_str(&format!("{DIM}{:INDENT$}{remark}{DIM:#}\n", ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_setting_within_80_columns() {
        let page = anstream::adapter::strip_str(&page()).to_string();
        assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
        snapbox::assert_data_eq!(page, snapbox::file!["tests/settings.txt"]);
    }
}
