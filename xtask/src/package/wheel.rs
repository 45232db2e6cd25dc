//! The Python wheel: `pip install` puts `masu` beside `python`, so that `masu run -- python app.py` needs nothing else.
//!
//! It relies on the form of wheels that the Python Packaging Authority specifies ("Binary distribution format"),
//! and on the static `masu`, which runs whatever C library Python is for. There is no code in Python: the
//! command lies where installers take programs from, and carries `libmasu.so` inside.

mod zip;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::clean::talk;
use super::{LICENCES, Shop, VERSION, notices, standalone};
use crate::machine;
use zip::{Archive, Mode};

/// Where the wheel may be installed: a static program runs under both C libraries, on any kernel since.
/// Compressed, as a file name has it; `WHEEL` has a line for each.
const PLATFORMS: [&str; 2] = ["manylinux2014", "musllinux_1_1"];

/// Builds the wheel.
pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    let program = standalone::programs(shop)?.join("masu");
    let program = fs::read(&program).with_context(|| program.display().to_string())?;
    let licences = LICENCES.map(|name| shop.read(name).map(|text| (name, text)));
    let mut licences = licences.into_iter().collect::<Result<Vec<_>>>()?;
    let notices = notices::of(shop.root, &["masu-cli"], machine::MUSL)?;
    licences.push(("LICENSES-OF-OTHERS", notices));
    let parts = Parts { program, readme: shop.read("crates/masu-cli/README.md")?, licences };
    let path = shop.out.join(format!("masu-{VERSION}-{}.whl", tag(&platforms().join("."))));
    fs::write(&path, wheel(&parts)?).with_context(|| path.display().to_string())?;
    Ok(vec![path])
}

/// What goes into it.
struct Parts {
    program: Vec<u8>,
    readme: String,
    licences: Vec<(&'static str, String)>,
}

fn platforms() -> [String; PLATFORMS.len()] {
    PLATFORMS.map(|platform| format!("{platform}_{}", std::env::consts::ARCH))
}

/// Any Python 3, no interface to its C code, this platform.
fn tag(platform: &str) -> String {
    format!("py3-none-{platform}")
}

/// The wheel's bytes.
fn wheel(parts: &Parts) -> Result<Vec<u8>> {
    let about = format!("masu-{VERSION}.dist-info");
    let mut files = vec![
        (format!("masu-{VERSION}.data/scripts/masu"), parts.program.clone(), Mode::Program),
        (format!("{about}/METADATA"), metadata(parts).into_bytes(), Mode::File),
        (format!("{about}/WHEEL"), description().into_bytes(), Mode::File),
    ];
    for (name, text) in &parts.licences {
        files.push((format!("{about}/licenses/{name}"), text.clone().into_bytes(), Mode::File));
    }
    let record = format!("{about}/RECORD");
    let mut lines: String = files
        .iter()
        .map(|(name, contents, _)| {
            format!("{name},sha256={},{}\n", digest(contents), contents.len())
        })
        .collect();
    // It cannot hold its own digest.
    lines.push_str(&format!("{record},,\n"));
    files.push((record, lines.into_bytes(), Mode::File));
    let mut archive = Archive::new();
    for (name, contents, mode) in &files {
        archive.add(name, contents, *mode)?;
    }
    archive.finish()
}

/// What installers and indexes read of the package.
fn metadata(parts: &Parts) -> String {
    let licences: String =
        parts.licences.iter().map(|(name, _)| format!("License-File: {name}\n")).collect();
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
         Description-Content-Type: text/markdown\n\
         \n\
         {}",
        parts.readme
    )
}

/// What installers read of the wheel.
fn description() -> String {
    let tags: String =
        platforms().iter().map(|platform| format!("Tag: {}\n", tag(platform))).collect();
    format!("Wheel-Version: 1.0\nGenerator: masu's xtask {VERSION}\nRoot-Is-Purelib: false\n{tags}")
}

/// A SHA-256 as `RECORD` has it: base 64 of file names, without padding.
fn digest(contents: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = Sha256::digest(contents);
    let mut text = String::new();
    for three in hash.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for digit in 0..=three.len() {
            let six = bits >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS[six as usize]));
        }
    }
    text
}

/// Installs it into a fresh virtual environment, without an index, runs Python under masu there, and takes it
/// out again.
pub(super) fn test(shop: &Shop, made: &[PathBuf]) -> Result<()> {
    machine::provide(&[&machine::PYTHON])?;
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
    fn digests_are_those_that_pip_reckons() {
        // hashlib and base64 of Python's standard library say so.
        assert_eq!(digest(b""), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    }

    #[test]
    fn python_reads_the_wheel_and_every_file_is_recorded() {
        let licences = vec![("LICENSE-MIT", "free".to_owned())];
        let parts = Parts { program: vec![7; 100_000], readme: "# masu\n".into(), licences };
        let path = std::env::temp_dir().join(format!("masu-wheel-test-{}.whl", std::process::id()));
        fs::write(&path, wheel(&parts).unwrap()).unwrap();
        // The standard library's reader of archives tests every checksum, and the digests stand in RECORD.
        let script = "\
import base64, hashlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    assert wheel.testzip() is None
    names = wheel.namelist()
    record = next(name for name in names if name.endswith('RECORD'))
    rows = [line.split(',') for line in wheel.read(record).decode().splitlines()]
    assert sorted(row[0] for row in rows) == sorted(names), names
    for name, digest, size in rows:
        if name != record:
            data = wheel.read(name)
            made = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')
            assert (digest, int(size)) == ('sha256=' + made, len(data)), name
    program = next(info for info in wheel.infolist() if info.filename.endswith('scripts/masu'))
    assert program.external_attr >> 16 & 0o777 == 0o755, oct(program.external_attr)
    print(len(names))";
        let printed = talk(Command::new("python3").args(["-c", script]).arg(&path), "").unwrap();
        assert_eq!(printed.trim(), "5");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_name_has_all_platforms_and_the_description_each() {
        assert!(tag(&platforms().join(".")).starts_with("py3-none-manylinux2014_"));
        assert_eq!(description().matches("Tag: py3-none-").count(), PLATFORMS.len());
    }
}
