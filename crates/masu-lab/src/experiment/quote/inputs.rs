//! The programs and inputs of `quote`: programs built with cargo, records and lines made here, and the suite of the
//! parts that exist.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::build::{Built, Cargo, Recipe};
use super::super::workbench::{in_one_table, keep, set};
use super::super::{Depth, Workbench};
use super::{PROGRAMS, SUITE};
use crate::suite::Suite;
use masu_run::Error;
use masu_run::error::Doing;

/// The package of the published program, in the tree.
const MANIFEST: &str = "workloads/quote/Cargo.toml";

pub(super) fn records(bench: &Workbench<'_>) -> u64 {
    bench.choose(2_000, 200_000, 1_000_000, 10_000_000)
}

pub(super) fn workers(bench: &Workbench<'_>) -> &'static [u32] {
    bench.choose(&[1, 2], &[1, 2, 4], &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6])
}

pub(super) struct Made {
    pub(super) folder: PathBuf,
    pub(super) records: PathBuf,
    quoted: PathBuf,
    lines: PathBuf,
    pub(super) built: Vec<Built>,
}

impl Made {
    pub(super) fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_file()
    }
}

/// Builds and makes everything; none where there is nothing to measure, which is noted.
pub(super) fn prepare(bench: &mut Workbench<'_>) -> Result<Option<Made>, Error> {
    let Some(cargo) = Cargo::find(bench, "xquo 0.2.3") else { return Ok(None) };
    let folder = bench.cache().join("built");
    fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
    let built = build(bench, &cargo, &folder)?;
    let [records, quoted, lines] =
        ["records", "quoted", "lines"].map(|name| bench.cache().join(name));
    bench.say("making the records");
    let wanted = self::records(bench);
    make(&records, wanted, |to, number| write!(to, "test'{number}\u{8}''{number}\0"))?;
    make(&lines, wanted / 4, |to, number| {
        writeln!(
            to,
            "{{\"id\":{number},\"name\":\"customer {number}\",\"tags\":[\"new\",\"north\",\"t{}\"],\"items\":[{{\"sku\":\
             \"s{number}\",\"count\":{},\"price\":{}.5}},{{\"sku\":\"gift\",\"count\":1,\"price\":0}}],\"paid\":true}}",
            number % 97,
            number % 9,
            number % 1000
        )
    })?;
    let quoter = folder.join("xquo");
    if quoter.is_file() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$1\" <\"$2\" >\"$3\"", "sh"]);
        command.args([&quoter, &records, &quoted]);
        if bench.step("quoting the records", &mut command).is_none() {
            // A part of them, or those of an earlier experiment.
            let _ = fs::remove_file(&quoted);
        }
    }
    let made = Made { folder, records, quoted, lines, built };
    let has_any = PROGRAMS.iter().any(|(name, _)| made.has(name));
    Ok(has_any.then_some(made))
}

fn build(bench: &mut Workbench<'_>, cargo: &Cargo, to: &Path) -> Result<Vec<Built>, Error> {
    let mut built = Vec::new();
    cargo.fetch(bench, MANIFEST);
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let has_musl = cargo.has_target(bench, &musl);
    // Programs that an earlier experiment built may differ from those built now.
    let names = PROGRAMS.iter().flat_map(|(name, _)| [(*name).to_owned(), format!("jsonl-{name}")]);
    for stale in names.chain(["xquo".to_owned()]) {
        let _ = fs::remove_file(to.join(stale));
    }
    for (name, features) in PROGRAMS {
        let is_musl = name.starts_with("musl");
        if is_musl && !has_musl {
            continue;
        }
        let needs = is_musl && features.contains(&"jemalloc");
        let install = "install it (Debian: apt install musl-tools)";
        if needs && bench.tool("musl-gcc", name, install).is_none() {
            continue;
        }
        let target = is_musl.then_some(musl.as_str());
        let recipe = Recipe { name, beside: name, program: "published-xquo", features, target };
        if let Some(made) = cargo.program(bench, MANIFEST, &recipe, to)? {
            built.push(made);
        }
        if ["gnu", "musl", "musl-masu"].contains(&name) {
            let features = [features, &["jsonl"][..]].concat();
            let own = format!("jsonl-{name}");
            let recipe =
                Recipe { name: &own, beside: name, program: "jsonl", features: &features, target };
            cargo.program(bench, MANIFEST, &recipe, to)?;
        }
    }
    let package = ["--release", "--package", "masu-xquo"];
    if let Some(folder) = cargo.of_tree(bench, "our xquo", &package) {
        let (made, put) = (folder.join("release/xquo"), to.join("xquo"));
        fs::copy(&made, &put).doing(|| format!("copying {}", made.display()))?;
    }
    Ok(built)
}

