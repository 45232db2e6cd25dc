//! The changes to a program's memory that leave the program alone: the mallocs that can
//! serve it and the settings of each that are worth a try, and the size of each change.
//!
//! Relies on the catalogue for the available mallocs and on `variant/settings.rs` for their settings. The hard idea is
//! the order: where time is short, the first candidates are tried and the others listed as not tried. The remedies that
//! a diagnosis names come first, by the cost of their cause; then the candidates that helped most programs.

use serde::Serialize;

use crate::Plan;
use crate::diagnose::Finding;
use crate::results::LeftOut;
use crate::suite::Named;
use masu_run::variant::family;
use masu_run::{Catalogue, Program, Row, Spec, Variant};

/// The size of a change: the steps of a ladder, the smallest first. Above all of them stands
/// allocating less, below them a cause that lies elsewhere; neither can be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// One setting of the malloc that the program has.
    Setting,
    /// Several settings of that malloc.
    Settings,
    /// Another malloc as it comes.
    Malloc,
    MallocAndSettings,
}

impl Step {
    /// Every step, the smallest change first.
    pub const ALL: [Step; 4] =
        [Step::Setting, Step::Settings, Step::Malloc, Step::MallocAndSettings];
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) label: String,
    pub(super) step: Step,
    pub(super) settings: usize,
    /// The candidate that is the same malloc without settings; only if that does well is this one tried.
    pub(super) parent: Option<usize>,
}

/// The settings to try of a malloc, the most promising first. Sizes are far above the memory of most programs, so
/// that one of them stands for all: 64M and 1G differ in a program's memory only where the
/// setting keeps free memory.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "glibc",
        &[
            // For a heap that grows and shrinks at every turn: one of the two alone makes mappings instead.
            "top_pad=64M,trim_threshold=64M",
            // For large arrays and many blocks: fewer faults, fewer misses of the TLB.
            "huge_pages=1",
            // The same for blocks that are large enough for mappings of their own.
            "mmap_threshold=32M,top_pad=64M,trim_threshold=1G",
            "top_pad=1M,trim_threshold=16M",
            // For threads that wait for each other, or memory that each keeps for itself.
            "arenas=1",
            "arenas=2",
            "tcache_count=2000",
            "mmap_threshold=32M",
            // For less memory: large blocks go back, and so does free memory at the end.
            "mmap_threshold=64K,trim_threshold=64K",
        ],
    ),
    (
        "masu",
        &[
            "trim_threshold=1G", "purge_delay=0", "huge_pages=0", "huge_pages=1", "cache_size=4M",
            "arenas=1",
        ],
    ),
    (
        "jemalloc",
        &["purge_delay=-1", "purge_delay=0", "huge_pages=1", "arenas=2", "background_thread=1"],
    ),
    ("mimalloc", &["purge_delay=-1", "purge_delay=0", "huge_pages=1", "huge_pages=0"]),
    (
        "tcmalloc",
        &[
            "max_total_thread_cache_bytes=256M",
            "release_rate=0",
            "release_rate=10",
            "aggressive_decommit=1",
        ],
    ),
];

/// The number of settings of the program's own malloc that are tried before another malloc is.
const OWN_FIRST: usize = 2;

/// Other mallocs, those first that helped most programs; a malloc that is not listed here comes last.
const MALLOCS: [&str; 4] = ["masu", "mimalloc", "jemalloc", "tcmalloc"];

