//! An index out of bounds ends the program with a message: this program, run again for each misuse.

extern crate std;

use std::string::String;

use super::Bounded;
use crate::platform::alone;

const MISUSE: &str = "MASU_TEST_MISUSE";
const MISUSES: [fn(&mut [u8; 3]); 5] = [
    |three| _ = three.at(3),
    |three| _ = three.at(2..4),
    |three| *three.at_mut(usize::MAX) = 0,
    |three| three.copy_from(&[0; 4]),
    |three| three.move_to_start(4),
];

#[test]
#[ignore = "a misuse; run by the test of all"]
fn misuse() {
    let number: usize = std::env::var(MISUSE).expect("a number").parse().expect("a number");
    MISUSES[number](&mut [1, 2, 3]);
}

#[test]
fn an_index_out_of_bounds_ends_the_program_with_a_message() {
    for number in 0..MISUSES.len() {
        let mut again = alone::again("platform::bounds::tests::misuse");
        let output = again.env(MISUSE, std::format!("{number}")).output().expect("it starts");
        let printed = String::from_utf8_lossy(&output.stderr);
        let line = "masu: its own data was overwritten; stopping\n";
        assert!(!output.status.success() && printed.ends_with(line), "{number}: {printed}");
    }
}
