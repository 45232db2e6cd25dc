//! The promises of all stripes together.
//!
//! The stripes are the process's, and never become fewer. So each test runs this program again for a process of its
//! own, in which a check of `checks` has them to itself.

extern crate std;

mod checks;

use crate::platform::alone;

/// A test for each of the checks.
macro_rules! each_alone {
    ($($check:ident)+) => {$(
        #[test]
        fn $check() {
            alone::passes(concat!("memory::ranges::stripes::tests::checks::", stringify!($check)));
        }
    )+};
}

each_alone! {
    a_request_waits_for_a_stripe_that_may_have_its_memory
    before_a_request_fails_every_stripe_returns_its_free_memory
    an_idle_stripe_purges_all_that_it_need_not_keep
    an_idle_stripe_purges_although_no_run_is_taken
    a_thread_that_passes_time_waits_for_nobody
    an_idle_stripe_gives_one_run_after_another
    readers_hold_one_stripe_at_a_time
    no_arena_is_unmapped_while_all_are_read
    a_heap_locks_no_stripes_but_its_own
    a_limit_set_late_counts_what_other_stripes_keep
    a_debt_does_not_wait_behind_a_busy_stripe
    a_limit_leaves_a_debt_as_it_was
    a_limit_holds_for_threads_that_ask_at_once
    a_limit_holds_for_blocks_that_grow_in_several_stripes
    the_minimum_is_kept_by_all_stripes_together
    each_stripe_keeps_the_minimum_at_most
    a_block_is_counted_by_the_stripe_of_its_run
}
