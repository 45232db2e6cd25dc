//! The noise of the machine: how much it disturbs measurements on it, at the moment.
//!
//! The same piece of work is done again and again; on a quiet machine it takes the same time each time. The CPU
//! share of other processes in that time comes from the same reading of `/proc/stat` as in every run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use masu_run::execute::Neighbors;
use masu_run::kernel;

/// The most pieces of work; together they take about half a second.
const PIECES: usize = 400;

/// The fewest pieces of work, however long they take.
const PIECES_MIN: usize = 30;

/// No piece begins later than this, once the fewest are done.
const PATIENCE: Duration = Duration::from_millis(700);

/// Steps of a piece, each waiting for the one before: about a millisecond.
const STEPS: u32 = 500_000;

/// The noise limit: the slowest tenth of pieces takes this share longer than the median. Single runs then say
/// little, because many comparisons are about a difference of 5 %.
const NOISY: f64 = 0.05;

/// From this CPU share of other processes on, runs with a thread for each CPU are disturbed.
const BUSY: f64 = 0.10;

/// From this share of the time taken by the hypervisor on, all other runs are disturbed too.
const STOLEN: f64 = 0.01;

/// The measurements of many repetitions of the same work.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Noise {
    /// Seconds of the median piece.
    pub piece_s: f64,
    /// The extra time of the slowest tenth of the pieces, at least, as a share of the median.
    pub slowest_tenth: f64,
    /// The share of the CPUs that other processes used in that time; none where the kernel does not say.
    pub others: Option<f64>,
    /// The share of the CPUs' time that the hypervisor gave to other machines; none likewise.
    pub steal: Option<f64>,
    /// The one-minute load average.
    pub load: Option<f64>,
    /// The disturbances, and a remedy; none where the machine is quiet.
    pub remark: Option<String>,
}

impl Noise {
    /// Works for about half a second on one CPU, longer where other processes want it too.
    pub(super) fn measure() -> Noise {
        let (neighbors, cpu_s, began) = (Neighbors::look(), kernel::own_cpu_s(), Instant::now());
        let mut pieces = Vec::with_capacity(PIECES);
        while pieces.len() < PIECES && (pieces.len() < PIECES_MIN || began.elapsed() < PATIENCE) {
            pieces.push(piece());
        }
        let wall_s = began.elapsed().as_secs_f64();
        let interference = neighbors.interference();
        let others_s = interference.others_s(kernel::own_cpu_s() - cpu_s);
        let all_s = wall_s * interference.cpus as f64;
        let share = |seconds: f64| (seconds / all_s).min(1.0);
        Noise::judge(
            pieces,
            others_s.map(share),
            interference.steal_s.map(share),
            interference.load,
        )
    }

    fn judge(
        mut pieces: Vec<f64>,
        others: Option<f64>,
        steal: Option<f64>,
        load: Option<f64>,
    ) -> Noise {
        pieces.sort_by(f64::total_cmp);
        let piece_s = pieces[pieces.len() / 2];
        let slowest_tenth = pieces[pieces.len() * 9 / 10] / piece_s - 1.0;
        let mut seen = Vec::new();
        let per_cent = |share: f64| format!("{:.0} %", share * 100.0);
        if let Some(share) = steal.filter(|share| *share >= STOLEN) {
            seen.push(format!("the hypervisor takes {} of the CPUs' time", per_cent(share)));
        }
        if let Some(share) = others.filter(|share| *share >= BUSY) {
            seen.push(format!("other processes use {} of the CPUs", per_cent(share)));
        }
        if slowest_tenth >= NOISY {
            let share = per_cent(slowest_tenth);
            seen.push(format!("one piece of work in ten takes {share} longer than the median"));
        }
        let remark = (!seen.is_empty()).then(|| {
            format!(
                "{}: end what else runs, or compare with more rounds (masu compare --precision 1)",
                seen.join("; ")
            )
        });
        Noise { piece_s, slowest_tenth, others, steal, load, remark }
    }
}

/// Does the work once and returns its seconds: additions and shifts that wait for each other, in registers.
fn piece() -> f64 {
    let began = Instant::now();
    let mut state = black_box(88_172_645_463_325_252_u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_quiet_and_each_disturbance_is_named() {
        let even = || vec![1e-3; 100];
        let quiet = Noise::judge(even(), Some(0.01), Some(0.0), Some(0.5));
        assert_eq!((quiet.remark, quiet.slowest_tenth), (None, 0.0));
        let stolen = Noise::judge(even(), None, Some(0.03), None).remark.unwrap();
        assert!(stolen.contains("hypervisor takes 3 %"), "{stolen}");
        let busy = Noise::judge(even(), Some(0.5), None, None).remark.unwrap();
        assert!(busy.contains("use 50 %") && busy.contains("--precision"), "{busy}");
        let mut uneven = even();
        uneven.extend([2e-3; 20]);
        let uneven = Noise::judge(uneven, None, None, None);
        assert!((uneven.slowest_tenth - 1.0).abs() < 1e-9 && uneven.remark.is_some());
        // One outlier among a hundred pieces does not matter: many rounds see through it.
        let mut wild = even();
        wild.push(1.0);
        assert_eq!(Noise::judge(wild, None, None, None).remark, None);
    }

    #[test]
    fn this_machine_does_the_work() {
        let noise = Noise::measure();
        assert!(noise.piece_s > 0.0 && noise.slowest_tenth >= 0.0, "{noise:?}");
    }
}
