//! A real program, run without and with `libmasu.so` preloaded, and the comparison of the two runs.
//!
//! Relies on the lab for the proof that the library was at work. Both runs happen in the *same* folder, made for
//! each, so that paths which programs write into their output (debug information, logs, messages) are equal and
//! everything else can be compared byte for byte.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use masu_lab::{Catalogue, Ending, Evidence, Input, Limits, Places, Stop, Variant, Workload};
use masu_lab::{execute, verify};
use tempfile::TempDir;

use crate::library;

/// One comparison at a time: the lab takes other children of this process for what a run left behind.
static TURN: Mutex<()> = Mutex::new(());

/// Runs what follows in the environment that stands before it, with its streams in files.
const START: &str = "exec env -i ${LD_PRELOAD:+\"LD_PRELOAD=$LD_PRELOAD\"} \"$@\" \
                     <../stdin >../stdout 2>../stderr";

/// The search path of Debian's programs, without a developer's own.
const SEARCH_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// The name of the folder in which a program runs.
const FOLDER: &str = "work";

/// Every program of the matrix ends within seconds; a tree that runs this long hangs.
const LIMIT: Duration = Duration::from_secs(900);

/// A program, its inputs, and the expectations of its runs.
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<String, OsString>,
    input: Vec<u8>,
    prepare: Vec<Preparation>,
    served: Vec<String>,
    excused: Vec<(String, &'static str)>,
    ignored: Vec<&'static str>,
    prints: Option<String>,
    produces: Vec<&'static str>,
    stderr_varies: bool,
    limit: Duration,
}

/// A preparation of the folder before a run.
type Preparation = Box<dyn Fn(&Path)>;

struct Run {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    ending: Ending,
    evidence: Evidence,
}

/// The folder of a run, as the program left it.
pub(crate) struct Left {
    base: TempDir,
}

impl Left {
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.base.path().join(FOLDER).join(name);
        fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }
}

impl Program {
    /// The program `name` of the Debian package `package`.
    pub(crate) fn new(name: &str, package: &str) -> Program {
        Program::at(installed(name, package))
    }

    /// A script for bash that ends at the first command that fails; `$0` is its argument.
    pub(crate) fn script(script: &str, argument: &str) -> Program {
        Program::new("bash", "bash").arguments(["-euo", "pipefail", "-c", script, argument])
    }

    /// The program in a file that need not come from a package.
    pub(crate) fn at(path: PathBuf) -> Program {
        let program = Program {
            path,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            input: Vec::new(),
            prepare: Vec::new(),
            served: Vec::new(),
            excused: Vec::new(),
            ignored: Vec::new(),
            prints: None,
            produces: Vec::new(),
            stderr_varies: false,
            limit: LIMIT,
        };
        let path = program.path.clone();
        program.serves(path.to_str().expect("programs have plain names"))
    }

