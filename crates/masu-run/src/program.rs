//! A program looked up on this machine, and whether a malloc can be preloaded into it.
//!
//! [`Program::find`] fails only where nothing could be run. A program that takes no preload (static, setuid, with a
//! malloc of its own) is found with [`Program::refusal`] set: the system's malloc can still be measured in it. For a
//! script, its interpreter is examined.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Error, kernel};

pub mod elf;

/// The C library a program or a library is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Libc {
    Glibc,
    Musl,
    /// No C library is loaded: the program is linked statically, or brings its own loader.
    #[default]
    Static,
}

/// A command found on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The file to start.
    pub path: PathBuf,
    /// The file that allocates: `path`, or the interpreter of a script.
    pub binary: PathBuf,
    pub libc: Libc,
    /// The reason why no malloc can be preloaded, with a remedy; none if one can be.
    pub refusal: Option<String>,
    /// The malloc library that the program is linked with, by its file's name: this library, and not the C library's
    /// malloc, serves the program where nothing is preloaded.
    pub linked_malloc: Option<String>,
    /// A function of jemalloc's own that the program calls: a preload without it does not get those calls.
    pub jemalloc_call: Option<&'static str>,
}

impl Program {
    /// Looks `command` up as a shell would: a name with a `/` is a path, anything else is searched for in `PATH`. An
    /// error for a command that does not exist, is not executable, is neither ELF nor a script, is made for another
    /// architecture, or lacks its interpreter or its loader.
    pub fn find(command: &OsStr) -> Result<Program, Error> {
        let wrong = |reason: String| Error::Program {
            command: command.to_string_lossy().into_owned(),
            reason,
        };
        if command.is_empty() {
            let reason = "the command is empty; name a program".to_owned();
            return Err(Error::Program { command: "''".to_owned(), reason });
        }
        let path = locate(command).map_err(&wrong)?;
        let binary = interpreter(&path, 0).map_err(&wrong)?;
        let image = elf::Image::read(&binary).map_err(&wrong)?;
        image.loader_here().map_err(&wrong)?;
        // The kernel heeds the rights of the interpreter, not those of a script.
        let mut refusal = privileges(&binary).or_else(|| image.refusal());
        if binary != path {
            refusal = refusal.map(|reason| format!("{} runs it, and {reason}", binary.display()));
        }
        let linked_malloc = image.linked_malloc();
        let jemalloc_call = image.jemalloc_call();
        Ok(Program { path, binary, libc: image.libc, refusal, linked_malloc, jemalloc_call })
    }

    /// Checks that a malloc can be preloaded. The error has the reason and a remedy.
    pub fn preloadable(&self) -> Result<(), Error> {
        match &self.refusal {
            None => Ok(()),
            Some(reason) => {
                Err(Error::NoPreload { program: self.path.clone(), reason: reason.clone() })
            }
        }
    }
}

/// The file a shell would start.
fn locate(command: &OsStr) -> Result<PathBuf, String> {
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        return match unstartable(&path) {
            None => Ok(path),
            Some(_) if !path.exists() && is_for_a_shell(command) => Err(FOR_A_SHELL.to_owned()),
            Some(reason) => Err(reason),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let mut found_but = None;
    for folder in std::env::split_paths(&folders) {
        let path = folder.join(command);
        match unstartable(&path) {
            None => return Ok(path),
            Some(reason) if path.is_file() => {
                found_but.get_or_insert(format!("{}: {reason}", path.display()));
            }
            Some(_) => {}
        }
    }
    Err(found_but.unwrap_or_else(|| nothing_called(command)))
}

/// The message that nothing in PATH is called `command`, with a guess at the user's intent.
fn nothing_called(command: &OsStr) -> String {
    if is_for_a_shell(command) {
        return FOR_A_SHELL.to_owned();
    }
    let advice = if command.as_bytes().contains(&b'=') {
        "`env NAME=VALUE` before the program sets a variable".to_owned()
    } else if Path::new(command).is_file() {
        format!("there is one in this folder: write `./{}`", command.to_string_lossy())
    } else {
        "check the spelling or give its path".to_owned()
    };
    format!("no such command in PATH; {advice}")
}

const FOR_A_SHELL: &str =
    "no such command; words are taken as they are, without a shell: write `sh -c '…'` for one";

/// True if a word looks like a whole line.
fn is_for_a_shell(command: &OsStr) -> bool {
    command.as_bytes().iter().any(|byte| b" |<>;&".contains(byte))
}

/// The reason why `path` cannot be started; none if it can.
fn unstartable(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Err(error) => Some(format!("{error}; check the path")),
        Ok(metadata) if metadata.is_dir() => {
            Some("this is a folder; name the program in it".to_owned())
        }
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
            Some("not executable; `chmod +x` it, or name its interpreter first".to_owned())
        }
        Ok(metadata) if !metadata.is_file() => {
            Some("this is a pipe, a socket or a device; name a program".to_owned())
        }
        Ok(_) => None,
    }
}

/// The file whose code runs when `path` is started: `path` itself, or the target of its `#!` line.
fn interpreter(path: &Path, depth: u32) -> Result<PathBuf, String> {
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(512).read_to_end(&mut start)).map_err(|error| {
        let path = path.display();
        format!("cannot read {path}: {error}; masu must, to see what it is made for: chmod +r")
    })?;
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(path.to_owned()) };
    // The kernel itself follows at most five scripts that interpret scripts.
    if depth == 5 {
        return Err("its interpreters are scripts too deeply nested for the kernel".to_owned());
    }
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.ends_with(b"\r") {
        return Err(
            "its `#!` line ends in a carriage return, which the kernel takes for a part of \
                    the interpreter's name; remove it: sed -i 's/\\r$//'"
                .to_owned(),
        );
    }
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map(OsStr::from_bytes);
    let named = words.next().ok_or("its `#!` line names no interpreter")?;
    let mut next = PathBuf::from(named);
    // `env` replaces itself by the program it is asked to find.
    if next.file_name() == Some(OsStr::new("env")) {
        let wanted = words
            .find(|word| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'='));
        if let Some(wanted) = wanted {
            next = locate(wanted)
                .map_err(|reason| format!("its interpreter {}: {reason}", wanted.display()))?;
        }
    }
    if let Some(reason) = unstartable(&next) {
        return Err(format!("its interpreter {}: {reason}", next.display()));
    }
    interpreter(&next, depth + 1)
}

/// The reason why the kernel would start `path` with more rights than ours, if so: the loader then ignores
/// `LD_PRELOAD`.
pub(crate) fn privileges(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let (user, group) = kernel::effective_ids();
    let mode = metadata.mode();
    let advice = "so the loader ignores preloads; measure a copy without the extra rights";
    if mode & 0o4000 != 0 && metadata.uid() != user {
        return Some(format!("it is setuid, {advice}"));
    }
    if mode & 0o2010 == 0o2010 && metadata.gid() != group {
        return Some(format!("it is setgid, {advice}"));
    }
    if user != 0 && kernel::has_capabilities(path) {
        return Some(format!("it carries file capabilities, {advice} (`cp` drops them)"));
    }
    None
}

#[cfg(test)]
mod tests;
