//! The page of a tuning: the result of fresh runs, the smallest change worth making as lines to paste, and the variants
//! tried.
//!
//! Figures that chose and figures that count stand apart, and only the second have intervals.

use std::collections::BTreeSet;

use super::drawn::capital;
use super::measure;
use super::proof::statements;
use crate::Measure;
use crate::page::{Block, Page, Statement, Text, Tone, width};
use crate::prove::{Proof, Proved, Shown};
use crate::results::LeftOut;
use crate::statistics::Ratio;
use crate::tune::{Change, Form, Goal, NEARLY_ALL, Others, Smaller, Tried, Tuning};
use crate::written::written_budget;
use masu_run::quantity;
use masu_run::verify::NEVER_ASKED;
use masu_run::workload::{COMMAND_LINES, quoted, shortened};

/// The most names that are listed of variants that may be better.
const DOUBTFUL_MOST: usize = 3;

/// The page for `tuning` with lines to paste in these forms.
pub fn tuned(tuning: &Tuning, forms: &[Form]) -> Page {
    let command = shortened(&tuning.command, COMMAND_LINES * width());
    let mut page = Page { title: format!("Tuning {command}"), ..Page::default() };
    page.heading(1, Text::code(command));
    let text = format!(
        "Tuned for {}: {}, {} runs in {:.0} s of {:.0} s, {}.{}",
        measure::name(tuning.goal.primary()),
        how_many(tuning),
        quantity::count(tuning.runs as f64),
        tuning.spent_s,
        tuning.budget_s,
        if tuning.stages == 1 { "1 stage".to_owned() } else { format!("{} stages", tuning.stages) },
        if never_asks(tuning) { String::new() } else { how_sure(tuning) }
    );
    page.say(text, Tone::Dim);
    if !tuning.repeatable {
        let text = "not repeatable: output or exit codes differed; what follows holds only if every run \
                    did the same work, see --prepare and --scratch";
        page.note("Warning", text, Tone::Plain);
    }
    page.push(Block::Gap);
    match &tuning.confirmation {
        Some(proof) => confirmed(&mut page, tuning, proof),
        None if tuning.stopped && tuning.tried.is_empty() => {
            page.say("Stopped before any variant was tried.", Tone::Plain);
        }
        None if tuning.stopped => page
            .say("Stopped before anything was confirmed: what follows are guesses.", Tone::Plain),
        None => page.say(nothing_left(tuning), Tone::Plain),
    }
    if !never_asks(tuning) {
        more_time(&mut page, tuning);
    }
    if let Some(change) = &tuning.change {
        forms.iter().for_each(|form| pasted(&mut page, change, *form));
    }
    let rest = rest(tuning);
    if !rest.is_empty() {
        page.push(Block::Gap);
        page.push(Block::Statements(rest));
    }
    page
}

/// The reason why a search that was not stopped left nothing to confirm.
fn nothing_left(tuning: &Tuning) -> String {
    if !tuning.tried.is_empty() {
        let what = measure::name(tuning.goal.primary());
        return format!(
            "Nothing that was tried has a ratio of {what}, which is zero or too small to be seen; tune for something \
             else (--primary), or give the program more to do."
        );
    }
    match tuning.not_tried.is_empty() {
        true => "Nothing that was tried could take part.".to_owned(),
        false => "There was no time to try anything; allow more.".to_owned(),
    }
}

/// `27 of 32 variants tried`.
fn how_many(tuning: &Tuning) -> String {
    let not_tried = tuning.not_tried.len() + tuning.passed_over.len();
    let confirmed = tuning.confirmation.iter().flat_map(|proof| &proof.remedies);
    let labels = tuning.tried.iter().map(|one| one.variant.as_str());
    let labels = labels.chain(confirmed.map(|one| one.medians.label.as_str()));
    let is_in = |label: &&str| !tuning.left_out.iter().any(|one| one.label == *label);
    let tried = labels.filter(is_in).collect::<BTreeSet<_>>().len();
    let all = tried + not_tried;
    let how_many = match (tried, not_tried) {
        (1, 0) => "the one variant tried".to_owned(),
        (_, 0) => format!("all {all} variants tried"),
        _ => format!("{tried} of {all} variants tried"),
    };
    // A single run chose these variants: less is known of them than of the others.
    let once = others(tuning).filter(|one| one.rounds == 1).count();
    if once == 0 { how_many } else { format!("{how_many} ({once} of them once)") }
}