/// The variants worth a try on `program`, those of `first` before all others: the reference, then variants that
/// may be left out where they do not work. Settings that this machine's release of a malloc lacks are not among them.
pub fn worth_trying(catalogue: &Catalogue, program: &Program, first: &[Spec]) -> Vec<Named> {
    let mut found = catalogue.variants_for(program);
    let Some((reference, others)) = found.split_first_mut() else { return Vec::new() };
    let place = |variant: &Variant| {
        MALLOCS.iter().position(|name| *name == family(&variant.label)).unwrap_or(MALLOCS.len())
    };
    others.sort_by_key(place);
    // The settings of a malloc that a program is linked with are not known.
    let own = if program.linked_malloc.is_none() { reference.allocator.as_str() } else { "" };
    let mut settings = settings_of(own).into_iter();
    let mut specs: Vec<Spec> = first.to_vec();
    specs.extend(settings.by_ref().take(OWN_FIRST));
    specs.extend(others.iter().map(|variant| Spec::bare(&*variant.label)));
    specs.extend(settings);
    specs.extend(others.iter().flat_map(|variant| settings_of(&variant.label)));
    let mut labels: Vec<String> = Vec::new();
    specs.retain(|spec| {
        let Ok(variant) = catalogue.resolve(spec, program) else { return false };
        let is_first = !labels.contains(&variant.label) && changes(&variant, reference);
        labels.push(variant.label);
        is_first
    });
    let reference = Named { spec: Spec::bare("system"), optional: false };
    let optional = |spec| Named { spec, optional: true };
    std::iter::once(reference).chain(specs.into_iter().map(optional)).collect()
}

/// Leaves out the variants of `plan` that are what the program runs on: they would be compared with themselves.
pub fn leave_out_itself(plan: &mut Plan) {
    for case in &mut plan.cases {
        let Some(reference) = case.rows.first().map(|row| row.variant.clone()) else { continue };
        let is_itself = |row: &mut Row| {
            row.variant.label != reference.label && !changes(&row.variant, &reference)
        };
        let itself = case.rows.extract_if(.., is_itself);
        case.left_out.extend(itself.map(|row| LeftOut {
            label: row.variant.label,
            reason: "it is what the program runs on".to_owned(),
        }));
    }
}

fn changes(variant: &Variant, reference: &Variant) -> bool {
    variant.library != reference.library || count_settings(variant) > 0
}

/// The remedies that a diagnosis names, in the order of its findings: the most expensive cause first.
pub fn named_by(findings: &[Finding]) -> Vec<Spec> {
    let remedies = findings.iter().flat_map(|finding| &finding.remedies);
    remedies.filter_map(|remedy| remedy.variant.as_ref()?.parse().ok()).collect()
}

fn settings_of(allocator: &str) -> Vec<Spec> {
    let known = SETTINGS.iter().find(|(malloc, _)| *malloc == family(allocator));
    let settings = known.map_or(&[][..], |(_, settings)| *settings);
    let spec = |text: &&str| format!("{allocator}:{text}").parse::<Spec>().ok();
    settings.iter().filter_map(spec).collect()
}

/// The kind of change of each of `variants`, the first of which is the reference and is no change.
pub(super) fn of(variants: &[&Variant]) -> Vec<Candidate> {
    let Some((reference, others)) = variants.split_first() else { return Vec::new() };
    let candidate = |variant: &&Variant| {
        let count = count_settings(variant);
        let stays = variant.library == reference.library;
        let step = match (stays, count) {
            (true, 0 | 1) => Step::Setting,
            (true, _) => Step::Settings,
            (false, 0) => Step::Malloc,
            (false, _) => Step::MallocAndSettings,
        };
        let is_parent = |one: &&Variant| one.library == variant.library && count_settings(one) == 0;
        let has_parent = step == Step::MallocAndSettings;
        let parent = others.iter().position(is_parent).filter(|_| has_parent);
        Candidate { label: variant.label.clone(), step, settings: count, parent }
    };
    others.iter().map(candidate).collect()
}

