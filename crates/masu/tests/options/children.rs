//! Children of the tests of options: each uses masu and reports figures.
//!
//! They call masu directly; the test harness lives in the system's malloc.

/// Calls the child of this name, else does something else.
macro_rules! call {
    ($name:expr, $else:expr, $($child:ident)*) => {
        match $name {
            $(stringify!($child) => $child(),)*
            _ => $else,
        }
    };
}

pub(crate) mod changed;

use std::alloc::{GlobalAlloc, Layout};
use std::fs;
use std::ptr;
use std::sync::Barrier;
use std::thread;

use super::MIB;
use super::resident::resident_bytes;

/// Runs the child that a variable names, with the number that follows the name.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let name = std::env::var("CHILD").expect("the test names one");
    let (name, number) = name.split_once(' ').unwrap_or((&name, "0"));
    let number = number.parse().expect("a number");
    match name {
        "cached" => report("most", most_cached()),
        "threads" => report("shards", shards_of(8)),
        "transferred" => report("most", most_transferred()),
        "moved" => report("wanted", wanted_in_moved(number)),
        "grown_after" => report("wanted", wanted_after(number)),
        "zeroed_after" => report("wanted", zeroed_after(number)),
        "little_used" => little_used(number),
        _ => call! { name, changed::run(name),
            late freed freed_small freed_arena grown_little zeroed_again protected wiped sharing
            limited limited_heap limited_grown reserved without_memory
        },
    }
}

fn report(figure: &str, value: usize) {
    println!("figure {figure} {value}");
}

/// Allocates a block and writes every byte.
fn block(size: usize) -> *mut u8 {
    let block = masu::c::malloc(size);
    assert!(!block.is_null());
    // SAFETY: The block is that long and has no other user.
    unsafe { block.write_bytes(1, size) };
    block
}

fn free(blocks: impl IntoIterator<Item = *mut u8>) {
    // SAFETY: The blocks are live, and nothing uses them afterwards.
    blocks.into_iter().for_each(|block| unsafe { masu::c::free(block) });
}

fn thread_cached_bytes() -> usize {
    masu::c::statistics().thread_cached_bytes
}

/// Allocates and frees blocks of every class, `count` of each at a time.
fn use_every_class(count: usize, mut check: impl FnMut()) {
    for round in 0..8 {
        for size in (1..=64).map(|step| step * 16).chain((2..=32).map(|step| step << 10)) {
            let blocks: Vec<_> = (0..count).map(|_| block(size + round)).collect();
            check();
            free(blocks);
            check();
        }
    }
}

/// The most bytes that this thread's cache holds.
fn most_cached() -> usize {
    let mut most = 0;
    use_every_class(500, || most = most.max(thread_cached_bytes()));
    most
}

fn late() {
    use_every_class(20, || {});
    // A batch again and again, like a hot loop in a new phase.
    for _ in 0..1_000 {
        let blocks: Vec<_> = (0..10).map(|_| block(4_000)).collect();
        free(blocks);
    }
    let last = block(4_000);
    let before = thread_cached_bytes();
    free([last]);
    report("cached", usize::from(thread_cached_bytes() > before));
}

/// Retained bytes after 64 MiB were freed.
fn kept_of_64_mib() -> usize {
    let blocks: Vec<_> = (0..64).map(|_| block(MIB)).collect();
    free(blocks);
    masu::c::statistics().kept_bytes
}

fn freed() {
    let start = resident_bytes();
    report("kept", kept_of_64_mib());
    report("resident", resident_bytes().saturating_sub(start));
}

fn freed_small() {
    // The list of blocks is allocated by the system's malloc, and resident from the start.
    let mut blocks = vec![std::ptr::null_mut(); MIB];
    blocks
        .iter_mut()
        .enumerate()
        .for_each(|(n, place)| *place = std::ptr::without_provenance_mut(n));
    let start = resident_bytes();
    blocks.iter_mut().for_each(|place| *place = block(64));
    assert!(resident_bytes() >= start + 64 * MIB);
    free(blocks.iter().copied());
    report("resident", resident_bytes().saturating_sub(start));
}

