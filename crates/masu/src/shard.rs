//! Shards: who owns the pages. Threads own only their caches.
//!
//! Relies on pages; thread caches and the transfer cache come here for blocks and bring them back,
//! as arrays of pointers. There is about one shard a CPU, and each keeps, for every class, a list of
//! its pages with free blocks behind a lock of its own. The hard idea: because pages never belong
//! to a thread, a thread's end is at most a flush, and a block freed by any thread goes the same
//! way home.

use crate::class::{CLASSES, Class, LANES};
use crate::list::List;
use crate::options::{self, SHARDS_MAX};
use crate::page::Page;
use crate::slice::{SLICE_BYTES, Slice};
use crate::sync::{AtomicUsize, Lock, Ordering};

/// The pages of one class in one shard.
pub(crate) struct ClassPages {
    /// Pages with a free block, roughly lowest address first.
    partial: List,
    /// How many pages `partial` holds.
    partial_count: usize,
    /// Blocks handed out from these pages: in the hands of the program or of caches.
    handed_out: usize,
    /// `handed_out` when sparse pages were last purged, or the most it was since; 0 at first.
    handed_out_at_purge: usize,
    /// Sparse pages are left alone up to this size together, over [`LEFT_ALONE_BYTES_MIN`]. Grows
    /// when purged blocks are used again, fades with each purge.
    left_alone_bytes: usize,
}

/// A lock on a cache line of its own.
#[repr(align(64))]
struct Line(Lock<ClassPages>);

static SHARDS: [[Line; CLASSES]; SHARDS_MAX] =
    [const { [const { Line(Lock::new(ClassPages::new())) }; CLASSES] }; SHARDS_MAX];
/// How many shards threads were given so far.
static SHARDS_USED: AtomicUsize = AtomicUsize::new(1);

/// How many shards there are to be, known as soon as a second thread is.
static SHARDS_PLANNED: AtomicUsize = AtomicUsize::new(1);

/// Lanes of homed classes that there are.
pub(crate) fn lanes() -> usize {
    // ORDERING: Relaxed: the number stands for itself.
    SHARDS_PLANNED.load(Ordering::Relaxed).min(LANES)
}

/// A shard, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shard(pub(crate) u8);

impl Shard {
    /// The shard for the thread that starts as number `thread`, where there are to be `shards`.
    pub(crate) fn for_thread(thread: usize, shards: usize) -> Shard {
        let shards = shards.clamp(1, SHARDS_MAX);
        let shard = thread % shards;
        // ORDERING: Relaxed: whoever frees another lane's block has synchronised with its thread.
        SHARDS_PLANNED.fetch_max(shards, Ordering::Relaxed);
        // ORDERING: Relaxed: a page of a new shard is seen through that shard's lock.
        SHARDS_USED.fetch_max(shard + 1, Ordering::Relaxed);
        Shard(shard as u8)
    }

    fn used() -> impl Iterator<Item = Shard> {
        // ORDERING: Relaxed, as above.
        (0..SHARDS_USED.load(Ordering::Relaxed)).map(|shard| Shard(shard as u8))
    }

    fn pages(self, class: Class) -> &'static Lock<ClassPages> {
        &SHARDS[usize::from(self.0)][class.page_index()].0
    }

    /// Takes up to `blocks.len()` free blocks into the *end* of `blocks`; the lowest address comes
    /// last. Returns how many; 0 only for want of memory.
    pub(crate) fn refill(self, class: Class, blocks: &mut [usize]) -> usize {
        let mut pages = self.pages(class).lock();
        let taken = pages.take(class, blocks);
        if taken > 0 {
            return taken;
        }
        let own_bytes = pages.handed_out * class.size();
        drop(pages);
        // Blocks of other shards would be freed back to them one and all, never used again at once.
        if class.is_homed() && own_bytes < OWN_BYTES_MIN {
            let taken = self.refill_from_new(class, blocks);
            if taken > 0 {
                return taken;
            }
        }
        // Before a new page is made, the others' free blocks are used up.
        for other in Shard::used().filter(|other| *other != self) {
            let taken = other.pages(class).lock().take(class, blocks);
            if taken > 0 {
                return taken;
            }
        }
        self.refill_from_new(class, blocks)
    }

    /// The same from a new page.
    fn refill_from_new(self, class: Class, blocks: &mut [usize]) -> usize {
        let Some(page) = Page::create(class, self.0) else { return 0 };
        let mut pages = self.pages(class).lock();
        pages.link(page);
        pages.take(class, blocks)
    }
}