fn count_settings(variant: &Variant) -> usize {
    variant.label.parse::<Spec>().map_or(0, |spec| spec.settings.len())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::diagnose::{Confidence, Id, Remedy};
    use crate::results::Rounds;
    use masu_run::variant::settings::Setting;
    use masu_run::{Input, Libc, Places, Workload};

    fn variant(label: &str, library: Option<&str>) -> Variant {
        let allocator = label.split(':').next().unwrap_or_default().to_owned();
        let library = library.map(Into::into);
        Variant { label: label.to_owned(), allocator, library, ..Variant::default() }
    }

    #[test]
    fn every_setting_of_the_table_is_one_that_its_malloc_has() {
        for (malloc, settings) in SETTINGS {
            assert_eq!(settings_of(malloc).len(), settings.len(), "{malloc}");
            for spec in settings_of(malloc) {
                for (name, _) in &spec.settings {
                    assert!(Setting::named(name).is_some_and(|one| one.is_of(malloc)), "{spec}");
                }
            }
        }
    }

    #[test]
    fn a_change_is_as_large_as_its_malloc_and_its_settings() {
        let variants = [
            variant("glibc", None),
            variant("glibc:arenas=1", None),
            variant("masu:purge_delay=0", Some("/masu.so")),
            variant("glibc:top_pad=1M,trim_threshold=1M", None),
            variant("masu", Some("/masu.so")),
        ];
        let candidates = of(&variants.iter().collect::<Vec<_>>());
        let steps: Vec<Step> = candidates.iter().map(|one| one.step).collect();
        let expected = [Step::Setting, Step::MallocAndSettings, Step::Settings, Step::Malloc];
        assert_eq!(steps, expected);
        let parents: Vec<Option<usize>> = candidates.iter().map(|one| one.parent).collect();
        assert_eq!(parents, [None, Some(3), None, None]);
        assert_eq!(candidates[2].settings, 2);
        assert!(Step::ALL.is_sorted());
    }

    #[test]
    fn a_malloc_that_the_program_runs_on_is_not_compared_with_itself() {
        let workload = Workload::new(["sh"], Input::Empty).unwrap();
        let variants =
            [("system", None), ("glibc", None), ("glibc:arenas=1", None), ("masu", Some("/m.so"))]
                .map(|(label, library)| variant(label, library));
        let mut plan = Plan::single(&workload, &variants, Rounds::Fixed(1));
        leave_out_itself(&mut plan);
        let case = &plan.cases[0];
        let left: Vec<&str> = case.rows.iter().map(|row| row.variant.label.as_str()).collect();
        assert_eq!(left, ["system", "glibc:arenas=1", "masu"]);
        assert_eq!(case.left_out[0].label, "glibc");
    }

    #[test]
    fn the_program_as_it_is_comes_first_and_must_work() {
        let program = Program::find(OsStr::new("sh")).unwrap();
        let named = worth_trying(&Catalogue::find(&Places::default()), &program, &[]);
        assert!(!named[0].optional && named[0].spec.settings.is_empty(), "{named:?}");
        assert!(named[1..].iter().all(|one| one.optional));
        let labels: Vec<String> = named.iter().map(|one| one.spec.to_string()).collect();
        assert_eq!(labels[0], "system");
        if program.libc == Libc::Glibc {
            assert_eq!(labels[1], "glibc:top_pad=64M,trim_threshold=64M");
            assert_eq!(labels[2], "glibc:huge_pages=1", "huge pages are second");
        }
        let mut once = labels.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), labels.len(), "{labels:?}");
    }

    fn finding(variants: &[&str]) -> Finding {
        let remedy = |variant: &&str| Remedy::setting("", (*variant).to_owned(), "");
        Finding::new(Id::MallocLock, Confidence::High, "").remedied(variants.iter().map(remedy))
    }

    #[test]
    fn what_a_diagnosis_names_is_tried_first_and_once() {
        let program = Program::find(OsStr::new("sh")).unwrap();
        if program.libc != Libc::Glibc {
            return;
        }
        let remedies = ["glibc:arenas=1", "no-such-malloc", "glibc:huge_pages=1"];
        let first = named_by(&[finding(&[]), finding(&remedies)]);
        let named = worth_trying(&Catalogue::find(&Places::default()), &program, &first);
        let labels: Vec<String> = named.iter().map(|one| one.spec.to_string()).collect();
        let pair = "glibc:top_pad=64M,trim_threshold=64M";
        assert_eq!(labels[..4], ["system", "glibc:arenas=1", "glibc:huge_pages=1", pair]);
        assert_eq!(labels.iter().filter(|label| *label == "glibc:huge_pages=1").count(), 1);
    }
}
