//! The matrix as a table in Markdown.
//!
//! A run keeps the rows that it ran whole, and the others stay and say of which run they are.

use std::process::Command;

use super::plan::{self, Cell, GROUPS, LEFT_OUT, LeftOut, TARGETS, Target};
use crate::{commands, records};

struct Row {
    target: &'static Target,
    /// The earlier run that the row is from.
    run: Option<String>,
    /// One a group.
    cells: Vec<String>,
}

impl Row {
    fn new(target: &'static Target, cells: &[Cell]) -> Row {
        Row { target, run: None, cells: cells.iter().map(|cell| show(*cell)).collect() }
    }

    /// The target's row in an earlier table of these groups.
    fn kept(old: &str, target: &'static Target) -> Option<Row> {
        let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        old.lines().find(|line| fields(line).is_some_and(|fields| fields[1..] == names))?;
        let mut rows = old.lines().filter_map(fields).filter(|row| row.len() > names.len());
        rows.find_map(|row| {
            let run = row[0].strip_prefix(target.name)?;
            let run = run.strip_prefix(" (").and_then(|run| run.strip_suffix(')'));
            let run = run.or_else(|| stamp(old)).map(str::to_owned);
            let cells = GROUPS.iter().zip(&row[1..]).map(|(group, cell)| {
                // Letters are today's.
                let reason = plan::not_run(target, group);
                reason.map_or((*cell).to_owned(), |reason| show(Cell::NotRun(reason)))
            });
            Some(Row { target, run, cells: cells.collect() })
        })
    }

    fn name(&self) -> String {
        let name = self.target.name;
        self.run.as_ref().map_or(name.to_owned(), |run| format!("{name} ({run})"))
    }
}

fn fields(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect())
}

/// The run that a [`head`] is from.
fn stamp(head: &str) -> Option<&str> {
    Some(head.trim_start().split_once(", kernel ")?.0)
}

