//! The pages as readers see them, for made-up comparisons: every verdict and every oddity.

use super::*;
use crate::page::Form;
use crate::report::{Format, fixtures, render};
use crate::results::Row;
use crate::statistics::{Estimate, Ratio};
use crate::tables::Extent;
use crate::{Measure, Verdict};

mod html;
mod markdown;

/// A row with `wall` seconds and the measures that go with them, `times` those of the reference.
fn row(label: &str, verdict: Verdict, times: Option<(f64, f64, f64)>) -> Row {
    let of_commands = Measure::ALL.into_iter().filter(|measure| !measure.is_of_servers());
    let estimates = of_commands.map(|measure| {
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
        estimates: estimates.collect(),
        valid_runs: 20,
        starved_runs: 0,
    }
}

/// A document of these rows, without runs.
fn document(rows: Vec<Row>, warnings: &[&str]) -> Document {
    let labels: Vec<&str> = rows.iter().map(|row| row.variant.as_str()).collect();
    let mut table = fixtures::table(fixtures::a_case("job", &labels, Measure::Wall), Vec::new());
    table.summary.rows = rows;
    table.summary.warnings = warnings.iter().map(|&warning| warning.to_owned()).collect();
    fixtures::document(vec![table])
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_command_longer_than_the_rest_is_whole_only_in_a_full_page() {
    let mut document = document(vec![row("glibc", Verdict::Reference, None)], &[]);
    document.sources[0].tables[0].case.command.extend((0..5000).map(|number| number.to_string()));
    let text = plain(&page(&document, Detail::Brief).render(Form::Text, ""));
    assert!(text.contains(" 60 61 ") && text.contains("…\n") && !text.contains("4999"), "{text}");
    assert!(page(&document, Detail::Full).render(Form::Html, "").contains(" 4999"));
}

#[test]
fn the_only_case_of_a_suite_is_named_with_its_command() {
    let mut document = document(vec![row("glibc", Verdict::Reference, None)], &[]);
    document.sources[0].header.suite = Some("nightly".to_owned());
    let text = plain(&page(&document, Detail::Brief).render(Form::Text, ""));
    assert!(text.starts_with("Suite nightly\n"), "{text}");
    assert!(text.contains("\njob\njob --with 'two words'\n"), "{text}");
}

#[test]
fn a_single_value_of_each_is_shown() {
    let mut document = document(vec![row("glibc", Verdict::Reference, None)], &[]);
    assert!(!plain(&render(&document, Format::Text)).contains("threads=2"));
    document.sources[0].tables[0].case.name = "job threads=2".to_owned();
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let text = plain(&render(&document, format));
        assert_eq!(text.matches("with threads=2").count(), 1, "{text}");
    }
}

#[test]
fn a_few_ticks_of_the_kernels_clock_have_no_ratio() {
    let has_ratio_of_sys = |low, estimate, high| {
        let seen = Verdict::NoDifferenceShown { could_have_seen: 0.02 };
        let mut other = row("masu", seen, Some((low, estimate, high)));
        for one in other.estimates.iter_mut().filter(|one| one.measure != Measure::Sys) {
            one.ratio = None;
        }
        let document = document(vec![row("glibc", Verdict::Reference, None), other], &[]);
        plain(&render(&document, Format::Text)).contains(&format!("×{estimate}"))
    };
    // The reference has 12 ms.
    assert!(!has_ratio_of_sys(0.8, 1.587, 2.1), "a difference of a tick or two");
    assert!(has_ratio_of_sys(1.2, 1.587, 1.8), "it was shown all the same");
    assert!(has_ratio_of_sys(0.8, 1.723, 2.1), "more than a few ticks");
}

#[track_caller]
fn fits(page: &str) {
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
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
    let mut document = document(rows, &["3 runs waited long for a CPU; close what runs beside"]);
    let reason =
        "sh (12): the library was loaded, but the C library's own malloc was called instead";
    let table = &mut document.sources[0].tables[0];
    table.case.left_out = vec![LeftOut { label: "tcmalloc".to_owned(), reason: reason.to_owned() }];
    table.extent = Extent::Stopped;
    let page = plain(&render(&document, Format::Text));
    fits(&page);
    let explained = include_str!("../../../../../docs/reading.md");
    for line in page.lines() {
        assert!(explained.contains(line), "docs/reading.md explains another page: {line}");
    }
    snapbox::assert_data_eq!(page, snapbox::file!["tests/page.txt"]);
}

#[test]
fn a_server_is_shown_by_what_it_answers() {
    let page = plain(&render(&fixtures::of_servers(), Format::Text));
    fits(&page);
    snapbox::assert_data_eq!(page, snapbox::file!["tests/server.txt"]);
}

#[test]
fn several_cases_have_a_table_each_and_an_overview() {
    let case = |name: &str, variants: usize| {
        let labels = ["glibc", "masu", "glibc:top_pad=64M,trim_threshold=64M"];
        let case = fixtures::a_case(name, &labels[..variants], Measure::Wall);
        fixtures::table(case, fixtures::rounds(variants, fixtures::run))
    };
    let mut document = fixtures::document(vec![case("ring threads=1", 3), case("larson", 2)]);
    document.sources[0].header.suite = Some("patterns".to_owned());
    let page = plain(&render(&document, Format::Text));
    fits(&page);
    snapbox::assert_data_eq!(page, snapbox::file!["tests/suite.txt"]);
}

#[test]
fn several_machines_stand_side_by_side() {
    let mut document = fixtures::of_commands();
    let mut other = document.sources[0].clone();
    other.file = Some("other.jsonl".to_owned());
    other.header.machine = fixtures::machine("Other 1");
    other.tables[0].summary.warnings = vec!["3 runs waited long for a CPU".to_owned()];
    document.sources.push(other);
    let page = plain(&render(&document, Format::Text));
    fits(&page);
    snapbox::assert_data_eq!(page, snapbox::file!["tests/machines.txt"]);
}

#[test]
fn color_stands_only_where_an_interval_leaves_out_1() {
    let colors = |verdict, times| {
        let rows = vec![row("glibc", Verdict::Reference, None), row("masu", verdict, Some(times))];
        let page = render(&document(rows, &["a warning"]), Format::Text);
        (page.matches("\u{1b}[32m").count(), page.matches("\u{1b}[31m").count())
    };
    let open = Verdict::NoDifferenceShown { could_have_seen: 0.02 };
    assert_eq!(colors(open, (0.9, 1.0, 1.1)), (0, 0));
    // The five ratios and the verdict are colored.
    assert_eq!(colors(Verdict::Faster, (0.8, 0.9, 0.99)), (6, 0));
    assert_eq!(colors(Verdict::Slower, (1.01, 1.1, 1.2)), (0, 6));
}

#[test]
fn a_variant_without_runs_says_so() {
    let mut empty = row("masu", Verdict::Reference, None);
    for estimate in &mut empty.estimates {
        estimate.median = None;
    }
    let page = plain(&render(&document(vec![empty], &[]), Format::Text));
    assert!(
        page.lines().any(|line| line.starts_with("masu ") && line.contains("no run")),
        "{page}"
    );
}
