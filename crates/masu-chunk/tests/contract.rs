//! The contract of the executor for each kind of data: results, order, bounds, failures, cleanup.

use std::convert::Infallible;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use masu_chunk::{Cancel, Cause, Executor, Failure, execute};

#[path = "shared/counted.rs"]
mod counted;
#[path = "shared/quietly.rs"]
mod quietly;

use counted::Counted;
use quietly::quietly;

#[test]
fn by_default_the_last_hundredth_of_the_data_is_several_chunks() {
    for (items, workers) in [(10_000, 2), (100_000, 8), (300, 4)] {
        let data = vec![0_u8; items];
        let executor = Executor::new().workers(workers);
        let sizes = executor.slice(&data).map(|chunk| chunk.len()).unwrap().value;
        let hundredth = (items / 100).max(2);
        assert!(sizes.iter().all(|&size| 2 * size <= hundredth), "{items}: {}", sizes[0]);
    }
}

#[test]
fn by_default_the_chunks_are_all_items_in_order_and_the_last_ones_are_short() {
    for items in [0, 1, 15, 16, 1000, 4095, 4096, 4097, 10_000, 100_003, 3_000_000] {
        for workers in [1, 2, 7] {
            let executor = Executor::new().workers(workers);
            let chunks = executor.range(0..items).map(|chunk| chunk.into_inner()).unwrap().value;
            let ends = chunks.iter().fold(0, |from, chunk| {
                assert!(chunk.start == from && chunk.end > from, "{items} items: {chunk:?}");
                chunk.end
            });
            assert_eq!(ends, items);
            let size = |chunk: &std::ops::Range<u64>| chunk.end - chunk.start;
            let first = chunks.first().map_or(0, size);
            let is_last = |chunk: &&std::ops::Range<u64>| chunk.start >= items - items / 8 + first;
            let longest = chunks.iter().filter(is_last).map(size).max().unwrap_or(0);
            assert!(first < 16 || longest * 4 <= first, "{items} items: {first}, {longest}");
        }
    }
    // Numbers without end: the first chunk fails.
    let ended = Executor::new().range(0..u64::MAX).try_for_each(|_| Err("begun"));
    assert!(matches!(ended.unwrap_err().cause, Cause::Error("begun")));
}

#[test]
fn results_come_in_order_for_any_lengths_chunks_and_workers() {
    for len in [0, 1, 2, 7, 100, 1001] {
        let data: Vec<u64> = (0..len).collect();
        for chunk in [0, 1, 3, 100, 5000] {
            for workers in [0, 1, 2, 5] {
                let executor = Executor::new().chunk(chunk).workers(workers);
                let expected: Vec<u64> =
                    data.chunks(chunk.max(1)).map(|chunk| chunk.iter().sum()).collect();
                let sum = |items: &[u64]| items.iter().sum::<u64>();
                let of_slice = executor.slice(&data).map(|chunk| sum(&chunk)).unwrap();
                assert_eq!(of_slice.value, expected);
                assert_eq!(of_slice.statistics.chunks(), expected.len() as u64);
                let of_vector = executor.vec(data.clone()).map(|chunk| sum(&chunk)).unwrap();
                assert_eq!(of_vector.value, expected);
                let of_iterator = executor.iter(data.clone()).map(|chunk| sum(&chunk)).unwrap();
                assert_eq!(of_iterator.value, expected);
                let of_range =
                    executor.range(0..len).map(|chunk| chunk.into_inner().sum::<u64>()).unwrap();
                assert_eq!(of_range.value, expected);
                let mut delivered = Vec::new();
                let deliver = |_, sum| {
                    delivered.push(sum);
                    Ok::<(), Infallible>(())
                };
                executor.slice(&data).deliver(|chunk| Ok(sum(&chunk)), deliver).unwrap();
                assert_eq!(delivered, expected);
            }
        }
    }
}

