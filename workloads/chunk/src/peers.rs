//! The executors, each with the code that its users would write.

use std::io::BufRead;

use masu_chunk::Executor;
use orx_parallel::{IterIntoParIter, Par, Parallelizable};
use paralight::prelude::*;

use crate::jobs::{CHUNK, Node, Peer, add_line, add_lines, light, turns};

/// The names of the executors; the first is the one that the others are compared with.
pub const PEERS: [&str; 6] =
    ["masu-chunk", "rayon", "chili", "orx-parallel", "paralight", "one thread"];

pub fn find(name: &str) -> Box<dyn Peer> {
    match name {
        "masu-chunk" => Box::new(Masu(Executor::new())),
        "rayon" => Box::new(Rayon),
        "chili" => Box::new(Chili),
        "orx-parallel" => Box::new(Orx),
        "paralight" => Box::new(Paralight(
            ThreadPoolBuilder {
                num_threads: ThreadCount::AvailableParallelism,
                range_strategy: RangeStrategy::WorkStealing,
                cpu_pinning: CpuPinningPolicy::No,
            }
            .build(),
        )),
        "one thread" => Box::new(Plain),
        other => panic!("there is no executor `{other}`"),
    }
}

struct Masu(Executor<'static>);

impl Peer for Masu {
    fn sums(&mut self, numbers: &[i64]) -> Option<Vec<i64>> {
        let job = self.0.clone().chunk(CHUNK);
        Some(job.slice(numbers).map(|chunk| chunk.iter().sum()).ok()?.value)
    }

    fn map(&mut self, numbers: &[f32]) -> Option<Vec<f32>> {
        Some(self.0.slice(numbers).map_items(|number| light(*number)).ok()?.value)
    }

    fn zip(&mut self, left: &[f32], right: &[f32]) -> Option<Vec<f32>> {
        let pairs = self.0.slice(left).zip(self.0.slice(right));
        Some(pairs.map_items(|(left, right)| light(*left) + right).ok()?.value)
    }

    fn total(&mut self, numbers: &[u64]) -> Option<u64> {
        self.0.slice(numbers).reduce(|chunk| chunk.iter().sum::<u64>(), |a, b| a + b).ok()?.value
    }

    fn turns(&mut self, items: &[u32]) -> Option<u64> {
        let sum = |chunk: &[u32]| chunk.iter().map(|item| turns(*item)).fold(0, u64::wrapping_add);
        self.0.slice(items).reduce(|chunk| sum(&chunk), u64::wrapping_add).ok()?.value
    }

    fn single(&mut self, items: &[u32]) -> Option<u64> {
        let job = self.0.clone().chunk(1);
        job.slice(items).reduce(|chunk| turns(chunk[0]), u64::wrapping_add).ok()?.value
    }

    fn nested(&mut self, rows: &[Vec<u64>]) -> Option<u64> {
        let executor = &self.0;
        let of_row = |row: &Vec<u64>| {
            executor.slice(row).reduce(|chunk| chunk.iter().sum::<u64>(), |a, b| a + b).ok()?.value
        };
        executor
            .clone()
            .chunk(1)
            .slice(rows)
            .reduce(|chunk| of_row(&chunk[0]), Ord::max)
            .ok()?
            .value?
    }

    fn lines(&mut self, text: &[u8]) -> Option<u64> {
        self.0.records(text, b'\n').reduce(|lines| add_lines(&lines), |a, b| a + b).ok()?.value
    }

    fn tree(&mut self, root: &Node) -> Option<u64> {
        fn sum(node: &Node) -> u64 {
            let Some(below) = &node.below else { return node.value };
            let (left, right) = masu_chunk::join(|| sum(&below.0), || sum(&below.1));
            node.value + left + right
        }
        Some(sum(root))
    }
}

struct Rayon;

impl Peer for Rayon {
    fn sums(&mut self, numbers: &[i64]) -> Option<Vec<i64>> {
        use rayon::prelude::ParallelIterator;
        Some(
            rayon::prelude::ParallelSlice::par_chunks(numbers, CHUNK)
                .map(|chunk| chunk.iter().sum())
                .collect(),
        )
    }

    fn map(&mut self, numbers: &[f32]) -> Option<Vec<f32>> {
        use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};
        Some(IntoParallelRefIterator::par_iter(numbers).map(|number| light(*number)).collect())
    }

    fn zip(&mut self, left: &[f32], right: &[f32]) -> Option<Vec<f32>> {
        use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
        let pairs =
            IntoParallelRefIterator::par_iter(left).zip(IntoParallelRefIterator::par_iter(right));
        Some(pairs.map(|(left, right)| light(*left) + right).collect())
    }

    fn total(&mut self, numbers: &[u64]) -> Option<u64> {
        use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};
        Some(IntoParallelRefIterator::par_iter(numbers).sum())
    }

    fn turns(&mut self, items: &[u32]) -> Option<u64> {
        use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};
        let turned = IntoParallelRefIterator::par_iter(items).map(|item| turns(*item));
        Some(turned.reduce(|| 0, u64::wrapping_add))
    }

    fn single(&mut self, items: &[u32]) -> Option<u64> {
        use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
        let turned =
            IntoParallelRefIterator::par_iter(items).with_max_len(1).map(|item| turns(*item));
        Some(turned.reduce(|| 0, u64::wrapping_add))
    }

    fn nested(&mut self, rows: &[Vec<u64>]) -> Option<u64> {
        use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};
        IntoParallelRefIterator::par_iter(rows)
            .map(|row| IntoParallelRefIterator::par_iter(row.as_slice()).sum::<u64>())
            .max()
    }

    fn lines(&mut self, text: &[u8]) -> Option<u64> {
        use rayon::iter::{ParallelBridge, ParallelIterator};
        Some(
            BufRead::split(text, b'\n')
                .par_bridge()
                .map(|line| add_line(&line.unwrap_or_default()))
                .sum(),
        )
    }

    fn tree(&mut self, root: &Node) -> Option<u64> {
        fn sum(node: &Node) -> u64 {
            let Some(below) = &node.below else { return node.value };
            let (left, right) = rayon::join(|| sum(&below.0), || sum(&below.1));
            node.value + left + right
        }
        Some(sum(root))
    }
}

