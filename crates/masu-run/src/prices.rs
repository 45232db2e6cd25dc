//! The cost of the kernel's services on this machine: a system call, a page fault, a thread, and so on.
//!
//! It relies on the kernel door, which makes each of them once, and on nothing that needs rights. A finding multiplies
//! counts by these prices, so each price comes with the spread of its measurements. The hard part is to measure the
//! price and not the neighbors: each service is measured in many short batches, and the median batch counts, so that
//! the batches which other programs disturbed do not.

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::named;

use crate::execute;

mod measured;

/// The most batches of a price, besides a first one that does not count.
const BATCHES: usize = 41;

/// The fewest batches of a price, however long they take.
const BATCHES_MIN: usize = 5;

/// The longest time to measure a price, apart from the fewest batches.
const PATIENCE: Duration = Duration::from_millis(350);

named! {
    /// A service of the kernel's that has a price.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Service {
        /// A system call that does nothing: `getppid`.
        SystemCall = "system call",
        /// The first write to an OS page: the kernel finds one, clears it and maps it.
        PageFault = "page fault",
        /// An OS page that was written to is given back, by `munmap`.
        PageReturn = "page given back",
        /// The first write to a huge page.
        HugePageFault = "huge-page fault",
        /// `brk` one OS page up, and back down; the page is not touched.
        BreakPair = "brk up and down",
        /// `mmap` of 256 KiB and `munmap`, not touched.
        MapPair = "mmap + munmap",
        /// A thread that does nothing, started and joined.
        Thread = "thread start + join",
        /// A thread wakes another on the same CPU and sleeps until it is woken in turn: the system calls of one
        /// side and one switch.
        ContextSwitch = "context switch",
        /// `FUTEX_WAKE` of a thread that sleeps, for the caller: the cost of releasing a contended lock.
        FutexWake = "futex wake",
        /// `write` of 16 bytes into a pipe that has room.
        SmallWrite = "small write",
        /// `write` of a line of 16 bytes to a terminal that has room, without the work of the program that shows the
        /// terminal.
        TerminalWrite = "write to a terminal",
        /// The extra time of each of the two stops of a call that is counted; see [`calls`](crate::calls).
        CountedCall = "counted call",
        /// The part of that time that counts as CPU time of the program.
        CountedCallCpu = "counted call, CPU",
    }
}

impl Service {
    /// The limit in nanoseconds for the cheaper quarter of the batches: a service above it is so expensive that
    /// programs which use it much will be slow here. With the cause of such a price. `docs/doctor.md` has the reason
    /// for each limit.
    fn expensive_from(self) -> (f64, &'static str) {
        const SANDBOX: &str = "system calls are expensive here, as under gVisor, WSL 1, ptrace or an emulator; \
                               what saves calls (top_pad, larger buffers) gains more than elsewhere";
        const FAULTS: &str = "fresh memory is expensive here, as in virtual machines whose host hands out memory \
                              when it is touched; a malloc that gives less back gains more than elsewhere";
        const WAKING: &str = "waking threads is expensive here, as in virtual machines whose idle CPUs must be \
                              woken by the host; fewer, longer pieces of work gain more than elsewhere";
        match self {
            Service::SystemCall => (1_000.0, SANDBOX),
            Service::BreakPair | Service::MapPair => (10_000.0, SANDBOX),
            Service::SmallWrite | Service::TerminalWrite => (10_000.0, SANDBOX),
            Service::CountedCall | Service::CountedCallCpu => (100_000.0, WAKING),
            Service::PageFault | Service::PageReturn => (5_000.0, FAULTS),
            Service::HugePageFault => (1_000_000.0, FAULTS),
            Service::Thread => (200_000.0, WAKING),
            Service::ContextSwitch | Service::FutexWake => (20_000.0, WAKING),
        }
    }
}

/// The price of one service, in nanoseconds of wall-clock time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub service: Service,
    /// The time of the median batch.
    pub median_ns: f64,
    /// The time below which a quarter of the batches were.
    pub lower_ns: f64,
    /// The time above which a quarter of the batches were.
    pub upper_ns: f64,
    pub batches: usize,
    /// The number of times that a batch has the service done.
    pub batch: u32,
    /// The meaning of a price as high as this; none where the price is usual.
    pub remark: Option<String>,
}

/// The reason why a service has no price here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpriced {
    pub service: Service,
    pub reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// The services that could be measured, in the order of [`Service::ALL`].
    pub known: Vec<Price>,
    pub unknown: Vec<Unpriced>,
}