fn freed_arena() {
    // Five blocks of 600 MiB lie in five arenas of 1 GiB; they are not written. Nor are short ones, whose runs merge late.
    for (name, count, size) in [("released", 5, 600 * MIB), ("released_short", 1500, 2 * MIB)] {
        let blocks: Vec<_> = (0..count).map(|_| masu::c::malloc(size)).collect();
        let reserved = masu::c::statistics().reserved_bytes;
        free(blocks);
        report(name, reserved - masu::c::statistics().reserved_bytes);
    }
}

/// The most shards with blocks while `count` threads hold some.
fn shards_of(count: usize) -> usize {
    // As in any program, one thread allocates before there are others, and so reads the options.
    free([block(64)]);
    let all = Barrier::new(count);
    let work = || {
        // More blocks than other threads leave free in their pages. They stay live.
        std::mem::forget((0..5_000).map(|_| block(64)).collect::<Vec<_>>());
        // An ended thread would leave its cache, and its shard, to the next.
        all.wait();
        masu::c::statistics().shards
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        let shards = threads.into_iter().map(|thread| thread.join().expect("works"));
        shards.max().expect("there are threads")
    })
}

/// Whether huge pages were requested, and whether they were refused, for the last of `count` MiB.
fn advice(count: usize) -> (bool, bool) {
    let blocks: Vec<_> = (0..count).map(|_| block(MIB)).collect();
    let last = advice_at(blocks.last().expect("some").addr());
    // The blocks stay live, because reused memory keeps its advice.
    std::mem::forget(blocks);
    last
}

/// The same for the memory at `address`.
fn advice_at(address: usize) -> (bool, bool) {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("proc is mounted");
    let bounds = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let parse = |text| usize::from_str_radix(text, 16).ok();
        Some(parse(start)?..parse(end)?)
    };
    let is_before = |line: &&str| !bounds(line).is_some_and(|found| found.contains(&address));
    let mut of_mapping = smaps.lines().skip_while(is_before);
    let flags = of_mapping.find_map(|line| line.strip_prefix("VmFlags:")).expect("it is mapped");
    let flags: Vec<&str> = flags.split_whitespace().collect();
    (flags.contains(&"hg"), flags.contains(&"nh"))
}

fn grown_little() {
    report("wanted", usize::from(advice(3).0));
    let filled = block(9 * MIB).addr();
    report("wanted_in_long", usize::from(advice_at(filled + 3 * MIB).0));
    report("wanted_at_its_end", usize::from(advice_at(filled + 9 * MIB - 1).0));
}

/// Whether the last of some blocks of 3 MiB, 12 MiB in all, is huge; each was one of `before` MiB, as far as that moved.
fn wanted_in_moved(before: usize) -> usize {
    let grown = || {
        let first = masu::c::malloc(before * MIB);
        // It is in the way of the first one.
        let _behind = masu::c::malloc(100 << 10);
        // SAFETY: The block is live, and nothing uses its old address.
        unsafe { masu::c::realloc(first, 3 * MIB) }
    };
    let last = [(); 4].map(|()| grown())[3];
    usize::from(advice_at(last.addr() + 3 * MIB - 1).0)
}

/// Whether memory that comes after 100 freed blocks of 1 MiB is huge; the first `written` bytes of each were used.
fn wanted_after(written: usize) -> usize {
    let used = || {
        let block = masu::c::malloc(MIB);
        // SAFETY: The block is that long and has no other user.
        unsafe { block.write_bytes(1, written) };
        block
    };
    let blocks: Vec<_> = (0..100).map(|_| used()).collect();
    // A block in an arena of its own is no part of what is known.
    free([masu::c::malloc(3 << 30)]);
    free(blocks);
    usize::from(advice(150).0)
}

/// Whether a zeroed block of 60 MiB is huge after a freed one of 16 MiB, of which the first `written` bytes were used.
fn zeroed_after(written: usize) -> usize {
    let before = masu::c::calloc(16, MIB);
    // SAFETY: The block is that long and has no other user.
    unsafe { before.write_bytes(1, written) };
    free([before]);
    let table = masu::c::calloc(60, MIB);
    usize::from(advice_at(table.addr() + 50 * MIB).0)
}

