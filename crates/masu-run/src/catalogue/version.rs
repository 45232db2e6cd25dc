//! Versions of allocators, where they cost little to know: the package database, the file's own
//! name, and the line glibc carries inside.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use super::known;
use crate::Libc;
use crate::proc_files;

/// The version of the first installed package of `packages`, or the text behind `.so.` if it has more than one number.
pub(super) fn of_library(path: &Path, packages: &[&str]) -> Option<String> {
    let is_packaged = path.starts_with("/usr/lib") || path.starts_with("/lib");
    let packaged = packages.iter().find_map(|package| of_package(package));
    if let Some(version) = packaged.filter(|_| is_packaged) {
        return Some(version);
    }
    let file = path.file_name()?.to_str()?;
    let (_, version) = file.split_once(".so.")?;
    version.contains('.').then(|| version.to_owned())
}

pub(super) fn of_c_library(path: &Path, libc: Libc) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let (start, end): (&[u8], &[u8]) = match libc {
        Libc::Glibc => (b"stable release version ", b".\n"),
        // musl keeps its version as a bare string before this one.
        _ => return of_package("musl"),
    };
    let from = position(&bytes, start)? + start.len();
    let length = position(&bytes[from..], end).filter(|&length| length < 32)?;
    String::from_utf8(bytes[from..from + length].to_vec()).ok()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The installed version of a Debian package, epoch and packaging left out.
fn of_package(package: &str) -> Option<String> {
    static INSTALLED: OnceLock<HashMap<String, String>> = OnceLock::new();
    INSTALLED.get_or_init(installed_packages).get(package).cloned()
}

/// The versions of the packages that are an allocator. No more is kept: every run copies the
/// memory of this process, and where the kernel forgets no peak the copy is a floor under the run's peak RSS.
fn installed_packages() -> HashMap<String, String> {
    let status = proc_files::text("/var/lib/dpkg/status").unwrap_or_default();
    let mut versions = HashMap::new();
    for entry in status.split("\n\n") {
        let line = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name));
        let (Some(package), Some(version)) = (line("Package: "), line("Version: ")) else {
            continue;
        };
        let is_installed = line("Status: ").is_some_and(|status| status.ends_with(" installed"));
        if is_installed && known::is_package(package) {
            let version = version.split_once(':').map_or(version, |(_, rest)| rest);
            let upstream = version.rsplit_once('-').map_or(version, |(upstream, _)| upstream);
            versions.insert(package.to_owned(), upstream.to_owned());
        }
    }
    versions
}
