//! Two functions ask for memory, one twice as often as the other, by way of the standard library.

#[inline(never)]
fn copy_names(name: &str) -> String {
    let mut last = String::new();
    for _ in 0..4_000_000 {
        last = std::hint::black_box(name).to_owned();
    }
    last
}

#[inline(never)]
fn make_records() -> Box<[u64; 4]> {
    let mut last = Box::default();
    for turn in 0..2_000_000 {
        last = std::hint::black_box(Box::new([turn; 4]));
    }
    last
}

fn main() {
    assert_eq!(copy_names("a name that is some thirty bytes").len(), 32);
    assert_eq!(make_records()[0], 1_999_999);
}
