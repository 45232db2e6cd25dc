//! An axis: the places of values, and the round values worth a tick.

#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_logarithmic: bool,
    /// The unit of round values: 1, or a power of 1024 for bytes.
    unit: f64,
}

const TICKS: f64 = 6.0;

impl Axis {
    /// A linear axis: equal differences are equal distances. Values from `low` to `high` lie from `from` to `to`.
    pub(super) fn linear(low: f64, high: f64, from: f64, to: f64) -> Axis {
        let empty = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        let high = if high > low { high } else { low + empty };
        Axis { low, high, from, to, is_logarithmic: false, unit: 1.0 }
    }

    /// The same axis with ticks at round numbers of the unit in which these bytes are written.
    pub(super) fn of_bytes(self) -> Axis {
        let units = (0..4).map(|power| 1024_f64.powi(power));
        // Up to 1.2 of a unit the steps are less than half of the unit, and so are written in the smaller one.
        let unit = units.take_while(|unit| *unit * 1.2 < self.high).last().unwrap_or(1.0);
        Axis { unit, ..self }
    }

    /// A logarithmic axis: equal ratios are equal distances. A value that a file may hold but no axis can show is cut.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Axis {
        let (low, high) = (low.max(1e-100), high.min(1e100));
        let high = if high > low { high } else { low * 1.1 };
        Axis { low, high, from, to, is_logarithmic: true, unit: 1.0 }
    }

    /// The place of `value`; beyond the ends for a value that lies beyond.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    pub(super) fn start(&self) -> f64 {
        self.from
    }

    pub(super) fn end(&self) -> f64 {
        self.to
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// The ticks with their names. Names with too few digits for the steps stand at the roundest ticks alone.
    pub(super) fn named(&self, name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let digits = |tick: f64| format!("{:.12}", tick / self.unit).trim_end_matches('0').len();
        let zero = name(0.0);
        let mut named: Vec<(f64, String)> = Vec::new();
        for tick in self.ticks() {
            let name = Some(name(tick)).filter(|name| *name != zero).unwrap_or("0".to_owned());
            match named.last_mut().filter(|(_, last)| *last == name) {
                Some((kept, _)) if digits(tick) < digits(*kept) => *kept = tick,
                Some(_) => {}
                None => named.push((tick, name)),
            }
        }
        named
    }

    /// Round values within the axis, few enough to be labelled.
    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic && self.high / self.low > 6.0 {
            self.decades()
        } else {
            self.steps()
        }
    }

    /// Multiples of a round step.
    fn steps(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / TICKS / self.unit;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power)
            * self.unit;
        let first = (self.low / step).ceil();
        let ticks = (0..=12_u8).map(|index| (first + f64::from(index)) * step);
        ticks.take_while(|tick| *tick <= self.high + step * 1e-9).collect()
    }

    /// 1, 2 and 5 in each power of ten, or fewer where there are many powers.
    fn decades(&self) -> Vec<f64> {
        let powers = (self.high / self.low).log10();
        let factors: &[f64] = match powers {
            _ if powers > 4.0 => &[1.0],
            _ if powers > 2.0 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let mut ticks = Vec::new();
        let mut power = 10_f64.powf(self.low.log10().floor());
        while power <= self.high {
            let of_power = factors.iter().map(|factor| factor * power);
            ticks.extend(of_power.filter(|tick| (self.low..=self.high).contains(tick)));
            power *= 10.0;
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_few_and_within() {
        let axes = [
            Axis::linear(0.0, 1.0, 0.0, 1.0),
            Axis::linear(1.2031, 1.2034, 0.0, 1.0),
            Axis::linear(5.0, 5.0, 0.0, 1.0),
            Axis::linear(0.0, 0.0, 0.0, 1.0),
            Axis::logarithmic(0.9, 1.1, 0.0, 1.0),
            Axis::logarithmic(0.1, 12.0, 0.0, 1.0),
            Axis::logarithmic(1e-6, 100.0, 0.0, 1.0),
            Axis::logarithmic(2.0, 2.0, 0.0, 1.0),
        ];
        for axis in axes {
            let ticks = axis.ticks();
            assert!((2..=13).contains(&ticks.len()), "{axis:?}: {ticks:?}");
            for tick in ticks {
                assert!((-1e-9..=1.0 + 1e-9).contains(&axis.at(tick)), "{axis:?}: {tick}");
            }
        }
    }

    #[test]
    fn bytes_have_ticks_at_round_numbers_of_their_unit() {
        let mebibyte = 1_048_576.0;
        let axis = Axis::linear(41.0 * mebibyte, 50.0 * mebibyte, 0.0, 1.0).of_bytes();
        let ticks: Vec<f64> = axis.ticks().iter().map(|tick| tick / mebibyte).collect();
        assert_eq!(ticks, [42.0, 44.0, 46.0, 48.0, 50.0]);
        let axis = Axis::linear(0.0, 1.1 * 1024.0 * mebibyte, 0.0, 1.0).of_bytes();
        let ticks: Vec<f64> = axis.ticks().iter().map(|tick| tick / mebibyte).collect();
        assert_eq!(ticks, [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
    }

    #[test]
    fn no_name_stands_at_two_ticks() {
        use masu_run::quantity::{count, seconds};
        type Case = (f64, f64, fn(f64) -> String, &'static [(f64, &'static str)]);
        let cases: [Case; 4] = [
            (33.06, 33.21, |value| format!("{value:.1}"), &[(33.1, "33.1"), (33.2, "33.2")]),
            (0.0, 2.0, count, &[(0.0, "0"), (1.0, "1"), (2.0, "2")]),
            (1.2031, 1.2034, seconds, &[(1.2031, "1.20 s")]),
            (0.0, 0.0, count, &[(0.0, "0"), (1.0, "1")]),
        ];
        for (low, high, name, expected) in cases {
            let named = Axis::linear(low, high, 0.0, 1.0).named(name);
            let rounded = named.iter().map(|(tick, name)| ((tick * 1e4).round() / 1e4, &**name));
            assert_eq!(rounded.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn one_is_a_tick_of_every_axis_of_ratios() {
        for (low, high) in [(0.97, 1.02), (0.5, 1.1), (0.2, 9.0), (0.999, 1.04)] {
            let ticks = Axis::logarithmic(low, high, 0.0, 1.0).ticks();
            assert!(ticks.iter().any(|tick| (tick - 1.0).abs() < 1e-9), "{low}–{high}: {ticks:?}");
        }
    }

    #[test]
    fn no_file_can_make_an_axis_run_for_ever() {
        for (low, high) in [(-1.0, f64::MAX), (0.0, f64::INFINITY), (f64::NAN, f64::NAN)] {
            assert!(Axis::logarithmic(low, high, 0.0, 1.0).ticks().len() < 300);
            assert!(Axis::linear(low, high, 0.0, 1.0).ticks().len() < 300);
        }
    }

    #[test]
    fn equal_ratios_are_equal_distances() {
        let axis = Axis::logarithmic(0.5, 2.0, 0.0, 100.0);
        assert!((axis.at(1.0) - 50.0).abs() < 1e-9);
    }
}
