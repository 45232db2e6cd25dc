//! One burst of load on one server, as a run.

use std::time::{Duration, Instant};

use super::consumption::{Consumption, Used, cpu_s};
use super::steady::Point;
use super::{Book, Load, Servers};
use crate::Pace;
use crate::load::{Client, Met};
use masu_run::execute::last_error::last_error;
use masu_run::execute::{Burst, Conditions, Curve, Ending, Neighbors, Run, execute};
use masu_run::{Error, Input, Stop, Variant, Workload};

/// The share of the machine that other processes may take during a burst.
const STARVED_SHARE: f64 = 0.1;

#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) run: Run,
    pub(super) met: Option<Met>,
    /// The results of the second half's requests, which have a rate of their own.
    at_rate: Option<Met>,
    /// The load command's ending and last output, if there is a load command.
    command: Option<(String, Run)>,
}

impl Servers<'_> {
    /// Makes a burst of `window`, its second half at `latency_rate` if any; a server that ends is noted as lost.
    pub(super) fn burst(
        &mut self,
        index: usize,
        window: Duration,
        latency_rate: Option<f64>,
        stop: &Stop,
    ) -> Result<Made, Error> {
        let (rows, plan) = (self.rows, self.plan);
        let Some(warm) = &mut self.warm[index] else {
            let run = self.lost(index, Ending::Stopped);
            return Ok(Made { run, ..Made::default() });
        };
        let abort = self.guard.begin(index, stop);
        if let Some(client) = &mut warm.client {
            client.run(plan.lead_in().min(window), &abort);
        }
        let waiting_before = self.waiting_cpu_s(index);
        let Some(warm) = &mut self.warm[index] else { unreachable!("it was there") };
        let neighbors = Neighbors::look();
        let before = Consumption::of(&warm.running.family);
        let abort = self.guard.begin(index, stop);
        let offset_bytes = warm.running.offset_bytes;
        let began = Instant::now();
        let (mut met, mut at_rate, mut command) = (None, None, None);
        match (&plan.load, &mut warm.client) {
            (Load::Command(text), _) => {
                let text = warm.running.place.text(text, &rows[index]);
                let workload = Workload {
                    arguments: ["sh", "-c", &text].map(Into::into).to_vec(),
                    program: self.shell.clone(),
                    input: Input::Empty,
                    folder: rows[index].workload.folder.clone(),
                    shuffles_heap: false,
                };
                let conditions = Conditions::from(self.limits.clone());
                let run = execute(&workload, &Variant::default(), &conditions, &abort)?;
                command = Some((text, run));
            }
            (_, Some(client)) => {
                let (first, second) = asked(client, window, latency_rate, &abort);
                (met, at_rate) = (Some(first), second);
            }
            (_, None) => unreachable!("a client is made for every HTTP load"),
        }
        let wall_s = command.as_ref().map_or(began.elapsed().as_secs_f64(), |(_, run)| run.wall_s);
        let used = Consumption::of(&warm.running.family).since(&before);
        let interference = neighbors.interference();
        let resident = self.guard.end().unwrap_or_default();
        let ended = self.guard.killed(index).or_else(|| warm.running.ended());
        if stop.requested() {
            let run = Run { ending: Ending::Stopped, ..Run::default() };
            return Ok(Made { run, met, at_rate, command });
        }
        if let Some(ending) = ended {
            let run = self.lost(index, ending);
            return Ok(Made { run, met, at_rate, command });
        }
        let waiting_s = (self.waiting_cpu_s(index) - waiting_before).max(0.0);
        let burst = Burst {
            allocations_a_request: self.counted_of(index),
            latency_rate: latency_rate.filter(|_| at_rate.is_some()),
            ..met.as_ref().map(|met| of_requests(met, at_rate.as_ref())).unwrap_or_default()
        };
        // The process that makes the load is no neighbor, and neither is a waiting server, which is
        // reported separately.
        let load_s = match &command {
            Some((_, run)) => run.user_s + run.sys_s,
            None => met.iter().chain(&at_rate).map(|met| met.client_cpu_s).sum(),
        };
        let own_s = used.user_s + used.sys_s;
        let run = Run {
            steal_s: interference.steal_s,
            others_s: interference.others_s(own_s + load_s + waiting_s),
            load: interference.load,
            offset_bytes,
            burst: Some(burst),
            ..run(wall_s, used, &resident)
        };
        let run = Run { starved: is_starved(&run, interference.cpus), ..run };
        Ok(Made { run, met, at_rate, command })
    }

    /// CPU seconds that the servers beside the one at `index` have used so far.
    fn waiting_cpu_s(&self, index: usize) -> f64 {
        let waiting = self.warm.iter().enumerate().filter(|(other, _)| *other != index);
        waiting.filter_map(|(_, warm)| Some(cpu_s(&warm.as_ref()?.running.family))).sum()
    }
}

