//! What the page of an experiment says in every format: its sections in their order, and text with its marks.

use std::borrow::Cow;

use super::lines::visible;
use crate::outcome::{Block, Page};
use crate::report::bytes;

/// What a reader has to know of claims and ratios.
pub(super) const READING: [&str; 2] = [
    "A claim is a sentence of the report, held against today's runs: it is held, or not, only where the whole interval of \
     a ratio lies on one side of what the claim says; where it reaches over, the runs cannot decide. Intervals are \
     those of masu compare: 99 % sure each, of pairs of runs in the same round. Counts have no interval.",
    "The author's figures are of another machine, another system and other versions: compare their proportions with \
     today's, not the seconds.",
];

/// The parts with blocks, in their order; those without any are left out.
pub(super) fn sections(page: &Page) -> Vec<(&'static str, &[Block])> {
    let outcome = &page.outcome;
    let all = [
        ("What the author saw then", &outcome.then),
        ("What this machine shows now", &outcome.now),
        (CLAIMS, &NONE),
        ("What the lab says unaided", &outcome.diagnosis),
        ("What masu changes", &outcome.change),
    ];
    let is_shown = |heading: &str, blocks: &[Block]| match heading {
        CLAIMS => !outcome.claims.is_empty(),
        _ => !blocks.is_empty(),
    };
    let shown = all.into_iter().filter(|(heading, blocks)| is_shown(heading, blocks));
    shown.map(|(heading, blocks)| (heading, blocks.as_slice())).collect()
}

/// The section that has the claims and no block.
pub(super) const CLAIMS: &str = "The author's claims today";

static NONE: Vec<Block> = Vec::new();

/// Facts of the machine, by name.
pub(super) fn facts(page: &Page) -> Vec<(&'static str, String)> {
    let machine = &page.machine;
    #[expect(clippy::cast_precision_loss, reason = "bytes stay far below 2^53")]
    let memory = machine.memory_bytes.map(|size| bytes(size as f64));
    let facts = [
        ("CPU", machine.cpu.clone()),
        ("CPUs that could be used", Some(machine.cpus.to_string())),
        ("main memory", memory),
        ("system", machine.system.clone()),
        ("kernel", machine.kernel.clone()),
        ("transparent huge pages", machine.huge_pages.clone()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// When and where, on a line.
pub(super) fn line(page: &Page) -> String {
    let cpu = page.machine.cpu.as_deref().unwrap_or(&page.machine.architecture);
    format!("masu experiment {}, {}, on {cpu}, {} CPUs", page.name, page.date, page.machine.cpus)
}

/// How a piece of text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    /// Between `**`.
    Bold,
    /// Between backticks.
    Code,
}

/// `text` in pieces, without its marks; one that is not closed is text.
pub(super) fn spans(text: &str) -> Vec<(Mark, Cow<'_, str>)> {
    let mut spans = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let found =
            [("**", Mark::Bold), ("`", Mark::Code)].into_iter().filter_map(|(sign, mark)| {
                let start = rest.find(sign)?;
                let inside = &rest[start + sign.len()..];
                let length = inside.find(sign).filter(|length| *length > 0)?;
                Some((start, mark, &inside[..length], &inside[length + sign.len()..]))
            });
        let Some((start, mark, inside, behind)) = found.min_by_key(|(start, ..)| *start) else {
            break;
        };
        if start > 0 {
            spans.push((Mark::Plain, visible(&rest[..start])));
        }
        spans.push((mark, visible(inside)));
        rest = behind;
    }
    if !rest.is_empty() {
        spans.push((Mark::Plain, visible(rest)));
    }
    spans
}

#[cfg(test)]
pub(super) mod fixtures {
    //! A page made up for tests.

    use crate::outcome::{
        Agreement, Block, Claim, Figure, Held, Missing, Outcome, Page, Sheet, Verdict,
    };
    use crate::report::{Bar, bars};

    pub(in crate::report) fn page() -> Page {
        let svg = bars(
            "brk-calls",
            "calls",
            &[Bar { label: "a".to_owned(), value: Some(1.0) }],
            |value| format!("{value}"),
        );
        let figure = Figure { name: "calls".to_owned(), caption: "Calls".to_owned(), svg };
        let rows = vec![
            vec!["unset".to_owned(), "6,137".to_owned()],
            vec!["a|b".to_owned(), String::new()],
        ];
        let outcome = Outcome {
            verdict: Verdict {
                agreement: Agreement::Partial,
                sentence: "Today's machine agrees with the author in 1 of 2 claims: 3 <calls>."
                    .to_owned(),
            },
            then: vec![Block::Text("It was **slow** under `sed -rf`.".to_owned())],
            now: vec![
                Block::Sheet(Sheet::new("Medians", ["malloc", "brk"], rows)),
                Block::Figure(figure),
                Block::List(vec!["one".to_owned(), "two <b>".to_owned()]),
            ],
            claims: vec![Claim {
                says: "It storms".to_owned(),
                then: "6,137".to_owned(),
                now: "×0.5 (0.4–0.6)".to_owned(),
                held: Held::Yes,
            }],
            diagnosis: Vec::new(),
            change: vec![Block::Text("masu adapts.".to_owned())],
            by_hand: vec!["echo 50 | sed -rf primes49.sed".to_owned()],
        };
        Page {
            name: "brk".to_owned(),
            title: "A sed script".to_owned(),
            date: "2026-11-22 10:00 UTC".to_owned(),
            machine: crate::report::fixtures::machine("Made-Up 9000"),
            limits: vec!["frequency: powersave; set it".to_owned()],
            missing: vec![Missing { what: "musl".to_owned(), reason: "no target".to_owned() }],
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_out_and_what_is_not_closed_is_text() {
        let told = |text| -> Vec<(Mark, String)> {
            spans(text).into_iter().map(|(mark, text)| (mark, text.into_owned())).collect()
        };
        let plain = |text: &str| (Mark::Plain, text.to_owned());
        assert_eq!(
            told("a **b** `c*d` e"),
            [
                plain("a "),
                (Mark::Bold, "b".to_owned()),
                plain(" "),
                (Mark::Code, "c*d".to_owned()),
                plain(" e")
            ]
        );
        assert_eq!(told("2 ** 3 is `open"), [plain("2 ** 3 is `open")]);
        assert_eq!(told("``"), [plain("``")]);
        assert_eq!(told(""), []);
    }

    #[test]
    fn a_part_without_content_is_left_out() {
        let page = fixtures::page();
        let headings: Vec<&str> = sections(&page).iter().map(|(heading, _)| *heading).collect();
        let expected = [
            "What the author saw then",
            "What this machine shows now",
            CLAIMS,
            "What masu changes",
        ];
        assert_eq!(headings, expected);
    }
}
