//! Statistics as text for people: totals, a table of classes, a table of threads.
//!
//! Relies on the names of the numbers. The format may change: programs read JSON.

use super::named::{Named, Sink, decimal};
use super::{Statistics, classes, now, threads};

/// Width of a column.
const WIDTH: usize = 12;

/// Writes all statistics as text of several lines, piece by piece, into `sink`, which must not panic. Classes without
/// pages are left out.
///
/// ```
/// let mut text = Vec::new();
/// masu::statistics::text(&mut |piece| text.extend_from_slice(piece));
/// assert!(String::from_utf8_lossy(&text).contains("live_bytes"));
/// ```
#[cold]
#[inline(never)]
pub fn text(sink: &mut dyn FnMut(&[u8])) {
    sink(b"masu statistics\n");
    let now = now();
    let numbers = Named { names: Statistics::NAMES, values: now.values() };
    numbers.each(&mut |name, value| {
        decimal(sink, value, WIDTH);
        sink(b"  ");
        sink(name);
        sink(b"\n");
    });
    sink(b"\n       class  live blocks      cached        free       pages  live bytes       waste\n");
    for class in classes().filter(|class| class.pages > 0) {
        let cached = class.thread_cached_blocks + class.transfer_blocks;
        let bytes = [class.live_bytes(), class.waste_bytes()];
        let [live, free, pages] = [class.live_blocks, class.free_blocks, class.pages];
        row(sink, &[class.size, live, cached, free, pages, bytes[0], bytes[1]]);
    }
    sink(b"\n       shard  slow calls     fetched        sent    to lanes   to shards cached bytes\n");
    for thread in threads() {
        let [fetched, sent] = [thread.refilled_blocks, thread.flushed_blocks];
        let [lane, shard] = [thread.lane_blocks, thread.shard_blocks];
        let cached = thread.cached_bytes;
        row(sink, &[thread.shard, thread.slow_calls, fetched, sent, lane, shard, cached]);
    }
}

#[inline(never)]
fn row(sink: Sink<'_>, values: &[usize; 7]) {
    for value in values {
        decimal(sink, *value, WIDTH);
    }
    sink(b"\n");
}
