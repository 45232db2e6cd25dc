//! The profile as a table for the terminal: the functions that allocate, and their callers.
//!
//! Relies on nothing but the stacks. Two questions have two columns: the memory that a function asked for itself, and
//! the memory that it and all its callees asked for. A function that calls itself counts once a stack.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{Frame, Profile, What};
use masu_run::quantity::{clipped, count};

const ROWS: usize = 25;

/// The most letters of a name.
const NAME: usize = 110;
/// The number of stacks shown in full, and of frames of each.
const STACKS: usize = 5;
const FRAMES: usize = 12;

pub(super) fn text(profile: &Profile, what: What, title: &str) -> String {
    let mut text = String::new();
    let total = profile.sum().of(what);
    let _ = writeln!(text, "{title}: {} {}", amount(total, what), phrase(what));
    let sums = profile.sum();
    let _ = writeln!(
        text,
        "live {} in {}, allocated {} in {};\nestimates, a sample every {}\n",
        amount(sums.live_bytes, What::LiveBytes),
        blocks(sums.live_blocks),
        amount(sums.allocated_bytes, What::LiveBytes),
        blocks(sums.allocated_blocks),
        amount(profile.interval_bytes, What::LiveBytes),
    );
    for remark in &profile.remarks {
        let _ = writeln!(text, "Note: {remark}");
    }
    let _ = writeln!(text, "{:>10} {:>6} {:>10} {:>6}  function", "itself", "%", "with calls", "%");
    let rows = by_function(profile, what);
    for (name, own, all) in rows.iter().take(ROWS) {
        let _ = writeln!(
            text,
            "{:>10} {:>6} {:>10} {:>6}  {}",
            amount(*own, what),
            share(*own, total),
            amount(*all, what),
            share(*all, total),
            clipped(name, NAME),
        );
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "{:>37}and {} more", "", rows.len() - ROWS);
    }
    let mut stacks: Vec<_> =
        profile.stacks.iter().map(|(frames, sums)| (sums.of(what), frames)).collect();
    stacks.sort_by_key(|(number, _)| std::cmp::Reverse(number.unsigned_abs()));
    for (number, frames) in stacks.iter().filter(|(number, _)| *number != 0).take(STACKS) {
        let head = format!("{} ({}%) by", amount(*number, what), share(*number, total));
        stack(&mut text, &head, frames, FRAMES);
    }
    text
}

/// The number of never-freed stacks shown, and of frames of each.
const LEAKS: usize = 5;
const LEAK_FRAMES: usize = 6;

/// The memory that was live when the profile was written, at a program's end.
pub(super) fn never_freed(profile: &Profile) -> String {
    let mut text = String::new();
    let sums = profile.sum();
    let bytes = |number| amount(number, What::LiveBytes);
    if sums.live_bytes <= 0 {
        let _ = writeln!(
            text,
            "Nothing was left at its end, as far as was seen: {} allocated, a sample every {}.",
            bytes(sums.allocated_bytes),
            bytes(profile.interval_bytes),
        );
    } else {
        let _ = writeln!(
            text,
            "Never freed: about {} in {}, of {} allocated ({} %). \
             Estimates, a sample every {}. The most of it by:",
            bytes(sums.live_bytes),
            blocks(sums.live_blocks),
            bytes(sums.allocated_bytes),
            share(sums.live_bytes, sums.allocated_bytes),
            bytes(profile.interval_bytes),
        );
    }
    for remark in &profile.remarks {
        let _ = writeln!(text, "Note: {remark}");
    }
    let mut stacks: Vec<_> = profile
        .stacks
        .iter()
        .filter(|(_, sums)| sums.live_bytes > 0)
        .map(|(frames, sums)| (*sums, frames))
        .collect();
    stacks.sort_by_key(|(sums, _)| std::cmp::Reverse(sums.live_bytes));
    for (own, frames) in stacks.iter().take(LEAKS) {
        let part = share(own.live_bytes, sums.live_bytes);
        let head = format!("{} in {} ({part} %)", bytes(own.live_bytes), blocks(own.live_blocks));
        stack(&mut text, &head, frames, LEAK_FRAMES);
    }
    if stacks.len() > LEAKS {
        let _ = writeln!(text, "\nand {} places more", stacks.len() - LEAKS);
    }
    text
}

/// Functions with their own requests and with those of all their callees, the greatest first.
fn by_function(profile: &Profile, what: What) -> Vec<(&str, i64, i64)> {
    let mut functions: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (frames, sums) in &profile.stacks {
        let number = sums.of(what);
        let names: BTreeSet<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
        for name in names {
            let all = &mut functions.entry(name).or_default().1;
            *all = all.saturating_add(number);
        }
        if let Some(innermost) = frames.last() {
            let own = &mut functions.entry(&innermost.function).or_default().0;
            *own = own.saturating_add(number);
        }
    }
    let mut rows: Vec<_> = functions
        .into_iter()
        .map(|(name, (own, all))| (name, own, all))
        .filter(|(_, own, all)| *own != 0 || *all != 0)
        .collect();
    rows.sort_by_key(|(name, own, all)| {
        (std::cmp::Reverse(own.unsigned_abs()), std::cmp::Reverse(all.unsigned_abs()), *name)
    });
    rows
}

/// The innermost `most` frames below `head`.
fn stack(text: &mut String, head: &str, frames: &[Frame], most: usize) {
    let _ = writeln!(text, "\n{head}");
    for frame in frames.iter().rev().take(most) {
        let _ = writeln!(text, "  {}{}", clipped(&frame.function, NAME), place(frame));
    }
    if frames.len() > most {
        let more = frames.len() - most;
        let _ = writeln!(text, "  and {more} caller{}", if more == 1 { "" } else { "s" });
    }
}

fn place(frame: &Frame) -> String {
    let Some(file) = &frame.file else { return String::new() };
    let file = file.rsplit('/').next().unwrap_or(file);
    if frame.line == 0 { format!("  {file}") } else { format!("  {file}:{}", frame.line) }
}

pub(crate) fn phrase(what: What) -> &'static str {
    match what {
        What::LiveBytes => "live",
        What::LiveBlocks => "blocks live",
        What::AllocatedBytes => "allocated",
        What::AllocatedBlocks => "blocks allocated",
    }
}

pub(crate) fn amount(number: i64, what: What) -> String {
    if matches!(what, What::LiveBlocks | What::AllocatedBlocks) {
        return number.to_string();
    }
    let size = number.unsigned_abs() as f64;
    let sign = if number < 0 { "-" } else { "" };
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let found = units.iter().find(|(_, shift)| size >= (1_u64 << shift) as f64);
    found.map_or_else(
        || format!("{number} B"),
        |(unit, shift)| format!("{sign}{:.1} {unit}", size / (1_u64 << shift) as f64),
    )
}

fn blocks(number: i64) -> String {
    format!("{} {}", count(number as f64), if number == 1 { "block" } else { "blocks" })
}

pub(crate) fn share(number: i64, total: i64) -> String {
    if total == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", number as f64 * 100.0 / total.unsigned_abs() as f64)
}
