//! The huge pages that a block fills.

use super::*;

#[test]
fn a_block_fills_huge_pages_if_it_is_long_and_the_heap_is_not_small() {
    let huge_page = huge_page_bytes();
    assert!(fills_huge_pages(4 * huge_page, 0, None));
    assert!(fills_huge_pages(3 * huge_page, huge_page, None));
    assert!(!fills_huge_pages(3 * huge_page, huge_page - 1, None));
    assert!(!fills_huge_pages(3 * huge_page - 1, 8 * huge_page, None));
}

#[test]
fn a_zeroed_block_fills_huge_pages_if_it_is_no_longer_than_what_is_live() {
    let huge_page = huge_page_bytes();
    assert!(fills_huge_pages(2 * huge_page, 2 * huge_page, Some(0)));
    assert!(fills_huge_pages(4 * huge_page, 0, Some(4 * huge_page)));
    assert!(!fills_huge_pages(4 * huge_page, 4 * huge_page - 1, Some(0)));
    assert!(!fills_huge_pages(huge_page, 3 * huge_page - 1, Some(0)));
    assert!(!fills_huge_pages(huge_page - 1, 8 * huge_page, Some(0)));
}
