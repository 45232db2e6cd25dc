//! The Debian package: both commands, both libraries, headers, pkg-config files, manual pages and completions.
//!
//! It relies on `install` for the files, on dpkg's own tools for their needs and the needs of programs that are
//! linked with them, and on `dpkg-deb` for the archive. It is a native package: nothing of it runs when it is installed,
//! except that dpkg renews the dynamic linker's cache; a script empties root's cache when it is removed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::clean::{Root, talk};
use super::standalone::serves;
use super::{PAGES, Shop, VERSION, homepage, notices};
use crate::install::{Request, filled_in};
use crate::{commands, files, machine};

const CONTROL: &str = include_str!("../../../packaging/debian/control");
const COPYRIGHT: &str = include_str!("../../../packaging/debian/copyright");
/// It refers to CHANGELOG.md.
const CHANGELOG: &str = include_str!("../../../packaging/debian/changelog");
/// The script that dpkg runs before it removes the package.
const PRERM: &str = include_str!("../../../packaging/debian/prerm");
/// Warnings of lintian that are intended.
const OVERRIDES: &str = include_str!("../../../packaging/debian/overrides");

/// The package's maintainer, by the variables that Debian's own tools read.
fn maintainer() -> String {
    let name = variable("DEBFULLNAME").unwrap_or("The masu engineers".to_owned());
    format!("{name} <{}>", email().unwrap_or("masu@localhost".to_owned()))
}

/// The maintainer's address; without one the package has a placeholder.
pub(crate) fn email() -> Option<String> {
    variable("DEBEMAIL")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn control(cpu: &str, size_kib: &str, needs: &str) -> String {
    let (maintainer, homepage) = (maintainer(), homepage("Homepage: "));
    let fields = [("CPU", cpu), ("SIZE_KIB", size_kib), ("NEEDS", needs)];
    let more = [("MAINTAINER", &*maintainer), ("HOMEPAGE", &*homepage)];
    filled_in(CONTROL, &[&fields[..], &more].concat())
}

struct Tree {
    folder: PathBuf,
    /// As dpkg calls the CPU: `amd64`.
    cpu: String,
    /// As folders of libraries are called: `x86_64-linux-gnu`.
    triplet: String,
    /// When the sources were last changed, in seconds since 1970: the time of all that is made of them.
    changed: String,
}

pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    machine::provide_all(&[machine::DEBIAN])?;
    let bench = shop.bench("deb")?;
    let tree = Tree {
        folder: bench.join("tree"),
        cpu: architecture("DEB_HOST_ARCH")?,
        triplet: architecture("DEB_HOST_MULTIARCH")?,
        changed: changed(shop.root)?,
    };
    let libraries = format!("lib/{}", tree.triplet);
    let request = Request { prefix: "/usr".into(), libraries, staging: Some(tree.folder.clone()) };
    let files = request.perform(shop.root)?;
    tree.trim(&files)?;
    tree.document(shop)?;
    tree.control(&bench)?;
    Ok(vec![tree.pack(&shop.out)?])
}

