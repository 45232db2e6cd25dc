//! Tests that the file is well-formed, needs no other file, escapes its input, and holds the figures that the plots
//! draw.

use super::*;
use fixtures::{elements as count, parsed};

fn documents() -> Vec<Document> {
    let many: Vec<String> = (0..9).map(|index| format!("malloc{index}:setting={index}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let nine = fixtures::a_case("nine", &many, Measure::Wall);
    let one = fixtures::a_case("one", &["glibc"], Measure::Wall);
    let none = fixtures::a_case("none", &["glibc", "masu"], Measure::Wall);
    let cases = [
        fixtures::table(fixtures::a_case("a", &["glibc", "masu"], Measure::Wall), Vec::new()),
        fixtures::table(fixtures::a_case("b", &["glibc", "masu"], Measure::PeakRss), Vec::new()),
    ];
    let mut both = fixtures::of_commands();
    both.sources.extend(fixtures::of_commands().sources);
    vec![
        fixtures::of_commands(),
        fixtures::of_servers(),
        fixtures::document(vec![fixtures::table(nine, fixtures::rounds(9, fixtures::run))]),
        fixtures::document(vec![fixtures::table(one, fixtures::rounds(1, fixtures::run))]),
        fixtures::document(vec![fixtures::table(none, Vec::new())]),
        fixtures::document(cases.into()),
        both,
    ]
}

#[test]
fn every_page_is_well_formed_with_ids_that_are_unique_and_needs_nothing_from_elsewhere() {
    for document in documents() {
        let page = render(&document, Format::Html);
        let tree = parsed(&page);
        let mut ids: Vec<&str> =
            tree.descendants().filter_map(|element| element.attribute("id")).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "an id stands twice");
        let links = tree.descendants().filter_map(|it| it.attribute("href")?.strip_prefix('#'));
        links.for_each(|link| assert!(ids.contains(&link), "{link} leads nowhere"));
        for name in
            ["script", "link", "img", "iframe", "object", "embed", "image", "use", "foreignObject"]
        {
            assert_eq!(count(&tree, name), 0, "{name}");
        }
        for element in tree.descendants() {
            for attribute in element.attributes() {
                assert!(!attribute.name().starts_with("on"), "{attribute:?}");
                let is_link = ["href", "src", "action", "data"].contains(&attribute.name());
                assert!(!is_link || attribute.value().starts_with('#'), "{attribute:?}");
            }
        }
        for remote in ["url(", "@import", "@font-face"] {
            assert!(!page.contains(remote), "{remote}");
        }
    }
}

#[test]
fn nothing_that_comes_from_outside_becomes_an_element() {
    let evil = "<script>alert(\"1\")</script>'&amp;]]>\u{1b}[31m\u{0}";
    let mut document = fixtures::of_commands();
    let source = &mut document.sources[0];
    source.file = Some(evil.to_owned());
    source.header.machine.cpu = Some(evil.to_owned());
    source.header.began = evil.to_owned();
    let table = &mut source.tables[0];
    table.case.name = evil.to_owned();
    table.case.command = vec![evil.to_owned()];
    table.case.variants[1].label = evil.to_owned();
    table.case.variants[1].variables = vec![("A".to_owned(), evil.to_owned())];
    table.case.left_out = vec![LeftOut { label: evil.to_owned(), reason: evil.to_owned() }];
    table.case.settings = vec![(evil.to_owned(), evil.to_owned())];
    table.summary.rows[1].variant = evil.to_owned();
    table.summary.warnings = vec![evil.to_owned()];
    document.notes = vec![evil.to_owned()];
    for merged in [false, true] {
        if merged {
            let again = document.sources[0].clone();
            document.sources.push(again);
        }
        let page = render(&document, Format::Html);
        let tree = parsed(&page);
        assert_eq!(count(&tree, "script"), 0);
        let text: String = tree.descendants().filter_map(|it| it.text()).collect();
        assert!(text.contains("<script>alert(\"1\")</script>'&amp;]]>\\u{1b}[31m\\u{0}"));
    }
}

#[test]
fn the_tables_hold_what_the_plots_draw() {
    let page = render(&fixtures::of_servers(), Format::Html);
    let tree = parsed(&page);
    let texts = |name: &str| -> Vec<String> {
        let elements = tree.descendants().filter(|it| it.tag_name().name() == name);
        elements.map(|it| it.descendants().filter_map(|it| it.text()).collect()).collect()
    };
    let tables = texts("table").concat();
    for svg in tree.descendants().filter(|it| it.tag_name().name() == "svg") {
        let of_class = |it: &roxmltree::Node<'_, '_>| {
            it.attribute("class").is_some_and(|class| class.starts_with("figure"))
        };
        for figure in svg.descendants().filter(of_class) {
            let text = figure.text().unwrap_or_default();
            let bare = ["peak ", "mean ", "p50 ", "p99 "]
                .iter()
                .find_map(|word| text.strip_prefix(word))
                .unwrap_or(text);
            let is_no_figure = bare.ends_with("runs") || bare.starts_with("the ");
            assert!(is_no_figure || tables.contains(bare), "{text} is in no table");
        }
    }
    for word in ["p99.9", "errors", "allocations/request", "31.0"] {
        assert!(tables.contains(word), "{word}");
    }
}

#[test]
fn a_label_is_broken_behind_its_punctuation_and_a_number_stays_whole() {
    let mut document = fixtures::of_commands();
    document.sources[0].tables[0].summary.rows[1].variant = "glibc:A=100,B=10,000,000".to_owned();
    assert!(
        render(&document, Format::Html)
            .contains("glibc:<wbr/>A=<wbr/>100,<wbr/>B=<wbr/>10,000,000<wbr/>")
    );
}

#[test]
fn the_words_of_a_comparison_are_given_again() {
    let mut document = fixtures::of_commands();
    assert!(!render(&document, Format::Html).contains("The same again"));
    document.sources[0].header.asked = ["-n", "9", "--", "job"].map(str::to_owned).into();
    assert!(render(&document, Format::Html).contains("masu compare -n 9 -- job"));
}

#[test]
fn a_page_for_500_runs_stays_under_a_megabyte() {
    let labels = ["glibc", "masu", "jemalloc", "tcmalloc", "mimalloc"];
    let case = fixtures::a_case("job", &labels, Measure::Throughput);
    let runs = (0..100).flat_map(|round| (0..5).map(move |it| fixtures::burst(it, round, 1.0)));
    let page =
        render(&fixtures::document(vec![fixtures::table(case, runs.collect())]), Format::Html);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(count(&parsed(&page), "svg") >= 8);
}
