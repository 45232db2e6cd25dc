//! The command that makes a comparison again.

use crate::Measure;
use crate::parameter::{self, Parameter};
use crate::report::document::quoted;
use crate::results::Rounds;
use crate::tables::Source;

/// `masu compare -n 20 --seed 4711 -a glibc -a masu -- job`; none for a suite, whose file the
/// results do not hold, and for what only a suite can ask or the results do not have whole.
///
/// COUPLING: the settings are those that a plan writes (`plan.rs`), the options the command's.
pub(super) fn command(source: &Source) -> Option<String> {
    let [table] = &source.tables[..] else { return None };
    let usual = |is_server| if is_server { Measure::Throughput } else { Measure::Wall };
    let is_server = table.runs.iter().any(|run| run.burst.is_some());
    // A case that is named otherwise than by its program has values that only its name tells.
    let is_plain = table.case.command.first() == Some(&table.case.name);
    if source.header.suite.is_some() || !is_plain {
        return None;
    }
    let mut words = vec!["masu".to_owned(), "compare".to_owned()];
    if is_server {
        words.push("--server".to_owned());
    }
    match source.header.rounds {
        Rounds::Fixed(rounds) => words.extend(["-n".to_owned(), rounds.to_string()]),
        Rounds::Budget { seconds, precision } => {
            words.extend(["--budget".to_owned(), format!("{seconds}s")]);
            words.extend(["--precision".to_owned(), format!("{}", precision * 100.0)]);
        }
    }
    words.extend(["--seed".to_owned(), source.header.seed.to_string()]);
    if table.case.primary != usual(is_server) {
        words.extend(["--primary".to_owned(), table.case.primary.name().to_owned()]);
    }
    let mut input = "";
    for (name, value) in &table.case.settings {
        match name.as_str() {
            "scratch" if value.is_empty() => words.push("--scratch".to_owned()),
            "scratch" => words.push(format!("--scratch={}", quoted(value))),
            "one-at-a-time" => words.push("--one-at-a-time".to_owned()),
            "load" if value.split(' ').all(|url| url.starts_with("http")) => {
                let urls = value.split(' ').flat_map(|url| ["--load".to_owned(), quoted(url)]);
                words.extend(urls);
            }
            "setup" | "prepare" | "cleanup" | "timeout" | "memory-limit" | "ready" | "load"
            | "connections" | "rate" | "request-timeout" | "burst" => {
                words.extend([format!("--{name}"), quoted(value)]);
            }
            // What was read is not in the results; that something was must not be lost.
            "input" => input = " < INPUT",
            _ => return None,
        }
    }
    let mut specs: Vec<&str> = Vec::new();
    let mut parameters: Vec<Parameter> = Vec::new();
    for variant in &table.case.variants {
        let suffix = parameter::label(&variant.parameters);
        let spec = variant.label.strip_suffix(&suffix).unwrap_or(&variant.label);
        if !specs.contains(&spec) {
            specs.push(spec);
        }
        for (name, value) in &variant.parameters {
            match parameters.iter_mut().find(|known| known.name == *name) {
                Some(known) if known.values.contains(value) => {}
                Some(known) => known.values.push(value.clone()),
                None => {
                    parameters.push(Parameter { name: name.clone(), values: vec![value.clone()] });
                }
            }
        }
    }
    for spec in specs {
        words.extend(["-a".to_owned(), quoted(spec)]);
    }
    for parameter in parameters {
        words.extend(["-P".to_owned(), quoted(&parameter.to_string())]);
    }
    Some(format!("{} -- {}{input}", words.join(" "), table.command()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn what_was_asked_for_is_asked_for_again() {
        let mut document = fixtures::of_commands();
        let source = &mut document.sources[0];
        let expected =
            "masu compare -n 20 --seed 4711 -a glibc -a masu -a jemalloc -- job --with 'two words'";
        assert_eq!(command(source).unwrap(), expected);
        let variants = &mut source.tables[0].case.variants;
        variants.truncate(2);
        for (variant, value) in variants.iter_mut().zip(["./old", "./new one"]) {
            variant.label = format!("glibc bin={value}");
            variant.parameters = vec![("bin".to_owned(), value.to_owned())];
        }
        let expected = "masu compare -n 20 --seed 4711 -a glibc -P 'bin=./old,./new one' -- job \
                        --with 'two words'";
        assert_eq!(command(source).unwrap(), expected);
        let settings = [("prepare", "rm -f a"), ("scratch", ""), ("input", "standard input")];
        let table = &mut source.tables[0];
        table.case.settings =
            settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        table.case.primary = Measure::PeakRss;
        table.case.variants.truncate(1);
        source.header.rounds = Rounds::Budget { seconds: 90.0, precision: 0.02 };
        let expected = "masu compare --budget 90s --precision 2 --seed 4711 --primary peak_rss \
                        --prepare 'rm -f a' --scratch -a glibc -P bin=./old -- job --with \
                        'two words' < INPUT";
        assert_eq!(command(source).unwrap(), expected);
        source.tables[0].case.name = "job threads=2".to_owned();
        assert_eq!(command(source), None);
    }

    #[test]
    fn a_servers_load_is_asked_for_again_unless_the_results_do_not_have_it() {
        let mut document = fixtures::of_servers();
        let settings = &mut document.sources[0].tables[0].case.settings;
        for (name, value) in [("load", "http://a/{port} http://b"), ("connections", "8")] {
            settings.push((name.to_owned(), value.to_owned()));
        }
        let expected = "masu compare --server -n 20 --seed 4711 --load http://a/{port} --load \
                        http://b --connections 8 -a glibc -a masu -- server --with 'two words'";
        assert_eq!(command(&document.sources[0]).unwrap(), expected);
        let settings = &mut document.sources[0].tables[0].case.settings;
        settings.push(("load-body".to_owned(), "12 bytes".to_owned()));
        assert_eq!(command(&document.sources[0]), None);
    }
}
