//! `masu code map`: how scattered a running process's machine code is.
//!
//! Relies on the lab to read and judge; this file prints the page.

use std::io::Write;

use anyhow::{Context, Result};
use masu_lab::Scatter;
use masu_lab::report::width;

use crate::arguments::CodeMap;
use crate::line_wrap;

pub(crate) fn perform(arguments: &CodeMap) -> Result<()> {
    let process = arguments.pid;
    let scatter = Scatter::of(process)?;
    let page = line_wrap::fit(&page(process, &scatter), width());
    write!(anstream::stdout(), "{page}").context("printing the page")
}

fn page(process: u32, scatter: &Scatter) -> String {
    let kib = |bytes: u64| bytes >> 10;
    let share = |part: u64, whole: u64| (part * 100).checked_div(whole).unwrap_or(0);
    let mut page = format!("machine code of process {process}\n");
    let mut line = |name: &str, value: String| page.push_str(&format!("  {name:<24}{value}\n"));
    line("executable mappings", scatter.mappings.to_string());
    line("of at most 64 KiB", scatter.small.to_string());
    line("without a file", scatter.made.to_string());
    if scatter.deleted > 0 {
        line("of deleted files", format!("{}, most {}", scatter.deleted, scatter.deleted_as));
    }
    line("files", scatter.files.to_string());
    line(
        "addresses",
        format!("{} KiB in {} regions of 2 MiB", kib(scatter.bytes), scatter.regions),
    );
    line(
        "resident",
        format!("{} KiB, {} OS pages of 4 KiB", kib(scatter.resident), kib(scatter.resident) / 4),
    );
    line("in huge pages", format!("{} %", share(scatter.huge, scatter.resident)));
    line("at the same offset", format!("{} mappings (of 64 KiB)", scatter.same_offset));
    line("writable too", scatter.writable.to_string());
    if scatter.is_scattered() {
        page.push_str(
            "Scattered: many small mappings. Calls between them miss the caches and the TLB; code\n\
             that is linked into one library, or loaded by a code arena (docs/code.md), does not.\n",
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_mappings_are_called_scattered() {
        let few = Scatter { mappings: 9, small: 9, resident: 4096, ..Scatter::default() };
        let deleted_as = "/tmp/m*.so".to_owned();
        let many = Scatter { mappings: 900, small: 900, deleted: 9, deleted_as, ..few.clone() };
        let [few, many] = [&few, &many].map(|scatter| page(7, scatter));
        assert!(
            !few.contains("Scattered") && few.contains("process 7") && few.contains("4 KiB, 1 OS")
        );
        assert!(many.contains("Scattered") && many.contains("9, most /tmp/m*.so"), "{many}");
        assert!(!few.contains("deleted"));
    }
}
