//! The interval of a few paired differences, taken for normal: ranks of fewer than eight say nothing.
//!
//! The order of runs makes the differences of two equal variants symmetric. Student's interval then errs no more often
//! than it says where the noise is a mixture of normal noises of several widths (Benjamini, "Is the t test really
//! conservative when the parent distribution is long-tailed?", Journal of the American Statistical Association 78,
//! 1983). It is weaker than ranks, so it serves a diagnosis, which has seconds, and no comparison.

use super::signed_rank::bisected;
use super::{Level, Ratio};

/// With fewer pairs than this there is no interval.
const PAIRS_LEAST: usize = 4;

/// The least variation assumed of the differences: clocks of CPU time have steps.
const NOISE_LEAST: f64 = 0.005;

/// The ratio of the second to the first of each of a few pairs, in a table of `others` such ratios that err at `level`
/// together. Pairs with a zero do not count; none without pairs.
pub(crate) fn ratio_of_few(pairs: &[(f64, f64)], others: usize, level: Level) -> Option<Ratio> {
    let is_whole = |(reference, value): &&(f64, f64)| *reference > 0.0 && *value > 0.0;
    let logs: Vec<f64> = pairs.iter().filter(is_whole).map(|(a, b)| (b / a).ln()).collect();
    let count = logs.len() as f64;
    if logs.is_empty() {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / count;
    let interval = (logs.len() >= PAIRS_LEAST).then(|| {
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let noise = (squares / (count - 1.0)).sqrt().max(NOISE_LEAST);
        let half = quantile(logs.len() - 1, level.of_each(others) / 2.0) * noise / count.sqrt();
        ((mean - half).exp(), (mean + half).exp())
    });
    Some(Ratio { estimate: mean.exp(), interval, pairs: logs.len() })
}

/// The value that Student's t with `degrees` degrees of freedom exceeds with probability `tail`, by bisection.
fn quantile(degrees: usize, tail: f64) -> f64 {
    bisected(1e6, |t| beyond(degrees, t) > tail)
}

/// The probability that Student's t with `degrees` degrees of freedom exceeds `t`, which is not negative.
///
/// Source: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4.
fn beyond(degrees: usize, t: f64) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let square = angle.cos().powi(2);
    let is_odd = degrees % 2 == 1;
    // 1 + 1/2 cos² + 1·3/(2·4) cos⁴ + …, or with an odd number cos + 2/3 cos³ + 2·4/(3·5) cos⁵ + …
    let (mut term, mut sum) = (1.0, 0.0);
    let terms = degrees / 2;
    for index in 1..=terms {
        sum += term;
        let (above, below) =
            if is_odd { (2 * index, 2 * index + 1) } else { (2 * index - 1, 2 * index) };
        term *= above as f64 / below as f64 * square;
    }
    let within = if is_odd {
        std::f64::consts::FRAC_2_PI * (angle + angle.sin() * angle.cos() * sum)
    } else {
        angle.sin() * sum
    };
    (1.0 - within) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use masu_run::random::Random;

    #[test]
    fn quantiles_are_those_of_the_published_tables() {
        let known = [(1, 0.005, 63.657), (3, 0.005, 5.841), (4, 0.0005, 8.610), (7, 0.0005, 5.408)];
        for (degrees, tail, expected) in
            known.into_iter().chain([(10, 0.025, 2.228), (15, 0.005, 2.947)])
        {
            let found = quantile(degrees, tail);
            assert!((found - expected).abs() < 1e-3, "{degrees} {tail}: {found}");
        }
    }

    #[test]
    fn equal_pairs_are_not_certain_and_few_give_no_interval() {
        let ratio = ratio_of_few(&[(1.0, 0.9); 5], 1, Level::TABLE).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!(low < 0.895 && high > 0.905 && high < 0.95, "{ratio:?}");
        assert_eq!(ratio_of_few(&[(1.0, 0.9); 3], 1, Level::TABLE).unwrap().interval, None);
        assert_eq!(ratio_of_few(&[], 1, Level::TABLE), None);
        assert_eq!(ratio_of_few(&[(0.0, 1.0)], 1, Level::TABLE), None);
    }

    #[test]
    fn it_errs_no_more_than_it_says_where_some_rounds_are_disturbed() {
        let mut random = Random::new(7);
        let mut draw = || {
            // A sum of twelve uniform numbers is normal enough; every fourth round is ten times as noisy.
            let sum: f64 = (0..12).map(|_| unit(&mut random)).sum::<f64>() - 6.0;
            if unit(&mut random) < 0.25 { 0.3 * sum } else { 0.03 * sum }
        };
        let level = Level::TABLE;
        let tries = 20_000;
        let wrong = (0..tries).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..5).map(|_| (1.0, draw().exp())).collect();
            let (low, high) = ratio_of_few(&pairs, 1, level).unwrap().interval.unwrap();
            low > 1.0 || high < 1.0
        });
        let wrong = wrong.count();
        assert!(wrong <= tries / 125, "{wrong} of {tries}");
    }

    fn unit(random: &mut Random) -> f64 {
        random.below(1 << 30) as f64 / f64::from(1 << 30)
    }
}
