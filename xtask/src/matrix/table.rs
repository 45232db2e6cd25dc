//! The matrix as a table in Markdown, and its place in the tests' README.
//!
//! It relies on two marks in that file; what stands between them is replaced.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::plan::{Cell, GROUPS, LEFT_OUT, LeftOut, Target};

const BEGIN: &str = "<!-- matrix: written by `cargo xtask matrix` -->";
const END: &str = "<!-- end of the matrix -->";

/// The table, with the reasons of what did not run below it.
pub(super) fn text(rows: &[(&Target, Vec<Cell>)]) -> String {
    let columns: Vec<usize> = (0..GROUPS.len())
        .filter(|column| rows.iter().any(|(_, cells)| cells[*column] != Cell::NotAsked))
        .collect();
    let names = columns.iter().map(|column| GROUPS[*column].name);
    let mut lines = vec![format!("| target | {} |", names.collect::<Vec<_>>().join(" | "))];
    lines.push(format!("|---{}|", "|--:".repeat(columns.len())));
    let mut reasons: Vec<&str> = Vec::new();
    for (target, cells) in rows {
        let shown = columns.iter().map(|column| show(cells[*column], &mut reasons));
        let shown: Vec<String> = shown.collect();
        lines.push(format!("| {} | {} |", target.name, shown.join(" | ")));
    }
    lines.push(String::new());
    lines.push("Tests that passed; with *n* failed where any did. Not run:".to_owned());
    lines.push(String::new());
    let letters =
        reasons.iter().enumerate().map(|(place, reason)| format!("- {}: {reason}.", letter(place)));
    lines.extend(letters);
    let is_asked = |one: &LeftOut| rows.iter().any(|(target, _)| one.is_of(target));
    let tests = LEFT_OUT.iter().filter(|one| is_asked(one));
    lines.extend(tests.map(|one| format!("- `{}`, {}: {}.", one.test, one.place(), one.reason)));
    lines.join("\n")
}

fn show(cell: Cell, reasons: &mut Vec<&'static str>) -> String {
    match cell {
        Cell::NotAsked => String::new(),
        Cell::Passed(passed) => passed.to_string(),
        Cell::Failed(passed, failed) => format!("{passed}, **{failed} failed**"),
        Cell::NotRun(reason) => {
            let place = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            letter(place).to_string()
        }
    }
}

fn letter(place: usize) -> char {
    char::from(b'a' + place as u8)
}

/// When and on what this was.
pub(super) fn head(commit: &str) -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
    };
    let (date, kernel) = (said("date", &["-u", "+%Y-%m-%d"]), said("uname", &["-r"]));
    let emulator = said("qemu-aarch64", &["--version"]);
    let guests = "guests: Linux 6.1 (Debian's source), the same qemu's whole machine, 2 CPUs";
    format!("{date}, commit {commit}, kernel {kernel}, {emulator}; {guests}; `cargo xtask matrix`.")
}

/// Puts the table into the file at `path`.
///
/// # Errors
///
/// When the file or its marks are not there.
pub(super) fn keep(path: &Path, text: &str) -> Result<()> {
    let shown = path.display();
    let old = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let new =
        replaced(&old, text).with_context(|| format!("{shown} lacks the matrix's two marks"))?;
    fs::write(path, new).with_context(|| format!("cannot write {shown}"))
}

fn replaced(old: &str, text: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, behind) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{text}\n\n{END}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::plan::TARGETS;

    #[test]
    fn what_did_not_run_has_its_reason_once() {
        let mut cells = vec![Cell::Passed(7); GROUPS.len()];
        cells[1] = Cell::NotRun("no such machine");
        cells[2] = Cell::NotRun("no such machine");
        cells[3] = Cell::Failed(2, 1);
        let text = text(&[(&TARGETS[0], cells)]);
        assert_eq!(text.matches("no such machine").count(), 1, "{text}");
        assert!(text.contains("| 7 | a | a | 2, **1 failed** |"), "{text}");
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let old = format!("one\n{BEGIN}\nold\n{END}\ntwo\n");
        assert_eq!(replaced(&old, "new"), Some(format!("one\n{BEGIN}\n\nnew\n\n{END}\ntwo\n")));
        assert_eq!(replaced("no marks", "new"), None);
    }
}
