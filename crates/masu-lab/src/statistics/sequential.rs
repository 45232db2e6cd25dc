//! Looks at results while they grow, which find no difference that is not there.
//!
//! The error that a table may have is *spent*: look number k uses 1/(k(k+1)) of it (a half, a sixth, a twelfth
//! …), and the last look, when the budget ends, all that is left: 1/(k+1) after k looks, because 1/(j(j+1)) =
//! 1/j − 1/(j+1) and the sum telescopes. Looks are taken at numbers of rounds that grow by one half each time.
//!
//! All looks together keep what a single one promises. Let a variant be equal to the reference. The order
//! within each round is drawn for itself, so exchanging the two variants' runs in any rounds gives a series as
//! likely as the first. It changes no round's duration, so neither how many rounds fit into a budget nor which
//! looks could be taken. *Given* the number of rounds and of looks, the signs of the paired differences are
//! therefore fair coins, all that a signed-rank interval relies on, and the chances that looks 1 to k or the
//! last one err add up to at most 1/(1·2) + … + 1/(k(k+1)) + 1/(k+1) = 1 of the whole. Stopping by hand on
//! knowing the ratios is not covered: show none before it is final.
//!
//! Spending is the idea of Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70
//! (1983); their boundaries are narrower and assume normal noise.

use serde::{Deserialize, Serialize};

use super::pairs_needed;

/// The most that an interval may reach from its estimate, relative to it, where the caller does not say: one per cent.
pub const DEFAULT_PRECISION: f64 = 0.01;

/// The error that all verdicts of a table may have together, or the part of it that a look may spend.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(f64);

impl Level {
    /// The error of a table: 0.008. A fifth of the hundredth that
    /// `CONFIDENCE` allows is kept back for an assumption of the method
    /// that a machine need not keep: that a run leaves nothing behind that affects the next one.
    pub const TABLE: Level = Level(0.008);

    /// The error of the whole table, as a probability.
    pub fn error(self) -> f64 {
        self.0
    }

    /// The error one interval may have when `others` of them share this level (Bonferroni).
    pub(super) fn of_each(self, others: usize) -> f64 {
        self.0 / others.max(1) as f64
    }

    pub(crate) fn divided(self, part: usize) -> Level {
        Level(self.0 / part as f64)
    }
}

/// One look at a table: its number, and the error that it may spend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Counted from one.
    pub number: usize,
    /// The error this look may make.
    pub level: Level,
}

impl Look {
    /// The one look at a table whose number of rounds was fixed beforehand: it spends everything.
    pub const ONLY: Look = Look { number: 1, level: Level::TABLE };
}

impl Default for Look {
    fn default() -> Look {
        Look::ONLY
    }
}

/// The times of looks at a growing table, and the error that each look may spend.
#[derive(Debug, Clone)]
pub struct Looks {
    taken: usize,
    next: usize,
}

impl Looks {
    /// The looks at a table that compares `others` variants with the reference. The first is due as
    /// soon as it can give a verdict.
    pub fn new(others: usize) -> Looks {
        Looks::beginning_at(pairs_needed(others, Level::TABLE.divided(2)))
    }

    /// The looks of which the first is due after `first` rounds.
    pub(crate) fn beginning_at(first: usize) -> Looks {
        Looks { taken: 0, next: first }
    }

    /// The rounds before the first look; meaningful only while no look was taken.
    pub(crate) fn first(&self) -> usize {
        self.next
    }

    /// Whether a look is due after `rounds` whole rounds; it then counts as taken. The caller must ask
    /// after every round, so that the times of looks do not depend on the results.
    pub fn due(&mut self, rounds: usize) -> Option<Look> {
        if rounds < self.next {
            return None;
        }
        self.taken += 1;
        self.next = rounds + rounds.div_ceil(2);
        let (number, next) = (self.taken, self.taken + 1);
        Some(Look { number, level: Level::TABLE.divided(number * next) })
    }

    /// The last look, when the budget of time or rounds ends, whatever the results before: it
    /// spends all the error that is left. Where a look is due at the same time, ask for this one *instead*,
    /// so that no error is spent twice on the same rounds.
    pub fn last(&self) -> Look {
        Look { number: self.taken + 1, level: Level::TABLE.divided(self.taken + 1) }
    }
}

#[cfg(test)]
mod tests;
