//! Probability: the number of bytes to count until the next sample, and the chance that a block was sampled.
//!
//! Relies on nothing: the core library has no logarithm, so both functions are series. Sampling is a Poisson process over
//! bytes: every byte is hit with the same small probability, independently of earlier hits, so no pattern of allocations
//! is missed or counted too often.

/// The next random number (splitmix64, G. Steele and others, 2014).
pub(crate) fn next_random(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, mixed ^ (mixed >> 31))
}

/// The number of bytes to count until a hit, at least 1, with `interval` on average.
pub(crate) fn bytes_to_hit(random: u64, interval: usize) -> usize {
    // In (0, 1], so that its logarithm is finite.
    let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let bytes = -logarithm(uniform) * interval as f64;
    (bytes as usize).saturating_add(1)
}

/// The probability that at least one of `bytes` is hit: 1 − e^(−bytes/interval), greater than 0.
#[inline(never)]
pub(super) fn probability_of_hit(bytes: usize, interval: usize) -> f64 {
    let mut x = bytes.max(1) as f64 / interval.max(1) as f64;
    if x > 40.0 {
        return 1.0;
    }
    let mut halved = 0;
    while x > 0.25 {
        x /= 2.0;
        halved += 1;
    }
    // The series of 1 − e^(−x): subtracting e^(−x) from 1 would lose all digits of a tiny x.
    let mut term = x;
    let mut sum = x;
    for n in 2..12 {
        term *= -x / f64::from(n);
        sum += term;
    }
    for _ in 0..halved {
        // 1 − (1 − p)².
        sum *= 2.0 - sum;
    }
    sum
}

/// The natural logarithm of a number in (0, 1].
#[inline(never)]
fn logarithm(x: f64) -> f64 {
    const EXPONENT_BIAS: i64 = 1023;
    const FRACTION_BITS: u32 = 52;
    let bits = x.to_bits();
    let mut exponent = (bits >> FRACTION_BITS) as i64 - EXPONENT_BIAS;
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let mut m = f64::from_bits(fraction | (EXPONENT_BIAS as u64) << FRACTION_BITS);
    if m > core::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m − 1) / (m + 1)), where that argument is at most 0.172.
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut power = s;
    let mut sum = s;
    for n in [3, 5, 7, 9, 11, 13, 15, 17] {
        power *= square;
        sum += power / f64::from(n);
    }
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * sum
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn both_series_agree_with_libm() {
        for n in 1..=10_000_u64 {
            let x = n as f64 / 10_000.0;
            assert!((logarithm(x) - x.ln()).abs() < 1e-12, "ln {x}");
            let (bytes, interval) = (n as usize * 37, 65_536);
            let exact = -(-(bytes as f64) / interval as f64).exp_m1();
            let ours = probability_of_hit(bytes, interval);
            assert!((ours / exact - 1.0).abs() < 1e-12, "{bytes}: {ours}, {exact}");
        }
        let tiny = probability_of_hit(1, 1 << 40) * (1_u64 << 40) as f64;
        assert!((tiny - 1.0).abs() < 1e-9, "{tiny}");
        assert!((probability_of_hit(usize::MAX, 1) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn hits_come_once_in_an_interval_without_memory() {
        const DRAWS: usize = 1_000_000;
        const INTERVAL: usize = 10_000;
        let (mut state, mut sum, mut over) = (1, 0.0, [0_usize; 2]);
        for _ in 0..DRAWS {
            let (next, random) = next_random(state);
            state = next;
            let bytes = bytes_to_hit(random, INTERVAL);
            assert!(bytes > 0);
            sum += bytes as f64;
            over[0] += usize::from(bytes > INTERVAL);
            over[1] += usize::from(bytes > 2 * INTERVAL);
        }
        // The standard deviation of the mean is INTERVAL/√DRAWS = 10; that of the counts at most √DRAWS/2 = 500.
        let mean = sum / DRAWS as f64;
        assert!((mean - INTERVAL as f64 - 0.5).abs() < 50.0, "{mean}");
        for (power, count) in [(1.0_f64, over[0]), (2.0, over[1])] {
            let expected = (-power).exp() * DRAWS as f64;
            assert!((count as f64 - expected).abs() < 2_500.0, "{count}, {expected}");
        }
    }

    #[test]
    fn the_extremes_of_chance_are_numbers_of_bytes() {
        assert_eq!(bytes_to_hit(u64::MAX, 1 << 19), 1);
        assert!(bytes_to_hit(0, 1 << 19) > 36 << 19);
        assert_eq!(bytes_to_hit(0, usize::MAX), usize::MAX);
    }
}
