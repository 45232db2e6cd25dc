//! Several comparisons of the same thing as the template shows them.

use super::table::cell;
use super::view::{capital, shown};
use super::{Figure, GroupView, Sheet, SheetRow, Statement, Together};
use crate::report::across::{self, Across, Group};
use crate::report::document::Document;
use crate::report::measure;
use crate::report::plot::{self, Interval};

/// What the sources of `document` say together.
pub(super) fn view(document: &Document) -> Together {
    let noun = across::noun(document);
    let groups = across::groups(document);
    let sources = document.sources.iter().enumerate().map(|(index, source)| {
        let place = format!("{}, {}", source.header.began, source.place());
        (across::name(index), shown(source.file.as_deref().unwrap_or_default()), shown(&place))
    });
    Together {
        heading: match &groups[..] {
            [only] => {
                format!("{} on {} {noun}", shown(&only.first().command()), document.sources.len())
            }
            _ => format!("{} cases on {} {noun}", groups.len(), document.sources.len()),
        },
        sources: sources.collect(),
        groups: groups
            .iter()
            .enumerate()
            .map(|(at, it)| {
                let view = group(at, it, noun);
                if groups.len() == 1 { GroupView { heading: None, ..view } } else { view }
            })
            .collect(),
        alone: across::alone(document).iter().map(|it| shown(it)).collect(),
        noun: noun.to_owned(),
        is_one_machine_perhaps: noun == "comparisons",
    }
}

fn group(index: usize, group: &Group<'_>, noun: &str) -> GroupView {
    let first = group.first();
    let primary = first.case.primary;
    let variants = group.variants();
    let statement = |variant: &Across<'_>| Statement {
        label: shown(variant.variant),
        words: variant.statement(noun),
        class: agreed(variant),
    };
    let columns = measure::shown(&first.summary);
    let mut headings = vec!["variant, where".to_owned()];
    headings.extend(columns.iter().map(|column| measure::heading(*column).to_owned()));
    let rows = variants.iter().flat_map(|variant| {
        let columns = &columns;
        variant.rows.iter().map(move |(source, row)| {
            let label = format!("{}, {}", shown(variant.variant), across::name(*source));
            SheetRow::new(label, columns.iter().map(|column| cell(row, *column)).collect())
        })
    });
    let intervals: Vec<Interval> = variants
        .iter()
        .flat_map(|variant| {
            variant.rows.iter().filter(|_| variant.count.all() > 0).map(|(source, row)| Interval {
                label: format!("{} {}", variant.variant, across::name(*source)),
                ratio: row.estimate(primary).and_then(|estimate| estimate.ratio),
                instead: "no ratio",
            })
        })
        .collect();
    let figure = (!intervals.is_empty()).then(|| Figure {
        caption: format!(
            "{}: ratio to the reference of the same {}",
            capital(measure::name(primary)),
            noun.trim_end_matches('s')
        ),
        svg: plot::intervals(&format!("g{index}"), primary, &intervals),
    });
    GroupView {
        heading: Some(shown(&first.case.name)),
        command: shown(&first.command()),
        statements: variants.iter().map(statement).collect(),
        figure,
        sheet: Sheet {
            caption: "Medians; below them × the reference, with the interval".to_owned(),
            headings,
            rows: rows.collect(),
        },
    }
}

/// Coloured only where all have the variant and say the same.
fn agreed(variant: &Across<'_>) -> &'static str {
    match variant.count {
        count if count.better == variant.of => "better",
        count if count.worse == variant.of => "worse",
        _ => "open",
    }
}
