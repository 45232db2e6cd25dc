//! `masu compare`: which variant is better for a program, and how sure that is.
//!
//! Relies on the lab to run and judge. What is decided here is who takes part: an allocator that
//! was named must work, one that was merely found is left out with its reason.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use masu_lab::report::{self, Document};
use masu_lab::results::LeftOut;
use masu_lab::{
    Catalogue, CompareOptions, Comparison, Error, Input, Places, Spec, Stop, Variant, Workload,
    compare,
};

use crate::arguments;
use crate::aside;
use crate::carried;
use crate::exit::Ending;
use crate::progress::Progress;

/// How long standard input is read before masu says what it is doing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A comparison ready to be made.
pub(crate) struct Request {
    workload: Workload,
    variants: Vec<Variant>,
    /// Whether the user named the variants, so that none may be left out.
    are_named: bool,
    options: CompareOptions,
}

impl Request {
    /// Looks up the program and the allocators.
    pub(crate) fn prepare(arguments: arguments::Compare) -> Result<Self> {
        let arguments::Compare { variants: specs, runs, json, seed, program } = arguments;
        let workload = Workload::new(program.words, own_input()?)?;
        let are_named = !specs.is_empty();
        let (variants, left_out) =
            if are_named { (named(&specs, &workload)?, Vec::new()) } else { found(&workload)? };
        let mut options =
            CompareOptions { seed, results: json, left_out, ..CompareOptions::default() };
        if let Some(runs) = runs {
            options.runs = usize::try_from(runs).context("so many runs do not fit")?;
        }
        Ok(Self { workload, variants, are_named, options })
    }

    /// Runs everything and prints the page.
    pub(crate) fn perform(mut self) -> Result<Ending> {
        let stop = Stop::on_signals()?;
        let progress = Progress::on_stderr();
        aside::say(report::plan(&self.variants, self.options.runs));
        let comparison = loop {
            let made =
                compare(&self.workload, &self.variants, &self.options, &stop, &mut |event| {
                    progress.observe(&event);
                });
            match made {
                Ok(comparison) => break comparison,
                Err(error) if self.can_leave_out(&error) => {}
                Err(error) => {
                    progress.finish();
                    return Err(error.into());
                }
            }
        };
        progress.finish();
        print(&comparison)?;
        if let Some(file) = &self.options.results {
            aside::say(format_args!("Every run is in {}.", file.display()));
        }
        Ok(if comparison.stopped { Ending::Stopped } else { Ending::Done })
    }

    /// Takes the variant that `error` is about out of the comparison, if it may be missing.
    fn can_leave_out(&mut self, error: &Error) -> bool {
        let (Error::NotInEffect { variant, reason } | Error::CannotRun { variant, reason }) = error
        else {
            return false;
        };
        let position = self.variants.iter().position(|one| one.label == *variant);
        // The reference is what the others are compared with, and alone it says nothing.
        let Some(position) = position.filter(|at| *at > 0 && self.variants.len() > 2) else {
            return false;
        };
        if self.are_named {
            return false;
        }
        let gone = self.variants.remove(position);
        self.options.left_out.push(LeftOut { label: gone.label, reason: reason.clone() });
        true
    }
}

/// The variants the user named; one alone is held against the system's malloc.
fn named(specs: &[Spec], workload: &Workload) -> Result<Vec<Variant>> {
    let program = &workload.program;
    let catalogue = carried::catalogue_for(specs, program)?;
    let mut variants = Vec::new();
    if let [alone] = specs
        && alone.allocator != "system"
    {
        variants.extend(catalogue.variants_for(program).into_iter().take(1));
    }
    for spec in specs {
        variants.push(catalogue.resolve(spec, program)?);
    }
    Ok(variants)
}

