//! The meaning of a statistics page's bytes.
//!
//! Whatever the bytes are, the result is a page or a reason why it is none.

use serde::Serialize;

// COUPLING: the layout stands in `crates/masu/src/threads/statistics/page.rs`, the names of the numbers in
// `crates/masu/src/threads/statistics.rs`. Words of 64 bits in the machine's byte order.
const MAGIC: [u8; 8] = *b"masustat";
const VERSION: u64 = 1;
const WORD_BYTES: usize = 8;
const HEAD_WORDS: usize = 16;
const TOTAL_WORDS: usize = 48;
const ROW_WORDS: usize = 16;
const CLASSES: usize = 80;
const THREADS_MAX: usize = 128;
const CLASSES_AT: usize = HEAD_WORDS + TOTAL_WORDS;
const THREADS_AT: usize = CLASSES_AT + CLASSES * ROW_WORDS;
/// Bytes of a page. Bytes behind them are ignored.
pub const PAGE_BYTES: usize = (THREADS_AT + THREADS_MAX * ROW_WORDS) * WORD_BYTES;

macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident { $($field:ident),+ $(,)? })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct $name {
            $(#[doc = concat!("`", stringify!($field), "` of `masu::statistics`.")] pub $field: u64,)+
        }

        impl $name {
            /// The names of the numbers, in the order of the page.
            pub const NAMES: &[&str] = &[$(stringify!($field)),+];

            /// The numbers in these words; a number that a page of an older masu lacks is 0.
            fn of(words: &[u64]) -> $name {
                let mut words = words.iter().copied();
                $name { $($field: words.next().unwrap_or_default(),)+ }
            }
        }
    )+};
}

numbers! {
    /// Numbers of the whole process.
    Total {
        live_bytes, large_bytes, large_blocks, cached_bytes, cached_blocks, thread_cached_bytes,
        free_bytes, kept_bytes, committed_bytes, reserved_bytes, metadata_bytes, shards, threads,
        idle_caches, slow_calls, large_made, refills, refilled_blocks, flushes, flushed_blocks,
        lane_blocks, shard_blocks, transfer_in_blocks, transfer_out_blocks, purges, purged_bytes,
        refused_purges, huge_page_bytes, heaps, heap_bytes, guarded_blocks, guarded_bytes,
        guarded_apart_bytes, guarded_made, guarded_skipped,
    }
    /// Numbers of a size class.
    Class {
        size, live_blocks, thread_cached_blocks, transfer_blocks, free_blocks, pages, page_bytes,
        tail_bytes, taken_blocks, returned_blocks, transfer_in_blocks, transfer_out_blocks,
        canary_bytes,
    }
    /// Numbers of a thread cache.
    Cache {
        state, thread, shard, cached_blocks, cached_bytes, limit_bytes, parked_bytes, slow_calls,
        refills, refilled_blocks, flushes, flushed_blocks, lane_blocks, shard_blocks,
    }
}

impl Class {
    /// Bytes in blocks handed out.
    pub fn live_bytes(&self) -> u64 {
        self.live_blocks.saturating_mul(self.size).saturating_sub(self.canary_bytes)
    }

    pub fn cached_blocks(&self) -> u64 {
        self.thread_cached_blocks.saturating_add(self.transfer_blocks)
    }

    /// Bytes of its pages.
    pub fn bytes(&self) -> u64 {
        self.pages.saturating_mul(self.page_bytes)
    }

    /// Bytes of its pages that hold no block of the program's.
    pub fn waste_bytes(&self) -> u64 {
        self.bytes().saturating_sub(self.live_bytes())
    }
}

/// A page as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The process that wrote it, as it sees itself.
    pub process: u64,
    /// The time at which it was written, by `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    pub total: Total,
    /// The size classes that ever had a page.
    pub classes: Vec<Class>,
    /// The thread caches on the page, the youngest first.
    pub caches: Vec<Cache>,
}

/// The reason why bytes are no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPage {
    /// The file is too short, or does not begin as a page.
    #[error("what it calls its statistics page is none")]
    Foreign,
    /// The page belongs to a masu that this one does not know.
    #[error(
        "its statistics page has version {0}, and this masu reads {VERSION}: use the masu that it runs on"
    )]
    Version(u64),
    /// The page was written while it was read, each time.
    #[error("its statistics page is never complete; is the process stopped or broken?")]
    Torn,
    /// The page is another process's, of which this one is a copy.
    #[error("its statistics page is its parent's")]
    Inherited,
}

/// The sequence of a page; `None` while it is written, and for bytes that are no page.
pub fn sequence(bytes: &[u8]) -> Option<u64> {
    word(bytes, 3).filter(|sequence| sequence.is_multiple_of(2))
}

fn word(bytes: &[u8], place: usize) -> Option<u64> {
    let start = place.checked_mul(WORD_BYTES)?;
    let word = bytes.get(start..)?.first_chunk::<WORD_BYTES>()?;
    Some(u64::from_ne_bytes(*word))
}

impl Page {
    /// The page in `bytes`, read while its [`sequence`] did not change.
    pub fn parse(bytes: &[u8]) -> Result<Page, NoPage> {
        let (chunks, _) = bytes.as_chunks::<WORD_BYTES>();
        let words: Vec<u64> = chunks
            .iter()
            .take(PAGE_BYTES / WORD_BYTES)
            .map(|word| u64::from_ne_bytes(*word))
            .collect();
        let [magic, version, ..] = words[..] else { return Err(NoPage::Foreign) };
        if magic != u64::from_ne_bytes(MAGIC) {
            return Err(NoPage::Foreign);
        }
        if version != VERSION {
            return Err(NoPage::Version(version));
        }
        if words.len() < PAGE_BYTES / WORD_BYTES {
            return Err(NoPage::Foreign);
        }
        let (sequence, process, time) = (words[3], words[4], words[5]);
        let (totals, classes, class_words) = (words[7], words[8], words[9]);
        let (caches, cache_words) = (words[10], words[11]);
        if !sequence.is_multiple_of(2) {
            return Err(NoPage::Torn);
        }
        let rows = |start: usize, count: u64, most: usize, length: u64| {
            let (count, length) = (at_most(count, most), at_most(length, ROW_WORDS));
            let rows = words[start..].chunks_exact(ROW_WORDS).take(count);
            rows.map(move |row| &row[..length])
        };
        Ok(Page {
            process,
            time,
            total: Total::of(&words[HEAD_WORDS..][..at_most(totals, TOTAL_WORDS)]),
            classes: rows(CLASSES_AT, classes, CLASSES, class_words)
                .map(Class::of)
                .filter(|class| class.size > 0 && class.taken_blocks > 0)
                .collect(),
            caches: rows(THREADS_AT, caches, THREADS_MAX, cache_words).map(Cache::of).collect(),
        })
    }
}

fn at_most(count: u64, most: usize) -> usize {
    usize::try_from(count).map_or(most, |count| count.min(most))
}

#[cfg(test)]
mod tests;
