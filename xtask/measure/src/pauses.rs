//! `cargo xtask pauses`: how long the longest single `malloc` and `free` take under each malloc, as tables in
//! `benches/record/checks/pauses.md`.
//!
//! It relies on `workloads/pauses`, which times each call by the CPU time of its thread, and on `misuse` for the
//! mallocs. A longest call is one of a million, so one interrupt makes another figure of it: the mallocs take turns,
//! and a figure is the median of all rounds.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::machine_facts::MachineFacts;
use crate::mallocs::{self, Malloc, Wanted};
use xtask::table::{Cells, Table};
use xtask::{commands, machine, options, page_part, records};

const PAGE: &str = "benches/record/checks/pauses.md";

/// The ordinary build, and those that programs are served by otherwise.
const MALLOCS: [Wanted<'_>; 5] = [
    Wanted::new("masu", "masu"),
    Wanted::new("glibc", "glibc"),
    Wanted::new("jemalloc", "jemalloc"),
    Wanted::new("tcmalloc", "tcmalloc"),
    Wanted::new("mimalloc3", "mimalloc"),
];

const THREADS: [usize; 2] = [1, 8];

/// The time of single calls of each malloc, with the tables in benches/record/checks/pauses.md (about 4 minutes, after
/// peers)
#[derive(Debug, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Runs of each malloc with one thread and with eight
    #[arg(long, value_name = "N", default_value = "9", value_parser = options::times)]
    rounds: usize,
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    machine::provide_all(&[machine::PATTERNS])?;
    let out = commands::target_folder()?;
    commands::make(&root.join("workloads/pauses"), &out)?;
    let program = out.join("pauses");
    let mallocs = mallocs::find(root, &program, &MALLOCS, true)?;
    let mut tables = String::new();
    for threads in THREADS {
        let outputs = commands::step(&format!("threads: {threads}"), || {
            gather(&program, &mallocs, threads, request.rounds)
        })?;
        tables.push_str(&table(threads, &mallocs, &outputs)?);
    }
    let facts = MachineFacts::here();
    let text = format!(
        "{}, commit {}, rounds: {}, {} CPUs ({}), Linux {}, load {} at the end.\n{tables}",
        records::today(),
        records::commit(root),
        request.rounds,
        facts.cpus,
        facts.cpu,
        facts.kernel,
        records::load()
    );
    page_part::replace(&root.join(PAGE), "pauses", &text)?;
    println!("{text}");
    Ok(())
}

/// The program's output in each round under each malloc.
fn gather(
    program: &Path,
    mallocs: &[Malloc],
    threads: usize,
    rounds: usize,
) -> Result<Vec<Vec<String>>> {
    let mut outputs = vec![Vec::new(); mallocs.len()];
    for _ in 0..rounds {
        for (malloc, outputs) in mallocs.iter().zip(&mut outputs) {
            let mut command = Command::new(program);
            commands::unset_malloc_variables(&mut command);
            command.args(["--threads", &threads.to_string()]);
            command.envs(malloc.environment.iter().cloned());
            outputs.push(commands::output(&mut command)?);
        }
    }
    Ok(outputs)
}

fn table(threads: usize, mallocs: &[Malloc], outputs: &[Vec<String>]) -> Result<String> {
    let heads = [
        "malloc",
        "longest `malloc`, µs",
        "longest `free`, µs",
        "the same, not interrupted",
        "`free`: 99.99 %, µs",
        "calls over 1 ms",
        "CPU time, ms",
        "RSS at the end, MB",
    ];
    let mut table = Table::new(heads, Cells::Figures);
    for (malloc, outputs) in mallocs.iter().zip(outputs) {
        let all = |line: &str, word: &str| figures(outputs, line, word);
        let of = |line: &str, word: &str| all(line, word).map(median_and_range);
        let long = all("malloc", "over_1ms")?.into_iter().chain(all("free", "over_1ms")?);
        table.row([
            format!("{} {}", malloc.title, malloc.version()),
            of("malloc", "worst")?,
            of("free", "worst")?,
            format!("{}; {}", of("malloc", "whole")?, of("free", "whole")?),
            of("free", "p99.99")?,
            long.sum::<f64>().to_string(),
            of("cpu_ms", "cpu_ms")?,
            median_and_range(all("cpu_ms", "rss_kb")?.iter().map(|kb| kb / 1e3).collect()),
        ]);
    }
    let all = |word: &str| figures(outputs.iter().flatten(), "nothing", word);
    let of = |word: &str| all(word).map(median_and_range);
    let long = format!("{} of all", all("over_1ms")?.iter().sum::<f64>());
    let none = String::new;
    let (longest, whole, most) = (of("worst")?, of("whole")?, of("p99.99")?);
    table.row(["no call at all".to_owned(), longest, none(), whole, most, long, none(), none()]);
    let s = if threads == 1 { "" } else { "s" };
    Ok(format!("\n### {threads} thread{s}\n\n{table}"))
}

/// The figure behind `word` on the line that begins with `line`, of each output.
fn figures<'a>(
    outputs: impl IntoIterator<Item = &'a String>,
    line: &str,
    word: &str,
) -> Result<Vec<f64>> {
    let figure = |output: &str| {
        let line =
            output.lines().find(|printed| printed.split_whitespace().next() == Some(line))?;
        line.split_whitespace().skip_while(|one| *one != word).nth(1)?.parse().ok()
    };
    let figure = |output: &String| figure(output).with_context(|| format!("no {word} in {output}"));
    outputs.into_iter().map(figure).collect()
}

fn median_and_range(mut figures: Vec<f64>) -> String {
    figures.sort_by(f64::total_cmp);
    let (least, median, most) =
        (figures[0], figures[figures.len() / 2], figures[figures.len() - 1]);
    format!("{median:.0} ({least:.0}–{most:.0})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stands_behind_its_word_on_its_line() {
        let output = "malloc   p50 0.05 worst 12.5 whole 3.0\nfree     p50 0.04 worst 7.0\ncpu_ms 300 rss_kb 5\n";
        let of = |line, word| figures([&output.to_owned()], line, word);
        assert_eq!(of("malloc", "worst").unwrap(), [12.5]);
        assert_eq!(of("free", "worst").unwrap(), [7.0]);
        assert_eq!(of("cpu_ms", "cpu_ms").unwrap(), [300.0]);
        assert!(of("free", "whole").is_err());
    }

    #[test]
    fn the_middle_round_stands_before_the_lowest_and_the_highest() {
        assert_eq!(median_and_range(vec![9.0, 1.0, 4.0]), "4 (1–9)");
    }
}
