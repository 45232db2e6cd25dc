//! The reader of pages against pages as masu writes them, cut off, random, and made up to mislead.

use super::*;
use crate::random::Random;

/// A page as masu writes it, of a process with a class and a thread.
fn page() -> Vec<u64> {
    let mut words = vec![0; PAGE_BYTES / WORD_BYTES];
    words[0] = u64::from_ne_bytes(MAGIC);
    words[1..12].copy_from_slice(&[1, PAGE_BYTES as u64, 2, 42, 7, 9, 28, 80, 12, 1, 14]);
    words[HEAD_WORDS..][..28].copy_from_slice(&std::array::from_fn::<u64, 28, _>(|i| i as u64));
    words[CLASSES_AT + ROW_WORDS..][..12]
        .copy_from_slice(&[32, 3, 1, 1, 5, 1, 65_536, 0, 9, 4, 2, 1]);
    words[THREADS_AT..][..3].copy_from_slice(&[1, 43, 0]);
    words
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Everything that is computed from a page, to check that no bytes make it panic.
fn use_up(page: &Page) -> u64 {
    let classes = page.classes.iter().map(|class| {
        class.live_bytes() ^ class.cached_blocks() ^ class.bytes() ^ class.waste_bytes()
    });
    classes.fold(page.total.live_bytes, |sum, value| sum ^ value)
}

#[test]
fn what_masu_wrote_is_read() {
    let page = Page::parse(&bytes(&page())).unwrap();
    assert_eq!((page.process, page.time), (42, 7));
    assert_eq!((page.total.large_bytes, page.total.huge_page_bytes), (1, 27));
    let [class] = page.classes[..] else { panic!("{:?}", page.classes) };
    assert_eq!((class.size, class.live_bytes(), class.cached_blocks()), (32, 96, 2));
    assert_eq!(class.waste_bytes(), 65_536 - 96);
    assert_eq!((page.caches.len(), page.caches[0].thread), (1, 43));
}

#[test]
fn every_shorter_page_is_refused() {
    let whole = bytes(&page());
    for length in 0..whole.len() {
        assert!(Page::parse(&whole[..length]).is_err(), "{length}");
        let _ = sequence(&whole[..length]);
    }
    let longer = [whole.clone(), vec![1; 4096]].concat();
    assert_eq!(Page::parse(&longer), Page::parse(&whole), "what lies behind does not count");
}

#[test]
fn a_page_of_another_kind_is_named() {
    let with = |place: usize, value: u64| {
        let mut words = page();
        words[place] = value;
        Page::parse(&bytes(&words))
    };
    assert_eq!(with(0, 0), Err(NoPage::Foreign));
    assert_eq!(with(1, 2), Err(NoPage::Version(2)));
    assert_eq!(with(1, 0), Err(NoPage::Version(0)));
    assert_eq!(with(3, 3), Err(NoPage::Torn));
    assert!(NoPage::Version(2).to_string().contains("version 2"));
}

#[test]
fn counts_and_lengths_on_the_page_are_not_believed() {
    for place in 4..HEAD_WORDS {
        for value in [0, 1, 13, 16, 17, 80, 81, 128, 129, 1 << 32, u64::MAX / 2, u64::MAX] {
            let mut words = page();
            words[place] = value;
            let page = Page::parse(&bytes(&words)).unwrap();
            assert!(page.classes.len() <= CLASSES && page.caches.len() <= THREADS_MAX);
            use_up(&page);
        }
    }
}

#[test]
fn a_page_full_of_the_greatest_number_is_read() {
    let mut words = vec![u64::MAX; PAGE_BYTES / WORD_BYTES];
    words[0] = u64::from_ne_bytes(MAGIC);
    words[1] = VERSION;
    words[3] = u64::MAX - 1;
    let page = Page::parse(&bytes(&words)).unwrap();
    assert_eq!((page.classes.len(), page.caches.len()), (CLASSES, THREADS_MAX));
    // The same number of bytes is canaries.
    assert_eq!((page.classes[0].bytes(), page.classes[0].live_bytes()), (u64::MAX, 0));
    use_up(&page);
}

#[test]
fn random_pages_are_read_or_refused() {
    let mut random = Random::new(5);
    for round in 0..2_000 {
        let mut words: Vec<u64> = (0..PAGE_BYTES / WORD_BYTES).map(|_| random.bits()).collect();
        // Most of them get as far as the rows.
        if round % 8 > 0 {
            words[0] = u64::from_ne_bytes(MAGIC);
            words[1] = VERSION;
            words[3] &= !1;
        }
        let bytes = bytes(&words);
        let length =
            if round % 4 == 0 { random.bits() as usize % bytes.len() } else { bytes.len() };
        if let Ok(page) = Page::parse(&bytes[..length]) {
            use_up(&page);
        }
    }
}

fn names_in_the_allocator(structure: &str) -> Vec<&'static str> {
    let source = include_str!("../../../../masu/src/threads/statistics.rs");
    let (_, rest) = source.split_once(&format!("    {structure} {{\n")).expect("the structure");
    let (body, _) = rest.split_once("\n    }").expect("its end");
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("///"));
    lines.filter_map(|line| line.strip_suffix(',')).collect()
}

#[test]
fn the_names_are_the_allocator_s() {
    assert_eq!(Total::NAMES, names_in_the_allocator("Statistics"));
    assert_eq!(Class::NAMES, names_in_the_allocator("ClassStatistics"));
    assert_eq!(Cache::NAMES, names_in_the_allocator("ThreadStatistics"));
}
