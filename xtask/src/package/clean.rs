//! Clean places: folders that act as a machine with nothing but the files that were put there.
//!
//! It relies on `chroot`, for which a user other than root gets a separate namespace. The hard part is the definition
//! of a "Debian without anything else": the files of some packages of this machine and of all that they depend on,
//! with their entries in dpkg's books, so that dpkg itself judges whether a new package's needs are met.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::{commands, files, machine};

/// A root folder, removed with this.
pub(crate) struct Root {
    pub(crate) folder: PathBuf,
    _removed: TempDir,
}

impl Root {
    /// One with nothing in it but an empty `/tmp`.
    pub(crate) fn empty(name: &str) -> Result<Root> {
        let removed = tempfile::Builder::new().prefix(&format!("masu-{name}-")).tempdir()?;
        // Users of its programs go into it, too.
        fs::set_permissions(removed.path(), Permissions::from_mode(0o755))?;
        let root = Root { folder: removed.path().to_owned(), _removed: removed };
        fs::create_dir(root.folder.join("tmp"))?;
        fs::set_permissions(root.folder.join("tmp"), Permissions::from_mode(0o1777))?;
        Ok(root)
    }

    /// One with these packages of this machine's Debian, and those that they need.
    pub(crate) fn of_debian(name: &str, packages: &[&str]) -> Result<Root> {
        let root = Root::empty(name)?;
        let books = root.folder.join("var/lib/dpkg");
        fs::create_dir_all(books.join("info"))?;
        fs::create_dir_all(books.join("updates"))?;
        for folder in ["bin", "lib", "lib64", "sbin"] {
            fs::create_dir_all(root.folder.join("usr").join(folder))?;
            symlink(Path::new("usr").join(folder), root.folder.join(folder))?;
        }
        let mut status = String::new();
        for package in needed(packages)?.lines() {
            status.push_str(&commands::output(
                Command::new("dpkg-query").arg("--status").arg(package),
            )?);
            status.push('\n');
            let listed =
                commands::output(Command::new("dpkg-query").arg("--listfiles").arg(package))?;
            for file in listed.lines().filter(|file| file.starts_with('/')) {
                root.take(Path::new(file))?;
            }
        }
        fs::write(books.join("status"), status)?;
        Ok(root)
    }

    /// Copies a file, link or folder of this machine to the same place.
    fn take(&self, path: &Path) -> Result<()> {
        let to = self.folder.join(path.strip_prefix("/").unwrap_or(path));
        let is_page = ["doc", "man", "info", "locale"]
            .iter()
            .any(|kind| path.starts_with(Path::new("/usr/share").join(kind)));
        // A machine may omit files of a package.
        let Ok(entry) = path.symlink_metadata() else { return Ok(()) };
        if is_page || (to.symlink_metadata().is_ok() && !entry.is_file()) {
            return Ok(());
        }
        let put = || match entry.file_type() {
            kind if kind.is_dir() => fs::create_dir_all(&to),
            kind if kind.is_symlink() => symlink(fs::read_link(path)?, &to),
            _ => fs::copy(path, &to).map(drop),
        };
        put().with_context(|| format!("copying {}", path.display()))
    }

    /// The output of a program in there on both streams, with these variables alone and `input` to read.
    pub(crate) fn run(
        &self,
        variables: &[(&str, &str)],
        arguments: &[&str],
        input: &str,
    ) -> Result<String> {
        let mut command = as_root("chroot");
        command.arg(&self.folder).args(arguments).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(variables.iter().copied());
        talk(&mut command, input)
    }

    pub(crate) fn dpkg(&self, arguments: &[&str]) -> Result<String> {
        let mut dpkg = as_root("dpkg");
        // Its own log is this machine's otherwise.
        dpkg.arg("--root").arg(&self.folder).arg("--log=/dev/null").args(arguments);
        talk(&mut dpkg, "")
    }

    /// Every manual page below `folder` is whole, by this machine's `man`, which has nothing to warn of, and these are
    /// among them.
    pub(crate) fn has_pages(&self, folder: &str, ending: &str, names: &[&str]) -> Result<()> {
        let folder = self.folder.join(folder);
        for name in names {
            let page = folder.join(format!("{name}{ending}"));
            ensure!(page.is_file(), "there is no page {}", page.display());
        }
        for page in files::below(&folder, "*.[1-9]*")? {
            let mut man = Command::new("man");
            man.args(["--warnings=w", "--local-file"]).arg(folder.join(&page));
            let output = man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").output()?;
            let shown = String::from_utf8_lossy(&output.stdout);
            let warned = String::from_utf8_lossy(&output.stderr);
            let is_whole = shown.contains("NAME") && shown.contains("SEE ALSO");
            ensure!(is_whole && warned.is_empty(), "{}: {warned}\n{shown}", page.display());
        }
        Ok(())
    }

    /// Files in it whose name has `part`, from the root.
    pub(crate) fn named(&self, part: &str) -> Result<Vec<PathBuf>> {
        files::below(&self.folder, &format!("*{part}*"))
    }
}

/// Whether what a program printed ends with masu's statistics, which `MASU_STATISTICS_AT_EXIT=1` asks for. (Those of
/// coreutils close their streams before.)
pub(crate) fn is_served(printed: &str) -> bool {
    printed.lines().any(|line| line == "masu statistics")
}

/// A command that may change roots.
fn as_root(program: &str) -> Command {
    if machine::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", program]);
    command
}

pub(crate) fn talk(command: &mut Command, input: &str) -> Result<String> {
    let shown = commands::show(command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let mut to = child.stdin.take().context("it has no input")?;
    match to.write_all(input.as_bytes()) {
        // A program that reads nothing may end before it is written.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
        _ => drop(to),
    }
    let output = child.wait_with_output()?;
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() {
        bail!("`{shown}`: {}\n{printed}", output.status);
    }
    Ok(printed)
}

/// These packages and all that they need, by apt's data of this machine. A package that is only a name, provided by
/// others (awk), is in brackets.
fn needed(packages: &[&str]) -> Result<String> {
    let mut query = Command::new("apt-cache");
    query.args(["depends", "--recurse", "--installed"]);
    for weaker in ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"] {
        query.arg(format!("--no-{weaker}"));
    }
    let listed = commands::output(query.args(packages))?;
    let names = listed.lines().filter(|line| line.starts_with(char::is_alphanumeric));
    Ok(names.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_fail_say_what_they_printed() {
        let error =
            talk(Command::new("sh").args(["-c", "cat; echo no >&2; exit 3"]), "why").unwrap_err();
        let message = format!("{error:#}");
        assert!(
            message.contains("exit status: 3") && message.contains("why") && message.contains("no"),
            "{message}"
        );
        assert_eq!(talk(Command::new("cat").arg("-"), "x").unwrap(), "x");
    }
}
