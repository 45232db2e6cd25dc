//! One run of each step, examined as the report's author did with `mpstat`, `vmstat` and `perf`: each CPU's work over
//! time, context switches, the functions that take the time, and the time that threads wait for locks.
//! Relies on two runs of each: one that nothing stops, during which the kernel's counters of each CPU are read, and
//! one that is diagnosed. The second is stopped for counting, so it gives shares and no times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::experiment::workbench::workload;
use crate::experiment::{Block, Figure, Sheet, Workbench};
use crate::report::{self, Chart, Line, count};
use masu_run::Run;
use masu_run::proc_files::CpuTicks;
use masu_run::quantity::percent;

/// The time between two readings of the CPUs' counters. Their unit is a hundredth of a second.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The number of parts into which a run's time is divided.
const PARTS: usize = 8;

/// The most CPUs of which a reader takes in each by itself.
const CPUS_SHOWN: usize = 16;

pub(super) struct Watched {
    what: String,
    run: Run,
    /// The time of each reading, and the counters of each CPU at that time.
    looks: Vec<(Duration, Vec<CpuTicks>)>,
    /// The functions that took most time in the program's own code; empty where they cannot be seen.
    functions: String,
    /// The time that the threads waited for locks, over the CPU time of all threads, if that was seen.
    locks: Option<f64>,
}

impl Watched {
    /// Watches a run of `words`; none where it is stopped or cannot be run.
    pub(super) fn watch(bench: &mut Workbench<'_>, what: &str, words: &[&str]) -> Option<Watched> {
        let is_over = AtomicBool::new(false);
        let began = Instant::now();
        let workload = bench.noted(what, workload(words, None))?;
        bench.say(&format!("watching: {what}"));
        let (run, looks) = std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut looks = Vec::new();
                // ORDERING: Relaxed: the flag guards no other data; the thread is joined.
                while !is_over.load(Ordering::Relaxed) {
                    looks.push((began.elapsed(), CpuTicks::of_all()));
                    std::thread::sleep(LOOK_EVERY);
                }
                looks.push((began.elapsed(), CpuTicks::of_all()));
                looks
            });
            let run = bench.run_once(what, &workload);
            // ORDERING: Relaxed: see above.
            is_over.store(true, Ordering::Relaxed);
            (run, looking.join().unwrap_or_default())
        });
        let run = run?;
        let facts = bench.examine(words, None).map(|diagnosis| diagnosis.facts);
        let samples = facts.as_ref().and_then(|facts| facts.samples.as_ref());
        let functions = samples.map(crate::diagnose::samples::Sampled::listing).unwrap_or_default();
        let locks = facts.and_then(|facts| {
            // The sum of an empty list would be a negative zero.
            let waited = facts.threads.lock_waited.iter().fold(0.0, |sum, (_, time)| sum + time);
            let cpu_s = facts.clock.user_s + facts.clock.sys_s;
            (cpu_s > 0.0).then_some(waited / cpu_s)
        });
        Some(Watched { what: what.to_owned(), run, looks, functions, locks })
    }

    /// Shares of the whole run: user, system, idle; of all CPUs, or of one.
    fn shares(&self, cpu: Option<usize>) -> Option<[f64; 3]> {
        let ((_, first), (_, last)) = (self.looks.first()?, self.looks.last()?);
        shares(first, last, cpu)
    }

    /// The share that a CPU was busy in each part of the run.
    fn busy(&self, cpu: usize) -> Vec<Option<f64>> {
        let parts = PARTS.min(self.looks.len().saturating_sub(1));
        let at = |part: usize| &self.looks[part * (self.looks.len() - 1) / parts.max(1)].1;
        let share = |part| Some(1.0 - shares(at(part), at(part + 1), Some(cpu))?[2]);
        (0..parts).map(share).collect()
    }
}

