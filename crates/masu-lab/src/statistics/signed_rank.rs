//! The Hodges–Lehmann estimate of a typical paired difference, with its exact interval.
//!
//! If the differences are symmetric around their center (under no difference they are, because order within a round is
//! random), the number of pairwise averages below the center has Wilcoxon's signed-rank distribution, whatever the
//! noise looks like. The interval's ends are two of the ordered averages: one wild run moves them by one place, not by
//! its own distance.
//!
//! Source: Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 3rd edition, sections 3.1 to 3.3.

use std::cell::RefCell;
use std::collections::HashMap;

/// Above this many differences the distribution is approximated by a normal one.
const EXACT_MAX: usize = 200;

/// The center of `differences` and the interval that covers it except with probability `alpha`;
/// no interval where the differences are too few for one. None without differences.
pub(super) fn center(differences: &[f64], alpha: f64) -> Option<(f64, Option<(f64, f64)>)> {
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let all = sorted.len() * (sorted.len() + 1) / 2;
    let last = all.checked_sub(1)?;
    let nth = |place| nth_average(&sorted, place);
    let estimate = f64::midpoint(nth(last / 2), nth(all / 2));
    let cut = cut(sorted.len(), alpha);
    let interval = (cut > 0).then(|| (nth(cut - 1), nth(all - cut)));
    Some((estimate, interval))
}

