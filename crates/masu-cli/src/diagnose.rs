//! `masu diagnose`: why a program is slow, with evidence and what to do.
//!
//! Relies on the lab for every number and every judgement; here they become a page or JSON. The reader has
//! a slow program and little time: the cause comes first, in one sentence.

mod prove;
mod trial;

use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use masu_lab::diagnose::{
    self, Facts, Finding, Hold, Kind, Means, Options, Remedy, RemedyKind, Step,
};
use masu_lab::report::{bytes, notice, width};
use masu_lab::{Diagnosis, Limits, Stop, Workload};

use crate::compare::own_input;
use crate::doctor::wrapped;
use crate::exit::Ending;
use crate::progress::Ticking;
use crate::{arguments, aside, carried};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const CAUSE: Style = AnsiColor::Red.on_default().bold();
const REMARK: Style = AnsiColor::Yellow.on_default().bold();
const CLEAR: Style = AnsiColor::Green.on_default().bold();

/// How long a process that runs already is looked at.
const USUAL_PATIENCE: Duration = Duration::from_secs(5);

/// Diagnoses and prints.
pub(crate) fn perform(arguments: arguments::Diagnose) -> Result<Ending> {
    if arguments.pid.is_none() && (arguments.attach || arguments.patience.is_some()) {
        let option = if arguments.attach { "--attach" } else { "--for" };
        bail!(
            "{option} is about a process that runs already: give its number with -p PID (`pidof NAME` says it), \
             and no program"
        );
    }
    let stop = Stop::on_signals()?;
    let json = arguments.json;
    let diagnosis = match arguments.pid {
        Some(pid) => of_process(pid, &arguments, &stop)?,
        None => of_command(arguments, &stop)?,
    };
    let page = if json {
        format!("{}\n", serde_json::to_string_pretty(&diagnosis).context("writing JSON")?)
    } else {
        page(&diagnosis)
    };
    write!(anstream::stdout(), "{page}").context("printing the diagnosis")?;
    Ok(if diagnose::was_stopped(&diagnosis) { Ending::Stopped } else { Ending::Done })
}

fn of_process(pid: u32, arguments: &arguments::Diagnose, stop: &Stop) -> Result<Diagnosis> {
    let patience = arguments.patience.unwrap_or(USUAL_PATIENCE);
    let hold = if arguments.attach { Hold::Attached } else { Hold::None };
    aside::say(notice(&match hold {
        Hold::None => format!("Looking at process {pid}."),
        Hold::Attached => format!(
            "Attaching to process {pid} for {}: it is stopped at every system call until then, and \
             slower. Ctrl-C lets it go at once.",
            seconds(patience.as_secs_f64())
        ),
    }));
    Ok(diagnose::diagnose_running(pid, patience, hold, stop)?)
}

fn of_command(arguments: arguments::Diagnose, stop: &Stop) -> Result<Diagnosis> {
    let arguments::Diagnose {
        variant,
        inside,
        prove,
        once,
        terminal,
        timeout,
        memory_limit,
        words,
        ..
    } = arguments;
    let workload = Workload::new(words, own_input()?)?;
    let asked = std::slice::from_ref(&variant);
    let mut catalogue = carried::catalogue_for(asked, &workload.program)?;
    let variant = catalogue.resolve(&variant, &workload.program)?;
    if inside || prove {
        catalogue = carried::catalogue(workload.program.libc)?;
    } else if !once && let Ok(whole) = carried::catalogue(workload.program.libc) {
        catalogue = whole;
    }
    let inside = if inside {
        workload.program.preloadable()?;
        Some(Means {
            masu: Some(catalogue.resolve(&"masu".parse()?, &workload.program)?),
            counting: Some(carried::counting(workload.program.libc)?),
        })
    } else {
        None
    };
    let limits = Limits { time: timeout, memory_bytes: memory_limit };
    let options = Options { limits, inside, terminal };
    let mut clock = None;
    let mut tell = |step: Step| match step {
        Step::Run => {
            aside::say(notice("Running it once, counted."));
            clock = Ticking::on_stderr();
        }
        Step::Inside => aside::say(notice("Running it twice more, to look inside.")),
        Step::Prices => {
            clock = None;
            aside::say(notice("Measuring what that costs here."));
        }
        _ => {}
    };
    let diagnosis = masu_lab::diagnose(&workload, &variant, &catalogue, &options, stop, &mut tell);
    drop(clock);
    let mut diagnosis = diagnosis?;
    if prove && !stop.requested() {
        diagnosis.proof = prove::perform(&diagnosis, &workload, &variant, &catalogue, stop)?;
    } else if !once && !stop.requested() {
        trial::perform(&mut diagnosis, &workload, &variant, &catalogue, stop);
    }
    Ok(diagnosis)
}

