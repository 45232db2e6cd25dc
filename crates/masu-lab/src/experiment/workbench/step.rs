//! Steps before a measurement: a command is run to its end, a package installed.
//!
//! Relies on a log of each step, whose line with the error is shown.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{News, Workbench};
use masu_run::error::Doing;
use masu_run::{Error, Program, execute};

impl Workbench<'_> {
    /// Runs a command to its end, its output in a file of the cache; returns its duration, none where it failed or
    /// was stopped, which is noted.
    pub(in crate::experiment) fn step(
        &mut self,
        what: &str,
        command: &mut Command,
    ) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        (self.asked.tell)(News::Begins(what));
        let began = Instant::now();
        let log = self.cache().join(format!("{}.log", file_name(what)));
        let failed = self.run(command, &log);
        if self.is_over() {
            return None;
        }
        let reason = match failed {
            Ok(None) => {
                (self.asked.tell)(News::Done(began.elapsed()));
                return Some(began.elapsed());
            }
            Ok(Some(reason)) => format!("{reason}; all it said is in {}", log.display()),
            Err(error) => error.to_string(),
        };
        self.miss(what, reason);
        None
    }

    /// Runs `command` and returns the reason of its failure, if it failed.
    fn run(&self, command: &mut Command, log: &Path) -> Result<Option<String>, Error> {
        // The code that reaps the children of a run must not reap this child.
        let _alone = execute::alone();
        let opening = || format!("opening {}", log.display());
        let output = File::create(log).doing(opening)?;
        let errors = output.try_clone().doing(opening)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let program = command.get_program().to_string_lossy().into_owned();
                return Ok(Some(format!("`{program}` does not start: {error}")));
            }
        };
        let status = self.asked.stop.wait_for(&mut child).doing(|| "waiting for a build")?;
        let failed = status.filter(|status| !status.success());
        Ok(failed.map(|status| format!("{status}: {}", last_words(log))))
    }

    /// The result of `find`, after Debian's `packages` are installed where it finds nothing and the user allowed it; else
    /// `what` is noted as missing, with `why`.
    pub(in crate::experiment) fn provide<T>(
        &mut self,
        what: &str,
        why: &str,
        packages: &[&str],
        find: impl Fn() -> Option<T>,
    ) -> Option<T> {
        let found = find();
        if found.is_some() {
            return found;
        }
        let packages = packages.join(" ");
        let may_install = is_root() && Program::find("apt-get".as_ref()).is_ok();
        if !self.asked.install || !may_install {
            let name = self.name;
            let by_hand = format!("apt-get install --no-install-recommends {packages}");
            let remedy = format!("`masu experiment {name} --install` does that, or `{by_hand}`");
            self.miss(what, format!("{why}; on Debian, as root, {remedy}"));
            return None;
        }
        // The list of packages may be old or empty, so a first failure is answered with a fresh one. An installation that
        // is killed would have to be repaired, so a stop leaves it to its end, in a session of its own.
        let script = format!(
            "install() {{ setsid --wait apt-get --yes --quiet --no-install-recommends install {packages}; }}\n\
             install || {{ apt-get --quiet update && install; }}"
        );
        let mut install = Command::new("sh");
        install.args(["-c", &script]).env("DEBIAN_FRONTEND", "noninteractive");
        self.step(&format!("installing Debian's {packages}"), &mut install)?;
        let found = find();
        if found.is_none() {
            self.miss(what, format!("{why}, though {packages} are installed"));
        }
        found
    }
}

/// Whether the user is root: the `/proc` entry of a root process belongs to user 0.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

fn file_name(what: &str) -> String {
    what.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

/// The line of a log with the first error, or its last line. A tool's error is nearer to the cause than that of the
/// build that started the tool, which may stand before it.
fn last_words(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    // Cargo, Maven, apt and virtual machines begin so; compilers have the place before it.
    let starts = ["error", "[ERROR]", "E: ", "Exception in thread"];
    let is_error = |line: &&str| starts.iter().any(|it| line.starts_with(it));
    let found = lines().find(|line| line.contains(" error: ")).or_else(|| lines().find(is_error));
    found.or_else(|| lines().next_back()).unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failed_step_is_its_first_error() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        for (log, reason) in [
            ("Compiling a\nerror: no linker\nwarning: more\n\n", "error: no linker"),
            (
                "[INFO] b\n[ERROR] no network\n[ERROR] \n[ERROR] [Help 1] http\n",
                "[ERROR] no network",
            ),
            (
                "error: failed to run custom build command\n  configure: error: no spaces\n",
                "configure: error: no spaces",
            ),
            ("a.c:1:2: error: no `x`\n x\n1 error\n", "a.c:1:2: error: no `x`"),
            ("Reading\nE: no package\nW: old\n", "E: no package"),
            ("Exception in thread \"main\" Full\n\tat a.b\n", "Exception in thread \"main\" Full"),
            ("one\ntwo\n", "two"),
            ("\n", "it said nothing"),
        ] {
            fs::write(&path, log).unwrap();
            assert_eq!(last_words(&path), reason);
        }
        assert_eq!(last_words(Path::new("/no/such/log")), "it said nothing");
    }
}