    pub(crate) fn arguments<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.arguments.extend(arguments.map(OsString::from));
        self
    }

    /// Sets an environment variable; there are few others, so that output is repeatable.
    pub(crate) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// What the program reads from its standard input; nothing, where this is not called.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Puts a file into the folder before each run.
    pub(crate) fn file(self, name: &'static str, contents: impl Into<Vec<u8>>) -> Self {
        let contents = contents.into();
        self.prepare(move |folder| fs::write(folder.join(name), &contents).expect("write an input"))
    }

    /// Does something in the folder before each run.
    pub(crate) fn prepare(mut self, prepare: impl Fn(&Path) + 'static) -> Self {
        self.prepare.push(Box::new(prepare));
        self
    }

    /// Names another program of the process tree, with its Debian package: the library must have served it too.
    pub(crate) fn runs(self, name: &str, package: &str) -> Self {
        installed(name, package);
        self.serves(name)
    }

    /// Names an executable that another one brings along, and that the library must have served.
    pub(crate) fn serves(mut self, executable: &str) -> Self {
        self.served.push(real_name(executable));
        self
    }

    /// Names an executable of the process tree that the library need not serve, and why.
    pub(crate) fn excuses(mut self, executable: &str, reason: &'static str) -> Self {
        self.excused.push((real_name(executable), reason));
        self
    }

    /// Names a path in the folder that differs between any two runs.
    pub(crate) fn ignores(mut self, path: &'static str) -> Self {
        self.ignored.push(path);
        self
    }

    /// What the output must contain, so that two runs which both did nothing are no success.
    pub(crate) fn prints(mut self, text: impl Into<String>) -> Self {
        self.prints = Some(text.into());
        self
    }

    /// A file that must be there afterwards, and not be empty.
    pub(crate) fn produces(mut self, path: &'static str) -> Self {
        self.produces.push(path);
        self
    }

    /// The standard error output holds times or process numbers and is not compared.
    pub(crate) fn stderr_varies(mut self) -> Self {
        self.stderr_varies = true;
        self
    }

    /// The test itself brings the proof that the library served the program: it is a script, or
    /// its guest cannot be seen from outside. The rest of the process tree is seen as ever.
    pub(crate) fn proven_otherwise(mut self) -> Self {
        self.served.clear();
        self
    }

    /// How long a run may take, where minutes are too long.
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the program without and with the library: the same exit status, output and files, and
    /// the library mapped and at work in every executable that is not excused. Returns what
    /// the run with the library left, until it is dropped.
    pub(crate) fn same_under_masu(&self) -> Left {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = TempDir::with_prefix("masu-programs-").expect("make a folder");
        let plain = self.run(folder.path(), "system");
        self.check_reference(folder.path(), &plain);
        let without = folder.path().join("without");
        fs::rename(folder.path().join(FOLDER), &without).expect("the folder is ours");
        let masu = self.run(folder.path(), "masu");
        let mut faults = self.differences(&without, &folder.path().join(FOLDER));
        if plain.ending != masu.ending {
            faults.push(format!("{} where it {} without", masu.ending, plain.ending));
        }
        faults.extend(first_difference("stdout", &plain.stdout, &masu.stdout));
        if !self.stderr_varies {
            faults.extend(first_difference("stderr", &plain.stderr, &masu.stderr));
        }
        faults.extend(self.unproven(&masu.evidence));
        assert!(
            faults.is_empty(),
            "{} under libmasu:\n  {}\nits stderr was:\n{}",
            self.path.display(),
            faults.join("\n  "),
            end_of(&masu.stderr),
        );
        Left { base: folder }
    }

    /// One run under a malloc in a folder made for it.
    fn run(&self, base: &Path, malloc: &str) -> Run {
        let [folder, home, temporary] = [FOLDER, "home", "tmp"].map(|name| base.join(name));
        for folder in [&folder, &home, &temporary] {
            if folder.exists() {
                fs::remove_dir_all(folder).expect("clear a folder");
            }
            fs::create_dir(folder).expect("make a folder");
        }
        self.prepare.iter().for_each(|prepare| prepare(&folder));
        fs::write(base.join("stdin"), &self.input).expect("write the input");
        let set = |name: &str, value: &OsString| {
            let mut variable = OsString::from(format!("{name}="));
            variable.push(value);
            variable
        };
        let usual = [("PATH", SEARCH_PATH), ("LANG", "C.UTF-8"), ("TZ", "UTC")];
        let usual = usual.map(|(name, value)| set(name, &value.into()));
        let folders = [("HOME", home), ("TMPDIR", temporary)];
        let folders = folders.map(|(name, folder)| set(name, &folder.into()));
        let mut words: Vec<OsString> = ["sh", "-c", START, "sh"].map(OsString::from).into();
        words.extend(usual.into_iter().chain(folders));
        words.extend(self.environment.iter().map(|(name, value)| set(name, value)));
        words.push(self.path.clone().into());
        words.extend(self.arguments.iter().cloned());
        let mut workload = Workload::new(words, Input::Empty).expect("there is a shell");
        workload.folder = Some(folder.clone());
        let limits = Limits { time: Some(self.limit), ..Limits::default() };
        let variant = variant(malloc, &workload);
        let program = self.path.display();
        let (run, evidence) = if variant.library.is_some() {
            verify::verify(&workload, &variant, &limits, &Stop::never())
        } else {
            let run = execute::execute(&workload, &variant, &limits, &Stop::never());
            run.map(|run| (run, Evidence::default()))
        }
        .unwrap_or_else(|error| panic!("{program} under {malloc}: {error}"));
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|name| fs::read(base.join(name)).unwrap_or_default());
        let text = end_of(&stderr);
        assert_ne!(
            run.ending,
            Ending::TimedOut,
            "{program} under {malloc}; its stderr was:\n{text}"
        );
        Run { stdout, stderr, ending: run.ending, evidence }
    }

    /// The run without the library must have done what the test is about, without the library.
    fn check_reference(&self, base: &Path, plain: &Run) {
        let program = self.path.display();
        let stderr = end_of(&plain.stderr);
        assert_eq!(plain.ending, Ending::Exited(0), "{program} fails by itself:\n{stderr}");
        if let Some(text) = &self.prints {
            let stdout = String::from_utf8_lossy(&plain.stdout);
            assert!(
                stdout.contains(text),
                "{program} does not print `{text}`:\n{stdout}\n{stderr}"
            );
        }
        for path in &self.produces {
            let produced = fs::metadata(base.join(FOLDER).join(path));
            let is_there = produced.is_ok_and(|file| file.len() > 0);
            assert!(is_there, "{program} does not produce {path}:\n{stderr}");
        }
        let nothing = plain.stdout.is_empty() && self.produces.is_empty();
        assert!(!nothing, "{program} shows nothing that could differ");
    }

    /// In what the files of two folders differ, a line each.
    fn differences(&self, one: &Path, two: &Path) -> Vec<String> {
        let mut diff = Command::new("diff");
        let output = diff.args(["-rq", "--no-dereference"]).args([one, two]).output();
        let output = output.expect("this test runs `diff`: apt-get install diffutils");
        let is_ignored = |line: &&str| self.ignored.iter().any(|path| line.contains(path));
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines().filter(|line| !is_ignored(line)).map(str::to_owned).collect()
    }

    /// Where the proof fails that the library was mapped and served allocations.
    fn unproven(&self, evidence: &Evidence) -> Vec<String> {
        // `sed`, `sed (3 times)`, `ls: it is linked statically`.
        let is_of = |entry: &str, name: &str| {
            let rest = entry.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
        };
        let is_served = |name: &&String| evidence.served.iter().any(|entry| is_of(entry, name));
        let not_served = self.served.iter().filter(|name| !is_served(name));
        let not_served =
            not_served.map(|name| format!("no allocation of `{name}` was served by libmasu"));
        let is_excused = |entry: &&String| self.excused.iter().any(|(name, _)| is_of(entry, name));
        let not_at_work = evidence.not_served.iter().filter(|entry| !is_excused(entry));
        let not_at_work = not_at_work.map(|entry| format!("libmasu was not at work in {entry}"));
        not_served.chain(not_at_work).collect()
    }
}