fn page(diagnosis: &Diagnosis) -> String {
    let mut page = format!("{BOLD}{}{BOLD:#}\n", shortened(&diagnosis.command, width()));
    for line in wrapped(&ran(diagnosis), width()) {
        page.push_str(&format!("{DIM}{line}{DIM:#}\n"));
    }
    let names_places =
        diagnosis.findings.iter().any(|finding| finding.id == diagnose::Id::CpuBound);
    let places = diagnosis.facts.sampled().map(|sampled| sampled.told()).unwrap_or_default();
    if !names_places && !places.is_empty() {
        for line in wrapped(&format!("Most of its own code's time: {places}."), width()) {
            page.push_str(&format!("{DIM}{line}{DIM:#}\n"));
        }
    }
    let mut said = Vec::new();
    for finding in &diagnosis.findings {
        page.push('\n');
        told(&mut page, finding, &diagnosis.command, &mut said);
    }
    if diagnosis.findings.is_empty() {
        let why = match diagnosis.facts.ending {
            Some(_) => "it is over too soon, or its time goes into many things",
            None => "in this time it did little, or many things",
        };
        page.push_str(&format!("\nNothing stands out: {why}.\n"));
    }
    if let Some(proof) = &diagnosis.proof {
        page.push_str(&prove::told(proof));
    }
    if !diagnosis.not_seen.is_empty() {
        page.push_str(&format!("\n{BOLD}Not seen{BOLD:#}\n"));
    }
    for one in &diagnosis.not_seen {
        listed(&mut page, "- ", one);
    }
    page
}

/// How the run went, in one line.
fn ran(diagnosis: &Diagnosis) -> String {
    let Facts { ending, clock, memory, threads, .. } = &diagnosis.facts;
    let mut parts = Vec::new();
    match ending {
        Some(ending) => parts.push(format!("It {ending} after {}", seconds(clock.wall_s))),
        None => parts.push(format!("Looked at for {}", seconds(clock.wall_s))),
    }
    if clock.counting_s >= 0.01 * clock.wall_s {
        parts.push(format!("about {} of it for counting", seconds(clock.counting_s)));
    }
    parts.push(format!("CPU {} user, {} kernel", seconds(clock.user_s), seconds(clock.sys_s)));
    parts.push(format!("{} at the peak", bytes(memory.peak_rss_bytes as f64)));
    if threads.most_at_once > 1 {
        parts.push(format!("{} threads", threads.most_at_once));
    }
    if diagnosis.variant != "system" {
        parts.push(format!("under {}", diagnosis.variant));
    }
    let mut said = format!("{}.", parts.join("; "));
    let others = &diagnosis.facts.others;
    if others.taken_share() >= BUSY_SAID {
        let taken = 100.0 * others.taken_share();
        said.push_str(&format!(" The machine was busy: others had {taken:.0} % of its CPUs"));
        if clock.queued_s >= 0.01 * clock.wall_s {
            let waited = seconds(clock.queued_s);
            said.push_str(&format!(", and the program's threads waited {waited} for one"));
        }
        said.push('.');
    }
    said
}

/// From this share of the CPUs on, what others took is said.
const BUSY_SAID: f64 = 0.1;

/// A finding, and its remedies where no finding before it named them.
fn told(page: &mut String, finding: &Finding, command: &[String], said: &mut Vec<String>) {
    let style = match finding.id.kind() {
        Kind::Failure | Kind::Cause => CAUSE,
        Kind::Remark => REMARK,
        Kind::AllClear => CLEAR,
    };
    for line in wrapped(&finding.title, width()) {
        page.push_str(&format!("{style}{line}{style:#}\n"));
    }
    let mut about = vec![finding.id.name().to_owned()];
    if let Some(share) = finding.share {
        let of = match finding.id {
            diagnose::Id::Growth
            | diagnose::Id::Retention
            | diagnose::Id::HugePageWaste
            | diagnose::Id::Swap => "memory",
            _ => "the run",
        };
        about.push(format!("{:.0} % of {of}", share * 100.0));
    }
    about.push(format!("confidence {}", finding.confidence.name()));
    page.push_str(&format!("  {DIM}{}{DIM:#}\n", about.join(" · ")));
    for one in &finding.evidence {
        listed(page, "  - ", one);
    }
    for remedy in &finding.remedies {
        let key = remedy.variant.clone().unwrap_or_else(|| remedy.what.clone());
        if !said.contains(&key) {
            said.push(key);
            remedied(page, remedy, command);
        }
    }
}

