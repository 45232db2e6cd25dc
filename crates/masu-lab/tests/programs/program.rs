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
use serde::Deserialize;
use tempfile::TempDir;

use crate::{library, rust, soak, text};

/// One comparison at a time: the lab takes other children of this process for leftovers of a run.
static TURN: Mutex<()> = Mutex::new(());

/// Runs the program in an environment of only the variables before it, with its streams in files.
const START: &str = "exec env -i ${LD_PRELOAD:+\"LD_PRELOAD=$LD_PRELOAD\"} \"$@\" \
                     <../stdin >../stdout 2>../stderr";

/// The search path of Debian's programs, without a developer's own.
const SEARCH_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// The folder of the programs' inputs.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/scripts");

/// The name of the folder in which a program runs.
const FOLDER: &str = "work";

/// Every program of the matrix ends within seconds; a tree that runs longer than this hangs.
const LIMIT: Duration = Duration::from_secs(900);

#[derive(Deserialize)]
struct Matrix {
    program: Vec<Program>,
}

/// A program, its inputs, and the expectations of its runs: an entry of `programs.toml`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Program {
    pub(crate) name: String,
    /// Whether the program runs in a long run alone.
    pub(crate) is_long: bool,
    /// The program's file, or its name in the search path. Here and below `{cargo}` and `{rustc}` are the tests' own.
    program: String,
    package: String,
    /// A script for bash in the place of a program; the script ends at the first command that fails.
    script: String,
    arguments: Vec<String>,
    /// The environment has few other variables, so that output is repeatable.
    variables: BTreeMap<String, String>,
    input: Contents,
    /// Files that lie in the folder before each run.
    files: BTreeMap<String, Contents>,
    /// The number of folders in the folder `tree`, in a short and in a long run; none without a tree.
    tree: Option<[usize; 2]>,
    /// The value of `{size}`, in a short and in a long run.
    size: [usize; 2],
    /// The C source of the program `program`, and the compiler's option.
    compiles: Vec<String>,
    /// Whether the folder `toolchain` has Rust's compiler, with its own malloc hidden.
    hides_malloc: bool,
    /// Other programs of the process tree, each with its Debian package: the library must have served them too.
    runs: BTreeMap<String, String>,
    /// Executables that another one brings along, which the library must have served.
    serves: Vec<String>,
    /// Executables of the process tree that the library need not serve, and the reasons.
    excuses: BTreeMap<String, String>,
    /// Paths in the folder that differ between any two runs.
    ignores: Vec<String>,
    /// A text that the output must contain, so that two runs which both did nothing are no success.
    prints: String,
    /// Files that must exist afterwards, and not be empty.
    produces: Vec<String>,
    /// Whether the standard error output holds times or process numbers and is not compared.
    stderr_varies: bool,
    /// Whether the test itself brings the proof that the library served the program, because its guest cannot be seen
    /// from outside. The rest of the process tree is checked as usual.
    pub(crate) is_proven_otherwise: bool,
    /// The seconds that a run may take, where minutes are too long.
    limit_s: Option<u64>,
    /// A defect that the test must find, as a part of its message.
    fails: String,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Contents {
    Text(String),
    /// A file of `scripts/`.
    File(PathBuf),
    /// Lines of words: their number in a short and in a long run.
    Lines([usize; 2]),
}

impl Default for Contents {
    fn default() -> Contents {
        Contents::Text(String::new())
    }
}

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

/// All entries of `programs.toml`.
pub(crate) fn all() -> Vec<Program> {
    let matrix: Matrix =
        toml::from_str(include_str!("programs.toml")).expect("the matrix is whole");
    matrix.program
}

pub(crate) fn named(name: &str) -> Program {
    all().into_iter().find(|program| program.name == name).expect("it is in the matrix")
}

/// The number for the length of this run.
fn sized(numbers: [usize; 2]) -> usize {
    numbers[usize::from(soak())]
}

impl Program {
    /// Tests the program: the two runs are the same, or the defect is found.
    pub(crate) fn test(&self) -> Result<(), String> {
        match self.same_under_masu() {
            Ok(_) if self.fails.is_empty() => Ok(()),
            Err(error) if !self.fails.is_empty() && error.contains(&self.fails) => Ok(()),
            Ok(_) => Err(format!("this was not found: {}", self.fails)),
            Err(error) => Err(error),
        }
    }

