//! `cargo xtask package KIND… [--test]`: the packages that people install, each built from the tree by one command.
//!
//! It relies on cargo for builds and on `install` for the layout of a distribution's package. The hard part is the
//! test: a package is right if it works where nothing else of this machine is, so each is installed in a clean place
//! (an empty root folder, one of Debian's packages alone, a fresh virtual environment) and used.

pub(crate) mod clean;
mod crates;
pub(crate) mod debian;
mod notices;
mod standalone;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;

use crate::{commands, files};

/// Packages, into target/packages
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// `crates`: a .crate of each crate that people get; `deb`: a Debian package with both
    /// commands and libraries, headers, manual pages and completions (DEBFULLNAME and DEBEMAIL say who answers for
    /// it); `wheel`: a Python wheel, by which `pip install` gives `masu`; `static`: masu and xquo as static programs,
    /// which run on any Linux of this CPU, with manual pages and completions; `static-aarch64`: the same for another
    #[arg(
        required = true,
        value_name = "KIND",
        value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name).chain(["all"]))
    )]
    kinds: Vec<String>,
    /// Install and use each in a clean place, too
    #[arg(long)]
    test: bool,
}

impl Request {
    /// The requested kinds, in the order in which they are made.
    fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        let is_asked = |name: &str| self.kinds.iter().any(|asked| asked == "all" || asked == name);
        KINDS.iter().filter(move |kind| is_asked(kind.name))
    }
}

struct Kind {
    name: &'static str,
    make: fn(&Shop) -> Result<Vec<PathBuf>>,
    test: fn(&Shop, &[PathBuf]) -> Result<()>,
}

static KINDS: [Kind; 5] = [
    Kind { name: "crates", make: crates::make, test: crates::test },
    Kind { name: "static", make: standalone::make, test: standalone::test },
    Kind { name: "static-aarch64", make: standalone::make_other, test: standalone::test_other },
    Kind { name: "wheel", make: wheel::make, test: wheel::test },
    Kind { name: "deb", make: debian::make, test: debian::test },
];

struct Shop<'a> {
    root: &'a Path,
    target: PathBuf,
    out: PathBuf,
}

impl Shop<'_> {
    fn bench(&self, name: &str) -> Result<PathBuf> {
        let folder = self.out.join("making").join(name);
        files::empty_folder(&folder)?;
        Ok(folder)
    }

    fn read(&self, path: &str) -> Result<String> {
        files::read(&self.root.join(path))
    }
}

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Manual pages of a package with both commands: a command's own, and a subcommand's.
const PAGES: [&str; 3] = ["man1/masu.1", "man1/masu-run.1", "man1/xquo.1"];

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Cargo.toml's addresses begin so until the owner sets them.
pub(crate) const PLACEHOLDER: &str = "https://example.org";

/// A line with this field and the project's page on the web; nothing while there is none.
fn homepage(field: &str) -> String {
    let address = env!("CARGO_PKG_HOMEPAGE");
    if address.starts_with(PLACEHOLDER) { String::new() } else { format!("{field}{address}\n") }
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let target = commands::target_folder()?;
    let out = target.join("packages");
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let shop = Shop { root, target, out };
    let mut all = Vec::new();
    for kind in request.kinds() {
        let made = commands::step(&format!("package {}", kind.name), || (kind.make)(&shop))?;
        if request.test {
            commands::step(&format!("test {}", kind.name), || (kind.test)(&shop, &made))?;
        }
        all.extend(made);
    }
    for path in all {
        println!("{}", path.display());
    }
    Ok(())
}
