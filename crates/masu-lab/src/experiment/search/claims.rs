//! What the report claims, held against today's figures.

use super::{Measured, scaling};
use crate::Measure;
use crate::experiment::field_report::{FieldReport, Today};
use crate::experiment::series::row;
use crate::experiment::{Claim, Series};
use crate::statistics::Ratio;
use crate::tables::Table;

/// The malloc that the others were held against.
pub(super) const REFERENCE: &str = "glibc";

/// The report's mallocs, with what it says of each: its answers a second over glibc's.
pub(super) const THEN: [(&str, &str); 3] =
    [("tcmalloc", "×1.10"), ("jemalloc", "×1.11"), ("vespamalloc", "×1.09")];

pub(super) fn of(report: &FieldReport, measured: &Measured) -> Vec<Claim> {
    let threads = threads(measured.cpus);
    report.claims(&[("threads", threads)], |of, over| today(measured, threads, of, over))
}

/// What was measured for a claim: `solr jemalloc` over `solr glibc`.
fn today(measured: &Measured, threads: &str, of: &str, over: &str) -> Option<Today> {
    let ((server, malloc), (_, other)) = (of.split_once(' ')?, over.split_once(' ')?);
    let ratio = |table: &Table, measure| match other {
        REFERENCE => self::over(table, malloc, measure),
        _ => {
            let of = |malloc| Series::of(table, row(table, malloc, &[]), measure);
            of(malloc).over(&of(other))
        }
    };
    Some(Today::Ratio(match server {
        "solr" => measured.solr.as_ref().and_then(|table| ratio(table, Measure::Throughput)),
        "mariadb" => measured.mariadb.as_ref().and_then(|table| ratio(table, Measure::Wall)),
        "scaling" => measured.scaling.as_ref().and_then(|table| {
            slowdown(table, malloc, threads).over(&slowdown(table, other, threads))
        }),
        _ => return None,
    }))
}

/// `measure` of `malloc` over glibc's, with the interval that holds for all rows of the table together.
pub(super) fn over(table: &Table, malloc: &str, measure: Measure) -> Option<Ratio> {
    let row = table.summary.rows.iter().find(|row| row.variant == malloc)?;
    row.estimate(measure)?.ratio
}

/// The most threads of the test that have a CPU each, two at least.
fn threads(cpus: usize) -> &'static str {
    let has_cpu = |threads: &&str| threads.parse::<usize>().is_ok_and(|threads| threads <= cpus);
    let most = scaling::THREADS.into_iter().rfind(|threads| has_cpu(threads));
    most.filter(|threads| *threads != "1").unwrap_or(scaling::THREADS[1])
}

/// The time with so many threads over that with one, round by round.
fn slowdown(table: &Table, malloc: &str, threads: &str) -> Series {
    let of =
        |threads| Series::of(table, row(table, malloc, &[("threads", threads)]), Measure::Wall);
    of(threads).with(&of("1"), |many, one| many / one)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::page;
    use super::*;
    use crate::experiment::Held;
    use crate::report::fixtures;
    use crate::results::Case;
    use crate::{Run, Variant};

    /// A table whose rows are `labels`, and whose runs `make` gives for each row and round, 20 of them.
    pub(in crate::experiment::search) fn table(
        labels: &[&str],
        primary: Measure,
        make: impl Fn(usize, usize) -> Run,
    ) -> Table {
        let case = fixtures::a_case("made up", labels, primary);
        let runs = (0..20).flat_map(|round| (0..labels.len()).map(move |row| (row, round)));
        fixtures::table(case, runs.map(|(row, round)| make(row, round)).collect())
    }

    /// Servers under the report's mallocs and masu's; the figure beside each is what a burst takes, times glibc's.
    pub(in crate::experiment::search) fn servers(times: &[(&str, f64)]) -> Table {
        let labels: Vec<&str> = times.iter().map(|(label, _)| *label).collect();
        table(&labels, Measure::Throughput, |row, round| fixtures::burst(row, round, times[row].1))
    }

    fn of(measured: &Measured) -> Vec<Claim> {
        super::of(&FieldReport::parse(page::REPORT), measured)
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
    fn the_author_is_upheld_where_all_are_a_tenth_faster() {
        let solr = servers(&[("glibc", 1.0), ("tcmalloc", 0.9), ("jemalloc", 0.9), ("masu", 0.9)]);
        let measured = Measured { solr: Some(solr), ..Measured::default() };
        let claims = of(&measured);
        assert_eq!(held(&claims)[..4], [Held::Yes, Held::Yes, Held::Undecided, Held::Yes]);
        assert!(claims[0].now.starts_with("×1.1"), "{}", claims[0].now);
    }

    #[test]
    fn and_contradicted_where_one_of_them_is_slower() {
        let solr = servers(&[("glibc", 1.0), ("tcmalloc", 1.2), ("jemalloc", 0.9)]);
        let measured = Measured { solr: Some(solr), ..Measured::default() };
        assert_eq!(held(&of(&measured))[..4], [Held::No, Held::Yes, Held::Undecided, Held::No]);
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
    fn who_slows_down_more_is_seen_round_by_round() {
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
        assert_eq!([0, 1, 2, 3, 4, 16].map(threads), ["2", "2", "2", "2", "4", "8"]);
    }
}
