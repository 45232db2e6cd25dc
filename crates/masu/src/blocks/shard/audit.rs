//! Checks the counts and lists of all shards against their pages, for tests.
//!
//! Relies on the arenas to find the pages: those without a free block are in no list.

use core::ptr;

use super::{ClassPages, FREE, Place, Shard, sparse};
use crate::blocks::page::{Page, page_of};
use crate::memory::arena::audit::each_run;
use crate::memory::class::Class;
use crate::memory::slice::{Kind, Slice};
use crate::platform::sync::Ordering;

/// Checks the pages of all shards against their counts and lists; returns their number. No other thread uses masu.
pub(crate) fn audit() -> usize {
    let classes = |shard| Class::all().map(move |class| (shard, class));
    let audit = |(shard, class): (Shard, Class)| shard.pages(class).lock().audit(shard, class);
    Shard::all().flat_map(classes).map(audit).sum()
}

/// Checks that a block of `class`, which a cache has, was taken from a page of that class.
pub(crate) fn audit_taken(class: Class, block: usize) {
    let page = page_of(block);
    if page.owner() != Shard::GUARDED {
        page.check_class(class);
        page.audit_taken(class, block);
    }
}

/// The class of a page's blocks.
fn class_of(page: &Slice) -> Option<Class> {
    let is_sampled = page.shard.get() == Shard::SAMPLED.0;
    Class::from_code(if is_sampled { page.sampled.get() } else { page.code.get() })
}

impl ClassPages {
    fn audit(&self, shard: Shard, class: Class) -> usize {
        let is_here = |first: &'static Slice| {
            first.kind.is(Kind::Page)
                && Shard(first.shard.get()) == shard
                && class_of(first).is_some_and(|of| of.page_index() == class.page_index())
        };
        let (mut pages, mut handed_out, mut free, mut partial) = (0, 0, 0, 0);
        let mut visit = |first: &'static Slice| {
            if is_here(first) {
                let of_page = Page(first).audit(class);
                pages += 1;
                free += of_page;
                handed_out += Page(first).audit_handed_out(class, of_page);
                partial += usize::from(of_page > 0 && !Page(first).is_away());
            }
        };
        if self.pages > 0 {
            each_run(&mut visit);
        }
        let counted = (self.pages as usize, self.handed_out, self.partial_count as usize);
        assert_eq!(counted, (pages, handed_out, partial), "{shard:?}, {} bytes", class.size());
        assert_eq!(self.partial.iter().count(), partial);
        assert!(self.partial.iter_back().all(|page| is_here(page) && !Page(page).is_full()));
        assert!(self.freed as usize <= free, "{} of {free} were freed", self.freed);
        let is_listed = |place: &Slice| self.partial.iter().any(|page| ptr::eq(page, place));
        assert!(self.place.page().is_none_or(is_listed), "a pass is at a page in no list");
        // A pass at whose last page there is none ends with its next step.
        assert!(self.place == Place::NONE || sparse::is_passing(shard, class));
        if partial > 0 && self.freed > 0 && !shard.is_special() {
            // ORDERING: Relaxed: no other thread uses masu.
            let shards = FREE[class.page_index()].load(Ordering::Relaxed);
            assert!(shards >> shard.0 & 1 != 0, "no other shard sees free blocks of {shard:?}");
        }
        pages
    }
}
