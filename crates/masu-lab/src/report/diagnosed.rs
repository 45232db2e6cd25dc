//! The page of a diagnosis: the cause first, in one sentence, then the evidence and the remedies.

use super::drawn::figure;
use super::{plot, proof};
use crate::Measure;
use crate::diagnose::{Diagnosis, Facts, Finding, Id, Kind, Remedy, RemedyKind};
use crate::page::{Block, Heading, Page, Point, Text, Tone};
use masu_run::Run;
use masu_run::quantity::{bytes, seconds};
use masu_run::workload::{COMMAND_LINES, shortened};

mod terms;

/// The page for `diagnosis`, its command cut to about so many `columns`.
#[must_use]
pub fn diagnosed(diagnosis: &Diagnosis, columns: usize) -> Page {
    let command = shortened(&diagnosis.command, columns);
    let mut page = Page { title: format!("Why {command} is slow"), ..Page::default() };
    page.heading(1, Text::code(command));
    page.say(ran(diagnosis), Tone::Dim);
    if let Some((busy, tone)) = busy(&diagnosis.facts) {
        page.say(busy, tone);
    }
    let names_places = diagnosis.findings.iter().any(|finding| finding.id == Id::CpuBound);
    let places = diagnosis.facts.sampled().map(|sampled| sampled.listing()).unwrap_or_default();
    if !names_places && !places.is_empty() {
        page.say(format!("Its own code's time, above all: {places}."), Tone::Dim);
    }
    page.blocks.extend(findings(&diagnosis.findings, &diagnosis.command, columns));
    if diagnosis.findings.is_empty() {
        let why = match diagnosis.facts.ending {
            Some(_) => "it is over too soon, or its time goes into many things",
            None => "in this time it did little, or many things",
        };
        page.push(Block::Gap);
        page.say(format!("Nothing stands out: {why}."), Tone::Plain);
    }
    page.blocks.extend(drawn(diagnosis));
    if let Some(proof) = &diagnosis.proof {
        page.push(Block::Gap);
        page.heading(2, format!("Proof, by {} runs", proof.runs));
        proof::statements(&mut page, proof, str::to_owned);
    }
    let terms = terms::explained(&diagnosis.findings);
    if !terms.is_empty() {
        page.push(Block::Gap);
        page.heading(2, "Terms");
        page.push(Block::Statements(terms));
    }
    if !diagnosis.not_seen.is_empty() {
        page.push(Block::Gap);
        page.heading(2, "Not seen");
        page.push(Block::List(diagnosis.not_seen.iter().map(|one| unseen(one)).collect()));
    }
    page.foot = format!("Made by masu diagnose {}", env!("CARGO_PKG_VERSION")).into();
    page
}

/// The plots of the time in the program's own code, and of resident memory over time.
fn drawn(diagnosis: &Diagnosis) -> Vec<Block> {
    let facts = &diagnosis.facts;
    let sampled = facts.samples.as_ref();
    let caption = "CPU time by function: boxes stand on their callers".to_owned();
    let flame = figure("cpu", caption, |id, screen| {
        let sampled = sampled?;
        plot::flame(id, &sampled.stacks, sampled.samples, screen)
    });
    let rss_over_time = facts.rss_over_time.clone();
    let run = Run { rss_over_time, wall_s: facts.clock.wall_s, ..Run::default() };
    let label = [diagnosis.variant.clone()];
    let caption = "Resident memory over time, from 0 up".to_owned();
    let memory = figure("rss", caption, |id, screen| {
        plot::memory(id, Measure::Wall, &label, &[&run], screen)
    });
    flame.into_iter().chain(memory).collect()
}

/// The findings, each with those of its remedies that no finding before it named.
pub(crate) fn findings<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    command: &[String],
    columns: usize,
) -> Vec<Block> {
    let mut said: Vec<&str> = Vec::new();
    let mut blocks = Vec::new();
    for finding in findings {
        let mut points: Vec<Point> = finding
            .evidence
            .iter()
            .map(|one| Point { text: one.as_str().into(), ..Point::default() })
            .collect();
        for remedy in &finding.remedies {
            let key = remedy.variant.as_ref().unwrap_or(&remedy.what);
            if !said.contains(&key.as_str()) {
                said.push(key);
                points.push(remedied(remedy, command, columns));
            }
        }
        let tone = match finding.id.kind() {
            Kind::Failure | Kind::Cause => Tone::Bad,
            Kind::Remark => Tone::Caution,
            Kind::AllClear => Tone::Good,
        };
        let (text, below) = (finding.title.as_str().into(), about(finding).into());
        blocks.push(Block::Gap);
        blocks.push(Block::Heading(Heading { level: 2, text, tone, below, id: String::new() }));
        blocks.push(Block::List(points));
    }
    blocks
}