/// Shards that handed out less than this of a homed class make pages of their own before they take
/// from others.
const OWN_BYTES_MIN: usize = 1 << 20;

/// What a flush found out about the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Pages {
    /// Nothing that needs doing.
    Ordinary,
    /// Few blocks keep many pages: those among them that caches hold had better go home too.
    Sparse,
}

/// Brings blocks home to their pages.
pub(crate) fn flush(class: Class, blocks: &[usize]) -> Pages {
    if let [block] = blocks {
        return flush_one(class, *block);
    }
    let mut pages = Pages::Ordinary;
    for chunk in blocks.chunks(CHUNK) {
        if flush_chunk(class, chunk) == Pages::Sparse {
            pages = Pages::Sparse;
        }
    }
    pages
}

/// The same for a single block, as big ones come.
fn flush_one(class: Class, block: usize) -> Pages {
    // SAFETY: The block lies in a page, because only pages' blocks are ever cached.
    let shard = Shard(unsafe { Slice::at(block) }.page().shard.get());
    let mut pages = shard.pages(class).lock();
    let empty = pages.put(class, block);
    let found = pages.look(class);
    drop(pages);
    if let Some(page) = empty {
        // SAFETY: `put` took the page out of its list because every block of it is free.
        unsafe { page.release(class) };
    }
    found
}

/// Blocks looked at together, so that the pages' data are still in the cache in the second pass.
const CHUNK: usize = 256;

fn flush_chunk(class: Class, blocks: &[usize]) -> Pages {
    let mut shards = [0_u8; CHUNK];
    let mut present = 0_u32;
    for (block, shard) in blocks.iter().zip(&mut shards) {
        // SAFETY: The block lies in a page, because only pages' blocks are ever cached.
        *shard = unsafe { Slice::at(*block) }.page().shard.get();
        present |= 1 << *shard;
    }
    let mut pages = Pages::Ordinary;
    while present != 0 {
        let shard = present.trailing_zeros() as u8;
        present &= present - 1;
        let blocks = blocks.iter().zip(&shards).filter(|(_, s)| **s == shard).map(|(b, _)| *b);
        if flush_to(Shard(shard), class, blocks) == Pages::Sparse {
            pages = Pages::Sparse;
        }
    }
    pages
}

/// Pages of this size together are worth a thought about how few blocks keep them.
const SPARSE_BYTES_MIN: usize = 256 << 10;
/// Pages are sparse when less than this share of them is handed out.
const SPARSE_SHARE: usize = 4;

/// Sparse pages of this size together are left alone at first, unless an option says otherwise.
const LEFT_ALONE_BYTES_MIN: usize = 4 << 20;

/// Empty pages of fewer blocks than this are not kept.
const KEPT_BLOCKS_MIN: usize = 64;

/// How many pages of `class` are kept when empty: one, so that blocks freed and allocated in turns
/// cost no page, unless it holds so few that caches see to that.
fn kept_pages(class: Class) -> usize {
    let keeps = class.page_blocks() >= KEPT_BLOCKS_MIN && options::retain() != Some(0);
    usize::from(keeps)
}

/// Pages that became empty in one flush and are released behind the lock.
const EMPTY_MAX: usize = 32;

fn flush_to(shard: Shard, class: Class, mut blocks: impl Iterator<Item = usize>) -> Pages {
    let mut done = false;
    loop {
        let mut empty = [None; EMPTY_MAX];
        let mut count = 0;
        let mut pages = shard.pages(class).lock();
        loop {
            let Some(block) = blocks.next() else {
                done = true;
                break;
            };
            if let Some(page) = pages.put(class, block) {
                empty[count] = Some(page);
                count += 1;
                if count == EMPTY_MAX {
                    break;
                }
            }
        }
        let found = pages.look(class);
        drop(pages);
        for page in empty.into_iter().take(count).flatten() {
            // SAFETY: `put` took the page out of its list because every block of it is free.
            unsafe { page.release(class) };
        }
        if done {
            return found;
        }
    }
}

impl ClassPages {
    const fn new() -> ClassPages {
        ClassPages {
            partial: List::new(),
            partial_count: 0,
            handed_out: 0,
            handed_out_at_purge: 0,
            left_alone_bytes: 0,
        }
    }

    /// Takes a page with free blocks into the list: lower addresses to the front, so that high
    /// ones empty.
    fn link(&mut self, page: Page) {
        let lower = self.partial.first().is_none_or(|first| page.0.address() < first.address());
        if lower {
            self.partial.push_first(page.0);
        } else {
            self.partial.push_last(page.0);
        }
        self.partial_count += 1;
    }

