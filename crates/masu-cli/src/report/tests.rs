//! The page as it is seen, for a comparison made up here: every verdict and every oddity on it.

use masu_lab::results::{Header, Row, Summary};
use masu_lab::statistics::{Estimate, Look, Ratio};
use masu_lab::{Comparison, Machine, Measure, Variant, Verdict};

use super::{LeftOut, page, plan};

/// A row whose measures are `wall` seconds and what goes with it, `times` the reference's.
fn row(label: &str, verdict: Verdict, times: Option<(f64, f64, f64)>) -> Row {
    let estimates = Measure::ALL.map(|measure| {
        let reference = match measure {
            Measure::Wall => 1.234,
            Measure::User => 1.1,
            Measure::Sys => 0.0123,
            Measure::PeakRss => 34_700_000.0,
            _ => 8512.0,
        };
        let ratio = times.map(|(low, estimate, high)| Ratio {
            estimate,
            interval: Some((low, high)),
            pairs: 20,
        });
        let median = Some(reference * times.map_or(1.0, |(_, estimate, _)| estimate));
        Estimate { measure, median, spread: Some(0.01), range: median.zip(median), ratio }
    });
    Row {
        variant: label.to_owned(),
        verdict,
        estimates: estimates.into(),
        valid_runs: 20,
        starved_runs: 0,
    }
}

fn comparison(rows: Vec<Row>, warnings: &[&str]) -> Comparison {
    Comparison {
        header: Header {
            schema_version: 2,
            masu_version: "0.1.0".to_owned(),
            began: "2026-11-20T10:00:00Z".to_owned(),
            suite: None,
            cases: Vec::new(),
            runs: 20,
            seed: 4711,
            machine: Machine::here(),
        },
        evidence: Vec::new(),
        runs: Vec::new(),
        summary: Summary {
            primary: Measure::Wall,
            rows,
            confidence: 0.99,
            look: Look::ONLY,
            warnings: warnings.iter().map(|&warning| warning.to_owned()).collect(),
            repeatable: true,
        },
        stopped: false,
    }
}

fn variant(label: &str, version: Option<&str>) -> Variant {
    Variant {
        label: label.to_owned(),
        allocator: label.split(':').next().unwrap_or_default().to_owned(),
        version: version.map(str::to_owned),
        library: None,
        tunables: Vec::new(),
        variables: Vec::new(),
        ..Variant::default()
    }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn every_verdict_has_its_words_and_the_page_fits_80_columns() {
    let seen = Verdict::NoDifferenceShown { could_have_seen: 0.021 };
    let few = Verdict::TooFewRuns { pairs: 5, needed: 9 };
    let rows = vec![
        row("glibc", Verdict::Reference, None),
        row("masu", Verdict::Faster, Some((0.877, 0.893, 0.909))),
        row("jemalloc", seen, Some((0.981, 1.001, 1.02))),
        row("mimalloc2", Verdict::Slower, Some((1.05, 1.083, 1.11))),
        row("glibc:top_pad=64M,trim_threshold=64M", few, Some((0.1, 0.2, 12.3))),
    ];
    let mut comparison =
        comparison(rows, &["3 runs waited long for a CPU; close what runs beside"]);
    comparison.stopped = true;
    let reason =
        "sh (12): the library was loaded, but the C library's own malloc was called instead";
    let left_out = [LeftOut { label: "tcmalloc".to_owned(), reason: reason.to_owned() }];
    let page = plain(&page(&comparison, &left_out));
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    snapbox::assert_data_eq!(page, snapbox::file!["tests/page.txt"]);
}

#[test]
fn a_measure_without_runs_is_a_dash() {
    let mut empty = row("masu", Verdict::Reference, None);
    for estimate in &mut empty.estimates {
        estimate.median = None;
    }
    let page = plain(&page(&comparison(vec![empty], &[]), &[]));
    assert!(page.lines().any(|line| line.starts_with("masu ") && line.matches('–').count() == 5));
}

#[test]
fn the_plan_names_versions_but_not_beside_settings() {
    let variants = [variant("glibc", Some("2.36")), variant("glibc:top_pad=1M", Some("2.36"))];
    let expected = "Comparing glibc 2.36, glibc:top_pad=1M: a warm-up of each, then 20 runs.";
    assert_eq!(plan(&variants, 20), expected);
}
