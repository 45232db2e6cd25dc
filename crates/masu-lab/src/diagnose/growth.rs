//! The test whether a program's memory grows all the time, by its resident memory over time.
//!
//! Relies on nothing. The difficulty is that a program which fills its tables grows too. So growth counts only if it
//! goes on to the end, in every part of the time after the first.

use super::facts::Growth;

/// The number of parts of the time. The first part says nothing, because the program starts in it.
const PARTS: usize = 5;

/// The share of the mean growth that every other part has at least.
const EVEN_SHARE: f64 = 0.3;

/// The share of the time that an orderly end may take: it frees, and memory falls or stays.
const END_SHARE: f64 = 0.1;

/// The growth of resident bytes at `(seconds, bytes)`, in the order of time; none if it is not steady.
pub(super) fn of(curve: &[(f64, u64)]) -> Option<Growth> {
    let (first, end) = (curve.first()?.0, curve.last()?.0);
    // Without the program's end, if it is short.
    let most = curve.iter().map(|(_, bytes)| *bytes).max()?;
    let peak = curve.iter().find(|(_, bytes)| *bytes == most)?.0;
    let last = if end - peak <= END_SHARE * (end - first) { peak } else { end };
    let part_s = (last - first) / PARTS as f64;
    let at = |part: usize| -> Option<f64> {
        let until = first + part as f64 * part_s;
        let before = curve.iter().take_while(|(at_s, _)| *at_s <= until + 1e-9);
        before.last().map(|(_, bytes)| *bytes as f64)
    };
    let levels: Vec<f64> = (1..=PARTS).map(at).collect::<Option<_>>()?;
    let grown = levels.last()? - levels.first()?;
    let mean = grown / (PARTS - 1) as f64;
    let is_steady = levels.windows(2).all(|pair| pair[1] - pair[0] >= EVEN_SHARE * mean);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive bytes")]
    let bytes = grown.max(0.0) as u64;
    let over_s = part_s * (PARTS - 1) as f64;
    (is_steady && bytes > 0 && over_s > 0.0).then_some(Growth { bytes, over_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(bytes: impl Fn(f64) -> f64) -> Vec<(f64, u64)> {
        (0..=100).map(f64::from).map(|at| (at / 10.0, bytes(at) as u64)).collect()
    }

    #[test]
    fn growth_goes_on_to_the_end() {
        let growth = of(&curve(|at| 1e6 + 1e6 * at)).unwrap();
        assert!((growth.over_s - 8.0).abs() < 1e-9 && growth.bytes == 80_000_000, "{growth:?}");
        // A program that frees all at its end.
        assert!(of(&curve(|at| if at < 95.0 { 1e6 * at } else { 1e6 })).is_some());
        // A leak beside memory that comes and goes.
        assert!(of(&curve(|at| 1e8 + 1e6 * at + 2e6 * (at % 3.0))).is_some());
    }

    #[test]
    fn a_program_that_fills_its_tables_and_works_on_them_does_not_grow() {
        assert_eq!(of(&curve(|at| (1e6 * at).min(5e7))), None);
        assert_eq!(of(&curve(|_| 1e7)), None);
        assert_eq!(of(&curve(|at| 1e9 - 1e6 * at)), None);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0.0, 7)]), None);
    }
}
