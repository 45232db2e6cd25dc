//! Every kind of request of a Rust program, checked. The tests `faults` of `masu-abi` run it while the kernel refuses the
//! allocator's calls; by itself it runs with nothing refused.
//!
//! A request gives a block, which then keeps its contents, or null; a collection's `try_reserve` gives room or an error. At
//! the end no block is live that was not live before. Infallible allocations of Rust's library (handles of threads, buffers
//! of streams) would end the program, so it starts as C does, its threads are the C library's, and its texts lie on the
//! stack.
#![no_main]
#![cfg_attr(not(target_os = "linux"), expect(unused, reason = "masu is for Linux"))]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use masu::{options, profile, statistics};

#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

const MIB: usize = 1 << 20;

/// Requests that were refused, in all threads.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

fn is_refused() {
    // ORDERING: Relaxed: it is read after the threads were joined.
    REFUSED.fetch_add(1, Ordering::Relaxed);
}

fn refused() -> usize {
    // ORDERING: Relaxed, as above.
    REFUSED.load(Ordering::Relaxed)
}

/// A filled block and its layout.
#[derive(Clone, Copy)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

/// Offsets that are written and checked: all of a small block, some in each OS page of others.
fn places(size: usize) -> impl Iterator<Item = usize> {
    (0..size).step_by(if size < 4096 { 1 } else { 4093 }).chain(size.checked_sub(1))
}

impl Block {
    fn mark(self, at: usize) -> u8 {
        (self.layout.size() + 31 * at + 1).to_le_bytes()[0]
    }