/// The table of the cells that were run, with the reasons for the others below it.
pub(super) fn text(rows: &[(&'static Target, Vec<Cell>)]) -> String {
    lines(&rows.iter().map(|(target, cells)| Row::new(target, cells)).collect::<Vec<_>>())
}

fn lines(rows: &[Row]) -> String {
    let columns: Vec<usize> = (0..GROUPS.len())
        .filter(|column| rows.iter().any(|row| !row.cells[*column].is_empty()))
        .collect();
    let names = columns.iter().map(|column| GROUPS[*column].name);
    let mut lines = vec![format!("| target | {} |", names.collect::<Vec<_>>().join(" | "))];
    lines.push(format!("|---{}|", "|--:".repeat(columns.len())));
    lines.extend(rows.iter().map(|row| {
        let cells = columns.iter().map(|column| row.cells[*column].as_str());
        format!("| {} | {} |", row.name(), cells.collect::<Vec<_>>().join(" | "))
    }));
    lines.push(String::new());
    let earlier = if rows.iter().any(|row| row.run.is_some()) {
        " A row with a date is of an earlier run."
    } else {
        ""
    };
    lines.push(format!("Tests that passed; with *n* failed where any did.{earlier} Not run:"));
    lines.push(String::new());
    for (place, reason) in reasons().iter().enumerate() {
        let letter = letter(place);
        if rows.iter().any(|row| row.cells.contains(&letter)) {
            lines.push(format!("- {letter}: {reason}."));
        }
    }
    let is_shown = |one: &LeftOut| rows.iter().any(|row| one.is_of(row.target));
    let tests = LEFT_OUT.iter().filter(|one| is_shown(one));
    lines.extend(tests.map(|one| format!("- `{}`, {}: {}.", one.test, one.place(), one.reason)));
    lines.join("\n")
}

/// Why groups are not run, each reason once, whatever was asked for: rows of several runs have one list.
fn reasons() -> Vec<&'static str> {
    let mut reasons = Vec::new();
    let cells = TARGETS.iter().flat_map(|target| GROUPS.iter().map(move |group| (target, group)));
    for reason in cells.filter_map(|(target, group)| plan::not_run(target, group)) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

fn show(cell: Cell) -> String {
    match cell {
        Cell::NotAsked => String::new(),
        Cell::Passed(passed) => passed.to_string(),
        Cell::Failed(passed, failed) => format!("{passed}, **{failed} failed**"),
        Cell::NotRun(reason) => {
            reasons().iter().position(|known| *known == reason).map_or(reason.to_owned(), letter)
        }
    }
}

fn letter(place: usize) -> String {
    char::from(b'a' + place as u8).to_string()
}

/// Date, commit, kernel and emulator of a run.
pub(super) fn head(commit: &str) -> String {
    let said = |program: &str, arguments: &[&str]| {
        let text = commands::output(Command::new(program).args(arguments));
        text.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
    };
    let (date, kernel) = (records::today(), said("uname", &["-r"]));
    let emulator = said("qemu-aarch64", &["--version"]);
    // COUPLING: `stamp` reads what stands before the kernel.
    format!(
        "{date}, commit {commit}, kernel {kernel}, {emulator};\n\
         guests: Linux 6.1 (Debian's source) on a machine of two CPUs, emulated by the same qemu."
    )
}

/// Rows in the table that is kept in `old`; the others that are there stay.
pub(super) fn merged(old: &str, head: &str, rows: &[(&'static Target, Vec<Cell>)]) -> String {
    let row = |target: &'static Target| {
        let new = rows.iter().find(|(of, _)| of.name == target.name);
        let new = new.map(|(_, cells)| Row::new(target, cells));
        new.or_else(|| {
            let kept = Row::kept(old, target)?;
            let run = kept.run.filter(|run| Some(run.as_str()) != stamp(head));
            Some(Row { run, ..kept })
        })
    };
    let rows: Vec<Row> = TARGETS.iter().filter_map(row).collect();
    format!("{head}\n\n{}", lines(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_run_has_its_reason_once() {
        let reason = reasons()[0];
        let mut cells = vec![Cell::Passed(7); GROUPS.len()];
        cells[1] = Cell::NotRun(reason);
        cells[2] = Cell::NotRun(reason);
        cells[3] = Cell::Failed(2, 1);
        let text = text(&[(&TARGETS[0], cells)]);
        assert_eq!(text.matches(reason).count(), 1, "{text}");
        assert!(text.contains("| 7 | a | a | 2, **1 failed** |"), "{text}");
    }

    fn cells(passed: u64) -> Vec<Cell> {
        vec![Cell::Passed(passed); GROUPS.len()]
    }

    #[test]
    fn rows_of_an_earlier_run_stay_and_say_so() {
        let (first, second) = ("2026-01-01, commit a, kernel 1", "2026-01-02, commit b, kernel 1");
        let run = |old: &str, head, place: usize, passed| {
            merged(old, head, &[(&TARGETS[place], cells(passed))])
        };
        let both = run(&run("", first, 0, 7), first, 1, 8);
        assert!(!both.contains("(2026") && both.contains("| 7 | 7 |"), "{both}");
        let later = run(&both, second, 1, 9);
        let name = format!("| {} (2026-01-01, commit a) | 7 |", TARGETS[0].name);
        assert!(later.contains(&name) && later.contains("| 9 |"), "{later}");
        assert!(!later.contains("| 8 |") && later.contains("earlier run"), "{later}");
        let again = run(&later, second, 2, 5);
        assert!(again.contains(&name), "{again}");
        let whole = TARGETS.iter().map(|target| (target, cells(1))).collect::<Vec<_>>();
        assert!(!merged(&again, second, &whole).contains("(2026"));
    }

    #[test]
    fn rows_of_other_groups_do_not_stay() {
        let old = format!("x, kernel 1\n\n| target | a |\n| {} | 1 |", TARGETS[0].name);
        let new = merged(&old, "y, kernel 1", &[(&TARGETS[1], cells(2))]);
        assert!(!new.contains(TARGETS[0].name), "{new}");
    }
}
