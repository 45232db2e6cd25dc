//! The smallest program with an allocator of its own: what adopting one costs in time of building and in bytes.

#[path = "../allocator.rs"]
mod allocator;

fn main() {
    println!("hello");
}
