//! Properties of a stack's depth where one thread goes on with the cache of another.

use super::*;
use crate::platform::alone::{self, run_alone};
use crate::threads::thread;

#[test]
fn a_stack_that_was_at_its_ceiling_grows_for_the_next_thread() {
    run_alone!();
    let (cache, class) = (thread::cache().expect("memory"), Class::of_size(1024));
    assert!(cache.open(class));
    while cache.deepen(class) {}
    assert!(cache.depth(class).at_ceiling.get(), "the test would show nothing");
    // As where the thread ends.
    cache.close();
    assert!(cache.open(class));
    assert!(cache.deepen(class));
}