/// The system's malloc, or the library.
fn variant(malloc: &str, workload: &Workload) -> Variant {
    let masu_glibc = Some(library::path().canonicalize().expect("find libmasu.so"));
    let catalogue = Catalogue::find(&Places { masu_glibc, ..Places::default() });
    let spec = malloc.parse().expect("a malloc's name");
    catalogue.resolve(&spec, &workload.program).expect("the shell takes a preload")
}

/// The file of a program that a test needs.
fn installed(name: &str, package: &str) -> PathBuf {
    find(name).unwrap_or_else(|| {
        panic!("this test runs `{name}`, which is missing: apt-get install {package}")
    })
}

/// The file of a program that is found by its name.
fn find(name: &str) -> Option<PathBuf> {
    let mut folders = SEARCH_PATH.split(':').map(|folder| Path::new(folder).join(name));
    folders.find(|path| path.is_file())
}

/// The file name that `/proc/PID/exe` will show for a program: where links lead, if it is found.
fn real_name(program: &str) -> String {
    let path = find(program).unwrap_or_else(|| PathBuf::from(program));
    let real = fs::canonicalize(&path).unwrap_or(path);
    real.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The first line in which two outputs differ.
fn first_difference(what: &str, plain: &[u8], masu: &[u8]) -> Option<String> {
    if plain == masu {
        return None;
    }
    let [plain, masu] = [plain, masu].map(String::from_utf8_lossy);
    let same = plain.lines().zip(masu.lines()).take_while(|(plain, masu)| plain == masu).count();
    Some(format!(
        "{what} differs in line {}: `{}` in place of `{}`",
        same + 1,
        masu.lines().nth(same).unwrap_or("(end)"),
        plain.lines().nth(same).unwrap_or("(end)"),
    ))
}

/// The last lines of an output, for a message.
fn end_of(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let mut lines: Vec<_> = text.lines().rev().take(20).collect();
    lines.reverse();
    lines.join("\n")
}
