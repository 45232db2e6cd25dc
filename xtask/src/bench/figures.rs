//! What one pattern's comparison says: medians, ratios, who worked, and how masu stands against the
//! best peer.
//!
//! It relies on the lab's results files and its statistics. The hard part is the best peer: it is chosen by
//! the same runs it is then judged by, so that luck counts for it and against masu. That is the
//! cautious side.

use masu_lab::report::Table;
use masu_lab::statistics::{self, Level, Measure, Ratio};
use masu_lab::{Ending, Run};

use super::pattern::{MEMORY_ONLY, Pattern};

/// The malloc this is all about, as the catalogue calls it.
pub(super) const OURS: &str = "masu";

/// One pattern's figures; variants are meant by their index.
pub(super) struct Figures {
    pub(super) pattern: Pattern,
    /// The variants' labels, the reference's first.
    pub(super) labels: Vec<String>,
    /// The timed runs.
    pub(super) runs: Vec<Run>,
}

/// How masu stands against the best peer of a pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) peer: &'a str,
    /// masu's wall time relative to the peer's.
    pub(super) ratio: Ratio,
}

impl Figures {
    /// The figures of `table`, whose variants become those of `labels`: one that was left out there
    /// has no runs.
    pub(super) fn of(pattern: Pattern, labels: &[String], table: Table) -> Self {
        let own = table.case.labels();
        let mut runs: Vec<Run> = table.runs.into_iter().filter(|run| !run.replaced).collect();
        for run in &mut runs {
            let label = own.get(run.variant);
            let place = labels.iter().position(|known| Some(known) == label);
            run.variant = place.unwrap_or(usize::MAX);
        }
        Self { pattern, labels: labels.to_vec(), runs }
    }

    /// Whether its time says something about malloc.
    pub(super) fn is_timed(&self) -> bool {
        !MEMORY_ONLY.contains(&self.pattern.name.as_str())
    }

    /// Whether every run of the variant did the work: patterns check their blocks, and print a
    /// checksum that is the same under every malloc.
    pub(super) fn works(&self, variant: usize) -> bool {
        let Some(standard) = self.runs_of(0).next().map(|run| &run.stdout) else { return false };
        let did = |run: &Run| run.ending == Ending::Exited(0) && run.stdout == *standard;
        self.runs_of(variant).count() > 0 && self.runs_of(variant).all(did)
    }

    /// The variant's median, where it works.
    pub(super) fn median(&self, variant: usize, measure: Measure) -> Option<f64> {
        let values: Vec<f64> = self.runs_of(variant).filter_map(|run| measure.of(run)).collect();
        statistics::median(&values).filter(|_| self.works(variant))
    }

    /// The variant's `measure` relative to the `base`'s, paired by rounds, where both work.
    pub(super) fn ratio(&self, base: usize, variant: usize, measure: Measure) -> Option<Ratio> {
        let pairs: Vec<(f64, f64)> = self
            .runs_of(base)
            .filter_map(|run| {
                let partner = self.runs_of(variant).find(|other| other.round == run.round)?;
                Some((measure.of(run)?, measure.of(partner)?))
            })
            .collect();
        let others = self.labels.len() - 1;
        let both_work = self.works(base) && self.works(variant);
        statistics::ratio(&pairs, others, Level::TABLE).filter(|_| both_work)
    }

    /// masu's index.
    pub(super) fn ours(&self) -> Option<usize> {
        self.labels.iter().position(|label| label == OURS)
    }

    /// masu against the peer with the shortest median, the C library's malloc among the peers.
    pub(super) fn standing(&self) -> Option<Standing<'_>> {
        let ours = self.ours()?;
        let peers = (0..self.labels.len()).filter(|index| *index != ours);
        let timed = peers.filter_map(|peer| Some((peer, self.median(peer, Measure::Wall)?)));
        let (best, _) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let peer = self.labels.get(best)?;
        Some(Standing { peer, ratio: self.ratio(best, ours, Measure::Wall)? })
    }

    fn runs_of(&self, variant: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }
}

/// The geometric mean; none of nothing.
pub(super) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "patterns are few")]
    let count = ratios.len() as f64;
    (!ratios.is_empty()).then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count).exp())
}
