//! `cargo xtask suites`: other people's test suites with and without masu preloaded, as a table in `benches/record/checks/suites.md`.
//!
//! It relies on one script a suite in `workloads/tests`. A script is run in a folder of its own: with `make`, to fetch and
//! build what it needs, and twice with `run`, without masu in `PRELOAD` and with it. It prints `ok NAME` or `not ok NAME` for
//! each test. Its comments `# title:`, `# left out:` and `# differs: NAME: why` are part of the table. The results stay in the
//! target folder; of a suite that was not run there, the page keeps what it says.
//!
//! A run in which the preload was lost would pass, too. So each process that begins writes into the file
//! `WITNESS` whose `malloc` it has (`workloads/tests/witness.c`, preloaded in both runs): with masu it must be masu's
//! everywhere, and among them must be the programs that `# runs:` names, by a part of their paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::records;
use crate::{commands, options, page_part};

const PAGE: &str = "benches/record/checks/suites.md";

/// The exit status of a script whose suite needs something that the machine lacks.
const LACKING: Option<i32> = Some(77);

struct Suite {
    name: String,
    script: PathBuf,
    text: String,
    folder: PathBuf,
}

struct Libraries {
    masu: PathBuf,
    witness: PathBuf,
}

/// Other people's test suites with and without masu, keep the table in benches/record/checks/suites.md (about an hour)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// Only these suites
    names: Vec<String>,
    /// Run nothing: make the table of what was run before
    #[arg(long, conflicts_with = "names")]
    table: bool,
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let made = commands::target_folder()?.join("suites");
    let all = suites(&root.join("workloads/tests"), &made)?;
    options::are_known(&request.names, all.iter().map(|suite| suite.name.as_str()))?;
    if !request.table {
        let build = ["build", "--release", "--locked", "-p", "masu-abi"];
        commands::run(&mut commands::cargo(root, &build))?;
        let masu = commands::target_folder()?.join("release/libmasu.so");
        let libraries = Libraries { masu, witness: witness(root, &made)? };
        for suite in &all {
            if request.names.is_empty() || request.names.contains(&suite.name) {
                commands::step(&suite.name, || suite.run(&made.join("apt"), &libraries))?;
            }
        }
    }
    let page = root.join(PAGE);
    let before = fs::read_to_string(&page).with_context(|| format!("no {}", page.display()))?;
    let mut entries = Vec::new();
    let mut unexplained = Vec::new();
    for suite in &all {
        if let Some(row) = suite.row()? {
            entries.push(Entry::new(&row));
            unexplained.extend(row.unexplained);
        } else {
            entries.extend(Entry::read(&before, suite.title()));
        }
    }
    page_part::replace(&page, "suites", &table(&entries))?;
    if !unexplained.is_empty() {
        bail!("differ with masu, and no script says why: {}", unexplained.join(", "));
    }
    Ok(())
}

/// Builds the library that says whose `malloc` a process has.
fn witness(root: &Path, made: &Path) -> Result<PathBuf> {
    fs::create_dir_all(made)?;
    let library = made.join("witness.so");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o"]).arg(&library);
    commands::run(cc.arg(root.join("workloads/tests/witness.c")).arg("-ldl"))?;
    Ok(library)
}

fn suites(scripts: &Path, made: &Path) -> Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for entry in fs::read_dir(scripts).with_context(|| format!("no {}", scripts.display()))? {
        let script = entry?.path();
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name != "fetch" && script.extension().is_some_and(|extension| extension == "sh") {
            let text = fs::read_to_string(&script)?;
            suites.push(Suite { folder: made.join(&name), name, script, text });
        }
    }
    suites.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(suites)
}

