//! Reading the variables: `MASU_…` of the environment, each once, and warning about wrong variables.
//!
//! Relies on the environment and on the rules. The hard idea is to cost nothing where there are no such variables: the list
//! is read once, and a variable is left at its first byte that differs from `MASU_`. A variable with that prefix that is no
//! option gets a warning, with the option of the most similar name.

use super::line::Line;
use super::rule::{self, PREFIX, Rule};
use super::{Index, SOURCES, Source, Sources, held};
use crate::platform::bounds::Bounded;
use crate::platform::environment::Environment;

/// Variables of this project that are no options of the allocator, by their names or prefixes: for the lab's counting
/// build, for tests, and the file of a heap profile.
const OTHERS: [&[u8]; 8] =
    [b"COUNT_FILE", b"OPERATIONS", b"OS_PAGE", b"PROFILE", b"SEED", b"SLOW", b"SOAK", b"TEST_"];

/// Reads the variables, if there is an environment and they were not read before; waits for a thread that is setting
/// options now. Returns the environment if it had variables of masu's, so that the caller applies them.
#[must_use]
pub(crate) fn read_once() -> Option<Environment> {
    if SOURCES.lock().variables_are_read {
        return None;
    }
    Environment::current().filter(read)
}

/// Reads the variables, if they were not read before; returns whether there were variables for the caller to apply.
#[cold]
#[inline(never)]
#[must_use]
pub(crate) fn read(environment: &Environment) -> bool {
    let mut sources = SOURCES.lock();
    if core::mem::replace(&mut sources.variables_are_read, true) {
        return false;
    }
    let mut any = false;
    for variable in environment.beginning_with(PREFIX) {
        let variable = variable.to_bytes();
        let mut parts = variable.splitn(2, |byte| *byte == b'=');
        if let (Some(end), Some(text)) = (parts.next(), parts.next()) {
            any = true;
            apply(&mut sources, end, text, environment);
        }
    }
    any
}

/// Warns about options without effect, and lists the options that are set where that is wanted.
pub(crate) fn report() {
    check_guards();
    if held(Index::Verbose) == Some(2) {
        list();
    }
}

/// Sets the option whose variable is `MASU_` and `end` to the value in `text`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_apply")]
fn apply(sources: &mut Sources, end: &[u8], text: &[u8], environment: &Environment) {
    let found = rule::all().iter().enumerate().find(|(_, rule)| rule.has_variable(end));
    let value = found.and_then(|(_, rule)| rule.parse(text));
    match (found, value) {
        (Some((place, _)), Some(value)) => sources.put(place, value, Source::Environment),
        _ if is_no_option(end) || !is_verbose(environment) => {}
        (Some((_, rule)), None) => warn_invalid(rule),
        (None, _) => warn_unknown(end),
    }
}

/// Warns where the user asks for guards and this build has none.
#[inline]
fn check_guards() {
    const SAID: &[u8] = if cfg!(feature = "secure") {
        b"masu: MASU_GUARD_RATE has no effect in the hardened build, which looks at every block\n"
    } else {
        b"masu: MASU_GUARD_RATE needs masu's feature `guards`\n"
    };
    let is_built_in = cfg!(all(feature = "guards", not(feature = "secure")));
    if !is_built_in && super::guard_rate() != 0 {
        crate::platform::kernel::write_error(SAID);
    }
}

