//! `cargo xtask benchmarks`: the page of figures, `docs/benchmarks.md`, made from the dated records.
//!
//! It relies on the form of records: `DATE-NAME.md`, a title, facts of the machine and the run, then sections. The
//! newest record of a name represents it. The page is a function of the records and of nothing else, so `cargo xtask
//! tidy` can check it against them, and no figure gets onto it by hand.

use std::path::Path;

use anyhow::Result;

use crate::{files, links};

pub const PAGE: &str = "docs/benchmarks.md";

pub const RECORDS: &str = "benches/record";

/// Patterns whose time is mostly not malloc's: their figure is memory.
pub const MEMORY_ONLY: &[&str] = &["idle-threads", "small-program"];

struct Family {
    /// The record's name, behind its date.
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// The record's sections that the page has, too, and the part of each.
    sections: &'static [(&'static str, Part)],
}

/// The part of a section that is shown; the record has all of it.
#[derive(Clone, Copy)]
enum Part {
    /// The text before its first table or list.
    Sentence,
    /// Everything up to the end of so many tables.
    Tables(usize),
    /// The section's table without intervals, except those of the last column.
    Ratios,
}

/// In the order of the page. Records of other names are in the folder alone.
const FAMILIES: &[Family] = &[
    Family {
        name: "programs",
        title: "Real programs",
        about: "Nine programs under every malloc, unchanged.",
        sections: &[("Programs in short", Part::Tables(2)), ("Programs: wall time", Part::Ratios)],
    },
    Family {
        name: "patterns",
        title: "Allocation patterns",
        about: "Single patterns of use: [workloads/patterns](../workloads/patterns/README.md).",
        sections: &[("Patterns in short", Part::Tables(2))],
    },
    Family {
        name: "authors",
        title: "Tests by the authors of other mallocs",
        about: "mimalloc's stress test and three of snmalloc's, unchanged.",
        sections: &[("Wall time", Part::Ratios), ("Peak RSS", Part::Tables(1))],
    },
    Family {
        name: "musl",
        title: "Patterns on musl",
        about: "The same patterns, linked with musl.",
        sections: &[("Patterns in short", Part::Tables(1))],
    },
    Family {
        name: "rust",
        title: "Rust programs",
        about: "Global allocators that are crates: [workloads/rust](../workloads/rust/README.md).",
        sections: &[("Time on glibc, no LTO", Part::Ratios)],
    },
    Family {
        name: "rust-crates-on-musl",
        title: "Rust programs on musl",
        about: "The same where the target is musl.",
        sections: &[],
    },
    Family {
        name: "layout",
        title: "Where code lies",
        about: "Calls of small functions by how their code was loaded: [the code arena](code.md#what-it-costs).",
        sections: &[],
    },
    Family {
        name: "hyperfine",
        title: "The lab itself",
        about: "`masu compare` and hyperfine on commands whose difference is known, on a machine in use.",
        sections: &[
            ("Truth: the same command twice (ratio 1.00)", Part::Sentence),
            ("Truth: 3 % more work (ratio 1.03)", Part::Sentence),
        ],
    },
];

/// Facts of a record that are on the page.
const FACTS: [&str; 2] = ["- made by", "- machine:"];

const HEAD: &str = "\
# Benchmarks

masu beside other mallocs, losses first. Every figure comes from the newest dated record of its kind in
`benches/record`, which has every row with its interval, memory, the versions, and how busy the machine was. `cargo xtask benchmarks` makes this page.

