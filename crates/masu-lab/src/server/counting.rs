//! Allocations a request: counted on a server of their own, under the counting build of
//! `libmasu.so`, and never while anything is timed.
//!
//! How often a program asks for memory is the program's doing and not the malloc's, so it is counted
//! once for each combination of parameters and holds for every variant that has it.

use super::place::Place;
use super::{Servers, Warm};
use crate::execute::Ending;
use crate::load::Met;
use crate::{CountPage, Error, Row, Stop, Variant};

/// Bursts before the one that is counted, for what a server does only once.
const BURSTS_BEFORE: usize = 2;

impl Servers<'_> {
    /// Counts for the variant at `index`, unless that was done. A server that does not run under
    /// the counting library is not counted.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
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

    /// Allocations a request of the variant at `index`, if they were counted.
    pub(super) fn counted_of(&self, index: usize) -> Option<f64> {
        let parameters = &self.rows[index].variant.parameters;
        self.counted.iter().find(|(known, _)| known == parameters)?.1
    }

    fn count_on_a_server(&mut self, index: usize, stop: &Stop) -> Result<Option<f64>, Error> {
        let Some(library) = &self.plan.counting else { return Ok(None) };
        // The page has a folder of its own: some servers take none that is not empty.
        let beside = Place::new("count")?;
        let page = CountPage::create(&beside.file("count"))?;
        let row = &self.rows[index];
        let text = |value: &std::path::Path| value.to_string_lossy().into_owned();
        let variables = page.variables().map(|(name, path)| (name.to_owned(), text(path)));
        let variant = Variant {
            label: row.variant.label.clone(),
            library: Some(library.clone()),
            variables: variables.to_vec(),
            parameters: row.variant.parameters.clone(),
            ..Variant::default()
        };
        let row = Row { variant, workload: row.workload.clone(), optional: false };
        let number = self.rows.len() + index;
        let mut warm = self.start(&row, number, stop)?;
        let counted = self.count_requests(&mut warm, &page, number, stop);
        self.guard.forget(number);
        super::Running::end(vec![warm.running]);
        counted
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a burst stay far below 2^53")]
    fn count_requests(
        &self,
        warm: &mut Warm,
        page: &CountPage,
        number: usize,
        stop: &Stop,
    ) -> Result<Option<f64>, Error> {
        // How many requests a load command makes is not known.
        let Some(client) = &mut warm.client else { return Ok(None) };
        let mut burst = || -> Met {
            let abort = self.guard.begin(number, stop);
            let met = client.run(self.plan.burst / 4, &abort);
            self.guard.end();
            met
        };
        for _ in 0..BURSTS_BEFORE {
            burst();
        }
        let before = page.totals()?;
        let met = burst();
        let after = page.totals()?;
        if stop.requested() {
            return Err(Error::Stopped);
        }
        let lives = warm.running.ended().is_none_or(|ending| ending == Ending::Stopped);
        let requests = met.answered + met.failures.total();
        let calls = |totals: crate::Totals| totals.allocations + totals.reallocations;
        let made = calls(after).saturating_sub(calls(before));
        let is_known = lives && after.programs > 0 && met.answered > 0;
        Ok(is_known.then(|| made as f64 / requests as f64))
    }
}
