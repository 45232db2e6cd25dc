//! `masu doctor`: the permissions and limits of this machine, and the prices of its kernel's services.
//!
//! Relies on the lab's check-up for every judgement; this file prints it as a page or JSON.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use masu_lab::doctor::{Checkup, Standing};
use masu_lab::prices::{Price, Unpriced};
use masu_lab::report::{nanoseconds as time, width, wrap};

use crate::{arguments, embedded, notices};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const LIMIT: Style = AnsiColor::Yellow.on_default().bold();

/// The column in which values begin.
const INDENT: usize = 23;

/// The width of a page with a price and its spread on one line.
const WIDE: usize = 60;

pub(crate) fn perform(arguments: &arguments::Doctor) -> Result<()> {
    let (catalogue, absences) = embedded::whole_catalogue();
    let checkup = Checkup::here(&catalogue);
    let page = if arguments.json {
        format!("{}\n", serde_json::to_string_pretty(&checkup).context("writing JSON")?)
    } else {
        page(&checkup)
    };
    write!(anstream::stdout(), "{page}").context("printing the check-up")?;
    for absence in absences {
        notices::say(format_args!("Note: {absence}"));
    }
    Ok(())
}

fn page(checkup: &Checkup) -> String {
    let Checkup { machine, facts, prices, noise, .. } = checkup;
    let known_facts =
        [machine.cpu.as_deref(), machine.kernel.as_deref(), machine.system.as_deref()];
    let known_facts: Vec<&str> = known_facts.into_iter().flatten().collect();
    let mut page = format!("{BOLD}this machine{BOLD:#}\n");
    let words = |text: &str| wrap(text, width() - INDENT);
    entry(&mut page, false, "", &words(&known_facts.join(", ")), None);
    for fact in facts {
        let limits = fact.standing == Standing::Limits;
        entry(&mut page, limits, fact.name, &words(&fact.value), fact.remedy.as_deref());
    }
    let is_wide = width() >= WIDE;
    let heading = if is_wide {
        format!("{:<INDENT$}{:>10}   middle half of the batches", "prices", "each")
    } else {
        wrap("prices, each, and the middle half of the batches", width()).join("\n")
    };
    page.push_str(&format!("\n{BOLD}{heading}{BOLD:#}\n"));
    // A median, and what belongs beside it: in a column of its own if the page has room, else below.
    let beside = |median: &str, text: &str| -> Vec<String> {
        let indent = if is_wide { INDENT + 13 } else { INDENT };
        let mut lines = wrap(text, width() - indent);
        if is_wide {
            let join = format!("\n{:indent$}", "");
            return vec![format!("{median:>10}   {}", lines.join(&join))];
        }
        lines.insert(0, format!("{median:>10}"));
        lines
    };
    for price in &prices.known {
        let Price { service, median_ns, lower_ns, upper_ns, remark, .. } = price;
        let spread = format!("{} – {}", time(*lower_ns), time(*upper_ns));
        let value = beside(&time(*median_ns), &spread);
        entry(&mut page, remark.is_some(), service.name(), &value, remark.as_deref());
    }
    for Unpriced { service, reason } in &prices.unknown {
        entry(&mut page, false, service.name(), &beside("–", reason), None);
    }
    page.push_str(&format!("\n{BOLD}noise{BOLD:#}\n"));
    let slowest = format!(
        "a piece of work of {}; the slowest tenth {:.1} % over it",
        time(noise.piece_s * 1e9),
        noise.slowest_tenth * 100.0
    );
    entry(
        &mut page,
        noise.remark.is_some(),
        "same work",
        &words(&slowest),
        noise.remark.as_deref(),
    );
    let share = |share: Option<f64>| {
        share.map_or("unknown".to_owned(), |share| format!("{:.0} %", share * 100.0))
    };
    let load = noise.load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    let others = format!(
        "{} of the CPUs; hypervisor {}; load {load}",
        share(noise.others),
        share(noise.steal)
    );
    entry(&mut page, false, "others", &words(&others), None);
    let (mark, limits) = match checkup.limits() {
        0 => (String::new(), "Nothing limits what masu can do here.".to_owned()),
        1 => (mark(), "One thing limits what can be done or measured here.".to_owned()),
        many => (mark(), format!("{many} things limit what can be done or measured here.")),
    };
    page.push_str(&format!("\n{mark}{}\n", wrap(&limits, width() - 2).join("\n")));
    page
}

fn mark() -> String {
    format!("{LIMIT}!{LIMIT:#} ")
}

/// A line of the page: a name, its value, and below it the remedy.
fn entry(page: &mut String, limits: bool, name: &str, value: &[String], remedy: Option<&str>) {
    let mark = if limits { mark() } else { "  ".to_owned() };
    let mut lines = value.iter();
    let first = lines.next().map_or("", String::as_str);
    page.push_str(&format!("{mark}{name:<width$}{first}\n", width = INDENT - 2));
    for line in lines {
        page.push_str(&format!("{:INDENT$}{line}\n", ""));
    }
    for line in remedy.map(|remedy| wrap(remedy, width() - INDENT - 2)).into_iter().flatten() {
        page.push_str(&format!("{:INDENT$}{DIM}  {line}{DIM:#}\n", ""));
    }
}
