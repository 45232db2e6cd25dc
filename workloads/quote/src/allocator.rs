//! The global allocator of choice: the one that a feature names, else the system's.

#[cfg(feature = "masu")]
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

#[cfg(feature = "jemalloc")]
#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
