//! Hand-made profiles, in every shape.

use std::path::Path;

use super::*;

fn frame(function: &str, line: u32) -> Frame {
    Frame { function: function.to_owned(), file: Some("a/b.c".to_owned()), line }
}

fn sums(bytes: i64) -> Sums {
    Sums { allocated_blocks: 3, allocated_bytes: 2 * bytes, live_blocks: 1, live_bytes: bytes }
}

fn fixture() -> Profile {
    let stacks = [
        (vec![frame("main", 1), frame("parse<T>", 20)], sums(3 << 20)),
        (vec![frame("main", 2), frame("a;b", 9)], sums(1 << 20)),
        (vec![frame("main", 2), frame("a;b", 9), frame("main", 7)], sums(100)),
    ];
    Profile { interval_bytes: 4096, stacks: stacks.into(), remarks: vec!["noted".to_owned()] }
}

fn written_and_read(profile: &Profile) -> Profile {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, profile.message()).unwrap();
    Profile::read(&path).unwrap()
}

#[test]
fn what_is_written_with_names_is_read_back_the_same() {
    let profile = fixture();
    let read = written_and_read(&profile);
    assert_eq!(read.stacks, profile.stacks);
    assert_eq!((read.interval_bytes, read.remarks), (4096, profile.remarks));
}

#[test]
fn a_difference_has_what_changed_and_keeps_its_sign() {
    let (before, mut after) = (fixture(), fixture());
    let grown = after.stacks.get_mut(&vec![frame("main", 1), frame("parse<T>", 20)]).unwrap();
    *grown = grown.with(sums(500), i64::saturating_add);
    after.stacks.remove(&vec![frame("main", 2), frame("a;b", 9)]);
    let difference = after.minus(before);
    let changes: Vec<i64> = difference.stacks.values().map(|sums| sums.live_bytes).collect();
    assert_eq!(changes, [500, -(1 << 20)]);
    // Negative numbers survive the format, too.
    assert_eq!(written_and_read(&difference).stacks, difference.stacks);
}

#[test]
fn folded_stacks_have_one_line_a_path_of_functions() {
    let folded = fixture().folded(What::LiveBytes);
    let lines: Vec<&str> = folded.lines().collect();
    assert_eq!(lines, ["main;a:b 1048576", "main;a:b;main 100", "main;parse<T> 3145728"]);
}

#[test]
fn the_table_counts_a_function_once_a_stack() {
    let text = fixture().text(What::LiveBytes, "t");
    let main = text.lines().find(|line| line.ends_with("  main")).unwrap();
    let words: Vec<&str> = main.split_whitespace().collect();
    assert_eq!(words, ["100", "B", "0.0", "4.0", "MiB", "100.0", "main"], "{text}");
    assert!(text.contains("Note: noted") && text.contains("parse<T>  b.c:20"), "{text}");
    // A file may claim any number.
    let mut much = fixture();
    much.stacks.values_mut().for_each(|one| one.live_bytes = i64::MAX);
    assert!(much.text(What::LiveBytes, "t").contains(" 8589934592.0 GiB  100.0  main"));
    much.stacks =
        much.stacks.into_values().zip(1..).map(|(one, at)| (vec![frame("a", at)], one)).collect();
    assert_eq!(much.folded(What::LiveBytes), format!("a {}\n", i64::MAX));
}

#[test]
fn the_allocator_s_own_functions_are_no_part_of_a_stack() {
    let names = ["masu::c::malloc_slow", "malloc", "operator new(unsigned long)", "grow", "malloc"];
    let mut frames: Vec<Frame> = names.map(|name| frame(name, 0)).into();
    drop_allocator(&mut frames);
    let left: Vec<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
    assert_eq!(left, ["grow", "malloc"]);
    // A stack of nothing but allocator functions keeps them.
    let mut frames = vec![frame("malloc", 0)];
    drop_allocator(&mut frames);
    assert_eq!(frames.len(), 1);
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_an_error_or_a_shorter_profile() {
    let whole = message::write(&fixture());
    for length in 0..whole.len() {
        // Truncated input must not crash the reader.
        let _ = Message::read(&whole[..length]);
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0x55;
        let _ = Message::read(&changed);
    }
    let error = Message::read(b"\x1f\x8bcompressed").err().unwrap();
    assert!(error.contains("cannot be unpacked"), "{error}");
    let packed = message::write(&fixture());
    assert!(packed.starts_with(b"\x1f\x8b"), "as pprof writes its files");
    assert!(Message::read(&packed).is_ok());
    let error = Message::read(&packed[..packed.len() / 2]).err().unwrap();
    assert!(error.contains("cut off"), "{error}");
    let error = Profile::read(Path::new("/nonexistent/profile")).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/profile"), "{error}");
}

#[test]
fn a_name_s_ending_asks_for_a_shape() {
    let shape = |name: &str| Shape::of_file(Path::new(name));
    assert_eq!(shape("a/heap.pb.gz"), Some(Shape::Pprof));
    assert_eq!((shape("heap.pb"), shape("heap.svg")), (Some(Shape::Pprof), Some(Shape::Flame)));
    assert_eq!((shape("heap.svg.gz"), shape("heap.gz"), shape("heap")), (None, None, None));
}
