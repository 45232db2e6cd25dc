//! Walkers with nothing but requests, threads that end, and trims: as many operations as a test has time for, in this
//! process, of masu or of masu with a planted bug.
//!
//! The hard idea is that a heap's history breaks allocators: blocks of one size fill pages, are freed in another order,
//! by other threads, also by threads that start after their owners, and the emptied pages serve other sizes.

use std::sync::atomic::AtomicBool;

use crate::checked::Checked;
use crate::combinations::draw::Draw;
use crate::combinations::features::Limit;
use crate::combinations::run_all;
use crate::combinations::walker::{Context, Tally, Walker};
use crate::finding::Finding;
use crate::live::Budget;
use crate::malloc::Malloc;
use crate::random::Random;
use crate::sizes::{BUFFERS, MEDIUM, Mix, Sizes, USUAL};

/// The requests of each part of the history, and the most blocks that all walkers hold, about.
const HISTORY: [(Mix, usize); 5] =
    [(USUAL, 160_000), (USUAL, 200), (MEDIUM, 32_000), (BUFFERS, 1_200), (USUAL, 80_000)];

/// Walks with so many walkers; returns their counts, or the first finding.
pub(crate) fn walk(
    malloc: &'static dyn Malloc,
    walkers: usize,
    operations: usize,
    live_bytes: usize,
    seed: u64,
) -> Result<Tally, Finding> {
    let parts = HISTORY.map(|(mix, blocks)| Draw::plain(mix, blocks / walkers));
    let mut context = Context {
        draw: &parts[0],
        checked: Checked::new(malloc),
        sizes: &Sizes::of(malloc)?,
        heaps: &[],
        budget: Budget::new(0, live_bytes),
        limit: &Limit::default(),
        stop: AtomicBool::new(false),
        is_forked: false,
    };
    let turns = operations / (parts.len() * walkers);
    let mut walkers = Walker::crew(walkers, &mut Random::new(seed));
    for draw in &parts {
        context.draw = draw;
        run_all(&mut walkers, |walker| walker.walk(&context, turns))?;
        context.checked.trim();
        walkers.iter().try_for_each(|walker| walker.inspect_all(&context))?;
    }
    run_all(&mut walkers, |walker| walker.close(&context))?;
    assert!(context.checked.is_empty(), "the oracle lost a block");
    Ok(Tally::of(&walkers))
}
