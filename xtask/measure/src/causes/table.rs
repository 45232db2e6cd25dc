//! The cases of `causes.toml`, each as a command that is ready to be diagnosed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

/// Findings that accuse nothing of the program.
pub(super) const ACCUSES_NOTHING: [&str; 3] = ["cpu-bound", "io-bound", "memory-open"];

/// Cases that are judged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Group {
    /// Causes in C, on which thresholds were fixed.
    C,
    /// Causes in Rust, on which they are judged.
    Rust,
    /// Programs as they are used every day.
    #[value(skip)]
    Ordinary,
    /// The program of field report 2.
    #[value(skip)]
    Report,
}

impl Group {
    pub(super) const ALL: [Group; 4] = [Group::C, Group::Rust, Group::Ordinary, Group::Report];

    pub(super) fn name(self) -> &'static str {
        match self {
            Group::C => "C",
            Group::Rust => "Rust",
            Group::Ordinary => "ordinary",
            Group::Report => "field report 2",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) group: Group,
    pub(super) command: Vec<String>,
    pub(super) known: Known<'static>,
}

/// The entry of the file for a case.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Known<'a> {
    pub(super) name: &'a str,
    /// The command of the case, or its arguments only.
    #[serde(borrow)]
    words: Vec<&'a str>,
    /// Further options of `masu diagnose`.
    #[serde(borrow)]
    pub(super) options: Vec<&'a str>,
    #[serde(borrow)]
    pub(super) expected: Vec<&'a str>,
    #[serde(borrow)]
    pub(super) also: Vec<&'a str>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    cause: Vec<Known<'a>>,
    ordinary: Vec<Known<'a>>,
    report: Vec<Known<'a>>,
}

pub(super) struct Places {
    /// The folder with the build of `workloads/causes`.
    pub(super) causes: PathBuf,
    /// The folder with the inputs of ordinary programs.
    pub(super) programs: PathBuf,
}

pub(super) fn cases(places: &Places) -> Result<Vec<Case>> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("the path {} is no text", path.display()))
    };
    let (made, out) = (text(&places.programs)?, text(&places.causes)?);
    let libraries = text(&places.causes.join("libraries"))?;
    let file: File<'static> = toml::from_str(include_str!("causes.toml"))?;
    let mut cases = Vec::new();
    let mut add = |group, before: &[&str], known: &Known<'static>| {
        let fill = |word: &str| {
            word.replace("{made}", &made).replace("{out}", &out).replace("{libraries}", &libraries)
        };
        let command = before.iter().chain(&known.words).map(|word| fill(word)).collect();
        cases.push(Case { group, command, known: known.clone() });
    };
    for (group, program) in [(Group::C, "causes"), (Group::Rust, "rust/release/rust-causes")] {
        let program = text(&places.causes.join(program))?;
        file.cause.iter().for_each(|known| add(group, &[&program, known.name], known));
    }
    file.ordinary.iter().for_each(|known| add(Group::Ordinary, &[], known));
    for known in &file.report {
        let cargo = ["cargo", "run", "--quiet", "--package", "masu-chunk", "--example", "steps"];
        let words = [&cargo[..], &["--", known.name, "--print"]].concat();
        let known = Known { options: vec!["--terminal"], ..known.clone() };
        add(Group::Report, &words, &known);
    }
    Ok(cases)
}
