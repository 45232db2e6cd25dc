//! What a heap profile costs as a table in Markdown.

use super::Program;
use super::count::Cost;
use xtask::records;

/// Instructions with a profile over those without that are not to be passed.
const AIM: f64 = 1.03;

/// When, of what and by what this was counted.
pub(super) fn head(commit: &str, valgrind: &str, runs: usize) -> String {
    let date = records::today();
    let times = if runs == 1 { "once".to_owned() } else { format!("{runs} times") };
    format!(
        "{date}, commit {commit}, {valgrind}; each program run {times} with a profile and {times} without:"
    )
}

/// The table, and what it says of the aim.
pub(super) fn text(rows: &[(&Program, Cost)], missing: &[&str]) -> String {
    let mut lines = vec![
        "| program | without, 10⁹ | its runs lie apart by | with / without: mean | lowest–highest |".to_owned(),
        "|---|--:|--:|--:|--:|".to_owned(),
    ];
    for (program, cost) in rows {
        let (mean, low, high) = cost.ratio();
        let (base, spread) = (cost.base() / 1e9, cost.spread() * 100.0);
        let shown = shown(program);
        lines.push(format!(
            "| {shown} | {base:.2} | {spread:.2} % | {mean:.3} | {low:.3}–{high:.3} |"
        ));
    }
    lines.push(String::new());
    lines.push(verdict(rows));
    if !missing.is_empty() {
        lines.push(format!("Left out, for they were not there: {}.", missing.join(", ")));
    }
    lines.join("\n")
}

/// A program as it is typed, and what is to be known of it.
fn shown(program: &Program) -> String {
    let word = |word: &&str| {
        let word = word.trim_start_matches("{made}/").trim_start_matches("/usr/bin/");
        let word = word.trim_start_matches("programs/").trim_matches(['{', '}']);
        if word.contains([' ', '(']) { format!("'{word}'") } else { word.to_owned() }
    };
    let variables = program.variables.iter().map(|(name, value)| format!("{name}={value}"));
    let words: Vec<String> = variables.chain(program.words.iter().map(word)).collect();
    let about = if program.about.is_empty() { "" } else { ", " };
    format!("`{}`{about}{}", words.join(" "), program.about)
}

/// Who passes the aim, on average and in single runs.
fn verdict(rows: &[(&Program, Cost)]) -> String {
    let over = |of: fn((f64, f64, f64)) -> f64| {
        let over = rows.iter().filter(|(_, cost)| of(cost.ratio()) > AIM);
        let names: Vec<String> = over
            .map(|(program, cost)| format!("{} ({:.3})", program.name, of(cost.ratio())))
            .collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "Above the aim of 3 %: on average {}; in the run that took the most {}.",
        over(|(mean, _, _)| mean),
        over(|(_, _, high)| high)
    )
}

#[cfg(test)]
mod tests {
    use super::super::PROGRAMS;
    use super::*;

    fn cost(with: &[u64]) -> Cost {
        Cost { without: vec![1_000_000_000; 2], with: with.to_vec() }
    }

    #[test]
    fn a_row_has_the_mean_and_the_ends() {
        let program = |name| PROGRAMS.iter().find(|program| program.name == name).unwrap();
        let (perl, sqlite) = (program("perl"), program("sqlite"));
        let rows = [
            (perl, cost(&[1_040_000_000, 1_000_000_000])),
            (sqlite, cost(&[1_050_000_000, 1_050_000_000])),
        ];
        let text = text(&rows, &["jq"]);
        assert!(text.contains("work.pl 10000` | 1.00 | 0.00 % | 1.020 | 1.000–1.040 |"), "{text}");
        assert!(text.contains("| `sqlite3 :memory: '.read programs/work.sql'` |"), "{text}");
        assert!(text.contains("on average sqlite (1.050); in"), "{text}");
        assert!(text.contains("the most perl (1.040), sqlite (1.050)."), "{text}");
        assert!(text.ends_with("not there: jq."), "{text}");
        assert!(super::text(&rows[..0], &[]).contains("on average none;"));
    }
}