/// A sentence about a thing that was not seen; a command at its end has a line of its own, to be copied.
fn unseen(sentence: &str) -> Point {
    let parts = sentence.strip_suffix('`').and_then(|rest| rest.split_once(": `"));
    let (text, command) = parts.map_or((sentence, None), |(text, command)| (text, Some(command)));
    let code = command.into_iter().map(str::to_owned).collect();
    Point { text: text.into(), code, ..Point::default() }
}

/// `heap-call-storm · 20 % of the run · confidence high`.
fn about(finding: &Finding) -> String {
    let mut about = vec![finding.id.name().to_owned()];
    if let Some(share) = finding.share {
        let of = match finding.id {
            Id::Growth | Id::Retention | Id::HugePageWaste | Id::Swap => "memory",
            _ => "the run",
        };
        about.push(format!("{:.0} % of {of}", share * 100.0));
    }
    about.push(format!("confidence {}", finding.confidence.name()));
    about.join(" · ")
}

fn remedied(remedy: &Remedy, command: &[String], columns: usize) -> Point {
    let kind = match remedy.kind {
        RemedyKind::Setting => "setting",
        RemedyKind::Allocator => "allocator",
        RemedyKind::NeedsCode => "needs code",
    };
    let run = remedy.variant.as_ref().map(|variant| {
        let variant = if variant == "masu" { String::new() } else { format!("-a {variant} ") };
        // A line to paste is whole, unless it would fill a screen.
        format!(
            "masu run {variant}-- {}",
            shortened(command, columns.saturating_mul(COMMAND_LINES))
        )
    });
    let paste = remedy.paste.clone().filter(|paste| !paste.is_empty());
    let has_cost = remedy.kind != RemedyKind::NeedsCode;
    Point {
        text: format!("{kind}: {}", remedy.what).into(),
        is_advice: true,
        code: run.into_iter().chain(paste).collect(),
        more: if has_cost { format!("cost: {}", remedy.cost).into() } else { Text::default() },
    }
}

fn ran(diagnosis: &Diagnosis) -> String {
    let Facts { ending, clock, memory, threads, calls, .. } = &diagnosis.facts;
    let peak = memory.peak_rss_bytes as f64;
    let mut parts = Vec::new();
    match ending {
        Some(ending) => parts.push(format!("It {ending} after {}", seconds(clock.wall_s))),
        None => parts.push(format!("Looked at for {}", seconds(clock.wall_s))),
    }
    if clock.counting_s >= 0.01 * clock.wall_s {
        parts.push(format!("of that, counting took about {}", seconds(clock.counting_s)));
    }
    if clock.counted_run_s > 0.0 {
        let counted = seconds(clock.counted_run_s);
        parts.push(format!("its calls were counted in another run, which took {counted}"));
    }
    // Findings are about the time without stops, which are the kernel's.
    let stops_s = clock.sys_s - clock.own_sys_s;
    let stops = if stops_s >= 0.01 * (clock.user_s + clock.sys_s) && stops_s > 0.0 {
        format!(" (about {} of it for counting)", seconds(stops_s))
    } else {
        String::new()
    };
    parts.push(format!(
        "CPU {} user, {} kernel{stops}",
        seconds(clock.user_s),
        seconds(clock.sys_s)
    ));
    parts.push(format!("{} at the peak", bytes(peak)));
    let named = diagnosis.findings.iter().any(|one| one.id == Id::Growth);
    if let Some(growth) = memory.growth.filter(|growth| growth.bytes >= GREW && !named) {
        let rate = bytes(growth.bytes as f64 / growth.over_s.max(1e-3));
        parts.push(format!("grew the whole time, {rate} a second"));
    }
    if threads.most_at_once > 1 {
        let has_children = calls.as_ref().is_some_and(|calls| calls.processes > 1);
        let of = if has_children { " of all its processes" } else { "" };
        parts.push(format!("{} threads{of}", threads.most_at_once));
    }
    if diagnosis.variant != "system" {
        parts.push(format!("under {}", diagnosis.variant));
    }
    format!("{}.", parts.join("; "))
}

