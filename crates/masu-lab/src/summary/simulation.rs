//! Simulated machines and their runs, with a known truth: they test the judgement.
//!
//! A machine has one kind of noise and one clock. Runs are made in the order that a comparison draws, and may be
//! starved and made again, or crash.

use super::summarize_measures;
use crate::order::Order;
use crate::results::Summary;
use crate::statistics::{Look, Measure};
use masu_run::random::Random;
use masu_run::{Ending, Run};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Noise {
    /// Normal noise with this coefficient of variation.
    Normal(f64),
    /// Mostly quiet, one run in ten up to a third slower: a neighbor wakes up.
    Skewed,
    /// Normal noise on a machine that gets slower all the time.
    Drifting,
    /// Two speeds, drawn for each run: huge pages are granted or not.
    TwoSpeeds,
    /// Two speeds, each kept for some runs: the scheduler's placement, or a clock that steps.
    Moods,
    /// Each run is similar to the one before it.
    Lingering,
    /// A measured series from `noise.txt`, from a random place on.
    Recorded(&'static str),
}

impl Noise {
    /// Every kind, for tests that must hold whatever the noise.
    pub(crate) const ALL: [Noise; 9] = [
        Noise::Normal(0.015),
        Noise::Skewed,
        Noise::Drifting,
        Noise::TwoSpeeds,
        Noise::Moods,
        Noise::Lingering,
        Noise::Recorded("quiet"),
        Noise::Recorded("waking"),
        Noise::Recorded("crowded"),
    ];
}

#[derive(Debug, Clone)]
pub(crate) struct Machine {
    noise: Noise,
    random: Random,
    /// The measured series, if the noise is a measured one.
    record: Vec<f64>,
    made: usize,
    /// The effect that remains from the run before.
    mood: f64,
}

impl Machine {
    pub(crate) fn new(noise: Noise, seed: u64) -> Machine {
        let record = if let Noise::Recorded(name) = noise { recorded(name) } else { Vec::new() };
        Machine { noise, random: Random::new(seed), record, made: 0, mood: 0.0 }
    }

    /// Puts the machine into a state in which a new comparison may find it.
    fn some_time_later(&mut self) {
        self.made = if self.record.is_empty() { 0 } else { self.random.below(self.record.len()) };
        self.mood = normal(&mut self.random);
    }

    /// The time on this machine of a run that would take one second.
    fn second(&mut self) -> f64 {
        let random = &mut self.random;
        self.made += 1;
        match self.noise {
            Noise::Normal(variation) => 1.0 + variation * normal(random),
            Noise::Skewed => {
                let disturbed = fraction(random) < 0.1;
                let more = if disturbed { fraction(random) / 3.0 } else { 0.0 };
                1.0 + 0.005 * normal(random) + more
            }
            Noise::Drifting => (1.0 + 0.015 * normal(random)) * (1.0 + 0.004 * self.made as f64),
            Noise::TwoSpeeds => {
                let granted = fraction(random) < 0.3;
                (1.0 + 0.01 * normal(random)) * if granted { 0.7 } else { 1.0 }
            }
            Noise::Moods => {
                if fraction(random) < 0.1 {
                    self.mood = -self.mood;
                }
                (1.0 + 0.01 * normal(random)) * if self.mood < 0.0 { 0.9 } else { 1.0 }
            }
            Noise::Lingering => {
                self.mood = 0.8 * self.mood + 0.6 * normal(random);
                1.0 + 0.02 * self.mood
            }
            Noise::Recorded(_) => self.record[self.made % self.record.len()],
        }
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && fraction(&mut self.random) < probability
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Comparison<'a> {
    pub(crate) truth: &'a [f64],
    /// The share of runs that wait for a CPU, for half as long as they run.
    pub(crate) starved: f64,
    /// The number of times that a starved run is made again.
    pub(crate) repeats: usize,
    /// The share of runs that crash at once.
    pub(crate) crashes: f64,
}

impl<'a> Comparison<'a> {
    /// A comparison in which nothing goes wrong.
    pub(crate) fn of(truth: &'a [f64]) -> Comparison<'a> {
        Comparison { truth, starved: 0.0, repeats: 0, crashes: 0.0 }
    }

    pub(crate) fn runs(&self, machine: &mut Machine, rounds: usize) -> Vec<Run> {
        machine.some_time_later();
        let mut order = Order::new(machine.random.bits(), self.truth.len());
        let mut runs = Vec::new();
        for round in 0..rounds {
            for variant in order.round() {
                self.run(machine, variant, round, &mut runs);
            }
        }
        runs
    }

    /// Makes one run, and makes it again if it is starved.
    fn run(&self, machine: &mut Machine, variant: usize, round: usize, runs: &mut Vec<Run>) {
        for attempt in 0..=self.repeats {
            let mut run = Run {
                variant,
                round: Some(round),
                wall_s: self.truth[variant] * machine.second(),
                ..Run::default()
            };
            if machine.happens(self.starved) {
                run.wall_s *= 1.5;
                run.starved = true;
                run.replaced = attempt < self.repeats;
            }
            if machine.happens(self.crashes) {
                run.ending = Ending::Signalled(11);
                run.wall_s = 0.001;
            }
            let settled = !run.replaced;
            runs.push(run);
            if settled {
                break;
            }
        }
    }
}

/// Rounds of a program that takes a second, beside variants that take `times` seconds; each run except the first's is off
/// by up to `noise`, the runs of a round in different ways.
pub(crate) fn runs_off(times: &[f64], rounds: usize, noise: f64) -> Vec<Run> {
    let run = |round: usize, variant: usize| {
        let turn = (round * (variant + 2) * 7 + variant * 3) % 11;
        let off = 1.0 + noise * (turn as f64 - 5.0) / 5.0;
        let time = if variant == 0 { 1.0 } else { times[variant - 1] * off };
        Run { variant, round: Some(round), wall_s: time, user_s: time, ..Run::default() }
    };
    (0..rounds)
        .flat_map(|round| (0..=times.len()).map(move |variant| run(round, variant)))
        .collect()
}

pub(crate) fn labels(count: usize) -> Vec<String> {
    ('a'..='z').take(count).map(String::from).collect()
}

/// The summary of simulated runs of `variants` variants, judged by the one simulated measure. The others would be most
/// of the work, in thousands of tables, and all zero.
pub(crate) fn summary_of(variants: usize, primary: Measure, look: Look, runs: &[Run]) -> Summary {
    summarize_measures(&[primary], &labels(variants), primary, look, runs)
}

fn fraction(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number of the standard normal distribution (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let length = (-2.0 * (1.0 - fraction(random)).ln()).sqrt();
    length * (std::f64::consts::TAU * fraction(random)).cos()
}

/// The series called `name` of `noise.txt`, scaled to a median of 1.
fn recorded(name: &str) -> Vec<f64> {
    let lines = include_str!("simulation/noise.txt").lines();
    let numbers = |line: &str| {
        line.split(' ').map(|number| number.parse::<f64>().unwrap() / 10_000.0).collect::<Vec<_>>()
    };
    let own = lines.skip_while(|line| *line != name).skip(1);
    own.take_while(|line| line.starts_with(char::is_numeric)).flat_map(numbers).collect()
}

mod tests;