    /// The executable, and its arguments.
    fn words(&self) -> Result<(PathBuf, Vec<String>), String> {
        if self.script.is_empty() {
            let arguments = self.arguments.iter().map(|word| self.filled(word)).collect();
            return Ok((installed(&self.filled(&self.program), &self.package)?, arguments));
        }
        let options = ["-euo", "pipefail", "-c"].map(str::to_owned);
        let arguments = options.into_iter().chain([self.filled(&self.script)]).collect();
        Ok((installed("bash", "bash")?, arguments))
    }

    fn filled(&self, text: &str) -> String {
        let text =
            text.replace("{cargo}", env!("CARGO")).replace("{size}", &sized(self.size).to_string());
        text.replace("{rustc}", &rust::compiler().to_string_lossy())
    }

    fn contents(&self, contents: &Contents) -> String {
        match contents {
            Contents::Text(text) => self.filled(text),
            Contents::File(path) => {
                let path = Path::new(SCRIPTS).join(path);
                let read = fs::read_to_string(&path);
                self.filled(&read.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
            }
            Contents::Lines(counts) => text::lines(sized(*counts)),
        }
    }

    fn fill(&self, folder: &Path) {
        for (name, contents) in &self.files {
            fs::write(folder.join(name), self.contents(contents)).expect("write an input");
        }
        self.tree.iter().for_each(|counts| text::tree(folder, sized(*counts)));
        if let [source, option] = &self.compiles[..] {
            compile(folder, source, option);
        }
        if self.hides_malloc {
            rust::hide_malloc(folder);
        }
    }

    /// The executables that the library must have served, as `/proc/PID/exe` shows them.
    fn served(&self, path: &Path) -> Result<Vec<String>, String> {
        let mut served: Vec<String> = self.serves.iter().map(|name| real_name(name)).collect();
        for (name, package) in &self.runs {
            served.push(real_name(&installed(name, package)?.to_string_lossy()));
        }
        if !self.is_proven_otherwise {
            served.push(real_name(&path.to_string_lossy()));
        }
        Ok(served)
    }

    /// Runs the program without and with the library: the same exit status, output and files, and the library mapped and at
    /// work in every executable that is not excused. Returns what the run with the library left, until it is dropped.
    pub(crate) fn same_under_masu(&self) -> Result<Left, String> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, arguments) = self.words()?;
        let served = self.served(&path)?;
        let folder = TempDir::with_prefix("masu-programs-").expect("make a folder");
        let words: Vec<OsString> =
            std::iter::once(path.into()).chain(arguments.into_iter().map(OsString::from)).collect();
        let plain = self.run(folder.path(), &words, "system")?;
        self.check_reference(folder.path(), &plain)?;
        let without = folder.path().join("without");
        fs::rename(folder.path().join(FOLDER), &without).expect("the folder is ours");
        let masu = self.run(folder.path(), &words, "masu")?;
        let mut faults = self.differences(&without, &folder.path().join(FOLDER));
        if plain.ending != masu.ending {
            faults.push(format!("{} where it {} without", masu.ending, plain.ending));
        }
        faults.extend(first_difference("stdout", &plain.stdout, &masu.stdout));
        if !self.stderr_varies {
            faults.extend(first_difference("stderr", &plain.stderr, &masu.stderr));
        }
        faults.extend(self.unproven(&served, &masu.evidence));
        if faults.is_empty() {
            return Ok(Left { base: folder });
        }
        let (faults, stderr) = (faults.join("\n  "), end_of(&masu.stderr));
        Err(format!("under libmasu:\n  {faults}\nits stderr was:\n{stderr}"))
    }

    /// One run under a malloc in a folder made for it.
    fn run(&self, base: &Path, command: &[OsString], malloc: &str) -> Result<Run, String> {
        let [folder, home, temporary] = [FOLDER, "home", "tmp"].map(|name| base.join(name));
        for folder in [&folder, &home, &temporary] {
            if folder.exists() {
                fs::remove_dir_all(folder).expect("clear a folder");
            }
            fs::create_dir(folder).expect("make a folder");
        }
        self.fill(&folder);
        fs::write(base.join("stdin"), self.contents(&self.input)).expect("write the input");
        let (home, temporary) = (home.to_string_lossy(), temporary.to_string_lossy());
        let usual = [("PATH", SEARCH_PATH), ("LANG", "C.UTF-8"), ("TZ", "UTC")];
        let variables = usual.into_iter().chain([("HOME", &*home), ("TMPDIR", &*temporary)]);
        let own =
            self.variables.iter().map(|(name, value)| format!("{name}={}", self.filled(value)));
        let set = variables.map(|(name, value)| format!("{name}={value}")).chain(own);
        let mut words: Vec<OsString> = ["sh", "-c", START, "sh"].map(OsString::from).into();
        words.extend(set.map(OsString::from));
        words.extend_from_slice(command);
        let mut workload = Workload::new(words, Input::Empty).expect("there is a shell");
        workload.folder = Some(folder.clone());
        let limit = self.limit_s.map_or(LIMIT, Duration::from_secs);
        let limits = Limits { time: Some(limit), ..Limits::default() };
        let variant = variant(malloc, &workload);
        let made = verify::verify(&workload, &variant, &limits.into(), &Stop::never());
        let (run, evidence) = made.map_err(|error| format!("under {malloc}: {error}"))?;
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|name| fs::read(base.join(name)).unwrap_or_default());
        if run.ending == Ending::TimedOut {
            let (ending, said) = (&run.ending, end_of(&stderr));
            return Err(format!("under {malloc} it {ending}; its stderr was:\n{said}"));
        }
        Ok(Run { stdout, stderr, ending: run.ending, evidence })
    }

    /// Checks that the run without the library did the work of the test, without the library.
    fn check_reference(&self, base: &Path, plain: &Run) -> Result<(), String> {
        let [stdout, stderr] = [&plain.stdout, &plain.stderr].map(|it| String::from_utf8_lossy(it));
        let is_there = |path: &&String| {
            let produced = fs::metadata(base.join(FOLDER).join(path));
            produced.is_ok_and(|file| file.len() > 0)
        };
        let absent = self.produces.iter().find(|path| !is_there(path));
        let fault = if plain.ending != Ending::Exited(0) {
            "it fails by itself".to_owned()
        } else if !stdout.contains(&self.prints) {
            format!("it does not print `{}`:\n{stdout}", self.prints)
        } else if let Some(path) = absent {
            format!("it does not produce {path}")
        } else if stdout.is_empty() && self.produces.is_empty() {
            "it shows nothing that could differ".to_owned()
        } else {
            return Ok(());
        };
        Err(format!("{fault}; its stderr was:\n{stderr}"))
    }

    /// The differences between the files of two folders, a line each.
    fn differences(&self, one: &Path, two: &Path) -> Vec<String> {
        // The run of another test takes any other child of this process for its own.
        let _alone = execute::alone();
        let mut diff = Command::new("diff");
        let output = diff.args(["-rq", "--no-dereference"]).args([one, two]).output();
        let output = output.expect("this test runs `diff`: apt-get install diffutils");
        let is_ignored = |line: &&str| self.ignores.iter().any(|path| line.contains(path));
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines().filter(|line| !is_ignored(line)).map(str::to_owned).collect()
    }

    /// The executables for which the proof fails that the library was mapped and served allocations.
    fn unproven(&self, served: &[String], evidence: &Evidence) -> Vec<String> {
        // The entries look like `sed`, `sed (3 times)`, `ls: it is linked statically`.
        let is_of = |entry: &str, name: &str| {
            let rest = entry.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
        };
        let is_served = |name: &&String| evidence.served.iter().any(|entry| is_of(entry, name));
        let not_served = served.iter().filter(|name| !is_served(name));
        let not_served =
            not_served.map(|name| format!("no allocation of `{name}` was served by libmasu"));
        let is_excused =
            |entry: &&String| self.excuses.keys().any(|name| is_of(entry, &real_name(name)));
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
fn installed(name: &str, package: &str) -> Result<PathBuf, String> {
    let missing =
        || format!("this test runs `{name}`, which is missing: apt-get install {package}");
    find(name).ok_or_else(missing)
}

/// Compiles a source in `scripts/` into the executable `program` in `folder`.
fn compile(folder: &Path, source: &str, option: &str) {
    let _alone = execute::alone();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O0", "-fno-builtin", option, "-o"]).arg(folder.join("program"));
    let compiled = gcc.arg(Path::new(SCRIPTS).join(source)).status();
    let compiled = compiled.expect("run gcc: apt-get install gcc libc6-dev");
    assert!(compiled.success(), "the program does not compile");
}

fn find(name: &str) -> Option<PathBuf> {
    let mut folders = SEARCH_PATH.split(':').map(|folder| Path::new(folder).join(name));
    folders.find(|path| path.is_file())
}

/// The file name that `/proc/PID/exe` will show for a program: the target of its links, if it is found.
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