    fn unlink(&mut self, page: Page) {
        self.partial.remove(page.0);
        self.partial_count -= 1;
    }

    fn take(&mut self, class: Class, blocks: &mut [usize]) -> usize {
        let wanted = blocks.len();
        let mut left = wanted;
        while left > 0
            && let Some(first) = self.partial.first()
        {
            let page = Page(first);
            left -= page.take(class, &mut blocks[..left]);
            self.left_alone_bytes += 2 * page.note_taken() * class.size();
            if page.is_full() {
                self.unlink(page);
            }
        }
        // What was taken lies at the end of `blocks`, as promised, also if it is less.
        self.handed_out += wanted - left;
        wanted - left
    }

    /// Marks a block free; returns its page where that is now empty and taken out of the list.
    fn put(&mut self, class: Class, block: usize) -> Option<Page> {
        // SAFETY: The block lies in a page, because only pages' blocks are ever cached.
        let page = Page(unsafe { Slice::at(block) }.page());
        let was_full = page.is_full();
        page.put(class, block);
        self.handed_out -= 1;
        if was_full {
            self.link(page);
        }
        let releases = page.is_empty(class) && self.partial_count > kept_pages(class);
        releases.then(|| {
            self.unlink(page);
            page
        })
    }

    /// Looks at the pages after a flush, and gives memory back where few blocks keep many.
    fn look(&mut self, class: Class) -> Pages {
        if !self.is_sparse(class) {
            return Pages::Ordinary;
        }
        self.purge_sparse(class);
        Pages::Sparse
    }

    /// Whether few blocks keep many pages.
    fn is_sparse(&self, class: Class) -> bool {
        let bytes = self.partial_count * class.page_slices() * SLICE_BYTES;
        bytes >= SPARSE_BYTES_MIN && self.handed_out * class.size() < bytes / SPARSE_SHARE
    }

    /// Gives the free memory inside sparse pages back to the kernel, if it is much and a good part
    /// was freed since the last time.
    fn purge_sparse(&mut self, class: Class) {
        let bytes = self.partial_count * class.page_slices() * SLICE_BYTES;
        let before = self.handed_out_at_purge;
        let freed_enough = before == 0 || self.handed_out < before / 4 * 3;
        let left_alone = options::retain().unwrap_or(LEFT_ALONE_BYTES_MIN);
        if bytes < left_alone.saturating_add(self.left_alone_bytes) || !freed_enough {
            self.handed_out_at_purge = before.max(self.handed_out);
            return;
        }
        self.handed_out_at_purge = self.handed_out;
        self.left_alone_bytes -= self.left_alone_bytes / 8;
        self.partial.iter().for_each(|page| Page(page).purge_free(class));
    }

    /// Takes an empty page out of the list, to be released.
    fn take_empty(&mut self, class: Class) -> Option<Page> {
        let page = self.partial.iter().map(Page).find(|page| page.is_empty(class))?;
        self.unlink(page);
        Some(page)
    }
}

/// Releases the empty pages that were kept.
pub(crate) fn trim() {
    for shard in Shard::used() {
        for class in Class::all() {
            loop {
                // Not in the condition: the guard would live through the release.
                let empty = shard.pages(class).lock().take_empty(class);
                let Some(page) = empty else { break };
                // SAFETY: Every block of the page is free and it is in no list.
                unsafe { page.release(class) };
            }
        }
    }
}

/// How many shards have handed blocks out, to the program or to caches, and their bytes.
pub(crate) fn handed_out() -> (usize, usize) {
    let of_class = |shard: Shard, class: Class| {
        let blocks = shard.pages(class).lock().handed_out;
        blocks * class.size()
    };
    Shard::used()
        .map(|shard| Class::all().map(|class| of_class(shard, class)).sum::<usize>())
        .filter(|bytes| *bytes > 0)
        .fold((0, 0), |(shards, sum), bytes| (shards + 1, sum + bytes))
}

/// Holds every lock of this room across `fork`.
pub(crate) fn hold_for_fork() {
    for shard in Shard::used() {
        Class::all().for_each(|class| shard.pages(class).hold());
    }
}

/// Ends [`hold_for_fork`].
///
/// # Safety
///
/// - This thread, or the one it was forked from, called `hold_for_fork`, with no thread made since.
pub(crate) unsafe fn let_go_after_fork() {
    for shard in Shard::used() {
        // SAFETY: The caller's condition.
        Class::all().for_each(|class| unsafe { shard.pages(class).let_go() });
    }
}
