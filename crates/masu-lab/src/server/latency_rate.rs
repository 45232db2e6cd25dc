//! The rate at which latencies are measured in the second half of each burst.
//!
//! Throughput needs a closed loop, honest latencies need an open one; a burst can have both, one after the other.

use std::fmt;
use std::str::FromStr;

use crate::load::RATE_MAX;

/// The requests a second in the second half of each burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyRate {
    PerSecond(f64),
    /// This share of the reference's answers at the end of its warm-up: the same rate for all
    /// variants, and fit for a machine that nobody has measured before.
    Share(f64),
}

impl LatencyRate {
    /// Requests a second, where the warm reference answers `reference`; none for a share where that is not known.
    pub(super) fn per_second(self, reference: Option<f64>) -> Option<f64> {
        match self {
            LatencyRate::PerSecond(rate) => Some(rate),
            // The rate is a whole number, so that the page can show the requested rate.
            LatencyRate::Share(share) => Some((reference? * share).round().max(1.0)),
        }
    }
}

impl FromStr for LatencyRate {
    type Err = String;

    /// Understands `500`, requests a second, and `50%` of the reference's answers.
    fn from_str(text: &str) -> Result<LatencyRate, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
        let rate = match text.strip_suffix('%') {
            Some(share) => number(share)
                .filter(|share| *share <= 100.0)
                .map(|share| LatencyRate::Share(share / 100.0)),
            None => number(text).filter(|rate| *rate <= RATE_MAX).map(LatencyRate::PerSecond),
        };
        rate.ok_or_else(|| {
            "write requests a second (500, a million at most), or a share of what the reference answers (50%)"
                .to_owned()
        })
    }
}

impl fmt::Display for LatencyRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LatencyRate::PerSecond(rate) => write!(f, "{rate}"),
            LatencyRate::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_a_share_are_understood_and_written_as_they_were() {
        for text in ["500", "0.5", "50%", "100%"] {
            assert_eq!(text.parse::<LatencyRate>().unwrap().to_string(), text);
        }
        for text in ["", "%", "0", "-1", "101%", "nan", "inf", "1e9", "fast"] {
            assert!(text.parse::<LatencyRate>().unwrap_err().contains("50%"), "{text}");
        }
    }

    #[test]
    fn a_share_is_one_of_what_the_reference_answers() {
        assert_eq!(LatencyRate::PerSecond(7.0).per_second(None), Some(7.0));
        assert_eq!(LatencyRate::Share(0.5).per_second(Some(901.0)), Some(451.0));
        assert_eq!(LatencyRate::Share(0.5).per_second(Some(0.0)), Some(1.0));
        assert_eq!(LatencyRate::Share(0.5).per_second(None), None);
    }
}
