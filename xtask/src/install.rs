//! `cargo xtask install --prefix DIR`: the commands, the libraries, their headers, files for pkg-config and CMake,
//! manual pages and completions, laid out as a package of a distribution has them.
//!
//! It relies on cargo for the release build and on the installed commands to write their own pages. A library that
//! programs have mapped must not be written into, so every file is written aside and then takes the name in one step; a
//! process that has the old one open keeps it.

mod manual;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{commands, files};

/// The commands, both libraries, their headers, files for pkg-config and CMake, manual pages and completions
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// Where the files will be when they are used
    #[arg(long, value_name = "FOLDER", default_value = "/usr/local", value_parser = parse_absolute)]
    pub(crate) prefix: PathBuf,
    /// The folder below it for libraries
    #[arg(long = "libdir", value_name = "NAME", default_value = "lib", value_parser = parse_relative)]
    pub(crate) libraries: String,
    /// The folder before that while a package is made
    #[arg(long = "destdir", value_name = "FOLDER", value_parser = parse_absolute)]
    pub(crate) staging: Option<PathBuf>,
}

fn parse_absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("give a path from the root on".to_owned()) }
}

fn parse_relative(text: &str) -> Result<String, String> {
    let is_below = Path::new(text).is_relative();
    if is_below { Ok(text.to_owned()) } else { Err("give a path below the prefix".to_owned()) }
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let installed = request.perform(root)?;
    for path in &installed {
        println!("{}", path.display());
    }
    println!("{}", request.hint());
    Ok(())
}

impl Request {
    /// The place of a file that belongs at `path` below the prefix.
    fn place(&self, path: &str) -> PathBuf {
        let used = self.prefix.join(path);
        match &self.staging {
            None => used,
            Some(staging) => staging.join(used.strip_prefix("/").unwrap_or(&used)),
        }
    }

    pub(crate) fn perform(&self, root: &Path) -> Result<Vec<PathBuf>> {
        commands::build(root, ROOMS.map(|room| ["--package", room]).as_flattened())?;
        let target = commands::target_folder()?;
        let mut installed = Vec::new();
        let mut put = |path: &str, contents: &[u8], mode| {
            let place = self.place(path);
            write(&place, contents, mode)?;
            installed.push(place);
            anyhow::Ok(())
        };
        for (name, folder, mode) in BUILT {
            let built = target.join("release").join(name);
            let contents = fs::read(&built)
                .with_context(|| format!("{}: cargo built for another target?", built.display()))?;
            let folder = if *folder == "lib" { &self.libraries } else { *folder };
            put(&format!("{folder}/{name}"), &contents, *mode)?;
        }
        let built = commands::build_library_with(root, "secure")?;
        let contents = fs::read(&built).with_context(|| built.display().to_string())?;
        put(&format!("{}/{HARDENED}", self.libraries), &contents, PROGRAM)?;
        let mut headers = Vec::new();
        for (path, name) in HEADERS {
            let header = root.join(path).join(name);
            let text = files::read(&header)?;
            put(&format!("include/{name}"), text.as_bytes(), FILE)?;
            headers.push(text);
        }
        let prefix = self.prefix.display().to_string();
        for (path, text) in TO_LINK {
            let text = filled_in(text, &[("PREFIX", &prefix), ("LIBRARIES", &self.libraries)]);
            put(&format!("{}/{path}", self.libraries), text.as_bytes(), FILE)?;
        }
        for (page, header) in [(manual::MALLOC, &headers[0]), (manual::CODE, &headers[2])] {
            let path = format!("share/man/man3/{}.3", page.name);
            put(&path, page.of(header).as_bytes(), FILE)?;
        }
        let programs = self.place("bin");
        installed.extend(pages(&self.place(""), |name| Command::new(programs.join(name)))?);
        Ok(installed)
    }

    fn hint(&self) -> String {
        format!(
            "Any program: LD_PRELOAD={0}/libmasu.so PROGRAM; hardened: {HARDENED} in its place. In C: cc … $(pkg-config --cflags \
             --libs masu), with PKG_CONFIG_PATH={0}/pkgconfig where that is not looked at anyway.",
            self.prefix.join(&self.libraries).display()
        )
    }
}

