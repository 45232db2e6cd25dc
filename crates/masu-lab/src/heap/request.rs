//! Asks a running program for its heap profile.
//!
//! Relies on the program's start: its environment has `MASU_PROFILE=PREFIX`. At each sample the program looks for a
//! file `PREFIX.PID.ask`, writes its profile and removes the file. This needs no signal and no right to read the
//! program's memory, and nothing can stop the program.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::files_of;
use masu_run::error::Error;
use masu_run::process::hidden;

/// The time between two checks whether the program has answered.
const LOOK: Duration = Duration::from_millis(20);

/// Has the process write its profile now; returns its file. An error if it takes no profile, or does not answer within
/// `patience`.
pub fn ask(process: u32, patience: Duration) -> Result<PathBuf, Error> {
    let wrong = |reason: String| Error::Process { pid: process, reason };
    let folder = PathBuf::from(format!("/proc/{process}"));
    let environment = fs::read(folder.join("environ")).map_err(|error| hidden(process, &error))?;
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"MASU_PROFILE="))
        .ok_or_else(|| {
            wrong(format!(
                "its environment has no MASU_PROFILE; start it with MASU_PROFILE=/tmp/heap. A program that \
                 writes a title over its environment, as redis-server does, hides it: then make the file \
                 /tmp/heap.{process}.ask, and show the profile that appears beside it"
            ))
        })?;
    let prefix = Path::new(std::ffi::OsStr::from_bytes(value));
    // The prefix is relative to the folder the program started in; a change of folder since then is not visible here.
    let folder = fs::read_link(folder.join("cwd")).unwrap_or_default();
    let prefix = folder.join(prefix);
    let mut question = prefix.clone().into_os_string();
    question.push(format!(".{process}.ask"));
    let question = PathBuf::from(question);
    let before = files_of(&prefix, process).len();
    fs::File::create(&question)
        .map_err(|error| wrong(format!("{} cannot be made: {error}", question.display())))?;
    let start = Instant::now();
    while question.exists() {
        if start.elapsed() > patience {
            // If the file is gone, the program has just answered.
            let _ = fs::remove_file(&question);
            return Err(wrong(
                "it did not answer: it does so when it next allocates as much as lies between two \
                 samples; try again later, or take a smaller MASU_PROFILE_INTERVAL"
                    .to_owned(),
            ));
        }
        thread::sleep(LOOK);
    }
    let files = files_of(&prefix, process);
    let newest = files.last().filter(|_| files.len() > before).cloned();
    newest.ok_or_else(|| {
        wrong(format!("it could not write to {}; its standard error says why", prefix.display()))
    })
}
