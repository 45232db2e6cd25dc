//! The check-up of a machine: its permissions, its limits, the cost of its kernel's services, its noise.
//!
//! The check-up needs no rights and changes nothing. A fact "limits" only where somebody should do something, and then
//! it names the remedy.

use serde::Serialize;

use masu_run::{Catalogue, Machine, Prices};

mod facts;
mod noise;

pub use facts::{Fact, Standing};
pub use noise::Noise;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checkup {
    /// `masu-doctor`.
    pub schema: &'static str,
    /// Grows when a reader of the JSON would have to change.
    pub version: u32,
    pub machine: Machine,
    /// The machine's permissions and limits, in the order of the page.
    pub facts: Vec<Fact>,
    pub prices: Prices,
    pub noise: Noise,
}

impl Checkup {
    /// Examines this machine, which takes about three seconds; `catalogue` holds the mallocs found on it.
    pub fn here(catalogue: &Catalogue) -> Checkup {
        Checkup {
            schema: "masu-doctor",
            version: 1,
            machine: Machine::here(),
            facts: facts::here(catalogue),
            noise: Noise::measure(),
            prices: Prices::measure(),
        }
    }

    pub fn limits(&self) -> usize {
        let facts = self.facts.iter().filter(|fact| fact.standing == Standing::Limits);
        let prices = self.prices.known.iter().filter(|price| price.remark.is_some());
        facts.count() + prices.count() + usize::from(self.noise.remark.is_some())
    }
}
