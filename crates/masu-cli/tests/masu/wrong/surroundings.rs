//! A folder with everything that may be wrong with a program, a library, a suite or a results file, and a search for
//! the remains of a `masu` that ran there.
//!
//! Relies on a variable in the environment, which every process that masu starts inherits: the test finds the processes
//! by it in `/proc`, whatever their parent is by then.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::programs::{setuid_program, static_program};

/// The variable by which processes are known.
const MARK: &str = "MASU_TEST_MARK";

/// The time after which a killed process counts as left, longer than a busy machine takes.
const GONE_WITHIN: Duration = Duration::from_secs(300);

const SUITE: &str = "[[workload]]\nname = \"w\"\ncommand = [\"true\"]\n";

pub(super) struct Surroundings {
    /// The folder around masu's runs; its subfolders are the working, the temporary and the home folder.
    folder: TempDir,
    mark: String,
}

impl Surroundings {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().file_name().unwrap().to_string_lossy().into_owned();
        let this = Self { folder, mark };
        for name in ["tmp", "home", "work"] {
            fs::create_dir(this.folder.path().join(name)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(this.path(name), text).unwrap();
        write("text", "hello\n");
        write("words", "b\na\n");
        write("empty", "");
        fs::write(this.path("binary"), [0x7f, 0xff, 0xfe]).unwrap();
        write("good.toml", &format!("[values]\nsize = \"1\"\n{SUITE}input = \"words{{size}}\"\n"));
        write("unknown-key.toml", &format!("rounds = 3\n{SUITE}comand = \"true\"\n"));
        write("wrong-value.toml", &format!("rounds = \"many\"\n{SUITE}"));
        write("earlier.jsonl", "{\"record\":\"header\",\"schema_version\":1}\n");
        write("later.jsonl", "{\"record\":\"header\",\"schema_version\":99}\n");
        this
    }

    /// The programs and libraries that take a compiler to make.
    pub(super) fn with_programs(self) -> Self {
        static_program(&self.folder.path().join("work"));
        let setuid = setuid_program(&self.folder.path().join("work"));
        if setuid != self.path("setuid") {
            std::os::unix::fs::symlink(setuid, self.path("setuid")).unwrap();
        }
        self.compile("sanitized", "int main(void) { return 0; }", &["-fsanitize=address"]);
        let aborting = "#include <stdlib.h>\nvoid *malloc(size_t size) { (void)size; abort(); }";
        self.compile("crashing.so", aborting, &["-shared", "-fPIC"]);
        let line = "compare -n 2 -a system --json other.jsonl -- true";
        let arguments: Vec<&str> = line.split(' ').collect();
        assert_eq!(self.masu(&arguments).output().unwrap().status.code(), Some(0));
        self
    }

    fn compile(&self, name: &str, source: &str, options: &[&str]) {
        let file = self.path("source.c");
        fs::write(&file, source).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(options).arg("-o").arg(self.path(name)).arg(&file);
        assert!(gcc.status().expect("this test needs gcc").success());
        fs::remove_file(file).unwrap();
    }

    /// A file in the folder that masu runs in.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// The variable by which processes are known, and its value.
    pub(super) fn mark(&self) -> (&'static str, &str) {
        (MARK, &self.mark)
    }

    /// `masu` with nothing to read.
    pub(super) fn masu(&self, arguments: &[&str]) -> Command {
        let mut command = crate::masu(arguments);
        self.around(&mut command);
        command
    }

    /// Bash, which can close streams and report the exit status of each program of a pipe.
    pub(super) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .env("NO_COLOR", "1")
            .env_remove("LD_PRELOAD")
            .env("COLUMNS", "80");
        command.env_remove("GLIBC_TUNABLES");
        self.around(&mut command);
        command
    }

    fn around(&self, command: &mut Command) {
        let folder = self.folder.path();
        command.current_dir(folder.join("work")).env(MARK, &self.mark).stdin(Stdio::null());
        command.env("TMPDIR", folder.join("tmp")).env("HOME", folder.join("home"));
        // Named, for root has a cache of its own outside HOME.
        command.env("XDG_CACHE_HOME", folder.join("home/.cache")).env_remove("XDG_RUNTIME_DIR");
    }

    /// Gives `command` a process group, as a terminal does: a signal reaches masu and all that it runs.
    pub(super) fn in_a_group(&self, mut command: Command) -> Command {
        command.stderr(Stdio::piped()).process_group(0);
        command
    }

    /// Waits until `child` has written `text` into a file.
    pub(super) fn wait_for(&self, child: &mut Child, name: &str, text: &str) {
        while !fs::read_to_string(self.path(name)).is_ok_and(|content| content.contains(text)) {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The last message of masu, without the parts that differ from machine to machine.
    pub(super) fn message(&self, said: &str) -> String {
        assert!(!said.contains("panicked"), "{said}");
        let start = ["masu: ", "error: "].iter().find_map(|word| find_line(said, word));
        let message = &said[start.unwrap_or(0)..];
        let words = message.split(' ').map(|word| {
            let inner = word.trim_matches(|c: char| !c.is_ascii_digit());
            let is_pid = word.starts_with('(') && inner.len() > 1;
            if is_pid { word.replace(inner, "PID") } else { word.to_owned() }
        });
        let message = words.collect::<Vec<_>>().join(" ");
        let message = between(&message, "in use, most of it", "with ", " MiB");
        let message = between(&message, "over the memory limit", "with ", " MiB");
        between(&message, "no allocator", "found: ", " (a path")
    }

    /// Fails if the temporary folder holds anything, or a process still runs.
    pub(super) fn assert_nothing_is_left(&self, after: &str) {
        let files = fs::read_dir(self.folder.path().join("tmp")).unwrap().flatten();
        let names: Vec<_> = files.map(|file| file.file_name()).collect();
        assert!(names.is_empty(), "{after}: {names:?}");
        let begun = Instant::now();
        while !self.left_processes().is_empty() {
            assert!(begun.elapsed() < GONE_WITHIN, "{after}: {:?}", self.left_processes());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The command lines of processes that have the mark.
    pub(super) fn left_processes(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark);
        let has_mark = |process: &Path| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let command = |process: PathBuf| fs::read_to_string(process.join("cmdline"));
        processes
            .filter(|process| has_mark(process))
            .map(|process| command(process).unwrap_or_default().replace('\0', " "))
            .collect()
    }
}

/// The start of the first line that begins with `word`.
fn find_line(text: &str, word: &str) -> Option<usize> {
    if text.starts_with(word) { Some(0) } else { Some(text.find(&format!("\n{word}"))? + 1) }
}

fn between(text: &str, context: &str, from: &str, to: &str) -> String {
    let replaced = || {
        let at = text.find(context)?;
        let start = at + text[at..].find(from)? + from.len();
        let end = start + text[start..].find(to)?;
        Some(format!("{}…{}", &text[..start], &text[end..]))
    };
    replaced().unwrap_or_else(|| text.to_owned())
}
