//! `masu list`: the mallocs of this machine, and those a package would bring; or every setting; or every option of
//! masu's own.

mod options;
mod settings;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;

use anstyle::Style;
use anyhow::{Context, Result};
use masu_lab::report::{width, wrap};
use masu_lab::{Allocator, Catalogue, Libc};
use serde_json::{Value, json};

use crate::{arguments, embedded, line_wrap};

/// Allocators by the Debian package that brings them, from Debian 13 on and before.
///
/// COUPLING: the names are those of the lab's catalogue.
const PACKAGED: [(&str, &str, &str); 4] = [
    ("jemalloc", "libjemalloc2", "libjemalloc2"),
    ("mimalloc", "libmimalloc3", "libmimalloc2.0"),
    ("tbbmalloc", "libtbbmalloc2", "libtbbmalloc2"),
    ("tcmalloc", "libtcmalloc-minimal4t64", "libtcmalloc-minimal4"),
];

/// The columns that the table takes.
const WIDE: usize = 80;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

pub(crate) fn perform(arguments: &arguments::List) -> Result<()> {
    let page = if arguments.settings {
        settings::page()
    } else if arguments.options {
        if arguments.json { options::json() } else { options::page() }
    } else {
        let (catalogue, absences) = embedded::whole_catalogue();
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let missing = missing(&catalogue, &release);
        if arguments.json {
            json(&catalogue, &missing, &absences)
        } else {
            page(&catalogue, &missing, &absences, env::var_os("HOME").as_deref())
        }
    };
    let page = if arguments.json { page } else { line_wrap::fit(&page, width()) };
    write!(anstream::stdout(), "{page}").context("printing the list")
}

/// The name of an allocator that is not here, and the package that brings it.
type Missing = (&'static str, &'static str);

fn page(
    catalogue: &Catalogue,
    missing: &[Missing],
    absences: &[String],
    home: Option<&OsStr>,
) -> String {
    // A narrow terminal has files and notes below their mallocs.
    let is_narrow = width() < WIDE;
    let (gap, indent) = if is_narrow { ("\n  ", 2) } else { (" ", 18) };
    let file = if is_narrow { "" } else { "file" };
    let mut page =
        format!("{BOLD}{:<18}{:<11}{:<7}{file}{BOLD:#}\n", "allocator", "version", "for");
    for allocator in &catalogue.allocators {
        let Allocator { name, path, version, libc, notes, .. } = allocator;
        let version = version.as_deref().unwrap_or("–");
        let libc = library_of(*libc);
        page.push_str(&format!("{name:<17} {version:<10} {libc:<6}{gap}{}\n", short(path, home)));
        for line in notes.iter().flat_map(|note| wrap(note, width() - indent)) {
            page.push_str(&format!("{DIM}{:indent$}{line}{DIM:#}\n", ""));
        }
    }
    if !missing.is_empty() {
        page.push_str(&format!("\n{BOLD}{:<18}Debian package{BOLD:#}\n", "not installed"));
    }
    for (name, package) in missing {
        page.push_str(&format!("{name:<17} {package}\n"));
    }
    for absence in absences {
        page.push_str(&format!("\n{DIM}{absence}{DIM:#}\n"));
    }
    page
}

/// The version of the JSON; a change that could break a reader needs a new version.
const VERSION: u32 = 1;

fn json(catalogue: &Catalogue, missing: &[Missing], absences: &[String]) -> String {
    let allocator = |one: &Allocator| {
        let Allocator { name, path, version, libc, notes, .. } = one;
        json!({
            "name": name,
            "version": version,
            "for": library_of(*libc),
            "file": path.to_string_lossy(),
            "notes": notes,
        })
    };
    let allocators: Vec<Value> = catalogue.allocators.iter().map(allocator).collect();
    let missing = missing.iter().map(|(name, package)| json!({"name": name, "package": package}));
    let all = json!({
        "schema": "masu-list",
        "version": VERSION,
        "allocators": allocators,
        "not_installed": missing.collect::<Vec<Value>>(),
        "absences": absences,
    });
    format!("{all:#}\n")
}

/// The C library that a malloc is for, in a word.
fn library_of(libc: Libc) -> &'static str {
    match libc {
        Libc::Glibc => "glibc",
        Libc::Musl => "musl",
        Libc::Static => "any",
    }
}

/// Packaged allocators that are not here; `release` is the text of os-release(5).
fn missing(catalogue: &Catalogue, release: &str) -> Vec<Missing> {
    let line = |name: &str| release.lines().find_map(|line| line.strip_prefix(name));
    let version = line("VERSION_ID=").and_then(|text| text.trim_matches('"').parse::<u32>().ok());
    let is_before_13 = line("ID=") == Some("debian") && version.is_some_and(|number| number < 13);
    let absent = PACKAGED.iter().filter(|(name, ..)| catalogue.get(name, Libc::Glibc).is_none());
    absent
        .map(|(name, from_13, before)| (*name, if is_before_13 { *before } else { *from_13 }))
        .collect()
}

/// `path`, with `~` for the user's home as in a shell.
fn short(path: &Path, home: Option<&OsStr>) -> String {
    let home = home.map(Path::new).filter(|home| home.is_absolute() && home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_written_as_in_a_shell() {
        let path = Path::new("/home/a/.cache/masu/lib.so");
        assert_eq!(short(path, Some(OsStr::new("/home/a"))), "~/.cache/masu/lib.so");
        for home in [None, Some(""), Some("/"), Some("/home/ab"), Some("home")] {
            assert_eq!(short(path, home.map(OsStr::new)), "/home/a/.cache/masu/lib.so");
        }
    }

    #[test]
    fn the_json_has_what_is_there_and_what_is_not() {
        let missing = missing(&Catalogue::default(), "");
        let text = json(&Catalogue::default(), &missing, &["no musl here".to_owned()]);
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&list["schema"], &list["version"]), (&"masu-list".into(), &1.into()));
        assert_eq!(list["not_installed"][0]["package"], "libjemalloc2");
        assert_eq!(list["absences"][0], "no musl here");
    }

    #[test]
    fn packages_have_the_names_of_the_release() {
        let names = |release: &str| -> Vec<&str> {
            missing(&Catalogue::default(), release)
                .into_iter()
                .map(|(_, package)| package)
                .collect()
        };
        let new = ["libjemalloc2", "libmimalloc3", "libtbbmalloc2", "libtcmalloc-minimal4t64"];
        let old = ["libjemalloc2", "libmimalloc2.0", "libtbbmalloc2", "libtcmalloc-minimal4"];
        assert_eq!(names("VERSION_ID=\"12\"\nID=debian\n"), old);
        assert_eq!(names("VERSION_ID=\"13\"\nID=debian\n"), new);
        assert_eq!(names("ID=debian\n"), new, "testing has no number");
    }

    #[test]
    fn what_is_not_installed_is_offered_with_its_package() {
        let missing = missing(&Catalogue::default(), "");
        let page = page(&Catalogue::default(), &missing, &["no musl here".to_owned()], None);
        let page = anstream::adapter::strip_str(&page).to_string();
        snapbox::assert_data_eq!(page, snapbox::file!["list/tests/nothing.txt"]);
    }
}
