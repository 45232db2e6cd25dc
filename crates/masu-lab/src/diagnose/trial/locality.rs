//! The reason why another malloc gains: it is faster itself, or it places blocks better.
//!
//! Relies on samples for the malloc's time, and on the kernel's time in the trial's runs. A malloc that took no time at
//! all would save the time of the old one, and no more. Any gain beyond that, and beyond the kernel's savings, is in
//! the program's own code.

use super::super::facts::Facts;
use super::super::finding::{Finding, Id, Remedy};
use super::super::thresholds::{CAUSE_SHARE, EXPLAINS};
use crate::prove::{Medians, Proof};
use masu_run::quantity::percent;

/// Adds the source of a shown gain to the findings, as far as it is known.
pub(super) fn name(findings: &mut [Finding], proof: &Proof, facts: &Facts) {
    let Some(sampled) = facts.sampled() else { return };
    for finding in findings.iter_mut().filter(|one| one.id == Id::GainShown) {
        let label = finding.remedies.first().and_then(|remedy| remedy.variant.clone());
        let winner = proof.remedies.iter().find(|one| Some(&one.medians.label) == label.as_ref());
        let shares = winner.and_then(|winner| shares(&proof.reference, &winner.medians));
        let Some((kernel, own)) = shares else { continue };
        let cpu_s = facts.clock.own_cpu_s().max(1e-9);
        let malloc = sampled.malloc_share * facts.clock.user_s / cpu_s;
        if own - malloc < CAUSE_SHARE {
            continue;
        }
        finding.evidence.insert(
            0,
            format!(
                "malloc and free take {} of its CPU time, by samples, and the kernel takes {} less: what is gained \
                 beyond that, {} at least, its own code gains, which misses the caches and the TLB less often",
                percent(malloc),
                percent(kernel.max(0.0)),
                percent(own - malloc)
            ),
        );
        let is_most = finding.share.is_some_and(|gain| own - malloc >= EXPLAINS * gain);
        if is_most && label.is_some_and(|label| !label.to_ascii_lowercase().contains("huge_pages"))
        {
            finding.id = Id::Locality;
            let mut gain = std::mem::take(&mut finding.title);
            gain[..1].make_ascii_lowercase();
            finding.title = format!("Its blocks lie far apart: {gain}");
            finding.remedies.push(Remedy::code(
                1,
                "keep together what is used together: arrays in place of single blocks, a heap for each structure",
                "a change of the program",
            ));
        }
    }
}

/// The savings of a variant over the reference, in the kernel and in the program's code, as shares of the reference's
/// CPU time.
fn shares(reference: &Medians, other: &Medians) -> Option<(f64, f64)> {
    let (whole_s, kernel_s) = (reference.cpu_s.filter(|cpu_s| *cpu_s > 0.0)?, reference.sys_s?);
    let kernel = (kernel_s - other.sys_s?) / whole_s;
    Some((kernel, (whole_s - other.cpu_s?) / whole_s - kernel))
}

#[cfg(test)]
mod tests {
    use super::super::super::judge::tests::reading::facts;
    use super::super::tests::{fine_so_far, proof, remedy};
    use super::super::with_trial;
    use super::*;

    fn named(label: &str, malloc_share: f64) -> Finding {
        let mut proof = proof(vec![remedy(label, 0.70, 0.68, 0.72)]);
        let medians = |cpu_s, sys_s| Medians {
            label: label.to_owned(),
            cpu_s: Some(cpu_s),
            sys_s: Some(sys_s),
            ..Medians::default()
        };
        proof.reference = medians(1.0, 0.2);
        proof.remedies[0].medians = medians(0.7, 0.1);
        let facts = facts(&format!(
            "clock = user_s 0.8, own_sys_s 0.2
             samples = samples 1_000, malloc_share {malloc_share}"
        ));
        let mut findings = with_trial(fine_so_far(), &proof);
        name(&mut findings, &proof, &facts);
        findings.remove(0)
    }

    #[test]
    fn what_a_malloc_cannot_gain_itself_its_blocks_gain() {
        // The variant takes 30 % less: 10 are the kernel's, and at most 4 the malloc's own.
        let locality = named("masu", 0.05);
        assert_eq!(locality.id, Id::Locality, "{locality:?}");
        assert!(locality.title.starts_with("Its blocks lie far apart: another malloc takes 30 %"));
        assert!(locality.evidence[0].contains("16 % at least"), "{locality:?}");
        let less = named("masu", 0.1);
        assert_eq!(less.id, Id::GainShown, "most of the gain may be others'");
        assert!(less.evidence[0].contains("12 % at least"), "{less:?}");
        assert_eq!(named("masu", 0.2).id, Id::GainShown, "that may be the malloc itself");
        let pages = named("glibc:huge_pages=1", 0.05);
        assert_eq!(pages.id, Id::GainShown);
        assert!(pages.evidence[0].contains("TLB"), "{pages:?}");
    }
}
