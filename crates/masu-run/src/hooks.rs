//! Shell commands of the user's around the runs: `--setup`, `--prepare` and `--cleanup`.
//!
//! Hooks are not measured, their output never mixes with a program's, and they may leave a server running. After a
//! failed hook the runs would not be the ones asked for, so the failure is an error with the hook's last words.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::Doing;
use crate::execute::{Tree, alone};
use crate::workload::unlinked_file;
use crate::{Ending, Error, Stop, kernel, named};

/// The interval at which a waiting hook checks whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// The number of bytes at the end of standard error that are searched for a hook's last line.
const TAIL_BYTES: u64 = 2048;

/// Shell commands around the runs of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// The command to run once, before anything else.
    pub setup: Option<OsString>,
    /// The command to run before every run, the warm-ups too, in the folder of the run. `{variant}`, `{scratch}` and
    /// the names of the row's parameters stand for their values.
    pub prepare: Option<OsString>,
    /// The command to run once, after everything else has ended, also after an error or a stop.
    pub cleanup: Option<OsString>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Hook {
        Setup = "setup",
        Prepare = "prepare",
        Cleanup = "cleanup",
    }
}

impl Hook {
    /// Runs `command` with `sh`, in `folder` if there is one, without input. Programs that it starts in the background
    /// go on and belong to no run. A stop kills it with all it has started, except the cleanup, because a stop leads to
    /// the cleanup.
    pub fn run(self, command: &OsStr, folder: Option<&Path>, stop: &Stop) -> Result<(), Error> {
        let doing = || format!("running the {} command", self.name());
        let _alone = alone();
        kernel::become_subreaper().doing(doing)?;
        // The output goes to a file and not to a pipe: programs that a hook leaves in the background may go on writing.
        let said = unlinked_file()?;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null());
        shell.stderr(said.try_clone().doing(doing)?);
        if let Some(folder) = folder {
            shell.current_dir(folder).env("PWD", folder);
        }
        kernel::start_apart(&mut shell, false);
        let before = Tree::children_here();
        let root = shell.spawn().doing(doing)?.id().cast_signed();
        let watch = || -> io::Result<bool> {
            let process = kernel::open_process(root)?;
            loop {
                let [has_ended] = kernel::wait_readable([Some(process.as_fd())], PATIENCE)?;
                if has_ended || self != Hook::Cleanup && stop.requested() {
                    return Ok(!has_ended);
                }
            }
        };
        let stopped = watch();
        // Nothing else would end a shell that cannot be watched.
        if !matches!(stopped, Ok(false)) {
            Tree::new(root, before).end();
            return Err(stopped.doing(doing).err().unwrap_or(Error::Stopped));
        }
        let (status, _) = kernel::wait_for(root).doing(doing)?;
        let ending = Ending::from(status);
        if ending == Ending::Exited(0) {
            return Ok(());
        }
        let reason = match last_line(&said) {
            Some(line) => format!("it {ending} and said: {line}"),
            None => format!("it {ending} and said nothing on standard error"),
        };
        let command = command.to_string_lossy().into_owned();
        Err(Error::Hook { hook: self.name(), command, reason })
    }
}

pub fn last_line(mut file: &File) -> Option<String> {
    let end = file.seek(SeekFrom::End(0)).ok()?;
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let tail = String::from_utf8_lossy(&tail);
    let line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(hook: Hook, command: &str, stop: &Stop) -> Result<(), Error> {
        hook.run(OsStr::new(command), None, stop)
    }

    #[test]
    fn a_failure_names_the_hook_the_command_its_exit_and_its_last_words() {
        let command = "echo first >&2; echo last words >&2; echo >&2; exit 3";
        let error = run(Hook::Prepare, command, &Stop::never()).unwrap_err().to_string();
        for part in ["prepare", command, "returned 3", "said: last words"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = run(Hook::Setup, "kill -KILL $$", &Stop::never()).unwrap_err().to_string();
        assert!(error.contains("setup") && error.contains("signal 9"), "{error}");
        assert!(error.contains("said nothing"), "{error}");
    }

    #[test]
    fn success_says_nothing_and_meets_no_input() {
        run(Hook::Setup, "echo out; echo err >&2; ! read line", &Stop::never()).unwrap();
    }

    #[test]
    fn it_runs_in_the_folder() {
        let folder = std::fs::canonicalize(std::env::temp_dir()).unwrap();
        let command = format!("[ \"$(pwd)\" = '{0}' ] && [ \"$PWD\" = '{0}' ]", folder.display());
        let stop = Stop::never();
        Hook::Prepare.run(OsStr::new(&command), Some(&folder), &stop).unwrap();
    }

    #[test]
    fn a_stop_kills_all_but_the_cleanup() {
        let stop = Stop::never();
        stop.request();
        for hook in [Hook::Setup, Hook::Prepare] {
            let result = run(hook, "sleep 1000 & sleep 1000", &stop);
            assert!(matches!(result, Err(Error::Stopped)), "{result:?}");
        }
        run(Hook::Cleanup, "sleep 0.1", &stop).unwrap();
    }

    #[test]
    fn what_it_leaves_in_the_background_goes_on() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let command = format!("sleep 1000 & echo $! > {}", path.display());
        run(Hook::Setup, &command, &Stop::never()).unwrap();
        let pid = std::fs::read_to_string(&path).unwrap();
        // The next hook, like the next run, leaves it alone, and a cleanup can end it.
        run(Hook::Prepare, "true", &Stop::never()).unwrap();
        run(Hook::Cleanup, &format!("kill {pid}"), &Stop::never()).unwrap();
        let _alone = alone();
        kernel::wait_for(pid.trim().parse().unwrap()).unwrap();
    }
}
