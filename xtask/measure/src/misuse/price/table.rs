//! The prices as tables of ratios to the first malloc, and their place in the page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use masu_lab::statistics::{self, Measure};

use super::{Measured, Row};
use crate::profile::count;
use xtask::records;

/// The section of the page.
pub(in super::super) const HEADING: &str = "What safety costs";

const READING: &str = "\
Ratios to the first column, which is in units: 1.20 is a fifth more. CPU time is user and system time of the whole program. Each
ratio is the median of those of one round, in which the mallocs took turns; behind it stand the lowest and the highest
round. Peak RSS likewise, without them where they lie within 2 %. The mean is geometric. Patterns do little but ask for memory:
real programs stand below them.
";

/// What `–` is in the last table.
const UNCOUNTED: &str = "\nWhere there is no figure, the malloc ends the program under cachegrind, which has fewer addresses than it wants.\n";

/// The section, from its heading on.
pub(super) fn text(
    commit: &str,
    rows: &[&Row],
    missing: &[&Row],
    rounds: usize,
    measured: &[Measured],
) -> String {
    let mut text = format!(
        "`cargo xtask misuse --prices --record`, {} at {commit}, {rounds} rounds, load {} at the end.\n\n{READING}",
        records::today(),
        records::load(),
    );
    if !missing.is_empty() {
        let titles: Vec<&str> = missing.iter().map(|row| row.title).collect();
        let _ = writeln!(text, "\nNot here: {}.", titles.join(", "));
    }
    let timed = |measure, unit| move |one: &Measured, row: usize| one.cell(row, measure, unit);
    let ratio = |measure| move |one: &Measured, row: usize| one.ratio(row, measure).map(|it| it.0);
    let mut add = |title: &str, part: String| {
        let _ = write!(text, "\n### {title}\n\n{part}");
    };
    add("CPU time, ms", table(rows, measured, &timed(Measure::Cpu, 1e3), &ratio(Measure::Cpu)));
    add(
        "Peak RSS, MB",
        table(rows, measured, &timed(Measure::PeakRss, 1e-6), &ratio(Measure::PeakRss)),
    );
    let counted: Vec<&Measured> =
        measured.iter().filter(|one| one.instructions.is_some()).collect();
    if !counted.is_empty() {
        let version = count::version().unwrap_or_else(|_| "valgrind".to_owned());
        let title =
            format!("Instructions, millions, of a shorter run under cachegrind ({version})");
        add(&title, table(rows, measured, &Measured::counted, &Measured::instructions));
        text.push_str(UNCOUNTED);
    }
    text
}

type Cell<'a> = &'a dyn Fn(&Measured, usize) -> Option<String>;
type Number<'a> = &'a dyn Fn(&Measured, usize) -> Option<f64>;

fn table(rows: &[&Row], measured: &[Measured], cell: Cell<'_>, ratio: Number<'_>) -> String {
    let heads: Vec<&str> = rows.iter().map(|row| row.title).collect();
    let mut text =
        format!("| program | {} |\n|---{}|\n", heads.join(" | "), "|---:".repeat(heads.len()));
    let shown: Vec<&Measured> = measured.iter().filter(|one| cell(one, 0).is_some()).collect();
    for one in &shown {
        let cells: Vec<String> =
            (0..rows.len()).map(|row| cell(one, row).unwrap_or_else(|| "–".to_owned())).collect();
        let _ = writeln!(text, "| {} | {} |", one.name, cells.join(" | "));
    }
    let mean = |row: usize| {
        let ratios: Vec<f64> = shown.iter().filter_map(|one| ratio(one, row)).collect();
        #[expect(clippy::cast_precision_loss, reason = "programs are few")]
        let mean = (ratios.iter().map(|one| one.ln()).sum::<f64>() / ratios.len() as f64).exp();
        if ratios.len() == shown.len() { format!("{mean:.2}") } else { "–".to_owned() }
    };
    let means: Vec<String> = (0..rows.len()).map(mean).collect();
    let _ = writeln!(text, "| **mean** | {} |", means.join(" | "));
    text
}

impl Measured {
    /// The row's ratio to the first: the median of the rounds, the lowest, the highest.
    fn ratio(&self, row: usize, measure: Measure) -> Option<(f64, f64, f64)> {
        let of_row = |row: usize| self.runs.iter().filter(move |run| run.variant == row);
        let mut ratios: Vec<f64> = of_row(0)
            .filter_map(|base| {
                let other = of_row(row).find(|run| run.round == base.round)?;
                let is_well = |run: &masu_lab::Run| run.ending == masu_lab::Ending::Exited(0);
                let both = is_well(base) && is_well(other);
                both.then_some(measure.of(other)? / measure.of(base)?)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        Some((statistics::median(&ratios)?, *ratios.first()?, *ratios.last()?))
    }

    fn cell(&self, row: usize, measure: Measure, unit: f64) -> Option<String> {
        if row == 0 {
            let of_it = self.runs.iter().filter(|run| run.variant == 0);
            let values: Vec<f64> = of_it.filter_map(|run| measure.of(run)).collect();
            return statistics::median(&values).map(|value| format!("{:.0}", value * unit));
        }
        let (median, low, high) = self.ratio(row, measure)?;
        let is_narrow = high - low < 0.02 * median;
        let is_shown = measure == Measure::Cpu || !is_narrow;
        let spread = if is_shown { format!(" ({low:.2}–{high:.2})") } else { String::new() };
        Some(format!("{median:.2}{spread}"))
    }

    #[expect(clippy::cast_precision_loss, reason = "programs have fewer than 2^53 instructions")]
    fn instructions(&self, row: usize) -> Option<f64> {
        let counts = self.instructions.as_ref()?;
        Some((*counts.get(row)?)? as f64 / (*counts.first()?)? as f64)
    }

    fn counted(&self, row: usize) -> Option<String> {
        if row == 0 {
            let count = (*self.instructions.as_ref()?.first()?)?;
            return Some((count / 1_000_000).to_string());
        }
        self.instructions(row).map(|ratio| format!("{ratio:.2}"))
    }
}

/// Puts the section at the end of the page at `path`, in place of the one that is there.
///
/// # Errors
///
/// When the file cannot be read or written.
pub(in super::super) fn keep(path: &Path, text: &str) -> Result<()> {
    let shown = path.display();
    let old = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    fs::write(path, replaced(&old, text)).with_context(|| format!("cannot write {shown}"))
}

fn replaced(old: &str, text: &str) -> String {
    let heading = format!("\n## {HEADING}\n");
    let before = old.split_once(&heading).map_or(old, |(before, _)| before);
    format!("{before}{heading}\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_replaced_and_nothing_before_it() {
        let first = replaced("# Page\n", "old\n");
        assert_eq!(first, format!("# Page\n\n## {HEADING}\n\nold\n"));
        assert_eq!(replaced(&first, "new\n"), format!("# Page\n\n## {HEADING}\n\nnew\n"));
    }

    #[test]
    fn instructions_are_held_against_the_first_s() {
        let counts = Some(vec![Some(200_000_000), Some(300_000_000), None]);
        let one = Measured { name: "a", runs: Vec::new(), instructions: counts };
        let cells: Vec<Option<String>> = (0..3).map(|row| one.counted(row)).collect();
        assert_eq!(cells, [Some("200".to_owned()), Some("1.50".to_owned()), None]);
        assert_eq!(one.cell(1, Measure::Cpu, 1.0), None, "nothing was timed");
    }
}