/// The variants that were tried, and neither confirmed nor left out.
fn others(tuning: &Tuning) -> impl Iterator<Item = &Tried> {
    let confirmed = tuning.confirmation.iter().flat_map(|proof| &proof.remedies);
    let mut known: BTreeSet<&str> = confirmed.map(|it| it.medians.label.as_str()).collect();
    known.extend(tuning.left_out.iter().map(|one| one.label.as_str()));
    tuning.tried.iter().filter(move |it| !known.contains(it.variant.as_str()))
}

/// The certainty that no better variant is among those tried and not confirmed, and those not tried; empty if there are
/// none of either.
fn how_sure(tuning: &Tuning) -> String {
    let mut said = Vec::new();
    if let Some(Others { count, by, sure, doubtful }) = &tuning.others {
        let by = quantity::percent(*by);
        said.push(match doubtful.len() {
            0 => format!(
                "{:.0} % sure that none of the others tried ({count}) is better by {by} or more",
                sure * 100.0
            ),
            few => format!("of the others tried ({count}) {few} may be better by {by} or more"),
        });
    }
    // The variants that were passed over had no run either.
    let unknown = tuning.not_tried.len() + tuning.passed_over.len();
    if unknown > 0 {
        said.push(format!("nothing is known of what was not tried ({unknown})"));
    }
    if said.is_empty() { String::new() } else { format!(" {}.", capital(&said.join("; "))) }
}

/// Whether the program never asked for memory: then more runs can show nothing either.
fn never_asks(tuning: &Tuning) -> bool {
    let mut warnings = tuning.confirmation.iter().flat_map(|proof| &proof.warnings);
    tuning.change.is_none() && warnings.any(|warning| warning.contains(NEVER_ASKED))
}

