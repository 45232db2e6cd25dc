//! `cargo xtask package KIND… [--test]`: what people install, each built from the tree by one command.
//!
//! It relies on cargo for builds and on `install` for the layout of a distribution's package. The hard idea
//! is the test: a package is right if it works where nothing else of this machine is, so each is installed in
//! a clean place (an empty root folder, one of Debian's packages alone, a fresh virtual environment) and used.

mod clean;
mod crates;
mod debian;
mod notices;
mod standalone;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::steps;

const USAGE: &str = "\
package: say what: crates, deb, wheel, static, or all; --test installs and uses it in a clean place, too
  crates   a .crate of each crate that people get, each built from its package
  deb      a Debian package: both commands, both libraries, headers, manual pages, completions;
           DEBFULLNAME and DEBEMAIL say who answers for it
  wheel    a Python wheel: `pip install` gives `masu`
  static   masu and xquo as static programs, which run on any Linux of this CPU";

/// A kind of package.
struct Kind {
    name: &'static str,
    make: fn(&Shop) -> Result<Vec<PathBuf>>,
    test: fn(&Shop, &[PathBuf]) -> Result<()>,
}

const KINDS: [Kind; 4] = [
    Kind { name: "crates", make: crates::make, test: crates::test },
    Kind { name: "static", make: standalone::make, test: standalone::test },
    Kind { name: "wheel", make: wheel::make, test: wheel::test },
    Kind { name: "deb", make: debian::make, test: debian::test },
];

/// Where packages are made.
struct Shop<'a> {
    root: &'a Path,
    /// Where cargo builds.
    target: PathBuf,
    /// Where packages lie in the end.
    out: PathBuf,
}

impl Shop<'_> {
    /// An empty folder to make something in.
    fn bench(&self, name: &str) -> Result<PathBuf> {
        let folder = self.out.join("making").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }

    fn read(&self, path: &str) -> Result<String> {
        let path = self.root.join(path);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

/// What all packages carry of the licences.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes the packages that are asked for.
///
/// # Errors
///
/// When the options make no sense, or a package cannot be made or does not work.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let (kinds, is_tested) = parse(options)?;
    let target = steps::target_folder()?;
    let out = target.join("packages");
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let shop = Shop { root, target, out };
    let mut all = Vec::new();
    for kind in kinds {
        let made = steps::take(&format!("package {}", kind.name), || (kind.make)(&shop))?;
        if is_tested {
            steps::take(&format!("test {}", kind.name), || (kind.test)(&shop, &made))?;
        }
        all.extend(made);
    }
    for path in all {
        println!("{}", path.display());
    }
    Ok(())
}

/// The kinds that are asked for, in the order in which they are made, and whether they are tested.
fn parse(options: &[&str]) -> Result<(Vec<&'static Kind>, bool)> {
    let is_tested = options.contains(&"--test");
    let names: Vec<&str> = options.iter().copied().filter(|option| *option != "--test").collect();
    if let Some(unknown) =
        names.iter().find(|name| **name != "all" && KINDS.iter().all(|kind| kind.name != **name))
    {
        bail!("package has no `{unknown}`\n{USAGE}");
    }
    if names.is_empty() {
        bail!("{USAGE}");
    }
    let is_asked = |kind: &&Kind| names.contains(&"all") || names.contains(&kind.name);
    Ok((KINDS.iter().filter(is_asked).collect(), is_tested))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_what_is_made() {
        let asked = |options: &[&str]| {
            let (kinds, is_tested) = parse(options).unwrap();
            (kinds.iter().map(|kind| kind.name).collect::<Vec<_>>(), is_tested)
        };
        assert_eq!(asked(&["deb"]), (vec!["deb"], false));
        assert_eq!(asked(&["--test", "wheel", "crates"]), (vec!["crates", "wheel"], true));
        assert_eq!(asked(&["all"]).0.len(), KINDS.len());
        for wrong in [&[][..], &["--test"], &["rpm"], &["deb", "--tests"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
