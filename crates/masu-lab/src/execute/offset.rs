//! The environment's offset: a variable of random length that moves the stack of each run.
//!
//! The length of the environment decides where the stack begins, and so how data share cache lines and pages. One
//! layout may be luckier than another by more than the variants differ (Mytkowicz and others, "Producing wrong data
//! without doing anything obviously wrong!", 2009). Drawn for each run, the luck is spread over all variants.

use crate::random::Random;

/// The variable's name. It does not begin with `MASU_`: those are options of the allocator.
const NAME: &str = "ENVIRONMENT_OFFSET";

/// Lengths are drawn below this: one page moves the stack through every place within a page.
const BYTES: usize = 4096;

/// Offsets of run after run, the same for the same seed.
#[derive(Debug, Clone)]
pub struct Offsets(Option<Random>);

impl Offsets {
    /// Random offsets, 0 to 4095 bytes.
    pub fn random(seed: u64) -> Offsets {
        // The order of runs is drawn from the same seed and must not go along with the offsets.
        Offsets(Some(Random::new(seed ^ u64::from_be_bytes(*b"OFFSETS!"))))
    }

    /// No offset: the environment stays as it is. For programs that show or pass on their whole environment.
    pub fn none() -> Offsets {
        Offsets(None)
    }

    /// The offset of the next run in bytes.
    pub fn draw(&mut self) -> u32 {
        let bytes = self.0.as_mut().map_or(0, |random| random.below(BYTES));
        u32::try_from(bytes).unwrap_or(0)
    }
}

/// The variable that makes the environment longer by `bytes` beyond its name; none for zero.
pub(crate) fn variable(bytes: u32) -> Option<(&'static str, String)> {
    (bytes > 0).then(|| (NAME, "x".repeat(bytes as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_fill_a_page_and_repeat_with_their_seed() {
        let draw = |mut offsets: Offsets| (0..1000).map(|_| offsets.draw()).collect::<Vec<u32>>();
        let one = draw(Offsets::random(1));
        assert_eq!(one, draw(Offsets::random(1)));
        assert_ne!(one, draw(Offsets::random(2)));
        assert!(one.iter().all(|bytes| *bytes < 4096));
        assert!(one.iter().any(|bytes| *bytes < 400) && one.iter().any(|bytes| *bytes > 3600));
        assert!(draw(Offsets::none()).iter().all(|bytes| *bytes == 0));
    }

    #[test]
    fn the_variable_has_as_many_bytes_as_the_offset() {
        assert_eq!(variable(0), None);
        assert_eq!(variable(3).unwrap().1.len(), 3);
    }
}
