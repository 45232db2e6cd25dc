//! Special bytes of a block, found with the vectors of this CPU.
//!
//! Relies on one detection, when the classifier is made. Each kind of CPU has a module that returns a
//! mask for [`LANES`] bytes, bit 0 for the first byte; one test compares all of them with the same
//! loop over bytes.

use super::SPECIALS;

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Bytes classified at once.
pub(crate) const LANES: usize = 64;

/// Quotes `input` into `output`, which has room.
///
/// # Safety
///
/// - The CPU has the instructions that the function was compiled for.
/// - `output` has room, as [`super::quote_with`] wants it.
type Quote = unsafe fn(&[u8; SPECIALS], &[u64; 256], &[u8], &mut Vec<u8>);

/// Special bytes, and the fastest way to find them on this CPU.
pub(crate) struct Classifier {
    specials: [u8; SPECIALS],
    quote: Quote,
}

/// The ways to quote that work on this CPU, by name, the fastest first.
fn ways() -> Vec<(&'static str, Quote)> {
    let mut ways: Vec<(&'static str, Quote)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    x86::add(&mut ways);
    #[cfg(target_arch = "aarch64")]
    neon::add(&mut ways);
    ways.push(("portable", portable::quote));
    ways
}

impl Classifier {
    pub(crate) fn new(specials: [u8; SPECIALS]) -> Self {
        let (_, quote) = ways()[0];
        Self { specials, quote }
    }

    /// A classifier for each way that works on this CPU.
    #[cfg(test)]
    pub(crate) fn all(specials: [u8; SPECIALS]) -> Vec<(&'static str, Self)> {
        ways().into_iter().map(|(name, quote)| (name, Self { specials, quote })).collect()
    }

    #[cfg(test)]
    pub(crate) fn specials(&self) -> [u8; SPECIALS] {
        self.specials
    }

    /// Appends the input with each byte replaced by its word. The output has room: see `Quoter::quote`.
    pub(super) fn quote(&self, words: &[u64; 256], input: &[u8], output: &mut Vec<u8>) {
        let room = output.capacity() - output.len();
        assert!(room >= input.len() * super::LONGEST + super::SLACK, "no room was made");
        // SAFETY: The way was found to work on this CPU, and there is room.
        unsafe { (self.quote)(&self.specials, words, input, output) };
    }
}