impl Suite {
    fn run(&self, apt: &Path, libraries: &Libraries) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let made = self.part("make", apt).status().context("bash does not start")?;
        if made.code() == LACKING {
            println!("left out, for the machine lacks that");
            return Ok(());
        }
        if !made.success() {
            bail!("{} could not be made: {made}", self.name);
        }
        // Without its date a run counts for nothing: it was not finished, or shows nothing.
        let date = self.folder.join("date");
        let _ = fs::remove_file(&date);
        let Libraries { masu, witness } = libraries;
        let both = format!("{}:{}", witness.display(), masu.display());
        for (preload, kind) in [(witness.as_os_str(), "without"), (both.as_ref(), "with")] {
            let witnessed = self.folder.join(format!("witnessed.{kind}"));
            fs::write(&witnessed, "")?;
            let mut run = self.part("run", apt);
            run.env("PRELOAD", preload).env("WITNESS", witnessed);
            run.stdout(File::create(self.folder.join(format!("out.{kind}")))?);
            commands::run(&mut run)?;
        }
        fs::write(&date, records::today())?;
        self.row().map(drop).inspect_err(|_| drop(fs::remove_file(&date)))
    }

    fn part(&self, part: &str, apt: &Path) -> Command {
        let mut bash = Command::new("bash");
        let fetch = self.script.with_file_name("fetch.sh");
        bash.args(["-c", "set -u; . \"$0\"; script=$1; shift; . \"$script\""]);
        bash.arg(fetch).arg(&self.script).arg(part);
        bash.current_dir(&self.folder).env("APT", apt).env_remove("LD_PRELOAD");
        bash
    }

    /// The values of a comment of the script.
    fn says<'a>(&'a self, of: &'a str) -> impl Iterator<Item = &'a str> {
        let prefix = format!("# {of}: ");
        self.text.lines().filter_map(move |line| line.strip_prefix(prefix.as_str()))
    }

    fn title(&self) -> &str {
        self.says("title").next().unwrap_or(&self.name)
    }

    /// The suite's row; none where it was not run here.
    fn row(&self) -> Result<Option<Row>> {
        let read = |kept| fs::read_to_string(self.folder.join(kept));
        let Ok(date) = read("date") else { return Ok(None) };
        let programs = self.says("runs").next().context("its script does not say what it runs")?;
        let processes = processes(programs, &read("witnessed.without")?, &read("witnessed.with")?)
            .with_context(|| format!("{} shows nothing", self.name))?;
        let (without, with) = (outcomes(&read("out.without")?), outcomes(&read("out.with")?));
        if without.is_empty() {
            bail!("{} ran no test", self.name);
        }
        let reasons: Vec<(&str, &str)> =
            self.says("differs").filter_map(|line| line.split_once(": ")).collect();
        let mut row = Row {
            title: self.title().to_owned(),
            left_out: self.says("left out").map(str::to_owned).collect(),
            date,
            processes,
            run: without.len(),
            without: without.values().filter(|passed| **passed).count(),
            with: with.values().filter(|passed| **passed).count(),
            explained: Vec::new(),
            unexplained: Vec::new(),
        };
        for (name, passed) in &without {
            if with.get(name) == Some(passed) {
                continue;
            }
            match reasons.iter().find(|(known, _)| known == name) {
                Some((_, why)) => row.explained.push(format!("`{name}`: {why}")),
                None => row.unexplained.push(name.clone()),
            }
        }
        Ok(Some(row))
    }
}

/// Whether each test passed; a test that ran several times passed if it always did.
fn outcomes(printed: &str) -> BTreeMap<String, bool> {
    let mut outcomes = BTreeMap::new();
    for line in printed.lines() {
        let (name, passed) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => continue,
        };
        *outcomes.entry(name.to_owned()).or_insert(true) &= passed;
    }
    outcomes
}

/// How many processes of these programs had masu's `malloc`, by what all processes of both runs wrote.
fn processes(programs: &str, without: &str, with: &str) -> Result<usize> {
    let has_masu = |line: &&str| {
        let library = line.split_once('\t').map_or("", |(_, library)| library);
        Path::new(library)
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"libmasu."))
    };
    if let Some(line) = without.lines().find(has_masu) {
        bail!("masu was in the run without it: {line}");
    }
    if let Some(line) = with.lines().find(|line| !has_masu(line)) {
        bail!("masu was not in all of the run with it: {line}");
    }
    let is_of =
        |line: &&str| line.split_once('\t').is_some_and(|(program, _)| program.contains(programs));
    match (without.lines().filter(is_of).count(), with.lines().filter(is_of).count()) {
        (0, _) | (_, 0) => bail!("no process of {programs} was seen"),
        (_, processes) => Ok(processes),
    }
}

