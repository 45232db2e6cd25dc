//! The page of a comparison, or of several of the same thing: a table of medians and ratios for each case, verdicts in
//! plain words, and the warnings to read before trusting them.
//!
//! A page for a browser has everything; the others have as much as fits a screen.

use super::across::{self, Across, Group};
use super::document::{Detail, Document};
use super::overview::overviews;
use super::{drawn, settings, sheets, verdict};
use crate::page::{Block, Heading, Page, Statement, Text, Tone};
use crate::results::{LeftOut, Rounds};
use crate::summary;
use crate::tables::{Source, Table};
use masu_run::workload::quoted;

pub(super) fn page(document: &Document, detail: Detail) -> Page {
    let mut page = Page::default();
    let is_full = detail == Detail::Full;
    if document.is_merged() {
        together(&mut page, document, detail);
    } else if let Some(source) = document.sources.first() {
        page.title = subject(source);
        let title = match (&source.header.suite, &source.tables[..]) {
            (None, [only]) => Text::code(only.headed(detail)),
            _ => Text::from(subject(source)),
        };
        page.heading(1, title);
        if !is_full {
            whole(&mut page, 0, source, detail);
        }
    }
    let notes = |page: &mut Page, tone| {
        document.notes.iter().for_each(|note| page.note("Note", note.as_str(), tone));
    };
    if is_full {
        notes(&mut page, Tone::Plain);
        for (index, source) in document.sources.iter().enumerate() {
            if document.is_merged() {
                let file = source.file.clone().unwrap_or_else(|| subject(source));
                let text = format!("{}: {file}", across::name(index));
                page.push(heading(2, text, format!("s{index}")));
            }
            whole(&mut page, index, source, detail);
        }
        reading(&mut page, document);
    } else {
        notes(&mut page, Tone::Plain);
    }
    let version = match &document.sources[..] {
        [only] if !is_full => &only.header.masu_version,
        _ => env!("CARGO_PKG_VERSION"),
    };
    page.foot = Text::marked(&format!(
        "Made by masu {version}. Every run as a table: `masu report --format csv FILE`"
    ));
    page
}

fn heading(level: u8, text: impl Into<Text>, id: String) -> Block {
    Block::Heading(Heading { level, text: text.into(), id, ..Heading::default() })
}

fn subject(source: &Source) -> String {
    match (&source.header.suite, &source.tables[..]) {
        (None, [only]) => only.command(),
        (Some(suite), _) => format!("Suite {suite}"),
        (None, tables) => format!("{} cases", tables.len()),
    }
}

/// One comparison: its cases, and an explanation of how to read them.
fn whole(page: &mut Page, index: usize, source: &Source, detail: Detail) {
    let is_full = detail == Detail::Full;
    // The title does not name the only case of a suite.
    let is_suite = source.tables.len() > 1 || source.header.suite.is_some();
    let id = format!("s{index}");
    page.say(format!("{}, {}", source.header.began, source.place()), Tone::Dim);
    if is_full {
        overviews(source).iter().for_each(|one| page.push(Block::Sheet(sheets::overview(one))));
        page.blocks.extend(sheets::matrix(&id, source).map(Block::Sheet));
    }
    for (at, table) in source.tables.iter().enumerate() {
        page.push(Block::Gap);
        let id = format!("{id}c{at}");
        if is_suite {
            page.push(heading(2, table.case.name.as_str(), id.clone()));
            page.say(Text::code(table.headed(detail)), Tone::Dim);
        } else if let Some(values) = table.values() {
            page.say(format!("with {values}"), Tone::Dim);
        }
        if let Some(settings) = table.settings().filter(|_| !is_full) {
            page.say(settings, Tone::Dim);
        }
        case(page, &id, source, table, detail);
    }
    if is_full {
        page.heading(3, "Where and when");
        page.push(Block::Facts(facts(source)));
        let words: Vec<String> = source.header.asked.iter().map(|word| quoted(word)).collect();
        if !words.is_empty() {
            page.heading(3, "The same again");
            page.push(Block::Code(vec![format!("masu compare {}", words.join(" "))]));
        }
        return;
    }
    for overview in overviews(source) {
        page.push(Block::Gap);
        page.push(Block::Sheet(sheets::overview(&overview)));
        let text = "Geometric means, for information: cases are a choice and no sample.";
        page.say(text, Tone::Dim);
    }
    page.push(Block::Gap);
    foot(page, source);
}

