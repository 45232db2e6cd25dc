//! The duel as a page: what was true, what each tool said, and how often it was right.
//!
//! Relies on nothing but the answers. What counts as right is written into the page, because it can be
//! argued about: hyperfine names a faster command every time, and leaves it to the reader to hold its ±
//! against that.

use masu_lab::Machine;
use masu_lab::statistics::Verdict;

use super::{Answer, Duel, Hyperfine, Pairing, TRUTHS};
use xtask::records::today;

/// The whole record as Markdown.
pub(super) fn text(duel: &Duel) -> String {
    let machine = Machine::here();
    let [hyperfine, masu] = &duel.versions;
    let mut text = format!(
        "# {masu} and {hyperfine} on a machine in use, {}\n\n\
         Both tools were asked about the same two commands, {} runs of each, while threads of another \
         process kept the CPUs busy in spells of 0.3 to 6 seconds (`xtask/measure/src/duel/load.rs`; each pairing \
         has a seed of its own, the same for both tools). Who began took turns. masu makes runs again that \
         waited long for a CPU, a quarter of them at most.\n\n\
         - made by `cargo xtask duel` at {}, in {:.0} s\n\
         - machine: {}, {} CPUs, {}\n",
        today(),
        duel.extent.runs,
        duel.commit,
        duel.took_s,
        machine.cpu.as_deref().unwrap_or("unknown"),
        machine.cpus,
        machine.system.as_deref().unwrap_or("unknown"),
    );
    for ((name, amounts), pairings) in TRUTHS.iter().zip(&duel.pairings) {
        let truth = f64::from(amounts[1]) / f64::from(amounts[0]);
        text.push_str(&section(name, truth, pairings));
    }
    text.push_str(
        "\nhyperfine's ratio is that of its means, ± one standard deviation as its closing sentence has it. \
         Its sentence always names one command as faster. masu's ratio is the paired estimate with its \
         interval of 99 %.\n",
    );
    text
}

fn section(name: &str, truth: f64, pairings: &[Pairing]) -> String {
    let mut text = format!(
        "\n## Truth: {name} (ratio {truth:.2})\n\n{}\n\n\
         | hyperfine's means | its ratio | its sentence | masu's ratio | its verdict |\n\
         | --- | --- | --- | --- | --- |\n",
        in_short(truth, pairings)
    );
    for Pairing { hyperfine, masu } in pairings {
        let [first, second] = hyperfine
            .times
            .map(|(mean, deviation)| format!("{:.1} ± {:.1} ms", mean * 1e3, deviation * 1e3));
        text.push_str(&format!(
            "| {first}, {second} | {:.3} ± {:.3} | {} | {} | {} |\n",
            hyperfine.ratio(),
            hyperfine.deviation(),
            hyperfine.claim,
            ratio(masu),
            verdict(&masu.verdict)
        ));
    }
    text
}

/// How often each was right, and by how much it erred.
fn in_short(truth: f64, pairings: &[Pairing]) -> String {
    let all = pairings.len();
    let count = |is: &dyn Fn(&Pairing) -> bool| pairings.iter().filter(|it| is(it)).count();
    let wrong_way = |it: &Hyperfine| (it.ratio() - 1.0) * (truth - 1.0) < 0.0;
    let told_apart = |it: &Hyperfine| (it.ratio() - 1.0).abs() > it.deviation();
    let off = |ratio: f64| (ratio / truth - 1.0).abs() * 100.0;
    let worst = |errors: Vec<f64>| errors.into_iter().fold(0.0, f64::max);
    let of_hyperfine = worst(pairings.iter().map(|it| off(it.hyperfine.ratio())).collect());
    let of_masu = worst(
        pairings.iter().filter_map(|it| it.masu.ratio.map(|ratio| off(ratio.estimate))).collect(),
    );
    let claimed = count(&|it| told_apart(&it.hyperfine));
    let found = count(&|it| matches!(it.masu.verdict, Verdict::Faster | Verdict::Slower));
    let held = count(&|it| {
        let interval = it.masu.ratio.and_then(|ratio| ratio.interval);
        interval.is_some_and(|(low, high)| low <= truth && truth <= high)
    });
    let wrong = if truth > 1.0 {
        format!(", the wrong command as faster in {}", count(&|it| wrong_way(&it.hyperfine)))
    } else {
        String::new()
    };
    format!(
        "hyperfine's ratio is off by up to {of_hyperfine:.1} %; it is further from 1 than its own ± in \
         {claimed} of {all}{wrong}. masu's is off by up to {of_masu:.1} %; it calls the difference sure in \
         {found} of {all}, and its interval holds the truth in {held} of {all}."
    )
}

fn ratio(answer: &Answer) -> String {
    let Some(ratio) = answer.ratio else { return "–".to_owned() };
    match ratio.interval {
        Some((low, high)) => format!("{:.3} ({low:.3}–{high:.3})", ratio.estimate),
        None => format!("{:.3}", ratio.estimate),
    }
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Faster => "surely faster".to_owned(),
        Verdict::Slower => "surely slower".to_owned(),
        Verdict::NoDifferenceShown { could_have_seen } => {
            format!("no difference shown; could have seen {:.1} %", could_have_seen * 100.0)
        }
        other => format!("{other:?}"),
    }
}
