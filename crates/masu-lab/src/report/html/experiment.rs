//! The page of an experiment as one HTML file.

use askama::Template;

use super::view::shown;
use super::{Cell, Figure, Sheet, SheetRow, Statement};
use crate::outcome::{self, Agreement, Block, Held, Page};
use crate::report::article::{self, Mark};

/// The whole file.
#[derive(Template)]
#[template(path = "experiment.html")]
struct File {
    name: String,
    title: String,
    line: String,
    verdict: Statement,
    sections: Vec<Section>,
    claims: Vec<Claim>,
    by_hand: Vec<String>,
    missing: Vec<(String, String)>,
    facts: Vec<(&'static str, String)>,
    limits: Vec<String>,
    reading: [&'static str; 2],
    version: &'static str,
}

/// A heading with what stands below it.
struct Section {
    heading: &'static str,
    blocks: Vec<View>,
    /// Whether the table of claims stands here.
    has_claims: bool,
}

/// A part: only one of these is there.
#[derive(Default)]
struct View {
    text: Vec<Span>,
    list: Vec<Vec<Span>>,
    sheet: Option<Sheet>,
    figure: Option<Figure>,
}

/// A piece of text.
struct Span {
    text: String,
    is_bold: bool,
    is_code: bool,
}

/// A claim as a line of the table.
struct Claim {
    says: String,
    then: String,
    now: String,
    word: &'static str,
    class: &'static str,
}

/// The file for `page`.
pub(in crate::report) fn experiment(page: &Page) -> String {
    let outcome = &page.outcome;
    let section = |(heading, blocks): (&'static str, &[Block])| Section {
        heading,
        blocks: blocks.iter().map(view).collect(),
        has_claims: heading == article::CLAIMS,
    };
    let claim = |claim: &outcome::Claim| Claim {
        says: shown(&claim.says),
        then: shown(&claim.then),
        now: shown(&claim.now),
        word: claim.held.word(),
        class: class(claim.held),
    };
    let file = File {
        name: page.name.clone(),
        title: shown(&page.title),
        line: shown(&article::line(page)),
        verdict: Statement {
            label: "verdict".to_owned(),
            words: shown(&outcome.verdict.sentence),
            class: match outcome.verdict.agreement {
                Agreement::Full => "better",
                Agreement::None => "worse",
                Agreement::Partial | Agreement::Undecided => "open",
            },
        },
        sections: article::sections(page).into_iter().map(section).collect(),
        claims: outcome.claims.iter().map(claim).collect(),
        by_hand: outcome.by_hand.iter().map(|command| shown(command)).collect(),
        missing: page.missing.iter().map(|it| (shown(&it.what), shown(&it.reason))).collect(),
        facts: article::facts(page)
            .into_iter()
            .map(|(name, value)| (name, shown(&value)))
            .collect(),
        limits: page.limits.iter().map(|limit| shown(limit)).collect(),
        reading: article::READING,
        version: env!("CARGO_PKG_VERSION"),
    };
    file.render().expect("a template that only writes strings into a string has no way to fail")
}

/// The class of what became of a claim.
fn class(held: Held) -> &'static str {
    match held {
        Held::Yes => "better",
        Held::No => "worse",
        Held::Undecided => "open",
    }
}

fn view(block: &Block) -> View {
    match block {
        Block::Text(text) => View { text: spans(text), ..View::default() },
        Block::List(points) => {
            View { list: points.iter().map(|point| spans(point)).collect(), ..View::default() }
        }
        Block::Sheet(sheet) => View { sheet: Some(self::sheet(sheet)), ..View::default() },
        Block::Figure(figure) => {
            let figure = Figure { caption: shown(&figure.caption), svg: figure.svg.clone() };
            View { figure: Some(figure), ..View::default() }
        }
    }
}

fn spans(text: &str) -> Vec<Span> {
    let span = |(mark, text): (Mark, std::borrow::Cow<'_, str>)| Span {
        text: text.into_owned(),
        is_bold: mark == Mark::Bold,
        is_code: mark == Mark::Code,
    };
    article::spans(text).into_iter().map(span).collect()
}

fn sheet(sheet: &outcome::Sheet) -> Sheet {
    let cell = |text: &String| {
        let text = if text.is_empty() { "–".to_owned() } else { shown(text) };
        Cell { text, ..Cell::default() }
    };
    let row = |cells: &Vec<String>| {
        let (first, rest) = cells.split_first()?;
        Some(SheetRow::new(shown(first), rest.iter().map(cell).collect()))
    };
    Sheet {
        caption: shown(&sheet.caption),
        headings: sheet.headings.iter().map(|heading| shown(heading)).collect(),
        rows: sheet.rows.iter().filter_map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_well_formed_and_escapes_what_it_is_given() {
        let text = experiment(&article::fixtures::page());
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let tree = roxmltree::Document::parse_with_options(&text, options).unwrap();
        let count =
            |name: &str| tree.descendants().filter(|it| it.tag_name().name() == name).count();
        assert_eq!((count("h1"), count("svg"), count("table"), count("script")), (1, 1, 2, 0));
        assert_eq!(count("b"), 2, "one of the text, one of the warning that parts are missing");
        assert!(text.contains("3 &#60;calls&#62;") || text.contains("3 &lt;calls&gt;"), "{text}");
        assert!(text.contains("<code>sed -rf</code>"));
        assert!(text.contains("no target") && text.contains("powersave"));
        assert!(text.contains("class=\"words better\">held<"), "{text}");
    }
}
