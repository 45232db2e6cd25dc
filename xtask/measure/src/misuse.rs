//! `cargo xtask misuse`: what each malloc does when a program misuses memory, as a table that is never written by hand.
//!
//! It relies on `workloads/misuse` for the programs, each of which does one thing that is wrong and goes on, and on the
//! lab's catalogue for the mallocs. The hard idea is that no malloc is asked: a verdict comes from the marks that the
//! program wrote before and after, from what it saw, and from how its process ended (`verdict.rs`). Each is run several
//! times, because hardened mallocs draw at random.

mod cases;
mod check;
mod mallocs;
mod page;
mod price;
mod run;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use cases::Case;
use mallocs::{MALLOCS, Malloc};
use page::Old;
use run::Results;
use xtask::{machine, steps};

const USAGE: &str = "\
Usage: cargo xtask misuse [--runs N] [--only NAME]... [--malloc NAME]... [--record | --check]
       cargo xtask misuse --prices [--runs N] [--record]
  --runs N       runs of each case with each size under each malloc (10; with --check 3)
  --only NAME    only this case; repeats
  --malloc NAME  only under this malloc, such as `masu` or `glibc`; repeats
  --record       write docs/misuse.md; mallocs that are not asked for keep what it says of them
  --check        only masu's own columns, held against docs/misuse.md
  --prices       what safety costs: time, memory and instructions of programs under the same mallocs (--runs: 5)";

/// The page that `--record` writes, from the workspace's root.
const PAGE: &str = "docs/misuse.md";

/// What is to be done with the results.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    #[default]
    Show,
    Record,
    Check,
}

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    runs: Option<usize>,
    only: Vec<String>,
    mallocs: Vec<String>,
    purpose: Purpose,
    /// Not what misuse comes to, but what safety costs.
    prices: bool,
}

impl Request {
    fn parse(arguments: &[&str]) -> Result<Request> {
        let mut request = Request::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            match (*option, rest.as_slice().first()) {
                ("--record" | "--check", _) if request.purpose == Purpose::Show => {
                    let is_check = *option == "--check";
                    request.purpose = if is_check { Purpose::Check } else { Purpose::Record };
                    continue;
                }
                ("--prices", _) => {
                    request.prices = true;
                    continue;
                }
                ("--runs", Some(runs)) => {
                    let runs = runs.parse().ok().filter(|runs| (1..=1000).contains(runs));
                    request.runs = Some(runs.context("misuse: --runs takes 1 to 1000")?);
                }
                ("--only", Some(name)) => request.only.push((*name).to_owned()),
                ("--malloc", Some(name)) if MALLOCS.iter().any(|one| one.name == *name) => {
                    request.mallocs.push((*name).to_owned());
                }
                _ => bail!("misuse: `{option}` is no option, or its value is wrong\n{USAGE}"),
            }
            rest.next();
        }
        if request.purpose == Purpose::Record && !request.only.is_empty() {
            bail!("misuse: a record holds every case; leave --record or --only out\n{USAGE}");
        }
        let has_choice = !(request.only.is_empty() && request.mallocs.is_empty());
        if request.prices && (has_choice || request.purpose == Purpose::Check) {
            bail!("misuse: prices are of everything; leave --prices or the choice out\n{USAGE}");
        }
        Ok(request)
    }

    fn runs(&self) -> usize {
        self.runs.unwrap_or(if self.purpose == Purpose::Check { 3 } else { 10 })
    }

    fn wants(&self, malloc: &Malloc) -> bool {
        match self.purpose {
            Purpose::Check if self.mallocs.is_empty() => malloc.is_ours(),
            _ => self.mallocs.is_empty() || self.mallocs.iter().any(|name| name == malloc.name),
        }
    }

    /// The cases that are wanted, of all that there are.
    fn choose(&self, mut cases: Vec<Case>) -> Result<Vec<Case>> {
        if let Some(name) = self.only.iter().find(|name| !cases.iter().any(|c| c.name == **name)) {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            bail!("misuse: no case is named `{name}`; there are {}", names.join(", "));
        }
        cases.retain(|case| self.only.is_empty() || self.only.contains(&case.name));
        Ok(cases)
    }
}

/// Builds what is misused and what misuses it, runs every case, and shows, records or checks what came of it.
///
/// # Errors
///
/// When something cannot be built, an argument is wrong, or, with `--check`, masu no longer does what the page says.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let request = Request::parse(arguments)?;
    if request.prices {
        let text = price::text(root, request.runs)?;
        println!("\n{text}");
        if request.purpose == Purpose::Record {
            price::keep(&root.join(PAGE), &text)?;
            println!("record: {PAGE}");
        }
        return Ok(());
    }
    let program = build(root)?;
    let found = mallocs::find(root, &program, |malloc| request.wants(malloc))?;
    for (malloc, reason) in &found.missing {
        if request.purpose == Purpose::Record && !malloc.is_ours() {
            bail!("misuse: a record needs {}: {reason}", malloc.title);
        }
        println!("going on without {}: {reason}", malloc.title);
    }
    let cases = request.choose(cases::of(&program)?)?;
    let results = steps::take("misuse", || {
        Results::gather(&program, &cases, &found.mallocs, request.runs())
    })?;
    match request.purpose {
        Purpose::Check => check::hold(root, &program, &results),
        Purpose::Show => {
            let columns: Vec<Malloc> = found.mallocs.iter().map(|one| one.malloc).collect();
            println!("\n{}", page::tables(&results, &columns, &Old(""))?);
            Ok(())
        }
        Purpose::Record => {
            let old = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
            let text = page::text(root, &results, &found, &Old(&old))?;
            std::fs::write(root.join(PAGE), text).with_context(|| format!("writing {PAGE}"))?;
            println!("record: {PAGE}");
            Ok(())
        }
    }
}

/// Builds masu's libraries and the program of cases; returns the program's path.
fn build(root: &Path) -> Result<PathBuf> {
    machine::provide(&machine::PATTERNS.iter().collect::<Vec<_>>())?;
    let out = steps::target_folder()?.join("misuse");
    steps::take("build the cases", || steps::make(&root.join("workloads/misuse"), &out))?;
    Ok(out.join("misuse"))
}
