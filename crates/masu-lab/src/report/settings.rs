//! The variants that are about to be compared, and the effect of their settings: a reader can set the same without
//! masu.

use crate::page::{Block, Form, Page, Statement, Tone};
use crate::results::Rounds;
use crate::statistics::{Level, pairs_needed};
use masu_run::Variant;

/// The variants that are about to be compared, with versions and the effect of their settings.
pub fn plan(variants: &[Variant], rounds: &Rounds, is_most: bool) -> String {
    let names: Vec<String> = variants.iter().map(named).collect();
    let each = match rounds {
        Rounds::Fixed(1) => "a run".to_owned(),
        Rounds::Fixed(runs) if is_most => format!("up to {runs} runs"),
        Rounds::Fixed(runs) => format!("{runs} runs"),
        Rounds::UntilDecided { most } => format!("up to {most} runs"),
        Rounds::Budget { .. } => "runs until it is clear".to_owned(),
    };
    let few = too_few(rounds, is_most, variants.len());
    let mut page = Page::default();
    page.say(
        format!("Comparing {}: a warm-up of each, then {each}.{few}", names.join(", ")),
        Tone::Plain,
    );
    let statement = |(label, text): (&str, String)| Statement::new(label, text, Tone::Plain);
    page.push(Block::Statements(lines(variants).into_iter().map(statement).collect()));
    page.render(Form::Text, "").trim_end().to_owned()
}

/// The sentence, after a space, that so many runs of `rows` variants give no verdict; empty if they may give one.
pub fn too_few(rounds: &Rounds, is_most: bool, rows: usize) -> String {
    let Rounds::Fixed(runs) = *rounds else { return String::new() };
    let needed = pairs_needed(rows.saturating_sub(1), Level::TABLE);
    if is_most || rows < 2 || runs >= needed {
        return String::new();
    }
    format!(" That is too few for a verdict, which takes {needed} (-n {needed}).")
}

/// The variant with its allocator's version, if the label leaves room for one.
fn named(variant: &Variant) -> String {
    match &variant.version {
        Some(version) if variant.label == variant.allocator => {
            format!("{} {version}", variant.label)
        }
        Some(version) if variant.label == "system" => {
            format!("system ({} {version})", variant.allocator)
        }
        // The malloc that the program is linked with.
        None if variant.label == "system" && variant.allocator != "system" => {
            format!("system ({})", variant.allocator)
        }
        _ => variant.label.clone(),
    }
}

/// The library behind a name that the user gave it.
fn library(variant: &Variant) -> Option<String> {
    let path = variant.library.as_ref()?;
    let name = variant.label.split([':', ' ']).next().unwrap_or_default();
    let is_named = name != variant.allocator && !name.contains('/');
    is_named.then(|| format!("is {}", path.display()))
}

/// The label of each variant that sets something, with its settings and the notes on them, or that has a name of the
/// user's.
pub(super) fn lines(variants: &[Variant]) -> Vec<(&str, String)> {
    let line = |variant: &'_ Variant| {
        let set = variant.translation();
        let sets = (!set.is_empty()).then(|| format!("sets {}", set.join(" ")));
        let said: Vec<String> =
            library(variant).into_iter().chain(sets).chain(variant.notes()).collect();
        (!said.is_empty()).then(|| said.join("; "))
    };
    variants.iter().filter_map(|variant| Some((variant.label.as_str(), line(variant)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn the_plan_names_versions_but_not_beside_settings() {
        let variants = [fixtures::variant("glibc"), fixtures::variant("glibc:top_pad=1M")];
        let expected = "Comparing glibc 1.2, glibc:top_pad=1M: a warm-up of each, then 20 runs.";
        assert_eq!(plan(&variants, &Rounds::Fixed(20), false), expected);
    }

    #[test]
    fn what_is_set_is_said_with_its_traps_and_a_named_library_with_its_path() {
        let mut knob = fixtures::variant("glibc:top_pad=1M");
        knob.tunables.push(("glibc.malloc.top_pad".to_owned(), "1048576".to_owned()));
        let of = |label: &str| Variant {
            label: label.to_owned(),
            allocator: "masu".to_owned(),
            library: Some("/opt/libmasu.so".into()),
            ..Variant::default()
        };
        let [named, path, plain] = ["new", "/opt/libmasu.so", "masu:retain=1M"].map(of);
        let variants = [fixtures::variant("glibc"), knob, named, path, plain];
        let page = plan(&variants, &Rounds::Fixed(20), false);
        assert!(page.contains("sets GLIBC_TUNABLES"), "{page}");
        assert!(!page.contains('\u{1b}'), "the command shows what steers a terminal: {page}");
        let lines = lines(&variants);
        let [("glibc:top_pad=1M", text), ("new", is)] = &lines[..] else { panic!("{lines:?}") };
        let (sets, trap) = text.split_once("; ").unwrap();
        assert_eq!(sets, "sets GLIBC_TUNABLES=glibc.malloc.top_pad=1048576");
        assert!(trap.contains("`top_pad` alone"), "{text}");
        assert_eq!(is, "is /opt/libmasu.so");
    }

    #[test]
    fn runs_too_few_for_a_verdict_are_said_before_they_are_made() {
        let variants = ["system", "a", "b", "c", "d"]
            .map(|label| Variant { label: label.to_owned(), ..Variant::default() });
        let said = |rounds, is_most| {
            let page = plan(&variants, &rounds, is_most);
            page.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let five = said(Rounds::Fixed(5), false);
        let few = "then 5 runs. That is too few for a verdict, which takes 10 (-n 10).";
        assert!(five.ends_with(few), "{five}");
        let enough = [(Rounds::Fixed(10), false), (Rounds::Fixed(5), true)];
        for (rounds, is_most) in
            enough.into_iter().chain([(Rounds::UntilDecided { most: 5 }, false)])
        {
            assert!(!said(rounds, is_most).contains("too few"), "{rounds:?}");
        }
        assert_eq!(too_few(&Rounds::Fixed(1), false, 1), "", "one variant has no verdict");
    }
}