#[test]
fn without_order_every_result_comes_once() {
    let executor = Executor::new().chunk(3).workers(4).unordered();
    let of_range = executor.range(0..1000).map(|chunk| chunk.place().index);
    let of_iterator = executor.iter(0..1000).map(|chunk| chunk.place().index);
    for results in [of_range, of_iterator] {
        let mut results = results.unwrap().value;
        results.sort_unstable();
        assert_eq!(results, (0..334).collect::<Vec<_>>());
    }
    let sum =
        executor.range(0..100_000).reduce(|chunk| chunk.into_inner().sum(), |a, b: u64| a + b);
    assert_eq!(sum.unwrap().value, Some(4_999_950_000));
}

#[test]
fn an_ordered_reduction_combines_from_first_to_last() {
    for executor in [Executor::new().workers(3).chunk(2), Executor::new()] {
        let text: String = ('a'..='z').collect();
        let spell = |chunk: &[u8]| String::from_utf8(chunk.to_vec()).unwrap();
        let reduced = executor.slice(text.as_bytes()).reduce(|chunk| spell(&chunk), |a, b| a + &b);
        assert_eq!(reduced.unwrap().value.as_ref(), Some(&text));
        let reduced = executor.iter(text.bytes()).reduce(|chunk| spell(&chunk), |a, b| a + &b);
        assert_eq!(reduced.unwrap().value, Some(text));
    }
    let nothing = Executor::new().range(5..5).reduce(|_| 1, |a, b| a + b).unwrap();
    assert_eq!(nothing.value, None);
}

#[test]
fn a_slice_can_be_changed_in_place() {
    let mut data: Vec<u64> = (0..10_000).collect();
    let double = |mut chunk: masu_chunk::Chunk<&mut [u64]>| chunk.iter_mut().for_each(|n| *n *= 2);
    Executor::new().chunk(9).workers(3).slice_mut(&mut data).for_each(double).unwrap();
    assert!(data.iter().enumerate().all(|(index, &n)| n == 2 * index as u64));
}