fn case(page: &mut Page, id: &str, source: &Source, table: &Table, detail: Detail) {
    let is_full = detail == Detail::Full;
    let summary = &table.summary;
    let figures = Block::Sheet(sheets::main_table(table, detail));
    if !is_full {
        page.push(figures.clone());
        page.push(Block::Gap);
    }
    page.push(Block::Statements(statements(source, table)));
    if let Some((word, text)) = table.shortfall(&source.header) {
        page.note(word, text, Tone::Strong);
    }
    for (label, texts, tone) in
        [("Warning", &summary.warnings, Tone::Plain), ("Note", &summary.notes, Tone::Dim)]
    {
        if !texts.is_empty() {
            page.push(Block::Gap);
        }
        texts.iter().for_each(|text| page.note(label, text.as_str(), tone));
    }
    if !is_full {
        return;
    }
    let valid = summary::valid(&table.runs);
    page.blocks.extend(drawn::ratios(&format!("{id}r0"), table, summary.primary));
    page.push(figures);
    page.blocks.extend(drawn::others(id, table, &valid));
    page.blocks.extend(sheets::details(table, &valid).into_iter().map(Block::Sheet));
    page.heading(3, "The variants");
    page.push(Block::Sheet(sheets::variants(table)));
    let settings = table.case.settings.iter();
    let settings: Vec<Statement> =
        settings.map(|(name, value)| Statement::new(name, value.as_str(), Tone::Plain)).collect();
    if !settings.is_empty() {
        page.push(Block::Facts(settings));
    }
}

/// The verdicts, the decision, the settings of the variants, and the variants that were left out.
fn statements(source: &Source, table: &Table) -> Vec<Statement> {
    let summary = &table.summary;
    let verdict = |row| {
        let (words, tone) = verdict::words(row, summary.primary);
        Statement::new(&row.variant, words, tone)
    };
    let mut statements: Vec<Statement> = summary.rows.iter().map(verdict).collect();
    statements.extend(table.decision(&source.header).map(|decision| {
        let (words, tone) = verdict::decided(&decision);
        Statement::new("Decided", words, tone)
    }));
    let set = settings::lines(&table.case.variants).into_iter();
    statements.extend(set.map(|(label, text)| Statement::new(label, text, Tone::Dim)));
    let left_out = table.case.left_out.iter();
    statements.extend(left_out.map(|LeftOut { label, reason }| {
        Statement::new(label, format!("left out: {reason}"), Tone::Dim)
    }));
    statements
}

/// The foot of the page: how to read it, and how to get the same order again.
fn foot(page: &mut Page, source: &Source) {
    let Some(table) = source.tables.first() else { return };
    let more = source.tables.iter().any(|it| it.summary.primary.is_better_larger());
    let less = if more { "of answers more is better, of all else less" } else { "less is better" };
    let text = format!("Medians; × the reference, {less}, in pairs of neighboring runs.");
    page.say(text, Tone::Dim);
    let text = format!(
        "“Surely”: {:.0} %, for all variants together. Order of runs: --seed {}.",
        table.summary.confidence * 100.0,
        source.header.seed
    );
    page.say(text, Tone::Dim);
}

fn together(page: &mut Page, document: &Document, detail: Detail) {
    let is_full = detail == Detail::Full;
    let noun = across::noun(document);
    let groups = across::groups(document);
    page.title = match &groups[..] {
        [only] => format!("{} on {} {noun}", only.first().command(), document.sources.len()),
        _ => format!("{} cases on {} {noun}", groups.len(), document.sources.len()),
    };
    page.heading(1, format!("{} {noun}", document.sources.len()));
    let source = |(index, source): (usize, &Source)| {
        let file = source.file.as_deref().unwrap_or("a comparison");
        let text = format!("{file}: {}, {}", source.header.began, source.place());
        Statement::new(&across::name(index), text, Tone::Plain)
    };
    let sources = document.sources.iter().enumerate().map(source).collect();
    page.push(Block::Statements(sources));
    for (at, one) in groups.iter().enumerate() {
        page.push(Block::Gap);
        group(page, at, one, noun, detail);
        shortfalls(page, document, one);
    }
    for (index, source) in document.sources.iter().enumerate().filter(|_| !is_full) {
        for overview in overviews(source) {
            page.push(Block::Gap);
            page.say(format!("On {}:", across::name(index)), Tone::Strong);
            page.push(Block::Sheet(sheets::overview(&overview)));
        }
    }
    for alone in across::alone(document) {
        page.note("Not merged", alone, Tone::Dim);
    }
    page.push(Block::Gap);
    let text = format!(
        "Medians; × the reference of the same {}, in pairs of neighboring runs. Each table's \
         intervals hold at 99 % for its own {0}; runs of different {noun} are never pooled, and \
         range and mean of their ratios are for information.",
        noun.trim_end_matches('s')
    );
    page.say(text, Tone::Dim);
    if noun == "comparisons" {
        let text = "Some tell the same facts of their machine: they may be one machine twice.";
        page.say(text, Tone::Dim);
    }
    let first = document.sources.iter().find_map(|source| source.file.as_deref());
    if let Some(first) = first.filter(|_| !is_full) {
        page.say(format!("One of them in full: masu report {}", quoted(first)), Tone::Dim);
    }
}

