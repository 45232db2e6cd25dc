//! The observation as lines and tables of text: for a page that is printed, and for the screen.
//!
//! Relies on the lab for every number. All lines fit 80 columns as long as the numbers are realistic.

use std::cmp::Reverse;

use masu_lab::process::page::Class;
use masu_lab::process::{Observation, Rates, Thread};
use masu_lab::report::{bytes, count};

/// A table: columns of text, right-aligned but for names.
pub(super) struct Table {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Vec<Cell>>,
}

pub(super) struct Column {
    pub(super) heading: &'static str,
    width: usize,
}

/// A cell: its text and its sort key.
pub(super) struct Cell {
    text: String,
    order: Order,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Number(u64),
    Text(String),
}

const fn column(heading: &'static str, width: usize) -> Column {
    Column { heading, width }
}

const CLASSES: &[Column] = &[
    column("size", 8),
    column("live", 12),
    column("live bytes", 11),
    column("cached", 10),
    column("free", 11),
    column("pages", 8),
    column("waste", 11),
    column("waste %", 8),
];

const THREADS: &[Column] = &[
    column("thread", 9),
    column("name", 16),
    column("shard", 6),
    column("cached", 10),
    column("slow", 9),
    column("fetched", 10),
    column("sent", 9),
    column("remote", 10),
];

/// The heading of a column of names, which are left-aligned.
const NAMES: &str = "name";

impl Cell {
    fn count(value: u64) -> Cell {
        Cell { text: shortened(value), order: Order::Number(value) }
    }

    fn plain(value: u64) -> Cell {
        Cell { text: value.to_string(), order: Order::Number(value) }
    }

    fn bytes(value: u64) -> Cell {
        Cell { text: bytes(value as f64), order: Order::Number(value) }
    }

    fn text(text: &str) -> Cell {
        Cell { text: text.to_owned(), order: Order::Text(text.to_owned()) }
    }
}

/// A count that stays short: `8,512`, `12.3 M`.
fn shortened(value: u64) -> String {
    match value as f64 {
        some if some < 9_999_999.5 => count(some),
        millions if millions < 999.95e6 => format!("{:.1} M", millions / 1e6),
        billions if billions < 999.95e9 => format!("{:.1} G", billions / 1e9),
        more => format!("{more:.1e}"),
    }
}

impl Table {
    pub(super) fn of_classes(seen: &Observation) -> Table {
        let in_use = seen.classes.iter().filter(|class| class.pages > 0);
        Table { columns: CLASSES, rows: in_use.map(class).collect() }
    }

    pub(super) fn of_threads(seen: &Observation) -> Table {
        Table { columns: THREADS, rows: seen.threads.iter().map(thread).collect() }
    }

    pub(super) fn sort(&mut self, column: usize, falls: bool) {
        let order = |row: &Vec<Cell>| row.get(column).map(|cell| cell.order.clone());
        if falls {
            self.rows.sort_by_key(|row| Reverse(order(row)));
        } else {
            self.rows.sort_by_key(order);
        }
    }

    /// The headings, each with its column's width.
    pub(super) fn headings(&self) -> impl Iterator<Item = String> + '_ {
        self.columns.iter().map(|column| aligned(column, column.heading))
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.rows.iter().map(|row| {
            row.iter().zip(self.columns).map(|(cell, column)| aligned(column, &cell.text)).collect()
        })
    }
}

/// Text in its column; text that is too long is cut, so that columns stay aligned.
fn aligned(column: &Column, text: &str) -> String {
    let width = column.width;
    let cut: String = text.chars().take(width - 1).collect();
    if column.heading == NAMES {
        format!(" {cut:<0$}", width - 1)
    } else {
        format!("{cut:>width$}")
    }
}

