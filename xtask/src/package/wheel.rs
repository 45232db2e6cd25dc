//! The Python wheel: `pip install` puts `masu` beside `python`, so that `masu run -- python app.py` needs nothing else.
//!
//! It relies on the form of wheels that the Python Packaging Authority specifies ("Binary distribution format"),
//! and on the static `masu`, which runs whatever C library Python is for. There is no code in Python: the
//! command lies where installers take programs from, and carries `libmasu.so` inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::clean::talk;
use super::{LICENCES, Shop, VERSION, homepage, notices, standalone};
use crate::machine;

/// Where the wheel may be installed: a static program runs under both C libraries, on any kernel since.
/// Compressed, as a file name has it; `WHEEL` has a line for each.
const PLATFORMS: [&str; 2] = ["manylinux2014", "musllinux_1_1"];

pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    let program = standalone::programs(shop, &standalone::HERE)?.join("masu");
    let program = fs::read(&program).with_context(|| program.display().to_string())?;
    let licences = LICENCES.map(|name| shop.read(name).map(|text| (name, text)));
    let mut licences = licences.into_iter().collect::<Result<Vec<_>>>()?;
    let notices = notices::of(shop.root, &["masu-cli"], machine::MUSL)?;
    licences.push(("LICENSES-OF-OTHERS", notices));
    let metadata = metadata(&shop.read("crates/masu-cli/README.md")?, &licences);
    let parts = Parts { program, metadata, description: description(), licences };
    let path = shop.out.join(format!("masu-{VERSION}-{}.whl", tag(&platforms().join("."))));
    machine::provide_all(&[machine::PYTHON])?;
    pack(&parts, &shop.bench("wheel")?, &path)?;
    Ok(vec![path])
}

struct Parts {
    program: Vec<u8>,
    /// What installers and indexes read of the package.
    metadata: String,
    /// What installers read of the wheel.
    description: String,
    licences: Vec<(&'static str, String)>,
}

fn platforms() -> [String; PLATFORMS.len()] {
    PLATFORMS.map(|platform| format!("{platform}_{}", std::env::consts::ARCH))
}

/// Any Python 3, no interface to its C code, this platform.
fn tag(platform: &str) -> String {
    format!("py3-none-{platform}")
}

/// Lays the files out in `tree` and has Python's `zipfile` write the wheel at `path`.
fn pack(parts: &Parts, tree: &Path, path: &Path) -> Result<()> {
    let about = format!("masu-{VERSION}.dist-info");
    let mut files = vec![
        (format!("masu-{VERSION}.data/scripts/masu"), &parts.program[..]),
        (format!("{about}/METADATA"), parts.metadata.as_bytes()),
        (format!("{about}/WHEEL"), parts.description.as_bytes()),
    ];
    for (name, text) in &parts.licences {
        files.push((format!("{about}/licenses/{name}"), text.as_bytes()));
    }
    for (name, contents) in &files {
        let file = tree.join(name);
        fs::create_dir_all(file.parent().unwrap_or(tree))?;
        fs::write(&file, contents).with_context(|| file.display().to_string())?;
    }
    let names = files.iter().map(|(name, _)| name);
    let mut python = Command::new("python3");
    python.args(["-c", PACK]).arg(path).arg(format!("{about}/RECORD")).args(names);
    talk(python.current_dir(tree), "")?;
    Ok(())
}

/// Writes the files into the archive, and last the list of their digests, which cannot hold its own. Times are the first
/// that the format has, so that the same files make the same archive.
const PACK: &str = "\
import base64, hashlib, sys, zipfile
path, record, *names = sys.argv[1:]
lines = []
with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
    def add(name, data):
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if '/scripts/' in name else 0o100644) << 16
        wheel.writestr(info, data)
    for name in names:
        data = open(name, 'rb').read()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')
        lines.append(f'{name},sha256={digest},{len(data)}')
        add(name, data)
    add(record, '\\n'.join([*lines, record + ',,', '']))
";

fn metadata(readme: &str, licences: &[(&str, String)]) -> String {
    let licences: String =
        licences.iter().map(|(name, _)| format!("License-File: {name}\n")).collect();
    format!(
        "Metadata-Version: 2.4\n\
         Name: masu\n\
         Version: {VERSION}\n\
         Summary: Is memory what makes your program slow? Find out, prove it, fix it\n\
         License-Expression: MIT OR Apache-2.0\n\
         {licences}\
         Keywords: malloc,allocator,memory,performance,benchmark\n\
         Classifier: Environment :: Console\n\
         Classifier: Operating System :: POSIX :: Linux\n\
         Requires-Python: >=3.7\n\
         {}\
         Description-Content-Type: text/markdown\n\
         \n\
         {readme}",
        homepage().map(|address| format!("Project-URL: Homepage, {address}\n")).unwrap_or_default()
    )
}

fn description() -> String {
    let tags: String =
        platforms().iter().map(|platform| format!("Tag: {}\n", tag(platform))).collect();
    format!("Wheel-Version: 1.0\nGenerator: masu's xtask {VERSION}\nRoot-Is-Purelib: false\n{tags}")
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
    let is_served = printed.lines().any(|line| line == "masu statistics");
    ensure!(printed.starts_with("45\n") && is_served, "masu run -- python: {printed}");
    talk(&mut pip(&["uninstall", "--yes", "masu"]), "")?;
    ensure!(!bin.join("masu").exists(), "the command is left behind");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_there_and_recorded_and_the_program_may_be_started() {
        let licences = vec![("LICENSE-MIT", "free".to_owned())];
        let metadata = metadata("# masu\n", &licences);
        let parts =
            Parts { program: vec![7; 100_000], metadata, description: description(), licences };
        let folder = std::env::temp_dir().join(format!("masu-wheel-{}", std::process::id()));
        let path = folder.join("masu.whl");
        fs::create_dir_all(&folder).unwrap();
        pack(&parts, &folder.join("tree"), &path).unwrap();
        let script = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    assert wheel.testzip() is None
    record = next(name for name in wheel.namelist() if name.endswith('RECORD'))
    rows = [line.split(',') for line in wheel.read(record).decode().splitlines()]
    assert [row[0] for row in rows] == wheel.namelist(), rows
    program = wheel.infolist()[0]
    assert program.external_attr >> 16 & 0o777 == 0o755, oct(program.external_attr)
    print(rows[0][2], rows[-1][1:], len(rows))";
        let printed = talk(Command::new("python3").args(["-c", script]).arg(&path), "").unwrap();
        assert_eq!(printed.trim(), "100000 ['', ''] 5");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_name_has_all_platforms_and_the_description_each() {
        assert!(tag(&platforms().join(".")).starts_with("py3-none-manylinux2014_"));
        assert_eq!(description().matches("Tag: py3-none-").count(), PLATFORMS.len());
    }
}
