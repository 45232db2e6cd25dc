//! Threads, collections, traits, panics that are caught: enough for the compiler to work.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::{panic, thread};

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        std::f64::consts::PI * self.0 * self.0
    }
}

fn work(seed: usize) -> BTreeMap<String, f64> {
    let shapes: Vec<Box<dyn Shape>> = (0..2_000)
        .map(|i| -> Box<dyn Shape> {
            let size = ((i * seed) % 17) as f64;
            if i % 2 == 0 { Box::new(Square(size)) } else { Box::new(Circle(size)) }
        })
        .collect();
    let mut areas = HashMap::<String, f64>::new();
    for (i, shape) in shapes.iter().enumerate() {
        *areas.entry(format!("shape {}", i % 50)).or_default() += shape.area();
    }
    areas.into_iter().collect()
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (1..=8)
        .map(|seed| {
            let send = send.clone();
            thread::spawn(move || send.send((seed, work(seed))).is_ok())
        })
        .collect();
    drop(send);
    let mut results: Vec<_> = receive.iter().collect();
    results.sort_by_key(|(seed, _)| *seed);
    for (seed, areas) in &results {
        println!("{seed}: {:.3} {:?}", areas.values().sum::<f64>(), areas.iter().next_back());
    }
    let caught = (0..100)
        .filter(|i| panic::catch_unwind(|| assert!(i % 2 == 0, "{}", "odd ".repeat(*i))).is_err())
        .count();
    println!("caught: {caught}, threads: {}", threads.into_iter().filter_map(|t| t.join().ok()).count());
}
