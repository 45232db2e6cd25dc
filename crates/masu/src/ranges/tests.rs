//! Properties of free runs, on ranges of this test's own.

use super::*;

#[test]
fn list_of_grows_with_the_length() {
    let mut last = 0;
    for count in 1..1 << 20 {
        let list = list_of(count);
        assert!(list >= last && list < LISTS);
        last = list;
    }
}