/// Frees blocks of which a part cannot be read, after huge pages began.
fn protected() {
    free((0..20).map(|_| block(MIB)).collect::<Vec<_>>());
    for block in [masu::c::malloc(8 * MIB), masu::c::calloc(1, 8 * MIB)] {
        let page = 64 << 10;
        let start = block.map_addr(|address| address.next_multiple_of(page)).cast();
        // SAFETY: The pages lie in the block, which nothing else uses.
        unsafe {
            assert_eq!(libc::mprotect(start, 8 * MIB - page, libc::PROT_NONE), 0);
            masu::c::free(block);
            let all = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(start, 8 * MIB - page, all), 0);
        }
    }
    report("freed", 2);
}

/// Zeroed blocks of two lengths, so that none is parked, and zeros written to them again.
fn wiped() {
    let faults = || {
        // SAFETY: All-zero is a valid `rusage`, and the kernel fills it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: As above.
        assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) }, 0);
        usage.ru_minflt as usize
    };
    let before = faults();
    for round in 0..100 {
        let size = MIB + round % 2 * MIB;
        let block = masu::c::calloc(1, size);
        // SAFETY: The block is that long and has no other user.
        unsafe { block.write_bytes(0, size) };
        free([block]);
    }
    report("faults", faults() - before);
}

/// 300 MiB of blocks of `size` bytes that live on, and of which one byte in each MiB is written.
fn little_used(size: usize) {
    let start = resident_bytes();
    let mut last = 0;
    for _ in 0..300 * MIB / size {
        let block = masu::c::malloc(size);
        for at in (0..size).step_by(MIB) {
            // SAFETY: The byte lies in the block, which has no other user.
            unsafe { block.add(at).write(1) };
        }
        last = block.addr();
    }
    report("refused", usize::from(advice_at(last).1));
    report("resident", resident_bytes().saturating_sub(start));
}

