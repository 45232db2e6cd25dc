//! Quoting against a loop over bytes that follows the rules as they are written.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The rules, byte by byte and record by record.
fn oracle(input: &[u8], delimiter: u8, line_end: u8, escape: bool) -> Vec<u8> {
    let mut output = Vec::new();
    let mut records: Vec<&[u8]> = input.split(|&byte| byte == delimiter).collect();
    if records.last().is_some_and(|last| last.is_empty()) {
        records.pop();
    }
    for record in records {
        output.push(b'\'');
        for &byte in record {
            match byte {
                b'\'' => output.extend(b"'\"'\"'"),
                8 if escape => output.extend(b"'$'\\b''"),
                b'\n' if escape => output.extend(b"'$'\\n''"),
                b'\r' if escape => output.extend(b"'$'\\r''"),
                byte => output.push(byte),
            }
        }
        output.extend([b'\'', line_end]);
    }
    output
}

/// Quotes input cut at these places, by each way that works on this CPU.
fn by_each_way(
    input: &[u8],
    cuts: &[usize],
    (delimiter, line_end, escape): (u8, u8, bool),
) -> Vec<(&'static str, Vec<u8>)> {
    let made = Quoter::new(delimiter, line_end, escape);
    let ways = Classifier::all(made.classifier.specials());
    let quoted = ways.into_iter().map(|(name, classifier)| {
        let quoter = Quoter { classifier, ..Quoter::new(delimiter, line_end, escape) };
        let (mut output, mut before) = (Vec::new(), None);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        for piece in cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]) {
            quoter.quote(piece, before.is_none_or(|byte| byte == delimiter), &mut output);
            before = piece.last().copied().or(before);
        }
        if before.is_some_and(|byte| byte != delimiter) {
            output.extend(quoter.end());
        }
        (name, output)
    });
    quoted.collect()
}

/// Bytes of which many are special.
fn dense() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0), Just(b'\''), Just(8), Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()]
}

proptest! {
    #[test]
    fn every_way_follows_the_rules_wherever_the_input_is_cut(
        dense in vec(dense(), 0..400),
        sparse in vec(any::<u8>(), 0..400),
        cuts in vec(any::<usize>(), 0..4),
        delimiter in prop_oneof![Just(0), Just(b'\n'), Just(b'\''), any::<u8>()],
        line_end in prop_oneof![Just(0), Just(b'\n')],
        escape: bool,
    ) {
        let input: Vec<u8> = dense.into_iter().chain(sparse).collect();
        let expected = oracle(&input, delimiter, line_end, escape);
        for (name, quoted) in by_each_way(&input, &cuts, (delimiter, line_end, escape)) {
            prop_assert_eq!(&quoted, &expected, "{}", name);
        }
    }
}

#[test]
fn every_byte_at_every_place_of_a_block_follows_the_rules() {
    for byte in 0..=u8::MAX {
        for place in 0..LANES {
            let mut input = vec![b'x'; 3 * LANES];
            input[place] = byte;
            for (name, quoted) in by_each_way(&input, &[], (0, b'\n', true)) {
                assert_eq!(quoted, oracle(&input, 0, b'\n', true), "{name}: {byte} at {place}");
            }
        }
    }
}

#[test]
fn the_longest_output_fits() {
    for len in [1, 63, 64, 65, 1000] {
        let input = vec![b'\n'; len];
        for (name, quoted) in by_each_way(&input, &[], (0, b'\n', true)) {
            assert_eq!(quoted.len(), len * LONGEST + 3, "{name}");
        }
    }
}
