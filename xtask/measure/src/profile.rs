//! `cargo xtask profile`: what a heap profile costs, as instructions of programs that take one over those of the same
//! programs that take none.
//!
//! It relies on cachegrind for the counts, on `libmasu.so` for programs that know nothing of masu, and on
//! `workloads/rust` for one whose allocator it is. Instructions, because they are the same on a busy machine; the
//! hard idea is that samples are drawn for each run, so that one count is no cost: each is counted several times,
//! and the page has the mean and how far the runs lie apart.

pub(crate) mod count;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use count::Cost;
use xtask::{machine, records, steps};

const USAGE: &str = "\
Usage: cargo xtask profile [--runs N] [--only NAME]... [--record]
  --runs N     runs of each program with a profile, and as many without (5)
  --only NAME  only this program; repeats
  --record     keep the table in docs/observing.md";

/// The page that has the table, from the workspace's root.
const PAGE: &str = "docs/observing.md";

/// A program that is counted.
struct Program {
    name: &'static str,
    /// Run in `workloads`. `{made}` is where its input was made, `{cargo}` the cargo that runs this chore, `{strings}`
    /// the program of `workloads/rust`.
    words: &'static [&'static str],
    /// What has it do the same work in each run.
    variables: &'static [(&'static str, &'static str)],
    /// What else a reader should know of it.
    about: &'static str,
}

/// In the order of the table. The inputs are those of `programs.toml`, some shorter; left out are z3, for its length,
/// g++, which has another process do the work, and redis-server, for how often it looks for requests is a matter of
/// time.
const PROGRAMS: [Program; 9] = [
    Program {
        name: "python",
        words: &["/usr/bin/python3", "programs/work.py", "4000"],
        variables: &[("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")],
        about: "each object is a request",
    },
    Program {
        name: "perl",
        words: &["perl", "programs/work.pl", "10000"],
        variables: &[("PERL_HASH_SEED", "0"), ("PERL_PERTURB_KEYS", "0")],
        about: "",
    },
    Program {
        name: "lua",
        words: &["lua5.4", "programs/work.lua", "4000"],
        variables: &[],
        about: "scatters its hashes by the time of day",
    },
    Program {
        name: "sqlite",
        words: &["sqlite3", ":memory:", ".read programs/work.sql"],
        variables: &[],
        about: "",
    },
    Program {
        name: "jq",
        words: &["jq", "-c", "-f", "programs/work.jq", "{made}/orders.json"],
        variables: &[],
        about: "",
    },
    Program {
        name: "xmllint",
        words: &["xmllint", "--xpath", "count(//line[number(count)>4])", "{made}/orders.xml"],
        variables: &[],
        about: "",
    },
    Program {
        name: "cargo",
        words: &["{cargo}", "tree", "--locked", "--offline"],
        variables: &[],
        about: "of this workspace; a Rust program under `libmasu.so`",
    },
    Program {
        name: "strings",
        words: &["{strings}", "60", "8"],
        variables: &[],
        about: "of `workloads/rust`, with the crate `masu`: a request every 460 instructions",
    },
    Program {
        name: "strings-live",
        words: &["{strings}", "60", "16"],
        variables: &[],
        about: "the same with twice as many strings that live",
    },
];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    runs: usize,
    only: Vec<String>,
    record: bool,
}

impl Request {
    fn parse(arguments: &[&str]) -> Result<Request> {
        let mut request = Request { runs: 5, only: Vec::new(), record: false };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let mut value = || {
                let value = rest.next().copied();
                value.with_context(|| format!("profile: {option} lacks its value\n{USAGE}"))
            };
            match *option {
                "--record" => request.record = true,
                "--only" => request.only.push(value()?.to_owned()),
                "--runs" => {
                    let runs = value()?.parse().ok().filter(|runs| (1..=1000).contains(runs));
                    request.runs = runs.context("profile: --runs takes a number from 1 to 1000")?;
                }
                _ => bail!("profile: `{option}` is no option\n{USAGE}"),
            }
        }
        let known = |name: &String| PROGRAMS.iter().any(|program| program.name == name);
        if let Some(name) = request.only.iter().find(|name| !known(name)) {
            let names = PROGRAMS.map(|program| program.name).join(", ");
            bail!("profile: no program is named `{name}`; there are {names}");
        }
        if request.record && !request.only.is_empty() {
            bail!("profile: a record holds every program; leave --record or --only out\n{USAGE}");
        }
        Ok(request)
    }

    fn wants(&self, program: &Program) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == program.name)
    }
}

