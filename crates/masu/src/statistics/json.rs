//! Statistics as one JSON object on a line.
//!
//! Relies on the names of the numbers, which are the keys. `docs/observing.md` has the schema. A change that removes a
//! key or its meaning increments the version.

use super::named::{Named, Sink, decimal};
use super::{ClassStatistics, Statistics, ThreadStatistics, VERSION, classes, now, threads};

/// Writes all statistics as one JSON object and a newline, piece by piece, into `sink`, which must not panic. Classes
/// that never had a page are left out.
///
/// ```
/// let mut text = Vec::new();
/// masu::statistics::json(&mut |piece| text.extend_from_slice(piece));
/// assert!(text.starts_with(b"{\"schema\":\"masu-statistics\",\"version\":1,\"total\":{\"live_bytes\":"));
/// assert!(text.ends_with(b"]}\n"));
/// ```
#[cold]
#[inline(never)]
pub fn json(sink: &mut dyn FnMut(&[u8])) {
    sink(b"{\"schema\":\"masu-statistics\",\"version\":");
    decimal(sink, VERSION, 0);
    sink(b",\"total\":");
    object(sink, &Named { names: Statistics::NAMES, values: now().values() });
    let mut before: &[u8] = b"";
    sink(b",\"classes\":[");
    for class in classes().filter(|class| class.taken_blocks > 0) {
        sink(before);
        before = b",";
        object(sink, &Named { names: ClassStatistics::NAMES, values: class.values() });
    }
    before = b"";
    sink(b"],\"threads\":[");
    for thread in threads() {
        sink(before);
        before = b",";
        object(sink, &Named { names: ThreadStatistics::NAMES, values: thread.values() });
    }
    sink(b"]}\n");
}

#[inline(never)]
fn object(sink: Sink<'_>, numbers: &Named<'_>) {
    let mut before: &[u8] = b"{\"";
    numbers.each(&mut |name, value| {
        sink(before);
        sink(name);
        sink(b"\":");
        decimal(sink, value, 0);
        before = b",\"";
    });
    sink(b"}");
}
