//! The Python wheel: `pip install` puts `masu` beside `python`, so that `masu run -- python app.py` needs nothing else.
//!
//! It relies on the form of wheels that the Python Packaging Authority specifies ("Binary distribution format"),
//! and on the static `masu`, which runs whatever C library Python is for. There is no code in Python: the
//! command lies where installers take programs from, and carries `libmasu.so` inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::clean::{is_served, talk};
use super::{LICENCES, Shop, VERSION, homepage, notices, standalone};
use crate::install::filled_in;
use crate::{files, machine};

const METADATA: &str = include_str!("../../../packaging/wheel/METADATA");
/// The tags of the machines on which the wheel may be installed: a static program runs under both C libraries, on any
/// kernel since.
const WHEEL: &str = include_str!("../../../packaging/wheel/WHEEL");
const PACK: &str = include_str!("../../../packaging/wheel/pack.py");

pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    let program = standalone::programs(shop, &standalone::HERE)?.join("masu");
    let program = fs::read(&program).with_context(|| program.display().to_string())?;
    let mut licences = Vec::new();
    for name in LICENCES {
        licences.push((name, shop.read(name)?));
    }
    licences.push(("LICENSES-OF-OTHERS", notices::of(shop.root, &["masu-cli"], machine::MUSL)?));
    machine::provide_all(&[machine::PYTHON])?;
    let readme = shop.read("crates/masu-cli/README.md")?;
    Ok(vec![pack(&program, &readme, &licences, &shop.bench("wheel")?, &shop.out)?])
}

/// Lays the files out in `tree` and has Python's `zipfile` write the wheel into `out`.
fn pack(
    program: &[u8],
    readme: &str,
    licences: &[(&str, String)],
    tree: &Path,
    out: &Path,
) -> Result<PathBuf> {
    let about = format!("masu-{VERSION}.dist-info");
    let metadata = filled_in(
        METADATA,
        &[("HOMEPAGE", &homepage("Project-URL: Homepage, ")), ("README", readme)],
    );
    let wheel = filled_in(WHEEL, &[("CPU", std::env::consts::ARCH)]);
    let mut files = vec![
        (format!("masu-{VERSION}.data/scripts/masu"), program),
        (format!("{about}/METADATA"), metadata.as_bytes()),
        (format!("{about}/WHEEL"), wheel.as_bytes()),
    ];
    for (name, text) in licences {
        files.push((format!("{about}/licenses/{name}"), text.as_bytes()));
    }
    for (name, contents) in &files {
        let file = tree.join(name);
        files::write(&file, contents)?;
    }
    // The name has every platform of the tags, compressed: any Python 3, no interface to its C code.
    let tags = wheel.lines().filter_map(|line| line.strip_prefix("Tag: py3-none-"));
    let tags = tags.collect::<Vec<_>>().join(".");
    let path = out.join(format!("masu-{VERSION}-py3-none-{tags}.whl"));
    let mut python = Command::new("python3");
    python.args(["-c", PACK]).arg(&path).arg(format!("{about}/RECORD"));
    python.args(files.iter().map(|(name, _)| name));
    talk(python.current_dir(tree), "")?;
    Ok(path)
}

/// Installs it into a fresh virtual environment, without an index, runs Python under masu there, and takes it
/// out again.
pub(super) fn test(shop: &Shop, made: &[PathBuf]) -> Result<()> {
    machine::provide_all(&[machine::PYTHON])?;
    let wheel = made.first().context("nothing was made")?;
    let folder = shop.bench("wheel-environment")?;
    talk(Command::new("python3").args(["-m", "venv"]).arg(&folder), "")?;
    let bin = folder.join("bin");
    let pip = |arguments: &[&str]| {
        let mut pip = Command::new(bin.join("python"));
        pip.args(["-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]).args(arguments);
        pip
    };
    talk(pip(&["install", "--no-index"]).arg(wheel), "")?;
    talk(&mut pip(&["check"]), "")?;
    let shown = talk(&mut pip(&["show", "--files", "masu"]), "")?;
    ensure!(shown.contains("bin/masu"), "pip show: {shown}");
    let mut run = Command::new(bin.join("masu"));
    run.args(["run", "--"]).arg(bin.join("python")).args(["-c", "print(sum(range(10)))"]);
    run.env("XDG_CACHE_HOME", folder.join("cache")).env("MASU_STATISTICS_AT_EXIT", "1");
    let printed = talk(&mut run, "")?;
    let is_right = printed.starts_with("45\n") && is_served(&printed);
    ensure!(is_right, "masu run -- python: {printed}");
    talk(&mut pip(&["uninstall", "--yes", "masu"]), "")?;
    ensure!(!bin.join("masu").exists(), "the command is left behind");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_there_and_recorded_and_the_program_may_be_started() {
        let folder = tempfile::tempdir().unwrap();
        let licences = [("LICENSE-MIT", "free".to_owned())];
        let tree = folder.path().join("tree");
        let path = pack(&[7; 100_000], "# masu\n", &licences, &tree, folder.path()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(
            name.contains("-py3-none-manylinux2014_") && name.contains(".musllinux_"),
            "{name}"
        );
        let script = include_str!("wheel/tests.py");
        let printed = talk(Command::new("python3").args(["-c", script]).arg(&path), "").unwrap();
        assert_eq!(printed.trim(), "100000 ['', ''] 5");
    }
}
