//! The record's page: the aims, and a table for each size of body and number of functions.
//!
//! Relies on the medians of the runs. The one hard idea: a load is compared with the linker's on the same side, both
//! from files or both from memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::{Figures, Key};
use crate::place::Place;
use xtask::records;

/// What each layout is.
const LAYOUTS: [(&str, &str); 12] = [
    ("one", "one linked library; the load is link and `dlopen`"),
    ("one-memory", "the same, objects and library in a file system in memory"),
    ("own", "a library each"),
    ("own2m", "a library each, aligned to 2 MiB"),
    ("arena", "the arena, from files, debugger and unwinder told, code mapped twice"),
    ("arena-untold", "the same, nobody told"),
    ("arena-memory", "the arena, objects in the program's memory, debugger and unwinder told"),
    ("arena-memory-untold", "the same, nobody told"),
    ("arena-memory-batches", "as `arena-memory`, but code is made executable by `mprotect`"),
    ("arena-memory-batches-untold", "the same, nobody told"),
    ("arena-memory-each", "as `arena-memory`, object by object"),
    ("arena-memory-batches-each", "as `arena-memory-batches`, object by object"),
];

type Rows = BTreeMap<Key, Figures>;

/// The row of another layout for the same functions.
fn beside(rows: &Rows, key: &Key, layout: &str) -> Option<Figures> {
    rows.get(&Key { layout: layout.to_owned(), ..key.clone() }).copied()
}

/// The linked library whose load took its objects from where this layout did.
fn linked(key: &Key) -> &'static str {
    if key.layout.contains("memory") { "one-memory" } else { "one" }
}

