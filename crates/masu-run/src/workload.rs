//! A workload: a command and its standard input.
//!
//! [`Input::own`] keeps standard input in an unlinked temporary file (or uses the file it already is); each run opens
//! that file again and starts at the same byte.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use crate::error::Doing;
use crate::{Error, Program};

/// A command, looked up on this machine, with its input.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The command and its arguments as given.
    pub arguments: Vec<OsString>,
    pub program: Program,
    /// The standard input of every run.
    pub input: Input,
    /// The folder runs start in; none for this process's own.
    pub folder: Option<PathBuf>,
    /// True if masu places the blocks of each run at random.
    pub shuffles_heap: bool,
}

impl Workload {
    /// Looks up the first of `arguments` and pairs the command with its input.
    pub fn new<A: Into<OsString>>(
        arguments: impl IntoIterator<Item = A>,
        input: Input,
    ) -> Result<Workload, Error> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let program = Program::find(arguments.first().map_or(OsStr::new(""), OsString::as_os_str))?;
        Ok(Workload { arguments, program, input, folder: None, shuffles_heap: false })
    }
}

/// The standard input of a run; clones share the file.
#[derive(Debug, Clone)]
pub enum Input {
    /// Nothing: the run meets the end of its input at once.
    Empty,
    /// The bytes of a file from `start` on, the same for every run.
    File {
        /// The open file; it may have no name any more.
        file: Arc<File>,
        /// The byte at which each run starts to read.
        start: u64,
    },
}

impl Input {
    /// This process's standard input, kept so that every run can read it from its start.
    ///
    /// A terminal counts as empty: nobody types the same thing forty times. So is `/dev/null`, and
    /// takes no temporary file. A regular file is used
    /// where it lies, from its current position; anything else is read to its end into an unlinked
    /// file in the temporary folder (`TMPDIR`), which must have room for it.
    pub fn own() -> Result<Input, Error> {
        let stdin = io::stdin();
        // A closed one was opened at the start of this process by the standard library, as `/dev/null`.
        if stdin.is_terminal() {
            return Ok(Input::Empty);
        }
        let descriptor = stdin.as_fd().try_clone_to_owned().doing(|| "reading standard input")?;
        Input::keep(File::from(descriptor))
    }

    /// Keeps the rest of `source`, as [`own`](Self::own) does for standard input.
    pub fn keep(mut source: File) -> Result<Input, Error> {
        if is_null_device(&source) {
            return Ok(Input::Empty);
        }
        let kind = source.metadata().doing(|| "looking at standard input")?.file_type();
        if kind.is_dir() || kind.is_char_device() {
            let reason = "standard input is a folder, or a device that may never end: redirect from a file, \
                          or from /dev/null if there is none";
            return Err(Error::Request(reason.to_owned()));
        }
        if kind.is_file()
            && let Ok(start) = source.stream_position()
            && open_again(&source, start).is_ok()
        {
            return Ok(Input::File { file: Arc::new(source), start });
        }
        Input::spool(source, unlinked_file()?)
    }

    /// Copies the rest of `source` into `file`, which is empty.
    fn spool(mut source: File, mut file: File) -> Result<Input, Error> {
        io::copy(&mut source, &mut file).doing(|| {
            format!(
                "keeping standard input in the temporary folder {}, from which every run reads it \
                 (make room there, set TMPDIR to a folder that has it, or redirect from a file, \
                 which is read where it lies)",
                std::env::temp_dir().display()
            )
        })?;
        Ok(Input::File { file: Arc::new(file), start: 0 })
    }

    /// The standard input of a child. Each call opens the file again, because a duplicated descriptor would share its
    /// position with every other run.
    pub(crate) fn open(&self) -> Result<Stdio, Error> {
        Ok(self.reader()?.map_or_else(Stdio::null, Stdio::from))
    }

    /// The input of a run, from its start; none for nothing.
    pub fn reader(&self) -> Result<Option<File>, Error> {
        let Input::File { file, start } = self else { return Ok(None) };
        open_again(file, *start).map(Some)
    }
}