/// A case: each variant's figures on each machine, then the result of all machines.
fn group(page: &mut Page, at: usize, group: &Group<'_>, noun: &str, detail: Detail) {
    let first = group.first();
    page.heading(2, first.case.name.as_str());
    // A comparison of one command is named by the command.
    let headed = first.headed(detail);
    if headed != first.case.name {
        page.say(Text::code(headed), Tone::Dim);
    }
    let variants = group.variants();
    if detail == Detail::Full {
        page.blocks.extend(drawn::across(&format!("g{at}"), first.case.primary, &variants, noun));
    }
    page.push(Block::Sheet(sheets::across(group, &variants, detail)));
    page.push(Block::Gap);
    // A variant is colored only if all machines have it and agree.
    let tone = |variant: &Across<'_>| match variant.count {
        count if count.better == variant.of => Tone::Better,
        count if count.worse == variant.of => Tone::Worse,
        _ => Tone::Plain,
    };
    let statement = |variant: &Across<'_>| {
        Statement::new(variant.variant, variant.statement(noun), tone(variant))
    };
    page.push(Block::Statements(variants.iter().map(statement).collect()));
}

/// The parts of the group that ended early, and the warnings of each machine.
fn shortfalls(page: &mut Page, document: &Document, group: &Group<'_>) {
    for (index, table) in &group.members {
        let name = across::name(*index);
        if let Some((word, text)) = table.shortfall(&document.sources[*index].header) {
            page.note(&format!("{word}, {name}"), text, Tone::Strong);
        }
        for warning in &table.summary.warnings {
            page.note(&format!("Warning, {name}"), warning.as_str(), Tone::Plain);
        }
        for note in &table.summary.notes {
            page.note(&format!("Note, {name}"), note.as_str(), Tone::Dim);
        }
    }
}

fn facts(source: &Source) -> Vec<Statement> {
    let header = &source.header;
    let rounds = match header.rounds {
        Rounds::Fixed(rounds) => format!("{rounds} of each variant, looked at once, at the end"),
        Rounds::Budget { seconds, precision } => format!(
            "until every interval is within {:.1} % of its estimate or {seconds:.0} s are over; \
             the looks in between share the error that the table may have",
            precision * 100.0
        ),
        Rounds::UntilDecided { most } => format!(
            "until nothing is undecided, at most {most} of each variant; the looks in between share the error that \
             the table may have"
        ),
    };
    let runs: usize = source.tables.iter().map(|table| table.runs.len()).sum();
    let facts = [
        ("results file", source.file.clone()),
        ("begun", Some(header.began.clone())),
        ("runs asked for", Some(rounds)),
        ("runs made", Some(runs.to_string())),
        ("seed of their order", Some(header.seed.to_string())),
        ("made by", Some(format!("masu {}", header.masu_version))),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let known = known.chain(header.machine.described());
    known.map(|(name, value)| Statement::new(name, value, Tone::Plain)).collect()
}

/// The explanations for a reader of plots and tables.
fn reading(page: &mut Page, document: &Document) {
    let tables = || document.sources.iter().flat_map(|source| &source.tables);
    let runs = || tables().flat_map(|table| &table.runs);
    let bursts = || runs().filter_map(|run| run.burst);
    let sure = tables().next().map_or(0.0, |table| table.summary.confidence * 100.0);
    page.heading(3, "How to read this");
    page.say(
        "A ratio of ×0.9 is ten per cent less than the reference, the first variant. Ratios are of neighboring runs: in \
         each round every variant runs once, in random order, and is paired with the reference’s run of the same round, \
         so that whatever drifts cancels. The estimate is the Hodges–Lehmann center of these pairs, not the ratio of the \
         medians; the two may differ a little.",
        Tone::Plain,
    );
    let means = if document.sources.iter().any(|source| source.tables.len() > 1) {
        " Means over cases have no interval: cases are a choice and no sample."
    } else {
        ""
    };
    page.say(
        format!(
            "An interval that leaves out 1 shows a difference; only those have color, blue for better, orange for worse. \
             “Surely” means {sure:.0} %, for all variants of a table together, for the measure that carries the verdict; \
             intervals of the other measures are made at the same level and inform. “No difference shown” is no proof of \
             none: beside it stands the smallest difference that these runs could have shown.{means}"
        ),
        Tone::Plain,
    );
    page.heading(3, "How it was measured");
    let mut text = "Each variant first made a warm-up run in which its library was seen to be loaded and to serve \
        allocations. The timed runs took turns, in an order drawn for each round. Output went into a pipe that is read and \
        hashed. Wall-clock time is from the start of the program to its end; CPU time and page faults are those the \
        kernel counts for the program and the children it waited for; peak memory is the larger of the largest process \
        (exact) and the largest sampled sum over all processes."
        .to_owned();
    let has_latencies = bursts().any(|burst| burst.latency_s.is_some());
    let has_throughput = bursts().any(|burst| burst.throughput.is_some());
    if runs().any(|run| run.rss_over_time.len() > 1) {
        text.push_str(" Memory over time is sampled, and thinned out.");
    }
    if has_throughput || has_latencies {
        text.push_str(" Servers are measured in bursts of load, the variants taking turns.");
    }
    if has_latencies {
        text.push_str(
            " At a given rate a latency counts from when a request was due, not from when it could be sent; without \
             one, from when it was sent.",
        );
    }
    text.push_str(
        " Runs that ended differently from the reference’s, and starved runs that were repeated, do not count.",
    );
    page.say(text, Tone::Plain);
}

#[cfg(test)]
mod tests;