fn more_time(page: &mut Page, tuning: &Tuning) {
    if let Some(Others { doubtful, .. }) =
        tuning.others.as_ref().filter(|it| !it.doubtful.is_empty())
    {
        let few: Vec<&str> = doubtful.iter().take(DOUBTFUL_MOST).map(String::as_str).collect();
        let more = doubtful.len().saturating_sub(DOUBTFUL_MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text =
            format!("More time would tell whether these are better: {}{more}.", few.join("; "));
        page.say(text, Tone::Plain);
    }
    if let Some(enough_s) = tuning.enough_s {
        let text = format!("--budget {} has room for all.", written_budget(enough_s));
        page.say(text, Tone::Strong);
    }
}

/// The result of fresh runs, and the verdict on all of it.
fn confirmed(page: &mut Page, tuning: &Tuning, proof: &Proof) {
    let mark = |label: &str| {
        let is_on = tuning.front.iter().any(|on| on == label);
        format!("{} {label}", if is_on { "*" } else { " " })
    };
    let mut said = Page::default();
    statements(&mut said, proof, mark);
    let (statements, remarks): (Vec<Block>, Vec<Block>) =
        said.blocks.into_iter().partition(|block| matches!(block, Block::Statements(_)));
    page.blocks.extend(statements);
    let text = format!(
        "By {} rounds of fresh runs; × the reference, surely ({:.0} %) between the figures in brackets. \
         * on the front: nothing here is better in time or memory and not worse in the other.",
        proof.rounds,
        proof.confidence * 100.0
    );
    page.say(text, Tone::Dim);
    page.blocks.extend(remarks);
    page.push(Block::Gap);
    match &tuning.change {
        Some(change) => worth_making(page, tuning.goal, change),
        None => leave_it(page, tuning, proof),
    }
}

fn worth_making(page: &mut Page, goal: Goal, change: &Change) {
    let Change { variant, best, share, is_shown, .. } = change;
    let against = change.against.and_then(|ratio| ratio.interval);
    let is_smallest =
        change.smaller.iter().all(|one| one.between.is_some_and(|(_, high)| high < NEARLY_ALL));
    let text = match (variant == best, is_smallest) {
        (true, true) => {
            format!("The smallest change that gets nearly all there is to gain: {variant}")
        }
        (true, false) => format!("The change that gains most: {variant}"),
        (false, _) => {
            let claim = if *is_shown { "gets" } else { "may get" };
            let beside = match against {
                None => "; too few runs to be sure".to_owned(),
                Some((_, high)) if *is_shown && high < 1.001 => {
                    ", and surely takes no more".to_owned()
                }
                Some((_, high)) if *is_shown => {
                    format!(
                        ", and surely takes no more than {} more",
                        quantity::percent(high - 1.0)
                    )
                }
                Some((low, high)) => format!(
                    ", and takes {} to {} times as much",
                    quantity::ratio(low),
                    quantity::ratio(high)
                ),
            };
            format!(
                "The smallest change that {claim} nearly all there is to gain: {variant} ({:.0} % of what \
                 {best} gains{beside})",
                share * 100.0
            )
        }
    };
    page.say(text, Tone::Good);
    let surely = |ratio: &Ratio| ratio.interval.is_some_and(|(low, high)| high < 1.0 || low > 1.0);
    if let Some(price) = change.price.filter(surely) {
        let what = measure::name(goal.other());
        let text = format!("It takes {}× the {what}.", quantity::ratio(price.estimate));
        page.say(text, Tone::Plain);
    }
    let smaller: Vec<String> = change.smaller.iter().map(part).collect();
    if !smaller.is_empty() {
        let verb = if is_smallest { "have a part of the gain" } else { "may do as well" };
        let text = format!("Smaller changes {verb}: {}.", smaller.join("; "));
        page.say(text, Tone::Plain);
    }
    page.say(format!("To try it: masu run -a {} -- PROGRAM", quoted(&change.run)), Tone::Plain);
}

/// `glibc:arenas=1 (24–36 %)`.
fn part(smaller: &Smaller) -> String {
    let Smaller { variant, share, between } = smaller;
    match between {
        Some((low, high)) => {
            format!("{variant} (between {:.0} and {:.0} % of it)", low * 100.0, high * 100.0)
        }
        None => format!("{variant} ({:.0} %, by too few runs to be sure)", share * 100.0),
    }
}

/// No variant gains: the evidence for that, and other places where there may be a gain.
fn leave_it(page: &mut Page, tuning: &Tuning, proof: &Proof) {
    if never_asks(tuning) {
        page.say(format!("Leave it as it is: {NEVER_ASKED}."), Tone::Strong);
        return;
    }
    let what = measure::name(proof.primary);
    let few = |it: &Proved| matches!(it.shown, Shown::TooFewRuns { .. });
    let has_none = |it: &Proved| matches!(it.shown, Shown::NoRatio | Shown::RunsFailed { .. });
    let seen = proof.remedies.iter().filter_map(|it| match it.shown {
        Shown::NoDifference { could_have_seen } => Some(could_have_seen),
        _ => None,
    });
    let seen = seen.fold(None, |most: Option<f64>, one| Some(most.map_or(one, |it| it.max(one))));
    let text = match seen {
        _ if proof.remedies.iter().any(few) => {
            "There were too few runs to tell; allow more time.".to_owned()
        }
        _ if proof.remedies.iter().any(has_none) => {
            format!("No gain in {what} was shown, and none is ruled out where there is no verdict.")
        }
        Some(seen) if seen >= 1.0 => {
            let cpu = match tuning.goal {
                Goal::Wall => {
                    ", or let CPU time decide, which waiting does not lengthen (--primary cpu)"
                }
                _ => "",
            };
            format!(
                "The runs differ too much to show a gain in {what}; allow more time, or a quieter hour{cpu}."
            )
        }
        Some(seen) => format!(
            "Leave it as it is: no gain{} in {what} was shown, and one of {} would have been.",
            if proof.remedies.iter().any(|it| it.shown == Shown::Gain) {
                " of 1 % or more"
            } else {
                ""
            },
            quantity::percent(seen)
        ),
        None => format!("Leave it as it is: nothing that was tried gains 1 % or more in {what}."),
    };
    page.say(text, Tone::Strong);
    let saves = |ratio: &Ratio| ratio.interval.is_some_and(|(_, high)| high < 0.95);
    let (goal, other) = match tuning.goal {
        Goal::PeakRss => (Goal::Wall, Measure::Wall),
        goal => (Goal::PeakRss, goal.other()),
    };
    let saving = proof.remedies.iter().filter(|it| it.ratio(other).as_ref().is_some_and(saves));
    let labels: Vec<&str> = saving.map(|it| it.medians.label.as_str()).collect();
    if !labels.is_empty() {
        let text = format!(
            "There may be {} to gain ({}): --primary {} searches for that.",
            measure::name(other),
            labels.join("; "),
            goal.name()
        );
        page.say(text, Tone::Plain);
    }
}

fn rest(tuning: &Tuning) -> Vec<Statement> {
    let confirmed = tuning.confirmation.iter().flat_map(|proof| &proof.remedies);
    let confirmed: Vec<&str> = confirmed.map(|it| it.medians.label.as_str()).collect();
    let guess = |tried: &Tried| {
        let times = tried.gain(tuning.goal).map(|gain| format!(" ×{}", quantity::ratio(gain)));
        format!("{}{}", tried.variant, times.unwrap_or_default())
    };
    let tried: Vec<String> = others(tuning).map(guess).collect();
    let no_time = if never_asks(tuning) { "no time" } else { "more time: --budget" };
    let lists = [
        ("Tried too", &tried, "× by few runs, which choose and show nothing"),
        ("Not tried", &tuning.not_tried, no_time),
        (
            "Passed over",
            &tuning.passed_over,
            "settings of a malloc that was in the worse half without them",
        ),
    ];
    let lists = lists.into_iter().filter(|(_, names, _)| !names.is_empty());
    let lists = lists.map(|(label, names, why)| {
        Statement::new(label, format!("{} ({why})", names.join("; ")), Tone::Dim)
    });
    let left_out = tuning.left_out.iter().filter(|one| !confirmed.contains(&one.label.as_str()));
    let left_out = left_out.map(|LeftOut { label, reason }| {
        Statement::new(label, format!("left out: {reason}"), Tone::Dim)
    });
    lists.chain(left_out).collect()
}

fn pasted(page: &mut Page, change: &Change, form: Form) {
    let heading = match form {
        Form::Environment => "In a shell, before the command:",
        Form::Systemd => "In systemd's drop-in of a service (systemctl edit NAME):",
        Form::Docker => "In a Dockerfile:",
        Form::Kubernetes => "In Kubernetes, in the container of a pod:",
    };
    let Some(pasted) = change.paste.iter().find(|pasted| pasted.form == form) else { return };
    page.push(Block::Gap);
    page.heading(2, heading);
    page.push(Block::Code(pasted.text.lines().map(str::to_owned).collect()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Pasted, Step};

    /// A tuning in which a pair of settings gains as much as masu, or nothing gains.
    fn fixture(gains: bool) -> Tuning {
        let labels = ["glibc", "glibc:top_pad=64M,trim_threshold=64M", "masu"].map(str::to_owned);
        let mut proof = Proof { rounds: 30, ..Proof::of(&labels, Measure::Wall, None, &[]) };
        proof.reference.wall_s = Some(1.2);
        proof.reference.peak_rss_bytes = Some(28.6e6);
        let ratio = |low: f64, high: f64| {
            Some(Ratio { estimate: (low * high).sqrt(), interval: Some((low, high)), pairs: 30 })
        };
        let nothing = Shown::NoDifference { could_have_seen: 0.02 };
        for (remedy, low) in proof.remedies.iter_mut().zip([0.6, 0.59]) {
            let at = if gains { low } else { 0.99 };
            remedy.shown = if gains { Shown::Gain } else { nothing.clone() };
            (remedy.wall, remedy.peak_rss) = (ratio(at, at + 0.02), ratio(0.9, 0.91));
        }
        let change = Change {
            variant: labels[1].clone(),
            run: labels[1].clone(),
            step: Step::Settings,
            best: labels[2].clone(),
            share: 0.976,
            price: ratio(0.9, 0.91),
            against: ratio(1.0, 1.019),
            is_shown: true,
            smaller: vec![Smaller {
                variant: "glibc:arenas=1".to_owned(),
                share: 0.304,
                between: Some((0.251, 0.352)),
            }],
            paste: vec![Pasted {
                form: Form::Environment,
                text: "GLIBC_TUNABLES=glibc.malloc.top_pad=67108864".to_owned(),
            }],
        };
        let tried = Tried {
            variant: "glibc:arenas=1".to_owned(),
            step: Step::Setting,
            stage: 1,
            rounds: 3,
            time: Some(Ratio { estimate: 0.97, interval: None, pairs: 3 }),
            peak_rss: None,
            noise: None,
        };
        let reason = "it crashes".to_owned();
        Tuning {
            schema: "masu-tune",
            version: 1,
            command: ["sed", "-f", "a b"].map(str::to_owned).to_vec(),
            goal: Goal::Wall,
            budget_s: 60.0,
            spent_s: 58.4,
            runs: 214,
            stages: 4,
            stopped: false,
            repeatable: true,
            change: gains.then_some(change),
            front: vec!["masu".to_owned()],
            confirmation: Some(proof),
            tried: vec![tried],
            not_tried: vec!["jemalloc".to_owned()],
            passed_over: vec!["tcmalloc:release_rate=0".to_owned()],
            others: Some(Others { count: 1, by: 0.03, sure: 0.983, doubtful: Vec::new() }),
            enough_s: Some(250.0),
            left_out: vec![LeftOut { label: "hoard".to_owned(), reason }],
        }
    }

    fn page(tuning: &Tuning) -> String {
        crate::report::fixtures::plain(&tuned(tuning, &[Form::Environment]))
    }

    #[test]
    fn the_page_has_what_counts_then_what_to_paste_then_what_was_tried() {
        snapbox::assert_data_eq!(
            page(&fixture(true)),
            snapbox::file!["tuning/tests/page.txt"].raw()
        );
    }

    /// Checks that the page of a changed fixture has some words, and others not; line breaks count as spaces.
    #[track_caller]
    fn says(gains: bool, change: impl Fn(&mut Tuning), has: &[&str], lacks: &[&str]) {
        let mut tuning = fixture(gains);
        change(&mut tuning);
        let page = page(&tuning).replace('\n', " ");
        assert!(has.iter().all(|words| page.contains(words)), "{has:?}: {page}");
        assert!(!lacks.iter().any(|words| page.contains(words)), "{lacks:?}: {page}");
    }

    fn show_first(tuning: &mut Tuning, shown: Shown) {
        tuning.confirmation.as_mut().unwrap().remedies[0].shown = shown;
    }

    #[test]
    fn where_nothing_gains_the_page_says_so_and_where_there_is_something_else() {
        let has = [
            "Leave it as it is: no gain in wall-clock time was shown, and one of 2 % would have been.",
            "There may be peak resident memory to gain",
            "--primary peak_rss",
        ];
        says(false, |_| {}, &has, &["In a shell"]);
    }

    #[test]
    fn where_the_clock_shows_nothing_cpu_time_may() {
        let open = Shown::NoDifference { could_have_seen: 1.5 };
        let cpu = "CPU time decide, which waiting does not lengthen (--primary cpu)";
        says(false, |tuning| show_first(tuning, open.clone()), &["differ too much", cpu], &[]);
        let by_cpu = |tuning: &mut Tuning| {
            tuning.goal = Goal::Cpu;
            show_first(tuning, open.clone());
        };
        says(false, by_cpu, &["allow more time, or a quieter hour."], &[cpu]);
    }

    #[test]
    fn where_nothing_was_confirmed_the_page_says_why() {
        for (tried, not_tried, has) in [
            (true, true, "has a ratio of wall-clock time"),
            (false, true, "There was no time to try anything"),
            (false, false, "Nothing that was tried could take part"),
        ] {
            let unconfirmed = |tuning: &mut Tuning| {
                tuning.confirmation = None;
                tuning.tried.retain(|_| tried);
                tuning.not_tried.retain(|_| not_tried);
            };
            says(false, unconfirmed, &[has], &[]);
        }
    }

    #[test]
    fn a_gain_that_is_not_worth_a_line_is_not_denied() {
        let has = ["no gain of 1 % or more in wall-clock time was shown"];
        says(false, |tuning| show_first(tuning, Shown::Gain), &has, &[]);
    }

    #[test]
    fn runs_that_failed_rule_no_gain_out() {
        for shown in [Shown::RunsFailed { failed: 9, of: 30 }, Shown::NoRatio] {
            let has = ["none is ruled out where there is no verdict"];
            let lacks = ["Leave it as it is", "too few"];
            says(false, |tuning| show_first(tuning, shown.clone()), &has, &lacks);
        }
    }

    #[test]
    fn a_program_that_never_asks_for_memory_is_offered_no_more_time() {
        let never_asks = |tuning: &mut Tuning| {
            let warnings = &mut tuning.confirmation.as_mut().unwrap().warnings;
            warnings.push(format!("masu: {NEVER_ASKED}"));
            show_first(tuning, Shown::TooFewRuns { pairs: 2, needed: 9 });
        };
        let has = ["Leave it as it is: the program never asked for memory"];
        says(false, never_asks, &has, &["--budget", "more time", "sure that none"]);
    }

    #[test]
    fn what_was_not_shown_is_no_claim() {
        let unclear = |tuning: &mut Tuning| {
            let change = tuning.change.as_mut().unwrap();
            change.is_shown = false;
            change.against.as_mut().unwrap().interval = Some((0.96, 1.07));
        };
        let has =
            ["The smallest change that may get nearly all", "takes 0.960 to 1.070 times as much"];
        says(true, unclear, &has, &[]);
    }

    #[test]
    fn what_was_not_shown_to_be_the_smallest_is_not_called_so() {
        let best_alone = |tuning: &mut Tuning| {
            let change = tuning.change.as_mut().unwrap();
            (change.variant, change.against) = (change.best.clone(), None);
            change.smaller[0].between = Some((0.8, 1.05));
            let doubtful = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
            tuning.others = Some(Others { count: 9, by: 0.03, sure: 0.4, doubtful });
        };
        let has = [
            "The change that gains most: masu It takes",
            "Smaller changes may do as well: glibc:arenas=1 (between 80 and 105 % of it).",
            "Of the others tried (9) 4 may be better by 3 % or more;",
            "whether these are better: a; b; c and 1 more.",
        ];
        says(true, best_alone, &has, &[]);
    }

    #[test]
    fn what_was_run_once_is_not_counted_like_the_rest() {
        let once = |tuning: &mut Tuning| tuning.tried[0].rounds = 1;
        says(true, once, &["3 of 5 variants tried (1 of them once),"], &[]);
        // The confirmed variant was run again.
        let confirmed = |tuning: &mut Tuning| {
            once(tuning);
            tuning.tried[0].variant = "masu".to_owned();
        };
        says(true, confirmed, &["2 of 4 variants tried,"], &[]);
    }

    #[test]
    fn what_was_stopped_or_differed_is_said_first() {
        let (confirmation, change) = (None, None);
        let page = page(&Tuning {
            stopped: true,
            repeatable: false,
            confirmation,
            change,
            ..fixture(true)
        });
        assert!(page.contains("Stopped before anything was confirmed"), "{page}");
        let warning = page.find("not repeatable").unwrap();
        assert!(warning < page.find("Stopped").unwrap(), "{page}");
    }
}