impl Prices {
    /// Measures all of them, in about two seconds.
    ///
    /// On a busy machine the measurement takes longer, but no longer than a few batches of each service need.
    pub fn measure() -> Prices {
        Prices::measure_some(&Service::ALL)
    }

    pub fn measure_some(services: &[Service]) -> Prices {
        // A run in progress would take the child that moves the break for its own, and would disturb the other
        // measurements.
        let _alone = execute::alone();
        let mut prices = Prices::default();
        for &service in services {
            match measured::batches(service) {
                Ok((batch, took)) => prices.known.push(Price::new(service, batch, &took)),
                Err(error) => {
                    prices.unknown.push(Unpriced { service, reason: error.to_string() });
                }
            }
        }
        prices
    }

    pub fn of(&self, service: Service) -> Option<f64> {
        self.known.iter().find(|price| price.service == service).map(|price| price.median_ns)
    }
}

impl Price {
    /// The price from batches that did the service `batch` times each, with the nanoseconds of each batch.
    fn new(service: Service, batch: u32, took: &[f64]) -> Price {
        let mut each: Vec<f64> = took.iter().map(|took| took / f64::from(batch)).collect();
        each.sort_by(f64::total_cmp);
        let at = |quarter: usize| each[(each.len() - 1) * quarter / 4];
        let median_ns = at(2);
        let (limit, remark) = service.expensive_from();
        Price {
            service,
            median_ns,
            lower_ns: at(1),
            upper_ns: at(3),
            batches: each.len(),
            batch,
            // Other programs only ever add to a batch: the cost of even the cheaper batches is the service's own.
            remark: (at(1) >= limit).then(|| remark.to_owned()),
        }
    }
}

/// Takes batches until there are enough of them, or the time is up; the first one does not count. A batch
/// returns the nanoseconds it took.
fn sample(mut batch: impl FnMut() -> io::Result<f64>) -> io::Result<Vec<f64>> {
    batch()?;
    let began = Instant::now();
    let mut took = Vec::with_capacity(BATCHES);
    while took.len() < BATCHES && (took.len() < BATCHES_MIN || began.elapsed() < PATIENCE) {
        took.push(batch()?);
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_batch_counts_and_a_wild_one_does_not() {
        let price = Price::new(Service::SystemCall, 10, &[1000.0, 1200.0, 1100.0, 9e9, 1300.0]);
        assert_eq!(
            (price.lower_ns, price.median_ns, price.upper_ns, price.batches),
            (110.0, 120.0, 130.0, 5)
        );
        assert_eq!(price.remark, None);
    }

    #[test]
    fn an_expensive_service_is_reported_as_one() {
        for service in Service::ALL {
            let (limit, _) = service.expensive_from();
            assert!(Price::new(service, 1, &[limit]).remark.is_some(), "{service:?}");
            assert!(Price::new(service, 1, &[limit / 2.0]).remark.is_none(), "{service:?}");
            // There is no remark either if most batches were disturbed.
            let disturbed = [limit / 2.0, limit / 2.0, limit * 9.0, limit * 9.0, limit * 9.0];
            assert!(Price::new(service, 1, &disturbed).remark.is_none(), "{service:?}");
        }
    }

    #[test]
    fn a_slow_machine_gets_the_fewest_batches_and_a_fast_one_all() {
        let mut count = 0;
        let took = sample(|| {
            count += 1;
            Ok(1.0)
        });
        assert_eq!((took.unwrap().len(), count), (BATCHES, BATCHES + 1));
        let refused = sample(|| Err(io::ErrorKind::OutOfMemory.into()));
        assert!(refused.is_err());
    }

    #[test]
    fn every_service_has_a_price_here_or_a_reason() {
        let prices = Prices::measure();
        let mut seen_services: Vec<Service> =
            prices.known.iter().map(|price| price.service).collect();
        seen_services.extend(prices.unknown.iter().map(|unpriced| unpriced.service));
        assert_eq!(seen_services.len(), Service::ALL.len());
        for price in &prices.known {
            let Price { lower_ns, median_ns, upper_ns, .. } = *price;
            assert!(0.0 < lower_ns && lower_ns <= median_ns && median_ns <= upper_ns, "{price:?}");
            assert!(price.batches >= BATCHES_MIN, "{price:?}");
        }
        // Only huge pages are commonly unavailable, and terminals in sandboxes.
        let rare = [Service::HugePageFault, Service::TerminalWrite];
        for unpriced in &prices.unknown {
            assert!(rare.contains(&unpriced.service), "{unpriced:?}");
            assert!(!unpriced.reason.is_empty());
        }
        assert_eq!(prices.of(Service::Thread).is_some(), seen_services.contains(&Service::Thread));
    }
}