Cells are ratios to the first column: less is better. The last column is masu against the best of the others in that row,
with the interval that holds with 99 % ([how sure that is](reading.md#how-sure-is-it)).

More than two CPUs were measured once: [sixteen cores](../benches/record/2026-11-28-cores.md), with heavy losses among the gains. [Two to 256 threads on two CPUs](../benches/record/2026-11-29-oversubscribed.md) are a record, too. **Not measured**: hardware other than x86-64, weeks of running.
";

pub fn run(root: &Path) -> Result<()> {
    let mut records = Vec::new();
    for path in files::list(&root.join(RECORDS))? {
        if path.extension().is_some_and(|end| end == "md") {
            records.push((path.strip_prefix(root)?.to_path_buf(), files::read(&path)?));
        }
    }
    let page = page(records.iter().map(|(path, contents)| (path.as_path(), contents.as_str())));
    files::write(&root.join(PAGE), page)?;
    println!("{PAGE}");
    Ok(())
}

struct Record<'a> {
    path: &'a Path,
    date: &'a str,
    /// `patterns`.
    name: &'a str,
    contents: &'a str,
}

impl<'a> Record<'a> {
    /// Returns `None` if the file is not called `DATE-NAME.md`.
    fn of(path: &'a Path, contents: &'a str) -> Option<Record<'a>> {
        let stem = path.file_stem()?.to_str()?;
        let (date, name) = stem.split_at_checked("2026-11-22".len())?;
        let is_date = date.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        is_date.then_some(Record { path, date, name: name.strip_prefix('-')?, contents })
    }

    /// The text between the title and the first section.
    fn facts(&self) -> &'a str {
        let rest = self.contents.split_once('\n').map_or("", |(_, rest)| rest);
        rest.split("\n## ").next().unwrap_or_default().trim()
    }

    fn sections(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let parts = self.contents.split("\n## ").skip(1);
        parts.map(|part| part.split_once('\n').unwrap_or((part, "")))
    }
}

pub fn page<'a>(records: impl Iterator<Item = (&'a Path, &'a str)>) -> String {
    let mut records: Vec<Record> =
        records.filter_map(|(path, contents)| Record::of(path, contents)).collect();
    records.sort_by(|one, other| (other.date, one.name).cmp(&(one.date, other.name)));
    let newest = |name: &str| records.iter().find(|record| record.name == name);
    let mut page = HEAD.to_owned();
    page.push_str(&standings(
        FAMILIES
            .iter()
            .filter_map(|family| newest(family.name).map(|record| (family.title, record))),
    ));
    for family in FAMILIES {
        let Some(record) = newest(family.name) else { continue };
        let is_shown = |line: &&str| FACTS.iter().any(|fact| line.starts_with(fact));
        let facts: Vec<&str> = record.facts().lines().filter(is_shown).collect();
        page.push_str(&format!(
            "\n## {}\n\n{} [The record]({}).\n",
            family.title,
            family.about,
            from_docs(record.path),
        ));
        if !facts.is_empty() {
            page.push_str(&format!("\n{}\n", relinked(record, &facts.join("\n"))));
        }
        for (heading, text) in record.sections() {
            if let Some((_, part)) = family.sections.iter().find(|(name, _)| *name == heading) {
                let text = relinked(record, &part.of(text.trim()));
                let what = subject(heading);
                page.push_str(&format!("\n### {}: {what}\n\n{text}\n", family.title));
            }
        }
    }
    page
}

impl Part {
    fn of(self, text: &str) -> String {
        let blocks: Vec<&str> = text.split("\n\n").collect();
        let is_table = |block: &&str| block.starts_with('|');
        let shown = match self {
            Part::Sentence => {
                return blocks.first().copied().unwrap_or_default().to_owned();
            }
            Part::Ratios => {
                let table = blocks.iter().find(|block| is_table(block)).copied();
                let rows = table.unwrap_or_default().lines().map(without_intervals);
                return rows.collect::<Vec<String>>().join("\n");
            }
            Part::Tables(wanted) => {
                let tables = blocks.iter().enumerate().filter(|(_, block)| is_table(block));
                let last = tables.map(|(at, _)| at).nth(wanted.saturating_sub(1));
                &blocks[..last.map_or(blocks.len(), |at| at + 1)]
            }
        };
        shown.join("\n\n")
    }
}

/// A row without the intervals of its cells but the last one.
fn without_intervals(row: &str) -> String {
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').collect();
    let last = cells.len().saturating_sub(1);
    let mut line = String::from("|");
    for (at, cell) in cells.iter().enumerate() {
        let interval = cell.split_once(" (").and_then(|(value, rest)| {
            let (range, behind) = rest.split_once(')')?;
            (at < last && range.contains('–')).then(|| format!("{value}{behind}"))
        });
        line.push_str(&interval.unwrap_or_else(|| (*cell).to_owned()));
        line.push('|');
    }
    line
}

/// The ratio from which a median without an interval is named.
const MEDIAN_LOSS: f64 = 1.05;

