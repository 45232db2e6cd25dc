//! `cargo xtask install --prefix DIR`: the command, both libraries, the header, pkg-config files, manual
//! pages and completions, laid out as a package of a distribution has them.
//!
//! It relies on cargo for the release build and on the installed command to write its own pages. The
//! hard idea: a library that programs have mapped must not be written into, so every file is
//! written aside and then takes the name in one step; whoever has the old one open keeps it.

mod manual;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::steps;

/// What is asked for.
#[derive(Debug)]
struct Request {
    /// Where the files will be when they are used.
    prefix: PathBuf,
    /// What stands before that while a package is made.
    staging: Option<PathBuf>,
}

/// Builds masu and installs it.
///
/// # Errors
///
/// When the options make no sense, the build fails, or a file cannot be written.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let request = Request::parse(options)?;
    let installed = request.perform(root, &steps::target_folder()?)?;
    for path in &installed {
        println!("{}", path.display());
    }
    println!("{}", request.hint());
    Ok(())
}

impl Request {
    fn parse(options: &[&str]) -> Result<Request> {
        let mut request = Request { prefix: PathBuf::from("/usr/local"), staging: None };
        let mut left = options.iter();
        while let Some(option) = left.next() {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*option, left.next().copied()),
            };
            let value = value.map(PathBuf::from);
            match (name, value) {
                ("--prefix", Some(folder)) if folder.is_absolute() => request.prefix = folder,
                ("--destdir", Some(folder)) if folder.is_absolute() => {
                    request.staging = Some(folder);
                }
                ("--prefix" | "--destdir", Some(folder)) => {
                    bail!("{name} {}: give a path from the root on", folder.display())
                }
                ("--prefix" | "--destdir", None) => bail!("{name} needs a folder"),
                _ => bail!("install has no option `{name}`; it has --prefix DIR and --destdir DIR"),
            }
        }
        Ok(request)
    }

    /// Where a file that belongs at `path` below the prefix is put now.
    fn place(&self, path: &str) -> PathBuf {
        let used = self.prefix.join(path);
        match &self.staging {
            None => used,
            Some(staging) => staging.join(used.strip_prefix("/").unwrap_or(&used)),
        }
    }

    /// Builds, installs, and returns the files.
    fn perform(&self, root: &Path, target: &Path) -> Result<Vec<PathBuf>> {
        let mut build = steps::cargo(root, &["build", "--release", "--locked"]);
        build.args(["--package", "masu-abi", "--package", "masu-cli", "--target-dir"]).arg(target);
        steps::succeed(&mut build)?;
        let mut installed = Vec::new();
        let mut put = |path: &str, contents: &[u8], mode| {
            let place = self.place(path);
            write(&place, contents, mode)?;
            installed.push(place);
            anyhow::Ok(())
        };
        for (name, path, mode) in [
            ("masu", "bin/masu", PROGRAM),
            ("libmasu.so", "lib/libmasu.so", PROGRAM),
            ("libmasu.a", "lib/libmasu.a", FILE),
        ] {
            let built = target.join("release").join(name);
            let contents = fs::read(&built)
                .with_context(|| format!("{}: cargo built for another target?", built.display()))?;
            put(path, &contents, mode)?;
        }
        let header = root.join("crates/masu-abi/include/masu.h");
        let header = fs::read_to_string(&header).with_context(|| header.display().to_string())?;
        put("include/masu.h", header.as_bytes(), FILE)?;
        for (path, links) in PKG_CONFIG {
            put(path, self.pkg_config(links).as_bytes(), FILE)?;
        }
        put("share/man/man3/masu.3", manual::page(&header).as_bytes(), FILE)?;
        let program = self.place("bin/masu");
        for (shell, path) in COMPLETIONS {
            put(path, &printed(Command::new(&program).args(["completions", shell]))?, FILE)?;
        }
        installed.extend(self.manual_pages(&program)?);
        Ok(installed)
    }

    /// Has the installed command write its pages.
    fn manual_pages(&self, program: &Path) -> Result<Vec<PathBuf>> {
        let folder = self.place("share/man/man1");
        printed(Command::new(program).args(["man", "--output"]).arg(&folder))?;
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        let mut pages = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let is_ours =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"masu"));
            if is_ours {
                fs::set_permissions(&path, Permissions::from_mode(FILE))?;
                pages.push(path);
            }
        }
        pages.sort();
        Ok(pages)
    }

    /// A file for pkg-config, by which programs are linked with `links`.
    fn pkg_config(&self, links: &str) -> String {
        format!(
            "prefix={}\n\
             libdir=${{prefix}}/lib\n\
             includedir=${{prefix}}/include\n\
             \n\
             Name: masu\n\
             Description: a fast and small malloc; linked in, it is the program's\n\
             Version: {}\n\
             Cflags: -I${{includedir}}\n\
             {links}\n",
            self.prefix.display(),
            env!("CARGO_PKG_VERSION"),
        )
    }

    /// What to know when the files are there.
    fn hint(&self) -> String {
        format!(
            "Any program: LD_PRELOAD={0}/lib/libmasu.so PROGRAM. In C: cc … $(pkg-config --cflags \
             --libs masu), with PKG_CONFIG_PATH={0}/lib/pkgconfig where that is not looked at anyway.",
            self.prefix.display()
        )
    }
}

const PROGRAM: u32 = 0o755;
const FILE: u32 = 0o644;

/// Files for pkg-config. With `--static` the first one names what a static glibc before 2.34 keeps
/// apart; by the second the archive is linked into a program that is dynamic otherwise.
const PKG_CONFIG: [(&str, &str); 2] = [
    ("lib/pkgconfig/masu.pc", "Libs: -L${libdir} -lmasu\nLibs.private: -pthread"),
    ("lib/pkgconfig/masu-static.pc", "Libs: ${libdir}/libmasu.a -pthread"),
];

/// Where shells look for what their Tab key needs.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/masu"),
    ("zsh", "share/zsh/site-functions/_masu"),
    ("fish", "share/fish/vendor_completions.d/masu.fish"),
];

/// What a command prints.
fn printed(command: &mut Command) -> Result<Vec<u8>> {
    let shown = steps::show(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}`: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Writes a file so that it is there whole or not at all, and a file of that name that is in use stays
/// as it is for whoever uses it.
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