/// Every malloc of this machine that fits the program, the system's first, and those that do not.
fn found(workload: &Workload) -> Result<(Vec<Variant>, Vec<LeftOut>)> {
    let program = &workload.program;
    program.preloadable()?;
    let mut left_out = Vec::new();
    let catalogue = carried::catalogue(program.libc).unwrap_or_else(|error| {
        left_out.push(LeftOut { label: "masu".to_owned(), reason: error.to_string() });
        Catalogue::find(&Places::default())
    });
    let variants = catalogue.variants_for(program);
    for allocator in &catalogue.allocators {
        let is_known = |label: &str| label == allocator.name;
        if !allocator.preloaded || variants.iter().any(|one| is_known(&one.label)) {
            continue;
        }
        let spec = Spec { allocator: allocator.name.clone(), settings: Vec::new() };
        if let Err(error) = catalogue.resolve(&spec, program) {
            left_out.push(LeftOut { label: spec.allocator, reason: error.to_string() });
        }
    }
    Ok((variants, left_out))
}

/// Standard input, read to its end; says so where that takes a while, because whoever gave none
/// on purpose would wait for ever.
fn own_input() -> Result<Input> {
    let (done, waiting) = mpsc::channel::<()>();
    thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            aside::say(
                "Reading standard input to its end, to give it to every run; \
                 </dev/null if\nthere is none.",
            );
        }
    });
    let input = Input::own();
    drop(done);
    Ok(input?)
}

fn print(comparison: &Comparison) -> Result<()> {
    let page = report::page(&Document::from(comparison));
    aside::say("");
    write!(anstream::stdout(), "{page}").context("printing the comparison")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(labels: &[&str], are_named: bool) -> Request {
        let variant = |label: &&str| Variant {
            label: (*label).to_owned(),
            allocator: (*label).to_owned(),
            version: None,
            library: None,
            tunables: Vec::new(),
            variables: Vec::new(),
            ..Variant::default()
        };
        Request {
            workload: Workload::new(["sh"], Input::Empty).unwrap(),
            variants: labels.iter().map(variant).collect(),
            are_named,
            options: CompareOptions::default(),
        }
    }

    fn not_in_effect(variant: &str) -> Error {
        Error::NotInEffect { variant: variant.to_owned(), reason: "because".to_owned() }
    }

    #[test]
    fn a_malloc_that_was_merely_found_is_left_out_with_its_reason() {
        let mut request = request(&["glibc", "masu", "jemalloc"], false);
        assert!(request.can_leave_out(&not_in_effect("masu")));
        let labels: Vec<&str> = request.variants.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["glibc", "jemalloc"]);
        let left_out: Vec<(&str, &str)> =
            request.options.left_out.iter().map(|one| (&*one.label, &*one.reason)).collect();
        assert_eq!(left_out, [("masu", "because")]);
    }

    #[test]
    fn a_malloc_that_was_merely_found_and_crashes_is_left_out_too() {
        let mut request = request(&["glibc", "masu", "jemalloc"], false);
        let crash = Error::CannotRun { variant: "masu".to_owned(), reason: "crash".to_owned() };
        assert!(request.can_leave_out(&crash));
        assert_eq!(request.options.left_out[0].reason, "crash");
    }

    #[test]
    fn a_malloc_that_was_named_must_work() {
        let mut request = request(&["glibc", "masu", "jemalloc"], true);
        assert!(!request.can_leave_out(&not_in_effect("masu")));
        assert_eq!(request.variants.len(), 3);
    }

    #[test]
    fn neither_the_reference_nor_the_last_rival_is_left_out() {
        let mut three = request(&["glibc", "masu", "jemalloc"], false);
        assert!(!three.can_leave_out(&not_in_effect("glibc")));
        let mut two = request(&["glibc", "masu"], false);
        assert!(!two.can_leave_out(&not_in_effect("masu")));
    }

    #[test]
    fn other_errors_leave_nobody_out() {
        let mut request = request(&["glibc", "masu", "jemalloc"], false);
        assert!(!request.can_leave_out(&Error::Stopped));
    }
}