/// Whether warnings are wanted. `MASU_VERBOSE` itself may not have been read yet.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_is_verbose")]
fn is_verbose(environment: &Environment) -> bool {
    let rule = rule::all().at(Index::Verbose as usize);
    let said = environment.get("MASU_VERBOSE").and_then(|text| rule.parse(text.to_bytes()));
    said.or_else(|| held(Index::Verbose)) != Some(0)
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_is_no_option")]
fn is_no_option(end: &[u8]) -> bool {
    OTHERS
        .iter()
        .any(|other| if other.ends_with(b"_") { end.starts_with(other) } else { end == *other })
}

/// Warns of a variable whose value its option does not accept.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_warn_invalid")]
fn warn_invalid(rule: &Rule) {
    let mut line = Line::new();
    line.text("masu: ").raw(PREFIX).capitals(rule.name()).text(" must be ");
    rule.write_accepted(&mut line);
    line.text("; its default holds").write();
}

/// Warns of a variable that is no option.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_warn_unknown")]
fn warn_unknown(end: &[u8]) {
    let mut line = Line::new();
    line.text("masu: there is no option ").raw(PREFIX);
    for byte in end.iter().take(LONGEST) {
        // No byte that a terminal would interpret.
        line.raw(&[if byte.is_ascii_graphic() { *byte } else { b'?' }]);
    }
    if let Some(rule) = nearest(end) {
        line.text("; is ").raw(PREFIX).capitals(rule.name()).text(" meant?");
    } else {
        line.text("; `masu list --options` shows those there are");
    }
    line.write();
}

/// Lists the options that are set, one a line.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_list")]
fn list() {
    for (place, rule) in rule::all().iter().enumerate() {
        let Some(value) = super::value(place) else { continue };
        let mut line = Line::new();
        line.text("masu: ").raw(rule.name()).text(" is ");
        rule.write_value(&mut line, value);
        let source = SOURCES.lock().of[place];
        let source = match source {
            Source::Environment => " by the environment",
            Source::Built => " by the program as it was built",
            Source::Program => " by the program",
            Source::Glibc => " by a setting of glibc's",
            Source::Nobody => "",
        };
        line.text(source).write();
    }
}

/// The most bytes of a name that are compared.
const LONGEST: usize = 32;

/// The option whose name is most similar to `end`, if its name is similar enough.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_nearest")]
fn nearest(end: &[u8]) -> Option<&'static Rule> {
    let (mut nearest, mut least) = (None, usize::MAX);
    for rule in rule::all() {
        let distance = edit_distance(rule.name(), end);
        // A third of the letters may be wrong.
        if distance < least && distance * 3 <= rule.name().len() {
            (nearest, least) = (Some(rule), distance);
        }
    }
    nearest
}

/// Levenshtein's distance between two names, ignoring case; a large number if `other` is empty or too long.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.variables_edit_distance")]
fn edit_distance(one: &[u8], other: &[u8]) -> usize {
    if other.is_empty() || other.len() >= LONGEST {
        return usize::MAX / 4;
    }
    let mut row = ROW;
    for (line, from) in one.iter().enumerate() {
        let (mut diagonal, mut before) = (line as u8, line as u8 + 1);
        for (to, steps) in other.iter().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + u8::from(!from.eq_ignore_ascii_case(to));
            diagonal = *steps;
            before = changed.min(before + 1).min(diagonal + 1);
            *steps = before;
        }
    }
    row[other.len()].into()
}

/// The distance of the empty name from a name of each length.
const ROW: [u8; LONGEST + 1] = {
    let mut row = [0; LONGEST + 1];
    let mut at = 0;
    while at <= LONGEST {
        row[at] = at as u8;
        at += 1;
    }
    row
};

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;

    use super::*;

    #[test]
    fn a_thread_that_starts_while_variables_are_read_waits_for_their_values() {
        // The default, so that no other test is disturbed.
        let (place, value) = (Index::Verbose as usize, 1);
        let mut sources = SOURCES.lock();
        sources.variables_are_read = true;
        let other = std::thread::spawn(move || {
            let _ = read_once();
            super::super::value(place)
        });
        // Until the thread sleeps, or has ended without waiting.
        while !sources.has_sleepers() && !other.is_finished() {
            std::thread::yield_now();
        }
        sources.put(place, value, Source::Environment);
        drop(sources);
        assert_eq!(other.join().expect("it ends"), Some(value));
    }

    fn nearest_name(end: &str) -> Option<String> {
        nearest(end.as_bytes()).map(|rule| String::from_utf8_lossy(rule.name()).into_owned())
    }

    #[test]
    fn a_misspelt_name_leads_to_the_option() {
        for (end, name) in [
            ("RETIAN", "retain"),
            ("RETAINS", "retain"),
            ("SHARD", "shards"),
            ("HUGEPAGES", "huge_pages"),
            ("CACHESIZE", "cache_size"),
            ("cache_size", "cache_size"),
            ("MEMORY_LIMITS", "memory_limit"),
        ] {
            assert_eq!(nearest_name(end).as_deref(), Some(name), "{end}");
        }
    }

    #[test]
    fn a_name_far_from_all_leads_nowhere() {
        for end in ["", "X", "HOME", "PURGE", concat!("RETAIN", "_OF_WHAT_IS_FREE_AND_WHAT_IS_NOT")]
        {
            assert_eq!(nearest_name(end), None, "{end}");
        }
    }

    #[test]
    fn a_text_variable_is_no_misspelling() {
        for text in crate::settings::TEXTS {
            let end = text.variable.strip_prefix("MASU_").expect("begins so");
            assert!(is_no_option(end.as_bytes()), "{end}");
        }
    }

    #[test]
    fn variables_of_the_project_s_tests_cause_no_warning() {
        assert!(is_no_option(b"SOAK") && is_no_option(b"TEST_FOLDER"));
        assert!(!is_no_option(b"SOAKS") && !is_no_option(b"RETAIN"));
    }
}