/// A table of 64 MiB again and again, in the same memory.
fn zeroed_again() {
    const SIZE: usize = 64 * MIB;
    let start = resident_bytes();
    let mut first = ptr::null_mut();
    for round in 0..8 {
        let table = masu::c::calloc(1, SIZE);
        if round == 0 {
            first = table;
        }
        assert_eq!(table, first, "retained memory is used again");
        for at in [0, 1, 3 * MIB + 17, SIZE / 2, SIZE - 1] {
            // SAFETY: The byte lies in the block, which has no other user.
            unsafe {
                assert_eq!(table.add(at).read(), 0);
                table.add(at).write(1);
            }
        }
        free([table]);
    }
    report("resident", resident_bytes().saturating_sub(start));
    // A filled table is zeroed as well.
    for _ in 0..2 {
        let table = masu::c::calloc(1, SIZE);
        // SAFETY: As above.
        let bytes = unsafe { std::slice::from_raw_parts_mut(table, SIZE) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(1);
        free([table]);
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

fn sharing() {
    for size in [8, 16, 32, 48] {
        let blocks: Vec<usize> = (0..128).map(|_| block(size).expose_provenance()).collect();
        let kept: Vec<_> = blocks.iter().copied().step_by(2).collect();
        let given: Vec<_> = blocks.iter().copied().skip(1).step_by(2).collect();
        let lines = |block: usize| block / LINE..=(block + size - 1) / LINE;
        let in_kept_line = |block: usize| {
            let meets = |kept: &usize| lines(block).any(|line| lines(*kept).contains(&line));
            kept.iter().any(meets)
        };
        let ways: [fn(usize) -> *mut u8; 4] = [
            masu::c::malloc,
            |size| masu::c::calloc(1, size),
            |size| masu::c::aligned_alloc(16, size),
            // SAFETY: Null allocates.
            |size| unsafe { masu::c::realloc(ptr::null_mut(), size) },
        ];
        let shared = thread::scope(|scope| {
            let freer = scope.spawn(|| {
                let mut used = Vec::new();
                for (index, other) in given.iter().enumerate() {
                    free([ptr::with_exposed_provenance_mut(*other)]);
                    used.push(ways[index % ways.len()](size));
                }
                let shared = used.iter().filter(|used| in_kept_line(used.addr())).count();
                free(used);
                shared
            });
            freer.join().expect("works")
        });
        report(&format!("shared{size}"), shared);
        // More blocks than a page holds, so every free block of this shard is taken.
        let mut again: Vec<_> = (0..10_000).map(|_| block(size)).collect();
        let back = given.iter().filter(|given| again.iter().any(|b| b.addr() == **given)).count();
        report(&format!("back{size}"), back);
        again.extend(kept.iter().map(|kept| ptr::with_exposed_provenance_mut(*kept)));
        free(again);
    }
}

/// The most bytes of the transfer cache while one thread frees the blocks of another.
fn most_transferred() -> usize {
    let mut most = 0;
    for _ in 0..50 {
        let blocks: Vec<_> = (0..200).map(|_| block(5_000).expose_provenance()).collect();
        let frees = || free(blocks.iter().map(|block| ptr::with_exposed_provenance_mut(*block)));
        thread::scope(|scope| scope.spawn(frees).join().expect("works"));
        let now = masu::c::statistics();
        most = most.max(now.cached_bytes - now.thread_cached_bytes);
    }
    most
}

/// Up to `most` blocks, until a request is refused.
fn allocate_up_to(size: usize, most: usize) -> Vec<*mut u8> {
    (0..most).map(|_| masu::c::malloc(size)).take_while(|block| !block.is_null()).collect()
}

fn limited() {
    let blocks = allocate_up_to(MIB, 100);
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    report("errno", errno as usize);
    report("had", blocks.len());
    free(blocks);
    let blocks = allocate_up_to(MIB, 100);
    report("again", blocks.len());
    free(blocks);
    let blocks = allocate_up_to(1024, 100 << 10);
    report("small", blocks.len() >> 10);
    free(blocks);
    let mut grown = masu::c::malloc(MIB);
    let mut size = MIB;
    while size < 100 * MIB {
        // SAFETY: The block is live, and stays live if it cannot grow.
        let larger = unsafe { masu::c::realloc(grown, size + MIB) };
        if larger.is_null() {
            break;
        }
        (grown, size) = (larger, size + MIB);
    }
    report("grown", size / MIB);
    // SAFETY: As above.
    assert!(unsafe { masu::c::realloc(grown, usize::MAX) }.is_null());
    free([grown]);
}

fn limited_heap() {
    // The last free block of each class is in a cache and keeps its page.
    (1..=64).for_each(|step| free([block(step * 16), block(step << 10)]));
    let heap = masu::Heap::new();
    let layout = Layout::from_size_align(12 * MIB, 16).expect("a fine layout");
    report("served", usize::from(heap.alloc(layout).is_some()));
}

/// A block grows by its layout, to more than is left beside an empty page of each class that a heap keeps.
fn limited_grown() {
    const MASU: masu::Masu = masu::Masu::new();
    let layout = |size| Layout::from_size_align(size, 16).expect("a fine layout");
    let heap = masu::Heap::new();
    for size in (1..=64).map(|step| step << 10) {
        let block = heap.alloc(layout(size)).expect("memory");
        // SAFETY: The block is the heap's, of this layout, and not used any more.
        unsafe { heap.dealloc(block, layout(size)) };
    }
    let kept = heap.statistics().committed_bytes;
    report("kept", kept);
    // SAFETY: The layout is not empty, and the block has it.
    let grown = unsafe { MASU.realloc(MASU.alloc(layout(100)), layout(100), 15 * MIB - kept / 2) };
    report("served", usize::from(!grown.is_null()));
}

fn reserved() {
    let small = block(64);
    report("bytes", masu::c::statistics().reserved_bytes);
    let long = masu::c::malloc(128 * MIB);
    report("with_a_long_block", masu::c::statistics().reserved_bytes);
    free([small, long]);
}

fn without_memory() {
    const MASU: masu::Masu = masu::Masu::new();
    // More bytes than there are addresses.
    const TOO_MUCH: usize = 1 << 62;
    let layout = |size| Layout::from_size_align(size, 8).expect("a layout");
    let way = std::env::var("WAY").expect("the test sets it");
    let block = match way.as_str() {
        "c" => masu::c::malloc(TOO_MUCH),
        // SAFETY: The layout is not empty.
        "global" => unsafe { MASU.alloc(layout(TOO_MUCH)) },
        // SAFETY: As above.
        "global_zeroed" => unsafe { MASU.alloc_zeroed(layout(TOO_MUCH)) },
        "global_grown" => {
            // SAFETY: As above.
            let block = unsafe { MASU.alloc(layout(100)) };
            // SAFETY: The block has this layout, and stays live if it cannot grow.
            unsafe { MASU.realloc(block, layout(100), TOO_MUCH) }
        }
        other => panic!("no way {other}"),
    };
    assert!(block.is_null());
}