/// The whole page; the plot is a path of the repository.
pub(super) fn page(rows: &Rows, plot: &str) -> String {
    let mut text = format!("# What a call costs by where code lies, {}\n\n", records::today());
    text.push_str(
        "Small functions called in turn, each layout in runs that the lab made in turns (`cargo xtask \
         layout`). Medians of the runs; a run's nanoseconds a call are the quickest of 15 samples. \
         Ratios are to one linked library; of loads, to the one whose objects came from files, or from \
         memory, too. RSS is what the process grew by, with what was freed again and the C library keeps.\n\n",
    );
    // How far caches and branch predictors reach is the CPU's.
    let Place { cpu, cpus, kernel, .. } = Place::here();
    let load = records::load();
    let _ =
        writeln!(text, "CPU: {cpu}, {cpus} of them; kernel {kernel}; load at the end: {load}.\n");
    for (name, meaning) in LAYOUTS {
        let _ = writeln!(text, "- `{name}`: {meaning}");
    }
    let file = Path::new(plot).file_name().map_or(plot.into(), |name| name.to_string_lossy());
    let _ = writeln!(text, "\n![nanoseconds a call by number of functions]({file})");
    text.push_str(&aims(rows));
    let mut last = (0, 0);
    for (key, figures) in rows {
        if (key.body, key.count) != last {
            last = (key.body, key.count);
            let (body, count) = last;
            let _ = writeln!(text, "\n## Bodies of about {body} bytes, {count} functions\n");
            text.push_str("| layout | runs | ns a call | lowest to highest | × one | load, ms | × faster to load than linked | RSS, KiB | page tables, KiB | mappings |\n");
            text.push_str("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
        }
        let one = beside(rows, key, "one").unwrap_or_default();
        let linked = beside(rows, key, linked(key)).unwrap_or_default();
        let Figures { runs, call_ns, call_span_ns, load_ms, rss_kib, page_tables_kib, mappings } =
            figures;
        let (low, high) = call_span_ns;
        let (slower, faster) = (call_ns / one.call_ns, linked.load_ms / load_ms);
        let _ = writeln!(
            text,
            "| {} | {runs} | {call_ns:.2} | {low:.2}–{high:.2} | {slower:.2} | {load_ms:.2} | {faster:.1} \
             | {rss_kib:.0} | {page_tables_kib:.0} | {mappings:.0} |",
            key.layout
        );
    }
    text
}

/// An aim: what is divided by what, and what the quotient should be.
struct Aim {
    what: &'static str,
    wanted: &'static str,
    of: fn(&Rows, &Key) -> Option<f64>,
    counts: &'static [u32],
}

/// How many times slower one layout's calls are than another's.
fn calls(rows: &Rows, key: &Key, slow: &str, quick: &str) -> Option<f64> {
    Some(beside(rows, key, slow)?.call_ns / beside(rows, key, quick)?.call_ns)
}

/// How many times faster a layout loads than the linker and `dlopen`.
fn load(rows: &Rows, key: &Key, layout: &str) -> Option<f64> {
    let key = Key { layout: layout.to_owned(), ..key.clone() };
    Some(beside(rows, &key, linked(&key))?.load_ms / rows.get(&key)?.load_ms)
}

const AIMS: [Aim; 7] = [
    Aim {
        what: "a call, the arena's by one linked library's",
        wanted: "≤ 1.02",
        of: |rows, key| calls(rows, key, "arena", "one"),
        counts: &[1, 100, 1000],
    },
    Aim {
        what: "the same",
        wanted: "≤ 1.05",
        of: |rows, key| calls(rows, key, "arena", "one"),
        counts: &[4000],
    },
    Aim {
        what: "a call, a library each by the arena's",
        wanted: "≥ 10; ≥ 7",
        of: |rows, key| calls(rows, key, "own", "arena"),
        counts: &[1000],
    },
    Aim {
        what: "load, link and `dlopen` by the arena's, from memory, all told",
        wanted: "≥ 50",
        of: |rows, key| load(rows, key, "arena-memory"),
        counts: &[100, 1000, 4000],
    },
    Aim {
        what: "the same, nobody told",
        wanted: "≥ 50",
        of: |rows, key| load(rows, key, "arena-memory-untold"),
        counts: &[100, 1000, 4000],
    },
    Aim {
        what: "load, from files, all told",
        wanted: "≥ 50",
        of: |rows, key| load(rows, key, "arena"),
        counts: &[100, 1000, 4000],
    },
    Aim {
        what: "the same, nobody told",
        wanted: "≥ 50",
        of: |rows, key| load(rows, key, "arena-untold"),
        counts: &[100, 1000, 4000],
    },
];

/// The aims, each with what was reached for every size of body.
fn aims(rows: &Rows) -> String {
    let mut bodies: Vec<u32> = rows.keys().map(|key| key.body).collect();
    bodies.dedup();
    let mut text = String::from("\n## The aims\n\nQuotients of medians.\n\n| | functions | aim |");
    for body in &bodies {
        let _ = write!(text, " {body} bytes |");
    }
    let _ = writeln!(text, "\n|---|---:|---:|{}", "---:|".repeat(bodies.len()));
    for Aim { what, wanted, of, counts } in &AIMS {
        for &count in *counts {
            let _ = write!(text, "| {what} | {count} | {wanted} |");
            for &body in &bodies {
                let reached = of(rows, &Key { body, count, layout: String::new() });
                let shown = reached.map_or("–".to_owned(), |reached| format!("{reached:.2}"));
                let _ = write!(text, " {shown} |");
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(layout: &str, call_ns: f64, load_ms: f64) -> (Key, Figures) {
        let key = Key { body: 8, count: 1000, layout: layout.to_owned() };
        (key, Figures { call_ns, load_ms, ..Figures::default() })
    }

    #[test]
    fn a_load_is_compared_with_the_linker_s_on_the_same_side() {
        let rows = Rows::from([
            row("one", 2.0, 100.0),
            row("one-memory", 2.0, 90.0),
            row("arena", 2.0, 10.0),
            row("arena-memory", 2.0, 2.0),
            row("own", 30.0, 50.0),
        ]);
        let aims = aims(&rows);
        assert!(aims.contains("from memory, all told | 1000 | ≥ 50 | 45.00 |"), "{aims}");
        assert!(aims.contains("from files, all told | 1000 | ≥ 50 | 10.00 |"), "{aims}");
        assert!(aims.contains("a library each by the arena's | 1000 | ≥ 10; ≥ 7 | 15.00 |"));
        assert!(aims.contains("nobody told | 1000 | ≥ 50 | – |"), "{aims}");
    }

    #[test]
    fn every_layout_of_the_suite_is_explained() {
        let suite = include_str!("../../../../workloads/layout.toml");
        assert!(LAYOUTS.iter().all(|(layout, _)| suite.contains(&format!("\"{layout}\""))));
        assert_eq!(suite.matches("\"arena").count(), 8);
    }
}
