//! The page of an experiment as Markdown, its plots in files beside it.

use super::{code, escaped, heading, paragraph};
use crate::outcome::{Block, Missing, Page, Sheet};
use crate::report::article::{self, Mark};

/// The page.
pub(in crate::report) fn experiment(page: &Page) -> String {
    let outcome = &page.outcome;
    let mut text = String::new();
    heading(&mut text, 1, &escaped(&page.title));
    paragraph(&mut text, &escaped(&article::line(page)));
    paragraph(&mut text, &format!("**{}**", escaped(&outcome.verdict.sentence)));
    for (title, blocks) in article::sections(page) {
        heading(&mut text, 2, title);
        if title == article::CLAIMS {
            claims(&mut text, page);
        }
        blocks.iter().for_each(|block| self::block(&mut text, block, &page.name));
    }
    heading(&mut text, 2, "By hand");
    text.push_str("```sh\n");
    outcome.by_hand.iter().for_each(|command| text.push_str(&format!("{command}\n")));
    text.push_str("```\n\n");
    if !page.missing.is_empty() {
        heading(&mut text, 2, "What is missing here");
        for Missing { what, reason } in &page.missing {
            text.push_str(&format!("- **{}**: {}\n", escaped(what), escaped(reason)));
        }
        text.push('\n');
    }
    heading(&mut text, 2, "The machine");
    for (name, value) in article::facts(page) {
        text.push_str(&format!("- {name}: {}\n", escaped(&value)));
    }
    for limit in &page.limits {
        text.push_str(&format!("- limits: {}\n", escaped(limit)));
    }
    text.push('\n');
    heading(&mut text, 2, "How to read this");
    article::READING.iter().for_each(|reading| paragraph(&mut text, reading));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn claims(text: &mut String, page: &Page) {
    text.push_str("| claim | theirs | today, here | holds? |\n| :-- | :-- | :-- | :-- |\n");
    for claim in &page.outcome.claims {
        let [says, then, now] = [&claim.says, &claim.then, &claim.now].map(|cell| escaped(cell));
        text.push_str(&format!("| {says} | {then} | {now} | {} |\n", claim.held.word()));
    }
    text.push('\n');
}

fn block(text: &mut String, block: &Block, name: &str) {
    match block {
        Block::Text(words) => paragraph(text, &marked(words)),
        Block::List(points) => {
            points.iter().for_each(|point| text.push_str(&format!("- {}\n", marked(point))));
            text.push('\n');
        }
        Block::Sheet(sheet) => self::sheet(text, sheet),
        Block::Figure(figure) => {
            let caption = escaped(&figure.caption);
            paragraph(text, &format!("![{caption}]({})", figure.file(name)));
        }
    }
}

fn sheet(text: &mut String, sheet: &Sheet) {
    paragraph(text, &format!("{}:", escaped(&sheet.caption)));
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| if cell.is_empty() { "–".to_owned() } else { escaped(cell) })
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text.push_str(&line(&sheet.headings));
    text.push_str(&format!("| :-- |{}\n", " --: |".repeat(sheet.headings.len().saturating_sub(1))));
    sheet.rows.iter().for_each(|row| text.push_str(&line(row)));
    text.push('\n');
}

fn marked(words: &str) -> String {
    let piece = |(mark, words): (Mark, std::borrow::Cow<'_, str>)| match mark {
        Mark::Plain => escaped(&words),
        Mark::Bold => format!("**{}**", escaped(&words)),
        Mark::Code => code(&words),
    };
    article::spans(words).into_iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_as_it_is_kept() {
        let page = experiment(&article::fixtures::page());
        snapbox::assert_data_eq!(page, snapbox::file!["experiment/tests/page.txt"].raw());
    }
}
