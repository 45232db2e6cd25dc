//! `cargo xtask suites`: other people's test suites with and without masu preloaded, kept in `benches/record/checks/suites.md`.
//!
//! It relies on one script a suite in `workloads/tests`. A script is run in a folder of its own: with `make`, to fetch and
//! build what it needs, and twice with `run`, without masu in `PRELOAD` and with it. It prints `ok NAME` or `not ok NAME` for
//! each test. Its comments `# title:`, `# left out:` and `# differs: NAME: why` are part of the page, where each suite has a part
//! of its own.
//!
//! A run in which the preload was lost would pass, too. So each process that begins writes the library of its
//! `malloc` into the file `WITNESS` (`workloads/tests/witness.c`, preloaded in both runs). With masu that must be
//! masu's library everywhere, and the programs that `# runs:` names, by a part of their paths, must be among the
//! processes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::records;
use crate::{commands, files, options, page_part};

const PAGE: &str = "benches/record/checks/suites.md";

/// The exit status of a script whose suite needs something that the machine lacks.
const LACKING: Option<i32> = Some(77);

struct Suite {
    name: String,
    script: PathBuf,
    text: String,
    folder: PathBuf,
}

/// Other people's test suites with and without masu, kept in benches/record/checks/suites.md (about an hour)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// Only these suites
    names: Vec<String>,
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let made = commands::target_folder()?.join("suites");
    let all = suites(&root.join("workloads/tests"), &made)?;
    let asked = options::chosen(all, &request.names, |suite| &suite.name)?;
    commands::build(root, &["--package", "masu-abi"])?;
    let masu = commands::target_folder()?.join("release/libmasu.so");
    let witness = witness(root, &made)?;
    let mut unexplained = Vec::new();
    for suite in &asked {
        let outcome =
            commands::step(&suite.name, || suite.run(&made.join("apt"), &masu, &witness))?;
        if let Some((text, not_explained)) = outcome {
            page_part::replace(&root.join(PAGE), &format!("suites {}", suite.name), &text)?;
            unexplained.extend(not_explained);
        }
    }
    if !unexplained.is_empty() {
        bail!("differ with masu, and no script says why: {}", unexplained.join(", "));
    }
    Ok(())
}

/// Builds the library that reports the library of a process's `malloc`.
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
    for script in files::list(scripts)? {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name != "fetch" && script.extension().is_some_and(|extension| extension == "sh") {
            let text = files::read(&script)?;
            suites.push(Suite { folder: made.join(&name), name, script, text });
        }
    }
    Ok(suites)
}

impl Suite {
    /// Makes the suite and runs it twice; none if the machine lacks something that the suite needs.
    fn run(
        &self,
        apt: &Path,
        masu: &Path,
        witness: &Path,
    ) -> Result<Option<(String, Vec<String>)>> {
        fs::create_dir_all(&self.folder)?;
        let made = self.part("make", apt).status().context("bash does not start")?;
        if made.code() == LACKING {
            println!("left out, for the machine lacks that");
            return Ok(None);
        }
        if !made.success() {
            bail!("{} could not be made: {made}", self.name);
        }
        let both = format!("{}:{}", witness.display(), masu.display());
        for (preload, kind) in [(witness.as_os_str(), "without"), (both.as_ref(), "with")] {
            let witnessed = self.folder.join(format!("witnessed.{kind}"));
            fs::write(&witnessed, "")?;
            let mut run = self.part("run", apt);
            run.env("PRELOAD", preload).env("WITNESS", witnessed);
            run.stdout(File::create(self.folder.join(format!("out.{kind}")))?);
            commands::run(&mut run)?;
        }
        self.outcome().map(Some)
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

    /// Its part of the page, and the tests whose difference no script explains.
    fn outcome(&self) -> Result<(String, Vec<String>)> {
        let read = |kept| files::read(&self.folder.join(kept));
        let programs = self.says("runs").next().context("its script does not say what it runs")?;
        let processes = processes(programs, &read("witnessed.without")?, &read("witnessed.with")?)
            .with_context(|| format!("{} shows nothing", self.name))?;
        let (without, with) = (outcomes(&read("out.without")?), outcomes(&read("out.with")?));
        if without.is_empty() {
            bail!("{} ran no test", self.name);
        }
        let title = self.says("title").next().unwrap_or(&self.name);
        let passed = |outcomes: &Outcomes| outcomes.values().filter(|passed| **passed).count();
        let mut text = format!(
            "## {title}\n\n{}: {} tests; {} passed without masu, {} with it, in {processes} processes.\n\n",
            records::today(),
            without.len(),
            passed(&without),
            passed(&with)
        );
        for left_out in self.says("left out") {
            let _ = writeln!(text, "- left out: {left_out}");
        }
        let reasons: Vec<(&str, &str)> =
            self.says("differs").filter_map(|line| line.split_once(": ")).collect();
        let differs = without.iter().filter(|(name, passed)| with.get(*name) != Some(passed));
        let (mut differences, mut unexplained) = (0, Vec::new());
        for (name, _) in differs {
            let reason = reasons.iter().find(|(known, _)| known == name);
            let why = reason.map_or("not explained yet", |(_, why)| why);
            let _ = writeln!(text, "- differs: `{name}`: {why}");
            unexplained.extend(reason.is_none().then(|| name.clone()));
            differences += 1;
        }
        if differences == 0 {
            text.push_str("- no difference\n");
        }
        Ok((text, unexplained))
    }
}

/// Whether each test passed.
type Outcomes = BTreeMap<String, bool>;

/// The outcomes in a run's output; a test that ran several times passed if it always did.
fn outcomes(printed: &str) -> Outcomes {
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

/// The number of processes of these programs with masu's `malloc`, from the lines that all processes of both runs
/// wrote.
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
    fn a_difference_that_no_script_explains_is_named() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_owned();
        let text = "# title: One\n# runs: /perl\n# left out: slow ones\n# differs: b: why\n";
        for (name, text) in [
            ("witnessed.without", "/usr/bin/perl\t/lib/libc.so.6\n"),
            ("witnessed.with", "/usr/bin/perl\t/lib/libmasu.so\n"),
            ("out.without", "ok a\nok b\nok c\n"),
            ("out.with", "ok a\nnot ok b\nnot ok c\n"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let (script, text) = (PathBuf::new(), text.to_owned());
        let suite = Suite { name: "one".to_owned(), script, text, folder };
        let (text, unexplained) = suite.outcome().unwrap();
        assert_eq!(unexplained, ["c"]);
        let counts = "3 tests; 3 passed without masu, 1 with it, in 1 processes.";
        let list =
            "- left out: slow ones\n- differs: `b`: why\n- differs: `c`: not explained yet\n";
        assert!(text.contains(counts) && text.ends_with(list), "{text}");
    }
}
