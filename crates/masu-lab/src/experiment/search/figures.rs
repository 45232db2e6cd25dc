//! The figures of the servers and of the test, by the names that the report's file uses.

use super::{Measured, REFERENCE, ranking, scaling};
use crate::Measure;
use crate::experiment::format::{malloc, measure_named, numbered};
use crate::experiment::page_file::{Figures, Known};
use crate::experiment::series::row;
use crate::experiment::{Block, Series};
use crate::report::{self, count};
use crate::results::Row;
use crate::statistics::{PAIRS_MIN, Ratio, median};
use crate::tables::Table;
use masu_run::Variant;

impl Measured {
    fn server(&self, name: &str) -> Option<&Table> {
        match name {
            "solr" => self.solr.as_ref(),
            "mariadb" => self.mariadb.as_ref(),
            _ => None,
        }
    }

    /// Each malloc of the test, once.
    fn mallocs(&self) -> Vec<(String, String)> {
        let variants = self.scaling.as_ref().map(|table| &table.case.variants[..]);
        let rows = variants.unwrap_or_default().iter();
        let mut rows: Vec<_> = rows.map(|one| (one.allocator_text(), malloc(one))).collect();
        rows.dedup();
        rows
    }

    /// Queries a second under glibc; none where bursts are too few for a verdict: one burst may have been starved.
    fn headline(&self) -> Option<f64> {
        let table = self.solr.as_ref()?;
        let queries = Series::of(table, row(table, REFERENCE, &[]), Measure::Throughput);
        queries.median().filter(|_| queries.len() >= PAIRS_MIN)
    }
}

/// The measure of a server's figure: the one named behind its malloc, or the one that carries the verdict.
fn measure_of(server: &str, name: Option<&str>) -> Option<Measure> {
    match (server, name) {
        (_, Some(name)) => measure_named(name),
        ("solr", None) => Some(Measure::Throughput),
        _ => Some(Measure::Wall),
    }
}

impl Figures for Measured {
    /// `solr MALLOC MEASURE`, `mariadb MALLOC MEASURE`; `scaling MALLOC` is the slowdown by more threads, `scaling
    /// MALLOC THREADS` a wall time.
    fn known(&self, name: &str) -> Option<Known> {
        let words: Vec<&str> = name.split(' ').collect();
        Some(match words[..] {
            ["headline"] => Known::Number(self.headline()),
            ["rate"] => Known::Number(self.solr.as_ref().and_then(latency_rate)),
            ["allocations"] => Known::Number(self.solr.as_ref().and_then(allocations)),
            ["scaling", malloc, ref threads @ ..] => Known::Runs(match (&self.scaling, threads) {
                (None, _) => Series::default(),
                (Some(table), [threads]) => wall(table, malloc, threads),
                (Some(table), _) => wall(table, malloc, threads_with_a_cpu(self.cpus))
                    .with(&wall(table, malloc, "1"), |many, one| many / one),
            }),
            [server @ ("solr" | "mariadb"), malloc, ref measure @ ..] => {
                let Some(table) = self.server(server) else {
                    return Some(Known::Runs(Series::default()));
                };
                let index = row(table, malloc, &[]);
                Known::Runs(match measure {
                    ["latency_p90"] => {
                        Series::by(table, index, |run| Some(run.burst?.latency_s?.p90))
                    }
                    _ => Series::of(table, index, measure_of(server, measure.first().copied())?),
                })
            }
            _ => return None,
        })
    }

    /// The ratios of servers to glibc have intervals that hold for all rows of the table together.
    fn ratio(&self, of: &str, over: &str) -> Option<Ratio> {
        let words: Vec<&str> = of.split(' ').collect();
        if let [server @ ("solr" | "mariadb"), malloc, ref measure @ ..] = words[..]
            && over.split(' ').nth(1) == Some(REFERENCE)
        {
            let rows = &self.server(server)?.summary.rows;
            let row = rows.iter().find(|row| row.variant == malloc)?;
            return row.estimate(measure_of(server, measure.first().copied())?)?.ratio;
        }
        match (self.known(of)?, self.known(over)?) {
            (Known::Runs(of), Known::Runs(over)) => of.over(&over),
            _ => None,
        }
    }

