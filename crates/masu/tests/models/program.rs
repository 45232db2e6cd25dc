//! Programs under loom: threads that allocate and free, with an oracle of the live blocks.

extern crate std;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::println;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use loom::model::Builder;
use loom::sync::atomic::Ordering;
use loom::thread::{self, JoinHandle};

use crate::blocks::{shard, transfer};
use crate::memory::arena::code_of;
use crate::memory::class::{Class, SAMPLED};
use crate::platform::{atomics, kernel, libc};
use crate::threads::cache::idle;
use crate::{Heap, Masu};

/// One model at a time: they share the statics.
static ONE: Mutex<()> = Mutex::new(());

/// Stacks of loom's threads, in words: loom's own would be too short for the allocator.
const STACK_WORDS: usize = 32 << 10;

/// The extent of a model's search, and the fault in the model.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The number of times that threads that could continue are interrupted.
    pub(crate) preemptions: usize,
    /// A number that is larger than the number of interleavings.
    pub(crate) interleavings: usize,
    /// An ordering that the model replaces by Relaxed.
    pub(crate) weakened: Option<Ordering>,
}

impl Bounds {
    /// The fewest interruptions that show a fault; one more with `MASU_SOAK`.
    pub(crate) fn of(preemptions: usize) -> Bounds {
        let soaks = std::env::var_os("MASU_SOAK").is_some_and(|value| value == "1");
        Bounds {
            preemptions: preemptions + usize::from(soaks),
            interleavings: if soaks { 20_000_000 } else { 200_000 },
            weakened: None,
        }
    }

    pub(crate) fn without(self, weakened: Ordering) -> Bounds {
        Bounds { weakened: Some(weakened), ..self }
    }
}

std::thread_local! {
    /// The live blocks: ends by starts.
    static LIVE: RefCell<BTreeMap<usize, usize>> = RefCell::default();
}

/// Runs a program in every interleaving within the bounds.
pub(crate) fn check(name: &str, bounds: Bounds, program: fn()) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tried = Arc::new(AtomicUsize::new(0));
    let mut model = Builder::new();
    model.max_branches = 200_000;
    model.preemption_bound = Some(bounds.preemptions);
    model.max_permutations = Some(bounds.interleavings);
    let counted = Arc::clone(&tried);
    let begun = std::time::Instant::now();
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        kernel::begin();
        atomics::begin(bounds.weakened);
        LIVE.with_borrow_mut(BTreeMap::clear);
        begin(program).join().expect("the program ends well");
        all_is_home();
    });
    let tried = tried.load(Relaxed);
    println!("{name}: {tried} interleavings, {:.1} s", begun.elapsed().as_secs_f64());
    assert!(tried < bounds.interleavings, "not all were tried");
}

/// A test for each model: its program, and the interruptions. With an ordering made Relaxed, loom must notice; a model
/// that would show nothing unless something happened says what must have happened.
macro_rules! models {
    ($($name:ident($program:ident, $preemptions:literal) $(without $weakened:ident)? $(and $shown:expr)?;)*) => {$(
        #[test]
        $(#[should_panic(expected = "Causality violation")]
        #[doc = stringify!($weakened)])?
        fn $name() {
            use super::program::{Bounds, check};
            let bounds = Bounds::of($preemptions);
            $(let bounds = bounds.without(loom::sync::atomic::Ordering::$weakened);)?
            check(stringify!($name), bounds, $program);
            $(assert!($shown);)?
        }
    )*};
}

pub(crate) use models;

/// Checks that nothing is live, and that every block is free in its page once the caches are empty.
fn all_is_home() {
    LIVE.with_borrow(|live| assert!(live.is_empty(), "{} blocks were not freed", live.len()));
    idle::empty_warm();
    transfer::trim();
    assert_eq!(shard::active(), 0, "a shard's books have what another shard's lack");
    shard::trim(true);
    for class in Class::all() {
        let counts = shard::counts(class);
        // A page in the books of another shard would be missed in one and too many in the other.
        assert_eq!((counts.handed_out, counts.pages), (0, 0), "blocks of {} bytes", class.size());
    }
}

/// Starts a thread; at its end it leaves the allocator as a thread of the C library's does.
pub(crate) fn begin<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    let body = move || {
        let result = body();
        libc::end_thread();
        result
    };
    let thread = thread::Builder::new().stack_size(STACK_WORDS).spawn(body);
    thread.expect("loom has room for it")
}

/// A block that the program holds.
#[derive(Debug)]
pub(crate) struct Block {
    address: usize,
    size: usize,
}

impl Block {
    fn of(block: *mut u8, size: usize) -> Block {
        let address = block.expose_provenance();
        assert_ne!(address, 0, "there is memory");
        LIVE.with_borrow_mut(|live| {
            let before = live.range(..address + size).next_back();
            assert!(before.is_none_or(|(_, end)| *end <= address), "a block is handed out twice");
            live.insert(address, address + size);
        });
        let block = Block { address, size };
        block.write();
        block
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Whether a profile samples the block.
    pub(crate) fn is_sampled(&self) -> bool {
        code_of(self.address) == SAMPLED
    }

    /// Writes the block, as a program does.
    fn write(&self) {
        atomics::writes(self.address);
        let place = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
        // SAFETY: The block is that long, and the caller's.
        unsafe { place.write_bytes(0xa5, self.size) };
    }

    fn leave(self) -> *mut u8 {
        self.write();
        LIVE.with_borrow_mut(|live| live.remove(&self.address));
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

/// As C's `malloc`.
pub(crate) fn malloc(size: usize) -> Block {
    Block::of(crate::c::malloc(size), size)
}

/// As C's `free`.
pub(crate) fn free(block: Block) {
    let block = block.leave();
    // SAFETY: The block was live.
    unsafe { crate::c::free(block) };
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("a layout")
}

/// As a Rust program's `alloc`.
pub(crate) fn alloc(size: usize) -> Block {
    // SAFETY: The layout is not empty.
    Block::of(unsafe { Masu::new().alloc(layout(size)) }, size)
}

/// As a Rust program's `dealloc`.
pub(crate) fn dealloc(block: Block) {
    let layout = layout(block.size);
    // SAFETY: The block was live, and allocated with this layout.
    unsafe { Masu::new().dealloc(block.leave(), layout) };
}

/// As a heap's `alloc`.
pub(crate) fn alloc_in(heap: &Heap, size: usize) -> Block {
    Block::of(heap.alloc(layout(size)).map_or(std::ptr::null_mut(), NonNull::as_ptr), size)
}

/// As a heap's `dealloc`.
pub(crate) fn dealloc_in(heap: &Heap, block: Block) {
    let layout = layout(block.size);
    let block = NonNull::new(block.leave()).expect("a block");
    // SAFETY: The block was live, and allocated from this heap with this layout.
    unsafe { heap.dealloc(block, layout) };
}

/// A value for as long as the program runs.
pub(crate) fn leak<T>(value: T) -> &'static T {
    std::boxed::Box::leak(std::boxed::Box::new(value))
}

/// A flag that one thread raises and another thread waits for. The program waits by its own means, not by those of
/// masu.
pub(crate) struct Flag(loom::sync::Mutex<bool>, loom::sync::Condvar);

impl Flag {
    pub(crate) fn new() -> Flag {
        Flag(loom::sync::Mutex::new(false), loom::sync::Condvar::new())
    }

    pub(crate) fn raise(&self) {
        *self.0.lock().expect("no thread panics") = true;
        self.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        let mut is_raised = self.0.lock().expect("no thread panics");
        while !*is_raised {
            is_raised = self.1.wait(is_raised).expect("no thread panics");
        }
    }
}
