//! Conditions before any run that may mislead the reader.

use std::path::PathBuf;

use crate::plan::Prepared;
use masu_run::executor::once_each;
use masu_run::program::elf::exported_functions;
use masu_run::{Evidence, Row};

/// Warnings to read before the table of `prepared`, whose warm-ups gave `evidence`.
pub(super) fn surroundings(prepared: &Prepared, evidence: &[Evidence]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(preload) = std::env::var_os("LD_PRELOAD").filter(|value| !value.is_empty()) {
        warnings.push(format!(
            "LD_PRELOAD was set already ({}) and was kept behind each variant's library; \
             unset it to compare with the system's own malloc",
            preload.display()
        ));
    }
    let shuffles = prepared.rows.iter().any(|row| row.workload.shuffles_heap);
    let randomized = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
    if let Some(level) = randomized.ok().filter(|level| shuffles && level.trim() != "2") {
        warnings.push(format!(
            "the kernel does not make all addresses random (kernel.randomize_va_space is {}), so the heaps of other \
             mallocs begin at the same place in each run; set it to 2",
            level.trim()
        ));
    }
    let refusal = |row: &Row| row.workload.program.refusal.clone();
    if let Some(reason) = prepared.rows.first().and_then(refusal) {
        warnings.push(format!("only settings can be compared on this program: {reason}"));
    }
    for Row { variant, workload, .. } in &prepared.rows {
        if let (Some(library), None) = (&workload.program.linked_malloc, &variant.library) {
            warnings.push(format!(
                "`{}` runs {library}, with which the program is linked, and not the C library's \
                 malloc; `-a glibc` runs that one",
                variant.label
            ));
        }
    }
    warnings.extend(passed_by(&prepared.rows));
    for (row, evidence) in prepared.rows.iter().zip(evidence) {
        if !evidence.served.is_empty() && !evidence.not_served.is_empty() {
            warnings.push(format!(
                "`{}` did not serve every program: {}",
                row.variant.label,
                evidence.not_served.join("; ")
            ));
        }
    }
    warnings.extend(notes(prepared, evidence));
    warnings
}

/// The warning of the preloads that lack the function of jemalloc's own that the program calls.
fn passed_by(rows: &[Row]) -> Option<String> {
    let call = rows.first()?.workload.program.jemalloc_call?;
    let lacks = |library: &PathBuf| {
        let functions = exported_functions(library).unwrap_or_default();
        !functions.iter().any(|(name, _)| name == call)
    };
    let lacking: Vec<_> =
        rows.iter().filter(|row| row.variant.library.as_ref().is_some_and(lacks)).collect();
    if lacking.is_empty() {
        return None;
    }
    let labels: Vec<_> = lacking.iter().map(|row| format!("`{}`", row.variant.label)).collect();
    Some(format!(
        "{}: the program calls jemalloc's own function `{call}`, which only jemalloc and masu have; those blocks \
         come from jemalloc here as well",
        labels.join(", ")
    ))
}

/// The notes of the warm-ups, each once with the variants it applies to.
fn notes(prepared: &Prepared, evidence: &[Evidence]) -> Vec<String> {
    let said = prepared.rows.iter().zip(evidence).flat_map(|(row, evidence)| {
        evidence.notes.iter().map(|note| (row.variant.label.as_str(), note.clone()))
    });
    once_each(said).iter().map(|(note, labels)| format!("{labels}: {note}")).collect()
}