/// It has a fork alone: what rayon does by halves is written down here.
struct Chili;

/// The two halves of a job, each of which forks again until an item is left or `least` are.
fn halves<T: Sync, R: Send>(
    scope: &mut chili::Scope<'_>,
    items: &[T],
    least: usize,
    work: &(impl Fn(&[T]) -> R + Sync),
    combine: &(impl Fn(R, R) -> R + Sync),
) -> R {
    if items.len() <= least.max(1) {
        return work(items);
    }
    let (left, right) = items.split_at(items.len() / 2);
    let (left, right) = scope.join(
        |scope| halves(scope, left, least, work, combine),
        |scope| halves(scope, right, least, work, combine),
    );
    combine(left, right)
}

impl Peer for Chili {
    fn sums(&mut self, _: &[i64]) -> Option<Vec<i64>> {
        None
    }

    fn map(&mut self, _: &[f32]) -> Option<Vec<f32>> {
        None
    }

    fn zip(&mut self, _: &[f32], _: &[f32]) -> Option<Vec<f32>> {
        None
    }

    fn total(&mut self, numbers: &[u64]) -> Option<u64> {
        let mut scope = chili::Scope::global();
        Some(halves(&mut scope, numbers, 2_000, &|items| items.iter().sum::<u64>(), &|a, b| a + b))
    }

    fn turns(&mut self, items: &[u32]) -> Option<u64> {
        self.single(items)
    }

    fn single(&mut self, items: &[u32]) -> Option<u64> {
        let mut scope = chili::Scope::global();
        Some(halves(
            &mut scope,
            items,
            1,
            &|items| items.first().map_or(0, |item| turns(*item)),
            &u64::wrapping_add,
        ))
    }

    fn nested(&mut self, rows: &[Vec<u64>]) -> Option<u64> {
        fn largest(scope: &mut chili::Scope<'_>, rows: &[Vec<u64>]) -> u64 {
            if let [row] = rows {
                return halves(scope, row, 2_000, &|items| items.iter().sum::<u64>(), &|a, b| {
                    a + b
                });
            }
            let (left, right) = rows.split_at(rows.len() / 2);
            let (left, right) =
                scope.join(|scope| largest(scope, left), |scope| largest(scope, right));
            left.max(right)
        }
        Some(largest(&mut chili::Scope::global(), rows))
    }

    fn lines(&mut self, _: &[u8]) -> Option<u64> {
        None
    }

    fn tree(&mut self, root: &Node) -> Option<u64> {
        fn sum(node: &Node, scope: &mut chili::Scope<'_>) -> u64 {
            let Some(below) = &node.below else { return node.value };
            let (left, right) =
                scope.join(|scope| sum(&below.0, scope), |scope| sum(&below.1, scope));
            node.value + left + right
        }
        Some(sum(root, &mut chili::Scope::global()))
    }
}

struct Orx;

impl Peer for Orx {
    fn sums(&mut self, numbers: &[i64]) -> Option<Vec<i64>> {
        let chunks = (0..numbers.len() / CHUNK).par();
        Some(chunks.map(|chunk| numbers[chunk * CHUNK..][..CHUNK].iter().sum()).collect())
    }

    fn map(&mut self, numbers: &[f32]) -> Option<Vec<f32>> {
        Some(numbers.par().map(|number| light(*number)).collect())
    }