/// The watched runs, as a table and a plot of the first step, in which threads come and go.
pub(super) fn blocks(watched: &[Watched]) -> Vec<Block> {
    let Some(first) = watched.first() else { return Vec::new() };
    let row = |one: &Watched| {
        let Run { user_s, sys_s, wall_s, voluntary_switches, involuntary_switches, .. } = one.run;
        let cell = |share: Option<f64>| share.map(percent).unwrap_or_default();
        let all = one.shares(None);
        let each = (0..).map_while(|cpu| one.shares(Some(cpu)));
        let each: Vec<f64> = each.map(|[.., idle]| 1.0 - idle).collect();
        let switches =
            [voluntary_switches, involuntary_switches].map(|number| count(number as f64));
        vec![
            one.what.clone(),
            percent(user_s / wall_s),
            percent(sys_s / wall_s),
            cell(all.map(|[user, ..]| user)),
            cell(all.map(|[_, system, _]| system)),
            cell(all.map(|[.., idle]| idle)),
            by_cpu(each),
            switches.join(" + "),
            cell(one.locks),
            one.functions.replace('`', ""),
        ]
    };
    let headings = [
        "step",
        "own user",
        "own system",
        "%usr",
        "%sys",
        "idle",
        "busy, by CPU",
        "context switches",
        "waits for locks",
        "most of its own code's time",
    ];
    let title = "One run of each step, watched: own time over the wall time; what all CPUs did beside it, others' work included; \
                 switches for want of something and for want of time; seconds that threads waited for locks over CPU seconds, and \
                 functions by the CPU clock, of a run that was stopped to be counted";
    let rows = watched.iter().map(row).collect();
    let mut blocks = vec![Block::Sheet(Sheet::new(title, headings, rows))];
    let cpus: Vec<Vec<Option<f64>>> = (0..)
        .map(|cpu| first.busy(cpu))
        .take_while(|busy| busy.iter().any(Option::is_some))
        .collect();
    let ticks: Vec<String> =
        (1..=cpus.first().map_or(0, Vec::len)).map(|part| part.to_string()).collect();
    if ticks.len() > 1 && cpus.len() <= CPUS_SHOWN {
        let lines = cpus.into_iter().enumerate();
        let lines: Vec<Line> = lines
            .map(|(cpu, points)| Line { label: format!("CPU {cpu}"), points, is_ours: false })
            .collect();
        let caption = format!("Busy share of each CPU while {} runs", first.what);
        let across = "parts of the run's time";
        let chart = Chart { title: &caption, across, ticks: &ticks, lines: &lines, unit: percent };
        let svg = report::lines("parallel-cpus", &chart);
        let name = "cpus".to_owned();
        blocks.push(Block::Figure(Figure { name, caption, svg, ..Figure::default() }));
    }
    blocks
}

/// The busy share of each CPU; of many the lowest, the middle and the highest.
fn by_cpu(mut each: Vec<f64>) -> String {
    if each.len() > CPUS_SHOWN {
        each.sort_by(f64::total_cmp);
        let [low, middle, high] =
            [0, each.len() / 2, each.len() - 1].map(|index| percent(each[index]));
        return format!("{low} to {high}, half of {} CPUs over {middle}", each.len());
    }
    each.into_iter().map(percent).collect::<Vec<_>>().join(", ")
}

/// The shares of CPUs between two readings: user, system, idle.
fn shares(first: &[CpuTicks], last: &[CpuTicks], cpu: Option<usize>) -> Option<[f64; 3]> {
    let both = first.iter().zip(last).enumerate();
    let wanted = both.filter(|(index, _)| cpu.is_none_or(|cpu| cpu == *index));
    let mut spent = [0_u64; 3];
    for (_, (first, last)) in wanted {
        spent[0] += last.user.saturating_sub(first.user);
        spent[1] += last.system.saturating_sub(first.system);
        spent[2] += last.idle.saturating_sub(first.idle);
    }
    let whole: u64 = spent.iter().sum();
    (whole > 0).then(|| spent.map(|ticks| ticks as f64 / whole as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_cpus_did_between_two_looks() {
        let first = CpuTicks::read(
            "cpu  9 9 9 9\ncpu0 10 0 20 70 0 0 0 5\ncpu1 0 0 0 100 0 0 0 0\nintr 5\n",
        );
        let last = CpuTicks::read(
            "cpu  9 9 9 9\ncpu0 40 10 40 100 10 0 0 9\ncpu1 0 0 0 200 0 0 0 0\nintr 5\n",
        );
        assert_eq!((first.len(), last.len()), (2, 2));
        assert_eq!(shares(&first, &last, Some(0)), Some([0.4, 0.2, 0.4]));
        assert_eq!(shares(&first, &last, None), Some([0.2, 0.1, 0.7]));
        assert_eq!(shares(&first, &first, None), None);
        assert_eq!(shares(&first, &last, Some(2)), None);
        assert_eq!(by_cpu(vec![0.5, 0.25]), "50 %, 25 %");
        let many = by_cpu((0..64).map(|cpu| f64::from(cpu) / 100.0).collect());
        assert_eq!(many, "0.0 % to 63 %, half of 64 CPUs over 32 %");
    }
}