/// Builds, counts, prints the table, and keeps it where that was asked for.
///
/// # Errors
///
/// When valgrind is missing and cannot be installed, a build fails, or a program does. A program that is missing is left
/// out and named.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let request = Request::parse(arguments)?;
    let places = steps::take("build", || Places::make(root))?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for program in PROGRAMS.iter().filter(|program| request.wants(program)) {
        if let Err(error) = provide(program) {
            println!("{} is left out: {error:#}", program.name);
            missing.push(program.name);
            continue;
        }
        let counted = || Cost::count(&places, program, request.runs);
        rows.push((program, steps::take(program.name, counted)?));
    }
    let head = table::head(records::commit(root).as_deref(), &count::version()?, request.runs);
    let text = format!("{head}\n\n{}", table::text(&rows, &missing));
    println!("\n{text}");
    if request.record {
        table::keep(&root.join(PAGE), &text)?;
        println!("record: {PAGE}");
    }
    Ok(())
}

/// Installs the program where it is missing; what is built here has no package.
fn provide(program: &Program) -> Result<()> {
    let need = machine::PROGRAMS.iter().find(|need| need.name() == program.words[0]);
    need.map_or(Ok(()), |need| machine::provide(&[need]))
}

/// Where what is run lies.
struct Places {
    workloads: PathBuf,
    made: PathBuf,
    library: PathBuf,
    strings: PathBuf,
    /// For the profiles that are taken.
    taken: PathBuf,
}

impl Places {
    fn make(root: &Path) -> Result<Places> {
        let python = machine::PROGRAMS.iter().filter(|need| need.name() == "/usr/bin/python3");
        let needs = machine::PATTERNS.iter().chain(python).chain([&machine::VALGRIND]);
        machine::provide(&needs.collect::<Vec<_>>())?;
        let target = steps::target_folder()?;
        let (made, folder) = (target.join("programs"), target.join("heap-profile"));
        steps::make(&root.join("workloads/programs"), &made)?;
        steps::succeed(&mut steps::cargo(root, &["build", "--release", "--package", "masu-abi"]))?;
        let manifest = "workloads/rust/Cargo.toml";
        let build = ["build", "--release", "--locked", "--manifest-path", manifest];
        let mut build = steps::cargo(root, &build);
        build
            .args(["--bin", "strings", "--features", "masu,masu/profile", "--target-dir"])
            .arg(&folder);
        steps::succeed(&mut build)?;
        Ok(Places {
            workloads: root.join("workloads"),
            made,
            library: target.join("release/libmasu.so"),
            strings: folder.join("release/strings"),
            taken: folder.join("taken"),
        })
    }

    /// A word of a program's, as it is run.
    fn word(&self, word: &str) -> OsString {
        match word {
            "{cargo}" => std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            "{strings}" => self.strings.clone().into(),
            _ => {
                word.strip_prefix("{made}/").map_or(word.into(), |file| self.made.join(file).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        let request = Request::parse(&["--runs", "7", "--only", "lua"]).unwrap();
        let wanted: Vec<_> = PROGRAMS.iter().filter(|program| request.wants(program)).collect();
        assert!(request.runs == 7 && wanted.len() == 1 && wanted[0].name == "lua");
        assert!(PROGRAMS.iter().all(|it| Request::parse(&["--record"]).unwrap().wants(it)));
        let wrong = [&["--runs", "0"][..], &["--only"], &["--fast"], &["--only", "emacs"]];
        for wrong in wrong.into_iter().chain([&["--record", "--only", "lua"][..]]) {
            assert!(Request::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_program_is_built_here_or_has_a_package() {
        for Program { name, words, .. } in &PROGRAMS {
            let is_built = words[0].starts_with('{');
            let has_package = machine::PROGRAMS.iter().any(|need| need.name() == words[0]);
            assert!(is_built != has_package, "{name}");
        }
    }
}
