//! Resident memory over time, in few enough points to be kept for every run.
//!
//! A point holds the largest of a number of samples; when there are too many points, neighbors are joined. So no peak
//! is lost, and a short run keeps every sample.

use std::time::Duration;

const POINTS_MAX: usize = 100;

#[derive(Debug, Default)]
pub struct Curve {
    points: Vec<(f64, u64)>,
    /// The number of looks that the last point stands for.
    looks: usize,
    /// The number of times that points were joined: a full point stands for two to this power of looks.
    joins: u32,
}

impl Curve {
    pub fn add(&mut self, at: Duration, bytes: u64) {
        // Tenths of a millisecond: looks are farther apart, and every digit is kept for ever.
        let at_s = (at.as_secs_f64() * 1e4).round() / 1e4;
        match self.points.last_mut() {
            Some(last) if self.looks < 1 << self.joins => {
                *last = (at_s, last.1.max(bytes));
                self.looks += 1;
            }
            _ => {
                if self.points.len() == POINTS_MAX {
                    self.halve();
                }
                self.points.push((at_s, bytes));
                self.looks = 1;
            }
        }
    }

    /// Joins each two points into the later one.
    fn halve(&mut self) {
        let pairs = self.points.chunks(2).filter_map(|pair| {
            let bytes = pair.iter().map(|point| point.1).max()?;
            Some((pair.last()?.0, bytes))
        });
        self.points = pairs.collect();
        self.joins += 1;
    }

    pub fn points(&self) -> Vec<(f64, u64)> {
        self.points.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(looks: u64, bytes: impl Fn(u64) -> u64) -> Vec<(f64, u64)> {
        let mut curve = Curve::default();
        for look in 0..looks {
            curve.add(Duration::from_millis(look), bytes(look));
        }
        curve.points()
    }

    #[test]
    fn a_short_run_keeps_every_look() {
        assert_eq!(curve(0, |_| 1), []);
        assert_eq!(curve(3, |look| look), [(0.0, 0), (0.001, 1), (0.002, 2)]);
        assert_eq!(curve(100, |look| look).len(), 100);
    }

    #[test]
    fn a_long_run_keeps_its_peak_its_end_and_its_order() {
        for looks in [101, 1000, 1024, 9999] {
            for peak in [0, 1, 50, 100] {
                let points = curve(looks, |look| if look == peak { 7 } else { 1 });
                assert!((POINTS_MAX / 2..=POINTS_MAX).contains(&points.len()));
                assert_eq!(points.iter().filter(|point| point.1 == 7).count(), 1);
                assert!(points.is_sorted_by(|one, next| one.0 < next.0));
                let end_s = f64::from(u32::try_from(looks - 1).unwrap()) / 1e3;
                assert!((points.last().unwrap().0 - end_s).abs() < 1e-9, "{points:?}");
            }
        }
    }
}