/// The rows of each of these records in which masu is ahead or behind.
fn standings<'a>(records: impl Iterator<Item = (&'a str, &'a Record<'a>)>) -> String {
    let mut text = "\n## Ahead and behind\n\nRows of time whose whole interval lies below 1 or above it, against the \
                    best of the others in that row; the worst loss first. A record of too few rounds has no \
                    intervals: then the worst medians stand there, and nothing is decided.\n\n\
                    | | ahead | no difference shown | behind |\n| --- | --: | --: | --- |\n"
        .to_owned();
    for (title, record) in records {
        for (heading, section) in record.sections() {
            if let Some(standing) = standing(heading, section) {
                text.push_str(&format!("| {title}, {} | {standing} |\n", subject(heading)));
            }
        }
    }
    text
}

/// The number of rows in which masu is ahead, and in which no difference is shown, in a section's table of times; and
/// the rows in which masu is behind. None if the table has no such column. The last column is masu against the best
/// of the others: `RATIO (LOW–HIGH) PEER`. Patterns that are there for their memory alone do not count.
fn standing(heading: &str, section: &str) -> Option<String> {
    let cells = |row: &'_ str| -> Vec<String> {
        row.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let is_of_time = heading.contains("wall time") || heading.starts_with("Time ");
    let mut rows = section.lines().filter(|line| line.starts_with('|')).map(cells);
    if !rows.next()?.last()?.starts_with("masu / best") || !is_of_time {
        return None;
    }
    let (mut ahead, mut level, mut without_interval) = (0, 0, 0);
    let mut losses = Vec::new();
    for row in rows.skip(1) {
        let (Some(name), Some(last)) = (row.first(), row.last()) else { continue };
        if MEMORY_ONLY.contains(&name.as_str()) {
            continue;
        }
        let numbers = last.split([' ', '(', ')', '–']).filter_map(|word| word.parse::<f64>().ok());
        match numbers.collect::<Vec<_>>()[..] {
            [ratio, low, _] if low > 1.0 => losses.push((ratio, format!("{name} {last}"))),
            [_, _, high] if high < 1.0 => ahead += 1,
            // A run of masu's, or every peer's, failed: there is nothing to be level with.
            [] => losses.push((f64::INFINITY, format!("{name} {last}"))),
            [ratio] => {
                without_interval += 1;
                if ratio > MEDIAN_LOSS {
                    losses.push((ratio, format!("{name} {last}")));
                }
            }
            _ => level += 1,
        }
    }
    losses.sort_by(|one, other| other.0.total_cmp(&one.0));
    let losses: Vec<String> = losses.into_iter().map(|(_, loss)| loss).collect();
    let losses = if losses.is_empty() { "none".to_owned() } else { losses.join("; ") };
    if without_interval == 0 {
        return Some(format!("{ahead} | {level} | {losses}"));
    }
    // Few rounds: nothing is decided, and "no difference shown" would hide what the medians say.
    Some(format!(
        "– | – | undecided: {without_interval} rows of too few rounds; medians over {MEDIAN_LOSS}: {losses}"
    ))
}

/// A section's heading behind the family's title: `Patterns: wall time` is `wall time`.
fn subject(heading: &str) -> String {
    let what = heading.strip_prefix("Patterns").or(heading.strip_prefix("Programs"));
    let what = what.unwrap_or(heading).trim_start_matches([':', ' ']);
    let (first, rest) = what.split_at_checked(1).unwrap_or((what, ""));
    first.to_lowercase() + rest
}

/// The link from a page of docs/ to a file of the repository.
fn from_docs(path: &Path) -> String {
    match path.strip_prefix("docs") {
        Ok(page) => page.display().to_string(),
        Err(_) => format!("../{}", path.display()),
    }
}

