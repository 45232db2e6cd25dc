//! The figures of one pattern's comparison: medians, ratios, the variants that did the work, and masu's standing
//! against the best peer.
//!
//! It relies on the lab's results files and its statistics. The hard part is the best peer. The runs that choose the
//! peer are also the runs that judge it, so luck counts for the peer and against masu. That is the cautious side.

use masu_lab::statistics::{self, Level, Measure, Ratio};
use masu_lab::tables::Table;
use masu_lab::{Ending, Run};

use super::pattern::Pattern;
use xtask::benchmarks::MEMORY_ONLY;

pub(crate) const OURS: &str = "masu";

/// The catalogue's name of the library of `workloads/floor`, which is no malloc and no peer.
pub(super) const FLOOR: &str = "floor";

/// The limits of a ratio: in the means against a peer, a ratio beyond one counts as the limit, so that no single
/// pattern decides.
const CLIPPED: (f64, f64) = (0.5, 2.0);

pub(crate) struct Figures {
    pub(crate) pattern: Pattern,
    /// The variants' labels, the reference's first. The floor's label is not among them.
    pub(crate) labels: Vec<String>,
    pub(super) runs: Vec<Run>,
    /// The floor's runs, alternating with the others. A pattern that the floor cannot hold has none.
    pub(super) floor: Vec<Run>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) peer: &'a str,
    /// masu's wall time relative to the peer's.
    pub(super) ratio: Ratio,
}

impl Figures {
    /// The figures of `table`, with its variants numbered by `labels`: a variant that was left out there has no runs.
    pub(crate) fn of(pattern: Pattern, labels: &[String], table: Table) -> Self {
        let own = table.case.labels();
        let (mut runs, mut floor) = (Vec::new(), Vec::new());
        for mut run in table.runs.into_iter().filter(|run| !run.replaced) {
            let Some(label) = own.get(run.variant) else { continue };
            if let Some(place) = labels.iter().position(|known| known == label) {
                run.variant = place;
                runs.push(run);
            } else if label == FLOOR {
                floor.push(run);
            }
        }
        Self { pattern, labels: labels.to_vec(), runs, floor }
    }

    /// Whether the pattern's time shows anything about malloc.
    pub(super) fn is_timed(&self) -> bool {
        !MEMORY_ONLY.contains(&self.pattern.name.as_str())
    }

    /// Whether every run of the variant did the work: patterns check their blocks, and print a
    /// checksum that is the same under every malloc.
    pub(super) fn works(&self, variant: usize) -> bool {
        self.runs_of(variant).count() > 0 && self.runs_of(variant).all(|run| self.did(run))
    }

    /// Whether a run did the same work as the reference's first run.
    fn did(&self, run: &Run) -> bool {
        let standard = self.runs_of(0).next().map(|run| &run.stdout);
        run.ending == Ending::Exited(0) && Some(&run.stdout) == standard
    }

    /// The floor's median wall time in seconds, where it did the work.
    pub(super) fn floor_s(&self) -> Option<f64> {
        let walls: Vec<f64> = self.floor.iter().map(|run| run.wall_s).collect();
        statistics::median(&walls).filter(|_| self.floor.iter().all(|run| self.did(run)))
    }

    /// (T − floor) / (T of the best peer − floor), from medians, where the floor is below both.
    pub(super) fn over_floor(&self) -> Option<f64> {
        let floor_s = self.floor_s()?;
        let ours_s = self.median(self.ours()?, Measure::Wall)? - floor_s;
        let best_s = self.median(self.best(Measure::Wall, is_peer)?, Measure::Wall)? - floor_s;
        (ours_s > 0.0 && best_s > 0.0).then_some(ours_s / best_s)
    }

    /// The variant's median, where it works.
    pub(crate) fn median(&self, variant: usize, measure: Measure) -> Option<f64> {
        let values: Vec<f64> = self.runs_of(variant).filter_map(|run| measure.of(run)).collect();
        statistics::median(&values).filter(|_| self.works(variant))
    }

    /// The variant's `measure` relative to the `base`'s, paired by rounds, where both work.
    pub(crate) fn ratio(&self, base: usize, variant: usize, measure: Measure) -> Option<Ratio> {
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

    pub(crate) fn ours(&self) -> Option<usize> {
        self.position(OURS)
    }

    /// masu against the one of these peers that has the least median.
    pub(super) fn standing(
        &self,
        measure: Measure,
        is_peer: fn(&str) -> bool,
    ) -> Option<Standing<'_>> {
        let best = self.best(measure, is_peer)?;
        let peer = self.labels.get(best)?;
        Some(Standing { peer, ratio: self.ratio(best, self.ours()?, measure)? })
    }

    pub(super) fn best(&self, measure: Measure, is_peer: fn(&str) -> bool) -> Option<usize> {
        let indices = (0..self.labels.len()).filter(|index| is_peer(&self.labels[*index]));
        let medians = indices.filter_map(|index| Some((index, self.median(index, measure)?)));
        medians.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
    }

    /// The variant with the least ratio to the first, which the tables show.
    pub(super) fn least_ratio(&self, measure: Measure) -> Option<usize> {
        let ratio = |index| match index {
            0 => self.median(0, measure).map(|_| 1.0),
            _ => self.ratio(0, index, measure).map(|ratio| ratio.estimate),
        };
        let ratios = (0..self.labels.len()).filter_map(|index| Some((index, ratio(index)?)));
        ratios.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
    }

    pub(crate) fn position(&self, label: &str) -> Option<usize> {
        self.labels.iter().position(|known| known == label)
    }

    fn runs_of(&self, variant: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }
}

/// Every malloc but masu, the C library's among them.
pub(super) fn is_peer(label: &str) -> bool {
    label != OURS
}

/// The peer with the best standing against masu over the patterns of `members` that both do, and masu's clipped
/// geometric mean against it.
pub(super) fn hardest<'a>(members: &[&'a Figures], measure: Measure) -> Option<(&'a str, f64)> {
    let first = members.first()?;
    let ours = first.ours()?;
    let peers = first.labels.iter().enumerate().filter(|(index, _)| *index != ours);
    let against = peers.filter_map(|(peer, label)| {
        let ratios = members.iter().filter_map(|one| one.ratio(peer, ours, measure));
        let clipped: Vec<f64> =
            ratios.map(|ratio| ratio.estimate.clamp(CLIPPED.0, CLIPPED.1)).collect();
        Some((label.as_str(), geometric_mean(&clipped)?))
    });
    against.max_by(|a, b| a.1.total_cmp(&b.1))
}

pub(super) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let count = ratios.len() as f64;
    (!ratios.is_empty()).then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count).exp())
}
