//! `code`: the more methods a JIT compiles, the slower the program (Ruby MJIT, 2018).
//!
//! Relies on two examples of masu-code: small functions in many [`layouts`], and a JIT in miniature that answers
//! [`requests`]. The hard idea is that a run's clock says little here, so each run notes its own figures and these are
//! compared, round by round.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::build::Cargo;
use super::series::row;
use super::{Block, Experiment, Outcome, Series, Sheet, Verdict, Workbench};
use crate::Error;
use crate::report::Table;

mod layouts;
mod requests;

use layouts::Layouts;
use requests::Requests;

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
    let mut claims = layouts.map(Layouts::claims).unwrap_or_default();
    claims.extend(requests.map(Requests::claims).unwrap_or_default());
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
    Outcome {
        verdict: Verdict::of(&claims, &figures),
        then: then(),
        now,
        claims,
        diagnosis,
        change,
        by_hand: [
            "cargo build --release -p masu-code --example layout --example jit",
            "target/release/examples/layout prepare target/layout 4000",
            "target/release/examples/layout run target/layout own 8 1000 /dev/stderr    # also own2m, one, arena; 204",
            "masu compare --suite workloads/layout.toml",
            "target/release/examples/jit prepare target/jit 4000",
            "target/release/examples/jit run target/jit warm own 4000 200000 1000 /dev/stderr    # also cold; interpreter, single, arena",
            "masu compare --suite workloads/jit.toml",
            "masu code map -p PID     # how scattered a running process's code is",
        ]
        .map(str::to_owned)
        .into(),
    }
}

fn then() -> Vec<Block> {
    let story = "A method JIT emits C, compiles each method into a `.so` of its own and loads it. With 4,000 to 5,000 \
                 methods (a Rails application) the program ran slower than without JIT, with 20 to 30 it ran faster: each \
                 library lands 2 MiB from the next, so the instruction cache and the iTLB miss. Two remedies were \
                 compared: one `.so` linked from all objects, and objects loaded directly (objfcn). The first was chosen.";
    let headings = "percentile | no JIT | one .so each | single .so | objfcn";
    let rows = "50 | 38 | 45 | 41 | 43
                66 | 39 | 50 | 44 | 44
                75 | 47 | 51 | 46 | 45
                80 | 49 | 52 | 47 | 47
                90 | 50 | 63 | 50 | 52
                95 | 60 | 79 | 52 | 55
                98 | 91 | 114 | 91 | 91
                100 | 97 | 133 | 96 | 99";
    let table =
        Sheet::printed("Response time of GET /, milliseconds, 100 requests, 2018", headings, rows);
    let later = "With 1,000 requests the gap at the 50th and the 66th percentile shrank to 1 ms.";
    vec![Block::Text(story.to_owned()), Block::Sheet(table), Block::Text(later.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_programs_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(None, None, Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty() && outcome.change.is_empty());
        assert!(outcome.verdict.sentence.contains("nothing could be measured"));
    }

    #[test]
    fn a_line_s_values_are_told_by_their_text() {
        let line: Value = serde_json::from_str("{\"kind\":\"own\",\"body\":8}").unwrap();
        assert_eq!((text(&line, "kind").as_str(), text(&line, "body").as_str()), ("own", "8"));
        assert_eq!(text(&line, "none"), "");
    }
}