    fn zip(&mut self, left: &[f32], right: &[f32]) -> Option<Vec<f32>> {
        Some((0..left.len().min(right.len())).par().map(|at| light(left[at]) + right[at]).collect())
    }

    fn total(&mut self, numbers: &[u64]) -> Option<u64> {
        Some(numbers.par().copied().sum())
    }

    fn turns(&mut self, items: &[u32]) -> Option<u64> {
        items.par().map(|item| turns(*item)).reduce(u64::wrapping_add)
    }

    fn single(&mut self, items: &[u32]) -> Option<u64> {
        items.par().chunk_size(1).map(|item| turns(*item)).reduce(u64::wrapping_add)
    }

    fn nested(&mut self, _: &[Vec<u64>]) -> Option<u64> {
        // Version 4.1.1 never returns from a job within a job: its threads wait for each other.
        None
    }

    fn lines(&mut self, text: &[u8]) -> Option<u64> {
        let lines = BufRead::split(text, b'\n').iter_into_par();
        Some(lines.map(|line| add_line(&line.unwrap_or_default())).sum())
    }

    fn tree(&mut self, _: &Node) -> Option<u64> {
        None
    }
}

struct Paralight(ThreadPool);

impl Peer for Paralight {
    fn sums(&mut self, numbers: &[i64]) -> Option<Vec<i64>> {
        let mut sums = vec![0; numbers.len() / CHUNK];
        let chunks = 0..sums.len();
        (sums.par_iter_mut(), chunks.into_par_iter())
            .zip_eq()
            .with_thread_pool(&mut self.0)
            .for_each(|(sum, chunk)| *sum = numbers[chunk * CHUNK..][..CHUNK].iter().sum());
        Some(sums)
    }

    fn map(&mut self, numbers: &[f32]) -> Option<Vec<f32>> {
        let mut results = vec![0.0; numbers.len()];
        (results.par_iter_mut(), numbers.par_iter())
            .zip_eq()
            .with_thread_pool(&mut self.0)
            .for_each(|(result, number)| *result = light(*number));
        Some(results)
    }

    fn zip(&mut self, left: &[f32], right: &[f32]) -> Option<Vec<f32>> {
        let mut results = vec![0.0; left.len()];
        (results.par_iter_mut(), left.par_iter(), right.par_iter())
            .zip_eq()
            .with_thread_pool(&mut self.0)
            .for_each(|(result, left, right)| *result = light(*left) + right);
        Some(results)
    }

    fn total(&mut self, numbers: &[u64]) -> Option<u64> {
        Some(numbers.par_iter().copied().with_thread_pool(&mut self.0).sum())
    }

    fn turns(&mut self, items: &[u32]) -> Option<u64> {
        let turned = items.par_iter().map(|item| turns(*item));
        Some(turned.with_thread_pool(&mut self.0).reduce(|| 0, u64::wrapping_add))
    }

    fn single(&mut self, items: &[u32]) -> Option<u64> {
        // It steals items one by one as it is.
        self.turns(items)
    }

    fn nested(&mut self, _: &[Vec<u64>]) -> Option<u64> {
        None
    }

    fn lines(&mut self, _: &[u8]) -> Option<u64> {
        None
    }

    fn tree(&mut self, _: &Node) -> Option<u64> {
        None
    }
}

struct Plain;

impl Peer for Plain {
    fn sums(&mut self, numbers: &[i64]) -> Option<Vec<i64>> {
        Some(numbers.chunks(CHUNK).map(|chunk| chunk.iter().sum()).collect())
    }

    fn map(&mut self, numbers: &[f32]) -> Option<Vec<f32>> {
        Some(numbers.iter().map(|number| light(*number)).collect())
    }

    fn zip(&mut self, left: &[f32], right: &[f32]) -> Option<Vec<f32>> {
        Some(left.iter().zip(right).map(|(left, right)| light(*left) + right).collect())
    }

    fn total(&mut self, numbers: &[u64]) -> Option<u64> {
        Some(numbers.iter().sum())
    }

    fn turns(&mut self, items: &[u32]) -> Option<u64> {
        items.iter().map(|item| turns(*item)).reduce(u64::wrapping_add)
    }

    fn single(&mut self, items: &[u32]) -> Option<u64> {
        self.turns(items)
    }

    fn nested(&mut self, rows: &[Vec<u64>]) -> Option<u64> {
        rows.iter().map(|row| row.iter().sum()).max()
    }

    fn lines(&mut self, text: &[u8]) -> Option<u64> {
        Some(add_lines(text))
    }

    fn tree(&mut self, root: &Node) -> Option<u64> {
        fn sum(node: &Node) -> u64 {
            node.value + node.below.as_ref().map_or(0, |below| sum(&below.0) + sum(&below.1))
        }
        Some(sum(root))
    }
}
