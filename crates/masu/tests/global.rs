//! masu as this program's own allocator, also of the test harness, its threads and all collections.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::thread;

#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

#[test]
fn blocks_of_this_program_are_masus() {
    let bytes = vec![1_u8; 300 << 20];
    let live = masu::c::statistics().live_bytes;
    assert!(live >= bytes.len(), "{live} bytes live, 300 MiB in one block");
}

#[test]
fn usable_size_covers_the_layout_and_stays_writable() {
    for (size, align) in [(1, 1), (8, 8), (100, 16), (5_000, 64), (70_000, 8), (3 << 20, 4_096)] {
        let layout = Layout::from_size_align(size, align).expect("a layout");
        // SAFETY: The layout is not empty; the block is written within its usable size and freed with its layout.
        unsafe {
            let block = GLOBAL.alloc(layout);
            let usable = GLOBAL.usable_size(block, layout);
            assert!((size..=size + (64 << 10)).contains(&usable), "{usable} for {layout:?}");
            block.write_bytes(0xa5, usable);
            assert_eq!(GLOBAL.usable_size(block, layout), usable);
            GLOBAL.dealloc(block, layout);
        }
    }
}

#[test]
fn collections_of_threads_keep_their_contents() {
    let work = |seed: usize| {
        let mut words: HashMap<String, Vec<usize>> = HashMap::new();
        let mut order: BTreeMap<usize, Rc<str>> = BTreeMap::new();
        let mut queue = VecDeque::new();
        for n in 0..20_000 {
            let word = format!("word {}", (n * seed) % 1_000);
            order.insert(n, Rc::from(word.as_str()));
            words.entry(word).or_default().push(n);
            queue.push_back(Box::new([n; 5]));
            if n % 3 == 0 {
                queue.pop_front();
            }
        }
        assert!(order.iter().all(|(n, word)| words[&**word].binary_search(n).is_ok()));
        assert_eq!(words.values().map(Vec::len).sum::<usize>(), 20_000);
        queue.iter().map(|numbers| numbers[4]).sum::<usize>()
    };
    let threads: Vec<_> = (1..=8).map(|seed| thread::spawn(move || work(seed))).collect();
    let mut sums = threads.into_iter().map(|thread| thread.join().expect("works"));
    let first = sums.next();
    assert!(sums.all(|sum| Some(sum) == first));
}