#[test]
fn owned_items_are_moved_out_or_dropped_once_each() {
    let alive = AtomicI64::new(0);
    let data: Vec<_> = (0..1000).map(|number| Counted::new(&alive, number)).collect();
    // The first item of each chunk is kept, and the others are dropped with the chunk.
    let firsts = execute(|chunk| chunk.into_inner().next(), data, 10, 3).unwrap();
    assert_eq!(alive.load(Ordering::Relaxed), 100);
    let numbers: Vec<u64> = firsts.iter().flatten().map(|item| item.1).collect();
    assert_eq!(numbers, (0..100).map(|index| index * 10).collect::<Vec<_>>());
    drop(firsts);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn a_panic_comes_back_with_its_place_and_nothing_leaks() {
    quietly(|| {
        for (workers, unordered) in [(1, false), (3, false), (1, true), (3, true)] {
            let alive = AtomicI64::new(0);
            let items = |count| (0..count).map(|number| Counted::new(&alive, number));
            let mut executor = Executor::new().chunk(10).workers(workers);
            if unordered {
                executor = executor.unordered();
            }
            let work = |place: &masu_chunk::Place| {
                assert!(place.index != 57, "no chunk {}", place.index);
                Counted::new(&alive, place.index)
            };
            let of_vector = executor.vec(items(1000).collect()).map(|chunk| work(chunk.place()));
            let of_iterator = executor.iter(items(1000)).map(|chunk| work(chunk.place()));
            let vector: Vec<_> = items(1000).collect();
            let delivered = executor
                .vec(vector)
                .deliver(|chunk| Ok::<_, Infallible>(work(chunk.place())), |_, _| Ok(()));
            for failure in [of_vector.err(), of_iterator.err(), delivered.err()] {
                let failure = failure.expect("the panic is lost");
                assert_eq!((failure.place.index, failure.place.items.clone()), (57, 570..580));
                assert_eq!(failure.cause.panic_message(), Some("no chunk 57"));
                let said = "chunk 57, which is 570 to 579, panicked: no chunk 57";
                assert_eq!(failure.to_string(), said);
            }
            assert_eq!(alive.load(Ordering::Relaxed), 0);
        }
    });
}

#[test]
fn an_error_stops_the_rest_promptly() {
    let executor = Executor::new().chunk(1).workers(2);
    // The rest would take minutes.
    const CHUNKS: u64 = 1 << 33;
    let begun = AtomicU64::new(0);
    let failure = executor.range(0..CHUNKS).try_for_each(|chunk| {
        begun.fetch_add(1, Ordering::Relaxed);
        if chunk.place().index == 100 { Err("bad") } else { Ok(()) }
    });
    assert!(begun.into_inner() < CHUNKS, "the rest went on");
    let Err(Failure { place, cause: Cause::Error("bad"), .. }) = failure else { panic!() };
    assert_eq!(place.index, 100);
}

#[test]
fn results_before_a_failure_are_delivered() {
    let mut delivered = Vec::new();
    let executor = Executor::new().chunk(1).workers(4);
    let failure = executor.range(0..1000).deliver(
        |chunk| if chunk.place().index == 20 { Err("bad") } else { Ok(chunk.place().index) },
        |_, index| {
            delivered.push(index);
            Ok(())
        },
    );
    assert_eq!(failure.err().map(|failure| failure.place.index), Some(20));
    assert_eq!(delivered, (0..20).collect::<Vec<_>>());
}

#[test]
fn an_error_of_the_taker_ends_the_job() {
    let executor = Executor::new().chunk(1).workers(3);
    let take = |place: masu_chunk::Place, _| if place.index == 5 { Err("full") } else { Ok(()) };
    let failure = executor.iter(0_u64..).deliver(|_| Ok(()), take);
    let Err(Failure { place, cause: Cause::Error("full"), .. }) = failure else { panic!() };
    assert_eq!(place.index, 5);
}

#[test]
fn a_cancelled_job_reports_its_first_missing_chunk() {
    let cancel = Cancel::new();
    let executor = Executor::new().chunk(1).workers(2).cancelled_by(&cancel);
    let work = |place: &masu_chunk::Place| {
        if place.index == 50 {
            cancel.cancel();
        }
    };
    let failure = executor.iter(0_u64..).for_each(|chunk| work(chunk.place())).err().unwrap();
    assert!(matches!(failure.cause, Cause::Cancelled) && failure.place.index > 50);
    let failure = executor.range(0..9).map(|_| ()).err().unwrap();
    assert!(matches!(failure.cause, Cause::Cancelled) && failure.place.index == 0);
    assert_eq!(failure.to_string(), "cancelled before chunk 0, which begins at 0");
}

#[test]
fn no_more_chunks_are_begun_than_the_window_has_room_for() {
    let (begun, delivered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ahead = AtomicUsize::new(0);
    let executor = Executor::new().chunk(1).workers(4).window(3);
    let numbers = (0_u64..200).inspect(|_| {
        let begun = begun.fetch_add(1, Ordering::SeqCst) + 1;
        ahead.fetch_max(begun - delivered.load(Ordering::SeqCst), Ordering::SeqCst);
    });
    let take = |_, ()| {
        thread::yield_now();
        delivered.fetch_add(1, Ordering::SeqCst);
        Ok::<(), Infallible>(())
    };
    executor.iter(numbers).deliver(|_| Ok(()), take).unwrap();
    assert!(ahead.into_inner() <= 3);
}

#[test]
fn no_more_functions_run_at_once_than_the_limit() {
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::yield_now();
        now.fetch_sub(1, Ordering::SeqCst);
    };
    let executor = Executor::new().chunk(1).workers(6).concurrency(2);
    executor.iter(0_u64..300).for_each(|_| work()).unwrap();
    executor.range(0..300).for_each(|_| work()).unwrap();
    assert!(most.into_inner() <= 2);
}

#[test]
fn jobs_within_jobs_end() {
    let executor = Executor::new().chunk(1).workers(4);
    let inner = || executor.range(0..20).reduce(|chunk| chunk.start, |a, b| a + b).unwrap().value;
    let outer = executor.range(0..20).map(|_| inner()).unwrap().value;
    assert_eq!(outer, vec![Some(190); 20]);
    let stream = executor.iter(0..20).map(|_| inner()).unwrap().value;
    assert_eq!(stream, vec![Some(190); 20]);
}

#[test]
fn one_long_chunk_does_not_keep_others_from_the_rest() {
    // The first chunk waits for all others, which other workers must do. It was taken alone, because the
    // duration of chunks is not known yet.
    let (done, all) = (AtomicUsize::new(0), 5000);
    let executor = Executor::new().chunk(1).workers(2);
    let statistics = executor.range(0..all).for_each(|chunk| {
        while chunk.place().index == 0 && done.load(Ordering::SeqCst) as u64 != all - 1 {
            thread::sleep(Duration::from_micros(50));
        }
        done.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(statistics.unwrap().chunks(), all);
}

#[test]
fn progress_ends_with_everything() {
    let last = Mutex::new(None);
    let hear = |progress| *last.lock().unwrap() = Some(progress);
    let executor = Executor::new().chunk(10).workers(2).progress(&hear);
    executor.range(0..1005).for_each(|_| ()).unwrap();
    let progress = last.lock().unwrap().take().unwrap();
    assert_eq!((progress.chunks, progress.items, progress.items_total), (101, 1005, Some(1005)));
    executor.blocks(&[7_u8; 95][..]).for_each(|_| ()).unwrap();
    let progress = last.lock().unwrap().take().unwrap();
    assert_eq!((progress.chunks, progress.items, progress.items_total), (10, 95, None));
}

#[test]
fn a_panic_of_the_progress_is_a_failure_and_items_are_dropped_once() {
    let alive = AtomicI64::new(0);
    let hear = |_| panic!("heard enough");
    let executor = Executor::new().chunk(10).workers(4).progress(&hear);
    let items: Vec<_> = (0..2000).map(|number| Counted::new(&alive, number)).collect();
    // Some calls come while there is work, and if that was too quick, the last one does.
    let failure = executor.vec(items).map(|_| thread::sleep(Duration::from_millis(1))).unwrap_err();
    assert_eq!(failure.cause.panic_message(), Some("heard enough"));
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    let failure = executor.iter(0..100).for_each(|_| ()).unwrap_err();
    assert_eq!(failure.cause.panic_message(), Some("heard enough"));
}

/// A reader of at most so many bytes at a time, and then perhaps an error.
struct Dribble<'a>(&'a [u8], usize, Option<io::ErrorKind>);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.1);
        match self.0.read(&mut buffer[..most])? {
            0 => self.2.take().map_or(Ok(0), |kind| Err(kind.into())),
            count => Ok(count),
        }
    }
}

