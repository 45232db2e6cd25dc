//! Steps before a measurement: a command is run to its end, a package installed.
//!
//! Relies on a log of each step, whose line with the error is shown.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
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
    ) -> Result<Option<Duration>, Error> {
        if self.is_over() {
            return Ok(None);
        }
        (self.asked.tell)(News::Begins(what));
        let began = Instant::now();
        let log = self.cache().join(format!("{}.log", file_name(what)));
        let failed = self.run(command, &log)?;
        if self.is_over() {
            return Ok(None);
        }
        match failed {
            None => {
                (self.asked.tell)(News::Done(began.elapsed()));
                Ok(Some(began.elapsed()))
            }
            Some(reason) => {
                self.miss(what, format!("{reason}; all it said is in {}", log.display()));
                Ok(None)
            }
        }
    }

    /// Runs `command` and returns the reason of its failure, if it failed.
    fn run(&self, command: &mut Command, log: &Path) -> Result<Option<String>, Error> {
        // The code that reaps the children of a run must not reap this child.
        let _alone = execute::alone();
        let opening = || format!("opening {}", log.display());
        let output = File::create(log).doing(opening)?;
        let errors = output.try_clone().doing(opening)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let program = command.get_program().to_string_lossy().into_owned();
                return Ok(Some(format!("`{program}` does not start: {error}")));
            }
        };
        loop {
            if let Some(status) = child.try_wait().doing(|| "waiting for a build")? {
                return Ok((!status.success()).then(|| format!("{status}: {}", last_words(log))));
            }
            if self.asked.stop.requested() {
                // The child may have ended by the same signal.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether Debian's `packages` were installed, if the user allowed it; else `what` is noted as missing, with `why`.
    pub(in crate::experiment) fn provide(
        &mut self,
        what: &str,
        why: &str,
        packages: &[&str],
    ) -> Result<bool, Error> {
        let packages = packages.join(" ");
        let may_install = is_root() && Program::find("apt-get".as_ref()).is_ok();
        if !self.asked.install || !may_install {
            let remedy = "on Debian, as root, `masu experiment --install` does that, or";
            let by_hand = format!("apt-get install --no-install-recommends {packages}");
            self.miss(what, format!("{why}; {remedy} `{by_hand}`"));
            return Ok(false);
        }
        // The list of packages may be old or empty, so a first failure is answered with a fresh one.
        let script = format!(
            "install() {{ apt-get --yes --quiet --no-install-recommends install {packages}; }}\n\
             install || {{ apt-get --quiet update && install; }}"
        );
        let mut install = Command::new("sh");
        install.args(["-c", &script]).env("DEBIAN_FRONTEND", "noninteractive");
        Ok(self.step(&format!("installing Debian's {packages}"), &mut install)?.is_some())
    }
}

/// Whether the user is root: the `/proc` entry of a root process belongs to user 0.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

fn file_name(what: &str) -> String {
    what.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

/// The line of a log with the error, or its last line.
fn last_words(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| line.starts_with("error"));
    error.or_else(|| lines().next_back()).unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failed_build_is_its_first_error() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&path, "Compiling a\nerror: no linker\nwarning: more\n\n").unwrap();
        let said = last_words(&path);
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!((said.as_str(), &*last_words(&path)), ("error: no linker", "two"));
        assert_eq!(last_words(Path::new("/no/such/log")), "it said nothing");
    }

    #[test]
    fn a_step_s_log_has_a_plain_name() {
        assert_eq!(file_name("xquo 0.2.3 for musl/jemalloc"), "xquo-0.2.3-for-musl-jemalloc");
    }
}
