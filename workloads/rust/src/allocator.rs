//! The program's global allocator, chosen by a feature when it is built.
//!
//! Each allocator is set up as its crate's documentation shows for a program that starts threads. A build has exactly
//! one: the compiler refuses two, and a build without one is an error of its own, so that no build is mistaken for
//! another.

#[cfg(not(any(
    feature = "system",
    feature = "masu",
    feature = "mimalloc",
    feature = "jemalloc",
    feature = "snmalloc",
    feature = "tcmalloc",
    feature = "talc",
    feature = "dlmalloc",
    feature = "rlsf",
    feature = "rusty_alloc",
)))]
compile_error!("name the allocator: cargo build --release --features masu");

#[cfg(feature = "system")]
#[global_allocator]
static GLOBAL: std::alloc::System = std::alloc::System;

#[cfg(feature = "masu")]
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

#[cfg(feature = "mimalloc")]
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "snmalloc")]
#[global_allocator]
static GLOBAL: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

#[cfg(feature = "tcmalloc")]
#[global_allocator]
static GLOBAL: tcmalloc_better::TCMalloc = tcmalloc_better::TCMalloc;

// Talc takes its memory from the given source; this is its example for programs that have a system.
#[cfg(feature = "talc")]
#[global_allocator]
static GLOBAL: talc::TalcLock<
    spinning_top::RawSpinlock,
    talc::source::GlobalAllocSource<std::alloc::System>,
> = talc::TalcLock::new(talc::source::GlobalAllocSource::new(std::alloc::System));

#[cfg(feature = "dlmalloc")]
#[global_allocator]
static GLOBAL: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[cfg(feature = "rlsf")]
#[global_allocator]
static GLOBAL: rlsf::GlobalTlsf = rlsf::GlobalTlsf::new();

#[cfg(feature = "rusty_alloc")]
#[global_allocator]
static GLOBAL: rusty_alloc_api::RustyAlloc = rusty_alloc_api::RustyAlloc;