/// A record's text with links that lead from docs/ to where they led.
fn relinked(record: &Record, text: &str) -> String {
    let mut relinked = text.to_owned();
    for (_, target) in links::file_links(text) {
        let (path, anchor) = target.split_once('#').map_or((target, None), |(p, a)| (p, Some(a)));
        let Some(place) = links::place(record.path, path) else { continue };
        let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
        let now = format!("]({}{anchor}", from_docs(&place));
        relinked = relinked.replace(&format!("]({target}"), &now);
    }
    relinked
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str =
        "# Patterns under every malloc, 2026-11-20\n\n- machine: old\n\n## Aims\n\nold\n";
    const NEW: &str = "# Patterns under every malloc, 2026-11-22\n\n- machine: new ([plot](a.svg))\n- kernel: left out\n\n## Patterns \
                       in short\n\nAll of them.\n\n## Patterns: wall time\n\n| pattern | glibc, ms | **masu** | masu / best peer |\n\
                       |---|---:|---:|---:|\n\
                       | ring | 1 | 0.5 (0.4–0.6) | 0.80 (0.70–0.90) snmalloc |\n\
                       | churn | 1 | 0.9 (0.8–1.0) | 1.70 (1.30–2.10) mimalloc2 |\n\n## How to read this\n\nSo.\n";

    fn made(files: &[(&str, &str)]) -> String {
        page(files.iter().map(|(path, contents)| (Path::new(*path), *contents)))
    }

    #[test]
    fn the_newest_record_of_a_name_stands_for_it() {
        let files = [
            ("benches/record/2026-11-20-patterns.md", OLD),
            ("benches/record/2026-11-22-patterns.md", NEW),
        ];
        let page = made(&files);
        assert!(page.contains("machine: new") && !page.contains("machine: old"), "{page}");
        assert!(page.contains("in short") && !page.contains("How to read this"), "{page}");
        let row = "| Allocation patterns, wall time | 1 | 0 | churn 1.70 (1.30–2.10) mimalloc2 |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("[plot](../benches/record/a.svg)"), "links lead where they led");
        assert_eq!(page, made(&[files[1], files[0]]), "whatever order the files come in");
    }

    #[test]
    fn intervals_stay_in_the_last_column_alone() {
        let text = "| a | b | c |\n|---|---:|---|\n| x (of y) | **0.5 (0.4–0.6)** | 0.9 (0.8–1.0) z |\n\nBehind.";
        let shown = Part::Ratios.of(text);
        let row = "| x (of y) | **0.5** | 0.9 (0.8–1.0) z |";
        assert_eq!(shown, format!("| a | b | c |\n|---|---:|---|\n{row}"));
    }

    #[test]
    fn a_section_shows_so_many_tables() {
        let text = "One:\n\n| a |\n|---|\n\nTwo:\n\n| b |\n|---|\n\nThree:\n\n| c |\n|---|";
        let shown = Part::Tables(2).of(text);
        assert!(shown.ends_with("| b |\n|---|") && shown.starts_with("One:"), "{shown}");
        assert_eq!(Part::Sentence.of(text), "One:");
    }

    #[test]
    fn rows_of_time_are_ahead_level_or_behind() {
        let table = "\n| pattern | glibc, ms | masu / best peer |\n|---|---:|---:|\n\
                     | a | 1 | 0.5 (0.4–0.6) x |\n| b | 1 | 1.1 (1.05–1.2) y |\n| c | 1 | 2.0 (1.5–3) z |\n\
                     | d | 1 | 1.0 (0.9–1.1) x |\n| e | 1 | fails |\n\
                     | small-program | 1 | 1.1 (1.05–1.2) y |\n";
        let shown = standing("Patterns: wall time", table).unwrap();
        assert_eq!(shown, "1 | 1 | e fails; c 2.0 (1.5–3) z; b 1.1 (1.05–1.2) y");
        assert_eq!(standing("Patterns: peak RSS, MB", table), None);
        assert_eq!(standing("Patterns: wall time", "| a | b |\n|---|---|\n"), None);
    }

    #[test]
    fn rows_without_intervals_are_undecided_and_their_worst_medians_named() {
        let table = "\n| pattern | glibc, ms | masu / best peer |\n|---|---:|---:|\n\
                     | a | 1 | 1.01 x |\n| b | 1 | 1.10 y |\n| c | 1 | 2.0 z |\n| d | 1 | 0.5 x |\n";
        let shown = standing("Patterns: wall time", table).unwrap();
        let expected = "undecided: 4 rows of too few rounds; medians over 1.05: c 2.0 z; b 1.10 y";
        assert_eq!(shown, format!("– | – | {expected}"));
    }
}