/// The sentence about other programs' use of the machine, with its consequence for the page.
fn busy(facts: &Facts) -> Option<(String, Tone)> {
    let Facts { others, clock, .. } = facts;
    if others.taken_share() < BUSY_SAID {
        return None;
    }
    let mut said = format!(
        "The machine was busy: other programs used {:.0} % of its CPUs",
        100.0 * others.taken_share()
    );
    if clock.queued_s >= 0.01 * clock.wall_s {
        let (waited, worked) = (seconds(clock.queued_s), seconds(clock.user_s + clock.sys_s));
        said.push_str(&format!(
            ", and the program waited {waited} for one and had one for {worked}"
        ));
    }
    let (rest, tone) = match others.is_busy() {
        true if others.starves() => {
            (". Little of what follows is sure. Ask again on a quiet machine.", Tone::Caution)
        }
        true => (". So what follows is less sure.", Tone::Caution),
        false => (".", Tone::Dim),
    };
    Some((said + rest, tone))
}

/// Growth by less than this is not mentioned.
const GREW: u64 = 64 << 20;

/// The use of CPUs by others is mentioned from this share on.
const BUSY_SAID: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Confidence;
    use crate::diagnose::facts::{CallFacts, Clock, Memory, Others};
    use crate::page::Form;
    use crate::report::fixtures;

    fn finding(id: Id, title: &str, share: Option<f64>, remedies: Vec<Remedy>) -> Finding {
        let evidence = vec!["17,100 brk, up and down = 17.1 ms".to_owned()];
        let confidence = Confidence::High;
        Finding { id, title: title.to_owned(), confidence, share, evidence, remedies }
    }

    fn storm() -> Diagnosis {
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
        let command = ["sed", "-rf", "primes 49.sed"].map(str::to_owned).to_vec();
        let facts = Facts {
            ending: Some("returned 0".to_owned()),
            clock: Clock {
                wall_s: 27.34,
                user_s: 23.0,
                sys_s: 3.48,
                own_sys_s: 3.08,
                counting_s: 0.4,
                ..Clock::default()
            },
            memory: Memory { peak_rss_bytes: 36 << 20, ..Memory::default() },
            ..Facts::default()
        };
        let findings = vec![
            finding(Id::HeapCallStorm, storm, Some(0.2), remedies),
            finding(Id::MallocLock, "Threads wait", Some(0.1), vec![allocator]),
        ];
        let not_seen = vec!["/usr/bin/sudo as it is: it is setuid".to_owned()];
        Diagnosis::of(command, facts, findings, not_seen)
    }

    #[test]
    fn the_cause_stands_first_with_the_line_to_paste() {
        let page = diagnosed(&storm(), 80);
        snapbox::assert_data_eq!(
            fixtures::plain(&page),
            snapbox::file!["diagnosed/tests/storm.txt"]
        );
        let markdown = page.render(Form::Markdown, "");
        snapbox::assert_data_eq!(markdown, snapbox::file!["diagnosed/tests/storm.md"].raw());
        let html = page.render(Form::Html, "");
        assert_eq!(fixtures::elements(&fixtures::parsed(&html), "pre"), 2);
        assert!(html.contains("<li class=\"advice\">setting: keep free memory<pre><code>masu run"));
    }

    #[test]
    fn threads_of_several_processes_are_not_those_of_one() {
        let said = |processes| {
            let mut diagnosis = storm();
            diagnosis.facts.threads.most_at_once = 4;
            diagnosis.facts.calls = Some(CallFacts { processes, ..CallFacts::default() });
            ran(&diagnosis).contains("4 threads of all its processes")
        };
        assert!(said(2) && !said(1), "the first process is counted");
    }

    #[test]
    fn a_busy_machine_is_reported_before_any_finding() {
        let said = |share, waited_share| {
            let mut diagnosis = storm();
            diagnosis.facts.others =
                Others { share: Some(share), waited_share, ..Others::default() };
            diagnosis.facts.clock.queued_s = 20.0;
            let text = diagnosed(&diagnosis, 80).render(Form::Markdown, "");
            let before = text.split("It gives memory back").next().unwrap();
            let line = before.lines().find(|line| line.contains("busy")).unwrap_or_default();
            line.to_owned()
        };
        assert_eq!(said(0.05, 0.4), "");
        assert!(said(0.2, 0.1).contains("waited 20.00 s for one and had one for 26.48 s."));
        assert!(said(0.5, 0.2).contains("less sure"));
        assert!(said(0.93, 0.9).contains("Little of what follows is sure"));
    }

    #[test]
    fn a_line_to_paste_is_whole_though_it_fills_a_line() {
        let mut diagnosis = storm();
        diagnosis.command = vec!["sh".to_owned(), "-c".to_owned(), "echo; ".repeat(20)];
        let text = fixtures::plain(&diagnosed(&diagnosis, 80));
        assert!(text.starts_with("sh -c …\n"), "{text}");
        let script = format!("-- sh -c '{}'\n", "echo; ".repeat(20));
        assert!(text.contains(&script), "{text}");
    }
}