    /// A filled block, aligned and zeroed according to `way`.
    fn new(way: usize, size: usize) -> Option<Block> {
        let align = [1, 8, 16, 64, 4096][way % 5];
        let layout = Layout::from_size_align(size, align).expect("a small size");
        let is_zeroed = way.is_multiple_of(3);
        // SAFETY: The size is not 0.
        let start = unsafe { if is_zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        Block::given(start, layout, is_zeroed)
    }

    fn given(start: *mut u8, layout: Layout, is_zeroed: bool) -> Option<Block> {
        let Some(start) = NonNull::new(start) else {
            is_refused();
            return None;
        };
        assert!(start.addr().get().is_multiple_of(layout.align()));
        let block = Block { start, layout };
        // SAFETY: The block is that long, and new.
        assert!(!is_zeroed || places(layout.size()).all(|at| unsafe { start.add(at).read() } == 0));
        block.fill();
        Some(block)
    }

    fn fill(self) {
        for at in places(self.layout.size()) {
            // SAFETY: The block is that long and has no other user.
            unsafe { self.start.add(at).write(self.mark(at)) };
        }
    }

    /// Whether the first `size` bytes are those of the block `of`.
    fn holds(self, of: Block, size: usize) -> bool {
        let step = if of.layout.size() < 4096 { 1 } else { 4093 };
        // SAFETY: The block is that long, and was written at these places.
        (0..size).step_by(step).all(|at| unsafe { self.start.add(at).read() } == of.mark(at))
    }

    fn resized(self, size: usize) -> Block {
        // SAFETY: The block has this layout; the size is not 0.
        let moved = unsafe { realloc(self.start.as_ptr(), self.layout, size) };
        let Some(start) = NonNull::new(moved) else {
            is_refused();
            assert!(self.holds(self, self.layout.size()));
            return self;
        };
        let layout = Layout::from_size_align(size, self.layout.align()).expect("a small size");
        let moved = Block { start, layout };
        assert!(moved.holds(self, size.min(self.layout.size())));
        moved.fill();
        moved
    }

    fn drop(self) {
        assert!(self.holds(self, self.layout.size()));
        // SAFETY: The block has this layout and is not used again.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Random requests among a few live blocks, resized now and then.
fn requests(mut seed: u32, steps: usize) {
    const LIVE: usize = 48;
    const SIZES: [usize; 11] =
        [8, 24, 100, 500, 2000, 9000, 30_000, 50_000, 70_000, 300_000, 3 * MIB];
    let mut blocks = [None::<Block>; LIVE];
    for _ in 0..steps {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let draw = (seed >> 8) as usize;
        let kinds = if draw.is_multiple_of(8) { 11 } else { 6 };
        let size = SIZES[draw / LIVE % kinds] + draw % 7;
        let block = &mut blocks[draw % LIVE];
        *block = match block.take() {
            Some(old) if draw.is_multiple_of(3) => Some(old.resized(size)),
            old => {
                old.into_iter().for_each(Block::drop);
                Block::new(draw >> 4, size)
            }
        };
    }
    blocks.into_iter().flatten().for_each(Block::drop);
}

/// Many blocks of a size at once, freed in another order, which makes and releases pages.
fn crowd(size: usize, count: usize) {
    let mut blocks = Vec::new();
    if blocks.try_reserve_exact(count).is_err() {
        return is_refused();
    }
    blocks.extend((0..count).map(|_| Block::new(1, size)));
    blocks.iter().step_by(2).copied().flatten().for_each(Block::drop);
    blocks.iter().skip(1).step_by(2).copied().flatten().for_each(Block::drop);
}

/// Allocates a few gigabytes of addresses, and touches little of them.
fn huge() {
    let layout = Layout::from_size_align(1500 * MIB, 8).expect("a size");
    // SAFETY: The size is not 0.
    let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { return is_refused() };
    // SAFETY: The block is that long, and has this layout.
    let moved = unsafe {
        start.write(7);
        start.add(layout.size() - 1).write(7);
        realloc(start.as_ptr(), layout, layout.size() / 2)
    };
    let half = Layout::from_size_align(layout.size() / 2, 8).expect("a size");
    let (start, layout) = NonNull::new(moved).map_or((start, layout), |moved| (moved, half));
    if moved.is_null() {
        is_refused();
    }
    // SAFETY: The block has this layout, and is not used again.
    unsafe {
        assert_eq!(start.read(), 7);
        dealloc(start.as_ptr(), layout);
    }
}

/// Adds numbers while `has_room` says that there is room for the next one.
fn add(mut has_room: impl FnMut(usize) -> bool) {
    if !(0..300).all(&mut has_room) {
        is_refused();
    }
}

/// Collections, grown through `try_reserve`; a refused one stays as it is.
fn collections() {
    let mut text = String::new();
    let mut numbers = Vec::new();
    let mut squares = HashMap::new();
    let mut queue = VecDeque::new();
    let mut heap = BinaryHeap::new();
    add(|_| text.try_reserve(1).map(|()| text.push('x')).is_ok());
    add(|n| numbers.try_reserve(1).map(|()| numbers.push(n)).is_ok());
    add(|n| squares.try_reserve(1).map(|()| squares.insert(n, n * n)).is_ok());
    add(|n| queue.try_reserve(1).map(|()| queue.push_front(n)).is_ok());
    add(|n| heap.try_reserve(1).map(|()| heap.push(n)).is_ok());
    assert!(text.bytes().all(|byte| byte == b'x'));
    assert!(numbers.is_sorted());
    assert!(squares.iter().all(|(n, square)| n * n == *square));
    assert!(queue.iter().rev().is_sorted());
    let mut last = usize::MAX;
    while let Some(n) = heap.pop() {
        assert!(n < last);
        last = n;
    }
}

extern "C" fn of_thread(seed: *mut c_void) -> *mut c_void {
    requests(seed.addr() as u32, 150);
    collections();
    null_mut()
}

/// Makes and releases pages of two sizes in all threads at once, so that they contend for locks.
extern "C" fn of_crowded_thread(seed: *mut c_void) -> *mut c_void {
    for _ in 0..6 {
        crowd(2000, 150);
        crowd(100_000, 4);
    }
    of_thread(seed)
}

/// Forks `forks` times while threads contend for locks.
fn threads(work: extern "C" fn(*mut c_void) -> *mut c_void, forks: usize) {
    let mut threads = [None; 3];
    for (n, thread) in threads.iter_mut().enumerate() {
        let mut name = MaybeUninit::uninit();
        // SAFETY: The function takes any number.
        let error = unsafe {
            libc::pthread_create(name.as_mut_ptr(), null(), work, without_provenance_mut(n))
        };
        match error {
            // SAFETY: A thread that was started has a name.
            0 => *thread = Some(unsafe { name.assume_init() }),
            error => assert!(error == libc::EAGAIN || error == libc::ENOMEM),
        }
    }
    work(without_provenance_mut(99));
    for _ in 0..forks {
        forked(|| requests(8, 20));
    }
    for name in threads.into_iter().flatten() {
        // SAFETY: The thread was started and is waited for once.
        assert_eq!(unsafe { libc::pthread_join(name, null_mut()) }, 0);
    }
}

/// Runs `work` in a child.
fn forked(work: impl Fn()) {
    // SAFETY: The child uses this program's memory and ends.
    match unsafe { libc::fork() } {
        0 => {
            work();
            // SAFETY: Ending a process is always sound.
            unsafe { libc::_exit(0) }
        }
        child if child > 0 => {
            let mut status = 0;
            // SAFETY: The child was not waited for.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
        _ => is_refused(),
    }
}

/// A child uses inherited blocks and new ones.
fn fork() {
    let kept = Block::new(4, 5000);
    forked(|| {
        kept.into_iter().for_each(Block::drop);
        requests(5, 100);
        threads(of_thread, 0);
    });
    kept.into_iter().for_each(Block::drop);
}

fn heaps() {
    const SIZES: [usize; 4] = [40, 700, 20_000, 100_000];
    let layout = |size| Layout::from_size_align(size, 8).expect("a small size");
    let mut heap = masu::Heap::new();
    let mut blocks = [None::<Block>; 60];
    for (n, block) in blocks.iter_mut().enumerate() {
        let layout = layout(SIZES[n % 4]);
        let start = heap.alloc(layout).map_or(null_mut(), NonNull::as_ptr);
        *block = Block::given(start, layout, false);
    }
    for block in blocks.iter().step_by(3).flatten() {
        assert!(block.holds(*block, block.layout.size()) && heap.contains(block.start.as_ptr()));
        // SAFETY: The block is this heap's, with this layout, and not used again.
        unsafe { heap.dealloc(block.start, block.layout) };
    }
    for block in blocks.iter().skip(1).step_by(3).flatten() {
        let size = 2 * block.layout.size();
        // SAFETY: The block is this heap's, with this layout; the old one is not used again.
        let moved = unsafe { heap.realloc(block.start, block.layout, size) };
        match moved {
            Some(start) => {
                let moved = Block { start, layout: layout(size) };
                assert!(moved.holds(*block, block.layout.size()));
            }
            None => is_refused(),
        }
    }
    heap.clear();
    let zeroed = heap.alloc_zeroed(layout(3000)).map_or(null_mut(), NonNull::as_ptr);
    Block::given(zeroed, layout(3000), true);
}

fn profiled() {
    let _ = profile::start(Some(4096)).map_err(|_| is_refused());
    requests(17, 200);
    heaps();
    let mut path = [0; 64];
    write!(&mut path[..63], "/tmp/masu-faulted-rust.{}", std::process::id())
        .expect("there is room");
    let path = CStr::from_bytes_until_nul(&path).expect("there is a null");
    let _ = profile::write(path);
    // SAFETY: The path is a string.
    unsafe { libc::unlink(path.as_ptr()) };
    profile::stop();
    requests(18, 100);
}

fn changed_options() {
    let set =
        |name, value| options::set(name, value).expect("it may be set while the program runs");
    set("retain", Some(0));
    crowd(3000, 200);
    requests(31, 100);
    set("retain", None);
    set("shards", Some(4));
    set("statistics_page", Some(1));
    set("huge_pages", Some(1));
    requests(32, 100);
    set("purge_delay_ms", Some(1));
    crowd(3000, 200);
    crowd(200_000, 12);
    requests(33, 100);
    set("purge_delay_ms", None);
    set("memory_limit", Some(64 * MIB));
    requests(34, 100);
    set("memory_limit", None);
    set("statistics_page", Some(0));
    set("huge_pages", None);
}

/// Live bytes, from statistics that must agree while no other thread allocates.
fn live_bytes() -> usize {
    let all = statistics::now();
    let mut live = all.large_bytes + all.heap_bytes;
    for class in statistics::classes() {
        live += class.live_bytes();
        let blocks = class.live_blocks + class.thread_cached_blocks;
        let blocks = blocks + class.transfer_blocks + class.free_blocks;
        assert!(blocks * class.size <= class.pages * class.page_bytes);
    }
    assert_eq!(live, all.live_bytes);
    assert!(all.live_bytes <= all.committed_bytes && all.committed_bytes <= all.reserved_bytes);
    assert_eq!((all.heaps, all.heap_bytes), (0, 0));
    live
}

/// With the argument `recovers`, no request may be refused at the end.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    // SAFETY: C's promise to a program.
    let recovers = count > 1 && unsafe { CStr::from_ptr(*arguments.add(1)) } == c"recovers";
    let before = live_bytes();
    requests(1, 400);
    collections();
    crowd(100, 1500);
    crowd(40_000, 40);
    crowd(200_000, 12);
    huge();
    Block::new(3, 40 * MIB).into_iter().for_each(Block::drop);
    threads(of_thread, 0);
    fork();
    masu::c::trim(0);
    heaps();
    profiled();
    changed_options();
    crowd(5 * MIB, 6);
    masu::c::trim(0);
    requests(2, 200);
    options::set("shards", Some(1)).expect("it may be set while the program runs");
    threads(of_crowded_thread, 8);
    assert_eq!(live_bytes(), before);
    let by_now = refused();
    requests(3, 300);
    collections();
    Block::new(3, 40 * MIB).into_iter().for_each(Block::drop);
    if recovers {
        assert_eq!(refused(), by_now);
    }
    assert_eq!(live_bytes(), before);
    let mut line = [0; 64];
    let mut rest = &mut line[..];
    writeln!(rest, "{by_now} refused").expect("there is room");
    let length = 64 - rest.len();
    // SAFETY: The line is that long.
    unsafe { libc::write(1, line.as_ptr().cast(), length) };
    0
}