/// A reader of one byte at a time, which looks at the last byte of its room.
struct Onlooker<'a> {
    left: usize,
    found: &'a AtomicUsize,
}

impl Read for Onlooker<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let last = buffer.last_mut().unwrap();
        self.found.fetch_add(usize::from(*last), Ordering::Relaxed);
        *last = 1;
        self.left -= 1;
        Ok(self.left.min(1))
    }
}

#[test]
fn the_room_of_short_reads_is_set_to_zero_once() {
    let found = AtomicUsize::new(0);
    let executor = Executor::new().workers(1).window(1).chunk(1000);
    let reader = Onlooker { left: 101, found: &found };
    let lengths = executor.blocks(reader).map(|chunk| chunk.len()).unwrap().value;
    assert_eq!((lengths, found.into_inner()), (vec![1; 100], 100));
}

/// A reader that fills its room so many times less one, and says that it read twice as much.
struct Boaster(usize);

impl Read for Boaster {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0 -= 1;
        buffer.fill(b'0' + self.0 as u8);
        Ok(self.0.min(1) * 2 * buffer.len())
    }
}

#[test]
fn a_reader_that_says_more_than_its_room_has_filled_its_room() {
    let executor = Executor::new().workers(1).window(1).chunk(4);
    let blocks = executor.blocks(Boaster(3)).map(|chunk| chunk.to_vec()).unwrap().value;
    assert_eq!(blocks, [b"2222", b"1111"]);
    let records = executor.records(Boaster(3), b'2').map(|chunk| chunk.to_vec()).unwrap().value;
    assert_eq!(records, [b"2222", b"1111"]);
}

