//! The allocator under loom: all of it, behind doors that loom stands behind.
//!
//! `cargo xtask ci` runs it; by hand: `RUSTFLAGS="--cfg loom" cargo test --release -p masu --features profile,guards
//! --lib models::`. With `MASU_SOAK=1` threads are interrupted one more time.
//!
//! It relies on every atomic, lock and cell coming from `crate::platform::sync`: here that is the same lock on loom's
//! atomics (`models/atomics.rs`). Three more doors are not the real ones: the system calls that are about threads
//! (`models/system.rs`), the C library's (`models/libc.rs`) and the thread slot (`models/slot.rs`). Everything else is
//! the shipped code, down to the mappings. So these are tests inside the library and not beside it.
//!
//! Each model shows: no block is handed out while another holder has it, all uses of a block are ordered before all
//! uses by the next holder of the block, all cells are accessed in order, no thread waits forever, nothing ends the
//! program, and every block returns to its page. The same models run with Release and with Acquire made Relaxed, and
//! loom must notice.

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
