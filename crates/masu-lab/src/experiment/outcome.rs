//! The outcome of an experiment, and its page.

use super::claim::{Agreement, Claim, Held, Verdict};
use super::{Experiment, Missing};
use crate::Checkup;
use crate::doctor::Standing;
use crate::page::{Block, Cell, Page, Sheet, SheetRow, Statement, Text, Tone};
use masu_run::Machine;

#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) then: Vec<Block>,
    pub(super) now: Vec<Block>,
    pub(super) claims: Vec<Claim>,
    pub(super) diagnosis: Vec<Block>,
    pub(super) change: Vec<Block>,
    pub(super) by_hand: Vec<String>,
}

/// The explanation of claims and ratios for the reader.
const READING: [&str; 2] = [
    "A claim is a sentence of the report, held against today's runs: it is held, or not, only where the whole interval of \
     a ratio lies on one side of what the claim says; where it reaches over, the runs cannot decide. Intervals are \
     those of masu compare: 99 % sure each, of pairs of runs in the same round. Counts have no interval.",
    "The author's figures are of another machine, another system and other versions: compare their proportions with \
     today's, not the seconds.",
];

impl Outcome {
    pub(super) fn page(
        self,
        experiment: &Experiment,
        date: &str,
        machine: &Machine,
        limits: Vec<String>,
        missing: &[Missing],
    ) -> Page {
        let name = experiment.name;
        let mut page = Page {
            title: format!("{}, masu experiment {name}", experiment.title),
            ..Page::default()
        };
        page.heading(1, experiment.title);
        let cpu = machine.cpu.as_deref().unwrap_or(&machine.architecture);
        let line = format!("masu experiment {name}, {date}, on {cpu}, {} CPUs", machine.cpus);
        page.say(line, Tone::Dim);
        let tone = match self.verdict.agreement {
            Agreement::Full => Tone::Good,
            Agreement::None => Tone::Bad,
            Agreement::Partial | Agreement::Undecided => Tone::Strong,
        };
        page.say(self.verdict.sentence, tone);
        if !missing.is_empty() {
            let text = "not everything could be measured; what is missing stands at the end";
            page.note("Warning", text, Tone::Plain);
        }
        let has_figures = !self.now.is_empty();
        let claims = (!self.claims.is_empty()).then(|| Block::Sheet(sheet(&self.claims)));
        let sections = [
            ("The author's figures", self.then),
            ("This machine's figures", self.now),
            ("The author's claims today", claims.into_iter().collect()),
            ("The lab's own diagnosis", self.diagnosis),
            ("The change that masu makes", self.change),
        ];
        for (heading, blocks) in sections.into_iter().filter(|(_, blocks)| !blocks.is_empty()) {
            page.heading(2, heading);
            page.blocks.extend(blocks);
        }
        page.heading(2, "By hand");
        page.push(Block::Code(self.by_hand));
        if !missing.is_empty() {
            page.heading(2, "Missing here");
            let fact = |it: &Missing| Statement::new(&it.what, it.reason.as_str(), Tone::Plain);
            page.push(Block::Facts(missing.iter().map(fact).collect()));
        }
        page.heading(2, "The machine");
        let facts = machine.described().into_iter();
        let facts = facts.map(|(name, value)| Statement::new(name, value, Tone::Plain));
        let limits = limits.into_iter().map(|limit| Statement::new("limits", limit, Tone::Plain));
        page.push(Block::Facts(facts.chain(limits).collect()));
        page.heading(2, "How to read this");
        READING.iter().for_each(|text| page.say(*text, Tone::Plain));
        let version = env!("CARGO_PKG_VERSION");
        let mut foot = format!("Made by masu experiment {name}, masu {version}.");
        if has_figures {
            foot.push_str(" Every run lies beside this page: `masu report FILE`, for each of ");
            foot.push_str(&format!("`{name}.*.jsonl`"));
        }
        page.foot = Text::marked(&foot);
        page
    }
}