/// The completions and manual pages that the commands write of themselves, into `share` below a prefix. `start` gives a
/// command by its name: a package for another CPU has an emulator run it.
pub(crate) fn pages(prefix: &Path, start: impl Fn(&str) -> Command) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (program, arguments, path) in PRINTED {
        let place = prefix.join(path);
        write(&place, commands::output(start(program).args(*arguments))?.as_bytes(), FILE)?;
        written.push(place);
    }
    let folder = prefix.join("share/man/man1");
    commands::output(start("masu").args(["man", "--output"]).arg(&folder))?;
    for path in files::list(&folder)? {
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"masu")) {
            fs::set_permissions(&path, Permissions::from_mode(FILE))?;
            written.push(path);
        }
    }
    Ok(written)
}

/// A file of `packaging/` with the version and other fields in the place of `@FIELD@`.
pub(crate) fn filled_in(text: &str, fields: &[(&str, &str)]) -> String {
    let fill =
        |text: String, (name, value): &(&str, &str)| text.replace(&format!("@{name}@"), value);
    fields.iter().fold(text.replace("@VERSION@", env!("CARGO_PKG_VERSION")), fill)
}

const PROGRAM: u32 = 0o755;
const FILE: u32 = 0o644;

const ROOMS: [&str; 4] = ["masu-abi", "masu-code-abi", "masu-cli", "masu-xquo"];

/// The files that are installed, each with its folder and mode.
const BUILT: &[(&str, &str, u32)] = &[
    ("masu", "bin", PROGRAM),
    ("xquo", "bin", PROGRAM),
    ("libmasu.so", "lib", PROGRAM),
    ("libmasu.a", "lib", FILE),
    ("libmasu_code.so", "lib", PROGRAM),
    ("libmasu_code.a", "lib", FILE),
];

/// The hardened build of `libmasu.so`.
const HARDENED: &str = "libmasu-secure.so";

const HEADERS: [(&str, &str); 3] = [
    ("crates/masu-abi/include", "masu.h"),
    ("crates/masu-abi/include", "masu.hpp"),
    ("crates/masu-code-abi/include", "masu_code.h"),
];

/// Files with fields to fill in, each with its place below the libraries: those that pkg-config reads to link a program,
/// and those that `find_package(masu)` of CMake reads. With `--static` `masu.pc` names the libraries that a static glibc
/// before 2.34 keeps apart; by the `-static` files the archive is linked into a program that is dynamic otherwise.
const TO_LINK: [(&str, &str); 7] = [
    ("pkgconfig/masu.pc", include_str!("../../packaging/pkg-config/masu.pc")),
    ("pkgconfig/masu-static.pc", include_str!("../../packaging/pkg-config/masu-static.pc")),
    ("pkgconfig/masu-secure.pc", include_str!("../../packaging/pkg-config/masu-secure.pc")),
    ("pkgconfig/masu_code.pc", include_str!("../../packaging/pkg-config/masu_code.pc")),
    (
        "pkgconfig/masu_code-static.pc",
        include_str!("../../packaging/pkg-config/masu_code-static.pc"),
    ),
    ("cmake/masu/masu-config.cmake", include_str!("../../packaging/masu-config.cmake")),
    (
        "cmake/masu/masu-config-version.cmake",
        include_str!("../../packaging/masu-config-version.cmake"),
    ),
];

/// The completions that the commands print, at the places where shells look for them, and the filter's page.
const PRINTED: &[(&str, &[&str], &str)] = &[
    ("masu", &["completions", "bash"], "share/bash-completion/completions/masu"),
    ("masu", &["completions", "zsh"], "share/zsh/site-functions/_masu"),
    ("masu", &["completions", "fish"], "share/fish/vendor_completions.d/masu.fish"),
    ("xquo", &["--completions", "bash"], "share/bash-completion/completions/xquo"),
    ("xquo", &["--completions", "zsh"], "share/zsh/site-functions/_xquo"),
    ("xquo", &["--completions", "fish"], "share/fish/vendor_completions.d/xquo.fish"),
    ("xquo", &["--man"], "share/man/man1/xquo.1"),
];

/// Writes a file so that it is there whole or not at all, and a file of that name that is in use stays
/// as it is for its users.
fn write(path: &Path, contents: &[u8], mode: u32) -> Result<()> {
    let put = || {
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&aside, contents)?;
        fs::set_permissions(&aside, Permissions::from_mode(mode))?;
        fs::rename(&aside, path)
    };
    put().with_context(|| format!("installing {}", path.display()))
}

#[cfg(test)]
mod tests;