/// Writes `wanted` records, each by `write`, unless the file already has them.
pub(super) fn make(
    path: &Path,
    wanted: u64,
    write: impl Fn(&mut dyn Write, u64) -> std::io::Result<()>,
) -> Result<(), Error> {
    let stamp = path.with_extension("count");
    if fs::read_to_string(&stamp).is_ok_and(|known| known == wanted.to_string()) {
        return Ok(());
    }
    let writing = || format!("writing {}", path.display());
    // It is about the file as it was, and the new one may be cut off.
    let _ = fs::remove_file(&stamp);
    let mut file = BufWriter::new(File::create(path).doing(writing)?);
    for number in 1..=wanted {
        write(&mut file, number).doing(writing)?;
    }
    file.flush().doing(writing)?;
    fs::write(&stamp, wanted.to_string()).doing(writing)
}

pub(super) fn suite(bench: &mut Workbench<'_>, made: &Made) -> Result<Suite, Error> {
    let mut suite = Suite::parse(&bench.cache().join("quote.toml"), SUITE)?;
    set(&mut suite, "built", &made.folder)?;
    set(&mut suite, "records", &made.records)?;
    set(&mut suite, "quoted", &made.quoted)?;
    set(&mut suite, "lines", &made.lines)?;
    in_one_table(&mut suite, bench.choose(1, 8, 9, 8));
    let workers = workers(bench);
    let has_limit = made.has("xquo") && made.quoted.is_file();
    for entry in &mut suite.entries {
        let few = entry.name.starts_with("jsonl") && bench.depth() == Depth::Quick;
        let wanted = |value: &str| {
            let number = value.parse().unwrap_or(0);
            if few { number == 2 } else { workers.contains(&number) }
        };
        keep(entry, "workers", wanted);
        let end = if entry.name.starts_with("jsonl") { "jsonl-" } else { "" };
        keep(entry, "program", |name| made.has(&format!("{end}{name}")));
        if entry.name == "gnu" || entry.name == "jsonl" {
            let program = made.folder.join("gnu");
            bench.add_found(entry, program.to_str().unwrap_or("gnu"));
        }
    }
    let is_there = |name: &str| match name {
        "gnu" => made.has("gnu"),
        "jsonl" => made.has("jsonl-gnu"),
        "limit" => has_limit,
        _ => true,
    };
    suite.entries.retain(|entry| {
        is_there(&entry.name) && entry.parameters.iter().all(|one| !one.values.is_empty())
    });
    let names: Vec<String> = suite.entries.iter().map(|entry| entry.name.clone()).collect();
    suite.keep_only(&names)?;
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_those_of_the_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        make(&path, 2, |to, number| write!(to, "test'{number}\u{8}''{number}\0")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"test'1\x08''1\0test'2\x08''2\0");
        // Records that were cut off are none, neither the new ones nor those of before.
        let full = |_: &mut dyn Write, _| Err(std::io::ErrorKind::StorageFull.into());
        make(&path, 3, full).unwrap_err();
        make(&path, 2, |to, number| write!(to, "{number}")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"12");
    }
}
