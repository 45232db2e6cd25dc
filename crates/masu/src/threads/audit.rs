//! Checks the counts and lists of each layer against its memory, and against those of the other layers, for tests.
//!
//! Relies on each layer to check itself (`audit.rs` in its folder), and on the arenas to find memory that is in no list. Ends
//! the program where anything differs.

use crate::blocks::ownership::Shard;
use crate::blocks::{owner, shard, transfer};
use crate::memory::arena::audit::each_run;
use crate::memory::arena::code_in;
use crate::memory::class::FOREIGN;
use crate::memory::map;
use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::threads::cache::{all, idle};

/// The sums over all runs.
#[derive(Default)]
struct Found {
    live_bytes: usize,
    dirty_bytes: usize,
    metadata_bytes: usize,
    pages: usize,
    large_blocks: usize,
    large_bytes: usize,
}

/// Checks everything, and shows each block in a cache, with its size. The caller is registered, and no other thread uses masu.
pub(crate) fn audit(see: &mut dyn FnMut(usize, usize)) {
    let pages = shard::audit::audit();
    owner::audit();
    transfer::audit(see);
    idle::audit();
    all::caches().for_each(|cache| cache.audit(see));
    let mut found = Found::default();
    each_run(&mut |first| found.add(first));
    let sums = stripes::read();
    assert_eq!(found.pages, pages, "pages of shards");
    assert_eq!(found.live_bytes, sums.live_bytes, "bytes of live runs");
    assert_eq!(found.dirty_bytes, sums.dirty_bytes, "dirty bytes of free runs");
    assert_eq!(found.metadata_bytes, sums.metadata_bytes, "bytes of metadata");
    if !cfg!(feature = "secure") {
        // There, a large block has guards in its run.
        assert_eq!((found.large_blocks, found.large_bytes), (sums.large_blocks, sums.large_bytes));
    }
}

impl Found {
    fn add(&mut self, first: &'static Slice) {
        let bytes = first.count.get() as usize * SLICE_BYTES;
        match first.kind.get() {
            Kind::Free | Kind::Unmerged => {
                self.dirty_bytes += first.dirty.get() as usize;
                return check_code(first);
            }
            // The slots of guarded blocks are no run.
            Kind::Page if first.shard.get() == Shard::GUARDED.0 => return,
            Kind::Page => self.pages += 1,
            Kind::Large | Kind::Parked | Kind::HeapLarge => {
                self.large_blocks += 1;
                self.large_bytes += bytes;
            }
            Kind::Metadata => self.metadata_bytes += bytes,
            Kind::HeapPage | Kind::HeapMixed | Kind::Opaque => {}
        }
        self.live_bytes += bytes;
        check_code(first);
    }
}

/// Checks the class map where a run begins.
fn check_code(first: &'static Slice) {
    let code = if map::is_established() {
        map::double_code(first.address()) >> 1
    } else {
        code_in(first).into()
    };
    assert_eq!(code, usize::from(code_in(first)), "the class map of a {:?}", first.kind.get());
    assert!(code == usize::from(FOREIGN) || first.kind.get() != Kind::Free);
}
