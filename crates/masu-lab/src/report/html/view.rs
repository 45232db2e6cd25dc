//! A comparison and its cases as the template shows them.

use super::table::{details, main_table, matrix, overview};
use super::{CaseView, Figure, SourceView, Statement, VariantView, repeat};
use crate::report::lines::visible;
use crate::report::measure;
use crate::report::overview::overviews;
use crate::report::plot::{self, Interval};
use crate::report::{across, verdict};
use crate::results::{LeftOut, Rounds};
use crate::tables::{Source, Table};
use crate::{Evidence, Measure, Run, Variant, Verdict, summary};

/// `text` with what no page may hold spelt out.
pub(super) fn shown(text: &str) -> String {
    visible(text).into_owned()
}

/// The comparison at `index`, one of several or alone.
pub(super) fn source(index: usize, source: &Source, is_one_of_several: bool) -> SourceView {
    let id = format!("s{index}");
    let subject = match (&source.header.suite, &source.tables[..]) {
        (None, [only]) => only.command(),
        (Some(suite), _) => format!("Suite {suite}"),
        (None, tables) => format!("{} cases", tables.len()),
    };
    let heading = if is_one_of_several {
        format!("{}: {}", across::name(index), source.file.as_deref().unwrap_or(&subject))
    } else {
        subject
    };
    let runs = || source.tables.iter().flat_map(|table| &table.runs);
    let cases = source.tables.iter().enumerate();
    SourceView {
        heading: shown(&heading),
        line: shown(&format!("{}, {}", source.header.began, source.place())),
        cases: cases.map(|(at, table)| case(&format!("{id}c{at}"), source, table)).collect(),
        overviews: overviews(source).iter().map(overview).collect(),
        matrix: matrix(&id, source),
        facts: facts(source),
        again: repeat::command(source).map(|command| shown(&command)),
        confidence: source
            .tables
            .first()
            .map_or_else(String::new, |table| format!("{:.0} %", table.summary.confidence * 100.0)),
        has_throughput: runs().any(|run| run.burst.is_some_and(|it| it.throughput.is_some())),
        has_latencies: runs().any(|run| run.burst.is_some_and(|it| it.latency_s.is_some())),
        has_memory: runs().any(|run| run.rss_over_time.len() > 1),
        id,
    }
}

fn case(id: &str, source: &Source, table: &Table) -> CaseView {
    let summary = &table.summary;
    let valid = summary::valid(&table.runs);
    let verdict = |row| {
        let (words, _) = verdict::words(row, summary.primary);
        Statement { label: shown(&row.variant), words, class: class(row.verdict) }
    };
    let mut verdicts: Vec<Statement> = summary.rows.iter().map(verdict).collect();
    verdicts.extend(table.case.left_out.iter().map(|LeftOut { label, reason }| Statement {
        label: shown(label),
        words: format!("left out: {}", shown(reason)),
        class: "open",
    }));
    verdicts.extend(table.decision(&source.header).map(|decision| {
        let (words, _, class) = verdict::decided(&decision);
        Statement { label: "Decided".to_owned(), words: shown(&words), class }
    }));
    let shortfall = table.shortfall(&source.header).map(|(word, words)| Statement {
        label: word.to_owned(),
        words,
        class: "open",
    });
    let is_only = source.tables.len() == 1;
    let variants = table.case.variants.iter().enumerate();
    CaseView {
        id: id.to_owned(),
        heading: (!is_only).then(|| shown(&table.case.name)),
        command: shown(&table.command()),
        verdicts,
        shortfall,
        warnings: summary.warnings.iter().map(|warning| shown(warning)).collect(),
        notes: summary.notes.iter().map(|note| shown(note)).collect(),
        sheet: main_table(table),
        primary: ratio_plot(&format!("{id}r0"), table, summary.primary),
        figures: figures(id, table, &valid),
        details: details(table, &valid),
        settings: table.case.settings.iter().map(|(a, b)| (shown(a), shown(b))).collect(),
        variants: variants.map(|(at, it)| variant(it, table.evidence.get(at))).collect(),
    }
}

/// The class of what `verdict` says.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "better",
        Verdict::Slower => "worse",
        _ => "open",
    }
}

/// The ratios of one measure; none for a variant alone.
fn ratio_plot(id: &str, table: &Table, of: Measure) -> Option<Figure> {
    let rows = &table.summary.rows;
    let is_there =
        |row: &&crate::results::Row| row.estimate(of).is_some_and(|it| it.ratio.is_some());
    rows.iter().find(is_there)?;
    let interval = |(index, row): (usize, &crate::results::Row)| Interval {
        label: row.variant.clone(),
        ratio: row.estimate(of).and_then(|estimate| estimate.ratio),
        instead: if index == 0 { "the reference" } else { "no ratio" },
    };
    let intervals: Vec<Interval> = rows.iter().enumerate().map(interval).collect();
    let direction = if of.is_better_larger() { "more is better" } else { "less is better" };
    Some(Figure {
        caption: format!("{}: ratio to the reference, {direction}", capital(measure::name(of))),
        svg: plot::intervals(id, of, &intervals),
    })
}