/// The facts of the machine that limit the figures.
pub(super) fn limits(checkup: &Checkup) -> Vec<String> {
    let facts = checkup.facts.iter().filter(|fact| fact.standing == Standing::Limits);
    let mut limits: Vec<String> = facts
        .map(|fact| {
            let remedy = fact.remedy.iter().map(|remedy| format!("; {remedy}"));
            format!("{}: {}{}", fact.name, fact.value, remedy.collect::<String>())
        })
        .collect();
    limits.extend(checkup.prices.known.iter().filter_map(|price| price.remark.clone()));
    limits.extend(checkup.noise.remark.clone());
    limits.dedup();
    limits
}

fn sheet(claims: &[Claim]) -> Sheet {
    let row = |claim: &Claim| {
        let tone = match claim.held {
            Held::Yes => Tone::Better,
            Held::No => Tone::Worse,
            Held::Undecided => Tone::Dim,
        };
        let held = Cell { text: claim.held.word().into(), tone, ..Cell::default() };
        let cells = [claim.then.clone().into(), claim.now.clone().into(), held];
        SheetRow { label: claim.says.clone(), cells: cells.into(), ..SheetRow::default() }
    };
    let headings = ["claim", "theirs", "today, here", "holds?"];
    let rows = claims.iter().map(row).collect();
    Sheet { rows, is_prose: true, ..Sheet::new("", headings, Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Figure, Form};
    use crate::report::{Bar, bars, fixtures};

    fn page() -> Page {
        let one = [Bar { label: "a".to_owned(), value: Some(1.0) }];
        let svg = bars("brk-calls", "calls", &one, |value| format!("{value}"));
        let [name, caption] = ["calls", "Calls"].map(str::to_owned);
        let figure = Figure { name, caption, svg, ..Figure::default() };
        let rows = [["unset", "6,137"], ["a|b", ""]].map(|row| row.map(str::to_owned).into());
        let outcome = Outcome {
            verdict: Verdict {
                agreement: Agreement::Partial,
                sentence: "Today's machine agrees with the author in 1 of 2 claims: 3 <calls>."
                    .to_owned(),
            },
            then: vec![Block::marked("It was **slow** under `sed -rf`.")],
            now: vec![
                Block::Sheet(Sheet::new("Medians", ["malloc", "brk"], rows.into())),
                Block::Figure(figure),
                Block::points(["one", "two <b>"]),
            ],
            claims: vec![Claim {
                says: "It storms".to_owned(),
                then: "6,137".to_owned(),
                now: "×0.5 (0.4–0.6)".to_owned(),
                held: Held::Yes,
            }],
            diagnosis: Vec::new(),
            change: vec![Block::marked("masu adapts.")],
            by_hand: vec!["echo 50 | sed -rf primes49.sed".to_owned()],
        };
        let machine = fixtures::machine("Made-Up 9000");
        let limits = vec!["frequency: powersave; set it".to_owned()];
        let missing = Missing { what: "musl".to_owned(), reason: "no target".to_owned() };
        let experiment =
            Experiment { title: "A sed script", ..*crate::experiment::find("brk").unwrap() };
        outcome.page(&experiment, "2026-11-22 10:00 UTC", &machine, limits, &[missing])
    }

    #[test]
    fn the_page_as_markdown() {
        let page = page().render(Form::Markdown, "brk");
        snapbox::assert_data_eq!(page, snapbox::file!["outcome/tests/page.txt"].raw());
    }

    #[test]
    fn the_page_of_a_browser_is_well_formed_and_escapes_what_it_is_given() {
        let text = page().render(Form::Html, "brk");
        let tree = fixtures::parsed(&text);
        let counts = ["h1", "svg", "table", "script"].map(|name| fixtures::elements(&tree, name));
        assert_eq!(counts, [1, 1, 2, 0]);
        assert!(text.contains("3 &#60;calls&#62;") || text.contains("3 &lt;calls&gt;"), "{text}");
        for part in
            ["<code>sed -rf</code>", "no target", "powersave", "class=\"words better\">held<"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