#[test]
fn records_are_whole_and_together_they_are_the_input() {
    let input = b"one\ntwo\n\nthree\nfour and more than a block\nlast";
    for size in [1, 3, 8, 1000] {
        for most in [1, 5, 1000] {
            let executor = Executor::new().chunk(size).workers(2);
            let records = executor.records(Dribble(input, most, None), b'\n');
            let chunks = records.map(|chunk| (chunk.before(), chunk.to_vec())).unwrap().value;
            let joined: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            assert_eq!(joined, input);
            let (last, whole) = chunks.split_last().unwrap();
            assert!(whole.iter().all(|(_, bytes)| bytes.ends_with(b"\n")));
            assert!(last.1.ends_with(b"last"));
            assert!(chunks[1..].iter().all(|(before, _)| *before == Some(b'\n')));
        }
    }
}

#[test]
fn bytes_read_before_an_error_are_worked_on() {
    let reader = Dribble(b"abcdef", 4, Some(io::ErrorKind::ConnectionReset));
    let mut taken = Vec::new();
    let take = |_, bytes: Vec<u8>| {
        taken.extend(bytes);
        Ok::<(), Infallible>(())
    };
    let executor = Executor::new().workers(2);
    let failure = executor.blocks(reader).deliver(|chunk| Ok(chunk.to_vec()), take).err().unwrap();
    assert!(matches!(failure.cause, Cause::Read(_)));
    assert_eq!((failure.place.index, taken), (2, b"abcdef".to_vec()));
}

/// Most chunks cost nothing, so many are taken at once; some are long, and other workers steal the rest of
/// their batch.
#[test]
fn each_chunk_is_done_once_however_uneven_they_are() {
    let spin = |times: u64| (0..times).fold(0, |sum, number| std::hint::black_box(sum ^ number));
    for job in 0..300_u64 {
        let done: Vec<AtomicU64> = (0..2_000).map(|_| AtomicU64::new(0)).collect();
        let executor = Executor::new().workers(2 + job as usize % 3).chunk(1);
        let worked = executor.range(0..2_000).for_each(|chunk| {
            let number = chunk.place().index;
            let draw = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ job) >> 56;
            spin(if draw < 8 { 20_000 } else { draw % 32 });
            done[number as usize].fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(worked.expect("nothing fails").chunks(), 2_000);
        assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "job {job}");
    }
}

#[test]
fn a_job_of_any_number_of_chunks_is_begun() {
    // Units of several chunks are rounded up: these numbers of chunks reach the next power of two.
    for chunks in [(1 << 33) - 1, (1 << 40) - 1, u64::MAX] {
        let executor = Executor::new().chunk(1).workers(2);
        let ended = executor.range(0..chunks).try_for_each(|_| Err("begun"));
        assert!(matches!(ended.unwrap_err().cause, Cause::Error("begun")), "{chunks}");
    }
    let two = Executor::new().chunk(1 << 63).workers(1).range(0..u64::MAX).for_each(|_| ());
    assert_eq!(two.unwrap().chunks(), 2);
}

