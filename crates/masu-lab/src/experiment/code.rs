//! `code`: the more methods a JIT compiles, the slower the program (Ruby MJIT, 2018).
//!
//! Relies on examples of masu-code: small functions in many [`layouts`], and a library that takes the methods of
//! [`ruby`]'s own JIT to the code arena. The hard idea is that a run's clock says little here, so each run notes its
//! own figures and these are compared, round by round.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::build::Cargo;
use super::page_file::{Figures, Known};
use super::series::row;
use super::{Experiment, Series, Workbench};
use crate::tables::Table;
use masu_run::Error;

mod layouts;
mod ruby;

use layouts::Layouts;
use ruby::Ruby;

pub(super) const CODE: Experiment = Experiment {
    name: "code",
    about: "The more a JIT compiles, the slower it runs",
    title: "A JIT's code: where it lies decides what a call costs",
    takes: ["1 min", "4 min", "20 min", "80 min"],
    report: include_str!("../../experiments/reports/code.toml"),
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<super::Measured, Error> {
    let Some(programs) = prepare(bench) else {
        return Ok((Box::new(Measured::default()), Vec::new()));
    };
    let program = programs.join("layout");
    let layouts = Layouts::measure(bench, &program);
    let layouts = bench.noted("the layouts", layouts).flatten();
    let shim = programs.join("libmjit.so");
    let asked = ruby::asked(bench.depth());
    let ruby = Ruby::measure(bench, &shim);
    let ruby = bench.noted("Ruby's MJIT", ruby).flatten();
    let slow = ruby.as_ref().and_then(|ruby| ruby.slow(bench, &shim));
    let slow = slow.or_else(|| Some(layouts.as_ref()?.slow(&program)));
    let mut diagnosis = Vec::new();
    if let Some((what, words)) = slow {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        diagnosis = bench.diagnosis(&what, &words, None);
    }
    Ok((Box::new(Measured { layouts, ruby, asked }), diagnosis))
}

fn prepare(bench: &mut Workbench<'_>) -> Option<PathBuf> {
    let what = "the layouts and the library for Ruby";
    let cargo = Cargo::find(bench, what)?;
    let install = "install gcc, which compiles the methods (Debian: apt install gcc)";
    bench.tool("gcc", what, install)?;
    let mut arguments = vec!["--release", "--package", "masu-code"];
    arguments.extend(["layout", "mjit"].into_iter().flat_map(|name| ["--example", name]));
    Some(cargo.of_tree(bench, what, &arguments)?.join("release/examples"))
}

/// A figure that the runs of the row with these values noted in `file`; `own` are the names of the row in a line.
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

fn text(line: &Value, key: &str) -> String {
    match line.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[derive(Default)]
pub(super) struct Measured {
    layouts: Option<Layouts>,
    ruby: Option<Ruby>,
    /// The values of Ruby's claims, which stand on the page also where it was not measured.
    asked: Vec<(&'static str, String)>,
}

impl Figures for Measured {
    /// Four words name a figure of a layout: `ns own 204 many`; three one of Ruby: `p50 own many`, `gap own p50`,
    /// `start warm_s own`.
    fn known(&self, name: &str) -> Option<Known> {
        let (layouts, ruby) = (self.layouts.as_ref(), self.ruby.as_ref());
        Some(match name.split(' ').collect::<Vec<&str>>()[..] {
            [key, layout, body, count] => {
                let series = layouts.map(|layouts| layouts.of(layout, body, count, key));
                Known::Runs(series.unwrap_or_default())
            }
            ["start", key, way] => Known::Number(ruby.and_then(|ruby| ruby.start(way, key))),
            ["gap", way, key] => {
                Known::Runs(ruby.map(|ruby| ruby.gap(way, key)).unwrap_or_default())
            }
            [key, way, methods] => {
                Known::Runs(ruby.map(|ruby| ruby.of(way, methods, key)).unwrap_or_default())
            }
            _ => return None,
        })
    }

    fn rows(&self, list: &str) -> Vec<(String, String)> {
        let of_layouts = self.layouts.as_ref().map(|layouts| layouts.rows(list));
        let rows = of_layouts.unwrap_or_default();
        if rows.is_empty() {
            return self.ruby.as_ref().map(|ruby| ruby.rows(list)).unwrap_or_default();
        }
        rows
    }

    fn is_empty(&self) -> bool {
        self.layouts.is_none() && self.ruby.is_none()
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let mut values = self.layouts.as_ref().map(Layouts::values).unwrap_or_default();
        values.extend(self.asked.iter().cloned());
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Depth;
    use crate::experiment::page_file::Shown;

    #[test]
    fn claims_about_a_ruby_that_was_not_measured_are_whole_sentences() {
        let asked = ruby::asked(Depth::Quick);
        let figures = Measured { asked, ..Measured::default() };
        let shown = Shown::new(&figures);
        let report: toml::Table = toml::from_str(CODE.report).unwrap();
        let claims = report["claims"].as_array().unwrap().iter();
        let says = claims.map(|claim| shown.put(claim["says"].as_str().unwrap()));
        let of_ruby: Vec<String> = says.filter(|text| text.contains("request")).collect();
        assert!(
            of_ruby.len() >= 6 && of_ruby.iter().all(|text| !text.contains('{')),
            "{of_ruby:?}"
        );
        for text in report["verdict"].as_array().unwrap() {
            let text = text.as_str().unwrap();
            assert!(!text.contains("Ruby") || shown.fill(text).is_none(), "{text}");
        }
    }
}