/// The same file from `start` on, at a position of its own.
fn open_again(file: &File, start: u64) -> Result<File, Error> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut again = File::open(&path).doing(|| "opening the kept standard input again")?;
    again.seek(SeekFrom::Start(start)).doing(|| "rewinding the kept standard input")?;
    Ok(again)
}

/// True if this is `/dev/null`, under any name.
fn is_null_device(file: &File) -> bool {
    let (Ok(one), Ok(null)) = (file.metadata(), std::fs::metadata("/dev/null")) else {
        return false;
    };
    one.file_type().is_char_device() && one.rdev() == null.rdev()
}

/// A new file in the temporary folder that has no name and that only this user can open: it may hold private input.
pub fn unlinked_file() -> Result<File, Error> {
    tempfile::tempfile().doing(|| {
        let folder = std::env::temp_dir();
        format!(
            "creating a file in {} (set TMPDIR to a folder that can be written)",
            folder.display()
        )
    })
}

/// `word` as a shell would have to read it. Characters that no line may hold are escaped, as bash, zsh and the newest
/// POSIX shells read it: `$'a\nb'`.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+{}".contains(c);
    if word.contains(char::is_control) {
        let mut bytes = [0; 4];
        let spelt = |c: char| match c {
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            '\'' | '\\' => format!("\\{c}"),
            c if c.is_control() => {
                let bytes = c.encode_utf8(&mut bytes).bytes();
                bytes.map(|byte| format!("\\{byte:03o}")).collect()
            }
            c => c.to_string(),
        };
        format!("$'{}'", word.chars().map(spelt).collect::<String>())
    } else if !word.is_empty() && word.chars().all(is_plain) && !is_expanded(word) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Whether shells other than POSIX's make several words of one with these braces: `{a,b}`, `{1..3}`.
fn is_expanded(word: &str) -> bool {
    let inside = word.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    inside.into_iter().any(|text| text.contains(',') || text.contains(".."))
}

/// The most lines of a page for the terminal that a command may fill.
pub const COMMAND_LINES: usize = 4;

/// `command` as a shell would take it, cut between words to about this many `columns`.
pub fn shortened(command: &[String], columns: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for word in command {
        let word = quoted(word);
        let length = word.chars().count();
        if !line.is_empty() {
            line.push(' ');
        }
        if columns < used + length && !line.is_empty() {
            line.push('…');
            break;
        }
        line.push_str(&word);
        used += length + 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_cut_between_its_words() {
        let words = ["prog", "a", "b c", "d"].map(str::to_owned);
        assert_eq!(shortened(&words, 80), "prog a 'b c' d");
        assert_eq!(shortened(&words, 8), "prog a …");
    }

    #[test]
    fn input_that_does_not_fit_is_reported_with_the_place_and_a_way_out() {
        let source = File::open("/proc/self/maps").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let message = Input::spool(source, full).unwrap_err().to_string();
        for words in ["standard input", "TMPDIR", "redirect from a file", "No space left"] {
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_null_device_is_empty_and_needs_no_temporary_file() {
        let input = Input::keep(File::open("/dev/null").unwrap()).unwrap();
        assert!(matches!(input, Input::Empty));
        for endless in ["/dev/zero", "/"] {
            let error = Input::keep(File::open(endless).unwrap()).unwrap_err().to_string();
            assert!(error.contains("/dev/null"), "{error}");
        }
    }

    #[test]
    fn a_command_reads_back_as_a_shell_reads_it() {
        for (word, text) in [
            ("sort", "sort"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's", "'it'\\''s'"),
            ("{port},{n}/..", "{port},{n}/.."),
            ("x{a,b}", "'x{a,b}'"),
            ("{1..3}", "'{1..3}'"),
            ("a\nb\t'\\\u{1b}\u{9b}9", "$'a\\nb\\t\\'\\\\\\033\\302\\2339'"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }
}
