//! The throughput on a machine with a core for each thread, predicted from the counts of one thread and of many.
//!
//! It relies on prices for the counts, and on mean value analysis of a closed network of queues (M. Reiser and S.
//! Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks", 1980): each lock is a queue with one
//! server, and threads spend the rest of an operation side by side. An exact solution for random service times is a
//! middle estimate: locks that are always held for the same time make shorter queues, convoys longer ones.

use super::report::{Report, STEADY};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prices {
    pub(super) instruction: f64,
    /// A line that comes from another core.
    pub(super) moved: f64,
    pub(super) call: f64,
}

/// Three instructions a nanosecond, a line between cores of one socket, a system call that does little.
pub(super) const PRICES: Prices = Prices { instruction: 1.0 / 3.0, moved: 75.0, call: 300.0 };

/// An operation's time: under each lock, and beside all of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Demands {
    pub(super) locks: Vec<f64>,
    pub(super) beside: f64,
}

impl Demands {
    /// The demands of the counted phase.
    pub(super) fn of(report: &Report, prices: Prices) -> Demands {
        let counts = report.of(STEADY);
        let price = |instructions: u64, moves: u64, calls: u64| {
            let ns = instructions as f64 * prices.instruction
                + moves as f64 * prices.moved
                + calls as f64 * prices.call;
            ns / counts.operations.max(1) as f64
        };
        let locks = report.shared(STEADY).map(|lock| price(lock.held, lock.moves, lock.calls));
        let locks: Vec<f64> = locks.collect();
        let all = price(counts.instructions, counts.moved(), counts.calls);
        Demands { beside: (all - locks.iter().sum::<f64>()).max(0.0), locks }
    }

    /// Operations a nanosecond of so many threads.
    pub(super) fn throughput(&self, threads: usize) -> f64 {
        let mut queues = vec![0.0; self.locks.len()];
        let mut throughput = 0.0;
        for threads in 1..=threads {
            let waits: Vec<f64> =
                self.locks.iter().zip(&queues).map(|(lock, queue)| lock * (1.0 + queue)).collect();
            throughput = threads as f64 / (self.beside + waits.iter().sum::<f64>()).max(1e-9);
            queues = waits.iter().map(|wait| throughput * wait).collect();
        }
        throughput
    }
}

/// Operations a nanosecond of so many threads, by the counts of a run with as many.
pub(super) fn throughput(report: &Report, threads: usize) -> f64 {
    Demands::of(report, PRICES).throughput(threads)
}