fn remedied(page: &mut String, remedy: &Remedy, command: &[String]) {
    let kind = match remedy.kind {
        RemedyKind::Setting => "setting",
        RemedyKind::Allocator => "allocator",
        RemedyKind::NeedsCode => "needs code",
    };
    listed(page, "  → ", &format!("{kind}: {}", remedy.what));
    if let Some(variant) = &remedy.variant {
        let start = match variant.as_str() {
            "masu" => "masu run -- ".to_owned(),
            _ => format!("masu run -a {variant} -- "),
        };
        // A line to paste stays a line, however long.
        page.push_str(&format!("      {BOLD}{start}{}{BOLD:#}\n", shortened(command, width() / 2)));
    }
    if let Some(paste) = remedy.paste.as_ref().filter(|paste| !paste.is_empty()) {
        page.push_str(&format!("      {BOLD}{paste}{BOLD:#}\n"));
    }
    let costs_nothing = remedy.kind == RemedyKind::NeedsCode;
    if !costs_nothing {
        listed(page, "      ", &format!("cost: {}", remedy.cost));
    }
}

/// Text in lines, the first of which begins with `mark`.
fn listed(page: &mut String, mark: &str, text: &str) {
    let indent = mark.chars().count();
    for (index, line) in wrapped(text, width() - indent).iter().enumerate() {
        let front = if index == 0 { mark.to_owned() } else { " ".repeat(indent) };
        page.push_str(&format!("{front}{line}\n"));
    }
}

/// The command as a shell would take it, cut to about `width`.
fn shortened(command: &[String], width: usize) -> String {
    let mut line = String::new();
    for word in command {
        let word = quoted(word);
        if !line.is_empty() {
            line.push(' ');
        }
        if line.chars().count() + word.chars().count() > width && !line.is_empty() {
            line.push('…');
            break;
        }
        line.push_str(&word);
    }
    line
}

/// A word in quotes where a shell would not take it as it is; what would move a cursor is left out.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let shown: String = word.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if !shown.is_empty() && shown.chars().all(plain) {
        shown
    } else {
        format!("'{}'", shown.replace('\'', "'\\''"))
    }
}

fn seconds(value: f64) -> String {
    match value {
        _ if value < 0.0995 => format!("{:.0} ms", value * 1e3),
        _ if value < 9.995 => format!("{value:.2} s"),
        _ => format!("{value:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use masu_lab::diagnose::facts::{Clock, Memory};
    use masu_lab::diagnose::{Confidence, Id};

    use super::*;

    fn finding(id: Id, title: &str, share: Option<f64>, remedies: Vec<Remedy>) -> Finding {
        let evidence = vec!["17,100 brk, up and down = 17.1 ms".to_owned()];
        let confidence = Confidence::High;
        Finding { id, title: title.to_owned(), confidence, share, evidence, remedies }
    }

    #[test]
    fn the_cause_stands_first_with_the_line_to_paste() {
        let setting = Remedy {
            kind: RemedyKind::Setting,
            rung: 2,
            what: "keep free memory".to_owned(),
            variant: Some("glibc:top_pad=64M,trim_threshold=64M".to_owned()),
            cost: "64.0 MiB stay resident".to_owned(),
            paste: Some("GLIBC_TUNABLES=glibc.malloc.top_pad=67108864".to_owned()),
        };
        let allocator = Remedy {
            kind: RemedyKind::Allocator,
            rung: 3,
            what: "a malloc that adapts".to_owned(),
            variant: Some("masu".to_owned()),
            cost: "another malloc under the program".to_owned(),
            paste: None,
        };
        let storm = "It gives memory back and asks for it again, 17,100 times";
        let remedies = vec![setting, allocator.clone()];
        let diagnosis = Diagnosis {
            schema: "masu-diagnosis",
            version: 1,
            command: ["sed", "-rf", "primes 49.sed"].map(str::to_owned).to_vec(),
            variant: "system".to_owned(),
            changed: Vec::new(),
            findings: vec![
                finding(Id::HeapCallStorm, storm, Some(0.2), remedies),
                finding(Id::MallocLock, "Threads wait", Some(0.1), vec![allocator]),
            ],
            not_seen: vec!["/usr/bin/sudo as it is: it is setuid".to_owned()],
            proof: None,
            trial: None,
            facts: Facts {
                ending: Some("returned 0".to_owned()),
                clock: Clock {
                    wall_s: 27.34,
                    user_s: 23.0,
                    sys_s: 3.48,
                    counting_s: 0.4,
                    ..Clock::default()
                },
                memory: Memory { peak_rss_bytes: 36 << 20, ..Memory::default() },
                ..Facts::default()
            },
        };
        let page = anstream::adapter::strip_str(&page(&diagnosis)).to_string();
        snapbox::assert_data_eq!(page, snapbox::file!["diagnose/tests/storm.txt"]);
    }

    #[test]
    fn words_are_shown_as_a_shell_takes_them() {
        assert_eq!(quoted("--x=/a/b"), "--x=/a/b");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("a\u{1b}[2J"), "'a [2J'");
        assert_eq!(quoted(""), "''");
        let words = ["prog", "a", "b c", "d"].map(str::to_owned);
        assert_eq!(shortened(&words, 80), "prog a 'b c' d");
        assert_eq!(shortened(&words, 8), "prog a …");
    }
}
