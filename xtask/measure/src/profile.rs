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

use anyhow::Result;
use clap::builder::PossibleValuesParser;

use count::Cost;
use xtask::{commands, machine, options, page_part, records};

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

/// What a heap profile costs: instructions of programs with one over those without, under cachegrind (about 6 minutes)
#[derive(Debug, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Runs of each program with a profile, and as many without
    #[arg(long, value_name = "N", default_value = "5", value_parser = options::times)]
    runs: usize,
    /// Only this program; repeats
    #[arg(
        long,
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(PROGRAMS.map(|program| program.name))
    )]
    only: Vec<String>,
    /// Keep the table in docs/observing.md: of every program
    #[arg(long, conflicts_with = "only")]
    record: bool,
}

impl Request {
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
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let places = commands::step("build", || Places::make(root))?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for program in PROGRAMS.iter().filter(|program| request.wants(program)) {
        if let Err(error) = provide(program) {
            println!("{} is left out: {error:#}", program.name);
            missing.push(program.name);
            continue;
        }
        let counted = || Cost::count(&places, program, request.runs);
        rows.push((program, commands::step(program.name, counted)?));
    }
    let head = table::head(&records::commit(root), &count::version()?, request.runs);
    let text = format!("{head}\n\n{}", table::text(&rows, &missing));
    println!("\n{text}");
    if request.record {
        page_part::replace(&root.join(PAGE), "profile", &text)?;
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
        let target = commands::target_folder()?;
        let (made, folder) = (target.join("programs"), target.join("heap-profile"));
        commands::make(&root.join("workloads/programs"), &made)?;
        commands::run(&mut commands::cargo(
            root,
            &["build", "--release", "--package", "masu-abi"],
        ))?;
        let manifest = "workloads/rust/Cargo.toml";
        let build = ["build", "--release", "--locked", "--manifest-path", manifest];
        let mut build = commands::cargo(root, &build);
        build
            .args(["--bin", "strings", "--features", "masu,masu/profile", "--target-dir"])
            .arg(&folder);
        commands::run(&mut build)?;
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
    use clap::Parser;

    use super::*;

    #[test]
    fn all_programs_are_wanted_or_those_that_are_named() {
        let wanted = |words: &[&str]| {
            let request = Request::try_parse_from([&["profile"], words].concat()).unwrap();
            PROGRAMS.iter().filter(|program| request.wants(program)).count()
        };
        assert_eq!([wanted(&["--record"]), wanted(&["--only", "lua"])], [PROGRAMS.len(), 1]);
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