/// The average of two of `sorted`, or of one with itself, at `place` in ascending order: the smallest value that more
/// than `place` averages do not exceed, found by halving the numbers that a float can be. Ten thousand differences have
/// fifty million averages, which nobody needs to list.
fn nth_average(sorted: &[f64], place: usize) -> f64 {
    let (mut low, mut high) = (ordinal(sorted[0]), ordinal(sorted[sorted.len() - 1]));
    while low < high {
        let middle = low + ((high - low) >> 1);
        if not_above(sorted, value(middle)) > place {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    value(low)
}

/// The number of averages of two of `sorted` that are at most `limit`. As the first of a pair grows, the
/// largest second one that still fits can only fall.
fn not_above(sorted: &[f64], limit: f64) -> usize {
    let mut count = 0;
    let mut fitting = sorted.len();
    for (index, first) in sorted.iter().enumerate() {
        while fitting > index && f64::midpoint(*first, sorted[fitting - 1]) > limit {
            fitting -= 1;
        }
        count += fitting.saturating_sub(index);
    }
    count
}

/// The place of `number` among all floats: larger floats have a larger place.
fn ordinal(number: f64) -> i128 {
    let bits = i128::from(number.abs().to_bits());
    if number.is_sign_negative() { -bits } else { bits }
}

fn value(ordinal: i128) -> f64 {
    let magnitude = f64::from_bits(u64::try_from(ordinal.unsigned_abs()).unwrap_or(0));
    if ordinal < 0 { -magnitude } else { magnitude }
}

/// The distance of the interval's ends from either end of the ordered averages, in places: the largest
/// number whose error is at most `alpha`, zero if there is none.
fn cut(differences: usize, alpha: f64) -> usize {
    if differences > EXACT_MAX {
        return cut_approximated(differences, alpha);
    }
    thread_local! {
        /// A table asks for the same cut many times, and computing it takes milliseconds.
        static KNOWN: RefCell<HashMap<(usize, u64), usize>> = RefCell::default();
    }
    let key = (differences, alpha.to_bits());
    KNOWN
        .with_borrow_mut(|known| *known.entry(key).or_insert_with(|| cut_exact(differences, alpha)))
}

fn cut_exact(differences: usize, alpha: f64) -> usize {
    let mut below = 0.0;
    let mut cut = 0;
    for probability in distribution(differences) {
        below += probability;
        if below > alpha / 2.0 {
            break;
        }
        cut += 1;
    }
    cut
}

/// The probabilities of each signed-rank sum of `n` differences, from zero on: every rank is in the
/// sum or not, each with probability one half.
fn distribution(n: usize) -> Vec<f64> {
    let mut probabilities = vec![0.0; n * (n + 1) / 2 + 1];
    probabilities[0] = 1.0;
    let mut largest = 0;
    for rank in 1..=n {
        largest += rank;
        for sum in (0..=largest).rev() {
            let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = f64::midpoint(probabilities[sum], with);
        }
    }
    probabilities
}

fn cut_approximated(differences: usize, alpha: f64) -> usize {
    let n = differences as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    (mean - 0.5 - normal_quantile(1.0 - alpha / 2.0) * deviation).floor() as usize
}

/// The chance that a standard normal number is above `x` (Abramowitz and Stegun, 26.2.17, error below 7.5·10⁻⁸).
pub(crate) fn normal_tail(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - normal_tail(-x);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let coefficients =
        [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let sum = coefficients.iter().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The quantile of the standard normal distribution for `probability` above one half, by bisection of its tail.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    bisected(10.0, |x| normal_tail(x) > 1.0 - probability)
}

/// The least number from zero to `most` that is not too small, by halving.
pub(super) fn bisected(most: f64, is_too_small: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if is_too_small(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_the_published_one() {
        // n = 3: sums 0, 1, 2, 4, 5, 6 one way each, 3 two ways, of eight.
        let eighths: Vec<f64> = distribution(3).iter().map(|p| p * 8.0).collect();
        assert_eq!(eighths, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
        let sum: f64 = distribution(20).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }

    #[test]
    fn cuts_are_those_of_the_published_tables() {
        // Critical values of the two-sided signed-rank test: n = 20: 52 at 0.05, 37 at 0.01;
        // n = 10: 8 at 0.05, 3 at 0.01. The interval starts one place later.
        assert_eq!(cut(20, 0.05), 53);
        assert_eq!(cut(20, 0.01), 38);
        assert_eq!(cut(10, 0.05), 9);
        assert_eq!(cut(10, 0.01), 4);
        // Seven differences cannot show anything at one per cent: 2 / 2^7 is more.
        assert_eq!(cut(7, 0.01), 0);
        assert_eq!(cut(8, 0.01), 1);
    }

    #[test]
    fn the_approximation_continues_the_exact_cuts() {
        for alpha in [0.01, 0.001] {
            let (exact, approximated) = (cut(EXACT_MAX, alpha), cut_approximated(EXACT_MAX, alpha));
            let apart = exact.abs_diff(approximated);
            assert!(apart * 200 < exact, "{exact} {approximated}");
        }
    }

    #[test]
    fn averages_found_by_place_are_those_of_the_sorted_list() {
        let mut random = masu_run::random::Random::new(8);
        for n in 1..30 {
            // Halves and repetitions, of both signs and zero: ties are the hard case.
            let mut differences: Vec<f64> = (0..n)
                .map(|_| f64::from(u8::try_from(random.below(9)).unwrap()) / 2.0 - 2.0)
                .collect();
            let mut listed: Vec<f64> = (0..n)
                .flat_map(|i| (i..n).map(move |j| (i, j)))
                .map(|(i, j)| f64::midpoint(differences[i], differences[j]))
                .collect();
            listed.sort_by(f64::total_cmp);
            differences.sort_by(f64::total_cmp);
            let found: Vec<f64> =
                (0..listed.len()).map(|place| nth_average(&differences, place)).collect();
            assert_eq!(found, listed);
        }
    }

    #[test]
    fn the_centre_of_symmetric_differences_is_their_middle() {
        let differences = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 0.5, -0.5];
        let (estimate, interval) = center(&differences, 0.01).unwrap();
        assert!(estimate.abs() < 1e-12);
        let (low, high) = interval.unwrap();
        assert!((low + high).abs() < 1e-12 && low < 0.0);
        assert_eq!(center(&[], 0.01), None);
        assert_eq!(center(&[1.0], 0.01), Some((1.0, None)));
    }
}
