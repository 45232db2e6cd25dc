//! Properties of the size classes, for every size and alignment.

extern crate std;

use super::*;

#[test]
fn a_class_holds_its_size_and_the_one_below_does_not() {
    for size in 0..=LARGEST_SMALL {
        let class = Class::of_size(size);
        assert!(class.size() >= size, "{size}");
        assert!(class.size().is_multiple_of(MIN_ALIGN));
        if let Some(below) = Class::from_code(class.index() as u8 - 1) {
            assert!(below.size() < size.max(1), "{size} fits {}", below.size());
        }
    }
}

#[test]
fn classes_ascend_to_the_largest_small_size() {
    let sizes: std::vec::Vec<_> = Class::all().map(Class::size).collect();
    assert!(sizes.is_sorted_by(|a, b| a < b));
    assert_eq!(sizes.last(), Some(&LARGEST_SMALL));
}

#[test]
fn mean_waste_over_256_bytes_is_under_five_percent() {
    let (mut asked, mut given) = (0, 0);
    for size in 257..=LARGEST_SMALL {
        asked += size;
        given += Class::of_size(size).size();
    }
    assert!(given * 100 <= asked * 105, "{asked} asked, {given} given");
}

#[test]
fn pages_lose_little_behind_their_last_block() {
    for class in Class::all() {
        let bytes = class.page_slices() * SLICE_BYTES;
        let tail = bytes - class.page_blocks() * class.size();
        assert!(
            tail * 100 <= bytes * tail_percent_max(class.size()),
            "{} loses {tail}",
            class.size()
        );
    }
}

#[test]
fn block_index_is_exact_for_every_block_and_any_bytes_up_to_the_largest_small_size() {
    for class in Class::all() {
        for index in 0..class.page_blocks() {
            assert_eq!(class.block_index(index * class.size()), index);
        }
        for bytes in 0..=LARGEST_SMALL {
            assert_eq!(class.block_index(bytes), bytes / class.size(), "{bytes} bytes");
        }
    }
}

#[test]
fn aligned_classes_are_aligned_and_large_enough() {
    for align_log2 in 0..=16 {
        let align = 1 << align_log2;
        for size in (0..=LARGEST_SMALL).step_by(7) {
            let class = Class::of(size, align).expect("up to 64 KiB there is a class");
            assert!(class.size() >= size && class.size().is_multiple_of(align), "{size} {align}");
        }
    }
    assert_eq!(Class::of(LARGEST_SMALL + 1, 1), None);
    assert_eq!(Class::of(1, LARGEST_SMALL * 2), None);
}

#[test]
fn a_code_has_one_class_and_one_lane() {
    let mut seen = [false; CODES];
    for class in Class::all() {
        let laned = class.laned();
        assert_eq!(laned.size(), class.size());
        assert_eq!(laned.page_index(), class.index());
        // Exactly the blocks that can share a line.
        assert_eq!(laned.is_laned(), class.size() < 64);
        for lane in 0..LANES as u8 {
            let code = laned.code_in(lane);
            assert_eq!(Class::from_code(code), Some(laned));
            if laned.is_laned() || lane == 0 {
                assert!(!seen[usize::from(code)], "{code} stands for two");
                seen[usize::from(code)] = true;
                assert_eq!(Class::lane_of(code), lane);
            }
        }
    }
}
