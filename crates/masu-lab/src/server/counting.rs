//! Allocations per request, counted on a separate server under the counting build of `libmasu.so`; that server is not
//! timed.
//!
//! The count depends on the program and not on the malloc, so it is made once for each combination of parameters and
//! holds for every variant.

use super::place::Place;
use super::{Load, Servers, Warm};
use crate::load::Met;
use masu_run::execute::Ending;
use masu_run::{CountPage, Error, Row, Stop, Variant};

/// The fewest bursts for a count: the first ones contain work that a server does only once.
const BURSTS_MIN: usize = 3;

/// The most bursts; the last one then gives the count, however much it still changes. A virtual
/// machine's compiler, which asks for more memory than the requests it works for, takes this many.
const BURSTS_MAX: usize = 20;

/// The largest difference between two bursts in a row at which counting ends.
const STEADY_SHARE: f64 = 0.1;

impl Servers<'_> {
    /// Counts for the variant at `index`, unless that was done; a server that does not run under the counting build is
    /// not counted.
    pub(super) fn count(&mut self, index: usize, stop: &Stop) -> Result<(), Error> {
        let parameters = &self.rows[index].variant.parameters;
        if self.counted.iter().any(|(known, _)| known == parameters) {
            return Ok(());
        }
        let counted = match self.count_on_a_server(index, stop) {
            Err(Error::Stopped) => return Err(Error::Stopped),
            Err(_) => None,
            Ok(counted) => counted,
        };
        self.counted.push((parameters.clone(), counted));
        Ok(())
    }

    pub(super) fn counted_of(&self, index: usize) -> Option<f64> {
        let parameters = &self.rows[index].variant.parameters;
        self.counted.iter().find(|(known, _)| known == parameters)?.1
    }

    fn count_on_a_server(&mut self, index: usize, stop: &Stop) -> Result<Option<f64>, Error> {
        // The number of requests of a load command is not known.
        let Load::Http { .. } = self.plan.load else { return Ok(None) };
        let Some(library) = &self.plan.counting else { return Ok(None) };
        // The page has a folder of its own, because some servers accept only an empty data folder.
        let beside = Place::new("count")?;
        let page = CountPage::create(&beside.file("count"))?;
        let row = &self.rows[index];
        let variant = Variant {
            label: row.variant.label.clone(),
            parameters: row.variant.parameters.clone(),
            ..page.variant(library)
        };
        let row = Row { variant, workload: row.workload.clone(), optional: false };
        let number = self.rows.len() + index;
        let mut warm = self.start(&row, number, stop)?;
        let counted = self.count_requests(&mut warm, &page, number, stop);
        self.guard.forget(number);
        super::Running::end(vec![warm.running]);
        counted
    }

    fn count_requests(
        &self,
        warm: &mut Warm,
        page: &CountPage,
        number: usize,
        stop: &Stop,
    ) -> Result<Option<f64>, Error> {
        let Some(client) = &mut warm.client else { return Ok(None) };
        let mut burst = || -> Met {
            let abort = self.guard.begin(number, stop);
            let met = client.run(self.plan.burst / 4, &abort);
            self.guard.end();
            met
        };
        let mut last = None;
        for number in 1..=BURSTS_MAX {
            let before = page.totals()?;
            let met = burst();
            let after = page.totals()?;
            if stop.requested() {
                return Err(Error::Stopped);
            }
            let lives = warm.running.ended().is_none_or(|ending| ending == Ending::Stopped);
            if !lives || after.programs == 0 || met.answered == 0 {
                return Ok(None);
            }
            let requests = met.answered + met.failures.total();
            let count = after.requests.saturating_sub(before.requests) as f64 / requests as f64;
            let was = last.replace(count);
            if number >= BURSTS_MIN && was.is_some_and(|was| is_steady(was, count)) {
                break;
            }
        }
        Ok(last)
    }
}

/// Whether a server has done its one-time work: it made `was` allocations a request before and now makes
/// `count`.
fn is_steady(was: f64, count: f64) -> bool {
    (count - was).abs() <= STEADY_SHARE * was.max(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_still_fall_are_not_steady() {
        assert!(is_steady(31.0, 31.0) && is_steady(2.1, 2.0) && is_steady(0.0, 0.0));
        assert!(!is_steady(300.0, 31.0) && !is_steady(0.0, 1.0));
    }
}
