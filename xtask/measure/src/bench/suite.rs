//! The patterns as a suite file, which is written before it is measured.
//!
//! It is made from `patterns --list` and lies with the results, not among the sources: the defaults of a pattern are
//! stated in the program alone, and a file beside it would sooner or later differ. To run a part of it by hand, take
//! the copy in `target/bench/`: `masu compare --suite target/bench/patterns.toml --only ring`.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Pattern, Request};
use xtask::records;

/// The slowest malloc takes less for the longest pattern: a longer run hangs.
const PATIENCE: &str = "2m";

pub(super) fn text(
    request: &Request,
    chosen: &[Pattern],
    program: &Path,
    rounds: usize,
) -> Result<String> {
    let program = program.to_str().context("the path of the patterns is no text")?;
    let mut text = format!(
        "# Written by `{}`.\nname = \"patterns\"\nrounds = {rounds}\ntimeout = \"{PATIENCE}\"\n",
        records::command()
    );
    if !chosen.is_empty() {
        text.push_str(&format!("\n[values]\npatterns = {}\n", json!(program)));
    }
    if request.measures_smallest() {
        text.push_str(&workload("true", &["true".to_owned()]));
    }
    for pattern in chosen {
        text.push_str(&workload(&pattern.name, &pattern.command("{patterns}", request.share())));
    }
    Ok(text)
}

fn workload(name: &str, command: &[String]) -> String {
    // A text of JSON, and a list of them, is one of TOML.
    format!("\n[[workload]]\nname = {}\ncommand = {}\n", json!(name), json!(command))
}

#[cfg(test)]
mod tests {
    use masu_lab::plan::Mallocs;
    use masu_lab::{Catalogue, Places, Plan, Suite};

    use super::*;

    #[test]
    fn every_suite_file_of_the_workloads_is_understood() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
        assert!(!files.is_empty());
        for file in files {
            let suite = Suite::read(&file).unwrap_or_else(|error| panic!("{error}"));
            // The programs, inputs or mallocs of these may not be here: `bench` installs them, or they are made by hand.
            let absent = "programs prices judgement quote xquo layout steps brk parallel languages cores authors oversubscribed";
            if suite.name.as_ref().is_some_and(|name| absent.split(' ').any(|one| one == name)) {
                continue;
            }
            let mut mallocs = |_| Mallocs {
                catalogue: Catalogue::find(&Places::default()),
                ..Mallocs::default()
            };
            let plan = Plan::make(&suite, &mut mallocs).unwrap_or_else(|error| panic!("{error}"));
            assert!(plan.cases.iter().all(|prepared| prepared.rows.len() > 1));
        }
    }

    #[test]
    fn the_suite_reads_back_as_what_was_chosen() {
        let ring = Pattern::unscaled("ring \"odd\"", "");
        let program = Path::new("/tmp/a \\ b/patterns");
        let request = Request::default();
        let text = text(&request, &[ring], program, 7).unwrap();
        let path = std::env::temp_dir().join(format!("xtask-suite-{}.toml", std::process::id()));
        std::fs::write(&path, &text).unwrap();
        let suite = Suite::read(&path);
        std::fs::remove_file(&path).unwrap();
        let suite = suite.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(suite.values[0].1, "/tmp/a \\ b/patterns");
        let names: Vec<&str> = suite.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["true", "ring \"odd\""]);
        assert_eq!(suite.entries[1].command, ["{patterns}", "ring \"odd\""]);
    }
}