struct Row {
    title: String,
    left_out: Vec<String>,
    date: String,
    /// With masu's `malloc`.
    processes: usize,
    run: usize,
    without: usize,
    with: usize,
    explained: Vec<String>,
    unexplained: Vec<String>,
}

/// A suite's part of the page: a line of the table, and the list below it.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    line: String,
    below: String,
}

impl Entry {
    fn new(row: &Row) -> Entry {
        let Row { title, date, processes, run, without, with, .. } = row;
        let line = format!("| {title} | {date} | {run} | {without} | {with} | {processes} |");
        let mut below = format!("{title}:\n\n");
        for left_out in &row.left_out {
            let _ = writeln!(below, "- left out: {left_out}");
        }
        for difference in &row.explained {
            let _ = writeln!(below, "- differs: {difference}");
        }
        for difference in &row.unexplained {
            let _ = writeln!(below, "- differs, not explained yet: `{difference}`");
        }
        if row.explained.is_empty() && row.unexplained.is_empty() {
            below.push_str("- no difference\n");
        }
        Entry { line, below }
    }

    /// The entry of a page that was written before.
    fn read(page: &str, title: &str) -> Option<Entry> {
        let line = page.lines().find(|line| line.starts_with(&format!("| {title} |")))?;
        let head = format!("{title}:\n\n");
        let from = &page[page.find(&format!("\n{head}"))? + 1..];
        let list = &from[head.len()..];
        let below = &from[..head.len() + list.find("\n\n").map_or(list.len(), |at| at + 1)];
        Some(Entry { line: line.to_owned(), below: below.to_owned() })
    }
}

fn table(entries: &[Entry]) -> String {
    let mut text =
        "| suite | date | tests | passed without masu | passed with masu | processes with masu |\n\
        |---|---|--:|--:|--:|--:|\n"
            .to_owned();
    for Entry { line, .. } in entries {
        let _ = writeln!(text, "{line}");
    }
    for Entry { below, .. } in entries {
        let _ = write!(text, "\n{below}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_failed_once_failed() {
        let outcomes = outcomes("ok a\nnot ok b\nok b\nnoise\nok c d\n");
        let passed: Vec<_> = outcomes.iter().map(|(name, ok)| (name.as_str(), *ok)).collect();
        assert_eq!(passed, [("a", true), ("b", false), ("c d", true)]);
    }

    #[test]
    fn a_run_that_lost_its_preload_shows_nothing() {
        let [with, without] = ["libmasu.so", "libc.so.6"].map(|library| {
            format!("/usr/bin/timeout\t/lib/{library}\n/usr/bin/perl\t/lib/{library}\n")
        });
        assert_eq!(processes("/perl", &without, &with).ok(), Some(1));
        assert!(processes("/perl", &with, &with).is_err());
        assert!(processes("/perl", &without, &without).is_err());
        assert!(processes("/perl", &without, &format!("{with}{without}")).is_err());
        assert!(processes("/ruby", &without, &with).is_err());
        assert!(processes("/perl", &without, "").is_err());
    }

    #[test]
    fn what_a_page_says_of_a_suite_is_read_as_it_was_written() {
        let row = |title: &str, explained: &[&str]| Row {
            title: title.to_owned(),
            left_out: vec!["what is long".to_owned()],
            date: "2026-11-23".to_owned(),
            processes: 4,
            run: 3,
            without: 3,
            with: 2,
            explained: explained.iter().map(|why| (*why).to_owned()).collect(),
            unexplained: Vec::new(),
        };
        let entries = [Entry::new(&row("One", &["`a`: why"])), Entry::new(&row("Two", &[]))];
        let page = format!("before\n\n{}\n<!-- end -->\n", table(&entries));
        assert_eq!(Entry::read(&page, "One").as_ref(), Some(&entries[0]));
        assert_eq!(Entry::read(&page, "Two").as_ref(), Some(&entries[1]));
        assert_eq!(Entry::read(&page, "Three"), None);
    }
}
