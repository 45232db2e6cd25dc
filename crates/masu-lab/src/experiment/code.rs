//! `code`: the more methods a JIT compiles, the slower the program (Ruby MJIT, 2018).
//!
//! Relies on two examples of masu-code: small functions in many [`layouts`], and a JIT in miniature that answers
//! [`requests`]. The hard idea is that a run's clock says little here, so each run notes its own figures and these are
//! compared, round by round.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::build::Cargo;
use super::field_report::FieldReport;
use super::series::row;
use super::{Block, Experiment, Outcome, Series, Workbench};
use crate::Error;
use crate::tables::Table;

mod layouts;
mod requests;

use layouts::Layouts;
use requests::Requests;

const REPORT: &str = include_str!("../../experiments/reports/code.toml");

pub(super) const CODE: Experiment = Experiment {
    name: "code",
    about: "The more a JIT compiles, the slower it runs",
    title: "A JIT's code: where it lies decides what a call costs",
    takes: ["1 min", "4 min", "20 min", "80 min"],
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<Outcome, Error> {
    let Some(programs) = prepare(bench)? else {
        return Ok(outcome(None, None, Vec::new()));
    };
    let program = programs.join("layout");
    let layouts = Layouts::measure(bench, &program)?;
    let requests = Requests::measure(bench, &programs.join("jit"))?;
    let mut diagnosis = Vec::new();
    if let Some(layouts) = &layouts {
        let (what, words) = layouts.slow(&program);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        diagnosis = bench.diagnosis(&what, &words, None)?;
    }
    Ok(outcome(layouts.as_ref(), requests.as_ref(), diagnosis))
}

/// Builds both programs; the folder they are in.
fn prepare(bench: &mut Workbench<'_>) -> Result<Option<PathBuf>, Error> {
    let what = "the layouts and the JIT";
    let Some(cargo) = Cargo::find(bench, what) else { return Ok(None) };
    let install = "install gcc, which compiles the methods (Debian: apt install gcc)";
    if bench.tool("gcc", what, install).is_none() {
        return Ok(None);
    }
    let examples =
        ["--release", "--package", "masu-code", "--example", "layout", "--example", "jit"];
    let target = cargo.of_tree(bench, what, &examples)?;
    Ok(target.map(|target| target.join("release/examples")))
}

/// A figure that the runs of the row with these values noted in `file`; `own` are the names by which a line has them.
fn noted(
    table: &Table,
    values: &[(&str, &str)],
    file: &Path,
    own: &[(&str, &str)],
    key: &str,
) -> Series {
    let is_own = |line: &Value| own.iter().all(|(name, value)| text(line, name) == *value);
    Series::noted(table, row(table, "system", values), file, is_own, key)
}

/// A value of a line as text, be it a number or not.
fn text(line: &Value, key: &str) -> String {
    match line.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn outcome(
    layouts: Option<&Layouts>,
    requests: Option<&Requests>,
    diagnosis: Vec<Block>,
) -> Outcome {
    let report = FieldReport::parse(REPORT);
    let mut claims = layouts.map(|layouts| layouts.claims(&report)).unwrap_or_default();
    claims.extend(requests.map(|requests| requests.claims(&report)).unwrap_or_default());
    let figures: Vec<String> =
        layouts.map(Layouts::figures).into_iter().chain(requests.map(Requests::figures)).collect();
    let figures = match figures.is_empty() {
        true => "nothing could be measured here".to_owned(),
        false => figures.join("; "),
    };
    let mut now = layouts.map(Layouts::blocks).unwrap_or_default();
    now.extend(requests.map(Requests::blocks).unwrap_or_default());
    let mut change = layouts.map(Layouts::change).unwrap_or_default();
    change.extend(requests.map(Requests::change).unwrap_or_default());
    Outcome { now, diagnosis, change, ..report.outcome(claims, &figures) }
}

#[cfg(test)]
mod tests {
    use super::super::field_report::Today;
    use super::*;

    #[test]
    fn without_programs_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(None, None, Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty() && outcome.change.is_empty());
        assert!(outcome.verdict.sentence.contains("nothing could be measured"));
        let figures = ["call ", "p50 ", "p100 ", "gap "];
        let is_known = |name: &str| figures.iter().any(|figure| name.starts_with(figure));
        let any =
            |of: &str, over: &str| (is_known(of) && is_known(over)).then_some(Today::Ratio(None));
        FieldReport::parse(REPORT).check(&[], any);
    }

    #[test]
    fn a_line_s_values_are_told_by_their_text() {
        let line: Value = serde_json::from_str("{\"kind\":\"own\",\"body\":8}").unwrap();
        assert_eq!((text(&line, "kind").as_str(), text(&line, "body").as_str()), ("own", "8"));
        assert_eq!(text(&line, "none"), "");
    }
}