#[test]
fn settings_may_be_as_large_as_numbers_are() {
    let executor = Executor::new().workers(2).chunk(1).window(usize::MAX);
    let results = executor.iter(0..1000).map(|chunk| chunk[0]).unwrap().value;
    assert_eq!(results, (0..1000).collect::<Vec<_>>());
    let executor = Executor::new().workers(2).chunk(usize::MAX);
    for length in [0, 3, 1 << 20] {
        let data = b"abc\n".repeat(length);
        let blocks = executor.blocks(&data[..]).map(|chunk| chunk.to_vec()).unwrap().value;
        let records = executor.records(&data[..], b'\n').map(|chunk| chunk.to_vec()).unwrap().value;
        assert!(blocks.concat() == data && records.concat() == data);
    }
    // Three chunks have three workers at most.
    let executor = Executor::new().workers(usize::MAX);
    assert_eq!(executor.range(0..3).map(|chunk| chunk.start).unwrap().value, [0, 1, 2]);
    let ended = executor.chunk(1).range(0..u64::MAX).try_for_each(|_| Err("begun"));
    assert!(matches!(ended.unwrap_err().cause, Cause::Error("begun")));
}

#[test]
fn a_record_over_the_limit_is_an_error_wherever_its_reader_cuts_it() {
    let input = b"one\ntwo\nmuch_longer\nfour\n";
    for size in [1, 4, 1000] {
        for most in [1, 5, 1000] {
            let mut taken = Vec::new();
            let take = |_, bytes: Vec<u8>| {
                taken.extend(bytes);
                Ok::<(), Infallible>(())
            };
            let executor = Executor::new().chunk(size).workers(2);
            let records = executor.records_up_to(Dribble(input, most, None), b'\n', 8);
            let ended = records.deliver(|chunk| Ok(chunk.to_vec()), take);
            let said = ended.unwrap_err().to_string();
            assert!(said.contains("within 8 bytes"), "{size}, {most}: {said}");
            assert_eq!(taken, b"one\ntwo\n", "{size}, {most}");
        }
    }
    // One that would not fit into memory.
    let endless = Executor::new().records_up_to(io::repeat(b'x'), b'\n', 1 << 20).for_each(|_| ());
    let said = endless.unwrap_err().to_string();
    assert!(said.contains("no delimiter `\\n` within 1048576 bytes"), "{said}");
}

#[test]
fn the_calling_thread_is_the_first_of_a_streams_workers() {
    let caller = thread::current().id();
    for _ in 0..300 {
        let own = AtomicU64::new(0);
        let executor = Executor::new().chunk(1).workers(3).unordered();
        let statistics = executor.iter(0..40).for_each(|_| {
            let is_own = thread::current().id() == caller;
            own.fetch_add(u64::from(is_own), Ordering::Relaxed);
        });
        let (own, workers) = (own.into_inner(), statistics.unwrap().workers);
        assert!(own == 0 || workers[0].chunks == own, "{own}: {workers:?}");
    }
}

/// Its drop panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic::resume_unwind(Box::new("in a drop"));
    }
}

#[test]
fn helpers_that_a_panic_in_a_drop_ended_are_replaced() {
    let caller = thread::current().id();
    // More jobs than there can be helpers.
    for _ in 0..600 {
        let both = Barrier::new(2);
        let work = |_| {
            both.wait();
            if thread::current().id() == caller {
                return Err("ends the job");
            }
            // Mostly, the job is over when the helper has its result. On a
            // busy machine the result is taken, and the drop's panic comes back.
            thread::sleep(Duration::from_millis(1));
            Ok(Bomb)
        };
        let executor = Executor::new().chunk(1).workers(2).unordered();
        let job = || executor.iter(0..2).deliver(work, |_, _| Ok(()));
        let ended = panic::catch_unwind(AssertUnwindSafe(job));
        assert!(!matches!(ended, Ok(Ok(_))), "the error or the panic comes back");
    }
}