fn class(class: &Class) -> Vec<Cell> {
    let share = match class.bytes() {
        0 => 0,
        all => u128::from(class.waste_bytes()) * 100 / u128::from(all),
    };
    vec![
        Cell::plain(class.size),
        Cell::count(class.live_blocks),
        Cell::bytes(class.live_bytes()),
        Cell::count(class.cached_blocks()),
        Cell::count(class.free_blocks),
        Cell::count(class.pages),
        Cell::bytes(class.waste_bytes()),
        Cell::count(u64::try_from(share).unwrap_or(100)),
    ]
}

fn thread(Thread { name, cache, .. }: &Thread) -> Vec<Cell> {
    let (number, name) = match cache.state {
        0 => (Cell::text("–"), "(idle)"),
        2 => (Cell::text("–"), "(not after fork)"),
        _ if cache.thread == 0 => (Cell::text("?"), name.as_str()),
        _ => (Cell::plain(cache.thread), name.as_str()),
    };
    vec![
        number,
        Cell::text(name),
        Cell::plain(cache.shard),
        Cell::bytes(cache.cached_bytes),
        Cell::count(cache.slow_calls),
        Cell::count(cache.refilled_blocks),
        Cell::count(cache.flushed_blocks),
        Cell::count(cache.lane_blocks.saturating_add(cache.shard_blocks)),
    ]
}

/// The line that says which process it is, and how old the numbers are.
pub(super) fn title(seen: &Observation) -> String {
    let command: String = seen.command.chars().take(40).collect();
    let age = match seen.age_seconds {
        age if age < 99.95 => format!("{age:.1} s"),
        age if age < 5_999.5 => format!("{:.0} min", age / 60.0),
        age => format!("{:.0} h", age / 3600.0),
    };
    format!("{} {}  {command}  ({age} old)", seen.name, seen.pid)
}

/// The whole process in a few lines, each with a heading and its figures.
pub(super) fn whole(seen: &Observation) -> Vec<String> {
    let total = &seen.total;
    let size = |value: u64| bytes(value as f64);
    let known = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), size);
    let mut lines = vec![
        format!(
            "memory   live {}, cached {}, free {}, committed {}",
            size(total.live_bytes),
            size(total.cached_bytes),
            size(total.free_bytes),
            size(total.committed_bytes),
        ),
        format!(
            "process  RSS {}, huge pages {} of {} asked for, own {}",
            known(seen.resident_bytes),
            known(seen.huge_page_resident_bytes),
            size(total.huge_page_bytes),
            size(total.metadata_bytes),
        ),
        format!(
            "large    {} blocks, {}; given back {} in {} calls, {} refused",
            count(total.large_blocks as f64),
            size(total.large_bytes),
            size(total.purged_bytes),
            shortened(total.purges),
            shortened(total.refused_purges),
        ),
    ];
    lines.push(traffic(seen));
    lines
}

fn traffic(seen: &Observation) -> String {
    let total = &seen.total;
    let remote = total.lane_blocks.saturating_add(total.shard_blocks);
    let Some(Rates { slow_calls, refilled_blocks, flushed_blocks, remote_blocks, .. }) = seen.rates
    else {
        return format!(
            "traffic  slow calls {}, fetched {}, sent {}, remote {}",
            shortened(total.slow_calls),
            shortened(total.refilled_blocks),
            shortened(total.flushed_blocks),
            shortened(remote),
        );
    };
    let rate = |value: f64| shortened(value.round() as u64);
    format!(
        "a second slow calls {}, fetched {}, sent {}, remote {}",
        rate(slow_calls),
        rate(refilled_blocks),
        rate(flushed_blocks),
        rate(remote_blocks),
    )
}

pub(super) fn page(seen: &Observation) -> String {
    let mut page = title(seen) + "\n";
    whole(seen).iter().for_each(|line| page.push_str(&format!("{line}\n")));
    for table in [Table::of_classes(seen), Table::of_threads(seen)] {
        let headings: String = table.headings().collect();
        page.push_str(&format!("\n{headings}\n"));
        table.lines().for_each(|line| page.push_str(&format!("{}\n", line.trim_end())));
    }
    page
}