    fn rows(&self, list: &str) -> Vec<(String, String)> {
        match list {
            "mallocs" => self.mallocs(),
            "threads" => {
                let row = |threads: &str| (threads.to_owned(), numbered(threads, "thread"));
                scaling::THREADS.map(row).into()
            }
            server => {
                let variants = self.server(server).map(|table| &table.case.variants[..]);
                let rows = variants.unwrap_or_default().iter();
                rows.map(|variant| (variant.label.clone(), malloc(variant))).collect()
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.solr.is_none() && self.mariadb.is_none() && self.scaling.is_none()
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let bursts = |table: &Option<Table>| table.as_ref().map(bursts).unwrap_or_default();
        vec![
            ("threads", threads_with_a_cpu(self.cpus).to_owned()),
            ("documents", count(self.size.documents as f64)),
            ("index", self.size.index()),
            ("heap", self.size.heap.to_owned()),
            ("solr-bursts", bursts(&self.solr)),
            ("mariadb-bursts", bursts(&self.mariadb)),
        ]
    }

    fn blocks(&self, name: &str) -> Vec<Block> {
        match (name, self.server(name)) {
            ("standing", _) => ranking::blocks(self),
            (_, Some(table)) => {
                // The engine's warnings about the table.
                let warnings = &table.summary.warnings;
                let doubts = (!warnings.is_empty()).then(|| Block::points(warnings.clone()));
                [verdicts(table)].into_iter().chain(doubts).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn verdicts(table: &Table) -> Block {
    let summary = &table.summary;
    let rows = table.case.variants.iter().zip(&summary.rows);
    let as_point = |(variant, row): (&Variant, &Row)| {
        format!("{}: {}", malloc(variant), report::verdict(row, summary.primary))
    };
    Block::points(rows.map(as_point))
}

/// The number of bursts behind a median.
fn bursts(table: &Table) -> String {
    let fewest = table.summary.rows.iter().map(|row| row.valid_runs).min().unwrap_or(0);
    let most = table.summary.rows.iter().map(|row| row.valid_runs).max().unwrap_or(0);
    let number = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let confidence = table.summary.confidence * 100.0;
    let bursts = numbered(&number, "burst");
    format!("{bursts}; intervals hold together with {confidence:.0} %")
}

/// Requests a second in the half of the bursts that gives the latencies.
fn latency_rate(table: &Table) -> Option<f64> {
    table.runs.iter().find_map(|run| run.burst?.latency_rate)
}

/// Allocations per request.
fn allocations(table: &Table) -> Option<f64> {
    let known = table.runs.iter().filter_map(|run| run.burst?.allocations_a_request);
    median(&known.collect::<Vec<f64>>())
}

/// The most threads of the test that have a CPU each, at least two.
fn threads_with_a_cpu(cpus: usize) -> &'static str {
    let has_cpu = |threads: &&str| threads.parse::<usize>().is_ok_and(|threads| threads <= cpus);
    let most = scaling::THREADS.into_iter().rfind(|threads| has_cpu(threads));
    most.filter(|threads| *threads != "1").unwrap_or(scaling::THREADS[1])
}

fn wall(table: &Table, malloc: &str, threads: &str) -> Series {
    Series::of(table, row(table, malloc, &[("threads", threads)]), Measure::Wall)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{SEARCH, Size};
    use super::*;
    use crate::experiment::field_report::FieldReport;
    use crate::experiment::{Agreement, Claim, Held, Outcome};
    use crate::page::{Form, Page};
    use crate::report::fixtures;
    use crate::results::Case;
    use masu_run::Run;

    /// A table whose rows are `labels`, with 20 rounds of runs that `make` gives for each row and round.
    pub(in crate::experiment::search) fn table(
        labels: &[&str],
        primary: Measure,
        make: impl Fn(usize, usize) -> Run,
    ) -> Table {
        let case = fixtures::a_case("made up", labels, primary);
        let runs = (0..20).flat_map(|round| (0..labels.len()).map(move |row| (row, round)));
        fixtures::table(case, runs.map(|(row, round)| make(row, round)).collect())
    }

    /// Servers under the report's mallocs and masu's; each figure is the time of a burst over glibc's.
    pub(in crate::experiment::search) fn servers(times: &[(&str, f64)]) -> Table {
        let labels: Vec<&str> = times.iter().map(|(label, _)| *label).collect();
        table(&labels, Measure::Throughput, |row, round| fixtures::burst(row, round, times[row].1))
    }

    fn of(measured: &Measured) -> Vec<Claim> {
        FieldReport::parse(SEARCH.report).claims(measured)
    }

    fn held(claims: &[Claim]) -> Vec<Held> {
        claims.iter().map(|claim| claim.held).collect()
    }

    #[test]
    fn nothing_measured_is_nothing_decided() {
        let claims = of(&Measured::default());
        assert_eq!(claims.len(), 7);
        assert!(held(&claims).iter().all(|held| *held == Held::Undecided));
        assert!(claims.iter().all(|claim| claim.now == "not measured"), "{claims:?}");
    }

    #[test]
    fn the_author_is_upheld_where_all_are_a_tenth_faster_and_contradicted_where_one_is_slower() {
        for (tcmalloc, expected) in [(0.9, Held::Yes), (1.2, Held::No)] {
            let all = [("glibc", 1.0), ("tcmalloc", tcmalloc), ("jemalloc", 0.9), ("masu", 0.9)];
            let claims = of(&Measured { solr: Some(servers(&all)), ..Measured::default() });
            assert_eq!(held(&claims)[..4], [expected, Held::Yes, Held::Undecided, expected]);
        }
    }

    /// The test of malloc and free under two mallocs: wall time by threads.
    pub(in crate::experiment::search) fn scaled(glibc: [f64; 4], tcmalloc: [f64; 4]) -> Table {
        let mut rows: Vec<(Variant, f64)> = Vec::new();
        for (malloc, times) in [("glibc", glibc), ("tcmalloc", tcmalloc)] {
            for (threads, times) in scaling::THREADS.into_iter().zip(times) {
                let parameters = vec![("threads".to_owned(), threads.to_owned())];
                let label = format!("{malloc} threads={threads}");
                let allocator = malloc.to_owned();
                rows.push((Variant { label, allocator, parameters, ..Variant::default() }, times));
            }
        }
        let labels: Vec<&str> = rows.iter().map(|(variant, _)| variant.label.as_str()).collect();
        let mut made =
            table(&labels, Measure::Wall, |row, round| fixtures::run(row, round, rows[row].1));
        let variants = rows.iter().map(|(variant, _)| variant.clone()).collect();
        made.case = Case { variants, ..made.case };
        made
    }

    #[test]
    fn the_variant_that_slows_down_more_is_seen_round_by_round() {
        let judge = |glibc, tcmalloc| {
            let scaling = Some(scaled(glibc, tcmalloc));
            of(&Measured { cpus: 2, scaling, ..Measured::default() })[6].held
        };
        let (steep, flat) = ([2.0, 4.0, 8.0, 16.0], [1.0, 1.0, 2.0, 4.0]);
        assert_eq!(judge(steep, flat), Held::Yes);
        assert_eq!(judge(flat, steep), Held::No);
    }

    #[test]
    fn threads_are_as_many_as_there_are_cpus_for_and_two_at_least() {
        assert_eq!([0, 1, 2, 3, 4, 16].map(threads_with_a_cpu), ["2", "2", "2", "2", "4", "8"]);
    }

    fn measured() -> Measured {
        let solr = servers(&[("glibc", 1.0), ("tcmalloc", 0.9), ("jemalloc", 0.9), ("masu", 0.85)]);
        let size = Size { documents: 20_000, heap: "512m" };
        let scaling = Some(scaled([2.0, 4.0, 8.0, 16.0], [1.0, 1.0, 2.0, 4.0]));
        Measured { cpus: 2, size, solr: Some(solr), mariadb: None, scaling }
    }

    fn page(measured: &Measured) -> Outcome {
        FieldReport::parse(SEARCH.report).outcome("search", measured, Vec::new())
    }

    fn text(blocks: &[Block]) -> String {
        let page = Page { blocks: blocks.to_vec(), ..Page::default() };
        page.render(Form::Markdown, "search").replace('\\', "")
    }

    #[test]
    fn the_verdict_names_today_s_figures_beside_the_author_s() {
        let outcome = page(&measured());
        let sentence = &outcome.verdict.sentence;
        assert_eq!(outcome.verdict.agreement, Agreement::Full);
        assert!(
            sentence.contains("over 20,000 documents") && sentence.contains("theirs 2,849"),
            "{sentence}"
        );
        assert!(sentence.contains("under tcmalloc (theirs ×1.10)"), "{sentence}");
        assert!(!sentence.contains("vespamalloc"), "{sentence}");
        // A stop may leave some figures, and none of those that the sentence names.
        let few = Measured { scaling: measured().scaling, ..Measured::default() };
        let sentence = page(&few).verdict.sentence;
        assert!(
            sentence.ends_with("in its one claim (6 more could not be decided)."),
            "{sentence}"
        );
    }

    #[test]
    fn every_malloc_has_its_row_and_its_verdict() {
        let outcome = page(&measured());
        let now = text(&outcome.now);
        assert!(now.contains("20,000 documents") && now.contains("31.0 calls for memory"), "{now}");
        for malloc in ["glibc 1.2", "tcmalloc 1.2", "jemalloc 1.2", "masu 1.2"] {
            assert!(now.contains(malloc), "{malloc} is not in {now}");
        }
        assert!(now.contains("the reference") && now.contains("× the answers a second"), "{now}");
        for name in ["solr", "solr-memory", "scaling"] {
            assert!(now.contains(&format!("(search-{name}.svg)")), "{now}");
        }
    }
}
