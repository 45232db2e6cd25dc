//! What is written about the Debian package: control, copyright, changelog, and what lintian need not tell.
//!
//! It relies on Debian's policy for the fields, and on its machine-readable form of copyright files.

use super::VERSION;
use crate::package::homepage;

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

/// `DEBIAN/control`.
pub(super) fn control(cpu: &str, size_kib: &str, needs: &str) -> String {
    format!(
        "Package: masu\n\
         Version: {VERSION}\n\
         Architecture: {cpu}\n\
         Maintainer: {}\n\
         Installed-Size: {size_kib}\n\
         Depends: {needs}\n\
         Section: devel\n\
         Priority: optional\n\
         {}\
         Description: memory allocator, and a lab that says whether a program needs one\n\
         \x20masu is a malloc (libmasu.so) that is fast and small in memory, and a command\n\
         \x20that runs a program under every malloc of the machine and says which is\n\
         \x20better, by how much, and how sure that is; why a program is slow; and what\n\
         \x20to set.\n\
         \x20.\n\
         \x20With it come xquo, a filter that quotes records for bash, and\n\
         \x20libmasu_code.so, which loads relocatable objects densely for programs that\n\
         \x20compile code while they run.\n",
        maintainer(),
        homepage().map(|address| format!("Homepage: {address}\n")).unwrap_or_default()
    )
}

/// `copyright`. The text of the Apache License is on every Debian.
pub(super) fn copyright(mit: &str) -> String {
    let holder =
        mit.lines().find_map(|line| line.strip_prefix("Copyright (c) ")).unwrap_or_default();
    // The form wants an empty line to be a dot, and every line indented.
    let text = mit.lines().skip_while(|line| !line.starts_with("Permission"));
    let text: String =
        text.map(|line| format!(" {}\n", if line.is_empty() { "." } else { line })).collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: masu\n\
         \n\
         Files: *\n\
         Copyright: {holder}\n\
         License: Expat or Apache-2.0\n\
         Comment: LICENSES-OF-OTHERS.gz in this folder has those of the crates that are linked in.\n\
         \n\
         License: Expat\n\
         {text}\n\
         License: Apache-2.0\n\
         \x20On Debian systems the text of the Apache License, version 2.0, is in\n\
         \x20/usr/share/common-licenses/Apache-2.0.\n"
    )
}

/// `changelog` in Debian's form, which refers to CHANGELOG.md; `date` is in mail format.
pub(super) fn changelog(date: &str) -> String {
    format!(
        "masu ({VERSION}) unstable; urgency=medium\n\
         \n\
         \x20 * What users notice is in CHANGELOG.md.gz in this folder.\n\
         \n\
         \x20-- {}  {date}\n",
        maintainer()
    )
}

/// Warnings of lintian that are intended.
pub(super) const OVERRIDES: &str = "\
# Programs are started with LD_PRELOAD=libmasu.so, whatever its version is; the
# version that a program needs which is linked with it is in the symbols file.
masu: shared-library-lacks-version
masu: package-name-doesnt-match-sonames
# It looks up which versions of mallocs are installed, and starts no process for
# that. Where there is no such file it goes without.
masu: uses-dpkg-database-directly
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_their_lines_have_the_form_that_dpkg_wants() {
        let mit = include_str!("../../../../LICENSE-MIT");
        for text in [control("amd64", "100", "libc6"), copyright(mit)] {
            for line in text.lines() {
                let is_field = line.split_once(": ").is_some_and(|(name, _)| !name.contains(' '));
                assert!(is_field || line.is_empty() || line.starts_with(' '), "{line}");
                assert!(line.len() < 80 || is_field, "{line}");
            }
        }
        assert!(copyright(mit).contains("Copyright: 2026 The masu engineers\n"));
        assert!(copyright(mit).contains(" .\n THE SOFTWARE IS PROVIDED"));
    }
}