impl Tree {
    /// Strips binaries, compresses manual pages, and moves files to Debian's folders.
    fn trim(&self, files: &[PathBuf]) -> Result<()> {
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let is_archive = name.ends_with(".a");
            if is_archive || !file.starts_with(self.folder.join("usr/share")) && is_elf(file)? {
                let how = if is_archive { "--strip-debug" } else { "--strip-unneeded" };
                let mut strip = Command::new("strip");
                strip.args([how, "--remove-section=.comment", "--remove-section=.note"]);
                commands::run(strip.arg(file))?;
            }
            if name.ends_with(".so") {
                // Here nobody starts a library.
                fs::set_permissions(file, Permissions::from_mode(0o644))?;
            }
            if file.starts_with(self.folder.join("usr/share/man")) {
                commands::run(Command::new("gzip").args(["-9", "--no-name"]).arg(file))?;
            }
        }
        let share = self.folder.join("usr/share/zsh");
        fs::rename(share.join("site-functions"), share.join("vendor-completions"))
            .context("Debian's folder for completions of zsh")
    }

    fn date(&self) -> Result<String> {
        let mut date = Command::new("date");
        commands::answer(
            date.args(["--utc", "--rfc-email", "--date"]).arg(format!("@{}", self.changed)),
        )
    }

    fn document(&self, shop: &Shop) -> Result<()> {
        let folder = self.folder.join("usr/share/doc/masu");
        files::write(&folder.join("copyright"), COPYRIGHT)?;
        let fields = [("MAINTAINER", &*maintainer()), ("DATE", &*self.date()?)];
        files::write(&folder.join("changelog"), filled_in(CHANGELOG, &fields))?;
        files::write(&folder.join("CHANGELOG.md"), shop.read("CHANGELOG.md")?)?;
        files::write(&self.folder.join("usr/share/lintian/overrides/masu"), OVERRIDES)?;
        let members = ["masu-cli", "masu-xquo", "masu-code-abi"];
        let notices = notices::of(shop.root, &members, machine::HOST)?;
        files::write(&folder.join("LICENSES-OF-OTHERS"), notices)?;
        let mut gzip = Command::new("gzip");
        gzip.args(["-9", "--no-name", "changelog", "CHANGELOG.md", "LICENSES-OF-OTHERS"]);
        commands::run(gzip.current_dir(folder))
    }

    fn control(&self, bench: &Path) -> Result<()> {
        let folder = self.folder.join("DEBIAN");
        fs::create_dir_all(&folder)?;
        let size_kib = commands::output(
            Command::new("du").args(["-sk", "--apparent-size"]).arg(&self.folder),
        )?;
        let size_kib = size_kib.split_whitespace().next().context("du says nothing")?;
        let needs = self.needs(bench)?;
        files::write(&folder.join("control"), control(&self.cpu, size_kib, &needs))?;
        files::write(&folder.join("triggers"), "activate-noawait ldconfig\n")?;
        files::write(&folder.join("prerm"), PRERM)?;
        fs::set_permissions(folder.join("prerm"), Permissions::from_mode(0o755))?;
        files::write(&folder.join("symbols"), self.symbols()?)?;
        let sums = commands::output(
            Command::new("sh")
                .current_dir(&self.folder)
                .args(["-c", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"]),
        )?;
        files::write(&folder.join("md5sums"), sums)
    }

    fn libraries(&self) -> [PathBuf; 3] {
        let folder = self.folder.join("usr/lib").join(&self.triplet);
        ["libmasu.so", "libmasu-secure.so", "libmasu_code.so"].map(|name| folder.join(name))
    }

    /// The packages whose libraries these programs need, as dpkg knows them: `libc6 (>= 2.34), …`.
    fn needs(&self, bench: &Path) -> Result<String> {
        // The tool looks for the source of a package where it is called.
        let source = "Source: masu\n\nPackage: masu\nArchitecture: any\n";
        files::write(&bench.join("debian/control"), source)?;
        let mut needs = Command::new("dpkg-shlibdeps");
        needs.current_dir(bench).args(["-O", "--warnings=0"]);
        needs.args(["masu", "xquo"].map(|name| self.folder.join("usr/bin").join(name)));
        needs.args(self.libraries());
        let answer_text = commands::output(&mut needs)?;
        let needs = answer_text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
        Ok(needs.context("dpkg-shlibdeps names no library")?.to_owned())
    }

    /// The version of this package that a program needs where it uses a symbol of its libraries.
    fn symbols(&self) -> Result<String> {
        let mut symbols = Command::new("dpkg-gensymbols");
        symbols.current_dir(self.folder.parent().unwrap_or(&self.folder));
        symbols.args(["-pmasu", "-q", "-O", &format!("-v{VERSION}")]);
        symbols.arg(format!("-P{}", self.folder.display()));
        symbols.args(self.libraries().map(|library| format!("-e{}", library.display())));
        commands::output(&mut symbols)
    }

    fn pack(&self, out: &Path) -> Result<PathBuf> {
        let package = out.join(format!("masu_{VERSION}_{}.deb", self.cpu));
        let mut pack = Command::new("dpkg-deb");
        pack.args(["--root-owner-group", "-Zxz", "--build"]).arg(&self.folder).arg(&package);
        // The same tree makes the same archive, whenever it is packed.
        pack.env("SOURCE_DATE_EPOCH", &self.changed);
        commands::run(&mut pack)?;
        Ok(package)
    }
}

/// When the sources were last changed: with the last commit, or when the packager says.
pub(crate) fn changed(root: &Path) -> Result<String> {
    const EPOCH: &str = "SOURCE_DATE_EPOCH";
    if let Ok(changed) = std::env::var(EPOCH) {
        return Ok(changed);
    }
    let mut ask = Command::new("git");
    commands::answer(ask.current_dir(root).args(["log", "-1", "--format=%ct"]))
        .with_context(|| format!("where there is no git, set {EPOCH}"))
}

/// A name of this machine's CPU, as dpkg has it.
fn architecture(name: &str) -> Result<String> {
    commands::answer(Command::new("dpkg-architecture").arg("--query").arg(name))
}

fn is_elf(path: &Path) -> Result<bool> {
    let contents = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(contents.starts_with(b"\x7fELF"))
}

/// A program that is linked with the package's library, and says which malloc it has.
const LINKED: &str = "\
#include <masu.h>
int main(void) { free(malloc(100)); puts(masu_version()); return 0; }
";

/// Makes bash read xquo's output for a record.
const WORDS: &str = r#"eval "set -- $(printf "it's  two\0" | xquo)"; printf %s "$1""#;

/// Makes bash read the completions, and print the commands that it completes.
const COMPLETED: &str =
    "for file in /usr/share/bash-completion/completions/*; do . $file; done; complete -p";

/// Installs it into a Debian that has a shell and the usual commands, uses it, and takes it out again.
pub(super) fn test(shop: &Shop, made: &[PathBuf]) -> Result<()> {
    let package = made.first().context("nothing was made")?.display().to_string();
    judged_by_lintian(&package)?;
    let root = Root::of_debian("deb", &["bash", "coreutils", "dash", "libgcc-s1"])?;
    let before = root.named("masu")?;
    root.dpkg(&["--install", &package])?;
    let listed = root.run(&[], &["masu", "list"], "")?;
    ensure!(listed.contains("masu"), "masu list: {listed}");
    serves(&root, &[], &["masu", "run", "--", "bash", "-c", "echo"])?;
    for library in ["libmasu.so", "libmasu-secure.so"] {
        serves(&root, &[("LD_PRELOAD", library)], &["bash", "-c", "echo"])?;
    }
    let words = root.run(&[], &["bash", "-c", WORDS], "")?;
    ensure!(words == "it's  two", "xquo: {words}");
    let completed = root.run(&[], &["bash", "-c", COMPLETED], "")?;
    ensure!(completed.contains("masu") && completed.contains("xquo"), "bash: {completed}");
    root.has_pages(
        "usr/share/man",
        ".gz",
        &[&PAGES[..], &["man3/masu.3", "man3/masu_code.3"]].concat(),
    )?;
    linked(shop, &root)?;
    root.dpkg(&["--remove", "masu"])?;
    let mut left = root.named("masu")?;
    left.retain(|path| !before.contains(path) && !path.starts_with("tmp"));
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

/// Debian's checker finds no error and nothing to warn of.
fn judged_by_lintian(package: &str) -> Result<()> {
    machine::provide_all(&[machine::DEBIAN_CHECKED, machine::MANUAL])?;
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--info"]);
    if email().is_none() {
        println!(
            "without DEBEMAIL the maintainer is a placeholder, which lintian is not asked about"
        );
        lintian.args(["--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog"]);
    }
    talk(lintian.arg(package), "")?;
    Ok(())
}

/// Links a program with the installed library by pkg-config's flags, and runs it in there.
fn linked(shop: &Shop, root: &Root) -> Result<()> {
    let bench = shop.bench("deb-linked")?;
    let (source, program) = (bench.join("program.c"), root.folder.join("tmp/program"));
    files::write(&source, LINKED)?;
    let triplet = architecture("DEB_HOST_MULTIARCH")?;
    let folder = root.folder.join("usr/lib").join(triplet).join("pkgconfig");
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_SYSROOT_DIR", &root.folder).env("PKG_CONFIG_LIBDIR", folder);
    ask.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1").env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let flags = commands::output(ask.args(["--cflags", "--libs", "masu"]))?;
    let mut compile = Command::new("gcc");
    commands::run(compile.arg(&source).arg("-o").arg(&program).args(flags.split_whitespace()))?;
    let printed = root.run(&[], &["/tmp/program"], "")?;
    ensure!(printed.trim() == VERSION, "a program linked with libmasu.so: {printed}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_becomes_a_package_that_dpkg_reads() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree {
            folder: folder.path().join("tree"),
            cpu: "amd64".into(),
            triplet: "x".into(),
            changed: "0".into(),
        };
        files::write(&tree.folder.join("usr/bin/masu"), "a program").unwrap();
        let control = control("amd64", "1", "libc6 (>= 2.34)");
        files::write(&tree.folder.join("DEBIAN/control"), control).unwrap();
        let package = tree.pack(folder.path()).unwrap();
        let field = |name: &str| {
            commands::output(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name))
                .unwrap()
        };
        assert_eq!(field("Version").trim(), VERSION);
        assert_eq!(tree.date().unwrap(), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(field("Depends").trim(), "libc6 (>= 2.34)");
        let contents =
            commands::output(Command::new("dpkg-deb").arg("--contents").arg(&package)).unwrap();
        assert!(
            contents.contains("root/root") && contents.contains("./usr/bin/masu"),
            "{contents}"
        );
    }
}
