//! Numbers with their names, written without `core::fmt`, which would add about 10 KB to `libmasu.so`.
//!
//! Relies on nothing. One loop serves all structures and both formats, also to save code.

/// Numbers and their names, each name followed by a comma.
pub(super) struct Named<'a> {
    pub(super) names: &'static str,
    pub(super) values: &'a [usize],
}

/// The receiver of text, which is written piece by piece.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&[u8]);

impl Named<'_> {
    /// Calls `take` with each name and number, in order.
    pub(super) fn each(&self, take: &mut dyn FnMut(&[u8], usize)) {
        let mut names = self.names.as_bytes();
        for value in self.values {
            let Some(end) = names.iter().position(|byte| *byte == b',') else { return };
            take(names.get(..end).unwrap_or_default(), *value);
            names = names.get(end + 1..).unwrap_or_default();
        }
    }
}

/// Writes a number in decimal, right-aligned in `width` columns.
#[inline(never)]
pub(super) fn decimal(sink: Sink<'_>, mut value: usize, width: usize) {
    let mut room = [b' '; 20];
    let mut start = room.len();
    for (place, digit) in room.iter_mut().enumerate().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        start = place;
        if value == 0 {
            break;
        }
    }
    let start = start.min(room.len().saturating_sub(width));
    sink(room.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;
    use std::vec::Vec;

    use super::*;

    fn written(value: usize, width: usize) -> String {
        let mut text = Vec::new();
        decimal(&mut |piece| text.extend_from_slice(piece), value, width);
        String::from_utf8(text).expect("digits")
    }

    #[test]
    fn every_digit_is_written_and_short_numbers_are_aligned() {
        assert_eq!(written(0, 0), "0");
        assert_eq!(written(1_020, 0), "1020");
        assert_eq!(written(7, 12), "           7");
        assert_eq!(written(123_456, 3), "123456");
        assert_eq!(written(usize::MAX, 0), "18446744073709551615");
        assert_eq!(written(usize::MAX, 12), "18446744073709551615");
    }

    #[test]
    fn every_number_has_its_name() {
        let mut pairs = Vec::new();
        let named = Named { names: "one,two,three,", values: &[1, 2, 3] };
        named.each(&mut |name, value| pairs.push((name.to_vec(), value)));
        assert_eq!(pairs, [(b"one".to_vec(), 1), (b"two".to_vec(), 2), (b"three".to_vec(), 3)]);
    }
}
