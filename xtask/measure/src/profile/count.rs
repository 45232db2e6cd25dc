//! Instructions of one program without and with a heap profile, as cachegrind counts them.
//!
//! It relies on cachegrind's summary, and on the file that a profile leaves: a run that left none counted something
//! else.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use super::{Places, Program};

/// Variables that would change what is counted; masu's own go, too.
const UNSET: [&str; 3] = ["LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES"];

/// Instructions of each run.
pub(super) struct Cost {
    pub(super) without: Vec<u64>,
    pub(super) with: Vec<u64>,
}

impl Cost {
    /// Runs the program `runs` times each way.
    ///
    /// # Errors
    ///
    /// When it does not end well, or takes a profile where it should not, or none where it should.
    pub(super) fn count(places: &Places, program: &Program, runs: usize) -> Result<Cost> {
        let mut cost = Cost { without: Vec::new(), with: Vec::new() };
        for _ in 0..runs {
            // At once: a count does not depend on what else runs.
            let (without, with) = thread::scope(|scope| {
                let without = scope.spawn(|| run(places, program, false));
                let with = run(places, program, true);
                (without.join(), with)
            });
            cost.without.push(without.map_err(|_| anyhow!("a run's thread panicked"))??);
            cost.with.push(with?);
        }
        Ok(cost)
    }

    /// Instructions without a profile: the mean.
    pub(super) fn base(&self) -> f64 {
        mean(&self.without)
    }

    /// How far the runs without a profile lie apart, as a part of their mean.
    pub(super) fn spread(&self) -> f64 {
        let (low, high) = ends(&self.without);
        (high - low) / self.base()
    }

    /// With over without: the mean, the lowest and the highest run.
    pub(super) fn ratio(&self) -> (f64, f64, f64) {
        let (low, high) = ends(&self.with);
        (mean(&self.with) / self.base(), low / self.base(), high / self.base())
    }
}

#[expect(clippy::cast_precision_loss, reason = "programs have fewer than 2^53 instructions")]
fn mean(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64 / counts.len() as f64
}

#[expect(clippy::cast_precision_loss, reason = "programs have fewer than 2^53 instructions")]
fn ends(counts: &[u64]) -> (f64, f64) {
    let low = counts.iter().min().copied().unwrap_or_default();
    (low as f64, counts.iter().max().copied().unwrap_or_default() as f64)
}

fn run(places: &Places, program: &Program, is_profiled: bool) -> Result<u64> {
    let taken = places.taken.join(if is_profiled { "with" } else { "without" });
    if taken.exists() {
        fs::remove_dir_all(&taken)?;
    }
    fs::create_dir_all(&taken)?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    valgrind.args(program.words.iter().map(|word| places.word(word)));
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(b"MASU_");
    let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| is_ours(name));
    for name in ours.chain(UNSET.map(Into::into)) {
        valgrind.env_remove(name);
    }
    valgrind.envs(program.variables.iter().copied()).current_dir(&places.workloads);
    if program.words[0] != "{strings}" {
        valgrind.env("LD_PRELOAD", &places.library);
    }
    if is_profiled {
        valgrind.env("MASU_PROFILE", taken.join("heap"));
    }
    let output = valgrind.stdin(Stdio::null()).output().context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{} under cachegrind: {}\n{said}", program.name, output.status);
    }
    let is_taken = fs::read_dir(&taken)?.next().is_some();
    if is_taken != is_profiled {
        bail!("{}: a profile wanted: {is_profiled}; taken: {is_taken}", program.name);
    }
    instructions(&said).with_context(|| format!("cachegrind counted nothing:\n{said}"))
}

/// The count in what cachegrind says at the end: `==4711== I   refs:      1,005,140,791`; newer ones leave blanks out.
pub(crate) fn instructions(said: &str) -> Option<u64> {
    said.lines().rev().find_map(|line| {
        let (_, words) = line.strip_prefix("==")?.split_once("==")?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let ["I", "refs:", count] = words[..] else { return None };
        count.replace(',', "").parse().ok()
    })
}

/// What valgrind calls itself.
///
/// # Errors
///
/// When it cannot be started.
pub(crate) fn version() -> Result<String> {
    let output = Command::new("valgrind").arg("--version").output();
    let output = output.context("cannot start valgrind")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().replace('-', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cachegrind_s_count_is_found_among_what_a_program_says() {
        let said =
            "==7== Cachegrind, a cache\nI refs: 5\n==7== \n==7== I   refs:      1,005,140,791\n";
        assert_eq!(instructions(said), Some(1_005_140_791));
        assert_eq!(instructions("==7== I refs: 12\n"), Some(12));
        assert_eq!(instructions("I   refs:      1,005\n==7== D   refs: 5\n"), None);
    }

    #[test]
    fn ratios_are_to_the_mean_of_the_runs_without() {
        let cost = Cost { without: vec![90, 110], with: vec![104, 100, 102] };
        assert_eq!((cost.base(), cost.spread(), cost.ratio()), (100.0, 0.2, (1.02, 1.0, 1.04)));
    }
}
