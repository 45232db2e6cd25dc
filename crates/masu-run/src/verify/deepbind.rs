//! The cause of crashes under every preloaded malloc: libraries that a program opens with `RTLD_DEEPBIND`.
//!
//! Such a library finds the C library's `free` first and hands it blocks of another malloc. glibc's loader logs in
//! which order each object is searched (`LD_DEBUG=scopes`): an object that is searched before the program was opened
//! with that flag.

use std::path::Path;

use super::loader::run_with_logs;
use crate::execute::Conditions;
use crate::{Libc, Limits, Stop, Variant, Workload};

/// The first library that `workload` opens with that flag under `variant`, by name; none where there is none or nothing
/// was seen.
pub fn culprit(
    workload: &Workload,
    variant: &Variant,
    limits: &Limits,
    stop: &Stop,
) -> Option<String> {
    if workload.program.libc != Libc::Glibc {
        return None;
    }
    let conditions = Conditions::from(limits.clone());
    let (_, logs) = run_with_logs(workload, variant, "scopes", &conditions, stop).ok()?;
    logs.iter().find_map(|log| bound_deep(log))
}

/// The first object that `log` says is searched before the program is, with the C library among its dependencies, by its
/// file's name. One that is searched first alone was linked so (`-Bsymbolic`) and reaches its own symbols only.
fn bound_deep(log: &str) -> Option<String> {
    let mut objects = log.split("object=").skip(1);
    // The program itself, which is searched first by right.
    objects.next();
    objects.find_map(|object| {
        let (name, rest) = object.split_once(" [")?;
        let (_, scope) = rest.split_once("scope 0: ")?;
        let mut scope = scope.lines().next()?.split_whitespace();
        let file = Path::new(name).file_name()?.to_string_lossy().into_owned();
        let is_first = scope.next()? == name && file.contains(".so");
        (is_first && scope.any(|other| other.contains("/libc.so."))).then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_searched_first_is_found() {
        let log = include_str!("deepbind/log.txt");
        assert_eq!(bound_deep(log).as_deref(), Some("xmlwriter.so"));
        let usual = log.replace("scope 0: /usr/lib/php/xmlwriter.so", "scope 0: php");
        assert_eq!(bound_deep(&usual), None);
        assert_eq!(bound_deep(""), None);
    }
}
