//! The jobs, their data, and what an executor must be able to do.

use std::hint::black_box;

/// Items a chunk, where a job says so.
pub const CHUNK: usize = 100;

/// A binary tree whose leaves are tiny tasks.
pub struct Node {
    pub value: u64,
    pub below: Option<Box<(Node, Node)>>,
}

/// An executor under comparison. A job that it has no way for is `None`.
pub trait Peer {
    /// The sums of chunks of 100 numbers, in order.
    fn sums(&mut self, numbers: &[i64]) -> Option<Vec<i64>>;
    /// A light function of each number, in order, in one vector.
    fn map(&mut self, numbers: &[f32]) -> Option<Vec<f32>>;
    /// A light function of the pairs of two slices, likewise.
    fn zip(&mut self, left: &[f32], right: &[f32]) -> Option<Vec<f32>>;
    /// The sum of all numbers.
    fn total(&mut self, numbers: &[u64]) -> Option<u64>;
    /// [`turns`] of each item, added up.
    fn turns(&mut self, items: &[u32]) -> Option<u64>;
    /// Likewise, each item a chunk of its own.
    fn single(&mut self, items: &[u32]) -> Option<u64>;
    /// The largest of the sums of rows, each of which is a job.
    fn nested(&mut self, rows: &[Vec<u64>]) -> Option<u64>;
    /// The sum of the numbers in the lines of a reader.
    fn lines(&mut self, text: &[u8]) -> Option<u64>;
    /// The sum of a tree, each node a fork.
    fn tree(&mut self, root: &Node) -> Option<u64>;
}

/// Work of so many turns, some nanoseconds each.
#[inline(never)]
pub fn turns(count: u32) -> u64 {
    let mut value = u64::from(count);
    for _ in 0..count {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7));
    }
    value
}

pub fn light(number: f32) -> f32 {
    number * 1.5 + 0.5
}

/// The sum of the numbers in whole lines.
pub fn add_lines(text: &[u8]) -> u64 {
    text.split(|byte| *byte == b'\n').map(add_line).sum()
}

pub fn add_line(line: &[u8]) -> u64 {
    line.iter().fold(0, |value: u64, digit| value.wrapping_mul(10) + u64::from(digit & 15))
}

fn numbers(count: u64) -> Vec<u64> {
    (0..count).map(|number| number * number % 1000).collect()
}

fn floats(count: u32) -> Vec<f32> {
    (0..count).map(|number| number as f32).collect()
}

/// The children's order in memory changes from level to level: executors differ in the one they begin with, and a walk
/// along the memory takes a fifth of the time of one across it.
fn tree(depth: u32) -> Node {
    let below = (depth > 1).then(|| {
        let (one, other) = (tree(depth - 1), tree(depth - 1));
        Box::new(if depth.is_multiple_of(2) { (one, other) } else { (other, one) })
    });
    Node { value: u64::from(depth), below }
}

/// The names of the jobs, with what the table calls them.
pub const JOBS: [(&str, &str); 12] = [
    ("sums", "sums of chunks of 100, 10 million numbers"),
    ("map", "a light map, 10 million numbers"),
    ("zip", "a light map of two slices, 10 million numbers each"),
    ("total", "one sum, 10 million numbers"),
    ("uneven", "10,000 items, the last hundred with nine tenths of the work"),
    ("tiny", "a million items of some 20 ns"),
    ("single", "100,000 items of some 20 ns, each a chunk"),
    ("nested", "100 jobs of 100,000 numbers within a job"),
    ("small", "1,000 jobs of 1,000 numbers, one after another"),
    ("lines", "lines of a reader, 32 MB"),
    ("tree", "fork and join at each of a million nodes"),
    ("first", "the first call of a process, 100,000 numbers"),
];

/// A job with its data: a number that all executors agree on; none where one has no way for it.
pub type Job = Box<dyn Fn(&mut dyn Peer) -> Option<u64>>;

/// Makes the data of a job, then returns the job.
pub fn prepare(name: &str) -> Job {
    match name {
        "sums" => {
            let data: Vec<i64> = (1..=10_000_000).collect();
            Box::new(move |peer| Some(peer.sums(&data)?.iter().sum::<i64>() as u64))
        }
        "map" => {
            let data = floats(10_000_000);
            Box::new(move |peer| Some(peer.map(&data)?.last()?.to_bits().into()))
        }
        "zip" => {
            let (left, right) = (floats(10_000_000), floats(10_000_000));
            Box::new(move |peer| Some(peer.zip(&left, &right)?.last()?.to_bits().into()))
        }
        "total" => {
            let data = numbers(10_000_000);
            Box::new(move |peer| peer.total(&data))
        }
        "uneven" => {
            let data: Vec<u32> =
                (0..10_000).map(|item| if item < 9_900 { 30 } else { 27_000 }).collect();
            Box::new(move |peer| peer.turns(&data))
        }
        "tiny" => {
            let data = vec![10; 1_000_000];
            Box::new(move |peer| peer.turns(&data))
        }
        "single" => {
            let data = vec![10; 100_000];
            Box::new(move |peer| peer.single(&data))
        }
        "nested" => {
            let data: Vec<Vec<u64>> = (0..100).map(|row| numbers(100_000 + row)).collect();
            Box::new(move |peer| peer.nested(&data))
        }
        "small" => {
            let data = numbers(1_000);
            Box::new(move |peer| (0..1_000).map(|_| peer.total(&data)).sum())
        }
        "lines" => {
            let lines = (0..4_000_000).map(|line: u64| format!("{:07}\n", line * 7 % 9_999_991));
            let text: Vec<u8> = lines.flat_map(String::into_bytes).collect();
            Box::new(move |peer| peer.lines(&text))
        }
        "tree" => {
            let root = tree(20);
            Box::new(move |peer| peer.tree(&root))
        }
        "first" => {
            let data = numbers(100_000);
            Box::new(move |peer| peer.total(&data))
        }
        other => panic!("there is no job `{other}`"),
    }
}