/// The results of requests in `window`; those of its second half apart, if they have a rate of their own.
fn asked(
    client: &mut Client,
    window: Duration,
    latency_rate: Option<f64>,
    abort: &Stop,
) -> (Met, Option<Met>) {
    let Some(rate) = latency_rate else { return (client.run(window, abort), None) };
    let met = client.run(window / 2, abort);
    (met, Some(client.run_at(Pace::Open { rate }, window / 2, abort)))
}

/// The results of HTTP requests, as a run keeps them; `at_rate` is the second half, if latencies come from it.
fn of_requests(met: &Met, at_rate: Option<&Met>) -> Burst {
    let (answered, errors) =
        at_rate.map_or((0, 0), |second| (second.answered, second.failures.total()));
    Burst {
        requests: Some(met.answered + answered),
        errors: met.failures.total() + errors,
        throughput: Some(met.throughput()),
        latency_s: at_rate.unwrap_or(met).latencies(),
        ..Burst::default()
    }
}

fn run(wall_s: f64, used: Used, resident: &Curve) -> Run {
    let rss_over_time = resident.points();
    Run {
        wall_s,
        user_s: used.user_s,
        sys_s: used.sys_s,
        peak_rss_bytes: rss_over_time.iter().map(|point| point.1).max().unwrap_or(0),
        rss_over_time,
        minor_faults: used.minor_faults,
        major_faults: used.major_faults,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        queued_s: used.queued_s,
        ..Run::default()
    }
}

/// Whether other processes took so much of the machine's `cpus` that the burst says more about them. Load and
/// server are meant to wait for each other's CPUs, so the server's own wait is no sign.
fn is_starved(run: &Run, cpus: usize) -> bool {
    let lost_s = run.others_s.unwrap_or(0.0) + run.steal_s.unwrap_or(0.0);
    lost_s > STARVED_SHARE * run.wall_s * cpus as f64
}

impl Made {
    /// Checks that the load works at all.
    pub(super) fn check(&self, load: &Load) -> Result<(), Error> {
        if let Some(met) = &self.met
            && met.answered == 0
        {
            let reason = if met.failures.total() == 0 {
                "no request was answered; let the burst last longer".to_owned()
            } else {
                format!("no request was answered: {}; check the URL", met.failures)
            };
            let load = match load {
                Load::Http { urls, .. } => urls.join(" "),
                Load::Command(text) => text.clone(),
            };
            return Err(Error::Load { load, reason });
        }
        self.check_command(load)
    }

    pub(super) fn check_command(&self, load: &Load) -> Result<(), Error> {
        let (Load::Command(_), Some((text, run))) = (load, &self.command) else { return Ok(()) };
        if run.ending == Ending::Exited(0) {
            return Ok(());
        }
        let said = last_error(&run.stderr.tail).map(|said| format!("; it said: {said}"));
        let said = said.unwrap_or_default();
        let reason = format!("the load command {}{said}", run.ending);
        Err(Error::Load { load: text.clone(), reason })
    }

    pub(super) fn point(&self) -> Point {
        let (faults, run) = (self.run.minor_faults as f64, &self.run);
        let cpu_s = (run.user_s + run.sys_s).max(1e-9);
        match &self.met {
            Some(met) => Point {
                throughput: met.throughput(),
                answers: met.answered as f64 / cpu_s,
                faults: faults / met.answered.max(1) as f64,
            },
            None => Point { throughput: 1.0 / run.wall_s.max(1e-9), answers: 1.0 / cpu_s, faults },
        }
    }
}

impl Book {
    pub(super) fn add(&mut self, burst: &Made) {
        for met in burst.met.iter().chain(&burst.at_rate) {
            self.requests += met.answered + met.failures.total();
            self.failures = self.failures.plus(met.failures);
            for note in &met.notes {
                if !self.load_notes.contains(note) {
                    self.load_notes.push(note.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::steady::trend;
    use super::*;

    #[test]
    fn a_busy_machine_makes_no_trend_and_cheaper_answers_do() {
        let burst = |wall_s: f64, cpu_s: f64| {
            let run = Run { wall_s, user_s: cpu_s, ..Run::default() };
            Made { run, ..Made::default() }.point()
        };
        let starved = [(1.0, 0.5), (1.0, 0.5), (4.0, 0.5), (9.0, 0.5)].map(|(w, c)| burst(w, c));
        assert_eq!(trend(&starved), None);
        let warming = [(1.0, 0.5), (1.0, 0.5), (1.0, 0.3), (1.0, 0.2)].map(|(w, c)| burst(w, c));
        assert!(trend(&warming).is_some());
    }
}