/// Everything that is drawn besides the ratios of the primary measure.
fn figures(id: &str, table: &Table, valid: &[&Run]) -> Vec<Figure> {
    let labels = table.case.labels();
    let primary = table.summary.primary;
    let mut figures = Vec::new();
    let others = measure::shown(&table.summary).into_iter().skip(1).enumerate();
    figures.extend(
        others.filter_map(|(at, other)| ratio_plot(&format!("{id}r{}", at + 1), table, other)),
    );
    let mut add = |caption: String, svg: Option<String>| {
        figures.extend(svg.map(|svg| Figure { caption, svg }));
    };
    let distributed = [primary, Measure::PeakRss];
    let distinct = if primary == Measure::PeakRss { &distributed[..1] } else { &distributed[..] };
    for (at, of) in distinct.iter().enumerate() {
        add(
            format!(
                "{}: every run that counts a dot, median and quartiles",
                capital(measure::name(*of))
            ),
            plot::distribution(&format!("{id}d{at}"), *of, &labels, valid),
        );
    }
    add(
        format!("{} round by round: does it drift, or jump?", capital(measure::name(primary))),
        plot::drift(&format!("{id}o"), primary, &labels, valid),
    );
    add(
        "Resident memory over time from 0 up, in each variant’s median run".to_owned(),
        plot::memory(&format!("{id}m"), primary, &labels, valid),
    );
    add(
        "Latencies, medians over the bursts".to_owned(),
        plot::latency(&format!("{id}l"), &labels, valid),
    );
    figures
}

fn variant(variant: &Variant, evidence: Option<&Evidence>) -> VariantView {
    let version = variant.version.as_deref().unwrap_or("of unknown version");
    let changes = variant.changes(|_| None);
    let lossy = |text: &std::ffi::OsString| shown(&text.to_string_lossy());
    let mut seen = Vec::new();
    if let Some(evidence) = evidence {
        let lists = [
            ("served", &evidence.served),
            ("never asked for memory", &evidence.idle),
            ("not served", &evidence.not_served),
            ("note", &evidence.notes),
        ];
        for (what, list) in lists {
            if !list.is_empty() {
                seen.push(format!("{what}: {}", shown(&list.join(", "))));
            }
        }
    }
    VariantView {
        label: shown(&variant.label),
        malloc: shown(&format!("{} {version}", variant.allocator)),
        library: variant.library.as_ref().map_or_else(
            || "the C library’s own".to_owned(),
            |library| shown(&library.display().to_string()),
        ),
        environment: changes
            .iter()
            .map(|(name, value)| format!("{}={}", lossy(name), lossy(value)))
            .collect(),
        evidence: seen,
    }
}

/// What is known of the comparison and its machine.
fn facts(source: &Source) -> Vec<(String, String)> {
    let header = &source.header;
    let machine = &header.machine;
    let rounds = match header.rounds {
        Rounds::Fixed(rounds) => format!("{rounds} of each variant, looked at once, at the end"),
        Rounds::Budget { seconds, precision } => format!(
            "until every interval is within {:.1} % of its estimate or {seconds:.0} s are over; \
             the looks in between share the error that the table may have",
            precision * 100.0
        ),
    };
    let runs: usize = source.tables.iter().map(|table| table.runs.len()).sum();
    let host = machine.host_takes_free_memory.then(|| {
        "takes back free memory; before each run as much is touched as runs need".to_owned()
    });
    let facts = [
        ("results file", source.file.clone()),
        ("begun", Some(header.began.clone())),
        ("runs asked for", Some(rounds)),
        ("runs made", Some(runs.to_string())),
        ("seed of their order", Some(header.seed.to_string())),
        ("made by", Some(format!("masu {}", header.masu_version))),
        ("CPU", machine.cpu.clone()),
        ("architecture", Some(machine.architecture.clone())),
        ("CPUs that could be used", Some(machine.cpus.to_string())),
        ("main memory", machine.memory_bytes.map(memory)),
        ("system", machine.system.clone()),
        ("kernel", machine.kernel.clone()),
        ("transparent huge pages", machine.huge_pages.clone()),
        ("frequency governor", machine.governor.clone()),
        ("host of this virtual machine", host),
    ];
    let told = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    told.map(|(name, value)| (name.to_owned(), shown(&value))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "bytes stay far below 2^53")]
fn memory(bytes: u64) -> String {
    measure::value(Measure::PeakRss, bytes as f64)
}

/// `text` with a capital, as a caption begins.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}
