//! The allocator under loom: all of it, behind doors that loom stands behind.
//!
//! `cargo xtask ci` runs it; by hand: `RUSTFLAGS="--cfg loom" cargo test --release -p masu --features profile,guards --lib
//! models::`. With `MASU_SOAK=1` threads are interrupted once more often.
//!
//! It relies on every atomic, lock and cell coming from `crate::platform::sync`: here that is the same lock on loom's atomics
//! (`models/atomics.rs`). Three more doors are not the real ones: the system calls that are about threads
//! (`models/system.rs`), the C library's (`models/libc.rs`) and the thread slot (`models/slot.rs`). All else is what is
//! shipped, down to the mappings. That is why these are tests of the library and not beside it.
//!
//! What each model shows: no block is handed out while another has it, whatever was done with a block is ordered
//! before whatever is done by the next that is handed it, all cells are touched in order, no thread waits for ever, nothing
//! ends the program, and every block comes home. The same models run with Release and Acquire made Relaxed, and
//! loom has to notice.

extern crate std;

#[cfg(feature = "guards")]
mod guarded;
mod heaps;
mod idle;
mod program;
mod remote;
#[cfg(feature = "profile")]
mod sampled;
mod stripes;
mod trays;
